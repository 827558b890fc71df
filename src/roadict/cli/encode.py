"""The command that encodes signals in a learned dictionary."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from roadict.cli.console import (
    check_output,
    naming_places,
    progress_bar,
    save,
    showing_warnings,
    telling_what_was_written,
)
from roadict.cli.help import add_command
from roadict.cli.options import (
    AlgorithmOption,
    BoundOption,
    CodesFileOption,
    CoefficientsOption,
    DataArgument,
    EncodeMissingOption,
    JobsOption,
    KeyOption,
    ModelArgument,
    QuietOption,
    SparseOption,
    WeightOption,
)
from roadict.wording import of, plural

if TYPE_CHECKING:
    from numpy.typing import NDArray

BLOCK_ROWS = 5000
BLOCK_NUMBERS = 2**24
"""Samples that are read and coded between two progress updates; fewer if they or their codes have more numbers."""


def add_commands(app: typer.Typer) -> None:
    """Add the command to the program."""
    add_command(
        app,
        encode,
        "roadict encode model.npz new.npy -o codes.npz",
        "roadict encode model.npz new.npy -o codes.npz --algorithm omp -s 3",
        "roadict encode model.npz new.npy -o codes.npz --sparse",
    )


def encode(
    model_file: ModelArgument,
    data: DataArgument,
    output: CodesFileOption,
    algorithm: AlgorithmOption = None,
    n_nonzero_coefs: CoefficientsOption = None,
    alpha: WeightOption = None,
    epsilon: BoundOption = None,
    missing: EncodeMissingOption = False,
    sparse: SparseOption = False,
    jobs: JobsOption = None,
    key: KeyOption = None,
    quiet: QuietOption = False,
) -> None:
    """Encode signals in a learned dictionary.

    The output has a row of codes per signal. A .npy file is read in blocks of rows. With --sparse, the codes take
    memory for their nonzeros only.
    """
    check_output(output, (".npz",) if sparse else (".npz", ".npy"), inputs=(model_file, data))
    import numpy as np
    from scipy.sparse import vstack

    from roadict.estimators import load
    from roadict.files.blocks import read_blocks
    from roadict.precompile import kernel_of_coder, prepare

    model = load(model_file)
    if n_nonzero_coefs is not None and n_nonzero_coefs > (width := model.components_.shape[1]):
        raise ValueError(f"--n-nonzero-coefs {n_nonzero_coefs} must be at most {width}, the number of features")
    coder = model.sparse_coder(algorithm, n_nonzero_coefs=n_nonzero_coefs, alpha=alpha, epsilon=epsilon)
    coder.n_jobs = jobs
    if missing:
        coder.missing_values = math.nan
    n_rows = max(1, min(BLOCK_ROWS, BLOCK_NUMBERS // max(model.components_.shape)))
    with showing_warnings():
        n_samples, blocks = read_blocks(data, key, n_rows)
    parts: list[Any] = []
    done, error = 0, _RelativeError(model.components_)
    with naming_places(data), showing_warnings(), progress_bar(quiet, "encoding") as advance:
        for block in blocks:
            _check_width(data, block.shape[1], model.components_.shape[1])
            if not done:
                coder._validate(block, coder._checked_dictionary(), reset=False)  # nothing is compiled for bad input
                prepare([kernel_of_coder(coder.algorithm, bool(coder.positive_code))], block.dtype)
            parts.append(_finite(data, coder._transform(block, sparse, first_row=done)))
            if not quiet:
                error.add(block, parts[-1])
            done += len(block)
            advance(done, n_samples, of(done, n_samples, "sample"))
    codes: Any = vstack(parts, format="csr") if sparse else np.concatenate(parts)
    save(lambda path: _write(path, codes, sparse), output)
    if quiet:
        return
    with telling_what_was_written([output]):
        per_sample = (codes.nnz if sparse else np.count_nonzero(codes)) / n_samples
        count = plural(n_samples, "sample")
        typer.echo(f"{count}, {per_sample:.2f} coefficients per sample, relative error {error.value():.3g}")
        typer.echo(f"codes: {output}")


def _write(path: Path, codes: Any, sparse: bool) -> None:
    import numpy as np
    from scipy.sparse import save_npz

    from roadict.files.atomic import atomic_write

    with atomic_write(path) as file:
        if sparse:
            save_npz(file, codes)
        elif path.suffix.lower() == ".npy":
            np.save(file, codes)
        else:
            np.savez_compressed(file, codes=codes)


def _finite(data: Path, codes: Any) -> Any:
    """Return codes; refuse those that have overflowed."""
    import numpy as np

    if not np.isfinite(codes.data if hasattr(codes, "nnz") else codes).all():
        raise ValueError(f"codes of {data} overflow {codes.dtype}; rescale the signals")
    return codes


def _check_width(data: Path, width: int, expected: int) -> None:
    if width != expected:
        found = plural(width, "feature")
        raise ValueError(f"{data} has {found} per sample, but the model is for {expected}; pass signals of that length")


class _RelativeError:
    """``‖X - codes @ atoms‖ / ‖X‖`` over the observed entries of all blocks."""

    def __init__(self, atoms: "NDArray[Any]") -> None:
        self._atoms = atoms.astype("float64")
        self._unit = 0.0
        self._norms = 0.0, 0.0

    def add(self, block: "NDArray[Any]", codes: Any) -> None:
        import numpy as np

        data = np.where(np.isnan(block), 0, block).astype(np.float64)
        self._unit = self._unit or float(np.abs(data).max())  # squares must neither vanish nor overflow
        if self._unit == 0:
            return
        residual = np.where(np.isnan(block), 0, data / self._unit - (codes / self._unit) @ self._atoms)
        misfit, size = (float(np.linalg.norm(array)) for array in (residual, data / self._unit))
        self._norms = math.hypot(self._norms[0], misfit), math.hypot(self._norms[1], size)

    def value(self) -> float:
        misfit, size = self._norms
        return misfit / size if size > 0 else 0.0
