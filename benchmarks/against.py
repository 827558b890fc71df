"""Speed of engine and coders against that of an older commit: python benchmarks/against.py COMMIT [--rounds 9]

Old and new code run in turn, each time in a fresh process, so that what the machine does meanwhile slows both. Kernels
are compiled before. A ratio is that of the medians over the rounds. Idle cores are needed. Both trees time with their
own benchmarks/engines.py and coders.py: compare only commits in which these measure the same.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
CODERS = {"OMP, 8 nonzeros": {"algorithm": "omp", "n_nonzero_coefs": 8}}
CODERS |= {f"Lasso, alpha = {alpha:g}": {"algorithm": "lasso", "alpha": alpha} for alpha in (0.15, 0.05)}
PASSES = 5
"""Runs of a coder in a process, of which the shortest counts."""


def cases():
    """What is timed, by name: functions that return seconds."""
    import numpy as np

    from coders import picture_patches, seconds
    from engines import LARGE, SMALL, THREADS, problem, seconds_per_step
    from roadict.coders.registry import encode
    from roadict.engines.cpu.fused import FusedEngine

    def iteration(shape, dtype, form):
        engine = FusedEngine(*problem(shape, dtype, form), THREADS)
        taken = seconds_per_step(engine, 2)
        engine.close()
        return taken

    patches = picture_patches(20_000)
    norms = np.linalg.norm(patches, axis=1)
    chosen = np.random.default_rng(0).choice(np.flatnonzero(norms > norms.mean() / 2), 256, replace=False)  # not flat
    atoms = patches[chosen] / norms[chosen, None]

    def coding(dtype, arguments):
        data, dictionary = patches.astype(dtype), atoms.astype(dtype)
        taken, codes = seconds(lambda: encode(data, None, dictionary, n_jobs=1, **arguments), PASSES)
        assert codes.any()
        return taken

    for shape, form in ((LARGE, "exact"), (LARGE, "inexact"), (SMALL, "exact")):
        for dtype in (np.float32, np.float64):
            yield f"iteration, {shape}, {form}, {dtype.__name__}", lambda a=(shape, dtype, form): iteration(*a)
    for name, arguments in CODERS.items():
        for dtype in (np.float32, np.float64):
            yield f"{name}, {dtype.__name__}", lambda a=(dtype, arguments): coding(*a)


def measure():
    """Print the seconds of every case as JSON."""
    print(json.dumps({name: case() for name, case in cases()}))


def run(tree, cache):
    """Times of the code in a folder."""
    path = os.pathsep.join([str(tree / "src"), str(tree / "benchmarks")])
    environment = os.environ | {"PYTHONPATH": path, "NUMBA_CACHE_DIR": cache}
    command = [sys.executable, "-P", __file__, "--measure"]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def compare(commit, rounds):
    """Times of both trees, shape (rounds) by tree and case."""
    with tempfile.TemporaryDirectory() as folder:
        old = Path(folder, "old")
        subprocess.run(["git", "-C", ROOT, "worktree", "add", "-q", "--detach", old, commit], check=True)
        try:
            trees = {tree: Path(folder, f"cache-{i}") for i, tree in enumerate((old, ROOT))}
            for tree, cache in trees.items():
                run(tree, str(cache))  # compiles
            found = {tree: [] for tree in trees}
            for _ in range(rounds):
                for tree, cache in trees.items():
                    found[tree].append(run(tree, str(cache)))
                print("old, new:", *(times[-1] for times in found.values()), file=sys.stderr)
        finally:
            subprocess.run(["git", "-C", ROOT, "worktree", "remove", "--force", old], check=True)
    return found[old], found[ROOT]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit", nargs="?")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        return measure()
    if arguments.commit is None:
        parser.error("name the commit to compare with")
    git = ["git", "-C", ROOT, "rev-parse", "--short=10", "--verify", f"{arguments.commit}^{{commit}}"]
    commit = subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()
    from results import table, write_section

    started = time.perf_counter()
    old, new = compare(commit, arguments.rounds)
    rows = []
    for name in new[0]:
        before, after = ([times[name] for times in found] for found in (old, new))
        ratio = statistics.median(after) / statistics.median(before)
        each = sorted(b / a for a, b in zip(before, after, strict=True))
        now, spread = 1e3 * statistics.median(after), f"{each[0]:.2f} to {each[-1]:.2f}"
        rows.append([name, f"{now:.3g} ms", f"{ratio:.2f}", spread])
    header = ["", "time", f"over that of commit {commit}", "range of single rounds"]
    body = f"{arguments.rounds} rounds of old and new code in turn, {time.perf_counter() - started:.0f} s in all. "
    body += "Iterations on two threads, 20,000 patches of pictures coded in 256 atoms of 64 features on one.\n\n"
    command = f"python benchmarks/against.py {commit} --rounds {arguments.rounds}"
    return write_section("Speed against an older commit", command, body + table(header, rows))


if __name__ == "__main__":
    main()
