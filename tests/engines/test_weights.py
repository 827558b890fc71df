"""Weights of samples in every engine: weight two is the sample twice, and fast engines follow the reference."""

from dataclasses import replace

import numpy as np
import pytest

from roadict.engines.cpu.fused import FusedEngine
from roadict.engines.reference import ReferenceEngine
from roadict.formulation import constrained

FORMS = ("exact", "ball", "lasso", "inexact-one", "inexact-three")
CASES = [(form, missing) for form in FORMS for missing in (0.0, 0.2) if not (missing and form.startswith("inexact"))]
STEPS = 20


def weighted(given, weights):
    """The same problem with weights; a bound stays relative to the data."""
    problem, dictionary, codes = given
    roots = np.sqrt(weights)[:, None]
    data, form = problem.data * roots, problem.formulation
    if form.radius:
        form = constrained(form.radius * float(np.linalg.norm(data) / np.linalg.norm(problem.data)))
    return replace(problem, data=data, formulation=form, roots=roots), dictionary, codes * roots


def repeated(given, numbers):
    """The same problem with every sample so many times."""
    problem, dictionary, codes = given
    rows = np.repeat(np.arange(len(codes)), numbers)
    observed, form = None if problem.observed is None else problem.observed[rows], problem.formulation
    if form.radius:
        ratio = np.linalg.norm(problem.data[rows]) / np.linalg.norm(problem.data)
        form = constrained(form.radius * float(ratio))
    return replace(problem, data=problem.data[rows], observed=observed, formulation=form), dictionary, codes[rows]


def assert_same_measures(measured, expected):
    for name, value in vars(expected).items():
        assert vars(measured)[name] == pytest.approx(value, rel=1e-9, abs=1e-11), name


@pytest.mark.parametrize("kind", [ReferenceEngine, FusedEngine])
@pytest.mark.parametrize(("form", "missing"), CASES)
def test_a_weight_of_two_is_the_sample_twice(make_problem, kind, form, missing):
    given = make_problem(form, (8, 12, 50), missing)
    numbers = np.random.default_rng(3).integers(1, 4, 50)
    ours, twice = kind(*weighted(given, numbers)), kind(*repeated(given, numbers))
    for _ in range(STEPS):
        assert_same_measures(ours.step(), twice.step())
    np.testing.assert_allclose(
        ours.dictionary() * np.sign(ours.dictionary()[:, :1]),
        twice.dictionary() * np.sign(twice.dictionary()[:, :1]),
        atol=1e-9,
    )
    first = np.concatenate([[0], np.cumsum(numbers)[:-1]])
    products = ours.codes() @ ours.dictionary() / np.sqrt(numbers)[:, None]
    np.testing.assert_allclose(products, (twice.codes() @ twice.dictionary())[first], atol=1e-9)


@pytest.mark.parametrize(("form", "missing"), CASES)
def test_the_cpu_engine_follows_the_reference(make_problem, form, missing):
    changes = [None] * 3 if form.startswith("inexact") else [12.0, None, 9.0]
    weights = np.random.default_rng(4).uniform(0.1, 5.0, 90)
    given = weighted(make_problem(form, (9, 14, 90), missing), weights)
    reference, fused = ReferenceEngine(*given), FusedEngine(*given, 2)
    for following in changes + [None] * (STEPS - 3):
        assert_same_measures(fused.step(following), reference.step(following))
    expected = reference.codes() @ reference.dictionary()
    np.testing.assert_allclose(fused.codes() @ fused.dictionary(), expected, atol=1e-9)
    fused.close()


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize(("form", "missing"), [*CASES[:6], ("inexact-three", 0.0)])
def test_the_gpu_engine_follows_the_reference(make_problem, form, missing):
    pytest.importorskip("torch")
    pytest.importorskip("triton")
    from roadict.engines.gpu.cuda import CudaEngine

    weights = np.random.default_rng(5).uniform(0.1, 5.0, 35)
    given = weighted(make_problem(form, (5, 4, 35), missing), weights)
    reference, cuda = ReferenceEngine(*given), CudaEngine(*given)
    for _ in range(STEPS):
        assert_same_measures(cuda.step(), reference.step())
    np.testing.assert_allclose(cuda.codes() @ cuda.dictionary(), reference.codes() @ reference.dictionary(), atol=1e-9)


def test_the_lagrangian_is_that_of_copies_and_falls(make_problem):
    given, numbers = make_problem("inexact-three", (8, 12, 40)), np.random.default_rng(6).integers(1, 4, 40)
    ours, copies = ReferenceEngine(*weighted(given, numbers)), ReferenceEngine(*repeated(given, numbers))
    values = []
    for _ in range(30):
        ours.step(), copies.step()
        values.append(ours.lagrangian())
        assert values[-1] == pytest.approx(copies.lagrangian(), rel=1e-9)
    assert (np.diff(values) < 0).all()
