import struct
import subprocess
import sys
import zlib

import numpy as np
import pytest
import tifffile
from PIL import EpsImagePlugin, Image, ImageOps

from roadict.pictures.files import PictureFileError, opened, read_mask, read_picture, write_picture

KINDS = [(dtype, channels) for dtype in (np.uint8, np.uint16) for channels in (None, 2, 3, 4)]


def noise(dtype, channels, seed=0):
    shape = (13, 17) if channels is None else (13, 17, channels)
    return np.random.default_rng(seed).integers(0, np.iinfo(dtype).max, shape, dtype, endpoint=True)


@pytest.mark.parametrize("suffix", [".png", ".tif"])
@pytest.mark.parametrize(("dtype", "channels"), KINDS)
def test_written_pictures_are_read_back(tmp_path, dtype, channels, suffix):
    if (dtype, channels, suffix) == (np.uint16, 2, ".tif"):
        pytest.skip("no reader for it; refused, see below")
    picture = noise(dtype, channels)
    write_picture(tmp_path / f"x{suffix}", picture)
    back = read_picture(tmp_path / f"x{suffix}")
    assert back.dtype == dtype
    np.testing.assert_array_equal(back, picture)


@pytest.mark.parametrize(("dtype", "channels"), KINDS)
def test_a_mask_marks_pixels_that_are_not_black_in_any_colours_and_alpha(tmp_path, dtype, channels):
    marked = noise(np.uint8, None) < 80
    picture = np.zeros((*marked.shape, channels or 1), dtype)
    picture[..., 0 if channels in (None, 2) else 1] = marked
    if channels in (2, 4):
        picture[..., -1] = ~marked
    write_picture(tmp_path / "mask.png", picture[..., 0] if channels is None else picture)
    np.testing.assert_array_equal(read_mask(tmp_path / "mask.png") != 0, marked)


@pytest.mark.parametrize("channels", [None, 3, 4])
def test_pillow_reads_written_pictures(tmp_path, channels):
    picture = noise(np.uint16, channels)
    write_picture(tmp_path / "x.png", picture)
    seen = np.asarray(Image.open(tmp_path / "x.png"))
    # Pillow returns 16 bits of grey and the upper 8 of colours.
    np.testing.assert_array_equal(seen, picture if channels is None else picture >> 8)


def test_16_bit_files_written_by_pillow_are_read(tmp_path):
    y, x = np.mgrid[:60, :80]
    smooth = (300 * x + 7 * y**2).astype(np.uint16)  # Pillow uses three of the five filters for it
    Image.fromarray(smooth).save(tmp_path / "x.png")
    np.testing.assert_array_equal(read_picture(tmp_path / "x.png"), smooth)


