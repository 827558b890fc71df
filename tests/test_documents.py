"""Every block of code in the README and the documentation runs, every link leads somewhere, every figure is measured.

A block that cannot run here has a comment before it, ``<!-- not run: why -->``. Its commands must still be understood.
"""

import importlib.util
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
from roadict.metrics import dictionary_error
from roadict.synthetic import planted

ROOT = Path(__file__).parents[1]
MADE = ("_build", "gallery")
DOCS = [path for path in sorted((ROOT / "docs").rglob("*.md")) if not {*MADE} & {*path.parts}]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS]
BLOCK = re.compile(r"(<!-- not run: [^>]+ -->\n)?^```([^\n]*)\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)
SHELL = ("sh", "bash", "console", "shell")
OTHER = ("", "text", "toml", "json", "bibtex")
MOST_SKIPPED = 8


def blocks(page):
    """Language, text and whether it is to be run, of each fenced block that is no directive."""
    found = BLOCK.findall(page.read_text(encoding="utf-8"))
    return [(language.strip(), text, not mark) for mark, language, text in found if not language.startswith("{")]


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
    from roadict.pictures import Recipe, SuperResolution, upscaling

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(upscaling, "BUNDLED", ("coins",))
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
    _, text = [text for language, text, _ in blocks(ROOT / "README.md") if language == "python"]
    exec(compile(text, "README.md", "exec"), {})  # noqa: S102
    reason, error = capsys.readouterr().out.splitlines()[0].split()
    assert reason == "converged"
    assert float(error) < 1e-2


@pytest.mark.parametrize("page", [ROOT / "README.md", ROOT / "docs" / "index.md"], ids=name)
def test_the_first_lines_of_a_page_print_what_it_tells(page, capsys):
    python, printed, *_ = [text for language, text, _ in blocks(page) if language in ("python", "text")]
    exec(compile(python, name(page), "exec"), {})  # noqa: S102
    assert capsys.readouterr().out == printed


@pytest.mark.parametrize("snippet", sorted((ROOT / "docs" / "snippets").iterdir()), ids=name)
@pytest.mark.filterwarnings("ignore")
def test_the_same_task_in_code(snippet, folder):
    """It is shown, and finds atoms where its package is installed."""
    assert f"snippets/{snippet.name}\n" in (ROOT / "docs" / "beside.md").read_text(encoding="utf-8")
    code = compile(snippet.read_text(encoding="utf-8"), name(snippet), "exec")
    module = snippet.stem.removeprefix("with_").replace("scikit_learn", "sklearn")
    pytest.importorskip(module)
    truth = planted(400, 16, 32, sparsity=3, random_state=0)
    np.save("data.npy", truth.data)
    known = {}
    exec(code, known)  # noqa: S102
    assert known["atoms"].shape == (32, 16)
    assert dictionary_error(known["atoms"], truth.dictionary) < 0.1


def test_few_blocks_are_not_run():
    assert len(commands(ROOT / "README.md", run=True)) >= 11
    assert {language for page in PAGES for language, *_ in blocks(page)} <= {"python", *SHELL, *OTHER}
    assert sum(not run for page in PAGES for *_, run in blocks(page)) <= MOST_SKIPPED


def exists(path):
    """Whether a dotted name below roadict is a module, or something that a module or class there defines."""
    thing = importlib.import_module("roadict")
    if path.startswith("engines.gpu.") and importlib.util.find_spec("triton") is None:
        return True  # tests may run without it
    for word in path.removeprefix("roadict.").split("."):
        if hasattr(thing, word):
            thing = getattr(thing, word)
        elif inspect.ismodule(thing):
            try:
                thing = importlib.import_module(f"{thing.__name__}.{word}")
            except ImportError as missing:
                return missing.name in ("torch", "triton")  # tests may run without them
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
    described = {*re.findall(r"^ *(\w+) :", ROAD.__doc__, flags=re.MULTILINE)}  # 3.13 strips the indentation
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
    targets += re.findall(r"^```\{(?:include|literalinclude|figure|image)\} (\S+)", text, flags=re.MULTILINE)
    for target in targets:
        if not target.startswith("_figures/"):  # drawn when the site is built
            assert (page.parent / target).exists(), target
    for document in re.findall(r"\{doc\}`(?:[^<`]*<)?([^>`]+)>?`", text):
        example = re.sub(r"^gallery/(plot_\w+)$", r"../examples/\1.py", document)
        assert document == "gallery/index" or any(
            (page.parent / f"{example}{suffix}").exists() for suffix in ("", ".md")
        ), document


# ---- figures -------------------------------------------------------------------------------------------------------

RESULTS = (ROOT / "benchmarks" / "RESULTS.md").read_text(encoding="utf-8")
SECTIONS = {part.split("\n", 1)[0]: part for part in re.split(r"^## ", RESULTS, flags=re.MULTILINE)[1:]}
MEASURE = re.compile(r"(?<![\w.,-])(\d[\d,]*(?:\.\d+)?)(?:\s?(ms|µs|s|min|[GT]B/s|%)(?!\w))?(?![\w.]*\w)")
TIME = re.compile(r"\d\s?(?:ms|µs|s|min)\b")  # a time that is a setting or a bound is written in words: 10 minutes
LINK = re.compile(r"\]\((?:performance|\S*RESULTS)\.md#([\w-]+)\)")


def section(title):
    """The section of RESULTS.md with this title, or with the one title that begins so."""
    [full] = [title] if title in SECTIONS else [name for name in SECTIONS if name.startswith(title)]
    return SECTIONS[full]


def linked(anchor):
    """The section of RESULTS.md with this anchor, made of its title as on the site and on GitHub."""
    [found] = [
        part for title, part in SECTIONS.items() if re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") == anchor
    ]
    return found


def measures(text):
    """Numbers of a text with their units."""
    return [(number.replace(",", ""), unit) for number, unit in MEASURE.findall(text)]


def table_measures(text):
    """Numbers in the tables of a section with their units, and those of a column in seconds as such."""
    lines = [line.split("|") for line in text.splitlines() if line.startswith("|")]
    found = [measure for line in lines for measure in measures("|".join(line))]
    columns = [i for i, cell in enumerate(lines[0]) if "seconds" in cell]
    return found + [(number, "s") for line in lines[2:] for i in columns for number, _ in measures(line[i])]


def unsupported(text, *sections):
    """Numbers of a text that no table of these sections has in the same unit, rounded as in the text."""
    found = [measure for each in sections for measure in table_measures(each)]
    wrong = []
    for written, unit in measures(text):
        if "." in written:
            digits = len(written.split(".")[1])
        else:
            digits = -max(0, min(len(written) - 2, len(written) - len(written.rstrip("0"))))
        known = [float(number) for number, other in found if other == unit]
        if unit == "%":
            known += [100 * float(number) for number, other in found if not other]  # a share
        if not any(round(value, digits) == float(written) for value in known):
            wrong.append(f"{written} {unit}".strip())
    return wrong


def test_figures_of_the_readme_are_measured():
    # Those of the paper are compared with docs/results in tests/experiments/test_results.py.
    text = (ROOT / "README.md").read_text(encoding="utf-8").split("\n## Measured\n")[1]
    rows = re.findall(r"^\| (?!what|---)(.+) \| (.+) \| (.+) \|$", text, flags=re.MULTILINE)
    assert len(rows) >= 6
    for _, figure, title in rows:
        assert unsupported(figure, section(title)) == [], f"not in the section {title!r} of RESULTS.md"


def test_the_table_of_packages_is_measured(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    peers = importlib.import_module("peers_table")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    table = importlib.import_module("blocks").content(readme, "peers")
    assert table == peers.table(), "run python docs/peers_table.py"
    assert table.count("\n") == 6
    assert unsupported(table, section("ROAD beside its peers")) == []


def paragraphs(page):
    """Text of a page without code, and without what is compared row by row: above, and in tests/experiments."""
    text = re.sub(r"<!-- results: .*?<!-- /results -->", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    text = re.sub(r"^## Measured\n.*?(?=^## )", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^```.*?^```", "\n", text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`\n]*`|<!--.*?-->", "", text).split("\n\n")


MADE_FROM = ("docs/results/", "docs/decisions/", "docs/scale.md")  # see the tests below and in tests/experiments


def test_figures_in_a_paragraph_stand_in_the_sections_that_it_links():
    checked = 0
    for page in PAGES:
        for paragraph in paragraphs(page) if not name(page).startswith(MADE_FROM) else ():
            sections = [linked(anchor) for anchor in LINK.findall(paragraph)]
            if sections:
                assert unsupported(paragraph, *sections) == [], (name(page), paragraph)
                checked += 1
            else:
                assert not TIME.search(paragraph), f"link the section of RESULTS.md: {name(page)}, {paragraph}"
    assert checked >= 2


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("It takes 1.6 ms, 2.1 times the floor, for (34, 512, 11,775).", []),
        ("It takes 1.6 s.", ["1.6 s"]),
        ("It takes 1.7 ms, 2.3 times the floor.", ["1.7 ms", "2.3"]),
        ("Ten in 12 s, 27 % of it, 90 % found after 1,500.", []),
        ("Ten in 13 s, 28 % of it, 9 % found after 1,600.", ["13 s", "28 %", "9 %", "1600"]),
        ("It takes 3 s of CPU.", []),
        ("It takes 1,501 s.", ["1501 s"]),
    ],
)
def test_a_figure_that_was_not_measured_is_found(text, wrong):
    table = "| (M, K, N) | time | CPU seconds |\n|---|---|---|\n"
    row = "| (34, 512, 11775) | 1.608 ms, 2.09 | 3.20 | 11.63 s | 26.8% | 0.90 | 1501 |\n"
    assert unsupported(text, f"Title 13 s\n\n{table}{row}\n(2026, 28 cores)") == wrong


def test_the_first_command_for_pictures_tells_a_time_that_was_measured():
    told = re.search(r"trains a model \((\d+) s\)", (ROOT / "README.md").read_text(encoding="utf-8"))[1]
    [row] = re.findall(r"^\| ×3 \|.*", section("Set5"), flags=re.MULTILINE)
    assert row.endswith(f"| {told} s |")


def test_the_memory_that_the_docs_tell_is_measured():
    text = (ROOT / "docs" / "which-method.md").read_text(encoding="utf-8")
    assert unsupported(re.search(r"gigabytes = ([\d.]+) \*", text)[1], section("Memory")) == []


def test_the_estimate_of_scale_is_that_of_its_command():
    program = [sys.executable, str(ROOT / "benchmarks" / "scale.py")]
    done = subprocess.run(program, capture_output=True, text=True, check=True, timeout=120)
    table = [line for line in done.stdout.splitlines() if line.startswith("|")]
    page = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
    assert len(table) > 9
    assert "\n".join(table) in page
