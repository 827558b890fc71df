import numpy as np
import pytest
from scipy.signal import convolve2d

from roadict.pictures.features import derivatives, principal_axes
from roadict.pictures.training import Sampling, find_axes, gather

from .conftest import luma8


def matlab_same(picture, filter_):
    """conv2(picture, filter, "same"): of the full convolution the part that starts at floor(size / 2)."""
    full = convolve2d(picture, filter_)
    top, left = filter_.shape[0] // 2, filter_.shape[1] // 2
    return full[top : top + picture.shape[0], left : left + picture.shape[1]]


@pytest.mark.parametrize("step", [2, 3, 4])
def test_filters_are_centred_as_in_matlab(step):
    picture = np.random.default_rng(0).random((20, 23))
    gap = [0] * (step - 1)
    gradient = np.array([[1, *gap, -1]])
    curvature = np.array([[1, *gap, -2, *gap, 1]]) / 2
    expected = [matlab_same(picture, f) for f in (gradient, gradient.T, curvature, curvature.T)]
    np.testing.assert_allclose(derivatives(picture, step, "zero"), expected, atol=1e-14)
    inside = (slice(None), slice(step, -step), slice(step, -step))
    np.testing.assert_allclose(derivatives(picture, step)[inside], np.array(expected)[inside], atol=1e-14)


def test_a_mirrored_flat_picture_has_no_derivatives():
    assert not derivatives(np.full((9, 9), 0.3), 3).any()


def test_axes_retain_the_requested_energy():
    rng = np.random.default_rng(1)
    data = rng.normal(size=(500, 12)) * np.logspace(0, -3, 12)
    axes = principal_axes(data.T @ data, 0.99)
    np.testing.assert_allclose(axes.T @ axes, np.eye(axes.shape[1]), atol=1e-12)
    total = np.square(data).sum()
    assert np.square(data @ axes).sum() >= 0.99 * total
    assert np.square(data @ axes[:, :-1]).sum() < 0.99 * total


def test_the_papers_training_matrix(shared):
    planes = [luma8(shared / "zebra_train" / f"{name}.bmp").astype(np.float32) for name in ("t36", "t64", "t65")]
    sampling = Sampling(scale=3, size=9, stride=3, features="derivatives", edges="zero")
    axes, rng = find_axes(planes, sampling), np.random.default_rng(0)
    low, high = gather(planes, sampling, axes=axes, augment=False, max_samples=10**9, min_norm=0.0, rng=rng)
    assert low.shape == (11775, 33)
    assert high.shape == (11775, 81)
