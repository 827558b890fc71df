"""Codes as CSR arrays: equal to dense ones, without memory for zeros."""

import tracemalloc
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from coding import K, M, code, every_case, samples, unit_rows
from roadict.coders.registry import encode_sparse


@pytest.fixture(autouse=True)
def _unconverged():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@every_case
def test_sparse_codes_equal_dense_ones(algorithm, arguments, dtype, missing):
    data, dictionary = samples(600).astype(dtype), (2.0 ** np.arange(K)[:, None] * unit_rows((K, M))).astype(dtype)
    data[5] = 0
    observed = np.random.default_rng(1).random(data.shape) < 0.8 if missing else None
    dense = code(data, dictionary, algorithm, observed, **arguments)
    found = encode_sparse(data, observed, dictionary, algorithm=algorithm, **arguments)
    assert found.dtype == dtype
    assert found.has_canonical_format
    assert (found.data != 0).all()
    np.testing.assert_array_equal(found.toarray(), dense)
    assert encode_sparse(data[:0], None, dictionary, algorithm=algorithm, **arguments).shape == (0, K)


@pytest.mark.parametrize("algorithm", ["lasso", "half"])
def test_sparse_codes_from_a_start(algorithm):
    data, dictionary, start = samples(300), unit_rows((K, M)), np.random.default_rng(1).standard_normal((300, K))
    start[:50] = 0
    found = encode_sparse(data, None, dictionary, algorithm=algorithm, alpha=0.1, start=start)
    np.testing.assert_array_equal(found.toarray(), code(data, dictionary, algorithm, alpha=0.1, start=start))


def test_codes_that_underflow_are_not_stored():
    data = np.array([[1.0, 0.0], [0.0, 1e-40]], np.float32)
    found = encode_sparse(data, None, 1e6 * np.eye(2, dtype=np.float32), algorithm="omp", n_nonzero_coefs=1)
    assert found.nnz == 1


@every_case
def test_zeros_need_no_memory(algorithm, arguments):
    data, dictionary = samples(8000, 4), np.concatenate([np.eye(4), 0.01 * unit_rows((508, 4))])
    arguments = {name: 1 if name == "n_nonzero_coefs" else value for name, value in arguments.items()}
    encode_sparse(data[:200], None, dictionary, algorithm=algorithm, n_jobs=2, **arguments)  # compiles
    tracemalloc.start()
    found = encode_sparse(data, None, dictionary, algorithm=algorithm, n_jobs=2, **arguments)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    dense = 8 * found.shape[0] * found.shape[1]
    assert found.nnz < 5 * len(data)
    assert peak < dense / 2, f"{peak / dense:.2f} of a dense array"
