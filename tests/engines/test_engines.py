"""The reference engine against the problem it solves, and the fused engine against the reference."""

import dataclasses
import itertools
import threading
import time
import warnings

import numpy as np
import pytest

from roadict.engines import reference as reference_engine
from roadict.engines.cpu import lanes
from roadict.engines.cpu.fused import FusedEngine, chunk_bounds
from roadict.engines.cpu.vectors import width_of
from roadict.engines.reference import ReferenceEngine
from roadict.formulation import Problem, RankOne, Sparse, constrained
from roadict.kernels import Workers
from roadict.runs.measures import is_finite

FORMS = ("exact", "ball", "lasso", "inexact-one", "inexact-three")
SHAPES = {
    "K > M": (16, 32, 300),
    "K < M": (16, 9, 100),
    "N < M": (20, 24, 12),
    "odd": (7, 5, 33),
    "one feature": (1, 4, 20),
}


def cases():
    for shape in SHAPES:
        for form in FORMS:
            yield pytest.param(form, shape, 0.0, id=f"{form}, {shape}")
            if not form.startswith("inexact") and shape != "one feature":
                yield pytest.param(form, shape, 0.2, id=f"{form}, {shape}, missing")


def relative(a, b):
    return np.linalg.norm(a - b) / max(np.linalg.norm(a), 1e-300)


