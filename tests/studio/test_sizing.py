"""Pictures above the limit are shrunk or cut, and missing pixels get a colour that stands out."""

import numpy as np
import pytest
from PIL import Image

from roadict.studio import inputs, marks, sizing


@pytest.mark.parametrize("shape", [(3024, 4032), (4032, 3024), (8160, 6120), (1, 9_000_000), (2001, 2000), (3, 2**22)])
def test_the_fitting_size_has_the_ratio_and_is_as_large_as_allowed(shape):
    height, width = sizing.fitted(shape)
    assert 0.95 * inputs.MAX_PIXELS < height * width <= inputs.MAX_PIXELS or min(shape) < 100
    assert height * width <= inputs.MAX_PIXELS
    if min(shape) > 100:
        assert height / width == pytest.approx(shape[0] / shape[1], rel=1e-3)


@pytest.fixture
def small_limit(monkeypatch):
    monkeypatch.setattr(sizing, "MAX_PIXELS", 600)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("channels", [(), (3,), (4,)])
def test_a_shrunk_picture_looks_like_its_original(small_limit, dtype, channels):
    y, x = np.mgrid[:40, :60]
    plane = (np.iinfo(dtype).max * (0.5 + 0.2 * np.sin(x / 12) + 0.2 * np.cos(y / 9))).astype(dtype)
    picture = plane if not channels else np.stack([plane] * channels[0], axis=-1)
    if channels == (4,):
        picture[..., 3] = np.iinfo(dtype).max
    small = sizing.shrunk(picture)
    assert (small.shape, small.dtype) == ((20, 30, *channels), picture.dtype)
    means = picture.reshape(20, 2, 30, 2, -1).astype(float).mean(axis=(1, 3)).reshape(small.shape)
    assert np.abs(small - means).max() < 0.02 * np.iinfo(dtype).max


@pytest.mark.parametrize(
    ("centre", "corner"), [((0.5, 0.5), (10, 15)), ((0, 0), (0, 0)), ((1, 1), (20, 30)), ((0.3, 0.7), (2, 27))]
)
def test_a_part_around_a_centre_is_cut_out_within_the_picture(small_limit, centre, corner):
    picture = np.arange(40 * 60, dtype=np.uint16).reshape(40, 60)
    part = sizing.cropped(picture, centre)
    assert part.shape == (20, 30)
    assert divmod(int(part[0, 0]), 60) == corner


def test_a_mask_is_shrunk_or_cut_as_its_photo(small_limit, tmp_path):
    mask = np.zeros((40, 60), np.uint8)
    mask[7, 30] = mask[21, 11:50] = 200
    Image.fromarray(mask).save(tmp_path / "mask.png")
    shrunk = sizing.Resized("photo-shrunk.png", (40, 60, 3)).mask(tmp_path / "mask.png", "photo-shrunk.png")
    marked = mask.reshape(20, 2, 30, 2).any(axis=(1, 3))  # a line of one pixel stays whole
    np.testing.assert_array_equal(shrunk, np.where(marked, 255, 0))
    cut = sizing.Resized("photo-cut.png", (40, 60, 3), (0.5, 0.5)).mask(tmp_path / "mask.png", "photo-cut.png")
    np.testing.assert_array_equal(cut > 0, sizing.cropped(mask) > 0)
    for made in (sizing.Resized(), sizing.Resized("photo-shrunk.png", (40, 61, 3)), sizing.Resized("b.png", (40, 60))):
        with pytest.raises(
            ValueError, match=r"^mask\.png has more .* photo-shrunk\.png has not; drop a mask of its size"
        ):
            made.mask(tmp_path / "mask.png", "photo-shrunk.png")


def test_a_picture_is_too_large_by_its_header(tmp_path):
    for name, size in (("large.png", (2001, 2000)), ("fits.png", (2000, 2000))):
        Image.new("1", size).save(tmp_path / name)
    assert inputs.is_too_large(tmp_path / "large.png")
    assert not inputs.is_too_large(tmp_path / "fits.png")
    with pytest.raises(ValueError, match=r"large\.png has more than 4,000,000 pixels; shrink it or cut a part out"):
        inputs.read_picture(tmp_path / "large.png")
    (tmp_path / "notes.txt").write_text("no picture")
    assert not inputs.is_too_large(tmp_path / "notes.txt")
    Image.new("1", (20_000, 20_000)).save(tmp_path / "bomb.png")
    assert not inputs.is_too_large(tmp_path / "bomb.png")
    with pytest.raises(ValueError, match=r"bomb\.png has more than 268,435,456 pixels"):
        inputs.read_picture(tmp_path / "bomb.png")


@pytest.mark.parametrize("background", ["white", "black", "grey", "orange", "#d1601f", "#1f6fd1", "skyblue", "green"])
def test_marks_stand_out_from_the_picture(background):
    image = Image.new("RGB", (30, 30), background)
    colour = marks.mark_colour(image)
    assert np.linalg.norm(np.subtract(Image.new("RGB", (1, 1), colour).getpixel((0, 0)), image.getpixel((0, 0)))) > 90
