"""Benchmarks compare roadict with other packages on equal terms, and tables and charts show it."""

import importlib
import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def module(monkeypatch):
    """Import a module of benchmarks or docs by its name; some set the threads of BLAS."""
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.setenv(name, "1")
    for folder in ("benchmarks", "docs"):
        monkeypatch.syspath_prepend(ROOT / folder)
    return importlib.import_module


def test_coders_are_compared_on_the_same_number_of_threads(module, monkeypatch):
    coders = module("coders")
    used = {"ours": [], "theirs": []}

    def record(whose, function):
        def coder(*arguments, n_jobs, **settings):
            used[whose].append(n_jobs)
            return function(*arguments, n_jobs=1, **settings)

        return coder

    monkeypatch.setattr(coders, "encode", record("ours", coders.encode))
    monkeypatch.setattr(coders, "sparse_encode", record("theirs", coders.sparse_encode))
    monkeypatch.setattr(coders.joblib, "cpu_count", lambda: 3)
    truth = coders.planted(30, 12, 20, sparsity=2, snr_db=20, random_state=0)
    lines = coders.against_scikit_learn(truth.data, truth.dictionary).splitlines()
    assert used["ours"] == used["theirs"]
    assert {*used["ours"]} == {1, 3}
    threads = [line.split(" | ")[1] for line in lines[2:]]
    assert threads == ["1", "3"] * (1 + len(coders.ALPHAS))
    assert lines[0].split(" | ")[1] == "threads"
    for line in lines[4:]:
        mine, theirs = line.split("objective ")[1].rstrip("| ").split(" and ")
        np.testing.assert_allclose(float(mine), float(theirs), rtol=1e-6)


class Starts:
    """A learner whose starts have given objectives and take a second each; its atoms are the number of the start."""

    def __init__(self, objectives, monkeypatch, worker):
        self.objectives, self.seeds = objectives, []
        monkeypatch.setattr(worker.time, "process_time", lambda: float(len(self.seeds)))

    def __call__(self, seed):
        self.seeds.append(seed)
        number = len(self.seeds) - 1
        objective = self.objectives[number]
        return np.full((2, 3), number if objective is not None else np.nan), objective if objective is not None else 0.0


def test_a_peer_starts_until_its_time_is_spent_and_keeps_its_lowest_objective(module, monkeypatch):
    worker = module("peers_worker")
    learn = Starts([5.0, 2.0, None, 3.0, 1.0], monkeypatch, worker)
    found = worker.fit(learn, 50_000, 3.5)
    assert found["starts"] == len({*learn.seeds}) == 4
    assert found["seconds"] == 4.0
    assert (found["atoms"] == 1).all()  # neither the one that failed nor the fifth, for which there was no time
    assert (found["first"] == 0).all()
    assert found["first_seconds"] == 1.0


def test_without_a_budget_a_peer_has_one_start(module, monkeypatch):
    worker = module("peers_worker")
    found = worker.fit(Starts([5.0, 2.0], monkeypatch, worker), 50_000, 0.0)
    assert (found["starts"], found["seconds"]) == (1, 1.0)
    assert (found["atoms"] == found["first"]).all()


def test_starts_of_one_seed_and_of_two_differ(module, monkeypatch):
    worker = module("peers_worker")
    first = Starts([1.0] * 9, monkeypatch, worker)
    worker.fit(first, 50_000, 8.5)
    second = Starts([1.0] * 9, monkeypatch, worker)
    worker.fit(second, 50_001, 8.5)
    assert len({*first.seeds, *second.seeds}) == 18
    data = np.random.default_rng(0).standard_normal((30, 5))
    assert not np.array_equal(*(worker.samples(data, 6, seed) for seed in first.seeds[:2]))


