"""Ctrl-C ends a run and keeps the best so far; a second one, or one before the first iteration, leaves nothing."""

import os
import signal
import subprocess
import threading
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from program import GUARD, PROGRAM, contents, stop_in_the_middle
from roadict import ROAD, AlternatingDictionaryLearning, load
from roadict.metrics import dictionary_error, psnr
from roadict.road import number
from roadict.runs.result import Fit
from roadict.runs.signals import kept_at_interrupt, stop_requested
from roadict.synthetic import planted
from roadict.wording import plural

from .small import SHORT

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")

NOISY = planted(600, 12, 16, sparsity=2, snr_db=25, random_state=0)
FEW = planted(300, 12, 16, sparsity=2, snr_db=25, random_state=0)
MANY = planted(1500, 8, 8, sparsity=2, snr_db=20, random_state=0)
HOLES = NOISY._replace(data=np.where(np.random.default_rng(0).random((600, 12)) < 0.03, np.nan, NOISY.data))
EXACT = planted(1500, 8, 8, sparsity=2, random_state=0)
KEPT = "roadict: error: interrupted: the best so far is in out.npz"
NOTHING = "roadict: error: interrupted; nothing was written"
ENDLESS = ("-k", "8", "--tol", "0", "--max-iter", "100000000", "--rho", "10")


@pytest.fixture
def press(monkeypatch):
    """Return a function that arranges for Ctrl-C after an iteration of a run, and lists the runs.

    The run is counted from 0, or named by its stage: the first such one after others.
    """

    def arrange(run, iteration, times=1):
        runs = []

        def callback(snapshot):
            if snapshot.iteration == 1 or (snapshot.stage, snapshot.start) != runs[-1][:2]:
                runs.append((snapshot.stage, snapshot.start, snapshot.iteration))
            later = [each[0] for each in runs[1:]]
            due = len(runs) == run + 1 if isinstance(run, int) else later[-1:] == [run] and later.count(run) == 1
            if due and snapshot.iteration == runs[-1][2] + iteration - 1:
                for _ in range(times):
                    signal.raise_signal(signal.SIGINT)

        for command in ("fitting", "pictures"):
            monkeypatch.setattr(f"roadict.cli.{command}.snapshot_callback", lambda quiet: callback)
        return runs

    return arrange


@pytest.fixture
def learn(roadict, tmp_path, monkeypatch):
    """Return a function that learns from planted data, to out.npz."""
    monkeypatch.chdir(tmp_path)

    def run(truth, *options):
        np.save("data.npy", truth.data)
        return roadict("learn", "data.npy", "-k", len(truth.dictionary), "-o", "out.npz", "--seed", 0, *options)

    return run


def kept_model(result, data):
    """Return the model of an interrupted command, after what must hold of each."""
    assert (result.code, result.err.splitlines()[-1]) == (130, KEPT)
    assert "Traceback" not in result.err
    model = load("out.npz")
    assert model.stop_reason_ == "interrupted"
    assert f"interrupted after {plural(model.n_iter_, 'iteration')}" in result.out
    assert result.out.endswith("model: out.npz\n")
    assert len(model.history_["objective"]) == model.n_iter_
    residual, whole = (np.linalg.norm(np.nan_to_num(x)) for x in (data - model.codes_ @ model.components_, data))
    assert residual / whole == pytest.approx(model.error_, rel=1e-6, abs=1e-9)
    np.testing.assert_allclose(np.linalg.norm(model.components_, axis=1), 1)
    assert sorted(path.name for path in Path().iterdir() if path.suffix != ".svg") == ["data.npy", "out.npz"]
    return model


def assert_told_what_is_missing(out, model, unknown, found):
    """Codes that are hardly sparse, and the noise level; one that was not found is neither printed nor saved."""
    path = getattr(model, "epsilon_path_", None)
    assert (path is not None) == ("the noise level follows from the data" in out) == (unknown and found)
    assert ("noise level not found yet" in out) == (unknown and not found)
    per_sample, n_features = np.count_nonzero(model.codes_) / len(model.codes_), model.components_.shape[1]
    dense = f"codes not sparse yet, {per_sample:.1f} of {len(model.components_)} coefficients per sample"
    assert (dense in out) == (per_sample >= n_features / 2)
    assert out.count("stopped early: ") == (("not found yet" in out) or (dense in out))
    assert "no two starts agree" not in out, "the others have not ended"


