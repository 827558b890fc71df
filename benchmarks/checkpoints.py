"""Kill a run at random times, resume it, and compare its model with that of an uninterrupted run.

python benchmarks/checkpoints.py [--trials 20]
"""

import argparse
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from results import table, write_section

from roadict import load
from roadict.synthetic import planted

KINDS = {
    "road, ρ = 10": ("--rho", "10", "--tol", "0", "--max-iter", "6000"),
    "road, automatic ρ, several starts": ("--tol", "0", "--max-iter", "1500", "--n-init", "4"),
    "ksvd": ("--method", "ksvd", "--sparsity", "2", "--tol", "0", "--max-iter", "2000"),
}


def learn(folder, output, kind, *more):
    command = [sys.executable, "-m", "roadict", "learn", "data.npy", "-k", "12", "-o", output, "--seed", "0", "-q"]
    return subprocess.Popen([*command, *KINDS[kind], *more], cwd=folder)


def same(first, second):
    """Whether two models are bit-identical, except for the seconds in their histories."""
    a, b = load(first), load(second)
    columns = [name for name in a.history_ if name != "seconds"]
    return (
        np.array_equal(a.components_, b.components_)
        and np.array_equal(a.codes_, b.codes_)
        and a.stop_reason_ == b.stop_reason_
        and all(np.array_equal(a.history_[name], b.history_[name], equal_nan=True) for name in columns)
    )


def trial(folder, kind, seconds, rng):
    """Kill one to three times, resuming each time; returns the number of kills of a running process."""
    saving = ("--checkpoint", "checkpoints", "--every", "0.05s", "--resume")
    kills = 0
    for _ in range(rng.randint(1, 3)):
        with learn(folder, "resumed.npz", kind, *saving) as process:
            time.sleep(rng.uniform(0, 1.2 * seconds))
            process.kill()
            kills += process.wait() != 0
        if (folder / "resumed.npz").exists():
            load(folder / "resumed.npz")  # raises if damaged
    with learn(folder, "resumed.npz", kind, *saving) as process:
        if process.wait() != 0:
            raise SystemExit(f"{kind}: the run did not resume")
    if not same(folder / "resumed.npz", folder / "uninterrupted.npz"):
        raise SystemExit(f"{kind}: another model after {kills} kills")
    (folder / "resumed.npz").unlink()
    return kills


def main(trials):
    rows, rng = [], random.Random(0)
    for kind in KINDS:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            np.save(folder / "data.npy", planted(300, 8, 12, sparsity=2, random_state=0).data)
            for _ in range(2):  # the first may compile
                started = time.perf_counter()
                learn(folder, "uninterrupted.npz", kind).wait()
                seconds = time.perf_counter() - started
            kills = 0
            for index in range(trials):
                kills += trial(folder, kind, seconds, rng)
                print(f"{kind}: {index + 1} of {trials}, {kills} kills", file=sys.stderr)
            rows.append([kind, f"{seconds:.1f} s", trials, kills, trials])
    body = table(["run", "unbroken", "trials", "kill -9 while it ran", "same model, to the bit"], rows)
    body += "\n\nChecked after every kill: a model file, where there is one, is whole. A checkpoint every 0.05 s."
    write_section("Killed and resumed", f"python benchmarks/checkpoints.py --trials {trials}", body)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=20)
    main(parser.parse_args().trials)
