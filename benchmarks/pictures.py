"""Super-resolution, denoising and inpainting on the pictures in ../shared/data.

python benchmarks/pictures.py [set5 denoise inpaint speed]
"""

import argparse
import multiprocessing
import resource
import time
from pathlib import Path

import numpy as np
from PIL import Image
from results import table, write_section
from skimage.restoration import inpaint_biharmonic

from roadict.metrics import psnr
from roadict.pictures import SuperResolution, denoise, inpaint
from roadict.pictures.resize import luma, resize
from roadict.pictures.upscaling import bundled_pictures

SHARED = Path(__file__).resolve().parents[1].parent / "shared" / "data"
PUBLISHED = {2: ("33.66", "35.75", "36.54"), 3: ("30.39", "31.90", "32.59"), 4: ("28.42", "–", "–")}
DENOISED = {"house": ("33.18", "33.82"), "peppers": ("30.75", "31.35"), "barbara": ("30.75", "31.69")}


def read(path):
    return np.asarray(Image.open(path))


def luma8(path):
    picture = read(path) / 255
    return np.rint(luma(picture) * 255) / 255


def shrunken(picture, scale):
    height, width = (length // scale * scale for length in picture.shape)
    picture = picture[:height, :width]
    return resize(picture, (height // scale, width // scale)), picture


def timed(function, *arguments, **parameters):
    before = time.perf_counter()
    result = function(*arguments, **parameters)
    return result, time.perf_counter() - before


def set5():
    rows = []
    for scale, published in PUBLISHED.items():
        model, seconds = timed(SuperResolution(scale, random_state=0).fit, bundled_pictures())
        scores = []
        for path in sorted((SHARED / "set5").glob("*.png")):
            small, truth = shrunken(luma8(path), scale)
            inside = (slice(scale, -scale),) * 2
            big = np.rint(np.clip(model.predict(small), 0, 1) * 255)
            scores.append(psnr(big[inside], np.rint(truth * 255)[inside], 255))
        each = ", ".join(f"{score:.2f}" for score in scores)
        rows.append([f"×{scale}", f"{np.mean(scores):.2f}", each, *published, f"{seconds:.0f} s"])
    header = ["", "mean PSNR (dB)", "baby, bird, butterfly, head, woman", "bicubic", "Zeyde", "A+", "training"]
    return "Set5 with the default model, trained on pictures inside scikit-image", table(header, rows)


def denoising():
    rows = []
    for name, published in DENOISED.items():
        truth = read(SHARED / "set12" / f"{name}.png").astype(float)
        noisy = truth + np.random.default_rng(0).normal(0, 20, truth.shape)
        result, seconds = timed(denoise, noisy, 20, random_state=0)
        score = f"{psnr(result, truth, 255):.2f}"
        rows.append([name, f"{psnr(noisy, truth, 255):.2f}", score, *published, f"{seconds:.0f} s"])
    header = ["picture", "noisy", "roadict (dB)", "K-SVD", "BM3D", "time"]
    return "Denoising, σ = 20", table(header, rows)


def inpainting():
    rows = []
    for name in ("house", "barbara"):
        truth = read(SHARED / "set12" / f"{name}.png")
        missing = np.random.default_rng(0).random(truth.shape) < 0.5
        damaged = np.where(missing, 0, truth).astype(np.uint8)
        result, seconds = timed(inpaint, damaged, missing, random_state=0)
        smooth = inpaint_biharmonic(damaged / 255, missing)
        scores = psnr(smooth, truth / 255), psnr(result, truth, 255)
        rows.append([name, *(f"{score:.2f}" for score in scores), f"{scores[1] - scores[0]:+.2f}", f"{seconds:.0f} s"])
    header = ["picture", "biharmonic (dB)", "roadict (dB)", "gain", "time"]
    return "Inpainting, half of the pixels missing at random", table(header, rows)


def _measure(shape, queue):
    model = SuperResolution(3, method="random", random_state=0).fit(bundled_pictures()[:2])
    picture = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    _, seconds = timed(model.predict, picture)
    queue.put((seconds, before / 2**20, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20))


def speed():
    rows = []
    for shape in ((400, 400), (400, 400, 3), (3000, 4000, 3)):
        fresh = multiprocessing.get_context("spawn")
        queue = fresh.Queue()
        process = fresh.Process(target=_measure, args=(shape, queue))
        process.start()
        seconds, _, peak = queue.get()
        process.join()
        rows.append(["×".join(map(str, shape)), f"{seconds:.1f} s", f"{peak:.2f} GiB"])
    header = ["picture", "time", "peak memory of the process, training on two pictures included"]
    return "Enlarging by 3 with a trained model", table(header, rows)


SECTIONS = {
    "set5": set5,
    "denoise": denoising,
    "inpaint": inpainting,
    "speed": speed,
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("sections", nargs="*", default=list(SECTIONS))
    for name in parser.parse_args().sections:
        title, body = SECTIONS[name]()
        write_section(title, f"python benchmarks/pictures.py {name}", body)


if __name__ == "__main__":
    main()
