"""The tab for pictures without a browser: the form of a past run gives its command again."""

import numpy as np
import pytest
from PIL import Image

PAINTED = np.zeros((24, 24, 4), np.uint8)
PAINTED[3:5, 3:9] = 255


@pytest.fixture
def files(tmp_path, tiny):
    """A folder with a picture, one with transparent pixels, and masks, one of them with the picture's name."""
    grey = np.asarray(Image.open(tiny))
    Image.fromarray(np.dstack([grey, 255 - PAINTED[..., 3]])).save(tmp_path / "-clear.png")
    (tmp_path / "other").mkdir()
    for name in ("a mask.png", "other/tiny.png"):
        Image.fromarray(PAINTED[..., 3]).save(tmp_path / name)
    return tmp_path


@pytest.mark.parametrize(
    ("picture", "fields", "command"),
    [
        ("tiny.png", {"task": "upscale", "scale": 2}, "upscale tiny.png -o tiny-enlarged.png --scale 2 --seed 0"),
        (
            "-clear.png",
            {"task": "upscale", "scale": 4, "seed": "3"},
            "upscale ./-clear.png -o ./-clear-enlarged.png --scale 4 --seed 3",
        ),
        ("tiny.png", {"task": "denoise"}, "denoise tiny.png -o tiny-denoised.png --seed 0"),
        ("tiny.png", {"task": "denoise", "sigma": "7.5"}, "denoise tiny.png -o tiny-denoised.png --sigma 7.5 --seed 0"),
        (
            "tiny.png",
            {"task": "inpaint", "source": "Draw", "editor": [PAINTED.tolist()]},
            "inpaint tiny.png -o tiny-filled.png --mask tiny-mask.png --seed 0",
        ),
        (
            "tiny.png",
            {"task": "inpaint", "source": "Mask file", "mask_file": "a mask.png"},
            "inpaint tiny.png -o tiny-filled.png --mask 'a mask.png' --seed 0",
        ),
        (
            "tiny.png",
            {"task": "inpaint", "source": "Mask file", "mask_file": "other/tiny.png"},
            "inpaint tiny.png -o tiny-filled.png --mask tiny-mask.png --seed 0",
        ),
        (
            "-clear.png",
            {"task": "inpaint", "source": "Mask file", "mask_file": "a mask.png"},
            "inpaint ./-clear.png -o ./-clear-filled.png --mask 'a mask.png' --seed 0",
        ),
        (
            "-clear.png",
            {"task": "inpaint", "source": "Transparent pixels"},
            "inpaint ./-clear.png -o ./-clear-filled.png --seed 0",
        ),
    ],
)
def test_the_form_of_a_past_run_gives_its_command_again(unseen, files, picture, fields, command):
    paths = {"picture": str(files / picture)}
    if "mask_file" in fields:
        paths["mask_file"] = str(files / fields["mask_file"])
    first, again = unseen("pictures", fields | paths, {"again": True})
    assert first["command"] == f"roadict {command}"
    assert again["command"] == first["command"]
    masks = [np.asarray(Image.open(mask)) for mask in files.glob("jobs/*/*mask.png")]
    assert len(masks) == 2 * ("--mask" in command)
    assert all(np.array_equal(mask, PAINTED[..., 3]) for mask in masks)
