"""Messages name options, not parameters of Python; names of files stay as they are."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest

from program import assert_refused
from roadict.cli.naming import PARAMETERS, as_options
from roadict.drawing.raster import png

from .small import DATA, LEARN


@pytest.fixture
def here(folder):
    np.save("known.npy", DATA[:9])
    Path("small.png").write_bytes(png(np.random.default_rng(0).random((32, 32))))
    return folder


BAD = {
    "learn data.npy": {
        "--alpha -1": "--alpha -1 belongs to --formulation lasso, not",
        "--alpha -0.5 --formulation lasso": "--alpha -0.5 must be a finite number above 0",
        "--beta 1,2,3": "--beta 1,2,3 belongs to --formulation inexact, not",
        "--beta 9 --rho 5 --formulation inexact": "--rho 5 must exceed --beta 9 for",
        "--rho 1,2,3": "--rho 1,2,3 must be one number unless --formulation inexact",
        "-k 2 --epsilon 0": "the smallest relative error that 2 atoms can reach on this data; pass --epsilon auto,",
        "--max-iter 0": "--max-iter 0 must be a whole number of at least 1",
        "--jobs 0": "--jobs 0 must be a whole number other than 0; leave it out for all cores",
        "--seed -1": "--seed -1 must be a whole number of at least 0; pass for example --seed 0",
        "--engine gpu": "--engine gpu must be one of 'auto'",
        "--fixed known.npy": "--fixed has 9 rows, which count in --components 8; pass --components 9 or more",
        "--key a": "data.npy has no arrays to choose from by --key a; leave",
        "--method ksvd --sparsity 0": "--sparsity 0 must be a whole number of at least 1",
        "--method ksvd --alpha 1": "--alpha 1 is not used by --method ksvd with --coder omp; leave it out",
        "--method ksvd --coder nope": "or 'half' or 'threshold'",
        "--method sequential --sparsity 3": "--sparsity 3 is not used by --method sequential with no --coder; leave",
        "--method simco --positive atoms": "--positive atoms is not possible with --method simco; use",
    },
    "encode model.npz data.npy": {
        "-a omp --alpha 1": "--alpha 1 is not used by --algorithm omp, which takes --n-nonzero-coefs and --epsilon;",
        "-s 2": "--n-nonzero-coefs 2 is not used by --algorithm lasso, which takes --alpha; leave it out",
        "-a omp --epsilon 2": "--epsilon 2 must be below 1",
        "--jobs 0": "--jobs 0 must be a whole number other than 0; leave it out for all cores",
    },
    "denoise small.png": {
        "--sigma -3": "--sigma -3 must be a number from 0 to 255, or auto",
        "--sigma 300": "--sigma 300 must be a number from 0 to 255, or auto",
        "--quiet --jobs 0": "--jobs 0 must be a whole number other than 0; leave it out for all cores",
    },
    "inpaint small.png --mask small.png": {
        "--quiet --jobs 0": "--jobs 0 must be a whole number other than 0; leave it out for all cores",
    },
    "upscale small.png": {
        "--scale 5": "--scale 5 must be 2, 3 or 4",
        "--approach nope": "--approach nope must be one of 'anchored'",
        "--method nope": "--method nope must be one of 'road'",
        "--jobs 0": "--jobs 0 must be a whole number other than 0; leave it out for all cores",
    },
}
OUTPUTS = {"learn": LEARN, "encode": ("-o", "codes.npz")}


@pytest.mark.parametrize(("command", "options"), [(command, each) for command in BAD for each in BAD[command]])
def test_errors_name_options(roadict, here, command, options):
    output = OUTPUTS.get(command.split()[0], ("-o", "out.png"))
    result = roadict(*command.split(), *output, *options.split())
    assert_refused(result, BAD[command][options])
    assert re.search(r"\w=|\bNone\b|\b\w+_\w+\b", result.err) is None


def test_warnings_name_options(roadict, folder):
    result = roadict("learn", "data.npy", *LEARN, "--method", "mod", "--coder", "lasso", "--alpha", "0.1")
    (warning,) = (line for line in result.err.splitlines() if "warning" in line)
    assert warning.startswith("roadict: warning: --method mod has not converged in --max-iter 5 iterations")
    assert warning.endswith("(--tol 0.0001); pass a larger --max-iter or --tol, or --tol 0 to run all iterations")


@pytest.mark.parametrize(
    "name",
    ["alpha=1.npy", "max_iter.npy", "n_init/data.npy", "my n_init runs/x.npy", "alpha=1/max_iter=2.npy", "tol=0"],
)
def test_names_of_files_stay(roadict, folder, name):
    data = f"{name}.npy" if name == "tol=0" else name
    assert_refused(roadict("learn", data, *LEARN), f"roadict: error: {data} does not exist; check its name and folder")
    output = f"{data}.txt"
    assert_refused(roadict("learn", "data.npy", "-o", output), f"roadict: error: output {output} must end in .npz")


def test_every_option_is_one_of_the_command(roadict):
    """Some that encode respects are those of learn, in the model."""
    for command, options in PARAMETERS.items():
        text = roadict(command, "--help").out + (roadict("learn", "--help").out if command == "encode" else "")
        assert {*options.values()} <= {*re.findall(r"--[a-z-]+", text)}, command


@pytest.mark.parametrize(
    "text",
    [
        "the file alphabet=3 and xalpha=3 are others",
        "runs/alpha=3 or alpha=x or alpha-1 is the name of a folder",
        "larger tolerances, or rhombic data",
        "no parameter at all: 3 = 3",
    ],
)
def test_other_text_stays(text):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert as_options(text, ["learn", "data.npy"]) == text
        assert as_options(text, []) == text


def test_only_parameters_of_the_command_are_options():
    text = "alpha=3.0, scale=3 and n_jobs=2"
    assert as_options(text, ["learn", "x"]) == "--alpha 3, scale=3 and --jobs 2"
    assert as_options(text, ["upscale", "x"]) == "alpha=3.0, --scale 3 and --jobs 2"
    assert as_options(text, ["show", "x"]) == text
    assert as_options("--part='x' must be", ["reproduce"]) == "--part x must be"
