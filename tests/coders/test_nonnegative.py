"""Coders with codes that must not be negative, each against an independent solver or its optimality conditions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, nnls
from sklearn.decomposition import sparse_encode
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso

from coding import K, M, code, samples, unit_rows
from roadict.coders import registry
from roadict.coders.polish import merge_duplicates, polish_codes
from roadict.coders.registry import CODER_PARAMETERS, NONNEGATIVE, encode_sparse
from roadict.constraints import Constraints

SHAPES = [(K, M), (5, M), (90, 36), (1, M), (7, 1)]
AWAY = -np.abs(samples(6)), np.abs(unit_rows((K, M)))
"""Samples that no atom has a positive correlation with, and these atoms."""


def violation(data, codes, dictionary, alpha):
    """Return by how much the optimality conditions of the nonnegative Lasso are violated.

    No correlation of the residual exceeds alpha, and those of atoms in use equal it.
    """
    assert np.isfinite(codes).all()
    assert (codes >= 0).all()
    excess = (data - codes @ dictionary) @ dictionary.T - alpha
    return max(excess.max(initial=0), np.abs(excess[codes > 0]).max(initial=0))


# ---- Lasso ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("alpha", [0.01, 0.1, 0.5])
def test_lasso_equals_scikit_learns(shape, alpha):
    dictionary, data = unit_rows(shape), samples(60, shape[1])
    codes = code(data, dictionary, "lasso", alpha=alpha, positive=True)
    solver = Lasso(alpha=alpha / shape[1], fit_intercept=False, positive=True, tol=1e-12, max_iter=100_000)
    truth = solver.fit(dictionary.T, data.T).coef_.reshape(codes.shape)
    assert truth.any()
    np.testing.assert_allclose(codes, truth, atol=1e-7)
    assert violation(data, codes, dictionary, alpha) < 1e-7
    assert (code(data, dictionary, "lasso", alpha=alpha) < 0).any(), "the sign makes no difference"


def test_lasso_of_atoms_of_any_norm_equals_sparse_encode():
    dictionary, data = unit_rows((K, M)) * np.geomspace(0.3, 3, K)[:, None], samples(40)
    codes = code(data, dictionary, "lasso", alpha=0.1, positive=True)
    theirs = sparse_encode(
        data, dictionary, algorithm="lasso_cd", alpha=0.1, positive=True, max_iter=100_000, check_input=False
    )
    np.testing.assert_allclose(codes, theirs, atol=5e-3)  # which stops at a gap of 1e-4
    assert violation(data, codes, dictionary, 0.1) < 1e-7


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("alpha", [1e-3, 0.02, 0.2])
def test_lasso_warm_starts_end_in_the_same_minimum(alpha, missing):
    dictionary, data = unit_rows((90, 36)), samples(100, 36) / 6
    observed = np.random.default_rng(2).random(data.shape) < 0.7 if missing else np.ones(data.shape, bool)
    cold = code(data, dictionary, "lasso", observed if missing else None, alpha=alpha, positive=True)
    for seen, sample, codes in zip(observed, data, cold, strict=True):
        assert violation(sample[None, seen], codes[None], dictionary[:, seen], alpha) < 1e-7
    signed = code(data, dictionary, "lasso", alpha=alpha)
    for start in (cold, -cold, signed, samples(100, 90), np.zeros_like(cold)):
        warm = code(data, dictionary, "lasso", observed if missing else None, alpha=alpha, start=start, positive=True)
        np.testing.assert_allclose(warm, cold, atol=1e-7)


def test_lasso_in_float32_is_optimal_to_its_rounding():
    dictionary, data = unit_rows((90, 36)).astype(np.float32), samples(200, 36).astype(np.float32)
    single = code(data, dictionary, "lasso", alpha=0.3, positive=True)
    assert single.dtype == np.float32
    assert violation(data.astype(float), single.astype(float), dictionary.astype(float), 0.3) < 1e-4
    double = code(data.astype(float), dictionary.astype(float), "lasso", alpha=0.3, positive=True)
    np.testing.assert_allclose(single, double, atol=1e-3)


def test_default_weights_are_shares_of_the_largest_positive_correlation():
    dictionary, data = unit_rows((K, M)), samples(10)
    for algorithm in ("lasso", "threshold"):
        for sample in data:
            alpha = 0.1 * (dictionary @ sample).max()
            given = code(sample[None], dictionary, algorithm, alpha=alpha, positive=True)
            np.testing.assert_allclose(code(sample[None], dictionary, algorithm, positive=True), given, atol=1e-8)


# ---- OMP -----------------------------------------------------------------------------------------------------------


def nonnegative_omp(sample, dictionary, n_nonzero_coefs, epsilon=0.0):
    """Nonnegative OMP by its definition."""
    codes, size = np.zeros(len(dictionary)), np.linalg.norm(sample)
    while True:
        residual = sample - codes @ dictionary
        scores = np.where(codes > 0, 0, dictionary @ residual / np.linalg.norm(dictionary, axis=1))
        finished = np.count_nonzero(codes) >= n_nonzero_coefs or np.linalg.norm(residual) <= epsilon * size
        if finished or scores.max() <= 1e-12 * size:
            return codes
        support = np.append(np.flatnonzero(codes), scores.argmax())
        codes = np.zeros(len(dictionary))
        codes[support] = nnls(dictionary[support].T, sample)[0]


@pytest.mark.parametrize("shape", SHAPES[:-1])  # of one feature, all atoms tie
@pytest.mark.parametrize("n_nonzero_coefs", [1, 4, 12])
def test_omp_follows_the_definition(shape, n_nonzero_coefs):
    dictionary = unit_rows(shape) * np.random.default_rng(0).uniform(0.5, 2, (shape[0], 1))
    data, most = samples(60, shape[1]), min(n_nonzero_coefs, *shape)
    truth = np.array([nonnegative_omp(sample, dictionary, most) for sample in data])
    codes = code(data, dictionary, "omp", n_nonzero_coefs=n_nonzero_coefs, positive=True)
    np.testing.assert_allclose(codes, truth, atol=1e-9)
    single = code(*(a.astype(np.float32) for a in (data, dictionary)), "omp", n_nonzero_coefs=most, positive=True)
    fits = [np.linalg.norm(data - found @ dictionary, axis=1) for found in (single, truth)]
    np.testing.assert_allclose(*fits, atol=1e-3)


def test_omp_with_atoms_that_leave():
    dictionary, data = np.abs(unit_rows((90, 20))), samples(300, 20)
    support = np.zeros((300, 90), bool)
    for count in range(1, 9):  # atoms of a smaller support that a larger one lacks
        found = code(data, dictionary, "omp", n_nonzero_coefs=count, positive=True) > 0
        left, support = (support & ~found).any(), found
        if left:
            break
    assert left
    for sample, codes in zip(data, code(data, dictionary, "omp", n_nonzero_coefs=12, positive=True), strict=True):
        np.testing.assert_allclose(codes, nonnegative_omp(sample, dictionary, 12), atol=1e-9)


def test_omp_by_error_and_with_missing_entries():
    dictionary, data = unit_rows((K, M)), samples(60)
    observed = np.random.default_rng(2).random(data.shape) < 0.7
    found = code(data, dictionary, "omp", observed, epsilon=0.3, positive=True)
    for seen, sample, codes in zip(observed, data, found, strict=True):
        np.testing.assert_allclose(
            codes, nonnegative_omp(sample[seen], dictionary[:, seen], seen.sum(), 0.3), atol=1e-9
        )


# ---- basis pursuit -------------------------------------------------------------------------------------------------


def in_cone(n, dictionary):
    return np.maximum(samples(n, len(dictionary)), 0) @ dictionary


@pytest.mark.parametrize("shape", [(K, M), (60, M), (M, M), (7, 1)])
def test_basis_pursuit_equals_a_linear_program(shape):
    dictionary = unit_rows(shape)
    data = in_cone(40, dictionary)
    codes = code(data, dictionary, "basis-pursuit", positive=True)
    assert (codes >= 0).all()
    np.testing.assert_allclose(codes @ dictionary, data, atol=1e-9)
    truth = [linprog(np.ones(len(dictionary)), A_eq=dictionary.T, b_eq=sample).fun for sample in data]
    np.testing.assert_allclose(codes.sum(axis=1), truth, rtol=1e-7)


@pytest.mark.parametrize("epsilon", [0.05, 0.5])
def test_basis_pursuit_with_a_bound_is_a_lasso_on_its_boundary(epsilon):
    dictionary = unit_rows((60, M))
    data = in_cone(40, dictionary)
    codes = code(data, dictionary, "basis-pursuit", epsilon=epsilon, positive=True)
    for sample, found in zip(data, codes, strict=True):
        residual = sample - found @ dictionary
        np.testing.assert_allclose(np.linalg.norm(residual), epsilon * np.linalg.norm(sample), rtol=1e-6)
        alpha = (dictionary @ residual).max()
        assert violation(sample[None], found[None], dictionary, alpha) < 1e-6 * alpha


@pytest.mark.parametrize("shape", [(K, M), (5, M), (1, M)])
@pytest.mark.parametrize("epsilon", [None, 0.01])
@pytest.mark.parametrize("sparse", [False, True])
def test_basis_pursuit_without_a_solution_warns_and_returns_the_nearest(shape, epsilon, sparse):
    dictionary, data = np.abs(unit_rows(shape)), samples(40)
    with pytest.warns(ConvergenceWarning, match="40 of 40 samples have no nonnegative codes within epsilon=0") as found:
        codes = (encode_sparse if sparse else registry.encode)(
            data, None, dictionary, algorithm="basis-pursuit", epsilon=epsilon, positive=True
        )
    assert len(found) == 1
    truth = np.array([nnls(dictionary.T, sample)[0] for sample in data])
    np.testing.assert_allclose(codes.toarray() if sparse else codes, truth, atol=1e-9)


def test_basis_pursuit_warns_of_the_samples_without_a_solution_only():
    dictionary = np.abs(unit_rows((K, M)))
    data = np.vstack([in_cone(10, dictionary), AWAY[0][:3]])
    observed = np.ones(data.shape, bool)
    observed[:, 0] = False
    for seen in (None, observed):
        with pytest.warns(ConvergenceWarning, match="3 of 13 samples"):
            code(data.astype(np.float32), dictionary.astype(np.float32), "basis-pursuit", seen, positive=True)


# ---- polish --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", [False, True])
def test_polish_is_nonnegative_least_squares_on_the_support(missing):
    dictionary, data = unit_rows((K, M)), samples(60)
    codes = np.where(np.random.default_rng(1).random((60, K)) < 0.3, samples(60, K, seed=3), 0)
    codes[0] = np.abs(samples(1, K))  # more atoms than entries
    codes[:, 1] = 0.1
    observed = np.random.default_rng(2).random(data.shape) < 0.8 if missing else np.ones(data.shape, bool)
    polished = polish_codes(data, observed if missing else None, dictionary, codes, negligible=0.0, positive=True)
    assert (polished >= 0).all()
    assert not polished[codes <= 0].any()
    for seen, sample, old, new in zip(observed, data, codes, polished, strict=True):
        support = np.flatnonzero(old > 0)
        truth, error = nnls(dictionary[np.ix_(support, seen)].T, sample[seen])
        if truth.sum() < 2 * old[support].sum():  # else the old codes remain
            np.testing.assert_allclose(np.linalg.norm(sample[seen] - new @ dictionary[:, seen]), error, atol=1e-9)


def test_polish_keeps_lasso_codes_nonnegative():
    dictionary, data = unit_rows((K, M)), samples(60)
    codes = code(data, dictionary, "lasso", alpha=0.1, positive=True)
    again = polish_codes(data, None, dictionary, codes, alpha=0.1, negligible=0.0, positive=True)
    np.testing.assert_allclose(again, codes, atol=1e-8)


def test_opposite_atoms_are_no_duplicates_for_nonnegative_codes():
    dictionary, codes = np.array([[1.0, 0.0], [-1.0, 0.0], [1.0, 0.0]]), np.array([[0.0, 2.0, 1.0]])
    np.testing.assert_array_equal(
        merge_duplicates(dictionary, codes, Constraints(positive_code=True)), [[1.0, 2.0, 0.0]]
    )


# ---- all -----------------------------------------------------------------------------------------------------------

CASES = [
    ("omp", {"n_nonzero_coefs": 3}),
    ("omp", {"epsilon": 0.2}),
    ("basis-pursuit", {}),
    ("basis-pursuit", {"epsilon": 0.2}),
    ("lasso", {"alpha": 0.1}),
    ("lasso", {"alpha": 0.0}),
    ("lasso", {}),
    ("threshold", {"alpha": 0.1}),
]
unmet = pytest.mark.filterwarnings("ignore:.*have no nonnegative codes:sklearn.exceptions.ConvergenceWarning")
every_case = pytest.mark.parametrize(("algorithm", "arguments"), CASES, ids=lambda value: str(value))


def test_threshold_is_the_lasso_of_orthonormal_atoms():
    data = samples(30)
    codes = code(data, np.eye(M), "threshold", alpha=0.4, positive=True)
    np.testing.assert_allclose(codes, np.maximum(data - 0.4, 0), atol=1e-15)
    np.testing.assert_allclose(codes, code(data, np.eye(M), "lasso", alpha=0.4, positive=True), atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@every_case
@unmet
def test_samples_away_from_all_atoms_have_no_codes(algorithm, arguments, dtype):
    data, dictionary = (array.astype(dtype) for array in AWAY)
    assert not code(data, dictionary, algorithm, positive=True, **arguments).any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("missing", [False, True])
@every_case
@unmet
def test_sparse_codes_equal_dense_ones(algorithm, arguments, missing, dtype):
    dictionary, data = unit_rows((K, M)).astype(dtype), samples(300).astype(dtype)
    data[7] = 0
    observed = np.random.default_rng(1).random(data.shape) < 0.8 if missing else None
    dense = code(data, dictionary, algorithm, observed, positive=True, n_jobs=1, **arguments)
    assert (dense >= 0).all()
    assert not dense[7].any()
    found = encode_sparse(data, observed, dictionary, algorithm=algorithm, positive=True, n_jobs=2, **arguments)
    np.testing.assert_array_equal(found.toarray(), dense)


@every_case
@unmet
def test_units_do_not_matter(algorithm, arguments):
    dictionary, data = unit_rows((K, M)), samples(20)
    codes = code(data, dictionary, algorithm, positive=True, **arguments)
    moved = {name: value * 2.0**300 if name == "alpha" else value for name, value in arguments.items()}
    again = code(data * 2.0**300, dictionary, algorithm, positive=True, **moved)
    np.testing.assert_array_equal(again, codes * 2.0**300)


@every_case
@pytest.mark.parametrize(
    "dictionary",
    [
        np.vstack([unit_rows((K, M)), unit_rows((K, M))[:6], -unit_rows((K, M))[:3]]),
        np.vstack([np.zeros((2, M)), unit_rows((K, M))]),
        samples(K, 3) @ samples(3, M),
        np.zeros((4, M)),
        -np.ones((1, M)),
    ],
    ids=["duplicates", "zero atoms", "rank 3", "all zero", "one atom"],
)
@unmet
def test_poor_dictionaries(algorithm, arguments, dictionary):
    data = samples(20)
    data[3], data[4] = 0, dictionary[-1]
    codes = code(data, dictionary, algorithm, positive=True, **arguments)
    assert np.isfinite(codes).all()
    assert (codes >= 0).all()
    assert not codes[3].any()
    assert not codes[:, ~dictionary.any(axis=1)].any()
    if algorithm != "threshold":
        assert ((codes != 0).sum(axis=1) <= np.linalg.matrix_rank(dictionary)).all()
        assert (((data - codes @ dictionary) ** 2).sum(axis=1) <= (data**2).sum(axis=1) + 1e-9).all()


def test_a_code_that_rounding_makes_negative_is_zero():
    dictionary = np.array([[-2.0, -2, 1, -2, 2], [-1, 1, 1, -1, 1]])
    codes = code(np.array([[0.0, 1, 1, -1, 2]]), dictionary, "lasso", alpha=0.5, positive=True)
    assert (codes >= 0).all()
    np.testing.assert_allclose(codes, [[0, 0.9]], atol=1e-12)


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_small_integers_never_break_a_coder(data):
    """Small integers produce ties, zeros and dependent atoms."""
    n_features, n_components = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 7))
    rows = st.lists(st.integers(-2, 2), min_size=n_features, max_size=n_features)
    dictionary = np.array(data.draw(st.lists(rows, min_size=n_components, max_size=n_components)), float)
    sample = np.array([data.draw(rows)], float)
    codes = code(sample, dictionary, "lasso", alpha=0.5, positive=True)
    assert violation(sample, codes, dictionary, 0.5) < 1e-7
    best, error = nnls(dictionary.T, sample[0])
    least = code(sample, dictionary, "basis-pursuit", positive=True, warn=False)
    assert (least >= 0).all()
    assert np.linalg.norm(sample - least @ dictionary) <= error + 1e-8
    assert least.sum() <= best.sum() + 1e-8
    greedy = code(sample, dictionary, "omp", n_nonzero_coefs=n_features, positive=True)
    assert (greedy >= 0).all()
    assert np.linalg.norm(sample - greedy @ dictionary) <= np.linalg.norm(sample) + 1e-9


@pytest.mark.parametrize("algorithm", [name for name in CODER_PARAMETERS if name not in NONNEGATIVE])
def test_the_error_for_other_coders_names_those_that_can(algorithm):
    with pytest.raises(ValueError, match=rf'positive_code=True .*"{algorithm}"; use "omp", "lasso", "basis-pursuit"'):
        code(samples(3), unit_rows((K, M)), algorithm, positive=True)
