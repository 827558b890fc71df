"""Ranks compared with one process: time per iteration, share of communication, memory per rank.

python benchmarks/distributed.py gloo     # two single-threaded ranks and one, on this machine
python benchmarks/distributed.py descent  # the same, in the descent over real patches
python benchmarks/distributed.py nccl     # one rank over NCCL and the serial CUDA engine, on a machine with a GPU
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from real_patches import load_patches
from results import table, write_section

from roadict.engines.registry import make_engine
from roadict.formulation import Problem, constrained
from roadict.ranks.comm import SERIAL, process_group
from roadict.road.descent import Descent
from roadict.road.plan import Parameters, Request
from roadict.road.start import starting_point
from roadict.synthetic import planted

SHAPE = (34, 256, 11775)
DESCENT_SHAPE, ALPHA = (64, 256, 20_000), 0.08
ROUNDS = 3
"""Alternations of one rank and two."""


class TimedComm:
    """A communicator that times its sums, including the wait for slower ranks."""

    def __init__(self, comm):
        self.rank, self.size, self._comm, self.seconds = comm.rank, comm.size, comm, 0.0

    def sum(self, array):
        before = time.perf_counter()
        total = self._comm.sum(array)
        self.seconds += time.perf_counter() - before
        return total


def shard(shape, rank, size):
    n_features, n_components, n_samples = shape
    data = planted(n_samples, n_features, n_components, sparsity=3, random_state=0).data.astype(np.float32)
    part = np.arange(n_samples * rank // size, n_samples * (rank + 1) // size)
    return Problem(np.ascontiguousarray(data[part]), None, constrained(0.0), (10.0,) * 3)


def resident(peak):
    """Resident memory in bytes, or its peak."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:" if peak else "VmRSS:"):
            return int(line.split()[1]) * 1024
    return 0


def timed_steps(run, comm, iterations):
    """Return the median seconds of a step, the share of the time spent in sums, and the last objective."""
    comm.seconds, times = 0.0, []
    for _ in range(iterations):
        started = time.perf_counter()
        measures = run.step()
        times.append(time.perf_counter() - started)
    return {
        "step": statistics.median(times), "share": comm.seconds / sum(times), "objective": measures.objective
    }  # fmt: skip


def work(iterations):
    """Measure one rank: seconds per iteration, share spent in sums, memory beyond the data."""
    with process_group(600.0, "numba") as joined:
        comm = TimedComm(joined)
        problem = shard(SHAPE, comm.rank, comm.size)
        start = starting_point(problem.data, SHAPE[1], None, None, np.random.default_rng(1), comm)
        warm = make_engine("numba", shard((34, 16, 64), 0, 1), start[0][:16], np.zeros((64, 16), np.float32), 1, SERIAL)
        warm.step()  # compiles
        warm.step()
        before = resident(peak=False)
        Path("/proc/self/clear_refs").write_text("5")  # resets the high-water mark
        engine = make_engine("numba", problem, *start, 1, comm)
        engine.step()
        engine.step()
        measured = timed_steps(engine, comm, iterations)
        measured["memory"] = resident(peak=True) - before
        engine.close()
        if comm.rank == 0:
            print(json.dumps(measured))


def work_in_descent(iterations):
    """Measure one rank: seconds per step of a descent of the Lasso form, and the share spent in sums."""
    _, n_components, n_samples = DESCENT_SHAPE
    with process_group(600.0, "numba") as joined:
        comm = TimedComm(joined)
        part = np.array_split(load_patches(n_samples)[0], comm.size)[comm.rank]
        parameters = Parameters(formulation="lasso", alpha=ALPHA, n_search_samples=n_samples)
        plan = Request(part, None, n_components, parameters, comm).plan()
        start = starting_point(plan.problem.data, n_components, None, None, np.random.default_rng(1), comm)
        run = Descent(plan, start[0], np.zeros_like(start[1]), 1)
        run.step()  # compiles
        measured = timed_steps(run, comm, iterations)
        if comm.rank == 0:
            print(json.dumps(measured))


