"""Torch tensors in place of arrays."""

import numpy as np
import pytest

from roadict import ROAD, SparseCoder
from roadict.metrics import dictionary_error

torch = pytest.importorskip("torch")

DATA = np.random.default_rng(0).standard_normal((30, 5))
SETTINGS = {"rho": 10.0, "max_iter": 2, "tol": 0, "n_init": 1, "random_state": 0}


@pytest.mark.parametrize(
    "tensor",
    [
        torch.from_numpy(DATA).to_sparse(),
        torch.from_numpy(DATA).to(torch.complex64),
        torch.empty(30, 5, device="meta"),
    ],
    ids=["sparse", "complex", "meta"],
)
def test_a_tensor_without_plain_numbers_is_refused_in_one_line(tensor):
    with pytest.raises(ValueError, match="cannot be used; pass a dense one of real numbers") as raised:
        ROAD(4, **SETTINGS).fit(tensor)
    assert "\n" not in str(raised.value)


def test_sixteen_bit_floats_are_accepted():
    rounded = torch.from_numpy(DATA).to(torch.bfloat16)
    expected = ROAD(4, **SETTINGS).fit(rounded.float().numpy())
    assert np.array_equal(ROAD(4, **SETTINGS).fit(rounded).components_.numpy(), expected.components_)


def test_negated_tensors_and_those_with_gradients_are_accepted():
    given = torch.from_numpy(DATA).requires_grad_()
    model = ROAD(4, **SETTINGS).fit(given)
    atoms = model.components_.clone().requires_grad_()
    again = ROAD(4, dict_init=atoms, **SETTINGS).fit(torch._neg_view(torch.from_numpy(-DATA)))
    assert again.components_.shape == (4, 5)
    assert dictionary_error(atoms, model.components_) == pytest.approx(0, abs=1e-12)
    assert SparseCoder(atoms, algorithm="omp", n_nonzero_coefs=1).transform(DATA).shape == (30, 4)


def test_a_sparse_coder_returns_tensors_for_tensors():
    atoms = np.random.default_rng(1).standard_normal((4, 5))
    plain, given = (SparseCoder(matrix, n_nonzero_coefs=1) for matrix in (atoms, torch.from_numpy(atoms)))
    codes = given.fit(torch.from_numpy(DATA)).transform(torch.from_numpy(DATA))
    assert isinstance(codes, torch.Tensor)
    assert isinstance(given.inverse_transform(codes), torch.Tensor)
    assert isinstance(given.transform(DATA), np.ndarray)
    np.testing.assert_array_equal(codes.numpy(), plain.transform(DATA))
    np.testing.assert_array_equal(given.inverse_transform(codes).numpy(), plain.inverse_transform(codes.numpy()))
    assert given.get_feature_names_out().tolist() == plain.get_feature_names_out().tolist()
