"""What benchmarks/paper.py writes into docs and README comes from the rows, and the committed files agree."""

import dataclasses
import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest

from roadict.experiments.provenance import commit
from roadict.experiments.registry import EXPERIMENTS
from roadict.experiments.rows import RowFile, read_folder, read_folders
from roadict.experiments.runner import make_row
from roadict.experiments.trial import Finished

ROOT = Path(__file__).resolve().parents[2]
spec = importlib.util.spec_from_file_location("paper", ROOT / "benchmarks" / "paper.py")
paper = importlib.util.module_from_spec(spec)
spec.loader.exec_module(paper)
PUBLISHED = ROOT / "docs" / "results" / "rows"


def block(name, text):
    """What stands in a block of a page."""
    [found] = re.findall(f"<!-- {name}: python benchmarks/paper.py DIR -->\n(.*?)\n?<!-- /{name} -->", text, re.DOTALL)
    return found


def rows_of(name, number, learner, machine, engine="auto"):
    """Synthetic rows of ROAD or of the others."""
    rng = np.random.default_rng(len(name) + number)
    for trial in EXPERIMENTS[name].trials(number, engine):
        if trial.method.name.startswith("road") == (learner == "road"):
            if name == "ablation":
                result = {"error": found_from(trial), "error_greedy": 0.3}
            elif EXPERIMENTS[name].pictures:
                result = {"psnr": 28.3 if trial.method.name == "ksvd-omp" else 25 + float(rng.random())}
            else:
                # ROAD needs 200 samples, the others never have enough.
                enough = learner == "road" and trial.problem.n_samples >= 200
                result = {"error": 1e-4 if enough else 0.2, "error_greedy": 0.3, "trace": [[1, 0.5], [100, 0.2]]}
            if name == "zebra":
                papers = dataclasses.replace(trial.problem, source="the paper's own pictures", digest="d")
                trial = dataclasses.replace(trial, problem=papers)
            yield make_row(Finished(trial, result, {"wall": 2.0, "cpu": 1.0})) | {"machine": machine}


SAMPLES = {"road-defaults": 150, "road-unfinished": 300, "road-one-start": 150, "lasso-annealed": 300}


def found_from(trial):
    """An error of the ablation: a method finds the dictionary from some number of samples on, with even seeds only."""
    enough = trial.problem.n_samples >= SAMPLES.get(trial.method.name, 999)
    return 1e-5 if enough and (trial.seed % 2 == 0 or trial.method.name == "road-defaults") else 0.2


@pytest.fixture
def repository(tmp_path):
    """A repository with a README, and rows of ROAD and of the others that two machines made."""
    marks = "".join(
        f"<!-- {name}: python benchmarks/paper.py DIR -->\nold\n<!-- /{name} -->\n" for name in ("success", "results")
    )
    (tmp_path / "README.md").write_text(f"before\n{marks}after\n", encoding="utf-8")
    (tmp_path / "docs").mkdir()
    gains = "Gains:\n\n<!-- gains: python benchmarks/paper.py DIR -->\n<!-- /gains -->\n"
    (tmp_path / "docs" / "paper-to-code.md").write_text(gains, encoding="utf-8")
    for learner in ("road", "others"):
        for name in ("solvers", "noisy", "zebra"):
            file = RowFile(tmp_path / learner / f"{name}.jsonl")
            for row in rows_of(name, 3 if learner == "road" else 2, learner, f"machine of {learner}"):
                file.append(row)
    return tmp_path


