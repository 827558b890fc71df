"""Every coder against an independent truth, and the properties common to all."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso, orthogonal_mp

from coding import CASES, K, M, code, every_case, fit, lasso_gap, samples, unit_rows
from roadict.coders.half import half_threshold
from roadict.coders.registry import CODER_PARAMETERS, encode


def errors(data, codes, dictionary):
    return np.linalg.norm(data - codes @ dictionary, axis=1) / np.linalg.norm(data, axis=1)


def sparse_signals(n, dictionary, sparsity, seed=0):
    rng = np.random.default_rng([seed, 3])
    codes = np.zeros((n, len(dictionary)))
    for row in codes:
        chosen = rng.choice(len(dictionary), sparsity, replace=False)
        row[chosen] = rng.uniform(1, 2, sparsity) * rng.choice([-1, 1], sparsity)
    return codes @ dictionary, codes


# ---- each coder ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_nonzero_coefs", [1, 4, M])
def test_omp_equals_scikit_learns(n_nonzero_coefs):
    dictionary, data = unit_rows((K, M)), samples(40)
    truth = orthogonal_mp(dictionary.T, data.T, n_nonzero_coefs=n_nonzero_coefs).T
    codes = code(data, dictionary, "omp", n_nonzero_coefs=n_nonzero_coefs)
    np.testing.assert_array_equal(codes != 0, truth != 0)
    np.testing.assert_allclose(codes, truth, rtol=1e-8, atol=1e-10)


def test_omp_by_error_equals_scikit_learns():
    dictionary, data = unit_rows((K, M)), samples(40)
    for sample, codes in zip(data, code(data, dictionary, "omp", epsilon=0.25), strict=True):
        truth = orthogonal_mp(dictionary.T, sample, tol=(0.25 * np.linalg.norm(sample)) ** 2)
        np.testing.assert_allclose(codes, truth, atol=1e-10)


def test_bounds_may_differ_between_samples():
    dictionary, data = unit_rows((K, M)), samples(60)
    bounds = np.linspace(0, 1.2, 60)
    for algorithm in ("omp", "mp", "basis-pursuit"):
        codes = code(data, dictionary, algorithm, epsilon=bounds)
        assert (errors(data, codes, dictionary) <= bounds + 1e-8).all()
        assert not codes[bounds >= 1].any()
    counts = (code(data, dictionary, "omp", epsilon=bounds) != 0).sum(axis=1)
    smaller = code(data, dictionary, "omp", n_nonzero_coefs=int(counts[5]) - 1)[5]
    assert np.linalg.norm(data[5] - smaller @ dictionary) > bounds[5] * np.linalg.norm(data[5])


def test_omp_stops_at_whichever_comes_first():
    dictionary, data = unit_rows((K, M)), samples(40)
    by_error = (code(data, dictionary, "omp", epsilon=0.2) != 0).sum(axis=1)
    both = (code(data, dictionary, "omp", epsilon=0.2, n_nonzero_coefs=5) != 0).sum(axis=1)
    np.testing.assert_array_equal(both, np.minimum(by_error, 5))


@pytest.mark.parametrize("algorithm", ["omp", "mp", "sp", "cosamp", "basis-pursuit", "half"])
def test_sparse_signals_are_coded_exactly(algorithm):
    dictionary = unit_rows((80, 64), seed=5)
    data, truth = sparse_signals(50, dictionary, 4)
    codes = code(data, dictionary, algorithm, **({} if algorithm == "basis-pursuit" else {"n_nonzero_coefs": 4}))
    np.testing.assert_allclose(codes, truth, atol=1e-6)


def test_subspace_pursuit_recovers_more_supports_than_omp():
    dictionary = unit_rows((60, 24))
    data, truth = sparse_signals(200, dictionary, 5)
    found = {a: (code(data, dictionary, a, n_nonzero_coefs=5) != 0) == (truth != 0) for a in ("omp", "sp")}
    assert found["sp"].all(axis=1).sum() > 1.2 * found["omp"].all(axis=1).sum()


def test_matching_pursuit_takes_the_steps_of_its_definition():
    dictionary, data = unit_rows((K, M)), samples(1)[0]
    residual, codes = data.copy(), np.zeros(K)
    while np.linalg.norm(residual) > 0.1 * np.linalg.norm(data):
        best = np.abs(dictionary @ residual).argmax()
        value = dictionary[best] @ residual
        codes[best] += value
        residual = residual - value * dictionary[best]
    np.testing.assert_allclose(code(data[None], dictionary, "mp", epsilon=0.1)[0], codes, atol=1e-12)


def test_matching_pursuit_refines_the_atoms_it_may_use():
    dictionary, data = unit_rows((K, M)), samples(20)
    for sample, codes in zip(data, code(data, dictionary, "mp", n_nonzero_coefs=3), strict=True):
        assert np.count_nonzero(codes) == 3
        np.testing.assert_allclose(codes, fit(sample, dictionary, np.flatnonzero(codes)), atol=1e-9)


@pytest.mark.parametrize(("algorithm", "joined"), [("sp", 1), ("cosamp", 2)])
def test_exchanges_follow_the_definition(algorithm, joined):
    """Add the best atoms for the residual, fit, retain the largest codes (sp: refit), until the residual grows."""
    dictionary, data, sparsity = unit_rows((40, 20)), samples(30, 20), 4
    for sample, found in zip(data, code(data, dictionary, algorithm, n_nonzero_coefs=sparsity), strict=True):
        best, residual = np.zeros(40), sample
        while True:
            more = np.argsort(-np.abs(dictionary @ residual))[: joined * sparsity]
            codes = fit(sample, dictionary, np.union1d(np.flatnonzero(best), more))
            codes[np.argsort(-np.abs(codes))[sparsity:]] = 0
            if algorithm == "sp":
                codes = fit(sample, dictionary, np.flatnonzero(codes))
            left = sample - codes @ dictionary
            if np.linalg.norm(left) >= np.linalg.norm(residual) and best.any():
                break
            best, residual = codes, left
        np.testing.assert_allclose(found, fit(sample, dictionary, np.flatnonzero(best)), atol=1e-10)


@pytest.mark.parametrize("alpha", [1e-4, 0.01, 0.3, 1.0])
def test_lasso_closes_the_gap_and_equals_scikit_learns(alpha):
    dictionary, data = unit_rows((K, M)), samples(40)
    codes = code(data, dictionary, "lasso", alpha=alpha)
    assert lasso_gap(data, codes, dictionary, alpha).max() < 1e-8
    if alpha > 1e-3:
        solver = Lasso(alpha=alpha / M, fit_intercept=False, tol=1e-12, max_iter=100_000)
        np.testing.assert_allclose(codes, solver.fit(dictionary.T, data.T).coef_, atol=1e-6)


def test_lasso_with_atoms_of_any_norm():
    dictionary, data = unit_rows((K, M)) * np.geomspace(0.1, 10, K)[:, None], samples(40)
    codes = code(data, dictionary, "lasso", alpha=0.2)
    assert lasso_gap(data, codes, dictionary, 0.2).max() < 1e-8


def test_lasso_finds_the_same_from_any_start():
    dictionary, data = unit_rows((K, M)), samples(40)
    codes = code(data, dictionary, "lasso", alpha=0.1)
    for start in (codes, samples(40, K, seed=9)):
        again = code(data, dictionary, "lasso", alpha=0.1, start=start)
        np.testing.assert_allclose(again, codes, atol=1e-7)


def smallest_sum(sample, dictionary):
    """Σ|codes| of basis pursuit, by a linear program."""
    doubled = np.vstack([dictionary, -dictionary]).T
    return linprog(np.ones(doubled.shape[1]), A_eq=doubled, b_eq=sample, method="highs").fun


@pytest.mark.parametrize("seed", range(3))
def test_basis_pursuit_equals_a_linear_program(seed):
    dictionary, data = unit_rows((K, M), seed), samples(20, seed=seed)
    codes = code(data, dictionary, "basis-pursuit")
    np.testing.assert_allclose(codes @ dictionary, data, atol=1e-9)
    truth = [smallest_sum(sample, dictionary) for sample in data]
    np.testing.assert_allclose(np.abs(codes).sum(axis=1), truth, rtol=1e-7)


@pytest.mark.parametrize("noise", [1e-4, 1e-7, 1e-10])
def test_basis_pursuit_of_samples_that_are_nearly_sparse(noise):
    dictionary = unit_rows((K, M))
    data = sparse_signals(20, dictionary, 2)[0] + noise * samples(20)
    codes = code(data, dictionary, "basis-pursuit")
    np.testing.assert_allclose(codes @ dictionary, data, atol=1e-6)
    truth = [smallest_sum(sample, dictionary) for sample in data]
    np.testing.assert_allclose(np.abs(codes).sum(axis=1), truth, rtol=1e-6)


@pytest.mark.parametrize("epsilon", [1e-4, 0.05, 0.5, 0.95])
def test_basis_pursuit_with_a_bound_is_a_lasso_on_its_boundary(epsilon):
    dictionary, data = unit_rows((K, M)), samples(30)
    codes = code(data, dictionary, "basis-pursuit", epsilon=epsilon)
    np.testing.assert_allclose(errors(data, codes, dictionary), epsilon, rtol=1e-6)
    residual = data - codes @ dictionary
    products = residual @ dictionary.T
    alpha = np.abs(products).max(axis=1, keepdims=True)
    np.testing.assert_allclose((products * np.sign(codes))[codes != 0], (alpha * (codes != 0))[codes != 0], rtol=1e-5)


def test_basis_pursuit_with_an_unattainable_bound_returns_the_best_fit():
    dictionary, data = unit_rows((5, M)), samples(20)
    truth = np.linalg.lstsq(dictionary.T, data.T)[0].T
    for epsilon in (None, 0.1):
        np.testing.assert_allclose(code(data, dictionary, "basis-pursuit", epsilon=epsilon), truth, atol=1e-8)


@given(st.floats(-20, 20), st.floats(1e-3, 20))
@settings(max_examples=200, deadline=None)
def test_half_thresholding_against_competitors(value, weight):
    def objective(z):
        return (z - value) ** 2 / 2 + weight * np.sqrt(np.abs(z))

    competitors = np.linspace(-abs(value) - 1, abs(value) + 1, 20_001)
    assert objective(half_threshold(value, weight)) <= objective(competitors).min() + 1e-9
    assert objective(half_threshold(value, weight)) <= objective(0.0) + 1e-9


@pytest.mark.parametrize("arguments", [{"alpha": 0.3}, {"n_nonzero_coefs": 3}])
def test_half_thresholding_ends_in_a_fixed_point(arguments):
    dictionary, data = unit_rows((K, M)), samples(20)
    codes = code(data, dictionary, "half", **arguments)
    assert (codes != 0).any(axis=1).mean() > 0.8
    step = 0.99 / np.linalg.norm(dictionary, 2) ** 2
    points = codes + step * (data - codes @ dictionary) @ dictionary.T
    if "alpha" in arguments:
        weights = np.full(len(data), arguments["alpha"] * step)
    else:
        assert ((codes != 0).sum(axis=1) <= 3).all()
        following = np.sort(np.abs(points), axis=1)[:, -4]
        weights = (4.00001 * following) ** 1.5 / np.sqrt(54) / 2  # what is at most 54^(1/3)/4 (2 w)^(2/3) becomes zero
    again = [[half_threshold(p, w) for p in row] for row, w in zip(points, weights, strict=True)]
    np.testing.assert_allclose(again, codes, atol=1e-7 if "alpha" in arguments else 1e-5)


def test_half_thresholding_lowers_its_objective_below_the_lasso_codes():
    dictionary, data = unit_rows((K, M)), samples(40)

    def objective(codes):
        return ((data - codes @ dictionary) ** 2).sum(axis=1) / 2 + 0.3 * np.sqrt(np.abs(codes)).sum(axis=1)

    found = objective(code(data, dictionary, "half", alpha=0.3))
    assert (found <= (data**2).sum(axis=1) / 2 + 1e-12).all()  # zero codes
    for alpha in (0.01, 0.1, 0.5):
        assert (found < objective(code(data, dictionary, "lasso", alpha=alpha))).mean() > 0.9


@pytest.mark.parametrize("missing", [False, True])
def test_half_thresholding_does_not_stay_at_a_start_of_zeros(missing):
    """Zero is a local minimum, however poor."""
    dictionary, data = unit_rows((K, M)), samples(40)
    observed = np.random.default_rng(1).random(data.shape) < 0.8 if missing else None
    start = np.zeros((len(data), K))
    start[::4, 0] = 1
    expected, found = (
        encode(data, observed, dictionary, algorithm="half", alpha=0.8, start=given) for given in (None, start)
    )
    assert expected.any(axis=1).mean() > 0.8
    np.testing.assert_allclose(np.delete(found, np.s_[::4], axis=0), np.delete(expected, np.s_[::4], axis=0), atol=1e-9)


def test_threshold_shrinks_correlations():
    dictionary, data = unit_rows((K, M)), samples(5)
    products = data @ dictionary.T
    truth = np.where(products > 0.5, products - 0.5, np.where(products < -0.5, products + 0.5, 0))
    np.testing.assert_allclose(code(data, dictionary, "threshold", alpha=0.5), truth, atol=1e-12)


@pytest.mark.parametrize("algorithm", ["lasso", "threshold"])
def test_default_weight_is_a_tenth_of_the_one_that_zeroes_all_codes(algorithm):
    dictionary, data = unit_rows((K, M)), samples(5)
    for sample in data:
        alpha = 0.1 * np.abs(dictionary @ sample).max()
        truth = code(sample[None], dictionary, algorithm, alpha=alpha)
        np.testing.assert_allclose(code(sample[None], dictionary, algorithm), truth, atol=1e-8)


# ---- all coders ----------------------------------------------------------------------------------------------------


def test_every_coder_has_a_case():
    assert {algorithm for algorithm, _ in CASES} == set(CODER_PARAMETERS)


@every_case
def test_missing_entries_are_ignored(algorithm, arguments):
    dictionary, data = unit_rows((K, M)), samples(20)
    observed = np.random.default_rng(4).random(data.shape) < 0.7
    observed[:, 0] = True
    filled = np.where(observed, data, 7.0)
    codes = code(filled, dictionary, algorithm, observed, **arguments)
    for sample, seen, found in zip(data, observed, codes, strict=True):
        truth = code(sample[None, seen], dictionary[:, seen], algorithm, **arguments)[0]
        if algorithm == "half":
            # Its step depends on the whole dictionary and determines which fixed point is found.
            assert np.isfinite(found).all()
        else:
            np.testing.assert_allclose(found, truth, atol=1e-7)


@every_case
def test_threads_and_other_samples_do_not_matter(algorithm, arguments):
    dictionary, data = unit_rows((K, M)), sparse_signals(300, unit_rows((K, M)), 2)[0] + 0.1 * samples(300)
    for observed in (None, samples(300, seed=7) < 1):
        codes = code(data, dictionary, algorithm, observed, n_jobs=1, **arguments)
        np.testing.assert_array_equal(code(data, dictionary, algorithm, observed, n_jobs=2, **arguments), codes)
        part = None if observed is None else observed[250:255]
        np.testing.assert_array_equal(code(data[250:255], dictionary, algorithm, part, **arguments), codes[250:255])


@every_case
@pytest.mark.parametrize(
    ("data_power", "atom_power"), [(900, 0), (-960, 0), (0, 40), (900, 60), (-900, -60), (1, 1), (3, -1)]
)
def test_unit_of_data_and_atoms_does_not_matter(algorithm, arguments, data_power, atom_power):
    dictionary, data = unit_rows((K, M)), samples(10)
    codes = code(data, dictionary, algorithm, **arguments)
    arguments = dict(arguments)
    if "alpha" in arguments:
        power = 1.5 * data_power + 0.5 * atom_power if algorithm == "half" else data_power + atom_power
        if abs(power) > 1000:
            pytest.skip("the weight is out of the range of floats")
        arguments["alpha"] *= 2.0**power
    scaled = code(np.ldexp(data, data_power), np.ldexp(dictionary, atom_power), algorithm, **arguments)
    power = data_power + atom_power if algorithm == "threshold" else data_power - atom_power
    np.testing.assert_array_equal(np.ldexp(scaled, -power), codes)


@pytest.mark.parametrize("algorithm", ["omp", "mp", "sp", "cosamp"])
def test_greedy_coders_choose_by_direction(algorithm):
    dictionary, data = unit_rows((K, M)), samples(20)
    norms = np.geomspace(1e-8, 1e8, K)
    codes = code(data, dictionary, algorithm, n_nonzero_coefs=3)
    again = code(data, dictionary * norms[:, None], algorithm, n_nonzero_coefs=3)
    np.testing.assert_allclose(again * norms, codes, atol=1e-9)


@every_case
def test_float32_stays_and_agrees(algorithm, arguments):
    dictionary, data = unit_rows((K, M)).astype(np.float32), samples(20).astype(np.float32)
    codes = code(data, dictionary, algorithm, **arguments)
    assert codes.dtype == np.float32
    doubles = code(data.astype(np.float64), dictionary.astype(np.float64), algorithm, **arguments)
    if algorithm in ("omp", "lasso"):  # the arithmetic is float32, too
        np.testing.assert_array_equal(codes != 0, doubles != 0)
        np.testing.assert_allclose(codes, doubles, atol=2e-5)
    else:
        np.testing.assert_array_equal(codes, doubles.astype(np.float32))


@every_case
@pytest.mark.parametrize(
    "dictionary",
    [
        np.vstack([unit_rows((K, M)), unit_rows((K, M))[:6], -unit_rows((K, M))[:3]]),
        np.vstack([unit_rows((K, M)), np.zeros((2, M))]),
        samples(K, 3) @ samples(3, M),
        unit_rows((3, M)),
        np.eye(M)[:, ::-1],
        np.zeros((4, M)),
        np.ones((1, M)),
    ],
    ids=["duplicates", "zero atoms", "rank 3", "few atoms", "orthonormal", "all zero", "one atom"],
)
@pytest.mark.parametrize("more", [0, 10, 1000])
def test_poor_dictionaries(algorithm, arguments, dictionary, more):
    data = samples(20)
    data[3] = 0
    data[4] = dictionary[-1]
    arguments = {name: value + more * (name == "n_nonzero_coefs") for name, value in arguments.items()}
    with warnings.catch_warnings():
        if algorithm == "half":
            warnings.simplefilter("ignore", ConvergenceWarning)  # hardly sparse: plain gradient steps
        codes = code(data, dictionary, algorithm, **arguments)
    assert np.isfinite(codes).all()
    assert not codes[3].any()
    assert not codes[:, ~dictionary.any(axis=1)].any()
    rank = np.linalg.matrix_rank(dictionary)
    if algorithm in ("omp", "sp", "cosamp", "basis-pursuit", "lasso"):
        assert ((codes != 0).sum(axis=1) <= rank).all()
    assert np.linalg.norm(data[4] - codes[4] @ dictionary) <= np.linalg.norm(data[4]) + 1e-9 or algorithm == "threshold"


@every_case
def test_zero_atoms_change_nothing(algorithm, arguments):
    dictionary, data = unit_rows((K, M)), samples(20)
    codes = code(data, np.vstack([np.zeros((2, M)), dictionary]), algorithm, **arguments)
    np.testing.assert_allclose(codes[:, 2:], code(data, dictionary, algorithm, **arguments), atol=1e-9)


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_small_integers_never_break_a_coder(data):
    """Small integers produce ties, zeros and dependent atoms."""
    n_features, n_components = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 7))
    entries = st.integers(-2, 2)
    rows = st.lists(entries, min_size=n_features, max_size=n_features)
    dictionary = np.array(data.draw(st.lists(rows, min_size=n_components, max_size=n_components)), float)
    signal = np.array([data.draw(rows)], float)
    observed = np.array([data.draw(st.lists(st.booleans(), min_size=n_features, max_size=n_features))])
    algorithm, arguments = data.draw(st.sampled_from([case for case in CASES if case[0] != "half"]))
    codes = code(signal, dictionary, algorithm, observed, **arguments)
    assert np.isfinite(codes).all()
    left = np.where(observed, signal - codes @ dictionary, 0)
    if algorithm != "threshold":
        assert np.linalg.norm(left) <= np.linalg.norm(np.where(observed, signal, 0)) + 1e-9
    if algorithm == "basis-pursuit" and not arguments:
        best = np.linalg.lstsq((dictionary * observed).T, np.where(observed, signal, 0)[0])[0]
        assert np.linalg.norm(left) <= np.linalg.norm(np.where(observed, signal - best @ dictionary, 0)) + 1e-8
        assert np.abs(codes).sum() <= np.abs(best).sum() + 1e-8


def test_no_sample_at_all():
    for algorithm in CODER_PARAMETERS:
        assert code(samples(0), unit_rows((K, M)), algorithm).shape == (0, K)


@pytest.mark.parametrize(
    ("algorithm", "arguments", "message"),
    [
        ("omp", {"alpha": 0.1}, 'alpha=0.1 is not used by algorithm="omp", which takes n_nonzero_coefs and epsilon'),
        ("sp", {"epsilon": 0.1}, 'epsilon=0.1 is not used by algorithm="sp", which takes n_nonzero_coefs;'),
        ("omp", {"start": np.zeros((20, K))}, 'start is not used by algorithm="omp"'),
        ("half", {"alpha": 0.1, "n_nonzero_coefs": 2}, "both set the sparsity"),
    ],
)
def test_unused_arguments_are_rejected(algorithm, arguments, message):
    with pytest.raises(ValueError, match=message):
        code(samples(20), unit_rows((K, M)), algorithm, **arguments)


def test_matching_pursuit_meets_its_bound_with_more_atoms_than_features():
    """Near duplicates: the first few atoms do not span the space, and refining them alone does not suffice."""
    rng = np.random.default_rng(0)
    dictionary = np.tile(rng.standard_normal((8, 6)), (20, 1)) + 0.01 * rng.standard_normal((160, 6))
    data = rng.standard_normal((50, 6))
    codes = encode(data, None, dictionary, algorithm="mp", epsilon=0.05)
    errors = np.linalg.norm(data - codes @ dictionary, axis=1) / np.linalg.norm(data, axis=1)
    assert errors.max() <= 0.05


# ---- Lasso and OMP on a support ------------------------------------------------------------------------------------
