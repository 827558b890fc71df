"""Machine code on disk: a change of any source that a kernel reaches is compiled, an unchanged one is not."""

import os
import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numba
import pytest

import roadict
from roadict.kernel_cache import sources

PACKAGE = Path(roadict.__file__).parent
INNER = """from roadict.kernels import kernel
SHIFT = 1
@kernel
def double(x): return 2 * x
ordered = kernel(double.py_func, ordered=True)
"""
OUTER = """from roadict.inner import SHIFT, double
from roadict.kernels import kernel
@kernel
def shifted(x): return double(x) + SHIFT
"""
PROGRAM = """from numba.core import event
with event.install_recorder("numba:compile") as compiled:
    from roadict.outer import shifted
    from roadict.inner import ordered
    print(ordered(10) + 1, shifted(10), shifted(0.5), len(compiled.buffer) // 2)
"""


@pytest.fixture
def package(tmp_path):
    """Kernels in a copy of the package, one of which calls the other from another file."""
    ignored = shutil.ignore_patterns("__pycache__")
    copy = Path(shutil.copytree(PACKAGE, tmp_path / "library" / "roadict", ignore=ignored))
    (copy / "inner.py").write_text(INNER)
    (copy / "outer.py").write_text(OUTER)
    return copy


def run(package, program=PROGRAM, **environment):
    """What a new process prints, as numbers."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA")}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=inherited | {"PYTHONPATH": str(package.parent)} | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return [float(word) for word in done.stdout.split()]


def machine_code(folder):
    return sorted(path.name for path in folder.rglob("*.nb[ic]") if path.name.startswith(("inner", "outer")))


def test_a_changed_callee_is_compiled_and_an_unchanged_one_is_not(package):
    assert run(package) == [21, 21, 2, 5]
    files = machine_code(package)
    assert run(package) == [21, 21, 2, 0]
    assert machine_code(package) == files
    (package / "inner.py").write_text(INNER.replace("2 * x", "3 * x"))
    assert run(package) == [31, 31, 2.5, 5]
    (package / "inner.py").write_text(INNER.replace("2 * x", "3 * x").replace("SHIFT = 1", "SHIFT = 5"))
    assert run(package) == [31, 35, 6.5, 5]
    assert run(package) == [31, 35, 6.5, 0]
    assert len(machine_code(package)) == len(files), "what was compiled from old sources is removed"


def test_where_the_package_is_read_only_the_user_has_a_cache(package, tmp_path):
    (package / "__pycache__").write_text("in the way")
    home = {"XDG_CACHE_HOME": str(tmp_path / "home"), "HOME": str(tmp_path / "home"), "PYTHONDONTWRITEBYTECODE": "1"}
    assert run(package, **home)[-1] == 5
    assert machine_code(tmp_path / "home")
    assert run(package, **home)[-1] == 0
    (package / "inner.py").write_text(INNER.replace("2 * x", "3 * x"))
    assert run(package, **home) == [31, 31, 2.5, 5]


def test_numbas_setting_for_the_folder_counts(package, tmp_path):
    for compiled in (5, 0):
        assert run(package, NUMBA_CACHE_DIR=str(tmp_path / "chosen"))[-1] == compiled
    assert machine_code(tmp_path / "chosen")
    assert not machine_code(package)


def test_without_a_writable_place_nothing_is_cached(package, tmp_path):
    for folder in (package / "__pycache__", tmp_path / "home"):
        folder.write_text("in the way")
    home = {"XDG_CACHE_HOME": str(tmp_path / "home"), "HOME": str(tmp_path / "home"), "PYTHONDONTWRITEBYTECODE": "1"}
    assert run(package, **home) == [21, 21, 2, 5]
    assert not machine_code(tmp_path)


def test_machine_code_of_another_signature_is_not_used(package):
    """Two processes that save at the same time may write two signatures to one file."""
    run(package)
    whole, real = sorted((package / "__pycache__").glob("outer.*.nbc"))
    shutil.copy(whole, real)
    assert run(package) == [21, 21, 2, 1]
    assert run(package) == [21, 21, 2, 0]


def kernels_of(module):
    return [value for value in vars(module).values() if isinstance(value, numba.core.dispatcher.Dispatcher)]


@pytest.mark.parametrize(
    "file",
    [file for file in sorted(PACKAGE.rglob("*.py")) if re.search(r"@\w*kernel\n", file.read_text())],
    ids=lambda file: str(file.relative_to(PACKAGE)),
)
def test_every_name_that_a_kernel_uses_comes_from_its_sources(file):
    module = import_module(".".join(["roadict", *file.relative_to(PACKAGE).with_suffix("").parts]))
    assert kernels_of(module)
    assert PACKAGE / "kernels.py" in sources(file), "flags of the compiler"
    for kernel in kernels_of(module):
        for name in kernel.py_func.__code__.co_names:
            used = kernel.py_func.__globals__.get(name)
            home = sys.modules.get(getattr(used, "__module__", None) or "")
            if home is not None and home.__name__.startswith("roadict"):
                assert Path(home.__file__) in sources(file), f"{kernel.__name__} uses {name} of {home.__name__}"
