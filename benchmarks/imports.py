"""Import times in fresh processes, and the CPU time of help: python benchmarks/imports.py"""

import resource
import statistics
import subprocess
import sys

from results import table, write_section

STATEMENTS = {
    "`import roadict`": ("", "import roadict"),
    "`from roadict import ROAD`": ("", "from roadict import ROAD"),
    "`from roadict import ROAD`, scikit-learn being there": (
        "import sklearn.base, sklearn.utils.validation",
        "from roadict import ROAD",
    ),
    "`import roadict.cli.app`": ("", "import roadict.cli.app"),
}
REPEATS = 7


def seconds(before, statement):
    """Median time of the statement."""
    program = f"import time\n{before}\nstart = time.perf_counter()\n{statement}\nprint(time.perf_counter() - start)"
    command = [sys.executable, "-c", program]
    runs = [subprocess.run(command, capture_output=True, text=True, check=True) for _ in range(REPEATS)]
    return statistics.median(float(run.stdout) for run in runs)


def cpu_seconds(*command):
    """Median CPU time, user and system, of a program and its children."""
    times = []
    for _ in range(REPEATS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-m", *command], capture_output=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
    return statistics.median(times)


if __name__ == "__main__":
    rows = [[name, f"{seconds(*statement):.3f} s"] for name, statement in STATEMENTS.items()]
    rows.append(["`roadict learn --help`, CPU time", f"{cpu_seconds('roadict', 'learn', '--help'):.3f} s"])
    body = f"Median of {REPEATS} fresh processes, files in the cache of the disk.\n\n"
    write_section("Import", "python benchmarks/imports.py", body + table(["statement", "time"], rows))
