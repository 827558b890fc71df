"""Which rows count: every trial once, and none that is not what reproduce writes."""

import json

import pytest

from roadict.experiments.registry import EXPERIMENTS
from roadict.experiments.rows import read_folder
from roadict.experiments.runner import make_row
from roadict.experiments.selection import current, is_of_this_code
from roadict.experiments.trial import Finished


def rows_of(number, engine, value, name="noisy"):
    """Synthetic rows, as if from a file."""
    result = {"error": value, "error_greedy": value, "psnr": value, "trace": [[1, 0.5]]}
    rows = [make_row(Finished(trial, result, {"cpu": 1.0})) for trial in EXPERIMENTS[name].trials(number, engine)]
    return json.loads(json.dumps(rows))


def methods(rows, road):
    return [row for row in rows if row["settings"]["method"]["name"].startswith("road") == road]


def selected(rows):
    return current(rows, EXPERIMENTS.values())[0]


def test_road_on_a_gpu_and_the_others_on_a_cpu_are_one_experiment():
    gpu, cpu = methods(rows_of(5, "cuda", 0.1), road=True), methods(rows_of(2, "auto", 0.2), road=False)
    assert current([*gpu, *cpu], EXPERIMENTS.values()) == ([*gpu, *cpu], 0)


def test_a_trial_of_two_engines_counts_once_by_the_engine_with_more_rows():
    many, few = rows_of(5, "cuda", 0.1), methods(rows_of(2, "numba", 0.2), road=True)
    rows, left_out = current([*few, *many], EXPERIMENTS.values())
    assert (rows, left_out) == (many, len(few))


def test_an_engine_adds_the_trials_that_another_lacks():
    """iADMM on a CPU and eADMM on a GPU: both are ROAD, and neither may replace the other."""
    gpu = [row for row in rows_of(5, "cuda", 0.1, "solvers") if row["settings"]["method"]["name"] == "road-paper"]
    cpu = [row for row in rows_of(2, "auto", 0.2, "solvers") if row["settings"]["method"]["name"].startswith("iadmm")]
    assert len(selected([*gpu, *cpu])) == len(gpu) + len(cpu)
    later = [row for row in methods(rows_of(7, "auto", 0.3), road=True) if row["settings"]["seed"] >= 70_005]
    early = methods(rows_of(5, "cuda", 0.1), road=True)
    assert len(selected([*early, *later])) == len(early) + len(later)


def test_of_two_sets_of_pictures_the_one_with_more_rows_counts():
    rows = rows_of(2, "auto", 25.0, "zebra")
    other = json.loads(json.dumps(rows[:5]))
    for row in other:
        row["key"] += "x"
        row["settings"]["problem"]["digest"] = "other"
    assert current([*other, *rows], EXPERIMENTS.values()) == (rows, 5)


def test_other_rows_are_omitted():
    (row, *_) = rows_of(1, "auto", 0.1)
    strange = [
        {"key": "a"},
        {"key": "b", "settings": None},
        {"key": "c", "settings": {"sources": row["settings"]["sources"]}},
        {"key": "d", "settings": row["settings"] | {"problem": [1]}},
        row | {"key": "e", "settings": row["settings"] | {"sources": "other"}},
        {"key": "f", "settings": row["settings"] | {"experiment": ["noisy"]}},
    ]
    assert current([*strange, row], EXPERIMENTS.values()) == ([row], len(strange))


def made_by(rows, sources):
    """The same rows, as other code made them; None: as code did that recorded its version only."""
    own = {"roadict": "0.1.0"} if sources is None else {"sources": sources}
    rest = [{name: value for name, value in row["settings"].items() if name != "sources"} for row in rows]
    return [row | {"key": f"{sources}{row['key']}", "settings": s | own} for row, s in zip(rows, rest, strict=True)]


def test_rows_of_this_code_count_before_more_rows_of_other_code():
    many, few = made_by(rows_of(5, "auto", 0.1), "other"), rows_of(1, "auto", 0.2)
    assert current([*many, *few], EXPERIMENTS.values()) == (few, len(many))
    assert all(map(is_of_this_code, few))
    assert not any(map(is_of_this_code, many))


def test_rows_of_other_code_are_shown_if_there_are_no_others_but_never_mixed():
    many, few, old = (
        made_by(rows_of(3, "auto", 0.1), "a"),
        made_by(rows_of(2, "auto", 0.1), "b"),
        rows_of(1, "auto", 0.2),
    )
    old = made_by(old, None)
    assert current([*few, *old, *many], EXPERIMENTS.values()) == (many, len(few) + len(old))
    assert current(old, EXPERIMENTS.values()) == (old, 0)


def test_changed_code_of_road_leaves_the_rows_of_the_others():
    road, others = methods(rows_of(1, "auto", 0.1), road=True), methods(rows_of(3, "auto", 0.1), road=False)
    old = methods(made_by(rows_of(3, "auto", 0.1), "other"), road=True)
    assert current([*old, *others, *road], EXPERIMENTS.values()) == ([*others, *road], len(old))


@pytest.mark.parametrize(
    "change",
    [
        {"result": None},
        {"result": {}},
        {"result": {"error": float("nan"), "error_greedy": 0.1}},
        {"result": {"error": 0.1, "error_greedy": float("inf")}},
        {"result": {"error": 10**400, "error_greedy": 0.1}},
        {"result": {"error": "0.1", "error_greedy": 0.1}},
        {"result": {"error": True, "error_greedy": 0.1}},
        {"seconds": 3},
        {"versions": None},
        {"versions": {"numpy": [1]}},
        {"machine": {"name": "x"}},
        {"commit": 3},
        {"trials": "many"},
    ],
)
def test_a_damaged_row_of_the_current_plan_is_refused(change):
    (row, *_) = rows_of(1, "auto", 0.1)
    with pytest.raises(ValueError, match=rf"the row {row['key']} of noisy is not as roadict reproduce writes it"):
        selected([row | change])


@pytest.mark.parametrize("trace", [None, [], [[0, 0.1]], [[1]], [[1, None]], "ab"])
def test_a_damaged_trace_is_refused(trace):
    (row, *_) = rows_of(1, "auto", 0.1, "solvers")
    assert row["settings"]["problem"]["trace"]
    row["result"]["trace"] = trace
    with pytest.raises(ValueError, match="not as roadict reproduce writes it"):
        selected([row])


@pytest.mark.parametrize("line", ['{"key": 3}', '{"key": []}', "[" * 100_000, "\xff\xfe", "null", '{"keys": "a"}'])
def test_lines_that_are_no_rows_are_reported_by_number(tmp_path, line):
    (tmp_path / "noisy.jsonl").write_bytes(b'{"key": "a"}\n' + line.encode("latin-1") + b"\n")
    with pytest.raises(ValueError, match="line 2, is not a row"):
        read_folder(tmp_path)
