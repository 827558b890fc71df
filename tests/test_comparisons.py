"""Benchmarks compare roadict with other packages on equal terms, and tables and charts show it."""

import importlib
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
