"""Every block of code in the README and the documentation runs, every link leads somewhere, every figure is measured.

A block that cannot run here has a comment before it, ``<!-- not run: why -->``. Its commands must still be understood.
"""

import importlib
import inspect
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from skimage.data import camera
from skimage.io import imsave

from roadict import ROAD
from roadict.synthetic import planted

ROOT = Path(__file__).parents[1]
MADE = ("_build", "gallery")
DOCS = [path for path in sorted((ROOT / "docs").rglob("*.md")) if not {*MADE} & {*path.parts}]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS]
BLOCK = re.compile(r"(<!-- not run: [^>]+ -->\n)?^```([^\n{]*)\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)
SHELL = ("sh", "bash", "console", "shell")
OTHER = ("", "text", "toml", "json")
MOST_SKIPPED = 8


def blocks(page):
    """Language, text and whether it is to be run, of each fenced block that is no directive."""
    found = BLOCK.findall(page.read_text(encoding="utf-8"))
    return [(language.strip(), text, not mark) for mark, language, text in found]


def commands(page, *, run):
    """Lines of the shell blocks, without comments."""
    lines = [
        line
        for language, text, wanted in blocks(page)
        if language in SHELL and wanted == run
        for line in text.replace("\\\n", " ").splitlines()
    ]
    return [words for line in lines if (words := shlex.split(line, comments=True))]


def name(page):
    return str(page.relative_to(ROOT))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the files that the documents speak of, small; and a model for upscale that is trained at once."""
    from roadict.pictures import Recipe, SuperResolution

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    # The package has a function of this module's name.
    monkeypatch.setattr(importlib.import_module("roadict.pictures.upscaling"), "BUNDLED", ("coins",))
    for setting, value in (("n_components", 16), ("max_iter", 20), ("recipe", Recipe(max_samples=300))):
        monkeypatch.setitem(SuperResolution.__init__.__kwdefaults__, setting, value)
    np.save("patches.npy", planted(400, 16, 20, sparsity=2, random_state=0).data)
    np.save("new.npy", planted(50, 16, 20, sparsity=2, random_state=0).data)
    picture = camera()[100:124, 200:224]
    rng = np.random.default_rng(0)
    holes = rng.random(picture.shape) < 0.3
    imsave("photo.png", picture[:16, :16])
    imsave("noisy.png", np.clip(picture + rng.normal(0, 20, picture.shape), 0, 255).astype(np.uint8))
    imsave("holes.png", np.where(holes, 0, picture).astype(np.uint8))
    imsave("mask.png", (255 * holes).astype(np.uint8), check_contrast=False)
    return tmp_path


@pytest.mark.parametrize(
    "page", [page for page in DOCS if any(block[0] == "python" for block in blocks(page))], ids=name
)
def test_python_blocks_run(page, folder):
    """The blocks of a page, one after the other, as a reader would paste them."""
    known = {}
    for language, text, run in blocks(page):
        if language == "python" and run:
            exec(compile(text, name(page), "exec"), known)  # noqa: S102


@pytest.mark.parametrize("page", [page for page in PAGES if commands(page, run=True)], ids=name)
@pytest.mark.filterwarnings("ignore:ROAD has not converged")
def test_commands_run(page, folder, roadict):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for words in commands(page, run=True):
        if words[0] == "roadict":
            if words[1] == "studio":
                words[2:] = ["--help"]  # it would wait for visitors
            if words[1] == "learn":
                words += ["--max-iter", "30"]  # what is written is of interest here, not how well
            result = roadict(*words[1:])
            assert result.code == 0, (words, result.err)
            if "-o" in words:
                assert (folder / words[words.index("-o") + 1]).exists()
        elif words[0] == "make":
            assert f"\n{words[1]}:" in makefile
        else:
            assert words[:2] == ["pip", "install"], f"say <!-- not run: why --> before {' '.join(words)}"


@pytest.mark.parametrize("page", [page for page in PAGES if commands(page, run=False)], ids=name)
def test_commands_that_take_too_long_are_understood(page, tmp_path, monkeypatch, roadict):
    """They are refused for their missing files only."""
    monkeypatch.chdir(tmp_path)
    for words in commands(page, run=False):
        if words[0] != "roadict" and "-m" in words:  # torchrun -m roadict ...
            words = [word for word in words[words.index("-m") + 1 :] if word != "&"]
        if words[0] == "roadict" and "studio" not in words:
            result = roadict(*words[1:])
            assert result.code == 2
            assert re.search("No such file|does not exist", result.err)


def test_the_ten_lines_of_the_readme_find_the_atoms(folder, capsys):
    [(text, *_)] = [block[1:] for block in blocks(ROOT / "README.md") if block[0] == "python"]
    exec(compile(text, "README.md", "exec"), {})  # noqa: S102
    reason, iterations, error = capsys.readouterr().out.splitlines()[0].split()
    assert reason == "converged"
    assert int(iterations) < 2000
    assert float(error) < 1e-2


def test_few_blocks_are_not_run():
    assert len(commands(ROOT / "README.md", run=True)) >= 11
    assert {language for page in PAGES for language, *_ in blocks(page)} <= {"python", *SHELL, *OTHER}
    assert sum(not run for page in PAGES for *_, run in blocks(page)) <= MOST_SKIPPED


def exists(path):
    """Whether a dotted name below roadict is a module, or something that a module or class there defines."""
    thing = importlib.import_module("roadict")
    for word in path.removeprefix("roadict.").split("."):
        if hasattr(thing, word):
            thing = getattr(thing, word)
        elif inspect.ismodule(thing):
            try:
                thing = importlib.import_module(f"{thing.__name__}.{word}")
            except ImportError:
                return False
        else:  # what a method assigns, or a field without a default
            source = inspect.getsource(thing) if inspect.isclass(thing) else ""
            return re.search(rf"^ +(?:self\.)?{word}(?:: | = )", source, flags=re.MULTILINE) is not None
    return True


def test_names_from_the_paper_to_the_code_exist():
    text = (ROOT / "docs" / "paper-to-code.md").read_text(encoding="utf-8")
    named = re.findall(r"`(\w+(?:\.\w+)+)(?:\([^`]*\))?`", text)
    assert len(named) > 50
    assert [path for path in named if not exists(path)] == []
    columns = re.findall(r"^\|.*\| ([^|]+) \|$", text, flags=re.MULTILINE)
    plain = {word for cell in columns for word in re.findall(r"`(\w+)(?:\(.*?\))?`", cell)}
    assert {"components_", "epsilon"} < plain
    described = {*re.findall(r"^    (\w+) :", ROAD.__doc__, flags=re.MULTILINE)}
    assert [word for word in plain - described if not exists(word)] == []
    assert not exists("road.formulation.lasso")
    assert not exists("formulation.Problem.penalty")


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_files_that_a_page_names_exist(page):
    folders = ("*", "src/**/*", "tests/**/*", "docs/*", "benchmarks/*", "examples/*", ".ci/*")
    for path in re.findall(r"`([\w./-]+\.(?:py|md))`", page.read_text(encoding="utf-8")):
        assert any(file.as_posix().endswith(f"/{path}") for folder in folders for file in ROOT.glob(folder)), path


def test_the_layers_are_drawn_as_they_are_enforced():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = project["tool"]["importlinter"]["contracts"][0]["layers"]
    _, *enforced = [re.split(r" [|:] ", layer) for layer in layers]  # without __main__
    assert [line.split() for line in re.findall(r"^│ (.+?) *│", text, flags=re.MULTILINE)] == enforced


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)#:]+)\)", text)  # files; addresses have a colon
    targets += re.findall(r"^```\{(?:include|figure|image)\} (\S+)", text, flags=re.MULTILINE)
    for target in targets:
        if not target.startswith("_figures/"):  # drawn when the site is built
            assert (page.parent / target).exists(), target
    for document in re.findall(r"\{doc\}`(?:[^<`]*<)?([^>`]+)>?`", text):
        example = re.sub(r"^gallery/(plot_\w+)$", r"../examples/\1.py", document)
        assert document == "gallery/index" or any(
            (page.parent / f"{example}{suffix}").exists() for suffix in ("", ".md")
        ), document


# ---- figures -------------------------------------------------------------------------------------------------------


def section(title):
    """Text of the section of RESULTS.md with this title, or with the one title that begins so."""
    text = (ROOT / "benchmarks" / "RESULTS.md").read_text(encoding="utf-8")
    parts = {part.split("\n", 1)[0]: part for part in re.split(r"^## ", text, flags=re.MULTILINE)}
    [full] = [title] if title in parts else [name for name in parts if name.startswith(title)]
    return parts[full]


def numbers(text):
    return [piece.replace(",", "") for piece in re.findall(r"\d[\d,]*\.?\d*", text)]


def is_measured(written, found):
    """Whether one of the numbers found, or a hundred times it, gives what is written when rounded like it."""
    if "." in written:
        digits = len(written.split(".")[1])
    else:
        digits = -max(0, min(len(written) - 2, len(written) - len(written.rstrip("0"))))
    values = [float(number) for number in found]
    return any(round(value, digits) == float(written) for value in values + [100 * value for value in values])


def test_figures_of_the_readme_are_measured():
    # Those of the paper are compared with docs/results in tests/experiments/test_results.py.
    text = (ROOT / "README.md").read_text(encoding="utf-8").split("\n## Measured\n")[1]
    rows = re.findall(r"^\| (?!what|---)(.+) \| (.+) \| (.+) \|$", text, flags=re.MULTILINE)
    assert len(rows) >= 6
    for _, figure, title in rows:
        found = numbers(section(title))
        for written in numbers(figure):
            assert is_measured(written, found), f"{written} ({figure}) is not in the section {title!r} of RESULTS.md"


SOURCES = ("benchmarks/RESULTS.md", "docs/results/README.md")
"""What commands have written: python benchmarks/..., and python benchmarks/paper.py from the rows of reproduce."""
WITH_UNIT = r"ms|µs|s|seconds?|min|minutes?|hours?|[kMGT]i?B(?:/s)?"
OTHER_MEASURE = r"dB|times|%|trials|iterations"
MEASURE = re.compile(rf"(?<![\w.,-])(\d[\d,]*(?:\.\d+)?)\s?(?:({WITH_UNIT}|{OTHER_MEASURE})(?![\w-]))")
IN_WORDS = re.compile(
    r"\b(?:(?:half an?|one|two|three|five|ten|some|few) (?:second|minute|hour)s?|an? (?:minute|hour))\b"
)
NOT_MEASURED = {
    "README.md": {"10 %": "a setting, epsilon=0.1", "a minute": "a bound that depends on the machine"},
    "CONTRIBUTING.md": {"50 iterations": "a setting", "an hour": "a manner of speaking", "few seconds": "a rule"},
    "docs/distributed.md": {"10 minutes": "a default", "30 seconds": "torchrun's own"},
    "docs/gpu.md": {"141 GB": "what an H200 is sold with"},
    "docs/studio.md": {"32 MB": "a bound"},
}


def prose(page):
    """Text of a page without code, and without what is compared row by row: above, and in tests/experiments."""
    text = re.sub(r"<!-- results: .*?<!-- /results -->", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    text = re.sub(r"^## Measured\n.*?(?=^## )", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`\n]*`|<!--.*?-->", "", text)


def unsupported(text, sources, exceptions=()):
    """Measures of a text that no source has: times and sizes in their unit, other numbers as they are."""
    found = MEASURE.findall(sources)
    wrong = [match[0] for match in IN_WORDS.finditer(text) if match[0] not in exceptions]
    for match in MEASURE.finditer(text):
        written, unit = match.groups()
        if re.fullmatch(WITH_UNIT, unit):
            known = [number.replace(",", "") for number, other in found if other == unit]
        else:
            known = numbers(sources)
        told = f"{written} {unit}"
        if told not in exceptions and not is_measured(written.replace(",", ""), known):
            wrong.append(told)
    return wrong


MADE_FROM = ("docs/results/", "docs/decisions/", "docs/scale.md")  # see the tests below and in tests/experiments


@pytest.mark.parametrize("page", [page for page in PAGES if not name(page).startswith(MADE_FROM)], ids=name)
def test_what_is_measured_was_written_by_a_command(page):
    sources = "\n".join((ROOT / source).read_text(encoding="utf-8") for source in SOURCES)
    exceptions = NOT_MEASURED.get(name(page), {})
    assert unsupported(prose(page), sources, exceptions) == []
    assert all(told in " ".join(prose(page).split()) for told in exceptions), "an exception that is not needed any more"


def test_the_first_command_for_pictures_tells_a_time_that_was_measured():
    told = re.search(r"trains a model \((\d+) s\)", (ROOT / "README.md").read_text(encoding="utf-8"))[1]
    assert told in re.findall(r"(\d+) s \|", section("Set5"))


def test_the_estimate_of_scale_is_that_of_its_command():
    program = [sys.executable, str(ROOT / "benchmarks" / "scale.py")]
    done = subprocess.run(program, capture_output=True, text=True, check=True, timeout=120)
    table = [line for line in done.stdout.splitlines() if line.startswith("|")]
    page = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
    assert len(table) > 9
    assert "\n".join(table) in page


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("It takes 1.6 ms, 2.1 times the floor.", []),
        ("It takes 1.6 s.", ["1.6 s"]),
        ("It takes 1.7 ms, 2.3 times the floor.", ["1.7 ms", "2.3 times"]),
        ("It takes half a minute.", ["half a minute"]),
        ("Ten in 12 s, 27 % of it.", []),
    ],
)
def test_measures_are_found_in_what_was_written(text, wrong):
    assert unsupported(text, "| 1.608 ms | 2.09 | 11.63 s | 26.8% |") == wrong


def test_the_memory_that_the_docs_tell_is_measured():
    text = (ROOT / "docs" / "which-method.md").read_text(encoding="utf-8")
    assert is_measured(re.search(r"gigabytes = ([\d.]+) \*", text)[1], numbers(section("Memory")))


@pytest.mark.parametrize(
    ("written", "found", "answer"),
    [
        ("18.5", "18.52", True),
        ("18.5", "18.6", False),
        ("90", "0.90", True),
        ("1500", "1501", True),
        ("5", "4.2", False),
    ],
)
def test_rounding(written, found, answer):
    assert is_measured(written, [found]) == answer
