"""The engine for GPUs, on one or else in Triton's interpreter, which is slow: problems are tiny.

``benchmarks/gpu.py`` measures real GPUs and compares 50 iterations with the Numba engine.
"""

import dataclasses
import itertools
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from roadict import ROAD, load
from roadict.engines.cpu.fused import FusedEngine
from roadict.engines.reference import ReferenceEngine
from roadict.engines.registry import engine_name
from roadict.runs.driving import drive
from roadict.runs.loop import Rule, View, follow
from roadict.synthetic import planted

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from roadict.engines.gpu import cuda  # noqa: E402
from roadict.engines.gpu import layout as gpu_layout  # noqa: E402
from roadict.engines.gpu import wide as gpu_wide  # noqa: E402
from roadict.engines.gpu.cuda import CudaEngine  # noqa: E402

pytestmark = pytest.mark.usefixtures("kernels")

FORMS = ("exact", "ball", "lasso", "inexact-three")
STEPS = 3


def relative(a, b):
    return np.linalg.norm(a - b) / np.linalg.norm(b)


def assert_same_run(ours, theirs, changes=()):
    for iteration in range(STEPS):
        following = changes[iteration] if iteration < len(changes) else None
        measured, expected = ours.step(following), theirs.step(following)
        for name, value in vars(expected).items():
            assert vars(measured)[name] == pytest.approx(value, rel=1e-9, abs=1e-12), name
    assert relative(ours.codes() @ ours.dictionary(), theirs.codes() @ theirs.dictionary()) < 1e-10
    assert ours.rhos == theirs.rhos


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shape", [(5, 4, 40), (18, 3, 33)], ids=["one part", "a rest of features"])
def test_every_form_follows_the_reference(make_problem, form, shape):
    given = make_problem(form, shape)
    assert_same_run(CudaEngine(*given), ReferenceEngine(*given))


@pytest.mark.parametrize("form", ["exact", "ball", "lasso"])
def test_missing_entries_and_a_changing_rho(make_problem, form):
    given = make_problem(form, (6, 3, 35), missing=0.2)
    assert_same_run(CudaEngine(*given), ReferenceEngine(*given), changes=(12.0, None, 9.0))


def test_three_parts_of_features(make_problem):
    """33 features are 3 × 16 in the pass and 32 + 4 in the Gram matrices."""
    layout = gpu_layout.Layout.of(20, 33, 2, 8)
    assert (layout.width, layout.n_parts, layout.main, layout.rest) == (16, 3, 32, 4)
    given = make_problem("exact", (33, 3, 20))
    assert_same_run(CudaEngine(*given), ReferenceEngine(*given))


@pytest.mark.parametrize("form", ["exact", "inexact-three"])
def test_many_features_use_no_kernels_for_gram_matrices(make_problem, form):
    shape = (gpu_layout.MAX_KERNEL_FEATURES + 6, 3, 20)
    given = make_problem(form, shape)
    assert_same_run(CudaEngine(*given), ReferenceEngine(*given))


def test_float32_follows_float64(make_problem):
    single = CudaEngine(*make_problem("ball", (6, 4, 40), dtype=np.float32))
    double = CudaEngine(*make_problem("ball", (6, 4, 40)))
    for _ in range(STEPS):
        small, large = single.step(), double.step()
    assert single.dictionary().dtype == single.codes().dtype == np.float32
    assert small.primal == pytest.approx(large.primal, rel=1e-4)
    assert relative(single.codes() @ single.dictionary(), double.codes() @ double.dictionary()) < 1e-5


def test_a_column_of_zeros_is_neither_read_nor_written(make_problem):
    problem, atoms, codes = make_problem("exact", (6, 4, 40), rho=2.0)
    engine, reference = CudaEngine(problem, atoms, codes), ReferenceEngine(problem, atoms, codes)
    engine.step(), reference.step()
    batch = engine._batch
    dead = batch._scales == 0
    assert 0.1 < float(dead[0, :, :40].double().mean()) < 1
    batch._sparse[dead] = torch.nan  # must not be read
    engine.step(), reference.step()
    still = dead & (batch._scales == 0)
    assert still.any()
    assert torch.isnan(batch._sparse[still]).all()
    assert_same_run(engine, reference)


