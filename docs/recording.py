"""Record a small run of ROAD for the explorable figure of "How ROAD works", and the animation of the README.

``python docs/recording.py`` writes _static/recorded-run.js and images/road.webp. The atoms are sixteen letters, so that
one sees when they are found. ROAD gets the samples alone; its atoms are given the order and the signs of the letters
afterwards, the same order in all frames.
"""

import base64
import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from roadict import ROAD
from roadict.metrics import match_atoms

FOLDER = Path(__file__).parent
SIDE = 5
LETTERS = {
    "R": "####. #...# ####. #..#. #...#",
    "O": ".###. #...# #...# #...# .###.",
    "A": ".###. #...# ##### #...# #...#",
    "D": "####. #...# #...# #...# ####.",
    "I": ".###. ..#.. ..#.. ..#.. .###.",
    "C": ".#### #.... #.... #.... .####",
    "T": "##### ..#.. ..#.. ..#.. ..#..",
    "L": "#.... #.... #.... #.... #####",
    "N": "#...# ##..# #.#.# #..## #...#",
    "S": ".#### #.... .###. ....# ####.",
    "X": "#...# .#.#. ..#.. .#.#. #...#",
    "K": "#..#. #.#.. ##... #.#.. #..#.",
    "Z": "##### ...#. ..#.. .#... #####",
    "U": "#...# #...# #...# #...# .###.",
    "Y": "#...# .#.#. ..#.. ..#.. ..#..",
    "V": "#...# #...# .#.#. .#.#. ..#..",
}
N_SAMPLES, PER_SAMPLE, SEED = 240, 2, 3
N_SHOWN = 24
"""Samples whose codes are recorded."""
FOUND = 0.99
"""Correlation from which an atom counts as found."""
EVERY = 3
"""Iterations from one frame to the next."""


class Frame(NamedTuple):
    """A run after an iteration; the last frame is the returned fit."""

    iteration: int
    atoms: np.ndarray
    codes: np.ndarray


def letters():
    """The letters as atoms: without their means, of norm one."""
    pixels = np.array([[pixel == "#" for pixel in rows.replace(" ", "")] for rows in LETTERS.values()], float)
    pixels -= pixels.mean(axis=1, keepdims=True)
    return pixels / np.linalg.norm(pixels, axis=1, keepdims=True)


def mixtures(atoms):
    """Samples of two letters each, with weights of either sign that are not small: no sample is nearly one letter."""
    rng = np.random.default_rng([SEED, 3])
    codes = np.zeros((N_SAMPLES, len(atoms)))
    for row in codes:
        weights = rng.choice([-1, 1], PER_SAMPLE) * rng.uniform(0.6, 1.4, PER_SAMPLE)
        row[rng.choice(len(atoms), PER_SAMPLE, replace=False)] = weights
    return codes @ atoms


def record():
    """Samples, frames in the order and with the signs of the letters, and the history of the run."""
    truth = letters()
    data, frames = mixtures(truth), []

    def watch(snapshot):
        if snapshot.iteration % EVERY == 1:
            frames.append(Frame(snapshot.iteration, snapshot.dictionary, snapshot.codes[:N_SHOWN]))

    model = ROAD(len(truth), epsilon=0, n_init=1, callback=watch, random_state=SEED).fit(data)
    frames.append(Frame(model.n_iter_, model.components_, model.codes_[:N_SHOWN]))
    order, _ = match_atoms(model.components_, truth)
    return data[:N_SHOWN], [align(frame, order, truth) for frame in frames], model.history_


def align(frame, order, truth):
    """Give the atoms this order and the signs of the letters."""
    atoms, codes = frame.atoms[order], frame.codes[:, order]
    signs = np.where((atoms * truth).sum(axis=1) < 0, -1.0, 1.0)
    return Frame(frame.iteration, atoms * signs[:, None], codes * signs)


def correlations(frame):
    return (frame.atoms * letters()).sum(axis=1)


