"""The tab for pictures without a browser: the form of a past run gives its command again."""

import numpy as np
import pytest
from PIL import Image

from roadict.pictures.inpainting import missing_pixels
from roadict.studio.commands import Command
from roadict.studio.naming import as_fields

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


def test_the_form_of_a_past_run_gives_its_command_again(unseen, files):
    drawn = {"task": "inpaint", "source": "Draw", "editor": [PAINTED.tolist()]}
    named_alike = {"task": "inpaint", "source": "Mask file", "mask_file": str(files / "other/tiny.png")}
    mask = {"task": "inpaint", "source": "Mask file", "mask_file": str(files / "a mask.png")}
    given = [
        (
            "-clear.png",
            {"task": "upscale", "scale": 4, "seed": "3", "sigma": "of denoising alone"},
            "upscale {} -o {}-enlarged.png --scale 4 --seed 3",
        ),
        ("tiny.png", {"task": "denoise", "sigma": "7.5"}, "denoise {} -o {}-denoised.png --sigma 7.5 --seed 0"),
        ("tiny.png", drawn, "inpaint {} -o {}-filled.png --mask tiny-mask.png --seed 0"),
        ("tiny.png", named_alike, "inpaint {} -o {}-filled.png --mask tiny-mask.png --seed 0"),
        ("-clear.png", mask, "inpaint {} -o {}-filled.png --mask 'a mask.png' --seed 0"),
        ("-clear.png", {"task": "inpaint", "source": "Transparent pixels"}, "inpaint {} -o {}-filled.png --seed 0"),
    ]
    clicks = [
        click for name, fields, _ in given for click in (fields | {"picture": str(files / name)}, {"again": True})
    ]
    commands = [shown["command"] for shown in unseen("pictures", *clicks)]
    names = [f"./{name}" if name.startswith("-") else name for name, *_ in given]
    expected = [
        f"roadict {text.format(name, name.removesuffix('.png'))}" for name, (*_, text) in zip(names, given, strict=True)
    ]
    assert commands[::2] == commands[1::2] == expected
    masks = [np.asarray(Image.open(mask)) for mask in files.glob("jobs/*/*mask.png")]
    assert len(masks) == 2 * sum("--mask" in command for command in expected)
    assert all(np.array_equal(mask, PAINTED[..., 3]) for mask in masks)


def test_errors_name_what_can_be_chosen_on_the_page():
    remedy = "choose “Draw” or “Mask file” as “Missing pixels”"
    opaque = np.full((9, 9, 4), 255, np.uint8)
    told = {
        (): [(opaque[..., 0], f"no pixel is transparent; {remedy}"), (opaque, f"no pixel is transparent; {remedy}")],
        ("--mask", "m.png"): [(opaque, "no pixel is missing by the mask; mark what is to be filled by nonzero")],
    }
    told[()].append((0 * opaque, f"all pixels are transparent; {remedy}"))
    for options, cases in told.items():
        command = Command(("inpaint", "a.png", "-o", "b.png", *options, "--seed", "0"), "b.png")
        for picture, sentence in cases:
            with pytest.raises(ValueError, match="mask") as refused:
                missing_pixels(picture, np.zeros((9, 9)) if options else None)
            assert as_fields(str(refused.value), command).startswith(sentence)
    with pytest.raises(ValueError, match="mask") as refused:
        missing_pixels(opaque, np.ones((3, 5)))
    sentence = "the mask has 5 × 3 pixels and the picture 9 × 9; drop a mask of the same size"
    assert as_fields(str(refused.value), command) == sentence