@pytest.mark.parametrize("kind", range(5))
def test_each_filter_of_png_is_undone(tmp_path, kind):
    """Filtered by the definition in the PNG specification, byte by byte."""
    picture = noise(np.uint16, 3, seed=kind)
    plain = picture.astype(">u2").reshape(13, -1).view(np.uint8).astype(int)
    padded = np.pad(plain, ((1, 0), (6, 0)))
    left, up, corner = padded[1:, :-6], padded[:-1, 6:], padded[:-1, :-6]
    distances = np.abs([up - corner, left - corner, left + up - 2 * corner])
    paeth = np.choose(distances.argmin(axis=0), [left, up, corner])
    guess = [0 * left, left, up, (left + up) // 2, paeth][kind]
    lines = np.hstack([np.full((13, 1), kind), (plain - guess) % 256]).astype(np.uint8)
    chunks = [
        (b"IHDR", struct.pack(">IIBBBBB", 17, 13, 16, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(lines.tobytes())),
        (b"IEND", b""),
    ]
    body = b"".join(struct.pack(">I", len(b)) + k + b + struct.pack(">I", zlib.crc32(k + b)) for k, b in chunks)
    (tmp_path / "x.png").write_bytes(b"\x89PNG\r\n\x1a\n" + body)
    np.testing.assert_array_equal(read_picture(tmp_path / "x.png"), picture)


def test_palettes_bits_transparent_colours_and_orientation(tmp_path):
    colours = noise(np.uint8, 3)
    palette = Image.fromarray(colours).quantize(8)
    palette.save(tmp_path / "palette.png")
    np.testing.assert_array_equal(read_picture(tmp_path / "palette.png"), np.asarray(palette.convert("RGB")))
    Image.fromarray(noise(np.uint8, None) > 99).save(tmp_path / "bits.png")
    np.testing.assert_array_equal(read_picture(tmp_path / "bits.png"), (noise(np.uint8, None) > 99) * np.uint8(255))
    Image.fromarray(colours).save(tmp_path / "key.png", transparency=tuple(map(int, colours[3, 4])))
    keyed = read_picture(tmp_path / "key.png")
    assert keyed.shape == (13, 17, 4)
    assert keyed[3, 4, 3] == 0
    turned = Image.fromarray(colours)
    exif = turned.getexif()
    exif[0x0112] = 6  # to be rotated by 90 degrees
    turned.save(tmp_path / "turned.png", exif=exif)
    np.testing.assert_array_equal(read_picture(tmp_path / "turned.png"), np.rot90(colours, -1))


@pytest.mark.parametrize("suffix", [".png", ".jpg", ".bmp", ".tif"])
@pytest.mark.parametrize("share", [0.02, 0.5, 0.9])
def test_truncated_pictures(tmp_path, suffix, share):
    write_picture(tmp_path / f"x{suffix}", np.repeat(noise(np.uint8, 3), 20, axis=0))
    raw = (tmp_path / f"x{suffix}").read_bytes()
    (tmp_path / f"cut{suffix}").write_bytes(raw[: int(share * len(raw))])
    with pytest.raises(PictureFileError, match=r"damaged or cut short|is no picture"):
        read_picture(tmp_path / f"cut{suffix}")


def test_truncated_and_damaged_16_bit_pictures(tmp_path):
    write_picture(tmp_path / "x.png", noise(np.uint16, 3))
    raw = (tmp_path / "x.png").read_bytes()
    for bad in (raw[:100], raw[:-20], raw[:70] + bytes([raw[70] ^ 1]) + raw[71:]):
        (tmp_path / "bad.png").write_bytes(bad)
        with pytest.raises(PictureFileError, match="damaged or cut short"):
            read_picture(tmp_path / "bad.png")


def test_files_that_are_no_usable_pictures_are_refused(tmp_path, bomb):
    colours = Image.fromarray(noise(np.uint8, 3))
    (tmp_path / "text.png").write_text("not a picture")
    (tmp_path / "empty.png").write_bytes(b"")
    colours.save(tmp_path / "moving.gif", save_all=True, append_images=[colours.rotate(90)])
    colours.convert("CMYK").save(tmp_path / "print.jpg")
    (tmp_path / "bomb.png").write_bytes(bomb)
    for name, message in {
        "text.png": "is no picture in a format",
        "empty.png": "is empty; save or copy",
        "moving.gif": "has 2 frames; save one",
        "print.jpg": "has CMYK colours; convert",
        "bomb.png": "has more than 268,435,456 pixels; cut or shrink",
    }.items():
        with pytest.raises(PictureFileError, match=f"{name} {message}") as caught:
            read_picture(tmp_path / name)
        assert "\n" not in str(caught.value)


def test_a_photo_of_200_million_pixels_is_opened_and_pillows_own_bound_stays(tmp_path):
    size, before = (16_320, 12_240), Image.MAX_IMAGE_PIXELS
    Image.new("1", size).save(tmp_path / "phone.png")
    with pytest.raises(Image.DecompressionBombError):
        Image.open(tmp_path / "phone.png")
    with opened(tmp_path / "phone.png") as image:
        assert image.size == size
    assert before == Image.MAX_IMAGE_PIXELS


def test_formats_that_cannot_hold_the_picture_are_refused_and_nothing_is_written(tmp_path):
    for name, picture, message in (
        ("x.jpg", noise(np.uint16, 3), "16 bits"),
        ("x.bmp", noise(np.uint8, 4), "transparency"),
        ("x.tif", noise(np.uint16, 2), "transparency"),
        ("x.xyz", noise(np.uint8, 3), "extension"),
    ):
        with pytest.raises(PictureFileError, match=message):
            write_picture(tmp_path / name, picture)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("orientation", range(1, 9))
def test_16_bit_pictures_are_rotated_by_their_exif_orientation(tmp_path, orientation):
    picture = noise(np.uint16, 3)
    tags = [(274, "H", 1, orientation, True)]
    tifffile.imwrite(tmp_path / "x.tif", picture, photometric="rgb", extratags=tags)
    coarse = Image.fromarray((picture >> 8).astype(np.uint8))
    coarse.getexif()[274] = orientation
    expected = np.asarray(ImageOps.exif_transpose(coarse))
    np.testing.assert_array_equal(read_picture(tmp_path / "x.tif") >> 8, expected)
    grey = Image.fromarray(picture[..., 0])
    grey.save(tmp_path / "x.png", exif=coarse.getexif())
    np.testing.assert_array_equal(read_picture(tmp_path / "x.png") >> 8, expected[..., 0])


def test_16_bit_tiffs_of_other_programs(tmp_path):
    colours, grey = noise(np.uint16, 3), noise(np.uint16, None)
    planes = np.ascontiguousarray(np.moveaxis(colours, 2, 0))
    tifffile.imwrite(tmp_path / "planes.tif", planes, photometric="rgb", planarconfig="separate")
    np.testing.assert_array_equal(read_picture(tmp_path / "planes.tif"), colours)
    tifffile.imwrite(tmp_path / "negative.tif", 65535 - grey, photometric="miniswhite")
    np.testing.assert_array_equal(read_picture(tmp_path / "negative.tif"), grey)


def test_a_16_bit_tiff_in_an_unavailable_compression_is_not_called_damaged(tmp_path, monkeypatch):
    write_picture(tmp_path / "x.tif", noise(np.uint16, 3))

    def fail(*_):
        raise ValueError("<COMPRESSION.LZW: 5> requires the 'imagecodecs' package")

    monkeypatch.setattr(tifffile, "imread", fail)
    with pytest.raises(PictureFileError, match="save it with ZIP or without compression"):
        read_picture(tmp_path / "x.tif")


def test_a_transparent_colour_preserves_bits_and_grey(tmp_path):
    for dtype in (np.uint8, np.uint16):
        picture = noise(dtype, None)
        Image.fromarray(picture).save(tmp_path / "key.png", transparency=int(picture[3, 4]))
        keyed = read_picture(tmp_path / "key.png")
        assert (keyed.dtype, keyed.shape) == (dtype, (13, 17, 2))
        np.testing.assert_array_equal(keyed[..., 0], picture)
        np.testing.assert_array_equal(keyed[..., 1], (picture != picture[3, 4]) * np.iinfo(dtype).max)


def test_the_picture_of_a_camera_file_with_previews_is_its_first(tmp_path):
    colours = Image.fromarray(noise(np.uint8, 3))
    colours.save(tmp_path / "plain.jpg")
    colours.save(tmp_path / "camera.jpg", format="MPO", save_all=True, append_images=[colours.rotate(90)])
    np.testing.assert_array_equal(read_picture(tmp_path / "camera.jpg"), read_picture(tmp_path / "plain.jpg"))


def test_vector_drawings_are_refused_before_another_program_runs(tmp_path, monkeypatch):
    Image.fromarray(noise(np.uint8, 3)).save(tmp_path / "x.png", format="EPS")
    monkeypatch.setattr(EpsImagePlugin, "Ghostscript", lambda *_: pytest.fail("Ghostscript was started"))
    with pytest.raises(PictureFileError, match="is a vector drawing, not pixels; convert it to PNG"):
        read_picture(tmp_path / "x.png")


@pytest.mark.parametrize("failure", [TypeError, AttributeError, RuntimeError])
def test_any_error_of_the_readers_on_damaged_bytes_is_reported_as_damage(tmp_path, monkeypatch, failure):
    write_picture(tmp_path / "x.tif", noise(np.uint16, 3))

    def fail(*_):
        raise failure("from tifffile")

    monkeypatch.setattr(tifffile, "imread", fail)
    with pytest.raises(PictureFileError, match="damaged or cut short"):
        read_picture(tmp_path / "x.tif")


def test_a_damaged_tiff_logs_nothing(tmp_path):
    """In a process of its own, as the test runner's handlers would catch what tifffile logs."""
    write_picture(tmp_path / "x.tif", noise(np.uint16, 3))
    raw = bytearray((tmp_path / "x.tif").read_bytes())
    offset = raw.index(struct.pack("<HHI", 305, 2, 12))  # the tag that names the program, made to point beyond the end
    raw[offset + 8 : offset + 12] = b"\xff\xff\xff\x00"
    (tmp_path / "x.tif").write_bytes(raw)
    code = "import sys; from roadict.pictures.files import read_picture as r; print(r(sys.argv[1]).shape)"
    ran = subprocess.run([sys.executable, "-c", code, tmp_path / "x.tif"], capture_output=True, text=True, check=True)
    assert (ran.stdout, ran.stderr) == ("(13, 17, 3)\n", "")