@pytest.mark.parametrize("form", ["ball", "inexact-three"])
def test_a_run_resumes_from_its_state_bit_identically(make_problem, form):
    given = make_problem(form, (6, 4, 40))
    unbroken = CudaEngine(*given)
    for _ in range(2):
        unbroken.step()
    state = unbroken.state()
    resumed = CudaEngine(*given)
    for start, stop in ((0, 15), (15, 40)):  # as written by two ranks
        parts = {name: array[start:stop] for name, array in state.local.items()}
        resumed.restore(type(state)(parts, state.shared), start)
    assert resumed.step() == unbroken.step()
    assert np.array_equal(resumed.codes(), unbroken.codes())


@pytest.mark.parametrize("form", ["ball", "inexact-three"])
def test_the_number_of_exchanges_does_not_depend_on_the_parts_of_a_checkpoint(make_problem, form):
    """Ranks that restore different numbers of parts must stay in step."""

    class Counting:
        rank, size, calls = 0, 1, 0

        def sum(self, array):
            self.calls += 1
            return array

    given = make_problem(form, (6, 3, 40))
    state = CudaEngine(*given).state()
    counts = []
    for cuts in ([0, 40], [0, 15, 40], [0, 0, 40]):
        comm = Counting()
        engine = CudaEngine(*given, comm)
        before = comm.calls
        for start, stop in itertools.pairwise(cuts):
            parts = {name: array[start:stop] for name, array in state.local.items()}
            engine.restore(type(state)(parts, state.shared), start)
        engine.step()
        counts.append(comm.calls - before)
    assert len(set(counts)) == 1


def test_an_unwatched_run_in_bursts_records_every_iteration(make_problem):
    given = make_problem("exact", (5, 3, 30))
    watched = drive(follow(CudaEngine(*given), Rule(4, 0, 0.0), View()))
    burst = drive(follow(CudaEngine(*given), Rule(4, 0, 0.0), View(watched=False)))
    for name in ("objective", "primal", "dual", "error", "rho"):
        assert np.array_equal(watched.history[name], burst.history[name])


def test_a_fit_of_tensors_gives_tensors(tmp_path):
    data = planted(30, 5, 6, sparsity=2, random_state=0).data
    settings = {"rho": 10.0, "max_iter": 3, "tol": 0, "n_init": 1, "random_state": 0}
    given = torch.from_numpy(data)
    model = ROAD(4, engine="cuda", **settings).fit(given)
    plain = ROAD(4, engine="numba", **settings).fit(data)
    assert isinstance(model.components_, torch.Tensor)
    assert isinstance(model.codes_, torch.Tensor)
    assert model.components_.device == given.device
    assert relative(model.components_.numpy(), plain.components_) < 1e-9
    codes = model.transform(given)
    assert isinstance(codes, torch.Tensor)
    assert isinstance(model.inverse_transform(codes), torch.Tensor)
    assert model.score(given) == pytest.approx(plain.score(data), rel=1e-6)
    model.save(tmp_path / "model.npz")
    assert np.array_equal(load(tmp_path / "model.npz").components_, model.components_.numpy())


def test_several_starts_give_the_result_of_the_numba_engine():
    data = planted(24, 4, 5, sparsity=2, random_state=3).data
    settings = {"rho": 10.0, "max_iter": 3, "tol": 0, "n_init": 2, "random_state": 0}
    ours = ROAD(3, engine="cuda", **settings).fit(data)
    theirs = ROAD(3, engine="numba", **settings).fit(data)
    assert ours.objective_ == pytest.approx(theirs.objective_, rel=1e-9)


def test_auto_chooses_a_gpu_only_if_there_is_one():
    assert engine_name("auto", 100_000, 64, 512) == ("cuda" if torch.cuda.is_available() else "numba")
    assert engine_name("auto", 100, 8, 16) == "numba"
    assert engine_name("auto", 4, 300, 16) == "reference"
    assert engine_name("cuda", 4, 300, 16) == "cuda"


