"""The commands for pictures: results, messages, exit codes, and the files that remain."""

import io
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from skimage import data

from roadict.cli import pictures
from roadict.pictures import SuperResolution
from roadict.pictures.files import read_picture, write_picture
from roadict.pictures.resize import resize

from .conftest import eight_bits


@pytest.fixture(scope="module")
def model():
    return SuperResolution(2, method="random", n_components=16, random_state=0).fit([data.page()])


@pytest.fixture
def folder(program, tmp_path, scene, bomb, model):
    """A folder with pictures, good and bad."""
    whole = eight_bits(scene[28:52, 32:56])
    rng = np.random.default_rng(0)
    missing = rng.random(whole.shape) < 0.3
    write_picture("whole.png", whole)
    write_picture("noisy.png", eight_bits(whole / 255 + rng.normal(0, 0.08, whole.shape)))
    write_picture("holes.png", np.where(missing, 0, whole).astype(np.uint8))
    write_picture("mask.png", eight_bits(missing))
    write_picture("one.png", eight_bits(np.ones((1, 1))))
    write_picture("all.png", eight_bits(np.ones(whole.shape)))
    write_picture("none.png", eight_bits(np.zeros(whole.shape)))
    write_picture("tiny.png", whole[:2, :2])
    write_picture("colour.png", data.astronaut()[:40, :40])
    write_picture("small.png", eight_bits(resize(data.astronaut()[:40, :40] / 255, (20, 20))))
    Path("text.png").write_text("not a picture")
    raw = Path("colour.png").read_bytes()
    Path("cut.png").write_bytes(raw[: len(raw) // 2])
    moving = Image.fromarray(whole)
    moving.save("moving.gif", save_all=True, append_images=[moving.rotate(90)])
    Image.fromarray(data.astronaut()[:40, :40]).convert("CMYK").save("print.jpg")
    Path("bomb.png").write_bytes(bomb)
    Path("train").mkdir()
    write_picture("train/page.png", data.page()[:100, :100])
    write_picture("train/coins.png", data.coins()[:100, :100])
    Path("empty").mkdir()
    Path("little").mkdir()
    write_picture("little/stamp.png", whole[:5, :6])
    write_picture("wide.png", np.tile(whole[:3], (1, 1400)))
    model.save("model.npz")
    return tmp_path


TRAIN = ("--scale", 2, "--train", "train", "--method", "random")


def test_upscale_trains_once_and_again_when_the_cache_is_damaged(program, folder):
    code, out, err = program("upscale", "small.png", "-o", "big.png", *TRAIN, "--compare", "colour.png")
    assert code == 0, err
    assert "training on 2 pictures, once" in err
    assert read_picture("big.png").shape == (40, 40, 3)
    plain, ours = (float(line.split()[2]) for line in out.splitlines()[:2])
    assert ours > plain + 0.3
    assert read_picture("big-compare.png").shape == (40, 3 * 40 + 2 * 8, 3)
    (cached,) = (folder / "cache" / "roadict").iterdir()
    first = Path("big.png").read_bytes()
    code, _, err = program("upscale", "small.png", "-o", "again.png", *TRAIN)
    assert "model from" in err
    assert Path("again.png").read_bytes() == first
    cached.write_bytes(cached.read_bytes()[:1000])
    code, _, err = program("upscale", "small.png", "-o", "third.png", *TRAIN)
    assert (code, "training on 2 pictures" in err) == (0, True)
    assert Path("third.png").read_bytes() == first
    program("upscale", "small.png", "-o", "other.png", *TRAIN, "--seed", "1")
    assert len(list((folder / "cache" / "roadict").iterdir())) == 2


def test_upscale_with_a_model_file_and_without_a_writable_cache(program, folder, model, monkeypatch):
    assert program("upscale", "small.png", "-o", "big.png", "--scale", 2, "--model", "model.npz", "-q") == (0, "", "")
    np.testing.assert_array_equal(read_picture("big.png"), model.predict(read_picture("small.png")))
    code, _, err = program("upscale", "small.png", "-o", "b.png", "--scale", 3, "--model", "model.npz")
    assert (code, "pass --scale 2" in err) == (2, True)
    Path("file").write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "file"))
    code, _, err = program("upscale", "small.png", "-o", "c.png", *TRAIN)
    assert (code, "could not be saved" in err, Path("c.png").exists()) == (0, True, True)