def test_a_worker_returns_fits_by_weight_and_seed(module, tmp_path):
    from sklearn.decomposition import sparse_encode

    worker, peers = module("peers_worker"), module("peers")
    truths = peers.draw((6, 8, 2, 60), [90_000, 90_001])
    given = {"seeds": [90_000, 90_001], "budgets": [0.0, 0.0], "iterations": [5, 5, 5], "weights": [0.01, 0.1, 0.1]}
    data = {f"data_{i}": truth.data for i, truth in enumerate(truths)}
    np.savez(tmp_path / "problems.npz", n_components=8, sparsity=2, enough=np.inf, **given, **data)
    worker.main("scikit-learn", tmp_path / "problems.npz", tmp_path / "results.npz")
    with np.load(tmp_path / "results.npz") as results:
        atoms, starts = results["atoms"], results["starts"]
    assert atoms.shape == (3, 2, 8, 6)
    assert (starts == 1).all()
    np.testing.assert_array_equal(atoms[1], atoms[2])
    assert not np.allclose(atoms[0], atoms[1])
    # What a restart is chosen by is the Lasso's objective, with codes of an independent solver.
    found, objective = worker.sklearn(truths[0].data, 8, 2, 0, 100, 0.1)
    codes = sparse_encode(truths[0].data, found, algorithm="lasso_lars", alpha=0.1)
    expected = ((truths[0].data - codes @ found) ** 2).sum() / 2 + 0.1 * np.abs(codes).sum()
    np.testing.assert_allclose(objective, expected, rtol=1e-3)


PROBLEM = (6, 8, 2, 60)


def test_a_weight_is_tuned_on_seeds_that_are_not_reported(module, monkeypatch):
    peers = module("peers")
    truths = peers.draw(PROBLEM, peers.TUNING_SEEDS)
    used = []

    def run_peer(name, drawn, problem, seeds, iterations, weights, **options):
        used.extend(seeds)
        np.testing.assert_array_equal(drawn[0].data, truths[0].data)
        noise = np.random.default_rng(0).standard_normal((8, 6))
        spread = [0.5, 0.4, 0.3, 0.0, 0.3, 0.4]
        return {"atoms": [[truth.dictionary + each * noise for truth in drawn] for each in spread]}

    monkeypatch.setattr(peers, "run_peer", run_peer)
    assert peers.tuned_weight("spams", PROBLEM, 300) == peers.WEIGHTS["spams"][3]
    assert peers.tuned_weight("dictlearn", PROBLEM, 300) is None
    assert min(used) >= 90_000
    assert peers.FIRST_SEED + 1000 < 90_000


def test_peers_get_the_cpu_seconds_that_road_took_on_the_same_samples(module, monkeypatch):
    peers = module("peers")
    seconds, given = np.array([1.5, 4.0]), []

    def run_road(truths, n_components, seeds, **settings):
        atoms = [truth.dictionary for truth in truths]
        return atoms, seconds / (2 if settings else 1)

    def run_peer(name, truths, problem, seeds, iterations, weights, *, budgets):
        given.append((name, weights, [*budgets]))
        atoms, wrong = ([truth.dictionary[::sign] for truth in truths] for sign in (1, -1))
        first = [found + 0.3 for found in wrong]
        return {"atoms": [atoms], "seconds": [seconds + 1], "starts": np.array([[3, 4]]), "version": "1.0"} | {
            "first": [first],
            "first_seconds": [seconds / 10],
        }

    for name, function in (("run_road", run_road), ("run_peer", run_peer), ("compile_road", lambda: None)):
        monkeypatch.setattr(peers, name, function)
    monkeypatch.setattr(peers, "tuned_weight", lambda name, *more: None if name == "dictlearn" else 0.02)
    rows, versions = peers.measure(PROBLEM, 2)
    assert [name for name, _, _ in given] == [*versions] == [*peers.NAMES]
    assert all(budgets == [1.5, 4.0] for _, _, budgets in given)
    names = [row[2].rsplit(", ", 1)[-1] for row in rows]
    assert names == ["defaults**", "one start", *["one start", "equal CPU"] * 4]
    one, several = rows[2:4]
    assert (one[3:5], several[3:5]) == (["0.02", "1"], ["0.02", "3.5"])
    assert float(one[5]) > 0.001 > float(several[5])
    assert (one[-1], several[-1]) == ("0.28", "3.75")


def test_an_interrupted_comparison_continues(module, monkeypatch, tmp_path):
    peers = module("peers")
    calls = []
    monkeypatch.setattr(peers, "KEPT", tmp_path / "kept")
    monkeypatch.setattr(peers, "measure", lambda *case: calls.append(case) or ([["a", 1]], {"spams": "1.0"}))
    first = peers.measured(PROBLEM, 3, "code")
    assert peers.measured(PROBLEM, 3, "code") == first
    assert len(calls) == 1
    for other in ((PROBLEM, 4, "code"), (PROBLEM, 3, "changed"), ((6, 8, 2, 70), 3, "code")):
        peers.measured(*other)
    assert len(calls) == 4


