"""Writes the results of a benchmark to a section of RESULTS.md, with its command, commit and a digest of the code."""

import ast
import os
import platform
import re
import subprocess
import sys
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from filelock import FileLock

from roadict import __version__
from roadict.experiments.provenance import COMMIT_VARIABLE, PACKAGE, code_digest
from roadict.files.atomic import atomic_write

RESULTS = Path(__file__).with_name("RESULTS.md")
ROOT = Path(__file__).parents[1]
HEAD = "# Measured\n\nEach section is written by the command under its title; ratios are from one run.\n"
NOT_IMPORTED = {
    "checkpoints.py": [(PACKAGE, "checkpoints/*.py"), (PACKAGE, "files/*.py"), (PACKAGE, "cli/learn.py")],
    "compile.py": [(PACKAGE, "precompile.py"), (PACKAGE, "kernel_cache.py"), (PACKAGE, "progress/compiling.py")],
    "engines.py": [(PACKAGE, "estimators/road.py")],
    "examples.py": [(ROOT, "examples/plot_*.py"), (PACKAGE, "plotting.py"), (PACKAGE, "drawing/*.py")],
    "imports.py": [(PACKAGE, "**/*.py")],
}
"""Folders and patterns of files that a script measures and does not import, or that no number depends on elsewhere."""


def table(header, rows):
    """Markdown table from strings."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def in_parallel(trial, cases, n_trials):
    """``trial(i, *case)`` for every case and i < n_trials on all cores, the last case first; results by case.

    One pool for all of them: cores do not wait for the slowest trial of every case.
    """
    import joblib

    jobs = [joblib.delayed(trial)(i, *case) for case in reversed(cases) for i in range(n_trials)]
    results = joblib.Parallel(-1, batch_size=1)(jobs)
    return [results[i : i + n_trials] for i in range(0, len(results), n_trials)][::-1]


def write_section(title, command, body):
    """Replace or append the section of this title."""
    packages = ", ".join(f"{name} {metadata.version(name)}" for name in ("numpy", "numba", "scikit-learn"))
    python = f"Python {platform.python_version()}, roadict {__version__}"
    code = f"{_commit_measured(command)}, code {measured_code(command)}"
    machine = f"{datetime.now(UTC):%Y-%m-%d}, {code}, {platform.machine()}, {_cpu()}, {python}, {packages}{_gpu()}"
    section = f"## {title}\n\n`{command}`\n\n{body.strip()}\n\n({machine})\n"
    with FileLock(RESULTS.with_suffix(".lock")):  # two benchmarks may end together
        text = _with_section(RESULTS.read_text("utf-8") if RESULTS.exists() else HEAD, title, section)
        with atomic_write(RESULTS) as file:
            file.write(text.encode())
    print(section)


def _with_section(text, title, section):
    """The text with the section of this title replaced, or appended."""
    parts = re.split(r"^(?=## )", text, flags=re.MULTILINE)
    titles = [part.split("\n", 1)[0] for part in parts]
    if f"## {title}" in titles:
        parts[titles.index(f"## {title}")] = section + "\n"
    else:
        parts.append("\n" * (not parts[-1].endswith("\n\n")) + section)
    return "".join(parts).rstrip() + "\n"


def measured_code(command):
    """Digest of what a command runs: its script, programs that this names, all that they import, and NOT_IMPORTED.

    "" if there is no such script.
    """
    names = [Path(word).name for word in command.split() if word.endswith(".py")]
    if len(names) != 1 or not (script := Path(__file__).with_name(names[0])).is_file():
        return ""
    scripts = _with_neighbours(script)
    more = [
        path for each in scripts for folder, files in NOT_IMPORTED.get(each.name, ()) for path in folder.glob(files)
    ]
    return code_digest([*scripts, *more], skipped=[Path(__file__)])


def _with_neighbours(script):
    """A script, and the files of its folder that it or one of them imports, or names in a text: as a program to run."""
    found, waiting = set(), [script]
    while waiting:
        if (path := waiting.pop()) in found or path == Path(__file__):
            continue
        found.add(path)
        for node in ast.walk(ast.parse(path.read_bytes())):
            names = [f"{alias.name}.py" for alias in node.names] if isinstance(node, ast.Import) else []
            names += [f"{node.module}.py"] if isinstance(node, ast.ImportFrom) else []
            names += [node.value] if isinstance(node, ast.Constant) and isinstance(node.value, str) else []
            beside = [path.with_name(name) for name in names if re.fullmatch(r"\w+\.py", name)]
            waiting += [neighbour for neighbour in beside if neighbour.is_file()]
    return found


def _commit_measured(command):
    """The commit when this process began, with "-dirty" if the code has changed under the measurement."""
    commit, code = _BEGUN
    changed = code and code != measured_code(command)
    return f"commit {commit}" + "-dirty" * bool(changed and not commit.endswith("-dirty"))


def _commit():
    """The commit of the code, with "-dirty" if files of code were changed since."""
    if named := os.environ.get(COMMIT_VARIABLE):
        return named
    git = ["git", "-C", str(RESULTS.parents[1])]
    commit = subprocess.run([*git, "rev-parse", "--short=10", "HEAD"], capture_output=True, text=True, check=True)
    status = [*git, "status", "--porcelain", "--untracked-files=no", "--", "*.py"]
    changed = subprocess.run(status, capture_output=True, text=True, check=True)
    return commit.stdout.strip() + ("-dirty" if changed.stdout else "")


def _gpu():
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return ""
    return f", {torch.cuda.get_device_name()}, torch {torch.__version__}, triton {metadata.version('triton')}"


def _cpu():
    count = f"{os.cpu_count()} cores"
    for line in Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []:
        if line.startswith("model name"):
            return f"{count} of {line.split(':', 1)[1].strip()}"
    return count


_BEGUN = _commit(), measured_code(sys.argv[0])
"""Commit and code when the process began: the files may change in the hours that a measurement takes."""