@pytest.mark.parametrize(
    ("truth", "options", "run", "iteration", "stage"),
    [
        (NOISY, (), 0, 60, "search"),  # the attempt at an exact fit, of some samples
        (FEW, (), 0, 20, "search"),  # and of all
        (NOISY, (), 1, 3, "noise"),
        (NOISY, (), 5, 9, "descent"),
        (NOISY, ("--epsilon", "0.1", "--n-init", "1"), 0, 60, "search"),
        (NOISY, ("--formulation", "lasso", "--alpha", "0.1"), 0, 4, "descent"),
        (MANY, (), 5, 1, "mini-batches"),
        (NOISY, ("--method", "ksvd", "--sparsity", "2"), 0, 7, "search"),
    ],
)
def test_every_stage_leaves_a_model(learn, press, truth, options, run, iteration, stage):
    runs = press(run, iteration)
    result = learn(truth, *options)
    model = kept_model(result, truth.data)
    assert (len(runs), runs[-1][0]) == (run + 1, stage)
    assert_told_what_is_missing(result.out, model, unknown=not options, found=stage in ("descent", "mini-batches"))
    assert model.error_ < 0.6
    assert model.codes_.any(axis=1).mean() > 0.95
    assert model.atom_usage_.all()


@pytest.mark.parametrize(
    ("truth", "options", "run", "stage", "near"),
    [
        (NOISY, (), 1, "noise", 0.1),
        (NOISY, (), 2, "noise", 0.02),
        (HOLES, ("--missing",), 2, "noise", 0.02),
        (NOISY, ("--n-init", "1"), "search", "search", 0.02),  # the rounds before depend on rounding
        (EXACT, (), 1, "search", 1e-6),
    ],
)
def test_a_stage_that_has_just_begun_keeps_the_atoms_of_the_one_before(learn, press, truth, options, run, stage, near):
    runs = press(run, 1)
    model = kept_model(learn(truth, *options), truth.data)
    assert runs[-1][0] == stage
    assert run == stage or len(runs) == run + 1
    assert dictionary_error(model.components_, truth.dictionary) < near


def test_the_best_of_the_starts_is_kept_not_the_last(learn, press):
    """After three iterations the objective of a search is small, as its codes do not yet represent the data."""
    model = ROAD(16, epsilon=0.1, n_init=2, random_state=0)
    first = next(event for event in model._fitting(NOISY.data, watched=True) if isinstance(event, Fit))
    runs = press(1, 3)
    kept = kept_model(learn(NOISY, "--epsilon", "0.1", "--n-init", "2"), NOISY.data)
    assert [run[:2] for run in runs] == [("descent", 1), ("search", 2)]
    assert dictionary_error(kept.components_, first.dictionary) < 1e-6
    assert kept.n_iter_ == len(first.outcome.history["objective"])


def test_a_two_stage_run_keeps_its_best_iteration(learn, press):
    press(0, 7)
    kept = kept_model(learn(NOISY, "--method", "mod", "--sparsity", "2"), NOISY.data)
    model = AlternatingDictionaryLearning(16, update="mod", n_nonzero_coefs=2, random_state=0)
    model.set_params(callback=lambda snapshot: snapshot.iteration == 7).fit(NOISY.data)
    np.testing.assert_array_equal(kept.components_, model.components_)
    assert (kept.n_iter_, kept.objective_) == (7, model.objective_)


@pytest.mark.parametrize("call", [1, 2, 4, 5])
def test_the_choice_of_a_number_keeps_the_best_trial(learn, monkeypatch, call):
    """In the trial that finds the noise level; in the first of two splits of a number; when one is complete."""
    calls, hidden_curve = [], number.hidden_curve

    def interrupted(*arguments, **options):
        calls.append(len(arguments[3]))
        if len(calls) == call:
            signal.raise_signal(signal.SIGINT)
        return hidden_curve(*arguments, **options)

    monkeypatch.setattr(number, "hidden_curve", interrupted)
    result = learn(NOISY, "-k", "12:16:4", "--jobs", "1")
    model = kept_model(result, NOISY.data)
    assert calls == [16, 16, 16, 12, 12][:call]
    assert model.n_components_ == len(model.components_) == 16
    assert model.cv_results_["n_components"].tolist() == [16]
    assert "number of atoms not chosen yet" in result.out
    assert result.out.count("chosen") == 1, "nothing else says that it was"
    assert not Path("out-components.svg").exists()
    assert dictionary_error(model.components_, NOISY.dictionary) < 0.05