HEADER = "| (M, K, S) | N | method | mean error | atoms recovered | CPU seconds |\n|---|---|---|---|---|---|\n"


def test_tables_and_charts_show_the_peers_at_equal_cpu_time(module, monkeypatch, tmp_path):
    charts, peers_table = module("charts"), module("peers_table")
    lines = "| (16, 32, 3) | 200 | **ROAD, defaults** | 0.00001 | 1.000 | 1.00 |\n"
    lines += "| (16, 32, 3) | 200 | ROAD, one start | 0.00002 | 0.999 | 0.50 |\n"
    for number, name in enumerate([*peers_table.ABILITIES][1:], 1):
        lines += f"| (16, 32, 3) | 200 | {name}, l1, one start | 0.4{number}000 | 0.4{number} | 0.1{number} |\n"
        lines += f"| (16, 32, 3) | 200 | {name}, l1, equal CPU | 0.2{number}000 | 0.7{number} | 1.1{number} |\n"
    (tmp_path / "RESULTS.md").write_text(f"# Measured\n\n## ROAD beside its peers\n\n{HEADER}{lines}\n")
    monkeypatch.setattr(charts, "RESULTS", tmp_path / "RESULTS.md")
    shown = [line.split(" | ")[1:3] for line in peers_table.table().splitlines()[2:]]
    assert shown == [["0.00001", "1.00"], *([f"0.2{i}000", f"1.1{i}"] for i in range(1, 5))]
    [chart] = charts.peers()
    for value, name in (("1", "ROAD"), ("0.71", "scikit-learn"), ("0.74", "dictlearn")):
        assert f">{value}  {name}<" in chart
    assert "0.41" not in chart
    assert "0.999" not in chart


def test_the_chart_of_the_coders_names_the_threads(module, monkeypatch, tmp_path):
    charts = module("charts")
    header = "| coder | threads | roadict | scikit-learn |\n|---|---|---|---|\n"
    lines = "| OMP | 1 | 0.5 s | 3.0 s |\n| OMP | 2 | 0.3 s | 2.0 s |\n"
    (tmp_path / "RESULTS.md").write_text(f"# Measured\n\n## Coders\n\n{header}{lines}\n")
    monkeypatch.setattr(charts, "RESULTS", tmp_path / "RESULTS.md")
    [chart] = charts.coders()
    at = [
        chart.index(text) for text in (">OMP, 1 thread<", ">0.5 s  roadict<", ">OMP, 2 threads<", ">2 s  scikit-learn<")
    ]
    assert at == sorted(at)


def test_the_chart_of_growth_draws_every_time_at_its_height(module, monkeypatch, tmp_path):
    """On a log scale: 4 and 16 ms are as far apart as 16 and 64 ms."""
    charts = module("charts")
    times = {("64", "8000"): 4.0, ("64", "32000"): 16.0, ("512", "8000"): 64.0}
    lines = "".join(f"| {k} | {n} | {time} ms | 0.4 ns |\n" for (k, n), time in times.items())
    header = "| K | N | one iteration | per entry of the state |\n|---|---|---|---|\n"
    text = f"# Measured\n\n## Growth with N and K (M = 34, float32)\n\n{header}{lines}\n"
    (tmp_path / "RESULTS.md").write_text(text)
    monkeypatch.setattr(charts, "RESULTS", tmp_path / "RESULTS.md")
    heights = [[float(at) for at in re.findall(r'cy="([\d.]+)"', chart)] for chart in charts.growth()]
    (four, sixteen), (again, sixty_four) = heights
    assert four == again
    assert four - sixteen == pytest.approx(sixteen - sixty_four, abs=0.1)
    assert four - sixteen > 50


def test_a_learner_without_any_value_is_left_out_of_a_chart(module):
    charts = module("charts")
    found = [{"learner": "ROAD", "1 s": "0.5", "2 s": "1.0"}, {"learner": "SPAMS", "1 s": "", "2 s": ""}]
    chart = charts.over_time(found, "atoms", "share")
    assert ">ROAD<" in chart
    assert "SPAMS" not in chart