def test_figures_summary_and_block_from_the_rows_of_two_machines(repository):
    paper.main([repository / "road", repository / "others"], repository)
    target = repository / "docs" / "results"
    pictures = {f"{name}{theme}.png" for name in ("solvers", "noisy", "zebra") for theme in ("", "-dark")}
    assert {path.name for path in target.iterdir()} == {"README.md", "report.html", "rows", *pictures}
    text = (target / "README.md").read_text(encoding="utf-8")
    # On a log scale 0.01 is 0.394 of the way from 0.2 to 0.0001.
    assert "| Fig. 3: SNR 30 dB | 139 | 139 | more than 400 (BLOTLESS) | 2 |" in text
    assert "Of the paper's 6 claims: 6 tentative, from fewer than 5 trials." in text
    assert "- Fig. 1, iADMM stays near 0.01 after 10,000 iterations: tentative: not reproduced." in text
    assert "(3 trials of every method compared; fewer than 5, so it may change" in text
    assert "the paper's MOD, 26.7055 dB, equals its bicubic to four decimals" in text
    assert "the paper's K-SVD" not in text  # two trials do not tell
    assert "fewer than ROAD" not in text
    assert "| ROAD, ρ = 10 | 0.2 | 0.0001 | 0.0001 | 0.0001 | 3 |" in text
    assert "Trials: 3 trials of ROAD ρ = 10, ROAD our defaults; 2 of the others. 160 rows" in text
    assert "machine of road" in text
    assert "machine of others" in text
    assert f"commit {commit()}" in text
    readme = (repository / "README.md").read_text(encoding="utf-8")
    assert readme.startswith("before\n")
    assert readme.endswith("\nafter\n")
    assert block("results", readme) == block("results", text)
    assert block("success", readme) == ""  # the rows are of other experiments
    assert "old" not in readme
    paper.main([repository / "road", repository / "others"], repository)
    assert (repository / "README.md").read_text(encoding="utf-8") == readme


def test_methods_without_common_trials_have_no_number_of_samples():
    """As in one part of a run that machines share."""
    rows = [*rows_of("noisy", 3, "road", "m")]
    of_default = [row for row in rows if row["settings"]["method"]["name"] == "road-defaults"]
    apart = [row for row in of_default if row["settings"]["seed"] % 2 == row["settings"]["problem"]["n_samples"] % 3]
    kept = [row for row in rows if row not in of_default or row in apart]
    (line, *_) = paper.recovery_lines(kept)
    assert line[2] == "–"
    assert line[1] != "–"


def test_the_stored_rows_make_the_published_page(repository, roadict):
    paper.main([repository / "road", repository / "others"], repository)
    target = repository / "docs" / "results"
    stored = {row["key"]: row for row in read_folder(target / "rows")}
    given = read_folders([repository / "road", repository / "others"])
    assert stored == {row["key"]: row for row in given}
    assert roadict("report", target / "rows", "--out", repository / "again.html").code == 0
    assert (repository / "again.html").read_bytes() == (target / "report.html").read_bytes()
    before = {path.name: path.read_bytes() for path in (target / "rows").iterdir()}
    paper.main([target / "rows"], repository)  # the rows of the repository are enough to write all of it again
    assert {path.name: path.read_bytes() for path in (target / "rows").iterdir()} == before


def test_errors_below_the_scale_are_drawn_as_at_most(repository):
    rows = [*rows_of("noisy", 1, "road", "m"), *rows_of("noisy", 1, "others", "m")]
    for row in rows:
        row["result"]["error"] = 1e-9
    figure = paper.recovery_figure(EXPERIMENTS["noisy"], rows)
    figure.savefig(repository / "noisy.png")  # ticks are numbers of NumPy
    assert figure.axes[0].yaxis.get_major_formatter()(np.float64(1e-6), 0) == "≤ 1e-06"
    assert figure.axes[0].yaxis.get_major_formatter()(np.float64(1e-5), 0) == "1e-05"


def test_too_many_rows_for_the_repository_are_refused(repository, monkeypatch):
    monkeypatch.setattr(paper, "MAX_STORED", 1000)
    before = {path: path.read_bytes() for path in repository.rglob("*") if path.is_file()}
    with pytest.raises(ValueError, match=r"bytes compressed, and at most 1,000"):
        paper.main([repository / "road"], repository)
    assert {path: path.read_bytes() for path in repository.rglob("*") if path.is_file()} == before


