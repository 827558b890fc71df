"""Release metadata: one version, complete fields, documented extras. ``make dist`` builds and tests a release."""

import re
import tomllib
from pathlib import Path

import roadict

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_version_is_in_one_place():
    assert PROJECT["dynamic"] == ["version"]
    assert "version" not in PROJECT
    cited = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert cited[1] == roadict.__version__  # the only copy: a citation needs its own
    elsewhere = [
        path for path in (ROOT / "src").rglob("*.py") if re.search(r"__version__\s*=", path.read_text(encoding="utf-8"))
    ]
    assert [path.relative_to(ROOT / "src" / "roadict").as_posix() for path in elsewhere] == ["__init__.py"]


def test_the_metadata_is_complete():
    for field in ("description", "readme", "requires-python", "license", "license-files", "authors", "keywords"):
        assert PROJECT[field]
    supported = {line.rsplit(" ", 1)[1] for line in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", line)}
    assert supported == {"3.11", "3.12", "3.13"}
    assert PROJECT["requires-python"] == ">=3.11"
    assert "Typing :: Typed" in PROJECT["classifiers"]
    assert (ROOT / "src" / "roadict" / "py.typed").exists()


def test_every_extra_is_documented():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`[^|]+) \|", text, flags=re.MULTILINE))))
    assert documented == set(PROJECT["optional-dependencies"]) - {"all"}
    assert "`.[all]`" in text
    *_, everything = PROJECT["optional-dependencies"]["all"]
    assert set(re.search(r"\[(.+)\]", everything)[1].split(",")) == documented - {"docs", "test", "dev"}
