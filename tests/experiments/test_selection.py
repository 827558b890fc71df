"""Which rows count: every trial once, and none that is not what reproduce writes."""

import gzip
import hashlib
import json
import re
from pathlib import Path

import pytest

from roadict.experiments.registry import EXPERIMENTS
from roadict.experiments.rows import RowFile, naming_lines, pack, read_folder, read_folders
from roadict.experiments.runner import make_row
from roadict.experiments.selection import MAX_TRIALS, current, is_of_this_code
from roadict.experiments.trial import Finished

PUBLISHED = Path(__file__).resolve().parents[2] / "docs" / "results" / "rows"


def rows_of(number, engine, value, name="noisy"):
    """Synthetic rows, as if from a file."""
    result = {"error": value, "error_greedy": value, "psnr": value, "trace": [[1, 0.5]]}
    rows = [make_row(Finished(trial, result, {"cpu": 1.0})) for trial in EXPERIMENTS[name].trials(number, engine)]
    return json.loads(json.dumps(rows))


def write(path, rows):
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")


def key_of(settings):
    """As a plan computes it, but of any settings."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:20]


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
    ("change", "problem"),
    [
        ({"result": None}, "result.error is missing, must be a number from 0 to 1"),
        ({"result": {}}, "result.error is missing, must be a number from 0 to 1"),
        ({"result": {"error": 0.1}}, "result.error_greedy is missing, must be a number from 0 to 1"),
        ({"result": {"error": float("nan"), "error_greedy": 0.1}}, "result.error is NaN, must be"),
        ({"result": {"error": 0.1, "error_greedy": float("inf")}}, "result.error_greedy is Infinity, must be"),
        ({"result": {"error": 10**400, "error_greedy": 0.1}}, f"result.error is 1{'0' * 39}..., must be"),
        ({"result": {"error": "0.1", "error_greedy": 0.1}}, 'result.error is "0.1", must be'),
        ({"result": {"error": True, "error_greedy": 0.1}}, "result.error is true, must be"),
        ({"result": {"error": -0.5, "error_greedy": 0.1}}, "result.error is -0.5, must be a number from 0 to 1"),
        ({"result": {"error": 0.1, "error_greedy": 5.0}}, "result.error_greedy is 5.0, must be a number from 0 to 1"),
        ({"seconds": 3}, "seconds.cpu is missing, must be a number from 0 to 1,000,000"),
        ({"seconds": {"cpu": -1}}, "seconds.cpu is -1, must be a number from 0 to 1,000,000"),
        ({"versions": None}, "versions is null, must be names of packages with their versions as text"),
        ({"versions": {"numpy": [1]}}, 'versions is {"numpy": [1]}, must be'),
        ({"machine": {"name": "x"}}, 'machine is {"name": "x"}, must be text'),
        ({"commit": 3}, "commit is 3, must be text"),
        ({"trials": "many"}, f'trials is "many", must be a whole number from 1 to {MAX_TRIALS:,}'),
        ({"trials": 0}, "trials is 0, must be"),
        ({"trials": MAX_TRIALS + 1}, f"trials is {MAX_TRIALS + 1}, must be"),
    ],
)
def test_a_damaged_row_of_the_current_plan_is_refused(change, problem):
    (row, *_) = rows_of(1, "auto", 0.1)
    with pytest.raises(ValueError, match=f"^row {row['key']} of noisy: ") as refused:
        selected([row | change])
    assert problem in str(refused.value)
    assert str(refused.value).endswith("; remove it and run reproduce again")


@pytest.mark.parametrize(
    ("trace", "problem"),
    [
        (None, "result.trace is null, must be a list of points"),
        ([], "result.trace is [], must be a list of points"),
        ("ab", 'result.trace is "ab", must be a list of points'),
        ([[1, 0.5], [0, 0.1]], "result.trace[1] is [0, 0.1], must be [iteration, error], a whole number from 1 on and"),
        ([[1]], "result.trace[0] is [1], must be"),
        ([[1, None]], "result.trace[0] is [1, null], must be"),
        ([[1, 1.5]], "result.trace[0] is [1, 1.5], must be"),
        ([[1.5, 0.5]], "result.trace[0] is [1.5, 0.5], must be"),
    ],
)
def test_a_damaged_trace_is_refused(trace, problem):
    (row, *_) = rows_of(1, "auto", 0.1, "solvers")
    assert row["settings"]["problem"]["trace"]
    row["result"]["trace"] = trace
    with pytest.raises(ValueError, match="of solvers: ") as refused:
        selected([row])
    assert problem in str(refused.value)


def test_an_impossible_psnr_is_refused():
    (row, *_) = rows_of(1, "auto", 25.0, "zebra")
    row["result"]["psnr"] = 1e5
    with pytest.raises(ValueError, match=r"result\.psnr is 100000\.0, must be a number from -1,000 to 1,000"):
        selected([row])


def test_the_values_at_the_bounds_are_allowed():
    (row, *_) = rows_of(1, "auto", 0.1)
    for error in (0, 1, 0.0, 1.0):
        own = row | {"result": {"error": error, "error_greedy": 1.0}, "seconds": {"cpu": 0}, "trials": MAX_TRIALS}
        assert selected([own]) == [own]


def test_no_published_row_is_refused():
    rows = read_folder(PUBLISHED)
    assert len(rows) > 40_000
    assert selected(rows)


@pytest.mark.parametrize("packed", [False, True])
def test_a_refused_row_is_named_by_its_file_and_line(tmp_path, packed):
    """In the folder and the line that count: the first folder with its key, and the last of its lines there."""
    good, bad = rows_of(1, "auto", 0.1)[:2]
    broken = bad | {"result": {"error": 5.0, "error_greedy": 5.0}}
    folders = [tmp_path / name for name in ("1", "2", "3")]
    name = "noisy.jsonl.gz" if packed else "noisy.jsonl"
    for folder, rows in zip(folders, ([good], [good, bad, broken], [bad]), strict=True):
        folder.mkdir()
        (folder / name).write_bytes(pack(rows) if packed else "".join(f"{json.dumps(row)}\n" for row in rows).encode())
    with pytest.raises(ValueError, match="result") as refused, naming_lines(folders):
        selected(read_folders(folders))
    remedy = "copy the file again" if packed else "remove that line and run reproduce again"
    problem = "result.error is 5.0, must be a number from 0 to 1"
    assert str(refused.value) == f"{folders[1] / name}, line 3: {problem}; {remedy}"


def test_the_command_names_the_line_of_a_damaged_row(roadict, tmp_path):
    rows = rows_of(1, "auto", 0.1)
    rows[3] |= {"seconds": {"cpu": -1}}
    write(tmp_path / "noisy.jsonl", rows)
    code, out, err = roadict("report", tmp_path)
    problem = "seconds.cpu is -1, must be a number from 0 to 1,000,000; remove that line and run reproduce again"
    assert (code, out, err) == (2, "", f"roadict: error: {tmp_path / 'noisy.jsonl'}, line 4: {problem}\n")


def test_the_command_says_how_many_rows_it_leaves_out(roadict, tmp_path):
    rows = rows_of(1, "auto", 0.1)
    settings = [rows[0]["settings"] | change for change in ({"panel": "x"}, {"sources": "x"}, {"engine": "reference"})]
    strange = [
        {"key": "x"},
        {"key": "y", "settings": [1]},
        *(rows[0] | {"key": key_of(s), "settings": s} for s in settings),
    ]
    why = "of other settings, code or pictures, or of trials that another engine repeated\n"
    for number, words in ((0, None), (1, "rows is not shown: it is"), (5, "rows are not shown: they are")):
        write(tmp_path / "noisy.jsonl", [*rows, *strange[:number]])
        code, _, err = roadict("report", tmp_path)
        assert (code, err) == (0, f"{number} of {len(rows) + number} {words} {why}" if number else "")
    assert roadict("report", tmp_path, "--quiet").err == ""


@pytest.mark.parametrize("change", [{"seed": 70_001}, {"sources": "other"}, {"engine": 3}])
def test_a_key_that_is_not_the_digest_of_the_settings_is_refused(tmp_path, change):
    """Whatever plan and code a row is of."""
    row = rows_of(1, "auto", 0.1)[0]
    other = row | {"settings": row["settings"] | change}
    write(tmp_path / "noisy.jsonl", [row, other])
    with pytest.raises(
        ValueError, match=r'noisy\.jsonl, line 2: key is "\w{20}", must be "\w{20}", the digest of'
    ) as it:
        read_folder(tmp_path)
    assert f'key is "{row["key"]}"' in str(it.value)
    with pytest.raises(ValueError, match=re.escape(str(it.value))):
        RowFile(tmp_path / "noisy.jsonl")  # as reproduce would take it for a finished trial


@pytest.mark.parametrize("line", ['{"key": 3}', '{"key": []}', "[" * 100_000, "null", '{"keys": "a"}'])
def test_lines_that_are_no_rows_are_reported_by_number(tmp_path, line):
    (tmp_path / "noisy.jsonl").write_bytes(b'{"key": "a"}\n' + line.encode("latin-1") + b"\n")
    with pytest.raises(ValueError, match="line 2, is not a row"):
        read_folder(tmp_path)


ROWS = '{"key": "a", "of": "ä"}\n{"key": "b"}'


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"key": "a"}', "is one line without a newline at its end, so it is incomplete"),
        (b'{"key": "\xc3', "is one line without a newline at its end, so it is incomplete"),  # within a letter
        (ROWS.replace("\n", " ").encode(), "is one line without a newline at its end, so it is incomplete"),
        (ROWS.encode("utf-16"), ", line 1, is not UTF-8 text; save the file as UTF-8"),
        ('{"key": "a"}'.encode("utf-16"), ", line 1, is not UTF-8 text; save the file as UTF-8"),
        (ROWS.encode("latin-1"), ", line 1, is not UTF-8 text; save the file as UTF-8"),
    ],
)
def test_a_file_without_any_row_is_reported(tmp_path, content, message, packed):
    name = "noisy.jsonl.gz" if packed else "noisy.jsonl"
    (tmp_path / name).write_bytes(gzip.compress(content) if packed else content)
    with pytest.raises(ValueError, match=re.escape(f"{tmp_path / name}{'' if message[0] == ',' else ' '}{message}")):
        read_folder(tmp_path)


@pytest.mark.parametrize("last", ["", "\n", '\n{"key": "b', '\n{"key": "ä'.encode()[:-1].decode("latin-1")])
def test_an_incomplete_last_line_after_others_is_skipped(tmp_path, last):
    (tmp_path / "noisy.jsonl").write_bytes('\ufeff{"key": "a"}\n'.encode() + last.encode("latin-1"))
    assert read_folder(tmp_path) == [{"key": "a"}]