@pytest.mark.parametrize(("form", "shape", "missing"), list(cases()))
def test_engines_agree_over_50_iterations(make_problem, form, shape, missing):
    problem, dictionary, codes = make_problem(form, SHAPES[shape], missing)
    reference, fused = ReferenceEngine(problem, dictionary, codes), FusedEngine(problem, dictionary, codes, 2)
    for _ in range(50):
        expected, measured = reference.step(), fused.step()
        for name, value in vars(expected).items():
            assert vars(measured)[name] == pytest.approx(value, rel=1e-9, abs=1e-9), name
    blocks = reference.sparse
    assert relative(reference.codes() @ reference.dictionary(), fused.codes() @ fused.dictionary()) < 1e-9
    used = np.linalg.norm(blocks, axis=(1, 2)) > 0
    overlap = np.abs(np.sum(reference.dictionary() * fused.dictionary(), axis=1))
    assert overlap[used] == pytest.approx(1, abs=1e-9)
    signs = np.sign(np.sum(reference.dictionary() * fused.dictionary(), axis=1))
    assert relative(reference.codes() * signs, fused.codes()) < 1e-9
    fused.close()


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("form", ["exact", "ball", "lasso"])
def test_engines_agree_while_rho_changes(make_problem, form, missing):
    """The multipliers are stored divided by ρ, and must be rescaled when it changes."""
    problem, dictionary, codes = make_problem(form, (12, 20, 200), missing, rho=6.0)
    reference, fused = ReferenceEngine(problem, dictionary, codes), FusedEngine(problem, dictionary, codes, 2)
    for iteration in range(1, 41):
        following = 6.0 * 1.1 ** (iteration // 5) if iteration % 5 == 0 else None
        expected, measured = reference.step(following), fused.step(following)
        for name, value in vars(expected).items():
            assert vars(measured)[name] == pytest.approx(value, rel=1e-9, abs=1e-9), name
    assert fused.rhos == reference.rhos == (6.0 * 1.1**8,) * 3
    assert relative(reference.codes() @ reference.dictionary(), fused.codes() @ fused.dictionary()) < 1e-9
    fused.close()


def test_a_change_of_rho_preserves_a_fixed_point(make_problem):
    """At a solution the unscaled multipliers ρU do not depend on ρ."""
    problem, dictionary, codes = make_problem("exact", (16, 16, 200), rho=6.0)
    engine = FusedEngine(problem, dictionary, codes)
    for _ in range(3000):
        measures = engine.step()
    assert measures.primal < 1e-8
    engine.step(12.0)
    assert engine.step().primal < 1e-7
    engine.close()


@pytest.mark.parametrize("form", FORMS)
def test_float32_follows_float64(make_problem, form):
    results = []
    for dtype in (np.float32, np.float64):
        engine = FusedEngine(*make_problem(form, (16, 32, 300), dtype=dtype), 2)
        for _ in range(30):
            measures = engine.step()
        assert engine.dictionary().dtype == engine.codes().dtype == dtype
        results.append((engine.codes() @ engine.dictionary(), measures))
        engine.close()
    assert relative(results[1][0], results[0][0]) < 1e-4
    for name, value in vars(results[1][1]).items():
        assert vars(results[0][1])[name] == pytest.approx(value, rel=1e-3), name


@pytest.mark.parametrize("form", ["exact", "ball", "inexact-three"])
def test_threads_do_not_change_a_bit(make_problem, form):
    results = []
    for n_jobs in (1, 2, 5):
        engine = FusedEngine(*make_problem(form, (8, 16, 500)), n_jobs)
        measures = [engine.step() for _ in range(20)][-1]
        results.append((engine.dictionary(), engine.codes(), measures))
        engine.close()
    for other in results[1:]:
        assert np.array_equal(results[0][0], other[0])
        assert np.array_equal(results[0][1], other[1])
        assert results[0][2] == other[2]


def test_chunks_cover_all_samples_once():
    for n_samples in (1, 15, 16, 17, 300, 11775):
        bounds = chunk_bounds(n_samples, 16)
        assert bounds[0][0] == 0
        assert bounds[-1][1] == n_samples
        assert all(a[1] == b[0] and a[0] < a[1] for a, b in itertools.pairwise(bounds))


def test_reference_reaches_a_feasible_sparse_rank_one_point(make_problem):
    problem, dictionary, codes = make_problem("exact", (16, 18, 100))
    engine = ReferenceEngine(problem, dictionary, codes)
    for _ in range(500):
        measures = engine.step()
    assert measures.primal < 1e-3
    blocks = engine.consensus
    assert relative(problem.data, blocks.sum(axis=0)) < 1e-3
    for block in blocks:
        sizes = np.linalg.svd(block, compute_uv=False)
        assert sizes[1] <= 2e-2 * sizes[0]


def test_unobserved_entries_do_not_matter(make_problem):
    problem, dictionary, codes = make_problem("exact", (8, 12, 60), missing=0.3)
    garbage = np.where(problem.observed, problem.data, 1e3)
    other = Problem(garbage, problem.observed, problem.formulation, problem.rhos)
    for kind in (ReferenceEngine, FusedEngine):
        first, second = kind(problem, dictionary, codes), kind(other, dictionary, codes)
        for _ in range(20):
            a, b = first.step(), second.step()
        assert relative(first.codes(), second.codes()) < 1e-9
        assert a.objective == pytest.approx(b.objective)


@pytest.mark.parametrize("rhos", [(210.0, 310.0, 260.0), (310.0, 310.0, 310.0)])
def test_lagrangian_of_the_inexact_form_falls_at_every_iteration(make_problem, rhos):
    problem, dictionary, codes = make_problem("inexact-three", (8, 12, 60))
    engine = ReferenceEngine(Problem(problem.data, None, problem.formulation, rhos), dictionary, codes)
    engine.step()
    values = [engine.lagrangian()]
    for _ in range(200):
        engine.step()
        values.append(engine.lagrangian())
    drops = -np.diff(values)
    assert (drops > 0).all(), f"smallest drop {drops.min():g}"


def test_lagrangian_may_rise_if_the_bound_is_violated(make_problem):
    problem, dictionary, codes = make_problem("inexact-three", (8, 12, 60))
    engine = ReferenceEngine(Problem(problem.data, None, problem.formulation, (2.0, 3.0, 2.5)), dictionary, codes)
    engine.step()
    values = [engine.lagrangian()]
    for _ in range(200):
        engine.step()
        values.append(engine.lagrangian())
    assert (np.diff(values) > 0).any()


def test_the_reference_has_a_step_for_every_block():
    assert set(reference_engine.SPARSE) == set(Sparse)
    assert set(reference_engine.RANK_ONE) == set(RankOne)


@pytest.mark.parametrize("block", ["sparse", "rank_one"])
def test_a_block_without_a_step_is_rejected(make_problem, block):
    problem, *start = make_problem("exact", (5, 3, 30))
    other = dataclasses.replace(problem.formulation, **{block: "other"})
    with pytest.raises(ValueError, match=f'"numba" has no step for {block}="other", .*use engine="reference"'):
        FusedEngine(dataclasses.replace(problem, formulation=other), *start)


# ---------------------------------------------------------------- rank-one step


def solve_bundle(matrices, starts, tolerance=1e-13):
    """Top eigenvectors of a list of symmetric matrices, through the bundled kernel."""
    width = width_of(np.dtype(np.float64))
    size = lanes.padded(len(matrices[0]))
    bundle = np.zeros((size, size, width))
    atoms = np.zeros((len(matrices[0]), width))
    for w, (matrix, start) in enumerate(zip(matrices, starts, strict=True)):
        bundle[: len(matrix), : len(matrix), w] = matrix
        atoms[:, w] = start
    lanes.top_eigenvectors(bundle, atoms, tolerance)
    return atoms[:, : len(matrices)].T


def spectrum(eigenvalues, seed):
    basis, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((len(eigenvalues),) * 2))
    return basis, (basis * eigenvalues) @ basis.T


