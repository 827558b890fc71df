"""What benchmarks/paper.py writes into docs and README comes from the rows, and the committed files agree."""

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
BLOCK = re.compile(re.escape(paper.BEGIN) + r"\n(.*?)\n?" + re.escape(paper.END), re.DOTALL)


def rows_of(name, number, learner, machine, engine="auto"):
    """Synthetic rows of ROAD or of the others."""
    rng = np.random.default_rng(len(name) + number)
    for trial in EXPERIMENTS[name].trials(number, engine):
        if trial.method.is_road == (learner == "road"):
            if EXPERIMENTS[name].pictures:
                result = {"psnr": 28.3 if trial.method.name == "ksvd-omp" else 25 + float(rng.random())}
            else:
                # ROAD needs 200 samples, the others never have enough.
                enough = learner == "road" and trial.problem.n_samples >= 200
                result = {"error": 1e-4 if enough else 0.2, "error_greedy": 0.3, "trace": [[1, 0.5], [100, 0.2]]}
            row = make_row(Finished(trial, result, {"wall": 2.0, "cpu": 1.0}))
            settings = row["settings"]
            if name == "zebra":
                settings["problem"] |= {"source": "the paper's own pictures", "digest": "d"}
            yield row | {"machine": machine}


@pytest.fixture
def repository(tmp_path):
    """A repository with a README, and rows of ROAD and of the others that two machines made."""
    (tmp_path / "README.md").write_text(f"before\n{paper.BEGIN}\nold\n{paper.END}\nafter\n", encoding="utf-8")
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
    assert "| Fig. 3: SNR 30 dB | 139 | 139 | more than 400 (BLOTLESS) | 3 / 3 / 2 |" in text
    assert "Of the paper's 6 claims: 6 tentative, from fewer than 5 trials." in text
    assert "- Fig. 1, iADMM stays near 0.01 after 10,000 iterations: tentative: not reproduced." in text
    assert "(3 trials of every method compared; fewer than 5, so it may change" in text
    assert "the paper's MOD, 26.7055 dB, equals its bicubic to four decimals" in text
    assert "the paper's K-SVD, 27.87 dB, is 0.43 dB under a plain one with OMP, 28.30 dB over 2 trials" in text
    assert "| ROAD, ρ = 10 | 0.2 | 0.0001 | 0.0001 | 0.0001 | 3 |" in text
    assert "Trials: 3 trials of ROAD ρ = 10, ROAD our defaults; 2 of the others. 160 rows" in text
    assert "machine of road" in text
    assert "machine of others" in text
    assert f"commit {commit()}" in text
    readme = (repository / "README.md").read_text(encoding="utf-8")
    assert readme.startswith("before\n")
    assert readme.endswith("\nafter\n")
    assert BLOCK.search(readme)[1] == BLOCK.search(text)[1]
    assert "old" not in readme
    paper.main([repository / "road", repository / "others"], repository)
    assert (repository / "README.md").read_text(encoding="utf-8") == readme


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


def test_too_many_rows_for_the_repository_are_refused(repository, monkeypatch):
    monkeypatch.setattr(paper, "MAX_STORED", 1000)
    with pytest.raises(ValueError, match=r"bytes compressed, and at most 1,000"):
        paper.main([repository / "road"], repository)


def test_rows_of_a_gpu_and_of_a_cpu(repository):
    """ROAD again on a GPU, with more trials of one experiment: no trial counts twice, and engines are named."""
    file = RowFile(repository / "gpu" / "noisy.jsonl")
    for row in rows_of("noisy", 5, "road", "machine with a GPU", "cuda"):
        file.append(row)
    paper.main([repository / "road", repository / "gpu", repository / "others"], repository)
    text = (repository / "docs" / "results" / "README.md").read_text(encoding="utf-8")
    assert "| Fig. 3: SNR 30 dB | 139 | 139 | more than 400 (BLOTLESS) | 5 / 5 / 2 |" in text
    assert "| Fig. 1: Error against the number of samples | 139 | 139 | " in text
    assert "Trials: 5 trials of ROAD ρ = 10, ROAD our defaults; 2 of the others." in text
    assert "Engine of ROAD: cuda." in text
    assert "Engine of ROAD: auto." in text  # the other experiments
    assert "(2 trials of every method compared; fewer than 5, so it may change" in text


def test_a_readme_without_marks_is_refused(repository):
    (repository / "README.md").write_text("nothing", encoding="utf-8")
    with pytest.raises(ValueError, match="no place for the results"):
        paper.main([repository / "road"], repository)


def test_the_readme_agrees_with_the_committed_summary():
    readme, summary = ROOT / "README.md", ROOT / "docs" / "results" / "README.md"
    blocks = [BLOCK.search(path.read_text(encoding="utf-8"))[1] for path in (readme, summary)]
    assert blocks[0].count("|") > 50
    assert blocks[0] == blocks[1]


def test_the_figures_of_the_committed_summary_exist():
    folder = ROOT / "docs" / "results"
    text = (folder / "README.md").read_text(encoding="utf-8")
    shown = re.findall(r"!\[.*?\]\((.*?)\)", text)
    assert [name for name in shown if name != "ablation.png"] == [
        f"{e.name}.png" for e in EXPERIMENTS.values() if e.of_paper
    ]
    assert all((folder / name).is_file() for name in shown)
