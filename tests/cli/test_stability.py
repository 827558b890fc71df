"""``roadict learn --stability`` and what ``roadict show`` makes of it."""

import signal
from pathlib import Path

import numpy as np
import pytest

from program import assert_refused
from roadict import ROAD, atom_stability, load
from roadict import estimators as roadict_estimators
from roadict.progress import json_lines

from .small import DATA, SHORT, arrays

LEARN = ("learn", "data.npy", "-k", 8, "-o", "out.npz", *SHORT)


def test_learn_measures_it_as_the_library_does(roadict, folder):
    result = roadict(*LEARN, "--stability")
    assert result.code == 0, result.err
    model = ROAD(8, max_iter=500, tol=1e-2, random_state=0).fit(DATA)
    expected = atom_stability(model, DATA, random_state=0)
    np.testing.assert_allclose(load("out.npz").atom_stability_, expected, atol=1e-9)
    stable = int((expected >= 0.95).sum())
    assert result.out.splitlines()[1:] == [
        f"{stable} of 8 atoms are stable: they recur in halves of the data (0.95 or more)",
        "model: out.npz",
    ]
    roadict(*LEARN[:4], "-o", "without.npz", *SHORT)
    measured, plain = arrays("out.npz"), arrays("without.npz")
    assert measured.keys() - plain.keys() == {"atom_stability_"}
    np.testing.assert_array_equal(measured["components_"], plain["components_"])


def test_two_stage_methods_and_missing_entries(roadict, folder):
    holes = DATA.copy()
    holes[::7, 2] = np.nan
    np.save("holes.npy", holes)
    for data, options in (("data.npy", ("--method", "ksvd", "--tol", 0)), ("holes.npy", ("--missing", *SHORT))):
        result = roadict("learn", data, "-k", 8, "-o", "out.npz", *options, "--stability", "--quiet")
        assert result == (0, "", "")
        assert load("out.npz").atom_stability_.shape == (8,)


def test_it_reports_progress(roadict, folder, monkeypatch):
    monkeypatch.setenv(json_lines.VARIABLE, "json")
    events = [json_lines.read(line) for line in roadict(*LEARN, "--stability").err.splitlines()]
    texts = [event["progress"]["text"] for event in events if event and "progress" in event]
    verbs = [event["progress"]["verb"] for event in events if event and "progress" in event]
    assert list(dict.fromkeys(verbs)) == ["learning", "checking stability"]
    assert any(text.startswith("half 1 of 4") for text in texts)


def test_data_and_processes_for_which_there_is_none_are_refused_first(roadict, folder, monkeypatch):
    np.save("few.npy", DATA[:9])
    arguments = ("-k", 8, "-o", "none.npz", "--stability")
    assert_refused(roadict("learn", "few.npy", *arguments), "nonzero entries in 9 samples")
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.setenv(name, "1")
    assert_refused(roadict("learn", "data.npy", *arguments), "--stability runs in one process; start learn without")
    assert not Path("none.npz").exists()


@pytest.mark.parametrize("checkpoint", [(), ("--checkpoint", "checkpoints")])
def test_interrupted_it_leaves_the_model(roadict, folder, monkeypatch, checkpoint):
    def interrupted(model, X, *, random_state, progress):
        signal.raise_signal(signal.SIGINT)
        progress(1, 2, "half 1 of 4")

    monkeypatch.setattr(roadict_estimators, "atom_stability", interrupted)
    result = roadict(*LEARN, "--stability", *checkpoint)
    assert result.code == 130
    assert result.out == ""
    last = result.err.splitlines()[-1]
    assert "interrupted; out.npz was written without the stability of its atoms" in last
    assert last.endswith("continue with --resume") == bool(checkpoint)
    assert not hasattr(load("out.npz"), "atom_stability_")
    if checkpoint:
        monkeypatch.undo()
        monkeypatch.chdir(folder)
        result = roadict(*LEARN, "--stability", *checkpoint, "--resume")
        assert result.code == 0, result.err
        assert load("out.npz").atom_stability_.shape == (8,)


def test_show_orders_atoms_by_it_and_marks_those_not_to_be_trusted(roadict, folder):
    model = load("model.npz")
    roadict("show", "model.npz", "-o", "without.svg")
    model.atom_stability_ = np.array([0.99, 0.2, 0.95, 0.949, 1.0, 0.5, 0.97, 0.0])
    model.save("marked.npz")
    result = roadict("show", "marked.npz", "-o", "atoms.svg")
    assert result.code == 0, result.err
    head, *rows, summary, last = result.out.splitlines()
    assert head.split() == ["atom", "stability", "usage"]
    assert [int(row.split()[0]) for row in rows] == [5, 1, 7, 3, 4, 6, 2, 8]  # as in the studio, from 1
    assert [row.endswith("not to be trusted") for row in rows] == [False] * 4 + [True] * 4
    assert summary.startswith("4 of 8 atoms are stable")
    assert last == "atoms: atoms.svg"
    red = "stroke: #b3151b"
    assert red in Path("atoms.svg").read_text()
    assert red not in Path("without.svg").read_text()
    assert roadict("show", "marked.npz", "-o", "atoms.svg", "--quiet") == (0, "", "")