def test_rows_of_a_gpu_and_of_a_cpu(repository):
    """ROAD again on a GPU, with more trials of one experiment: no trial counts twice, and engines are named."""
    file = RowFile(repository / "gpu" / "noisy.jsonl")
    for row in rows_of("noisy", 5, "road", "machine with a GPU", "cuda"):
        file.append(row)
    paper.main([repository / "road", repository / "gpu", repository / "others"], repository)
    text = (repository / "docs" / "results" / "README.md").read_text(encoding="utf-8")
    assert "| Fig. 3: SNR 30 dB | 139 | 139 | more than 400 (BLOTLESS) | 2 |" in text
    assert "| Fig. 1: Error against the number of samples | 139 | 139 | " in text
    assert "Trials: 5 trials of ROAD ρ = 10, ROAD our defaults; 2 of the others." in text
    assert "Engine of ROAD: cuda." in text
    assert "Engine of ROAD: auto." in text  # the other experiments
    assert "(2 trials of every method compared; fewer than 5, so it may change" in text


def test_a_readme_without_marks_is_refused(repository):
    (repository / "README.md").write_text("nothing", encoding="utf-8")
    with pytest.raises(ValueError, match=r"README.md: no place for the success"):
        paper.main([repository / "road"], repository)
    assert not (repository / "docs" / "results").exists()


def test_the_readme_agrees_with_the_committed_summary():
    readme, summary = ROOT / "README.md", ROOT / "docs" / "results" / "README.md"
    blocks = [block("results", path.read_text(encoding="utf-8")) for path in (readme, summary)]
    assert blocks[0].count("|") > 50
    assert blocks[0] == blocks[1]


def test_the_figures_of_the_committed_summary_exist():
    folder = ROOT / "docs" / "results"
    text = (folder / "README.md").read_text(encoding="utf-8")
    shown = re.findall(r"!\[.*?\]\((.*?)\)", text)
    assert [name for name in shown if name not in ("ablation.png", "success.png")] == [
        f"{e.name}.png" for e in EXPERIMENTS.values() if e.of_paper
    ]
    assert all((folder / name).is_file() for name in shown)


@pytest.fixture
def with_ablation(repository):
    """The same repository, with rows of the ablation: six trials."""
    for learner in ("road", "others"):
        file = RowFile(repository / learner / "ablation.jsonl")
        for row in rows_of("ablation", 6, learner, "any machine"):
            file.append(row)
    paper.main([repository / "road", repository / "others"], repository)
    return repository


def test_the_ablation_is_the_headline(with_ablation):
    readme = (with_ablation / "README.md").read_text(encoding="utf-8")
    head, _, rest = block("results", readme).partition("\n\n")
    assert head.startswith("Our own claim, that at equal CPU time ROAD finds more dictionaries than the others")
    assert "its finish too: holds in part. At 3 of 7 problems ROAD's defaults find the dictionary more often" in head
    assert "reproduced" not in head
    table, _, rest = rest.partition("\n\n")
    assert table.splitlines()[0] == (
        "|  | ROAD, our defaults | annealed Lasso | annealed Lasso with the finish | K-SVD | BLOTLESS | trials "
        "| ROAD, our defaults, in Fig. 2 |"
    )
    # Wilson's interval of all of six trials begins at 6 / (6 + 4), as two standard errors are counted.
    lines = table.splitlines()[2:]
    assert lines[0] == "| (16, 32, 3), N = 100 |" + " 0 % (0–40) |" * 5 + " 6 | – |"
    assert lines[3].startswith("| (16, 32, 3), N = 300 | 100 % (60–100) | 50 % (18–82) | 0 % (0–40) | 0 % ")
    assert len(lines) == 7
    assert rest.startswith("Of the paper's 6 claims: ")


