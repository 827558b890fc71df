"""Problems and measures for the tests of the coders."""

import numpy as np
import pytest

from roadict.coders.registry import encode

M, K = 12, 24
CASES = [
    ("omp", {"n_nonzero_coefs": 3}),
    ("omp", {"epsilon": 0.2}),
    ("mp", {"n_nonzero_coefs": 3}),
    ("mp", {"epsilon": 0.2}),
    ("sp", {"n_nonzero_coefs": 3}),
    ("cosamp", {"n_nonzero_coefs": 2}),
    ("lasso", {"alpha": 0.1}),
    ("lasso", {}),
    ("basis-pursuit", {}),
    ("basis-pursuit", {"epsilon": 0.2}),
    ("half", {"alpha": 0.1}),
    ("half", {"n_nonzero_coefs": 3}),
    ("threshold", {"alpha": 0.1}),
]
every_case = pytest.mark.parametrize(("algorithm", "arguments"), CASES, ids=lambda value: str(value))


def unit_rows(shape, seed=0):
    atoms = np.random.default_rng([seed, 1]).standard_normal(shape)
    return atoms / np.linalg.norm(atoms, axis=1, keepdims=True)


def samples(n, n_features=M, seed=0):
    return np.random.default_rng([seed, 2]).standard_normal((n, n_features))


def code(data, dictionary, algorithm, observed=None, **arguments):
    return encode(data, observed, dictionary, algorithm=algorithm, **arguments)


def fit(sample, dictionary, support):
    codes = np.zeros(len(dictionary))
    codes[support] = np.linalg.lstsq(dictionary[support].T, sample)[0]
    return codes


def lasso_gap(data, codes, dictionary, alpha):
    """Relative duality gap of every sample; the dual point is the residual, shrunk to feasibility."""
    residual = data - codes @ dictionary
    dual = residual * np.minimum(1, alpha / np.abs(residual @ dictionary.T).max(axis=1, keepdims=True))
    objective = (residual**2).sum(axis=1) / 2 + alpha * np.abs(codes).sum(axis=1)
    return (objective - (data**2).sum(axis=1) / 2 + ((data - dual) ** 2).sum(axis=1) / 2) / objective
