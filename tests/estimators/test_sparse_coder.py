"""SparseCoder: use, and error messages."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import sparse_encode
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bad_input.small import changed, pattern
from roadict import ROAD, AlternatingDictionaryLearning, SparseCoder, load
from roadict.coders.registry import CODER_PARAMETERS, NONNEGATIVE

N, M, K = 30, 6, 8
RNG = np.random.default_rng(0)
ATOMS, X = RNG.standard_normal((K, M)), RNG.standard_normal((N, M))
HOLES = np.where(RNG.random((N, M)) < 0.2, np.nan, X)
HOLES[0, 0] = np.nan


# ---- use -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", CODER_PARAMETERS)
def test_codes_and_back_with_defaults(algorithm):
    coder = SparseCoder(ATOMS, algorithm=algorithm)
    codes = coder.transform(X)
    assert codes.shape == (N, K)
    np.testing.assert_allclose(coder.inverse_transform(codes), codes @ ATOMS)
    assert codes.any()
    np.testing.assert_array_equal(coder.fit(X).transform(X), codes)
    np.testing.assert_array_equal(coder.fit_transform(X), codes)
    np.testing.assert_array_equal(clone(coder).transform(X), codes)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(coder)).transform(X), codes)


def test_defaults_are_those_of_the_docstring():
    wide, data = RNG.standard_normal((60, 40)), RNG.standard_normal((5, 40))
    for algorithm in ("omp", "mp", "sp", "cosamp"):
        np.testing.assert_array_equal((SparseCoder(wide, algorithm=algorithm).transform(data) != 0).sum(axis=1), 4)
    bounded = SparseCoder(wide, epsilon=0.1).transform(data)
    assert ((bounded != 0).sum(axis=1) > 4).all()
    np.testing.assert_allclose(SparseCoder(ATOMS, algorithm="basis-pursuit").transform(X) @ ATOMS, X, atol=1e-8)
    for sample in X[:3]:
        alpha = 0.1 * np.abs(ATOMS @ sample).max()
        given = SparseCoder(ATOMS, algorithm="lasso", alpha=alpha).transform([sample])
        np.testing.assert_allclose(SparseCoder(ATOMS, algorithm="lasso").transform([sample]), given, atol=1e-8)


def test_missing_entries():
    codes = SparseCoder(ATOMS, n_nonzero_coefs=2, missing_values=np.nan).transform(HOLES)
    for sample, found in zip(HOLES, codes, strict=True):
        seen = ~np.isnan(sample)
        truth = SparseCoder(ATOMS[:, seen], n_nonzero_coefs=2).transform(sample[None, seen])[0]
        np.testing.assert_allclose(found, truth, atol=1e-10)
    np.testing.assert_array_equal(
        SparseCoder(ATOMS, n_nonzero_coefs=2, missing_values=np.nan).transform(np.ma.masked_invalid(HOLES)), codes
    )


def test_float32_follows_the_data():
    assert SparseCoder(ATOMS).transform(X.astype(np.float32)).dtype == np.float32
    assert SparseCoder(ATOMS.astype(np.float32)).transform(X).dtype == np.float64
    assert SparseCoder(ATOMS).transform(X.astype(np.int64)).dtype == np.float64


def test_in_a_pipeline_with_names():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcdef"))
    pipeline = make_pipeline(StandardScaler(), SparseCoder(ATOMS)).set_output(transform="pandas").fit(frame)
    assert list(pipeline.transform(frame).columns) == [f"sparsecoder{k}" for k in range(K)]
    coder = SparseCoder(ATOMS)
    np.testing.assert_array_equal(coder.transform(frame), coder.transform(X))
    with pytest.raises(ValueError, match="feature names"):
        coder.fit(frame).transform(frame[list("fedcba")])


@pytest.mark.filterwarnings("ignore:.*have no nonnegative codes")
@pytest.mark.parametrize("algorithm", CODER_PARAMETERS)
def test_codes_that_are_not_negative(algorithm):
    coder = SparseCoder(ATOMS, algorithm=algorithm, positive_code=True, missing_values=np.nan)
    assert "positive_code=True" in repr(coder)
    if algorithm not in NONNEGATIVE:
        for act in (coder.fit, coder.transform):
            with pytest.raises(ValueError, match=pattern("positive_code=True", algorithm, "omp", "basis-pursuit")):
                act(X)
        return
    assert (clone(coder).set_params(positive_code=False).transform(HOLES) < 0).any()
    codes = clone(coder).fit_transform(HOLES)
    assert codes.any()
    assert (codes >= 0).all()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(coder)).transform(HOLES), codes)
    np.testing.assert_array_equal(coder.transform(HOLES, sparse=True).toarray(), codes)


def test_integer_dictionaries_and_lists():
    np.testing.assert_array_equal(SparseCoder([[1, 0], [0, 2]]).transform([[0.0, 3.0]]), [[0, 1.5]])


# ---- invalid input -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dictionary", "message"),
    [
        (ATOMS[0], pattern("dictionary", "(6,)", "one atom per row")),
        (ATOMS[None], pattern("dictionary", "(1, 8, 6)")),
        (np.zeros((0, M)), pattern("dictionary", "(0, 6)")),
        (changed((1, 1), np.nan, ATOMS), pattern("dictionary", "NaN")),
        (changed((1, 1), np.inf, ATOMS), pattern("dictionary", "infinity")),
        (ATOMS + 1j, pattern("dictionary", "complex128", "real numbers")),
        ([[1.0, 2.0], [3.0]], pattern("dictionary", "not an array")),
        ("dct", pattern("dictionary", "real numbers")),
        (None, pattern("dictionary", "real numbers")),
        (ATOMS.T, pattern("X has 6 features", "8 features", "dictionary")),
    ],
)
def test_invalid_dictionaries_are_rejected(dictionary, message):
    for act in (SparseCoder.fit, SparseCoder.transform):
        with pytest.raises(ValueError, match=message):
            act(SparseCoder(dictionary), X)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (HOLES, pattern("NaN", "missing_values")),
        (changed((3, 2), np.inf, X), pattern("infinity")),
        (np.zeros((0, M)), pattern("0 sample(s)")),
        (X[:, :4], pattern("X has 4 features", "6 features")),
        (X[0], pattern("2D")),
        (X + 1j, pattern("Complex")),
        (np.array([["a"] * M]), pattern("convert")),
        (np.ma.masked_invalid(HOLES), pattern("masked array")),
    ],
)
def test_invalid_data_are_rejected(data, message):
    for act in (SparseCoder.fit, SparseCoder.transform):
        with pytest.raises(ValueError, match=message):
            act(SparseCoder(ATOMS), data)


def test_samples_without_an_observed_entry():
    with pytest.raises(ValueError, match=pattern("no observed entry", "row 7")):
        SparseCoder(ATOMS, missing_values=np.nan).transform(changed(7, np.nan, HOLES))


@pytest.mark.parametrize(
    ("algorithm", "name", "value"),
    [
        *(("omp", "n_nonzero_coefs", value) for value in (0, -1, 2.0, True, "3", np.nan)),
        *(("lasso", "alpha", value) for value in (-0.1, np.nan, np.inf, "small", [0.1], True)),
        *(("omp", "epsilon", value) for value in (-0.1, 1, 1.5, np.nan, np.inf, "small", [0.1])),
        *(("omp", "missing_values", value) for value in (-1, 0, "nan")),
        *(("omp", "positive_code", value) for value in (None, 1, "yes")),
        *(("omp", "n_jobs", value) for value in (0, 1.5, "all")),
    ],
)
def test_errors_name_parameters_out_of_range_and_their_value(algorithm, name, value):
    for act in (SparseCoder.fit, SparseCoder.transform):
        with pytest.raises(ValueError, match=pattern(f"{name}={value!r}")):
            act(SparseCoder(ATOMS, algorithm=algorithm, **{name: value}), X)


def test_the_error_for_an_unknown_algorithm_lists_the_known_ones():
    for value in ("best", None, ["omp"]):
        with pytest.raises(ValueError, match=pattern(f"algorithm={value!r}", "'omp'", "'threshold'")):
            SparseCoder(ATOMS, algorithm=value).transform(X)


@pytest.mark.parametrize("algorithm", CODER_PARAMETERS)
def test_unused_arguments_are_rejected(algorithm):
    for name, value in {"n_nonzero_coefs": 2, "alpha": 0.1, "epsilon": 0.1}.items():
        coder = SparseCoder(ATOMS, algorithm=algorithm, **{name: value})
        if name in CODER_PARAMETERS[algorithm]:
            assert np.isfinite(coder.transform(X)).all()
        else:
            with pytest.raises(ValueError, match=pattern(f"{name}={value}", f'"{algorithm}"', "leave it out")):
                coder.fit(X)


def test_contradictory_arguments_are_rejected():
    with pytest.raises(ValueError, match=pattern("alpha=0.1", "n_nonzero_coefs=2", "leave one of them out")):
        SparseCoder(ATOMS, algorithm="half", alpha=0.1, n_nonzero_coefs=2).transform(X)


@pytest.mark.parametrize("codes", [X, np.ones((2, K + 1)), np.full((2, K), np.nan), np.ones(K)])
def test_invalid_codes_are_rejected(codes):
    with pytest.raises(ValueError, match=r"codes|NaN|2D"):
        SparseCoder(ATOMS).inverse_transform(codes)


@pytest.mark.parametrize("name", ["lasso_cd", "lasso_lars", "omp", "threshold"])
def test_names_of_scikit_learn_give_its_codes(name):
    """Both minimise ½‖x - codes @ dictionary‖² + alpha Σ|codes|, take as many atoms, or threshold at alpha."""
    rng = np.random.default_rng(0)
    data, atoms = rng.standard_normal((40, 8)), rng.standard_normal((12, 8))
    atoms /= np.linalg.norm(atoms, axis=1, keepdims=True)
    given = {"n_nonzero_coefs": 3} if name == "omp" else {"alpha": 0.3}
    peer = sparse_encode(data, atoms, algorithm=name, max_iter=100_000, **given)
    np.testing.assert_allclose(SparseCoder(atoms, algorithm=name, **given).transform(data), peer, atol=1e-3)


@pytest.mark.parametrize("name", ["lasso_cd", "lasso_lars"])
def test_models_take_the_names_of_scikit_learn(name, tmp_path):
    data = np.random.default_rng(0).standard_normal((30, 6))
    model = ROAD(4, epsilon=0.5, n_init=1, transform_algorithm=name, random_state=0).fit(data)
    assert model.get_params()["transform_algorithm"] == name
    model.save(tmp_path / "model.npz")
    expected = model.sparse_coder("lasso").transform(data)
    for codes in (model.transform(data), load(tmp_path / "model.npz").transform(data)):
        np.testing.assert_array_equal(codes, expected)
    two_stage = [
        AlternatingDictionaryLearning(4, coder=coder, max_iter=3, tol=0, random_state=0).fit(data).components_
        for coder in (name, "lasso")
    ]
    np.testing.assert_array_equal(*two_stage)


def test_least_angles_have_no_equal():
    message = r"transform_algorithm='lars' has no equal here; use 'omp', which takes n_nonzero_coefs too, or 'lasso'"
    with pytest.raises(ValueError, match=message):
        ROAD(4, transform_algorithm="lars").fit(np.eye(6))
