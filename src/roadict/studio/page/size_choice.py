"""The choice for a picture above the studio's limit: shrink it, or cut a part out, in one click."""

import secrets
from pathlib import Path
from typing import Any

import gradio as gr
from PIL import Image, ImageDraw

from roadict.pictures.files import write_picture
from roadict.studio import comparison, inputs, panels, sizing
from roadict.studio.marks import mark_colour
from roadict.studio.page.views import PLAIN, QUIET

_CENTRE = (0.5, 0.5)


class SizeChoice:
    """Components below the upload of a picture, seen only if it is too large, and their handlers.

    ``made`` is the state that says how the latest picture was made smaller.

    Parameters
    ----------
    picture : gradio.File
        Its file is replaced by the smaller picture.
    folder : Path
        For smaller pictures.
    """

    def __init__(self, picture: Any, folder: Path) -> None:
        self._folder = folder
        self._centre, self.made = gr.State(_CENTRE), gr.State(sizing.Resized())
        with gr.Column(visible=False, elem_id="pictures-size") as self.box:
            self.text = gr.HTML(**PLAIN)
            self.part = gr.Image(
                interactive=False, show_label=False, buttons=[], format="png", height=240, elem_id="pictures-part"
            )
            with gr.Row():
                self.shrink = gr.Button(
                    "Shrink", variant="primary", size="md", elem_id="pictures-shrink", min_width=140
                )
                self.crop = gr.Button("Cut out", size="md", elem_id="pictures-crop", min_width=140)
        self.note = gr.HTML(elem_id="pictures-size-note", **PLAIN)
        offered = [self.box, self.text, self.part, self.shrink, self.crop, self._centre, self.note]
        picture.change(self._offer, [picture, self.made], offered, **QUIET)
        self.part.select(self._move, [picture], [self.part, self._centre], **QUIET)
        self.shrink.click(self._shrink, [picture], [picture, self.made, self.note], **QUIET)
        self.crop.click(self._crop, [picture, self._centre], [picture, self.made, self.note], **QUIET)

    def _offer(self, path: str | None, made: sizing.Resized) -> tuple[Any, ...]:
        """Show the choice for a picture that is too large; the note stays with the picture that was made."""
        note = gr.skip() if path is not None and Path(path).name == made.name else ""
        hidden = (gr.update(visible=False), "", None, gr.skip(), gr.skip(), _CENTRE, note)
        if path is None or not inputs.is_too_large(path):
            return hidden
        try:
            picture = inputs.read_large_picture(path)
        except ValueError as error:
            useless = gr.update(visible=False)
            return gr.update(visible=True), panels.error(str(error)), useless, useless, useless, _CENTRE, note
        height, width = sizing.fitted(picture.shape)
        text = (
            f"{Path(path).name} has {picture.shape[1]} × {picture.shape[0]} pixels; the studio works on up to "
            f"{inputs.MAX_PIXELS // 10**6} million. Shrink it, or cut out the marked part; click to move it."
        )
        return (
            gr.update(visible=True),
            panels.idle("A large picture", text),
            gr.update(visible=True, value=_marked(picture, _CENTRE)),
            gr.update(visible=True, value=f"Shrink to {width} × {height}"),
            gr.update(visible=True, value=f"Cut out {width} × {height}"),
            _CENTRE,
            note,
        )

    def _move(self, path: str, event: gr.SelectData) -> tuple[Any, tuple[float, float]]:
        picture = inputs.read_large_picture(path)
        x, y = event.index
        width, height = _preview(picture).size
        centre = (y / height, x / width)
        return _marked(picture, centre), centre

    def _shrink(self, path: str) -> tuple[str, sizing.Resized, str]:
        picture = inputs.read_large_picture(path)
        return self._replaced(path, "shrunk", picture.shape, sizing.shrunk(picture))

    def _crop(self, path: str, centre: tuple[float, float]) -> tuple[str, sizing.Resized, str]:
        picture, middle = inputs.read_large_picture(path), (centre[0], centre[1])
        return self._replaced(path, "cut", picture.shape, sizing.cropped(picture, middle), middle)

    def _replaced(
        self, path: str, how: str, shape: tuple[int, ...], picture: Any, centre: tuple[float, float] | None = None
    ) -> tuple[str, sizing.Resized, str]:
        """Write the smaller picture; returns its path, how it was made, and that in words."""
        folder = self._folder / secrets.token_hex(4)
        folder.mkdir(parents=True)
        file = folder / f"{Path(path).stem}-{how}.png"
        write_picture(file, picture)
        text = (
            f"{Path(path).name} was {how} from {shape[1]} × {shape[0]} to {picture.shape[1]} × {picture.shape[0]} "
            f"pixels. The run and its command work on {file.name}, which you can download with the result."
        )
        return str(file), sizing.Resized(file.name, shape, centre), panels.dropped(text)


def _preview(picture: Any) -> Image.Image:
    image = comparison.opaque(inputs.for_screen(picture))
    image.thumbnail((inputs.PREVIEW, inputs.PREVIEW))
    return image


def _marked(picture: Any, centre: tuple[float, float]) -> Image.Image:
    """A preview with a frame around the part that would be cut out."""
    image = _preview(picture)
    factor = image.width / picture.shape[1]
    top, left = sizing.crop_corner(picture.shape, centre)
    height, width = sizing.fitted(picture.shape)
    frame = [factor * left, factor * top, factor * (left + width) - 1, factor * (top + height) - 1]
    ImageDraw.Draw(image).rectangle(frame, outline=mark_colour(image), width=4)
    return image