def measure(size, iterations, what="work"):
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(size), __file__]
    done = subprocess.run(
        [*command, what, "--iterations", str(iterations)],
        env=os.environ | {"OMP_NUM_THREADS": "1"}, check=True, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    return json.loads(done.stdout.splitlines()[-1])


def alternate(iterations, what):
    """Measure one rank and two in turn; returns the medians by number of ranks, and the ratios of all rounds."""
    found = {1: [], 2: []}
    for _ in range(ROUNDS):
        for size, results in found.items():
            results.append(measure(size, iterations, what))
            print(size, results[-1], file=sys.stderr)
    middle = {
        size: {name: statistics.median(result[name] for result in results) for name in results[0]}
        for size, results in found.items()
    }
    spread = ", ".join(f"{a['step'] / b['step']:.2f}" for a, b in zip(found[1], found[2], strict=True))
    return middle, f"{middle[1]['step'] / middle[2]['step']:.2f} times as fast as one (by rounds: {spread})"


def gloo(iterations):
    middle, faster = alternate(iterations, "work")
    rows = [
        [size, f"{m['step'] * 1e3:.1f} ms", f"{100 * m['share']:.1f} %", f"{m['memory'] / 1e6:.0f} MB"]
        for size, m in middle.items()
    ]
    less = middle[1]["memory"] / middle[2]["memory"]
    body = table(["ranks of one thread", "one iteration", "of it in sums over ranks", "memory of a rank"], rows)
    body += (
        f"\n\n(M, K, N) = {SHAPE}, float32, gloo on one machine. Two ranks are {faster} and need {less:.2f} times less "
        f"memory each. Medians of {ROUNDS} turns of {iterations} iterations each; memory above the data, the engine's "
        "arrays and what it needs in a step."
    )
    write_section("Two ranks against one", "python benchmarks/distributed.py gloo", body)


def descent(iterations):
    middle, faster = alternate(iterations, "work-in-descent")
    rows = [[size, f"{m['step'] * 1e3:.1f} ms", f"{100 * m['share']:.1f} %"] for size, m in middle.items()]
    body = table(["ranks of one thread", "one step", "of it in sums over ranks"], rows)
    body += (
        f"\n\nDescent of the Lasso form, α = {ALPHA}, over patches of real pictures; (M, K, N) = {DESCENT_SHAPE}, "
        f"float32, gloo on one machine. Two ranks are {faster}. Medians of {ROUNDS} turns of {iterations} steps each."
    )
    write_section("Two ranks against one in the descent", "python benchmarks/distributed.py descent", body)


def nccl(iterations):
    """Alternate, in one process, between the CUDA engine alone and as the single rank of an NCCL group."""
    os.environ |= {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1"}
    os.environ.setdefault("MASTER_PORT", "29555")
    with process_group(600.0, "cuda") as comm:
        problem = shard(SHAPE, 0, 1)
        start = starting_point(problem.data, SHAPE[1], None, None, np.random.default_rng(1))
        engines = {
            name: make_engine("cuda", problem, *start, None, c) for name, c in (("serial", SERIAL), ("one rank", comm))
        }
        for engine in engines.values():
            engine.steps(engine.burst)
        times = {name: [] for name in engines}
        for _ in range(10 * ROUNDS):
            for name, engine in engines.items():
                started = time.perf_counter()
                for _ in range(iterations // engine.burst):  # as the loop does for unwatched runs
                    engine.steps(engine.burst)
                times[name].append((time.perf_counter() - started) / iterations)
        serial, ranked = engines.values()
        rebuilt = [engine.codes() @ engine.dictionary() for engine in (serial, ranked)]
        difference = float(np.linalg.norm(rebuilt[0] - rebuilt[1]) / np.linalg.norm(rebuilt[0]))
    step = {name: statistics.median(each) for name, each in times.items()}
    body = table(["engine", "one iteration"], [[name, f"{seconds * 1e3:.3f} ms"] for name, seconds in step.items()])
    more = 100 * (step["one rank"] / step["serial"] - 1)
    verdict = "the same to the bit" if difference == 0 else f"apart by {difference:.1e}"
    body += (
        f"\n\n(M, K, N) = {SHAPE}, float32, CUDA. Over NCCL an iteration takes {more:+.1f} % of time more; after "
        f"{10 * (1 + ROUNDS * iterations)} iterations what atoms and codes rebuild is {verdict}."
    )
    write_section("One rank over NCCL against the serial CUDA engine", "python benchmarks/distributed.py nccl", body)


COMMANDS = {"gloo": gloo, "descent": descent, "nccl": nccl, "work": work, "work-in-descent": work_in_descent}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=[*COMMANDS], default="gloo", nargs="?")
    parser.add_argument("--iterations", type=int, default=30)
    arguments = parser.parse_args()
    COMMANDS[arguments.what](arguments.iterations)
