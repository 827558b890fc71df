"""Run time of the examples of the gallery, each in a fresh process: python benchmarks/examples.py"""

import os
import subprocess
import sys
import time
from pathlib import Path

from results import table, write_section

EXAMPLES = sorted((Path(__file__).resolve().parents[1] / "examples").glob("plot_*.py"))


def seconds(path):
    """Wall-clock time, and CPU time of all threads."""
    before, start = os.times(), time.perf_counter()
    subprocess.run([sys.executable, str(path)], env=os.environ | {"MPLBACKEND": "Agg"}, check=True)
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return time.perf_counter() - start, used


if __name__ == "__main__":
    rows = [[path.name, *(f"{value:.1f} s" for value in seconds(path))] for path in EXAMPLES]
    body = "Imports included, kernels compiled before.\n\n" + table(["example", "time", "of the processor"], rows)
    write_section("The gallery", "python benchmarks/examples.py", body)
