"""The active set of Lasso and OMP: warm starts, float32, threads, blocks."""

import numpy as np
import pytest

from coding import code, fit, lasso_gap, unit_rows


def patches(n, seed=0):
    """Smooth, correlated data, and similar atoms: supports gain and lose many atoms."""
    rng = np.random.default_rng([seed, 5])
    mixing = np.exp(-0.1 * np.subtract.outer(np.arange(36), np.arange(36)) ** 2)
    atoms = rng.standard_normal((90, 36)) @ mixing
    data = rng.standard_normal((n, 36)) @ mixing
    return data / np.linalg.norm(data, axis=1).mean(), atoms / np.linalg.norm(atoms, axis=1, keepdims=True)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("alpha", [1e-3, 0.02, 0.2])
def test_lasso_warm_starts_end_in_the_same_minimum(alpha, missing):
    data, dictionary = patches(150)
    observed = np.random.default_rng(2).random(data.shape) < 0.7 if missing else np.ones(data.shape, bool)
    given = observed if missing else None
    cold = code(data, dictionary, "lasso", given, alpha=alpha)
    assert 1 < np.count_nonzero(cold, axis=1).mean() < 36
    for seen, sample, codes in zip(observed, data, cold, strict=True):
        assert lasso_gap(sample[None, seen], codes[None], dictionary[:, seen], alpha).max() < 2e-9
    moved = code(data, unit_rows((90, 36)) * 0.05 + dictionary, "lasso", given, alpha=alpha)
    dense = np.random.default_rng(3).standard_normal(cold.shape)
    for start in (cold, moved, -cold, dense, np.zeros_like(cold)):
        warm = code(data, dictionary, "lasso", given, alpha=alpha, start=start)
        np.testing.assert_allclose(warm, cold, atol=1e-7)


@pytest.mark.parametrize("alpha", [0.01, 0.1])
def test_lasso_in_float32_is_optimal_to_its_rounding(alpha):
    data, dictionary = patches(300)
    single = code(data.astype(np.float32), dictionary.astype(np.float32), "lasso", alpha=alpha).astype(np.float64)
    objectives = [
        ((data - codes @ dictionary) ** 2).sum(axis=1) / 2 + alpha * np.abs(codes).sum(axis=1)
        for codes in (single, code(data, dictionary, "lasso", alpha=alpha))
    ]
    assert (objectives[0] / objectives[1] - 1).max() < 1e-6
    warm = code(data.astype(np.float32), dictionary.astype(np.float32), "lasso", alpha=alpha, start=single)
    np.testing.assert_allclose(warm, single, atol=1e-3)


def test_omp_in_float32_fits_its_support():
    data, dictionary = patches(300)
    single = code(data.astype(np.float32), dictionary.astype(np.float32), "omp", n_nonzero_coefs=6)
    double = code(data, dictionary, "omp", n_nonzero_coefs=6)
    assert ((single != 0) == (double != 0)).all(axis=1).mean() > 0.98  # all but ties
    for sample, codes in zip(data, single, strict=True):
        best = fit(sample, dictionary, np.flatnonzero(codes))
        np.testing.assert_allclose(
            np.linalg.norm(sample - codes @ dictionary), np.linalg.norm(sample - best @ dictionary), rtol=1e-5
        )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("algorithm", "arguments"), [("omp", {"epsilon": 0.3}), ("lasso", {"alpha": 0.02})])
def test_threads_and_chunks_do_not_matter_in_either_dtype(algorithm, arguments, dtype):
    data, dictionary = (array.astype(dtype) for array in patches(1200))
    codes = code(data, dictionary, algorithm, n_jobs=1, **arguments)
    np.testing.assert_array_equal(code(data, dictionary, algorithm, n_jobs=3, **arguments), codes)
    for part in (slice(0, 1), slice(700, 741)):
        np.testing.assert_array_equal(code(data[part], dictionary, algorithm, **arguments), codes[part])