def test_stability_is_not_measured_after_an_interrupt(learn, press):
    press(0, 5)
    kept = kept_model(learn(NOISY, "--epsilon", "0.1", "--stability"), NOISY.data)
    assert not hasattr(kept, "atom_stability_")


def late(work):
    """Return a function that does this work, and presses Ctrl-C when nothing of it can be stopped any more."""

    def worked(*arguments, **options):
        result = work(*arguments, **options)
        signal.raise_signal(signal.SIGINT)
        return result

    return worked


def test_after_an_interrupt_in_the_last_coding_the_finished_model_is_written_and_no_more_is_done(learn, monkeypatch):
    command = import_module("roadict.cli.learn")
    monkeypatch.setattr(command, "fit_with_progress", late(command.fit_with_progress))
    result = learn(NOISY, "--epsilon", "0.1", "--n-init", "1", "--stability")
    expected = "roadict: error: interrupted: the finished model is in out.npz"
    assert (result.code, result.err.splitlines()[-1]) == (130, expected)
    kept = load("out.npz")
    assert kept.stop_reason_ == "converged"
    assert not hasattr(kept, "atom_stability_")


@pytest.mark.parametrize("options", [("--epsilon", "0.1"), ()])
def test_quiet_prints_what_was_kept_and_no_more(learn, monkeypatch, options):
    tests = []

    def interrupted(*arguments):
        tests.append(arguments)
        if len(tests) == 4:
            signal.raise_signal(signal.SIGINT)
        return False

    monkeypatch.setattr("roadict.runs.loop.has_converged", interrupted)
    assert learn(NOISY, *options, "--quiet") == (130, "", f"{KEPT}\n")
    model = load("out.npz")
    assert (model.n_iter_, model.epsilon_path_) == (4, None)


def test_before_the_end_of_the_first_iteration_nothing_is_written(learn, press):
    press(0, 1)
    result = learn(NOISY)
    assert (result.code, result.err.splitlines()[-1], result.out) == (130, NOTHING, "")
    assert [path.name for path in Path().iterdir()] == ["data.npy"]


def test_the_second_interrupt_leaves_an_old_model_as_it_is(learn, press):
    Path("out.npz").write_bytes(b"old")
    press(0, 60, times=2)
    result = learn(NOISY)
    assert (result.code, result.err.splitlines()[-1], result.out) == (130, NOTHING, "")
    assert Path("out.npz").read_bytes() == b"old"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_the_second_interrupt_while_saving_leaves_no_file(learn, press, monkeypatch):
    press(0, 60)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: signal.raise_signal(signal.SIGINT))
        result = learn(NOISY)
    assert (result.code, result.err.splitlines()[-1]) == (130, NOTHING)
    assert [path.name for path in Path().iterdir()] == ["data.npy"]


def test_the_library_raises():
    def interrupted(snapshot):
        if snapshot.iteration == 5:
            signal.raise_signal(signal.SIGINT)

    model = ROAD(16, random_state=0, callback=interrupted)
    before = dict(vars(model))
    with pytest.raises(KeyboardInterrupt):
        model.fit(NOISY.data)
    assert vars(model) == before


def test_where_signals_are_handled_otherwise_nothing_changes():
    def inside():
        with kept_at_interrupt() as interrupt:
            assert not stop_requested()
            handlers.append(signal.getsignal(signal.SIGINT))
        assert not interrupt.requested

    handlers = []
    thread = threading.Thread(target=inside)
    thread.start()
    thread.join()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    inside()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    assert handlers == [signal.default_int_handler, signal.SIG_IGN]


def test_an_interrupt_that_was_swallowed_counts_at_the_next_poll():
    with kept_at_interrupt():
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            stop_requested()