def packed(arrays, largest):
    """Arrays as bytes from -127 to 127, in base64."""
    scaled = np.clip(np.rint(np.array(arrays) / largest * 127), -127, 127)
    return base64.b64encode(scaled.astype(np.int8).tobytes()).decode()


def script(data, frames, history):
    """The run as a script: a page opened from a file may not read other files, but it may load scripts."""
    atoms, codes = np.array([frame.atoms for frame in frames]), np.array([frame.codes for frame in frames])
    largest = np.abs(atoms).max(axis=2, keepdims=True)  # every atom on its own scale
    unit = float(np.abs(codes[-1]).max())
    run = {
        "letters": "".join(LETTERS),
        "side": SIDE,
        "found": FOUND,
        "samples": len(data),
        "iterations": [frame.iteration for frame in frames],
        "atoms": packed(atoms, largest),
        "codes": packed(codes, unit),
        "unit": round(unit, 3),
        "data": packed(data, np.abs(data).max(axis=1, keepdims=True)),
        "correlations": [[round(float(value), 3) for value in correlations(frame)] for frame in frames],
        "curves": {name: [float(f"{value:.3g}") for value in history[name]] for name in ("rho", "primal", "dual")},
    }
    return f"window.RECORDED_RUN = {json.dumps(run, separators=(',', ':'), ensure_ascii=False)};\n"


# The animation.

TILE, GAP, MARGIN = 12, 14, 22
"""Pixels of a pixel, between atoms and around them."""
PAPER, INK, QUIET, WARM, COOL = (255, 255, 255), (33, 37, 41), (110, 118, 126), (214, 96, 0), (31, 78, 121)
PAUSE, STEP = 2500, 60
"""Milliseconds of the last frame and of the others."""


def tile(values):
    """A picture of an atom or sample on its own scale: orange is positive, blue negative, white zero."""
    share = (values / np.abs(values).max()).reshape(SIDE, SIDE, 1)
    colours = np.where(share > 0, np.array(WARM), np.array(COOL))
    pixels = 255 + np.abs(share) * (colours - 255.0)
    return Image.fromarray(np.rint(pixels).astype(np.uint8)).resize(
        (SIDE * TILE, SIDE * TILE), Image.Resampling.NEAREST
    )


def animation_frame(data, frame):
    """Two rows of samples, two rows of atoms, and how many of these are found."""
    step, columns = SIDE * TILE + GAP, 8
    width, height = 2 * MARGIN + columns * step - GAP, 4 * step + 84 + MARGIN - GAP
    picture = Image.new("RGB", (width, height), PAPER)
    draw, font = ImageDraw.Draw(picture), ImageFont.load_default(17)
    found = correlations(frame) > FOUND
    draw.text((MARGIN, 12), f"{columns * 2} of {N_SAMPLES} samples, each a mixture of two atoms", QUIET, font)
    below = 2 * step + 84
    told = f"iteration {frame.iteration}: {found.sum()} of {len(found)} atoms found"
    draw.text((MARGIN, below - 32), told, INK, font)
    for i in range(2 * columns):
        left, top = MARGIN + i % columns * step, i // columns * step
        picture.paste(tile(data[i]), (left, top + 40))
        picture.paste(tile(frame.atoms[i]), (left, top + below))
        if found[i]:
            draw.rectangle(
                (left - 5, top + below - 5, left + SIDE * TILE + 4, top + below + SIDE * TILE + 4), None, WARM, 2
            )
    return picture


def animate(data, frames, target):
    """Write the frames as an animation that repeats."""
    shown = [*frames[::2], frames[-1]]
    pictures = [animation_frame(data, frame) for frame in shown]
    times = [STEP] * (len(pictures) - 1) + [PAUSE]
    pictures[0].save(target, "webp", save_all=True, append_images=pictures[1:], duration=times, loop=0, lossless=True)


if __name__ == "__main__":
    recorded = record()
    (FOLDER / "_static" / "recorded-run.js").write_text(script(*recorded), encoding="utf-8")
    animate(*recorded[:2], FOLDER / "images" / "road.webp")
