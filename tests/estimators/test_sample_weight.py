"""Weights of samples: weight two is the sample twice, weight zero its removal."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from roadict import ROAD, ROADCV, AlternatingDictionaryLearning, Checkpoint
from roadict.checkpoints.schedule import RunStoppedError
from roadict.metrics import dictionary_error
from roadict.road.hidden import excess, hidden_curve, hidden_entries
from roadict.road.plan import Parameters, make_plan
from roadict.synthetic import planted

K = 10
RNG = np.random.default_rng(7)
X = planted(90, 8, K, sparsity=2, snr_db=25, random_state=0).data
EXACT = planted(90, 8, K, sparsity=2, random_state=0).data
COUNTS = RNG.integers(0, 4, len(X))
ROWS = np.repeat(np.arange(len(X)), COUNTS)
START, CODES = RNG.standard_normal((K, 8)), 0.3 * RNG.standard_normal((len(X), K))
FORMS = {
    "exact": {"epsilon": 0.0, "rho": 20.0},
    "bounded": {"epsilon": 0.1, "rho": 10.0},
    "lasso": {"formulation": "lasso", "alpha": 0.1, "rho": 10.0},
    "inexact": {"formulation": "inexact", "beta": (200.0, 300.0, 250.0), "rho": (210.0, 310.0, 260.0)},
}
FRACTIONS = RNG.uniform(0.2, 4.0, len(X))
SOME_ZERO = FRACTIONS * (np.arange(len(X)) % 5 > 0)

pytestmark = pytest.mark.filterwarnings(f"ignore::{ConvergenceWarning.__module__}.{ConvergenceWarning.__name__}")


def model(form, rows=None, **changes):
    codes = CODES if rows is None else CODES[rows]
    settings = {"max_iter": 400, "engine": "numba", "dict_init": START, "code_init": codes} | FORMS[form] | changes
    return ROAD(K, **settings)


def samples_of(form, missing):
    data = (EXACT if form == "exact" else X).copy()
    if missing:
        data[np.random.default_rng(1).random(data.shape) < 0.1] = np.nan
    return data


def assert_same_fit(ours, theirs, rows, tolerance=1e-8):
    """``rows``: the sample of ours that each sample of theirs is a copy of."""
    assert ours.n_iter_ == theirs.n_iter_
    assert ours.stop_reason_ == theirs.stop_reason_
    np.testing.assert_allclose(ours.components_, theirs.components_, atol=tolerance)
    np.testing.assert_allclose(ours.codes_[rows], theirs.codes_, atol=tolerance)
    for name in ("objective_", "error_", "transform_alpha_"):
        assert getattr(ours, name) == pytest.approx(getattr(theirs, name), rel=tolerance, abs=1e-12), name
    np.testing.assert_allclose(ours.atom_usage_, theirs.atom_usage_, atol=tolerance)
    for name in ("objective", "primal", "dual", "error", "rho"):
        np.testing.assert_allclose(ours.history_[name], theirs.history_[name], rtol=1e-6, atol=tolerance, err_msg=name)


@pytest.mark.parametrize("engine", ["reference", "numba"])
@pytest.mark.parametrize(
    ("form", "missing"),
    [(form, missing) for form in FORMS for missing in (False, True) if form != "inexact" or not missing],
)
def test_weights_are_copies_and_zero_is_removal(form, missing, engine):
    data, changes = samples_of(form, missing), {"engine": engine, "missing_values": np.nan if missing else None}
    changes["max_iter"] = 400 if engine == "numba" else 50
    ours = model(form, **changes).fit(data, sample_weight=COUNTS)
    theirs = model(form, ROWS, **changes).fit(data[ROWS])
    assert_same_fit(ours, theirs, ROWS)
    assert ours.score(data, sample_weight=COUNTS) == pytest.approx(theirs.score(data[ROWS]), rel=1e-8)
    assert ours.score(data, sample_weight=COUNTS) != pytest.approx(ours.score(data), rel=1e-3)


@pytest.mark.parametrize("form", FORMS)
def test_float32_follows_its_copies(form):
    data = samples_of(form, False).astype(np.float32)
    ours = model(form, max_iter=30).fit(data, sample_weight=COUNTS)
    theirs = model(form, ROWS, max_iter=30).fit(data[ROWS])
    assert ours.components_.dtype == ours.codes_.dtype == np.float32
    np.testing.assert_allclose(ours.components_, theirs.components_, atol=1e-3)
    assert ours.objective_ == pytest.approx(theirs.objective_, rel=1e-3)


@pytest.mark.parametrize("form", ["bounded", "lasso"])
def test_fractional_weights_are_a_stationary_point_of_the_weighted_problem(form):
    """Σw|x| (+ Σw r²/2α, or subject to Σw r² ≤ ε² Σw y²): conditions on the codes of each sample and on the atoms."""
    weights = FRACTIONS
    fitted = model(form, max_iter=4000, tol=1e-7).fit(X, sample_weight=weights)
    atoms, codes = fitted.components_, fitted.codes_
    residual = X - codes @ atoms
    error = np.sqrt((weights[:, None] * residual**2).sum() / (weights[:, None] * X**2).sum())
    assert fitted.error_ == pytest.approx(error, rel=1e-9)
    objective = (weights[:, None] * np.abs(codes)).sum()
    if form == "lasso":
        objective += (weights[:, None] * residual**2).sum() / 0.2
    else:
        assert error == pytest.approx(0.1, rel=1e-3)
    assert fitted.objective_ == pytest.approx(objective, rel=1e-9)
    assert fitted.history_["objective"][-1] == pytest.approx(objective, rel=1e-3)
    # One Lasso weight for all samples, whatever their own weights.
    correlations, used = residual @ atoms.T, np.abs(codes) > 1e-8
    alpha = float(np.median(np.abs(correlations[used])))
    np.testing.assert_allclose(correlations[used], alpha * np.sign(codes[used]), rtol=1e-5)
    assert np.abs(correlations).max() < alpha * (1 + 1e-5)
    # Atoms: the gradient Σ w x r has no component along the sphere.
    gradient = (weights[:, None] * codes).T @ residual
    tangent = gradient - (gradient * atoms).sum(axis=1, keepdims=True) * atoms
    plain = codes.T @ residual
    plain_tangent = plain - (plain * atoms).sum(axis=1, keepdims=True) * atoms
    assert np.linalg.norm(tangent) < 2e-3 * np.linalg.norm(gradient)
    assert np.linalg.norm(plain_tangent) > 2e-2 * np.linalg.norm(plain)


@pytest.mark.parametrize("form", ["bounded", "lasso"])
def test_all_weights_times_a_number_change_the_objective_only(form):
    weights = FRACTIONS
    ours, theirs = (model(form).fit(X, sample_weight=factor * weights) for factor in (1.0, 1e-3))
    np.testing.assert_allclose(ours.components_, theirs.components_, atol=1e-8)
    np.testing.assert_allclose(ours.codes_, theirs.codes_, atol=1e-8)
    assert ours.objective_ == pytest.approx(1e3 * theirs.objective_, rel=1e-8)


@pytest.mark.parametrize("given", [np.ones(len(X)), 1, np.float32(1)])
def test_weights_of_one_are_no_weights_to_the_bit(given):
    ours, theirs = (ROAD(K, max_iter=60, tol=1e-2, random_state=0).fit(X, sample_weight=w) for w in (given, None))
    assert np.array_equal(ours.codes_, theirs.codes_)


def test_the_order_of_the_samples_does_not_matter():
    order, weights = np.random.default_rng(2).permutation(len(X)), SOME_ZERO
    ours = model("bounded").fit(X, sample_weight=weights)
    theirs = model("bounded", order).fit(X[order], sample_weight=weights[order])
    assert_same_fit(ours, theirs, order)


# ---------------------------------------------------------------- samples of weight zero


@pytest.mark.parametrize("form", FORMS)
def test_samples_of_weight_zero_change_nothing_and_get_codes(form):
    data = samples_of(form, False)
    out = np.arange(len(data)) % 4 == 0
    outliers = np.where(out[:, None], 50 * np.random.default_rng(3).standard_normal(data.shape), data)
    ours = model(form, max_iter=60).fit(outliers, sample_weight=~out)
    theirs = model(form, ~out, max_iter=60).fit(data[~out])
    assert np.array_equal(ours.components_, theirs.components_)
    assert np.array_equal(ours.codes_[~out], theirs.codes_)
    assert np.array_equal(ours.atom_usage_, theirs.atom_usage_)
    own, atoms = ours.codes_[out], ours.components_
    residual = outliers[out] - own @ atoms
    error = np.linalg.norm(residual) / np.linalg.norm(outliers[out])
    if form == "exact":
        assert error < 1e-9
    elif form == "bounded":
        assert 0.099 < error <= 0.1
    else:
        alpha = ours.transform_alpha_
        assert np.abs(residual @ atoms.T).max() == pytest.approx(alpha, rel=1e-4)


def test_missing_entries_in_samples_of_weight_zero_do_not_count():
    data, weights = X.copy(), np.ones(len(X))
    data[0, 0], weights[0] = np.nan, 0.0
    ours = model("inexact", missing_values=np.nan, max_iter=50).fit(data, sample_weight=weights)
    theirs = model("inexact", np.arange(1, len(X)), max_iter=50).fit(X[1:])  # which supports no missing values
    assert np.array_equal(ours.components_, theirs.components_)
    assert np.isfinite(ours.codes_).all()


# ---------------------------------------------------------------- defaults


@pytest.mark.parametrize("snr_db", [None, 20], ids=["exact", "noisy"])
def test_the_recovery_is_alike_with_defaults(snr_db):
    truth = planted(240, 8, K, sparsity=2, snr_db=snr_db, random_state=3)
    counts = np.random.default_rng(4).integers(1, 4, len(truth.data))
    rows = np.repeat(np.arange(len(counts)), counts)
    ours = ROAD(K, random_state=0).fit(truth.data, sample_weight=counts)
    theirs = ROAD(K, random_state=0).fit(truth.data[rows])
    bound = 1e-3 if snr_db is None else 0.01
    assert dictionary_error(ours.components_, truth.dictionary) < bound
    assert dictionary_error(theirs.components_, truth.dictionary) < bound
    assert (ours.epsilon_ == 0) == (theirs.epsilon_ == 0) == (snr_db is None)
    if snr_db is None:
        assert ours.objective_ == pytest.approx(theirs.objective_, rel=0.05)


def test_weights_suppress_samples_of_another_source():
    truth, other = (planted(200, 8, K, sparsity=2, random_state=seed) for seed in (5, 6))
    data, weights = np.vstack([truth.data, other.data]), np.repeat([1.0, 1e-6], 200)
    fitted = ROAD(K, epsilon=0.01, random_state=0).fit(data, sample_weight=weights)
    assert dictionary_error(fitted.components_, truth.dictionary) < 0.01


def test_the_noise_level_is_that_of_the_samples_that_count():
    quiet, loud = (planted(200, 8, K, sparsity=2, snr_db=snr, random_state=5).data for snr in (30, 5))
    data = np.vstack([quiet, loud])
    for form in ("constrained", "lasso"):
        settings = {"formulation": form, "max_iter": 300, "n_init": 1, "random_state": 0}
        ours = ROAD(K, **settings).fit(data, sample_weight=np.repeat([1.0, 1e-9], 200))
        alone, plain = ROAD(K, **settings).fit(quiet), ROAD(K, **settings).fit(data)
        for name in ("transform_alpha_",) if form == "lasso" else ("epsilon_", "transform_alpha_"):
            found, expected, other = (getattr(each, name) for each in (ours, alone, plain))
            assert abs(found - expected) < 0.3 * abs(other - expected), name


def test_a_last_step_starts_from_codes_with_their_weights():
    seen = {}
    fitted = ROAD(K, epsilon=0.0, n_init=1, tol=1e-2, random_state=0)
    for snapshot in fitted.iter_fit(X, sample_weight=FRACTIONS):
        seen.setdefault(snapshot.stage, []).append(np.abs(snapshot.codes).sum())
    assert seen["last step"][0] == pytest.approx(seen["search"][-1], rel=0.1)


def test_copies_of_a_sample_hide_the_same_entries():
    rng = np.random.default_rng(8)
    rows = rng.permutation(np.repeat(np.arange(len(X)), 3))
    data = np.ascontiguousarray(X[rows])
    hidden = hidden_entries(data, None, np.random.default_rng(1))
    single = hidden_entries(X, None, np.random.default_rng(1))
    assert np.array_equal(hidden, single[rows])
    assert len(np.unique(single, axis=0)) > 4
    roots = np.sqrt(rng.uniform(0.1, 5.0, len(X)))[:, None]
    assert np.array_equal(hidden_entries(X * roots, None, np.random.default_rng(1)), single)


def test_hidden_entries_are_weighed_like_copies():
    atoms = START / np.linalg.norm(START, axis=1, keepdims=True)
    hidden, weights, counts = hidden_entries(X, None, np.random.default_rng(1)), COUNTS[COUNTS > 0].astype(float), ROWS
    used = COUNTS > 0
    ours = hidden_curve(X[used], ~hidden[used], hidden[used], atoms, 1.0, sample_weight=weights)
    theirs = hidden_curve(X[counts], ~hidden[counts], hidden[counts], atoms, 1.0)
    for name in ("weights", "errors", "nonzeros", "scale"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-10, err_msg=name)
    ours, theirs = excess(ours.misses, sample_weight=weights), excess(theirs.misses)
    np.testing.assert_allclose(ours.sums, theirs.sums, rtol=1e-10)
    np.testing.assert_allclose(ours.over, theirs.over, atol=1e-10)


def test_a_standard_error_does_not_depend_on_the_unit_of_the_weights():
    """It is that of a weighted sum of independent samples, from draws of them."""
    rng = np.random.default_rng(9)
    weights, step = rng.uniform(0.1, 3.0, 4000), rng.normal(2.0, 1.0, 4000)
    rows = np.stack([2 + step, np.full(4000, 2.0)]) * weights
    first, second = excess(rows, sample_weight=weights), excess(1e-3 * rows, sample_weight=1e-3 * weights)
    worse = int(np.argmax(first.over))
    draws = [np.sum(weights * rng.normal(2.0, 1.0, 4000)) for _ in range(500)]
    assert first.standard_error[worse] == pytest.approx(np.std(draws), rel=0.1)
    np.testing.assert_allclose(second.standard_error, 1e-3 * first.standard_error, rtol=1e-9)


def test_automatic_parameters_follow_copies():
    weights = COUNTS[COUNTS > 0].astype(float)
    for form in ("constrained", "lasso", "inexact"):
        ours, theirs = (
            make_plan(data, None, 5, Parameters(formulation=form), weights=given)
            for data, given in ((X[COUNTS > 0], weights), (X[ROWS], None))
        )
        for name in ("norm", "bound", "alpha"):
            expected = (
                getattr(theirs, name) / (theirs.unit if name == "alpha" else 1) if getattr(theirs, name) else None
            )
            value = getattr(ours, name) / (ours.unit if name == "alpha" else 1) if getattr(ours, name) else None
            assert value is expected is None or value == pytest.approx(expected, rel=1e-9), (form, name)
        rhos = [np.array(plan.problem.rhos) / plan.unit for plan in (ours, theirs)]
        np.testing.assert_allclose(*rhos, rtol=1e-9)


def test_scaled_samples_carry_their_weights():
    """The search on samples of equal norm: lengths divide data without weights, weights multiply on top."""
    weights = FRACTIONS
    plan = make_plan(EXACT, None, K, Parameters(), weights=weights)
    norms = np.linalg.norm(plan.problem.data, axis=1)
    np.testing.assert_allclose(norms / np.sqrt(weights), norms[0] / np.sqrt(weights[0]), rtol=1e-12)
    restored = plan.unweighted(plan.last_step().problem.data) * plan.unit
    np.testing.assert_allclose(restored, EXACT, rtol=1e-12, atol=1e-12)


# ---------------------------------------------------------------- everything around a fit


def test_snapshots_have_codes_without_weights():
    weights = FRACTIONS
    *_, last = (snapshot.codes for snapshot in model("bounded").iter_fit(X, sample_weight=weights))
    fitted = model("bounded").fit(X, sample_weight=weights)
    np.testing.assert_allclose(np.abs(last).sum(), np.abs(fitted.codes_).sum(), rtol=0.02)
    annealed = ROAD(K, epsilon=0.0, max_iter=3, n_init=1, random_state=0)  # the search scales samples to equal norm
    *_, last = (snapshot.codes @ snapshot.dictionary for snapshot in annealed.iter_fit(EXACT, weights))
    shares = np.linalg.norm(last, axis=1) / np.linalg.norm(EXACT, axis=1)
    assert 0.5 < shares.min() < shares.max() < 2


def test_a_checkpoint_is_tied_to_its_weights(tmp_path):
    weights = SOME_ZERO

    def fit(given, stop=None):
        return model("bounded", checkpoint=Checkpoint(tmp_path, every=0, stop=stop)).fit(X, sample_weight=given)

    polls = iter(range(1000))
    with pytest.raises(RunStoppedError):
        fit(weights, lambda: 15 if next(polls) > 40 else 0)
    with pytest.raises(ValueError, match=r"sample_weight: '.*' there, '.*' here"):
        fit(2 * weights)
    with pytest.raises(ValueError, match=r"sample_weight: '.*' there, None here"):
        fit(None)
    resumed, unbroken = fit(weights), model("bounded").fit(X, sample_weight=weights)
    assert np.array_equal(resumed.codes_, unbroken.codes_)
    assert resumed.history_["objective"].tolist() == unbroken.history_["objective"].tolist()


@pytest.mark.parametrize("form", ["bounded", "lasso"])
def test_ranks_share_the_weights_like_the_samples(on_ranks, form):
    weights = np.where(np.arange(len(X)) < 40, SOME_ZERO, 1.0)
    alone = model(form).fit(X, sample_weight=weights)

    def work(comm):
        part = slice(0, 40) if comm.rank == 0 else slice(40, None)
        own = weights[part] if comm.rank == 0 else None  # the second rank's are all 1
        return model(form, part, n_jobs=1).fit(X[part], sample_weight=own)

    fits = on_ranks(2, work)
    for fitted in fits:
        np.testing.assert_allclose(fitted.components_, alone.components_, atol=1e-8)
        assert fitted.objective_ == pytest.approx(alone.objective_, rel=1e-8)
        np.testing.assert_allclose(fitted.atom_usage_, alone.atom_usage_, atol=1e-12)
    np.testing.assert_allclose(np.vstack([fitted.codes_ for fitted in fits]), alone.codes_, atol=1e-7)


def test_road_cv_weighs_the_choice_and_the_fit():
    truth, other = (planted(300, 8, n, sparsity=2, snr_db=30, random_state=seed) for n, seed in ((8, 1), (14, 2)))
    data = np.vstack([truth.data, other.data])
    weights = np.repeat([1.0, 0.0], 300)
    ours = ROADCV([6, 8, 10, 14], n_splits=1, random_state=0).fit(data, sample_weight=weights)
    theirs = ROADCV([6, 8, 10, 14], n_splits=1, random_state=0).fit(truth.data)
    assert ours.n_components_ == theirs.n_components_ == 8
    assert np.array_equal(ours.components_, theirs.components_)
    assert ours.codes_.shape == (600, 8)
    nearly = ROADCV([6, 8, 10, 14], n_splits=1, random_state=0).fit(data, sample_weight=np.repeat([1.0, 1e-8], 300))
    assert nearly.n_components_ == 8
    assert dictionary_error(nearly.components_, truth.dictionary) < 0.01


BAD = {
    "a negative weight": (
        [-1.0] + [1.0] * 89,
        r"sample_weight\[0\]=-1 must be a finite number of at least 0; pass 0 to",
    ),
    "NaN": ([1.0] * 89 + [np.nan], r"sample_weight\[89\]=nan must be a finite number of at least 0"),
    "infinity": (np.inf, r"sample_weight\[0\]=inf must be"),
    "another length": (np.ones(91), r"sample_weight has shape \(91,\), but there are 90 samples; pass one number, or"),
    "a matrix": (np.ones((90, 1)), r"sample_weight has shape \(90, 1\)"),
    "text": (["heavy"] * 90, "sample_weight has dtype .*; it must hold real numbers"),
    "all zero": (np.zeros(90), "sample_weight is above zero for 0 of 90 samples; a fit needs at least 2: pass more"),
    "a zero": (0, "sample_weight is above zero for 0 of 90 samples"),
    "one sample": (np.arange(90) == 7, "sample_weight is above zero for 1 of 90 samples"),
}


@pytest.mark.parametrize("kind", [ROAD, ROADCV])
@pytest.mark.parametrize("given", BAD)
def test_bad_weights_are_refused_with_value_bound_and_remedy(kind, given):
    weights, message = BAD[given]
    with pytest.raises(ValueError, match=message):
        kind().fit(X, sample_weight=weights)


def test_road_cv_needs_ten_samples_that_count():
    with pytest.raises(ValueError, match="X has 9 samples of weight above zero"):
        ROADCV().fit(X, sample_weight=np.arange(len(X)) < 9)


def test_weights_beyond_float32_are_refused():
    with pytest.raises(ValueError, match=r"sample_weight reaches 1e\+60, beyond 4.3e\+09 for float32; divide all"):
        ROAD(K).fit(X.astype(np.float32), sample_weight=1e60)


def test_two_stage_methods_refuse_weights():
    with pytest.raises(ValueError, match="two-stage methods take no sample_weight; use ROAD"):
        list(AlternatingDictionaryLearning(K, n_nonzero_coefs=2).iter_fit(X, sample_weight=np.ones(len(X))))