def test_a_process_saves_its_best(folder):
    result = stop_in_the_middle(signal.SIGINT, "learn", "data.npy", "-o", "out.npz", *ENDLESS)
    assert result.code == 130
    messages = [line for line in result.err.splitlines() if line and not line.startswith("learning ")]
    assert messages == ["stopping: the best so far will be saved; Ctrl-C again discards it", KEPT]
    model = load("out.npz")
    assert model.stop_reason_ == "interrupted"
    assert model.n_iter_ > 1
    assert model.error_ < 1e-2


@pytest.fixture
def pictures(tmp_path, monkeypatch):
    """Work in a folder with a clean, a noisy and a holey picture."""
    monkeypatch.chdir(tmp_path)
    y, x = np.mgrid[:32, :32]
    rng = np.random.default_rng(0)
    clean = 120 + 60 * np.sin(x / 2) * np.cos(y / 3)
    missing = rng.random(clean.shape) < 0.3
    noisy = np.clip(clean + rng.normal(0, 15, clean.shape), 0, 255)
    for name, values in {"noisy": noisy, "holes": np.where(missing, 0, clean), "mask": 255 * missing}.items():
        Image.fromarray(values.astype(np.uint8)).save(f"{name}.png")
    return clean


PICTURES = {"denoise": ("noisy.png",), "inpaint": ("holes.png", "--mask", "mask.png")}


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_made_with_the_dictionary_so_far(roadict, pictures, press, name):
    press(0, 20)
    result = roadict(name, *PICTURES[name], "-o", "out.png", "--seed", 0)
    expected = "roadict: error: interrupted: out.png is made with the dictionary learned so far"
    assert (result.code, result.err.splitlines()[-1]) == (130, expected)
    assert result.out == "picture of 32 x 32 pixels: out.png\n"
    before, after = (np.asarray(Image.open(path)).astype(float) for path in (PICTURES[name][0], "out.png"))
    assert psnr(after, pictures, 255) > psnr(before, pictures, 255) + 3


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_that_is_finished_at_an_interrupt_is_written(roadict, pictures, monkeypatch, name):
    monkeypatch.setattr(f"roadict.pictures.{name}", late(getattr(import_module("roadict.pictures"), name)))
    result = roadict(name, *PICTURES[name], "-o", "out.png")
    assert (result.code, result.err.splitlines()[-1]) == (130, "roadict: error: interrupted: out.png is finished")
    assert Path("out.png").exists()


@pytest.mark.parametrize("name", PICTURES)
def test_the_refinement_of_a_picture_ends_too(roadict, pictures, monkeypatch, name):
    from roadict.pictures import inpainting, restoration

    calls, refined = [], restoration.refined

    def interrupted(*arguments):
        calls.append(arguments)
        if len(calls) == 2:
            signal.raise_signal(signal.SIGINT)
        return refined(*arguments)

    for module in (restoration, inpainting):
        monkeypatch.setattr(module, "refined", interrupted)
    assert roadict(name, *PICTURES[name], "-o", "out.png", "-q").code == 130
    assert len(calls) == 2
    assert Path("out.png").exists()


@pytest.mark.parametrize("times", [1, 2])
def test_a_process_that_makes_a_picture_is_stopped(pictures, times):
    """Once: the picture is saved. Again while patches are coded: nothing is."""
    Image.fromarray(np.random.default_rng(1).integers(0, 256, (200, 200), dtype=np.uint8)).save("large.png")
    before = contents(Path())
    command = [*PROGRAM, "denoise", "large.png" if times == 2 else "noisy.png", "-o", "out.png", "--sigma", "15"]
    environment = os.environ | {"ROADICT_PROGRESS": "json"}
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) as run:
        try:
            for line in run.stderr:
                if '"iteration": 3,' in line:
                    run.send_signal(signal.SIGINT)
                    if times == 1:
                        break
                if times == 2 and '"text": "coding patches"' in line:
                    run.send_signal(signal.SIGINT)
                    break
            _, err = run.communicate(timeout=GUARD)
        finally:
            run.kill()
    last = err.splitlines()[-1]
    assert run.returncode == 130
    assert Path("out.png").exists() == (times == 1)
    if times == 2:
        assert last == NOTHING
        assert contents(Path()) == before


