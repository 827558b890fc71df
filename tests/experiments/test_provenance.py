"""Rows know the code that made them."""

import hashlib
import importlib
import inspect
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from roadict import two_stage
from roadict.experiments import provenance
from roadict.experiments.cost import part, seconds
from roadict.experiments.methods import ITERATIONS
from roadict.experiments.registry import EXPERIMENTS
from roadict.experiments.rows import pack, read_folder, read_folders

PACKAGE = Path(provenance.__file__).parents[1]


CACHED = (provenance.sources_digest, provenance._imported)


@pytest.fixture
def digests(tmp_path, monkeypatch):
    """Return a function that gives the digests of a copy of the package, after a change to one of its files."""
    copy = tmp_path / "roadict"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__", "templates"))
    monkeypatch.setattr(provenance, "PACKAGE", copy)

    def after(file="prox.py", old="", new=""):
        text = (copy / file).read_text("utf-8")
        assert old in text
        (copy / file).write_text(text.replace(old, new), "utf-8")
        for function in CACHED:
            function.cache_clear()
        found = {learner: provenance.sources_digest(learner) for learner in provenance.ROOTS}
        (copy / file).write_text(text, "utf-8")
        return found

    yield after
    for function in CACHED:
        function.cache_clear()


def test_a_digest_changes_with_the_code_that_the_numbers_depend_on(digests):
    same = digests()
    assert len({*same.values()}) == len(provenance.ROOTS)
    changes = [
        ("prox.py", {"road", "picture", "timed"}),
        ("updates/mod.py", {"alternating", "picture", "timed"}),
        ("two_stage.py", {"alternating", "picture", "timed"}),
        ("synthetic.py", {"road", "alternating", "timed"}),
        ("pictures/resize.py", {"picture", "bicubic"}),
        ("experiments/trial.py", {*provenance.ROOTS}),
        ("drawing/charts.py", set()),
        ("experiments/judgement.py", set()),
        ("experiments/methods.py", set()),  # what they say is in the settings of the trial
    ]
    for file, affected in changes:
        found = digests(file, "return ", "return  ")
        assert {learner for learner in same if found[learner] != same[learner]} == affected, file
    assert digests("prox.py", "def ", "# a comment\ndef ") == same
    assert digests("prox.py", '."""\n', '. Changed."""\n') == same


def test_what_the_digests_leave_out_is_as_it_was():
    """If this fails, rows of ROAD, or of restarts, have to be computed again: their keys would not tell."""
    assert ITERATIONS == 300
    statements = [
        provenance._statements(inspect.getsource(two_stage.starting_atoms)),
        provenance._statements((PACKAGE / "estimators" / "batch.py").read_text("utf-8")),
    ]
    assert [hashlib.sha256(text.encode()).hexdigest()[:8] for text in statements] == ["060ec2c0", "e66624af"]


def test_every_learner_has_its_sources():
    used = {method.learner for experiment in EXPERIMENTS.values() for method in experiment.methods}
    assert used == {*provenance.ROOTS}


def test_every_module_that_a_learner_loads_counts():
    """Compared with what Python itself imports; the table of what does not count is small."""
    code = "import sys; import roadict.two_stage; print(*(m for m in sys.modules if m.startswith('roadict.')))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    found, waiting = set(), [PACKAGE / "two_stage.py"]
    while waiting:
        if (path := waiting.pop()) not in found:
            found.add(path)
            waiting += provenance._imported(path)
    files = {Path(importlib.import_module(name).__file__) for name in loaded}
    left_out = {path.relative_to(PACKAGE).parts for path in files - found if path.name != "__init__.py"}
    assert len(files & found) > 20
    assert {parts[0].removesuffix(".py") for parts in left_out} <= {*provenance.WITHOUT_NUMBERS, "streams"}


def test_the_commit_of_a_repository_and_of_a_copy(tmp_path, monkeypatch):
    package = tmp_path / "src" / "roadict" / "experiments"
    package.mkdir(parents=True)
    file = package / "provenance.py"
    shutil.copy(provenance.__file__, file)

    def commit():
        code = f"import runpy; print(runpy.run_path({str(file)!r})['commit']())"
        return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()

    def git(*arguments):
        identity = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
        done = subprocess.run(["git", *identity, *arguments], cwd=tmp_path, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    monkeypatch.delenv(provenance.COMMIT_VARIABLE, raising=False)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert commit() == "unknown"
    git("init", "-q")
    (tmp_path / "README").write_text("")
    git("add", "README")
    git("commit", "-qm", "first")
    assert commit() == "unknown"  # in somebody's repository, but not part of it
    git("add", ".")
    git("commit", "-qm", "second")
    assert commit() == git("rev-parse", "HEAD")
    (tmp_path / "README").write_text("changed")
    assert commit() == git("rev-parse", "HEAD") + "-dirty"
    monkeypatch.setenv(provenance.COMMIT_VARIABLE, "abc-dirty")
    assert commit() == "abc-dirty"


@pytest.mark.parametrize("number", [1, 3, 8])
def test_parts_are_disjoint_complete_in_order_and_of_equal_work(number):
    trials = [trial for name in ("solvers", "noisy") for trial in EXPERIMENTS[name].trials(4, "auto")]
    parts = [part(trials, index, number) for index in range(1, number + 1)]
    assert sorted(trials.index(trial) for own in parts for trial in own) == [*range(len(trials))]
    for own in parts:
        places = [trials.index(trial) for trial in own]
        assert places == sorted(places)
    work = [sum(map(seconds, own)) for own in parts]
    assert max(work) - min(work) <= max(map(seconds, trials))


def test_compressed_rows_are_read_and_damage_is_reported(tmp_path):
    rows = [{"key": "b", "x": "ρ"}, {"key": "a"}]
    (tmp_path / "noisy.jsonl.gz").write_bytes(pack(rows))
    (tmp_path / "digits.jsonl").write_text('{"key": "c"}\n')
    assert read_folder(tmp_path) == [{"key": "a"}, {"key": "b", "x": "ρ"}, {"key": "c"}]
    assert pack(rows) == pack(rows)
    other = tmp_path / "other"
    other.mkdir()
    (other / "noisy.jsonl").write_text('{"key": "a", "y": 1}\n{"key": "d"}\n')
    assert [row["key"] for row in read_folders([tmp_path, other])] == ["a", "b", "c", "d"]
    assert read_folders([tmp_path, other])[0] == {"key": "a"}  # the first folder's
    (tmp_path / "noisy.jsonl.gz").write_bytes(pack(rows)[:-9])
    with pytest.raises(ValueError, match=r"noisy\.jsonl\.gz is damaged"):
        read_folder(tmp_path)


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("ROAD", "estimators/road.py"),
        ("estimators.ROADCV", "estimators/road_cv.py"),
        ("synthetic.planted", "synthetic.py"),
        ("__version__", "__init__.py"),
        ("road.expected", None),
        ("progress.words.duration", None),
    ],
)
def test_a_name_leads_to_the_module_that_it_is_from(name, file):
    found = provenance._file_of(name.split("."))
    assert found == (file and provenance.PACKAGE / file)
