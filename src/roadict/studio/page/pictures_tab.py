"""The tab for pictures: upscale, denoise, inpaint."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import gradio as gr
import numpy as np
from numpy.typing import NDArray

from roadict.drawing.raster import data_uri, png
from roadict.pictures.files import write_picture
from roadict.studio import comparison, inputs, panels
from roadict.studio.commands import TASKS, Command, picture_command
from roadict.studio.jobs import Job
from roadict.studio.marks import COLOURS, mark_colour
from roadict.studio.naming import DRAWN, FILE, HOLES, NOISE, SCALE
from roadict.studio.page.size_choice import SizeChoice
from roadict.studio.page.tab import Tab, Update
from roadict.studio.page.views import PLAIN, QUIET, shown
from roadict.studio.results import show_picture
from roadict.studio.samples import find_truth, picture_samples
from roadict.studio.sizing import Resized
from roadict.studio.verdict import SEED

TRANSPARENT, _SEED = "Transparent pixels", "0"
_HINTS = {
    "upscale": "Adds detail learned from other pictures. The first run trains a model and saves it.",
    "denoise": "Removes noise with atoms learned from the picture itself.",
    "inpaint": "Fills scratches and holes with atoms learned from the rest of the picture.",
}


class PicturesTab(Tab):
    """Components and their handlers."""

    name = "pictures"
    run_label = "Run"
    download_label = "Download picture"
    invitation = "Drop a picture, or click a sample, choose what to do and run it."
    uploads = ("picture", "mask_file")

    def _add_inputs(self, samples: Path) -> None:
        self._samples = picture_samples(samples)
        self.picture = gr.File(label="Picture", height=132, elem_id="pictures-file")
        self.preview = gr.HTML(elem_id="pictures-preview", visible=False, **PLAIN)
        self.size = SizeChoice(self.picture, samples.parent / "resized")
        self._add_sample_label()
        self.gallery = gr.Gallery(
            [(str(sample.file), sample.title) for sample in self._samples],
            columns=3,
            rows=1,
            height="auto",
            object_fit="cover",
            allow_preview=False,
            interactive=False,
            show_label=False,
            container=False,
            buttons=[],
            format="png",
            elem_id="pictures-samples",
        )
        self._add_options()

    def _add_options(self) -> None:
        self.task = gr.Radio(
            [(task.capitalize(), task) for task in TASKS],
            value="upscale",
            label="Task",
            elem_id="pictures-task",
        )
        self.scale = gr.Radio([2, 3, 4], value=3, label=SCALE, info=_HINTS["upscale"])
        self.sigma = gr.Textbox(
            "auto",
            label=NOISE,
            info=f"{_HINTS['denoise']} In grey levels of 0 to 255, or auto: estimated.",
            visible=False,
            elem_id="pictures-noise",
        )
        self.source = gr.Radio(
            [DRAWN, FILE, TRANSPARENT],
            value=DRAWN,
            label=HOLES,
            info=_HINTS["inpaint"],
            visible=False,
            elem_id="pictures-source",
        )
        self.editor = gr.ImageEditor(
            label="Paint over the pixels to fill",
            type="numpy",
            image_mode="RGBA",
            format="png",
            sources=(),
            transforms=(),
            layers=False,
            brush=_brush(COLOURS[0]),
            eraser=gr.Eraser(default_size=16),
            buttons=[],
            visible=False,
            elem_id="pictures-editor",
        )
        self.mask_file = gr.File(
            label="Mask, black where a pixel is known", height=110, visible=False, elem_id="pictures-mask-file"
        )
        with self._add_more_options():
            self.seed = gr.Textbox(
                _SEED, label=SEED, info="The same seed gives the same picture.", elem_id="pictures-seed"
            )

    def _add_results(self) -> None:
        self.slider = gr.ImageSlider(
            visible=False, interactive=False, buttons=["fullscreen"], max_height=640, elem_id="pictures-slider"
        )
        super()._add_results()

    @property
    def outputs(self) -> set[Any]:
        """Components that a run updates."""
        return super().outputs | {self.slider}

    def _connect(self) -> None:
        chosen = [self.task, self.source]
        # No field is updated by its own change: Gradio may tell it again, and so on without end.
        self.task.change(_show_options, self.task, [self.scale, self.sigma, self.source], **QUIET)
        gr.on([self.task.change, self.source.change], _show_mask, chosen, self.mask_file, **QUIET)
        gr.on(
            [self.picture.change, self.task.change, self.source.change],
            self._preview,
            [self.picture, *chosen],
            [self.preview, self.editor],
            **QUIET,
        )
        # At a click, not when the picture changes: that may be told late, and would hide the error of a run.
        gr.on([self.size.shrink.click, self.size.crop.click], self._forget_error, self.panel, self.panel, **QUIET)
        self.picture.change(self._choose_source, [self.picture, self.source, self.mask_file], self.source, **QUIET)
        self.picture.clear(_no_canvas, None, self.editor, **QUIET)
        self.gallery.select(self._load_sample, None, [self.picture, self.task, self.source], **QUIET)
        masks = [self.source, self.editor, self.mask_file, self.size.made]
        self.start.click(
            self._run,
            [self.picture, self.task, self.scale, self.sigma, *masks, self.seed],
            list(self.outputs),
            concurrency_limit=None,
            **QUIET,
        )

    @property
    def fields(self) -> dict[str, Any]:
        """Components of the form by name."""
        names = ("picture", "task", "scale", "sigma", "source", "mask_file", "seed")
        return {name: getattr(self, name) for name in names}

    def settings(self, job: Job) -> dict[str, Any]:
        """Values of fields with which the form gives the command of a job again; a drawn mask is a file then."""
        given, task, mask = job.command.options, job.command.task, job.mask
        return {
            "picture": str(job.source),
            "task": task,
            "scale": int(given.get("--scale", 3)),
            "sigma": given.get("--sigma", "auto"),
            "source": FILE if mask is not None else TRANSPARENT if task == "inpaint" else DRAWN,
            "mask_file": None if mask is None else str(mask),
            "seed": given["--seed"],
        }

    def _set_options(self, settings: Mapping[str, Any]) -> list[str]:
        seed = settings["seed"].strip()
        return [f"seed {seed}"] if seed not in ("", _SEED) else []

    def _load_sample(self, event: gr.SelectData) -> tuple[str, str, str]:
        sample = self._samples[event.index]
        return str(sample.file), sample.task, TRANSPARENT if sample.task == "inpaint" else DRAWN

    def _preview(self, path: str | None, task: str, source: str) -> tuple[Any, Any]:
        """Show the picture, or the canvas with it where a mask is to be drawn, or the error."""
        if path is None:
            # Leave the canvas alone: hidden here and shown by the next event, it has been seen to stay hidden.
            return gr.update(visible=False), gr.skip()
        if inputs.is_too_large(path):  # SizeChoice shows it
            return gr.update(visible=False), _no_canvas()
        try:
            picture = inputs.read_picture(path)
        except ValueError as error:
            return gr.update(visible=True, value=panels.error(str(error))), _no_canvas()
        shown = inputs.for_screen(picture)
        if task == "inpaint" and source == DRAWN:
            background = comparison.opaque(shown)
            canvas = {"background": np.asarray(background), "layers": [], "composite": None}
            brush = _brush(mark_colour(background))
            return gr.update(visible=False), gr.update(visible=True, value=canvas, brush=brush)
        shown.thumbnail((inputs.PREVIEW, inputs.PREVIEW))
        preview = panels.dropped(inputs.describe(picture), data_uri(png(np.asarray(shown))))
        return gr.update(visible=True, value=preview), _no_canvas()

    def _choose_source(self, path: str | None, source: str, mask_file: str | None) -> str:
        """Fill the transparent pixels of a picture that has some, unless there is a mask; draw on any other."""
        if source == FILE and mask_file is not None:
            return source
        try:
            picture = np.zeros((1, 1)) if path is None or inputs.is_too_large(path) else inputs.read_picture(path)
        except ValueError:
            return source
        if picture.ndim == 3 and picture.shape[2] in (2, 4) and not picture[..., -1].all():
            return TRANSPARENT
        return DRAWN if source == TRANSPARENT else source

    def _run(
        self,
        path: str | None,
        task: str,
        scale: int,
        sigma: str,
        source: str,
        drawn: dict[str, Any] | None,
        mask_file: str | None,
        resized: Resized,
        seed: str,
        request: gr.Request,
    ) -> Iterator[Update]:
        def prepare(folder: Path) -> Command:
            if path is None:
                raise ValueError("There is no picture; drop one, or click a sample")
            picture = inputs.read_picture(path)
            name = inputs.copy_upload(path, folder)
            mask = None
            if task == "inpaint" and source == DRAWN:
                mask = f"{Path(name).stem}-mask.png"
                write_picture(folder / mask, _drawn_mask(drawn, picture.shape[:2]))
            elif task == "inpaint" and source == FILE:
                if mask_file is None:
                    raise ValueError("There is no mask file; drop one, or draw the mask")
                if inputs.is_too_large(mask_file):
                    mask = f"{Path(name).stem}-mask.png"
                    write_picture(folder / mask, resized.mask(mask_file, name))
                else:
                    inputs.read_picture(mask_file)
                    mask = inputs.copy_upload(mask_file, folder, taken=(name, picture_command(task, name).output))
            return picture_command(
                task,
                name,
                scale=scale,
                sigma=inputs.parse_number(NOISE, sigma) if task == "denoise" else None,
                mask=mask,
                seed=inputs.parse_count(SEED, seed, 0) or 0,
            )

        yield from self._run_job(request, prepare)

    def _nothing(self) -> Update:
        return super()._nothing() | {self.slider: gr.update(visible=False, value=None)}

    def _finish(self, job: Job) -> Update:
        mask, task = job.mask, job.command.task
        compared = comparison.compare(job.source, job, task, find_truth(self._samples, job.source))
        result = show_picture(job, compared, "#pictures-slider")
        return {
            self.panel: result.panel,
            **shown(self.view, self.details, result),
            self.mask: gr.update(visible=mask is not None, value=None if mask is None else str(mask)),
            self.slider: gr.update(
                visible=True,
                value=compared.save(job.folder),
                label=f"{comparison.BEFORE[task]} (left) and after (right)",
            ),
        }


def _show_options(task: str) -> tuple[Any, Any, Any]:
    """Show the options of the task: scale, noise, or the kind of mask."""
    scale, sigma, source = (gr.update(visible=task == name) for name in TASKS)
    return scale, sigma, source


def _show_mask(task: str, source: str) -> Any:
    """Show the field for a mask file where one is wanted."""
    return gr.update(visible=task == "inpaint" and source == FILE)


def _drawn_mask(drawn: dict[str, Any] | None, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """Mask that is white where something was painted."""
    layers = [] if drawn is None else [layer for layer in drawn["layers"] if layer is not None]
    painted = np.zeros(shape, bool)
    for layer in layers:
        if layer.shape[:2] != shape:
            raise ValueError("The drawing does not fit the picture; drop the picture again and redraw")
        painted |= layer[..., 3] > 0
    if not painted.any():
        raise ValueError("Nothing is drawn yet; paint over the pixels to fill, or choose another kind of mask")
    return np.where(painted, np.uint8(255), np.uint8(0))


def _brush(colour: str) -> gr.Brush:
    return gr.Brush(default_size=10, colors=[colour], color_mode="fixed")


def _no_canvas() -> Any:
    # Hidden and not removed: Gradio's canvas throws errors when it is removed before it is ready.
    return gr.update(visible="hidden", value=None)
