"""Time and memory of one iteration: the Numba engine compared with the reference engine and the bandwidth floor.

python benchmarks/engines.py speed | memory | scaling | all
"""

import argparse
import statistics
import subprocess
import sys
import threading
import time

import numpy as np
from results import table, write_section
from threadpoolctl import threadpool_limits

from roadict.engines.cpu.fused import FusedEngine
from roadict.engines.reference import ReferenceEngine
from roadict.formulation import Problem, constrained, inexact
from roadict.road.start import starting_point
from roadict.synthetic import planted

THREADS = 2
LARGE, SMALL = (34, 64, 11775), (16, 32, 300)
FORMS = {
    "exact": (constrained(0.0), (10.0,) * 3),
    "inexact": (inexact((200.0, 300.0, 250.0)), (210.0, 310.0, 260.0)),
}


def problem(shape, dtype, form="exact"):
    n_features, n_components, n_samples = shape
    data = planted(n_samples, n_features, n_components, sparsity=3, random_state=0).data.astype(dtype)
    start = starting_point(data, n_components, None, None, np.random.default_rng(1))
    return Problem(data, None, *FORMS[form]), *start


def seconds_per_step(engine, at_least):
    """Median over iterations, without the first two (allocation, compilation)."""
    engine.step()
    engine.step()
    times, started = [], time.perf_counter()
    while time.perf_counter() - started < at_least or len(times) < 5:
        before = time.perf_counter()
        engine.step()
        times.append(time.perf_counter() - before)
    return statistics.median(times)


def copy_bandwidth(n_bytes=400_000_000):
    """Bytes per second, read and written, of both threads copying a large array; best of ten."""
    source, target = np.ones(n_bytes // 4, np.float32), np.zeros(n_bytes // 4, np.float32)
    parts = [slice(i * len(source) // THREADS, (i + 1) * len(source) // THREADS) for i in range(THREADS)]
    best = np.inf
    for _ in range(10):
        threads = [threading.Thread(target=np.copyto, args=(target[part], source[part])) for part in parts]
        before = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        best = min(best, time.perf_counter() - before)
    return 2 * n_bytes / best


def speed():
    bandwidth = copy_bandwidth()
    rows = []
    for shape, dtype, form in (
        (LARGE, np.float32, "exact"),
        (LARGE, np.float64, "exact"),
        (LARGE, np.float32, "inexact"),
        (SMALL, np.float64, "exact"),
        (SMALL, np.float32, "exact"),
        (SMALL, np.float64, "inexact"),
    ):
        large = shape == LARGE
        fused = FusedEngine(*problem(shape, dtype, form), THREADS)
        fast = seconds_per_step(fused, 3 if large else 2)
        traffic = 2 * fused._state.nbytes
        fused.close()
        del fused
        slow = {}
        for kind in (np.float32, np.float64):
            with threadpool_limits(THREADS):
                slow[kind] = seconds_per_step(ReferenceEngine(*problem(shape, kind, form)), 3 if large else 2)
        rows.append(
            [
                shape,
                np.dtype(dtype).name,
                form,
                f"{fast * 1e3:.3g} ms",
                f"{slow[dtype] / fast:.0f}",
                f"{min(slow.values()) / fast:.0f}",
                f"{traffic / bandwidth * 1e3:.3g} ms" if large else "in cache",
                f"{fast * bandwidth / traffic:.2f}" if large else "",
            ]
        )
        print(rows[-1], file=sys.stderr)
    header = ["(M, K, N)", "dtype", "form", "Numba engine", "times faster than the reference in that dtype"]
    header += ["... in its faster dtype", "floor", "times the floor"]
    body = table(header, rows)
    body += (
        f"\n\nBoth engines on {THREADS} threads. Floor: bytes of state read and written once each, over the copy "
        f"bandwidth of {bandwidth / 1e9:.1f} GB/s measured in the same run."
    )
    write_section("One iteration", "python benchmarks/engines.py speed", body)


def memory():
    """Peak resident memory of a fit in a process of its own, minus that of the data."""
    rows = []
    for form in ("constrained", "lasso", "inexact"):
        code = (
            "import resource, sys, numpy as np\n"
            "from roadict import ROAD\nfrom roadict.synthetic import planted\n"
            f"M, K, N = {LARGE}\n"
            "small = planted(200, M, K, sparsity=3, random_state=1).data.astype(np.float32)\n"
            f"fit = lambda X: ROAD(K, formulation='{form}', max_iter=5, tol=0, random_state=0).fit(X)\n"
            "fit(small)\n"
            "X = planted(N, M, K, sparsity=3, random_state=0).data.astype(np.float32)\n"
            "before = int(open('/proc/self/statm').read().split()[1]) * 4096\n"
            "open('/proc/self/clear_refs', 'w').write('5')\n"  # resets the high-water mark
            "fit(X)\n"
            "peak = [int(l.split()[1]) * 1024 for l in open('/proc/self/status') if l.startswith('VmHWM')][0]\n"
            "print((peak - before) / (K * M * N * 4))\n"
        )
        printed = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
        rows.append([form, f"{float(printed):.2f}"])
        print(rows[-1], file=sys.stderr)
    body = table(["form", "peak of a fit above the data, in arrays of K·M·N float32"], rows)
    write_section(f"Memory at (M, K, N) = {LARGE}", "python benchmarks/engines.py memory", body)


def scaling():
    """Time per iteration for growing N and K: linear in both."""
    rows = []
    for n_components, n_samples in (
        (64, 4000),
        (64, 8000),
        (64, 16000),
        (64, 32000),
        (128, 8000),
        (256, 8000),
        (512, 8000),
    ):
        engine = FusedEngine(*problem((34, n_components, n_samples), np.float32), THREADS)
        seconds = seconds_per_step(engine, 3)
        engine.close()
        nanoseconds = seconds / (34 * n_components * n_samples) * 1e9
        rows.append([n_components, n_samples, f"{seconds * 1e3:.1f} ms", f"{nanoseconds:.2f} ns"])
        print(rows[-1], file=sys.stderr)
    body = table(["K", "N", "one iteration", "per entry of the state"], rows)
    write_section("Growth with N and K (M = 34, float32)", "python benchmarks/engines.py scaling", body)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["speed", "memory", "scaling", "all"], default="all", nargs="?")
    what = parser.parse_args().what
    for run in (speed, memory, scaling):
        if what in ("all", run.__name__):
            run()