def test_runs_of_fig_2_stand_beside_those_of_the_ablation(with_ablation):
    rows = paper.joined([with_ablation / "docs" / "results" / "rows"])
    words = paper.ablation_words([*rows, *rows_of("noise-free", 3, "road", "machine with a GPU", "cuda")])
    lines = words.splitlines()
    assert [line.rpartition(" | ")[2] for line in lines if line.startswith("| (16, 32, 3)")] == [
        *("0 % of 3 |", "– |", "100 % of 3 |", "100 % of 3 |")  # Fig. 2 has no N = 150
    ]
    assert "The last column has other runs of the defaults, those of Fig. 2, on a GPU, where" in words
    more = [row for row in rows if row["settings"]["seed"] < 70_002]
    again = [*rows_of("noise-free", 3, "road", "any machine")]
    words = paper.ablation_words([*more, *again])
    assert "The last column has other runs of the defaults, those of Fig. 2, on these seeds and more." in words
    assert "in the 3 trials of Fig. 2, on these seeds and more. [All" in paper.success_words([*more, *again], "")


def test_samples_needed_are_compared_on_the_same_seeds(repository):
    """A third trial of ROAD, in which it needs more, does not count beside two of the others."""
    rows = paper.joined([repository / "road", repository / "others"])
    before = paper.recovery_lines(rows)
    for row in rows:
        if row["settings"]["seed"] == 70_002:
            row["result"]["error"] = 0.2
    assert paper.recovery_lines(rows) == before
    assert any(line[1] == "139" for line in before)


def test_the_figure_of_success_is_written_and_shown(with_ablation):
    results = with_ablation / "docs" / "results"
    for name in ("success.png", "success-dark.png", "ablation.png", "ablation-dark.png"):
        assert (results / name).stat().st_size > 5000
    shown = block("success", (with_ablation / "README.md").read_text(encoding="utf-8"))
    assert shown.startswith("![Share of hidden dictionaries found")
    assert "](docs/results/success.png)" in shown
    assert "share of 6 trials that find them (error below 0.01)" in shown
    summary = (results / "README.md").read_text(encoding="utf-8")
    assert shown.replace("docs/results/", "") in summary
    assert summary.index("](success.png)") < summary.index("Our own claim")


def lines_of(figure):
    """Points of the lines of a figure by colour; lines of two points are intervals."""
    lines = [line for line in figure.axes[0].lines if line.get_marker() == "o"]
    bars = [line for line in figure.axes[0].lines if line.get_marker() != "o"]
    return {line.get_color(): (line, [bar for bar in bars if bar.get_color() == line.get_color()]) for line in lines}


def test_the_figure_of_success_has_the_shares_of_the_rows_with_their_intervals(with_ablation):
    figure = paper.success_figure(paper.joined([with_ablation / "docs" / "results" / "rows"]))
    found = [*lines_of(figure).values()]
    assert [[*line.get_ydata()] for line, _ in found] == [[0, 1, 1, 1], [0, 0, 0, 0.5], [0, 0, 0, 0]]
    for (line, bars), last in zip(found, [(0.6, 1), (0.18, 0.82), (0, 0.4)], strict=True):
        np.testing.assert_allclose(line.get_xdata(), [100, 150, 200, 300], atol=5)
        assert len(bars) == 4
        np.testing.assert_allclose(bars[-1].get_ydata(), last, atol=0.01)
        np.testing.assert_allclose(bars[-1].get_xdata(), [line.get_xdata()[-1]] * 2)
    names = [text.get_text() for text in figure.axes[0].texts]
    assert names == ["ROAD", "annealed Lasso\nwith restarts", "K-SVD\nwith restarts"]
    assert [text.xy[1] for text in figure.axes[0].texts] == pytest.approx([1, 0.5, 0])


def test_labels_of_lines_that_end_together_do_not_touch(with_ablation):
    rows = paper.joined([with_ablation / "docs" / "results" / "rows"])
    for row in rows:
        row["result"]["error"] = 0.0
    figure = paper.success_figure(rows)
    heights = [text.xy[1] for text in figure.axes[0].texts]
    assert max(np.diff(heights)) < -0.13  # labels have two lines; ROAD is on top
    assert heights[0] <= 1


