"""Progress events of a command for the program that started it."""

import json

import numpy as np
import pytest

from roadict import load
from roadict.cli.app import main
from roadict.progress import json_lines
from roadict.synthetic import planted


@pytest.fixture
def learn(tmp_path, monkeypatch, capsys):
    np.save(tmp_path / "data.npy", planted(100, 6, 8, sparsity=2, random_state=0).data)
    monkeypatch.chdir(tmp_path)

    def run(output, *options):
        arguments = ["learn", "data.npy", "-k", "8", "-o", output, "--seed", "0", "--max-iter", "60", *options]
        monkeypatch.setattr("sys.argv", ["roadict", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        assert not end.value.code
        return load(output), capsys.readouterr().err.splitlines()

    return run


def test_events_report_every_iteration_and_change_no_result(learn, monkeypatch):
    monkeypatch.setattr("roadict.progress.terminal.PAUSE", 0.0)
    learn("compiled.npz")  # the first run says that it compiles
    plain, others = learn("plain.npz")
    monkeypatch.setenv(json_lines.VARIABLE, "json")
    watched, lines = learn("watched.npz")
    np.testing.assert_array_equal(watched.components_, plain.components_)
    np.testing.assert_array_equal(watched.codes_, plain.codes_)
    events = [event for event in map(json_lines.read, lines) if event is not None]
    snapshots = [event["snapshot"] for event in events if "snapshot" in event]
    iterations = [snapshot["iteration"] for snapshot in snapshots]
    assert iterations[:60] == list(range(1, 61))
    assert all(np.isfinite(snapshot["objective"]) for snapshot in snapshots)
    names, starts = ("primal", "dual", "error"), {snapshot["start"] for snapshot in snapshots}
    reported = [
        [[snapshot["measures"][name] for name in names] for snapshot in snapshots if snapshot["start"] == start]
        for start in starts
    ]
    assert np.transpose([watched.history_[name] for name in names]).tolist() in reported
    drawn = [snapshot["atoms"] for snapshot in snapshots if "atoms" in snapshot]
    assert drawn[0].shape == (8, 6)
    assert np.linalg.norm(drawn[0], axis=1) == pytest.approx(1, abs=1e-5)
    last = [event["progress"] for event in events if "progress" in event][-1]
    assert (last["verb"], last["text"].split("  ")[0]) == ("learning", last["stage"])
    assert 0 < last["share"] <= 1
    assert "left" in last["left"] or last["left"] == "nearly done"  # by the speed of the machine
    # All other lines, meant for users, are the same with and without events.
    assert any(line.startswith("learning ") for line in others)
    assert [line for line in lines if json_lines.read(line) is None] == [
        line for line in others if not line.startswith("learning ")
    ]


def test_quiet_commands_write_no_events(learn, monkeypatch):
    monkeypatch.setenv(json_lines.VARIABLE, "json")
    _, lines = learn("model.npz", "-q")
    assert [line for line in lines if line.startswith("{")] == []


def test_atoms_survive_the_round_trip(capsys):
    class Snapshot:
        stage, start, iteration, max_iter, objective = "search", 1, 3, 9, 2.5
        residuals, error = {"primal": 0.25, "dual": np.nan}, 0.5
        dictionary = np.arange(6.0).reshape(2, 3)

    json_lines.SnapshotEvents()(Snapshot())
    line = capsys.readouterr().err
    assert json.loads(line)["snapshot"]["shape"] == [2, 3]
    assert json.loads(line)["snapshot"]["measures"] == {"primal": 0.25, "dual": None, "error": 0.5}
    assert np.array_equal(json_lines.read(line)["snapshot"]["atoms"], Snapshot.dictionary)
