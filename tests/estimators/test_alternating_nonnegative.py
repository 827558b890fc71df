"""AlternatingDictionaryLearning with codes or atoms that must not be negative."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import DictionaryLearning

from bad_input.small import pattern
from roadict import AlternatingDictionaryLearning, load
from roadict.metrics import dictionary_error
from roadict.updates.registry import UPDATES

pytestmark = pytest.mark.filterwarnings("ignore:negative entries")

RNG = np.random.default_rng(0)
ATOMS = np.abs(RNG.standard_normal((12, 16))) * (RNG.random((12, 16)) < 0.4)
ATOMS /= np.linalg.norm(ATOMS, axis=1, keepdims=True)
CODES = np.zeros((400, 12))
for row in CODES:
    row[RNG.choice(12, 2, replace=False)] = RNG.uniform(0.5, 2, 2)
X = CODES @ ATOMS
MIXED = np.random.default_rng(1).standard_normal((120, 8))
CASES = [
    (name, coder, flag)
    for name, update in UPDATES.items()
    for coder in (None, "omp", "lasso", "threshold")
    for flag in update.constraints
]


def learner(**arguments):
    return AlternatingDictionaryLearning(**{"tol": 0, "max_iter": 20, "random_state": 0} | arguments)


@pytest.mark.parametrize(("update", "coder", "flag"), CASES)
def test_constraints_hold_for_data_of_both_signs(update, coder, flag):
    model = learner(n_components=10, update=update, coder=coder, **{flag: True}).fit(MIXED)
    codes = model.transform(MIXED)
    assert np.isfinite(model.codes_).all()
    assert model.codes_.any()
    np.testing.assert_allclose(np.linalg.norm(model.components_, axis=1), 1)
    if flag == "positive_code":
        assert (model.codes_ >= 0).all()
        assert (codes >= 0).all()
        largest = np.take_along_axis(model.components_, np.abs(model.components_).argmax(axis=1)[:, None], axis=1)
        assert (largest < 0).any(), "signs of atoms were turned"
    else:
        assert (model.components_ >= 0).all()
        assert (model.codes_ < 0).any()
    free = learner(n_components=10, update=update, coder=coder).fit(MIXED)
    assert (free.codes_ < 0).any()
    assert (free.components_ < 0).any()


@pytest.mark.parametrize("update", [name for name, update in UPDATES.items() if len(update.constraints) == 2])
def test_nonnegative_atoms_are_recovered(update):
    model = (
        learner(
            n_components=12,
            update=update,
            coder="omp",
            n_nonzero_coefs=2,
            max_iter=100,
            positive_code=True,
            positive_dict=True,
        )
        if "sequential" not in update
        else learner(n_components=12, update=update, alpha=0.05, max_iter=200, positive_code=True, positive_dict=True)
    )
    model.fit(X)
    assert (model.components_ >= 0).all()
    assert (model.codes_ >= 0).all()
    assert dictionary_error(model.components_, ATOMS) < 0.1


@pytest.mark.filterwarnings("ignore:Objective did not converge")
def test_the_objective_is_below_scikit_learns():
    theirs = DictionaryLearning(
        10,
        alpha=0.3,
        positive_code=True,
        positive_dict=True,
        fit_algorithm="cd",
        transform_algorithm="lasso_cd",
        transform_alpha=0.3,
        max_iter=200,
        random_state=0,
    ).fit(MIXED)

    def objective(dictionary, codes):
        return ((MIXED - codes @ dictionary) ** 2).sum() / 2 + 0.3 * np.abs(codes).sum()

    least = objective(theirs.components_, theirs.transform(MIXED))
    given = {"n_components": 10, "update": "sequential", "alpha": 0.3, "positive_code": True, "positive_dict": True}
    for start, share in ((None, 1.02), (theirs.components_, 1.0)):
        model = learner(dict_init=start, max_iter=200, **given).fit(MIXED)
        assert objective(model.components_, model.codes_) <= share * least
        np.testing.assert_allclose(0.3 * model.objective_, objective(model.components_, model.codes_), rtol=1e-9)


def test_atoms_start_without_negative_entries():
    model = learner(n_components=10, update="approximate-ksvd", positive_dict=True, max_iter=1)
    assert all((snapshot.dictionary >= 0).all() for snapshot in model.iter_fit(-np.abs(MIXED)))


def test_parameters_are_saved_and_restored(tmp_path):
    model = learner(n_components=10, positive_code=True, positive_dict=True).fit(MIXED)
    model.save(tmp_path / "model.npz")
    again = load(tmp_path / "model.npz")
    assert again.get_params()["positive_code"] is True
    assert again.get_params()["positive_dict"] is True
    np.testing.assert_array_equal(again.transform(MIXED), model.transform(MIXED))
    assert model.sparse_coder("lasso").positive_code is True
    assert clone(model).positive_dict is True


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"update": "blotless", "positive_code": True}, ("positive_code=True", '"blotless"', '"ksvd"', '"simco"')),
        ({"update": "blotless", "positive_dict": True}, ("positive_dict=True", '"blotless"', '"mod"')),
        ({"update": "simco", "positive_dict": True}, ("positive_dict=True", '"simco"', '"mod"')),
        ({"coder": "mp", "positive_code": True}, ("positive_code=True", '"mp"', '"omp"')),
        ({"positive_code": 1}, ("positive_code=1", "True or False")),
        ({"positive_dict": None}, ("positive_dict=None", "True or False")),
        ({"dict_init": -np.eye(8), "n_components": 8, "positive_dict": True}, ("dict_init", "-1", "nonnegative")),
    ],
)
def test_what_is_not_possible_is_an_error_with_a_remedy(arguments, message):
    with pytest.raises(ValueError, match=pattern(*message)):
        learner(**arguments).fit(MIXED)
