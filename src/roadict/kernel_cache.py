"""Numba's disk cache, keyed by the source of a kernel and of all that it imports from this package.

Numba itself notices a change of the kernel's own file only, but the kernels it calls, from other files, are compiled
into it.
"""

import contextlib
import hashlib
import inspect
import re
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.registry import cpu_target

PACKAGE = Path(__file__).parent
IMPORT = re.compile(rb"^[ \t]*(?:from|import)[ \t]+(?:roadict\b([\w.]*)|\.)", re.MULTILINE)


@cache  # as it was when this process imported it: an edit after that is not what the process compiles
def _read(path: Path) -> tuple[bytes, tuple[Path, ...]]:
    """Digest of a file, and the files of the package that it imports; of a folder or relative import, too many."""
    source = path.read_bytes() if path.is_file() else b""  # no sources in a frozen program: Numba stamps the program
    imported: list[Path] = []
    for name in IMPORT.findall(source):
        place = PACKAGE.joinpath(*name.decode().split(".")[1:])
        module = place.with_suffix(".py")
        imported += [module] if module.is_file() else place.rglob("*.py")
    return hashlib.sha256(source).digest(), tuple(imported)


@cache
def sources(path: Path) -> dict[Path, bytes]:
    """Digests of a file and of all that it imports from this package, directly or not."""
    digests: dict[Path, bytes] = {}
    waiting = [path]
    while waiting:
        if (path := waiting.pop()) not in digests:
            digests[path], imported = _read(path)
            waiting += imported
    return digests


class _Files(CompileResultCacheImpl):
    """Names of a kernel's files: with the digest, so that processes with other sources do not share them."""

    def __init__(self, function: Callable[..., Any], variant: str) -> None:
        self._variant = variant
        digests = sources(Path(inspect.getfile(function)))
        versions = f"{numba.__version__} {llvmlite.__version__}".encode()
        self._digest = hashlib.sha256(versions + b"".join(digests[path] for path in sorted(digests))).hexdigest()[:16]
        super().__init__(function)

    def get_filename_base(self, fullname: str, abiflags: str) -> str:
        name = f"{fullname}.{self._variant}" if self._variant else fullname
        base: str = super().get_filename_base(name, abiflags)  # name-line.version
        name, rest = base.rsplit("-", 1)
        self.pattern = f"{name}-*.{rest.split('.')[1]}*.nb[ic]"
        return f"{base}.{self._digest}"


class KernelCache(FunctionCache):
    """The compiled signatures of a kernel on disk, where Numba puts them.

    Raises RuntimeError where there is no writable place. ``variant`` names compiler flags that the sources do not tell.
    """

    def __init__(self, function: Callable[..., Any], variant: str = "") -> None:
        self._impl_class = partial(_Files, variant=variant)
        super().__init__(function)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Look up a signature; None if it must be compiled."""
        found = super().load_overload(sig, target_context)
        # Two processes that save at the same time may give two signatures one file.
        return found if found is not None and found.signature.args == tuple(sig) else None

    def has_first_dtype(self, number: Any) -> bool:
        """Whether the cache has a signature, for this machine, whose first argument is an array of such numbers."""
        host = cpu_target.target_context.codegen().magic_tuple()
        index = self._cache_file._load_index()
        return any(key[0][0].dtype == number and key[1] == host for key in index)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save a signature, and remove what was compiled from other sources."""
        super().save_overload(sig, data)
        for file in Path(self.cache_path).glob(self._impl.pattern):
            if not file.name.startswith(f"{self._impl.filename_base}."):
                with contextlib.suppress(OSError):  # removed by another process, or open on Windows
                    file.unlink()


def is_compiled(kernel: Any, dtype: np.dtype[Any]) -> bool:
    """Whether a kernel whose first argument is an array of this dtype has been compiled, here or into the cache.

    True also if there is no cache, or if Numba does not compile at all: nothing could be done ahead.
    """
    cache = getattr(kernel, "_cache", None)
    if not isinstance(cache, KernelCache):
        return True
    number = numba.from_dtype(dtype)
    try:
        here = any(signature.args[0].dtype == number for signature in kernel.nopython_signatures)
        return here or cache.has_first_dtype(number)
    except Exception:  # whatever another release of Numba makes of its internals, or a damaged file: not ahead
        return True