def test_the_gains_of_the_additions_are_written(with_ablation):
    page = (with_ablation / "docs" / "paper-to-code.md").read_text(encoding="utf-8")
    assert page.startswith("Gains:\n")
    text = block("gains", page)
    assert "means over 7 problems, at least 6 trials of each" in text
    # Of 7 problems one has 100 samples. Without the finish half of the trials at 300, 350 and 400 succeed.
    assert "| the finish | 86 % | 21 % | +64 ± 11 | at 3 of 7 problems | 1.0 |" in text
    assert "| restarts | 86 % | 43 % | +43 ± 16 | at 0 of 7 problems | 1.0 |" in text
    assert "| the moving ρ | 86 % | 0 % | +86 ± 0 | at 6 of 7 problems | 1.0 |" in text


def test_few_trials_or_problems_are_not_judged(with_ablation):
    rows = paper.joined([with_ablation / "docs" / "results" / "rows"])
    few = [row for row in rows if row["settings"]["seed"] < 70_005]
    words = paper.ablation_words(few)
    assert ": too few rows. Fewer than 6 trials have rows of all methods: no lead can be told" in words
    assert "reproduced" not in words
    assert paper.gains_words(few) == ""
    one = [row for row in rows if row["settings"]["problem"].get("n_samples") in (100, 150)]
    assert (
        ": too few rows. No trial has rows of all methods at (16, 32, 3), N = 200, (16, 32, 3)"
        in paper.ablation_words(one)
    )
    assert paper.gains_words(one) == ""


def test_methods_are_compared_at_all_numbers_of_samples_of_the_plan():
    """A method with rows at one number alone, where it happens to succeed, is not the best of the others."""
    rows = [*rows_of("noisy", 3, "road", "m"), *rows_of("noisy", 3, "others", "m")]
    kept = []
    for row in rows:
        if row["settings"]["method"]["name"] == "ksvd":
            row["result"]["error"] = 0.0
        if row["settings"]["method"]["name"] != "ksvd" or row["settings"]["problem"]["n_samples"] == 100:
            kept.append(row)
    assert all("more than 400 (BLOTLESS)" in line for line in paper.recovery_lines(kept))


def test_claims_of_the_text_without_a_verdict_are_listed(repository):
    digits = [*rows_of("digits", 5, "road", "m"), *rows_of("digits", 5, "others", "m")]
    level = {"bicubic": 20.0, "ksvd-lasso": 21.0, "mod-lasso": 19.0, "blotless-lasso": 22.5}
    for row in digits:
        row["result"] = {"psnr": level.get(row["settings"]["method"]["name"], 18.0)}
    found = paper.failures(digits)
    assert (
        "Table I, Yang's approach: “only our algorithm can obtain higher resolution”: here BLOTLESS by 2.50 dB and "
        "K-SVD by 1.00 dB exceed bicubic, too, and in the paper's own table K-SVD and MOD do."
    ) in found
    assert any("“There is no parameter to tune in ROAD”: ρ = 10 is one" in line for line in found)
    assert any(
        line.endswith("of the 2 comparisons in Figs. 2 to 4 and the tables, none are reproduced.") for line in found
    )
    assert paper.failures([]) == ["Nowhere in these rows."]


WARNING = re.compile(r'<p class="warn code">.*?</p>\n?')


def test_the_committed_rows_make_the_committed_page():
    """Rows of older code are shown with a warning, which comes and goes with the code."""
    page = paper.make_report(read_folder(PUBLISHED), [PUBLISHED]).page
    committed = (PUBLISHED.parent / "report.html").read_text(encoding="utf-8")
    told = "run python benchmarks/paper.py docs/results/rows"
    assert WARNING.sub("", page) == WARNING.sub("", committed), told


def test_the_committed_rows_make_the_blocks_of_the_pages():
    rows = paper.joined([PUBLISHED])
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    told = "run python benchmarks/paper.py docs/results/rows"
    assert block("results", readme) == paper.headline(rows), told
    assert block("success", readme) == paper.success_words(rows, "docs/results/"), told
    page = (ROOT / "docs" / "paper-to-code.md").read_text(encoding="utf-8")
    assert block("gains", page) == paper.gains_words(rows), told