def test_the_cache_of_users_without_a_home_or_with_a_relative_cache_folder(program, folder, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setattr(Path, "home", lambda: folder / "home")
    code, _, err = program("upscale", "small.png", "-o", "a.png", *TRAIN)
    assert (code, f"model saved in {folder}/home/.cache/roadict" in err) == (0, True)
    assert not Path("relative").exists()

    def no_home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    code, _, err = program("upscale", "small.png", "-o", "b.png", *TRAIN)
    assert (code, "could not be saved (the user has no home folder)" in err) == (0, True)
    assert Path("b.png").read_bytes() == Path("a.png").read_bytes()


def test_a_cached_model_under_the_name_of_another_is_not_used(program, folder):
    SuperResolution(3, method="random", n_components=16, random_state=0).fit([data.page()]).save("other.npz")
    assert program("upscale", "small.png", "-o", "a.png", *TRAIN)[0] == 0
    (cached,) = (folder / "cache" / "roadict").iterdir()
    cached.write_bytes(Path("other.npz").read_bytes())
    code, _, err = program("upscale", "small.png", "-o", "b.png", *TRAIN)
    assert (code, "training on 2 pictures" in err) == (0, True)
    assert Path("b.png").read_bytes() == Path("a.png").read_bytes()


def test_other_files_in_the_training_folder_are_ignored(program, folder):
    assert program("upscale", "small.png", "-o", "a.png", *TRAIN)[0] == 0
    Path("train/.page.png").write_text("another system's metadata of page.png")
    Path("train/more.png").mkdir()
    code, _, err = program("upscale", "small.png", "-o", "b.png", *TRAIN)
    assert (code, "model from" in err) == (0, True)


def test_16_bits_and_alpha_are_preserved(program, folder):
    deep = np.dstack([data.astronaut()[:20, :20].astype(np.uint16) * 257, np.full((20, 20), 40_000, np.uint16)])
    write_picture("deep.png", deep)
    assert program("upscale", "deep.png", "-o", "big.tif", *TRAIN)[0] == 0
    big = read_picture("big.tif")
    assert (big.dtype, big.shape) == (np.uint16, (40, 40, 4))
    assert (big[..., 3] == 40_000).all()


def test_denoise_and_inpaint(program, folder):
    code, out, err = program("denoise", "noisy.png", "-o", "clean.png", "--compare", "whole.png")
    assert code == 0, err
    assert "(estimated)" in err
    noisy, ours = (float(line.split()[2]) for line in out.splitlines()[:2])
    assert ours > noisy + 2
    code, out, err = program("inpaint", "holes.png", "-o", "filled.png", "--mask", "mask.png", "--compare", "whole.png")
    assert code == 0, err
    holes, ours = (float(line.split()[2]) for line in out.splitlines()[:2])
    assert ours > holes + 10
    assert "shade" not in err
    mask = read_picture("mask.png")
    write_picture(
        "soft.png", np.where(mask > 0, np.uint8(255), np.uint8(0)) - (np.cumsum(mask > 0) < 9).reshape(mask.shape)
    )
    _, _, err = program("inpaint", "holes.png", "-o", "filled.png", "--mask", "soft.png")
    assert "soft.png has 1 shade between black and its lightest; all but black is missing" in err


OUT = ("-o", "out.png")
BAD = {
    "text": (("upscale", "text.png", *OUT), "is no picture in a format"),
    "truncated": (("denoise", "cut.png", *OUT), "is damaged or cut short"),
    "smaller than a patch": (
        ("upscale", "tiny.png", *OUT),
        "has 2 x 2 pixels; each side must have at least 3",
    ),
    "smaller than a patch, noisy": (("denoise", "tiny.png", *OUT), "each side must have at least 8"),
    "1-pixel mask": (("inpaint", "holes.png", *OUT, "--mask", "one.png"), "they must agree"),
    "mask of another size": (("inpaint", "holes.png", *OUT, "--mask", "colour.png"), "they must agree"),
    "all masked": (("inpaint", "holes.png", *OUT, "--mask", "all.png"), "all pixels are missing"),
    "nothing masked": (("inpaint", "holes.png", *OUT, "--mask", "none.png"), "no pixel is missing"),
    "no mask": (("inpaint", "holes.png", *OUT), "there is no mask"),
    "animated": (("upscale", "moving.gif", *OUT), "has 2 frames"),
    "CMYK": (("denoise", "print.jpg", *OUT), "has CMYK colours"),
    "bomb": (("upscale", "bomb.png", *OUT), "has more than 268,435,456 pixels"),
    "missing input": (("upscale", "nowhere.png", *OUT), "nowhere.png does not exist"),
    "missing folder": (("denoise", "noisy.png", "-o", "nowhere/out.png"), "does not exist; create it first"),
    "output is input": (("denoise", "noisy.png", "-o", "noisy.png"), "is also an input"),
    "output is the original": (("denoise", "noisy.png", "-o", "whole.png", "--compare", "whole.png"), "also an input"),
    "output is the mask": (("inpaint", "holes.png", "-o", "mask.png", "--mask", "mask.png"), "is also an input"),
    "extension": (("denoise", "noisy.png", "-o", "out.gif"), "must end in"),
    "scale": (("upscale", "small.png", *OUT, "--scale", 5), "--scale 5 must be 2, 3 or 4"),
    "approach": (("upscale", "small.png", *OUT, "--approach", "magic"), "--approach magic must"),
    "method": (("upscale", "small.png", *OUT, "--method", "magic"), "--method magic must"),
    "model": (("upscale", "small.png", *OUT, "--model", "text.png"), "is not a roadict model"),
    "empty folder": (("upscale", "small.png", *OUT, "--train", "empty"), "holds no pictures"),
    "no folder": (("upscale", "small.png", *OUT, "--train", "nowhere"), "nowhere does not exist"),
    "output is a training picture": (("upscale", "small.png", "-o", "train/page.png", *TRAIN), "is also an input"),
    "little training picture": (
        ("upscale", "small.png", *OUT, "--train", "little"),
        "little/stamp.png has 6 x 5 pixels; each side must have at least 11",
    ),
    "method and model": (
        ("upscale", "small.png", *OUT, "--scale", 2, "--model", "model.npz", "--method", "ksvd"),
        "leave them out",
    ),
    "too wide for JPEG": (
        ("upscale", "wide.png", "-o", "out.jpg", "--scale", 2, "--model", "model.npz"),
        "cannot hold a side of 67200 pixels as .jpg, but 65500",
    ),
    "huge sigma": (("denoise", "noisy.png", *OUT, "--sigma", "1e200"), "--sigma 1e200 must be a number from 0 to 255"),
    "sigma": (("denoise", "noisy.png", *OUT, "--sigma", "much"), "--sigma much must be a number or auto"),
    "negative sigma": (("denoise", "noisy.png", *OUT, "--sigma", "-3"), "--sigma -3 must be a number from 0 to 255"),
    "original of another size": (("upscale", "small.png", *OUT, "--compare", "small.png"), "pass one of that size"),
    "grey original": (("denoise", "noisy.png", *OUT, "--compare", "grey.png"), "grey"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_reported_in_one_line_and_changes_no_file(program, folder, case):
    write_picture("grey.png", np.repeat(read_picture("whole.png")[..., None], 3, axis=2))
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    arguments, message = BAD[case]
    code, out, err = program(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("roadict: error: ")
    assert err.count("\n") == 1
    assert message in err
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


class Terminal(io.StringIO):
    """Standard input with somebody who answers."""

    def isatty(self):
        return True


@pytest.mark.parametrize("answer", [None, "n\n", "y\n"])
def test_a_picture_that_takes_long_is_enlarged_only_if_somebody_says_so(program, folder, monkeypatch, answer):
    monkeypatch.setattr(pictures, "LARGE_PICTURE", 39 * 40)
    if answer is not None:
        monkeypatch.setattr(sys, "stdin", Terminal(answer))
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    result = program("upscale", "small.png", *OUT, "--scale", 2, "--model", "model.npz")
    text = "small.png of 20 x 20 becomes 40 x 40, 0 million pixels, which takes long"
    assert (result.code, Path("out.png").exists()) == ((0, True) if answer == "y\n" else (2, False))
    if answer != "y\n":
        where = " (on a terminal you are asked)" if answer is None else ""
        error = f"roadict: error: {text}; cut or shrink it first, or choose a smaller --scale{where}"
        assert result.err.splitlines()[-1].endswith(error)
    assert (f"{text}. Begin? [y/N]" in result.err) == (answer is not None)


def test_ctrl_d_instead_of_an_answer_is_an_interrupt(program, folder, monkeypatch):
    monkeypatch.setattr(pictures, "LARGE_PICTURE", 39 * 40)
    monkeypatch.setattr(sys, "stdin", Terminal())
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    result = program("upscale", "small.png", *OUT, "--scale", 2, "--model", "model.npz")
    assert (result.code, result.err.splitlines()[-1]) == (130, "roadict: error: interrupted; nothing was written")


def test_a_large_blank_picture_is_refused_at_once(program, folder):
    Image.new("1", (12_000, 12_000)).save("blank.png")
    result = program("upscale", "blank.png", *OUT)
    assert result.code == 2
    assert "blank.png of 12000 x 12000 becomes 36000 x 36000, 1,296 million pixels" in result.err
