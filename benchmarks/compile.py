"""What the first use of a command costs in an empty kernel cache: python benchmarks/compile.py [fit noisy encode ...]

Every case runs twice, in two fresh processes that share a new cache, and all this twice; what the faster first run took
longer than the faster second is the compilation: other work on the machine only adds. One more process, in a cache of
its own, lists the kernels and the seconds of each, all compiled in one process. With cases named, prints and writes
nothing. Idle cores are needed: compare with the bounds only then. The exit status is 1 if one is exceeded.
"""

import json
import os
import subprocess
import sys
import tempfile
import time

from results import table, write_section

BOUNDS = {"fit": 12, "noisy": 20, "encode": 6, "upscale": 15, "denoise": 15, "inpaint": 15}
"""Seconds by the wall clock that the first use may take longer..."""
CPU_BOUNDS = {"fit": 20}
"""... and CPU seconds."""
TITLES = {
    "fit": "`ROAD(32).fit(planted(400, 16, 32, sparsity=3).data)`",
    "noisy": "the same with noise of 20 dB",
    "encode": '`SparseCoder(dictionary, algorithm="lasso").transform`',
    "upscale": "`upscale`, training included",
    "denoise": "`denoise`, 100 x 100 pixels",
    "inpaint": "`inpaint`, 100 x 100 pixels",
}
ABOUT = (
    "First use with an empty kernel cache against the second, each in a fresh process: seconds longer by the wall "
    "clock, and CPU seconds longer, with child processes, which compile too; the smallest of two runs of each."
)


def work(case):
    """Do what a case names."""
    import numpy as np

    from roadict import ROAD, SparseCoder
    from roadict.synthetic import planted

    if case in ("fit", "noisy"):
        snr = 20 if case == "noisy" else None
        ROAD(32, random_state=0).fit(planted(400, 16, 32, sparsity=3, snr_db=snr, random_state=0).data)
        return
    if case == "encode":
        truth = planted(400, 16, 32, sparsity=3, random_state=0)
        SparseCoder(truth.dictionary, algorithm="lasso").transform(truth.data)
        return
    from skimage import data

    from roadict import pictures

    picture = data.camera()[100:200, 100:200]
    if case == "denoise":
        pictures.denoise(picture, 20.0, random_state=0)
    elif case == "inpaint":
        pictures.inpaint(picture, np.random.default_rng(0).random(picture.shape) < 0.3, random_state=0)
    else:
        pictures.upscale(picture, 3, train=[data.coins()], random_state=0)


def measure(case):
    """Print wall and CPU seconds of a case, with those of children, as JSON."""
    started, before = time.perf_counter(), os.times()
    work(case)
    after = os.times()
    print(json.dumps([time.perf_counter() - started, sum(after[:4]) - sum(before[:4])]))


def list_kernels(case):
    """Print the seconds of every kernel that a case compiles in this process, without those that it calls, as JSON."""
    from numba.core import event

    from roadict import precompile

    seconds, open_kernels = {}, []

    class Listener(event.Listener):
        def on_start(self, event):
            open_kernels.append([event.data["dispatcher"].py_func, time.thread_time(), 0.0])

        def on_end(self, event):
            function, started, inside = open_kernels.pop()
            spent = time.thread_time() - started
            name = f"{function.__module__.removeprefix('roadict.')}.{function.__name__}"
            seconds[name] = seconds.get(name, 0.0) + spent - inside
            if open_kernels:
                open_kernels[-1][2] += spent

    event.register("numba:compile", Listener())
    precompile._is_compiled = lambda name, dtype: True  # nothing ahead: all in this process
    work(case)
    print(json.dumps(seconds))


def run(what, case, cache):
    command = [sys.executable, __file__, what, case]
    with tempfile.TemporaryDirectory() as models:  # upscale trains every time
        environment = os.environ | {"NUMBA_CACHE_DIR": cache, "XDG_CACHE_HOME": models}
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def uses(case):
    """Smallest wall and CPU seconds of the first and of the second use."""
    found = []
    for _ in range(2):
        with tempfile.TemporaryDirectory() as cache:
            found.append([run("measure", case, cache) for _ in range(2)])
    return [[min(seconds) for seconds in zip(*use, strict=True)] for use in zip(*found, strict=True)]


def main(cases):
    rows, kernels, within = [], {}, True
    for case in cases:
        first, second = uses(case)
        with tempfile.TemporaryDirectory() as cache:
            for name, seconds in run("list-kernels", case, cache).items():
                kernels.setdefault(name, {})[case] = seconds
        wall, cpu = first[0] - second[0], first[1] - second[1]
        within &= wall <= BOUNDS[case] and cpu <= CPU_BOUNDS.get(case, cpu)
        bounds = BOUNDS[case], CPU_BOUNDS.get(case, "")
        rows.append([TITLES[case], f"{wall:.1f}", bounds[0], f"{cpu:.1f}", bounds[1], f"{second[0]:.1f}"])
        print(*rows[-1], sep=" | ", file=sys.stderr)
    by_time = sorted(kernels, key=lambda name: -max(kernels[name].values()))
    listed = [
        [name, *(f"{kernels[name][case]:.2f}" if case in kernels[name] else "" for case in cases)]
        for name in by_time
        if max(kernels[name].values()) >= 0.2
    ]
    longer = table(["use", "wall, s", "bound, s", "CPU, s", "bound, s", "second use, s"], rows)
    about_kernels = "CPU seconds of each kernel without those it calls, all in one process, from 0.2 s on:"
    body = f"{ABOUT}\n\n{longer}\n\n{about_kernels}\n\n" + table(["kernel", *cases], listed)
    if tuple(cases) == tuple(BOUNDS):
        write_section("Compilation", "python benchmarks/compile.py", body)
    else:
        print(body)
    return 0 if within else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["measure"]:
        measure(sys.argv[2])
    elif sys.argv[1:2] == ["list-kernels"]:
        list_kernels(sys.argv[2])
    else:
        sys.exit(main(sys.argv[1:] or list(BOUNDS)))
