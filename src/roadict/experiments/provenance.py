"""Which code made a row: the commit, and a digest of the sources that decide its numbers."""

import ast
import hashlib
import os
import subprocess
from collections.abc import Iterable
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[1]
COMMIT_VARIABLE = "ROADICT_COMMIT"
"""Environment variable that names the commit where there is no git: as on a machine that has a copy of the files."""
UNKNOWN = "unknown"
ROOTS = {
    "road": ("estimators/road.py", "synthetic.py", "metrics.py"),
    "alternating": ("two_stage.py", "synthetic.py", "metrics.py"),
    "picture": ("pictures/superresolution.py", "two_stage.py", "experiments/execution.py", "metrics.py"),
    "timed": ("experiments/timed.py", "two_stage.py", "synthetic.py", "metrics.py"),
    "bicubic": ("pictures/resize.py", "metrics.py"),
}
"""Files of the learners of ``Method.learner``, and of what their trials are made of and measured by."""
ALONE = ("experiments/trial.py", "experiments/images.py", "estimators/alternating.py")
"""Files that count without what they import, which is all learners."""
NOT_COUNTED = ("road/number.py", "experiments/methods.py", "experiments/provenance.py")
"""Files that learners import, but that count for no row: the search for the number of atoms, which none runs; the
settings of the methods, which are in its key; and this one."""
WITHOUT_NUMBERS = (
    *("checkpoints", "drawing", "extras", "files", "kernel_cache", "plotting", "precompile", "progress", "wording"),
    "road.expected",
)
"""Packages and modules that no result depends on."""


@cache
def commit() -> str:
    """Return the commit of this code, with "-dirty" if files were changed since; "unknown" without git.

    The variable ROADICT_COMMIT, if set, is returned instead.
    """
    if named := os.environ.get(COMMIT_VARIABLE, "").strip():
        return named
    # A package that is installed into somebody's repository, and not part of it, has no commit.
    if _git("ls-files", "--error-unmatch", __file__) is None:
        return UNKNOWN
    return _git("describe", "--always", "--dirty", "--abbrev=40", "--exclude=*") or UNKNOWN


def _git(*arguments: str) -> str | None:
    command = ["git", "-C", str(PACKAGE), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


@cache
def sources_digest(learner: str) -> str:
    """Digest of the code of a learner and of all that it imports from this package, without comments and docstrings.

    So a row is computed again if code has changed that its numbers may depend on. Of ROAD's rows two parts of that do
    not count: ``starting_atoms`` and ``fit_all``, which a test pins instead, as it does ``methods.ITERATIONS``.
    """
    roots, alone, skipped = ([PACKAGE / name for name in names] for names in (ROOTS[learner], ALONE, NOT_COUNTED))
    return code_digest(roots, alone, skipped)


def code_digest(roots: Iterable[Path], alone: Iterable[Path] = (), skipped: Iterable[Path] = ()) -> str:
    """Digest of the statements of files and of all that they import from this package, or from their own folder.

    Parameters
    ----------
    roots : iterable of Path
    alone : iterable of Path
        Files that count without what they import.
    skipped : iterable of Path
        Files that do not count.
    """
    found, waiting, left_out = {*alone}, [*roots], {*skipped}
    while waiting:
        if (path := waiting.pop()) not in found | left_out:
            found.add(path)
            waiting += _imported(path)
    total = hashlib.sha256()
    for path in sorted(found):
        name = path.relative_to(PACKAGE).as_posix() if path.is_relative_to(PACKAGE) else path.name
        total.update(f"{name}\n{_statements(path.read_text('utf-8'))}\n".encode())
    return total.hexdigest()[:16]


@cache
def _imported(path: Path) -> tuple[Path, ...]:
    """Files of this package that a file imports, anywhere in it, and those of its own folder if that is elsewhere."""
    found = []
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.ImportFrom) and node.module:
            found += [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
    own = [name.split(".")[1:] for name in found if name.split(".")[0] == "roadict"]
    paths = {_file_of(parts) for parts in own}
    if not path.is_relative_to(PACKAGE):
        beside = {path.with_name(f"{name.split('.')[0]}.py") for name in found}
        paths |= {neighbour for neighbour in beside if neighbour.is_file()}
    return tuple(sorted(path for path in paths if path is not None))


def _file_of(parts: list[str]) -> Path | None:
    """The file of a module, or of the module or package that a name is imported from; None: no result depends on it."""
    if any(parts[: name.count(".") + 1] == name.split(".") for name in WITHOUT_NUMBERS):
        return None
    place = PACKAGE.joinpath(*parts)
    candidates = (place.with_suffix(".py") if parts else place, place / "__init__.py")
    found = next((path for path in candidates if path.is_file()), None)
    if found or not parts:
        return found
    *package, name = parts
    return _file_of(_passed_on(PACKAGE.joinpath(*package, "__init__.py")).get(name, package))


@cache
def _passed_on(path: Path) -> dict[str, list[str]]:
    """Where a package has the names from that it imports: those who import ``roadict.ROAD`` need one module of many."""
    tree = ast.walk(ast.parse(path.read_bytes() if path.is_file() else b""))
    nodes = [node for node in tree if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("roadict.")]
    return {alias.name: [*(node.module or "").split(".")[1:], alias.name] for node in nodes for alias in node.names}


@cache
def _statements(source: str) -> str:
    r"""Lines of code, without blank lines, comment lines and texts that stand alone, such as docstrings.

    Examples
    --------
    >>> _statements("'Doc.'\n\n# why\nx = 1\n'Of x.'\ndef f():\n    'Doc.'\n    return x  # why\n")
    'x = 1\ndef f():\n    return x  # why'
    """
    skipped: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            skipped |= {*range(node.lineno, (node.end_lineno or node.lineno) + 1)}
    lines = [line.rstrip() for number, line in enumerate(source.splitlines(), 1) if number not in skipped]
    return "\n".join(line for line in lines if line and not line.lstrip().startswith("#"))