@pytest.mark.parametrize("second", [0.0, 0.5, 0.9, 0.99, 0.9999, 1 - 1e-8])
@pytest.mark.parametrize("size", [2, 5, 16, 33])
def test_top_eigenvector_is_found_however_close_the_second(second, size):
    eigenvalues = np.linspace(second, 0, size - 1) if size > 2 else np.array([second])
    basis, matrix = spectrum(np.concatenate([[1.0], eigenvalues]), seed=size)
    start = np.ones(size) / np.sqrt(size)
    (atom,) = solve_bundle([matrix], [start])
    assert atom @ matrix @ atom == pytest.approx(1, rel=1e-12)
    assert abs(atom @ basis[:, 0]) == pytest.approx(1, abs=1e-14 / (1 - second) ** 2 + 1e-12)


@pytest.mark.parametrize("second", [0.5, 0.99, 0.999999])
def test_a_start_in_another_eigenvector_reaches_the_top_one(second):
    basis, matrix = spectrum(np.array([1.0, second, 0.1, 0.0]), seed=3)
    (atom,) = solve_bundle([matrix], [basis[:, 1]])
    assert atom @ matrix @ atom == pytest.approx(1, rel=1e-9)


def test_exact_tie_gives_some_top_eigenvector():
    _, matrix = spectrum(np.array([1.0, 1.0, 0.2, 0.0]), seed=4)
    (atom,) = solve_bundle([matrix], [np.array([1.0, 0, 0, 0])])
    assert np.linalg.norm(atom) == pytest.approx(1)
    assert atom @ matrix @ atom == pytest.approx(1, rel=1e-12)


def test_zero_matrix_leaves_its_atom_and_does_not_affect_the_others():
    basis, matrix = spectrum(np.array([1.0, 0.3, 0.2]), seed=5)
    start = np.array([0.6, 0.8, 0.0])
    atoms = solve_bundle([np.zeros((3, 3)), matrix], [start, start])
    assert np.array_equal(atoms[0], start)
    assert abs(atoms[1] @ basis[:, 0]) == pytest.approx(1)


def test_tiny_and_huge_matrices_are_the_same_problem():
    basis, matrix = spectrum(np.array([1.0, 0.6, 0.2]), seed=6)
    atoms = solve_bundle([1e-280 * matrix, 1e280 * matrix], [np.ones(3) / np.sqrt(3)] * 2)
    assert np.abs(atoms @ basis[:, 0]) == pytest.approx(1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gram_sums_products_of_a_panel(dtype):
    width = width_of(np.dtype(dtype))
    panel = np.random.default_rng(0).standard_normal((11, 12, width)).astype(dtype)
    gram = np.ones((12, 12, width), dtype)
    lanes.add_gram(panel, gram, 9, panel, 0, 2)
    expected = 1 + np.einsum("niw,njw->ijw", panel[:9].astype(float), panel[:9].astype(float))
    below = np.tril_indices(12)
    np.testing.assert_allclose(gram[below], expected[below], atol=1e-5 if dtype == np.float32 else 1e-13)


def test_atom_whose_block_vanishes_stays_a_unit_vector(make_problem):
    problem, dictionary, codes = make_problem("exact", (8, 12, 60))
    codes[:, 3] = 0
    engine = FusedEngine(problem, dictionary, codes)
    for _ in range(5):
        assert is_finite(engine.step())
        np.testing.assert_allclose(np.linalg.norm(engine.dictionary(), axis=1), 1, atol=1e-12)


def test_a_huge_threshold_that_zeroes_everything_gives_finite_measures(make_problem):
    problem, dictionary, codes = make_problem("exact", (8, 12, 60), rho=1e-9)
    for kind in (ReferenceEngine, FusedEngine):
        engine = kind(problem, dictionary, codes)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert all(is_finite(engine.step()) for _ in range(30))


def test_workers_propagate_errors():
    workers = Workers(3)

    def task(i):
        if i == 7:
            raise RuntimeError("seven")

    with pytest.raises(RuntimeError, match="seven"):
        workers.run(task, 10)
    seen = []
    workers.run(seen.append, 100)
    assert sorted(seen) == list(range(100))
    workers.close()


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_workers_report_progress_in_the_callers_thread(n_jobs):
    workers = Workers(n_jobs)
    reports = []
    workers.run(lambda i: time.sleep(0.001), 40, lambda done: reports.append((done, threading.get_ident())))
    workers.close()
    counts, threads = zip(*reports, strict=True)
    assert list(counts) == (list(range(1, 41)) if n_jobs == 1 else sorted(set(counts)))
    assert counts[-1] <= 40  # the others may end later
    assert set(threads) == {threading.get_ident()}


def test_ball_projection_is_not_onto_the_sphere(make_problem):
    """The paper prints a W step that puts every point on the ε-sphere; points inside must stay."""
    problem, dictionary, codes = make_problem("exact", (8, 12, 60))
    loose = Problem(problem.data, None, constrained(10 * float(np.linalg.norm(problem.data))), problem.rhos)
    engine = FusedEngine(loose, dictionary, codes)
    for _ in range(300):
        measures = engine.step()
    assert measures.objective == pytest.approx(0, abs=1e-6)
