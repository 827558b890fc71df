"""One command in several processes, as torchrun starts them: errors are reported once, codes are written in parts."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roadict.cli.console import BAD_INPUT, EXPECTED_ERRORS, error_text, print_error

if TYPE_CHECKING:
    from roadict.ranks.comm import Comm


class SilentExitError(Exception):
    """Exit with a status and no message: another rank reports the reason."""

    def __init__(self, code: int = BAD_INPUT) -> None:
        super().__init__()
        self.code = code


@contextlib.contextmanager
def report_once_per_machine() -> Iterator[None]:
    """Report wrong options once: all processes of one torchrun have the same."""
    try:
        yield
    except ValueError:
        if int(os.environ.get("LOCAL_RANK", "0")) > 0:
            raise SilentExitError from None
        raise


@contextlib.contextmanager
def report_once(comm: "Comm") -> Iterator[None]:
    """Report an error that several ranks share once, and at once: torchrun stops all ranks after the first exit."""
    from roadict.engines.gpu.cuda import GpuError
    from roadict.ranks.collectives import OtherRankError
    from roadict.ranks.comm import RankLostError, is_first_to_report

    try:
        yield
    except OtherRankError:
        raise SilentExitError from None
    except RankLostError:
        raise
    except (*EXPECTED_ERRORS, GpuError) as failure:
        text = error_text(failure)
        if is_first_to_report(comm, text):
            print_error(text)
        raise SilentExitError from None


def part_of_codes(output: Path, rank: int, size: int, codes: Any = None) -> Path:
    """File with a rank's codes; sparse ones are a file of SciPy."""
    from roadict.tensors import is_sparse

    return output.with_name(f"{output.stem}.codes-{rank}-of-{size}.{'npz' if is_sparse(codes) else 'npy'}")


def write_part(output: Path, codes: Any, comm: "Comm") -> None:
    """Write this rank's codes next to the model."""
    import numpy as np
    from scipy.sparse import save_npz

    from roadict.files.atomic import atomic_write, write_or_rescue
    from roadict.tensors import is_sparse

    def write(path: Path) -> None:
        with atomic_write(path) as file:
            (save_npz if is_sparse(codes) else np.save)(file, codes)

    write_or_rescue(write, part_of_codes(output, comm.rank, comm.size, codes))