def test_auto_chooses_the_cpu_for_more_features_than_the_gpu_supports(monkeypatch):
    monkeypatch.setattr("roadict.engines.registry._has_gpu", lambda: True)
    assert engine_name("auto", 20_000, 1024, 300) == "cuda"
    assert engine_name("auto", 20_000, 1025, 300) == "numba"


def test_wide_eigenvectors_are_the_top_ones(monkeypatch):
    rng = np.random.default_rng(0)
    factors = rng.standard_normal((5, 30, 80))
    matrices = np.swapaxes(factors, 1, 2) @ factors
    axes = np.linalg.qr(rng.standard_normal((80, 80)))[0]
    matrices[3] = axes * np.r_[1, 0.9995, np.full(78, 0.5)] @ axes.T  # nearly a tie
    matrices[4] = 0
    start = rng.standard_normal((5, 80))
    monkeypatch.setattr(gpu_wide, "MAX_TEMPORARY_BYTES", 3 * matrices[0].nbytes)
    (found,) = gpu_wide.wide_eigenvectors(torch.from_numpy(matrices[None]), torch.from_numpy(start[None])).numpy()
    for matrix, vector in zip(matrices[:4], found, strict=False):
        values, vectors = np.linalg.eigh(matrix)
        assert abs(vector @ vectors[:, -1]) == pytest.approx(1, abs=1e-9), values[-2:]
    assert np.array_equal(found[4], start[4])


def test_the_out_of_memory_message_has_sizes_and_remedies(make_problem):
    problem = make_problem("exact", (5, 3, 30))[0]
    message = str(cuda._out_of_memory(3 * 2**30, 2**30, problem))
    assert "needs 3.0 GiB of GPU memory and 1.0 GiB are free" in message
    assert "float32" in message
    assert "torchrun" in message


@pytest.mark.parametrize("form", ["exact", "inexact-three"])
@pytest.mark.parametrize("block", ["sparse", "rank_one"])
def test_a_block_without_a_step_is_rejected(make_problem, form, block):
    problem, *start = make_problem(form, (5, 3, 30))
    other = dataclasses.replace(problem.formulation, **{block: "other"})
    with pytest.raises(ValueError, match=f'"cuda" has no step for {block}="other", .*use engine="reference"'):
        CudaEngine(dataclasses.replace(problem, formulation=other), *start)


def test_too_many_features_are_rejected():
    with pytest.raises(cuda.GpuError, match="up to 1024 features, not 1100"):
        ROAD(3, engine="cuda", max_iter=1).fit(np.eye(1100)[:3])


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_the_error_has_a_remedy():
    code = "import numpy as np; from roadict import ROAD; ROAD(2, engine='cuda').fit(np.eye(4) + 1)"
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert 'engine="cuda" finds no NVIDIA GPU' in done.stderr.splitlines()[-1]
    assert 'use engine="numba"' in done.stderr


def test_the_kernels_compile_for_a_gpu():
    """The interpreter accepts more of Python than the compiler."""
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    script = Path(__file__).with_name("compile_kernels.py")
    done = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    names = ["top_eigenvectors", "update_blocks", "update_samples", "add_grams", "close_iteration"]
    of_ranks = ["add_grams", "sum_for_ranks", *names[:-1], "sum_for_ranks", names[-1]]
    of_atoms = ["power_steps", *names[1:]]
    of_codes = ["step_by_images", *names[1:3], "add_images", names[-1]]
    assert done.stdout.split() == names + of_ranks + of_atoms + of_codes


@pytest.mark.parametrize("package", ["torch", "triton"])
def test_without_a_package_the_error_names_the_extra(package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    message = f"engine=\"cuda\" needs {package}; install it with: pip install 'roadict[gpu]'"
    with pytest.raises(ModuleNotFoundError, match=re.escape(message)):
        ROAD(2, engine="cuda").fit(np.eye(4) + 1)


def test_the_engine_agrees_with_the_numba_engine(make_problem):
    """Both compute their measures by one function, from the same inputs."""
    given = make_problem("lasso", (5, 3, 40))
    fused = FusedEngine(*given)
    assert_same_run(CudaEngine(*given), fused)
    fused.close()
