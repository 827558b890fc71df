"""The commands for pictures: upscale, denoise, inpaint."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roadict.cli.console import (
    check_output,
    confirm_large,
    parse_number_or_auto,
    progress_bar,
    save,
    showing_warnings,
    snapshot_callback,
    stop_notice,
    telling_what_was_written,
)
from roadict.cli.help import add_command
from roadict.cli.options import COMPUTATION, MODEL, OUTPUT, JobsOption, QuietOption
from roadict.extras import PICTURES, require
from roadict.progress.output import say
from roadict.runs.signals import Interrupt, WorkStoppedError, kept_at_interrupt
from roadict.wording import agree, no_folder, of, plural

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Picture = NDArray[Any]

LARGE_PICTURE = 2**29
"""Pixels of an enlarged picture that take some minutes."""

InputArgument = Annotated[Path, typer.Argument(metavar="PICTURE", help="Grey or RGB, 8 or 16 bits; alpha preserved.")]
OutputOption = Annotated[
    Path, typer.Option("--output", "-o", help="Picture to write: .png, .tif, .jpg or .bmp.", rich_help_panel=OUTPUT)
]
CompareOption = Annotated[
    Path | None,
    typer.Option(
        help="Original to compare with: prints PSNR and SSIM, and writes OUTPUT-compare.png.", rich_help_panel=OUTPUT
    ),
]
SO_FAR = "the patches are still coded, with the dictionary learned so far, and the picture will be saved"
SeedOption = Annotated[
    int, typer.Option(min=0, help="Random seed; same seed, same result.", rich_help_panel=COMPUTATION)
]


def add_commands(app: typer.Typer) -> None:
    """Add the commands for pictures."""
    add_command(
        app,
        upscale,
        "roadict upscale photo.png -o big.png --scale 3",
        "roadict upscale small.png -o big.png --scale 2 --train folder",
    )
    add_command(
        app,
        denoise,
        "roadict denoise noisy.png -o clean.png",
        "roadict denoise noisy.png -o clean.png --sigma 20 --compare original.png",
    )
    add_command(
        app,
        inpaint,
        "roadict inpaint holes.png -o filled.png --mask mask.png",
        "roadict inpaint transparent.png -o filled.png",
    )


def upscale(
    picture: InputArgument,
    output: OutputOption,
    scale: Annotated[int, typer.Option(help="2, 3 or 4.", rich_help_panel=MODEL)] = 3,
    train: Annotated[
        Path | None,
        typer.Option(help="Folder of training pictures. Default: those of scikit-image.", rich_help_panel=MODEL),
    ] = None,
    model: Annotated[
        Path | None, typer.Option(help="Trained model (.npz) to use instead.", rich_help_panel=MODEL)
    ] = None,
    approach: Annotated[str, typer.Option(help="anchored, zeyde or yang.", rich_help_panel=MODEL)] = "anchored",
    method: Annotated[
        str,
        typer.Option(
            help="How the dictionary is learned: road, ksvd, mod, blotless, ..., or random patches.",
            rich_help_panel=MODEL,
        ),
    ] = "road",
    compare: CompareOption = None,
    seed: SeedOption = 0,
    jobs: JobsOption = None,
    quiet: QuietOption = False,
) -> None:
    """Upscale a picture with detail learned from others.

    The first use trains a model and caches it.
    """
    require("roadict upscale", *PICTURES)
    training_files = [] if train is None else _pictures_in(train)
    _check_files(output, compare, picture, model, *training_files)
    from roadict.pictures import SuperResolution, dtypes, files
    from roadict.pictures import upscale as enlarged
    from roadict.pictures.upscaling import check_settings

    given = None if model is None else SuperResolution.load(model)
    fresh = SuperResolution(scale, approach=approach, method=method, random_state=seed, n_jobs=jobs)
    check_settings(fresh, given, train, prefix="--")
    small = dtypes.check_picture(str(picture), files.read_picture(picture), 3)
    files.check_writable(output, small, scale)
    height, width = small.shape[0] * scale, small.shape[1] * scale
    if height * width > LARGE_PICTURE:
        size = f"{width} x {height}, {height * width / 1e6:,.0f} million pixels"
        confirm_large(
            f"{picture} of {small.shape[1]} x {small.shape[0]} becomes {size}, which takes long",
            "cut or shrink it first, or choose a smaller --scale",
        )
    original = _original(compare, (height, width), small)
    smallest = fresh.smallest_to_learn_from()
    pictures = [dtypes.check_picture(str(path), files.read_picture(path), smallest) for path in training_files]
    with showing_warnings(), progress_bar(quiet, "enlarging") as advance:
        big = enlarged(
            small,
            scale,
            train=pictures or None,
            model=given,
            approach=approach,
            method=method,
            random_state=seed,
            n_jobs=jobs,
            progress=advance,
            callback=snapshot_callback(quiet),
            message=None if quiet else say,
        )
    _write(output, big)
    written = [output]
    with telling_what_was_written(written):
        if original is not None and compare is not None:
            from roadict.pictures.training import enlarge

            unit = dtypes.white(small)
            bigger = enlarge(dtypes.split(small, unit).colour, scale)
            plain = dtypes.join(dtypes.Parts(bigger, None), small.dtype, unit, (0.0, 1.0))
            _compare(written, original, {"bicubic": plain, "roadict": big}, luma_only=True)
        _done(output, big, quiet)


def denoise(
    picture: InputArgument,
    output: OutputOption,
    sigma: Annotated[str, typer.Option(help="Noise in grey levels of 0 to 255, or auto.")] = "auto",
    compare: CompareOption = None,
    seed: SeedOption = 0,
    jobs: JobsOption = None,
    quiet: QuietOption = False,
) -> None:
    """Remove noise from a picture, by a dictionary learned from it.

    Ctrl-C ends the learning: the picture is made with the dictionary so far. A second one discards it.
    """
    require("roadict denoise", *PICTURES)
    _check_files(output, compare, picture)
    level = parse_number_or_auto("--sigma", sigma)
    if not isinstance(level, str) and not 0 <= level <= 255:
        raise ValueError(f"--sigma {sigma} must be a number from 0 to 255, or auto")
    from roadict.pictures import denoise as clean
    from roadict.pictures import dtypes, files
    from roadict.pictures.denoising import PATCH, noise_level

    noisy = dtypes.check_picture(str(picture), files.read_picture(picture), PATCH)
    files.check_writable(output, noisy)
    original = _original(compare, noisy.shape[:2], noisy)
    white = dtypes.white(noisy)
    share = noise_level(noisy, level if isinstance(level, str) else level * white / 255)
    if not quiet:
        say(f"sigma {255 * share:.3g} of 255{' (estimated)' if isinstance(level, str) else ''}")
    notice = stop_notice(quiet, SO_FAR)
    with kept_at_interrupt(notice) as interrupt, showing_warnings(), progress_bar(quiet, "denoising") as advance:
        result = clean(
            noisy, share * white, random_state=seed, n_jobs=jobs, progress=advance, callback=snapshot_callback(quiet)
        )
    _finish(output, original, {"noisy": noisy, "roadict": result}, quiet, interrupt)


def inpaint(
    picture: InputArgument,
    output: OutputOption,
    mask: Annotated[
        Path | None, typer.Option(help="Picture of the same size, not black where pixels are missing.")
    ] = None,
    compare: CompareOption = None,
    seed: SeedOption = 0,
    jobs: JobsOption = None,
    quiet: QuietOption = False,
) -> None:
    """Fill in missing pixels, by a dictionary learned from the others.

    Without a mask, these are the transparent pixels.

    Ctrl-C ends the learning: the picture is made with the dictionary so far. A second one discards it.
    """
    require("roadict inpaint", *PICTURES)
    _check_files(output, compare, picture, mask)
    from roadict.pictures import dtypes, files
    from roadict.pictures import inpaint as fill
    from roadict.pictures.inpainting import PATCH, missing_pixels

    holes = dtypes.check_picture(str(picture), files.read_picture(picture), PATCH)
    files.check_writable(output, holes)
    marked = None if mask is None else files.read_mask(mask)
    missing = missing_pixels(holes, marked)
    original = _original(compare, holes.shape[:2], holes)
    count = int(missing.sum())
    if not quiet:
        if marked is not None and (shades := _shades(marked)):
            say(f"{mask} has {plural(shades, 'shade')} between black and its lightest; all but black is missing")
        say(f"{of(count, missing.size, 'pixel')} {agree(count)} missing")
    notice = stop_notice(quiet, SO_FAR)
    with kept_at_interrupt(notice) as interrupt, showing_warnings(), progress_bar(quiet, "filling") as advance:
        result = fill(
            holes, missing, random_state=seed, n_jobs=jobs, progress=advance, callback=snapshot_callback(quiet)
        )
    _finish(output, original, {"input": holes, "roadict": result}, quiet, interrupt)


def _shades(mask: Picture) -> int:
    """How many values a mask has beside 0 and its largest: none, unless it was drawn softly or is a photograph."""
    import numpy as np

    return max(0, len(np.unique(mask[mask > 0])) - 1)


def _check_files(output: Path, compare: Path | None, *inputs: Path | None) -> None:
    """Refuse, before any work, outputs that cannot be written or would replace an input."""
    from roadict.pictures.files import SUFFIXES

    read = tuple(path for path in (*inputs, compare) if path is not None)
    check_output(output, SUFFIXES, inputs=read)
    if compare is not None:
        check_output(_comparison(output), SUFFIXES, inputs=read)


def _comparison(output: Path) -> Path:
    return output.with_name(f"{output.stem}-compare.png")


def _pictures_in(folder: Path) -> list[Path]:
    from roadict.pictures.files import SUFFIXES

    if not folder.is_dir():
        raise ValueError(f"--train: {no_folder(folder)}; pass a folder that holds pictures")
    here = (path for path in folder.iterdir() if path.suffix.lower() in SUFFIXES and path.is_file())
    found = sorted(path for path in here if not path.name.startswith("."))
    if not found:
        raise ValueError(f"--train {folder} holds no pictures ({', '.join(SUFFIXES)})")
    return found


def _is_colour(picture: Picture) -> bool:
    return picture.ndim == 3 and picture.shape[2] > 2


def _original(path: Path | None, shape: tuple[int, ...], like: Picture) -> Picture | None:
    """Read the picture to compare with; its size and colours must match."""
    if path is None:
        return None
    from roadict.pictures import files

    original = files.read_picture(path)
    if original.shape[:2] != shape:
        height, width = original.shape[:2]
        larger = height >= shape[0] and width >= shape[1]
        remedy = "crop it to that" if larger else "pass one of that size"
        raise ValueError(f"{path} has {width} x {height} pixels, the result {shape[1]} x {shape[0]}; {remedy}")
    if _is_colour(original) != _is_colour(like):
        raise ValueError(f"{path} is grey and the picture is not, or the reverse; convert one of them")
    return original


def _compare(written: list[Path], original: Picture, others: dict[str, Picture], *, luma_only: bool = False) -> None:
    """Print how close the pictures are to the original, and draw them next to the result, the only file written."""
    from skimage.metrics import structural_similarity

    from roadict.metrics import psnr
    from roadict.pictures import dtypes, files
    from roadict.pictures.resize import luma

    def compared(picture: Picture) -> Picture:
        colour, _ = dtypes.split(picture, dtypes.white(picture))
        return luma(colour) if luma_only else colour

    truth = compared(original)
    window = min(7, (min(truth.shape[:2]) - 1) // 2 * 2 + 1)
    for name, picture in others.items():
        result = compared(picture)
        axis = 2 if truth.ndim == 3 else None
        ssim = structural_similarity(result, truth, data_range=1.0, channel_axis=axis, win_size=window)
        typer.echo(f"{name}: PSNR {psnr(result, truth):.2f} dB, SSIM {ssim:.4f}")
    path = _comparison(written[0])
    files.write_picture(path, dtypes.side_by_side([*others.values(), original]))
    written.append(path)
    typer.echo(f"side by side ({', '.join(others)}, original): {path}")


def _finish(
    output: Path, original: Picture | None, shown: dict[str, Picture], quiet: bool, interrupt: Interrupt
) -> None:
    """Write the last of the pictures, and compare them with the original if there is one."""
    result = list(shown.values())[-1]
    _write(output, result, interrupt)
    written = [output]
    with telling_what_was_written(written):
        if original is not None:
            _compare(written, original, shown)
        _done(output, result, quiet, interrupt)


def _write(output: Path, result: Picture, interrupt: Interrupt | None = None) -> None:
    """Write the result; where its disk is full or lost, elsewhere."""
    from roadict.pictures.files import write_picture

    save(lambda path: write_picture(path, result), output, interrupt is not None and interrupt.requested)


def _done(output: Path, result: Picture, quiet: bool, interrupt: Interrupt | None = None) -> None:
    if not quiet:
        typer.echo(f"picture of {result.shape[1]} x {result.shape[0]} pixels: {output}")
    if interrupt is not None and interrupt.requested:
        made = "is made with the dictionary learned so far" if interrupt.heeded else "is finished"
        raise WorkStoppedError(f"interrupted: {output} {made}")