def test_the_processes_of_upscaling_discard(roadict, pictures, monkeypatch):
    def interrupted(*arguments, **options):
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("roadict.pictures.upscale", interrupted)
    result = roadict("upscale", "noisy.png", "-o", "out.png")
    assert result == (130, "", f"{NOTHING}\n")


def test_the_demo_tells_what_was_written(roadict, tmp_path, monkeypatch):
    def interrupted(*arguments):
        signal.raise_signal(signal.SIGINT)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("roadict.demo.page.enlarged", interrupted)
    result = roadict("demo", "--out", "demo", "-q")
    files = [Path("demo", name) for name in ("model.npz", "atoms.png", "convergence.png")]
    listed = ", ".join(map(str, files))
    assert result == (130, "", f"roadict: error: interrupted; {listed} were written\n")
    assert sorted(Path("demo").iterdir()) == sorted(files)


def test_a_model_that_was_kept_goes_on(learn, press, roadict):
    press(0, 60)
    kept_model(learn(NOISY), NOISY.data)
    assert roadict("encode", "out.npz", "data.npy", "-o", "codes.npz", "-q").code == 0
    assert roadict("show", "out.npz", "-o", "atoms.png", "-q").code == 0
    again = roadict("learn", "data.npy", "-k", 16, "-o", "out.npz", *SHORT)
    assert again.code == 0
    assert load("out.npz").stop_reason_ == "converged"


@pytest.fixture
def slow_disk(monkeypatch):
    """Return a function that arranges for Ctrl-C, so many times, while a file is written."""

    def arrange(times):
        flush = os.fsync

        def pressed(descriptor):
            flush(descriptor)
            if not done:
                done.append(descriptor)
                for _ in range(times):
                    signal.raise_signal(signal.SIGINT)

        done = []
        monkeypatch.setattr(os, "fsync", pressed)

    return arrange


def test_a_finished_model_is_written_before_the_program_ends(learn, slow_disk):
    slow_disk(1)
    result = learn(EXACT, *SHORT)
    assert (result.code, result.err.splitlines()[-1]) == (130, "roadict: error: interrupted; out.npz was written")
    assert load("out.npz").stop_reason_ != "interrupted"


def test_a_second_interrupt_discards_a_model_that_is_being_written(learn, slow_disk):
    slow_disk(2)
    result = learn(EXACT, *SHORT)
    assert (result.code, result.err.splitlines()[-1]) == (130, NOTHING)
    assert not Path("out.npz").exists()


def test_a_model_that_was_written_is_named_however_late_the_interrupt_is(learn, monkeypatch):
    def pressed(model):
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("roadict.cli.learn.report", pressed)
    result = learn(EXACT, *SHORT)
    assert (result.code, result.err.splitlines()[-1]) == (130, "roadict: error: interrupted; out.npz was written")


@pytest.mark.parametrize(
    ("command", "output", "late"),
    [
        ("encode out.npz data.npy -o codes.npy", "codes.npy", "numpy.count_nonzero"),
        ("show out.npz -o atoms.png", "atoms.png", "typer.echo"),
    ],
)
def test_what_other_commands_wrote_is_named_after_an_interrupt(learn, roadict, monkeypatch, command, output, late):
    def pressed(*arguments, **others):
        signal.raise_signal(signal.SIGINT)

    learn(EXACT, *SHORT)
    with monkeypatch.context() as context:
        context.setattr(late, pressed)
        result = roadict(*command.split())
    assert (result.code, result.err.splitlines()[-1]) == (130, f"roadict: error: interrupted; {output} was written")
    assert Path(output).exists()


def test_a_finished_picture_is_written_before_the_program_ends(roadict, tmp_path, monkeypatch, slow_disk):
    monkeypatch.chdir(tmp_path)
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (24, 24), np.uint8)).save("noisy.png")
    slow_disk(1)
    result = roadict("denoise", "noisy.png", "-o", "clean.png", "--sigma", "20")
    assert (result.code, result.err.splitlines()[-1]) == (130, "roadict: error: interrupted; clean.png was written")
    assert Path("clean.png").exists()
