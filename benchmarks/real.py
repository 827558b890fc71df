"""Learning from patches of real pictures, compared with SPAMS and scikit-learn in one run; and other fits.

python benchmarks/real.py over-time|million|fits|unseen|classic|planted|denoise|stream [--trials 3]

over-time: objective on unseen patches over seconds; million: a million patches in a memory-mapped file; fits: unseen,
classic, planted and denoise one after the other (benchmarks/real_fits.py); stream: partial_fit compared with fit.
SPAMS: pip install spams-bin

docs/charts.py draws the curves from the tables. A command shortened by --samples or --seconds, or run without SPAMS,
prints its tables and writes nothing.
"""

import argparse
import multiprocessing
import os
import sys
import tempfile
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "2"

import numpy as np
import real_fits
from real_patches import (
    START_SEED,
    Section,
    learn_roadict,
    learn_sklearn,
    learn_spams,
    load_patches,
    objective,
    optional_spams,
    seeds_text,
)
from results import table, write_section

CASES = [(128, 0.15, 10_000), (256, 0.08, 100_000)]
"""Atoms, weight, patches."""
MILLION = (256, 0.08, 1_000_000)
MARKS = (1, 2, 5, 10, 20, 40, 60)
LEARNERS = {"roadict": learn_roadict, "SPAMS": learn_spams, "scikit-learn": learn_sklearn}
ABOUT = (
    "Patches of 8x8 pixels from eight pictures inside scikit-image, without their means, float32; two threads. Mean of "
    "½‖y - xD‖² + α‖x‖₁ over 8,000 patches from the right thirds of the pictures, from which nothing was learned; the "
    'codes x of all dictionaries D by one coder. roadict: `ROAD(K, formulation="lasso", alpha=α)`. SPAMS and '
    "scikit-learn (`MiniBatchDictionaryLearning`) start from random patches and use batches of 512; SPAMS runs once "
    "per column."
)
ENDED = "ended by itself after, seconds"


def learners():
    return {name: learn for name, learn in LEARNERS.items() if name != "SPAMS" or optional_spams() is not None}


def marks_until(seconds):
    return [mark for mark in MARKS if seconds is None or mark <= seconds]


def scores(course, unseen, alpha):
    """Objective at every mark; infinite before there were any atoms."""
    return [np.inf if atoms is None else objective(atoms, unseen, alpha) for atoms in course.atoms]


def value_text(value):
    return "" if np.isinf(value) else f"{value:.5f}"


def course_medians(case, marks, trials):
    """Objectives of every learner at the marks, and the end of ROAD's fit if it ended by itself: medians of trials."""
    n_atoms, alpha, n_samples = case
    found, ends = {name: [] for name in learners()}, []
    for trial in range(trials):
        data, unseen = load_patches(n_samples, trial)
        for name, learn in learners().items():
            course = learn(data, n_atoms, alpha, marks, START_SEED + trial)
            found[name].append(scores(course, unseen, alpha))
            print(case, trial, name, found[name][-1], course.end, file=sys.stderr)
            if name == "roadict":
                ends.append(np.inf if course.end is None else course.end)
    end = float(np.median(ends))
    return {name: np.median(values, axis=0) for name, values in found.items()}, None if np.isinf(end) else end


def over_time(arguments):
    marks, rows = marks_until(arguments.seconds), []
    for full in CASES:
        case = (*full[:2], arguments.samples or full[2])
        medians, end = course_medians(case, marks, arguments.trials)
        for name, values in medians.items():
            ended = f"{end:.1f}" if name == "roadict" and end is not None else ""
            rows.append([*case[:2], f"{case[2]:,}", arguments.trials, name, *map(value_text, values), ended])
    header = ["K", "α", "N", "seeds", "learner", *(f"{mark} s" for mark in marks), ENDED]
    text = f"{ABOUT} {seeds_text(arguments.trials).capitalize()}; empty: no atoms yet."
    return Section("Objective on unseen patches over time", f"{text}\n\n{table(header, rows)}")


def peak_memory():
    """Largest resident memory of this process so far, in GB; that of getrusage may be its parent's."""
    [peak] = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
    return int(peak.split()[1]) * 1024 / 1e9


def measure_alone(name, path, unseen, marks):
    """Run a learner in this process; its scores, its end, the objective then, and its peak memory."""
    warnings.simplefilter("ignore")
    n_atoms, alpha, _ = MILLION
    unending = {"stops": False} if name == "roadict" else {}
    course = LEARNERS[name](np.load(path, mmap_mode="r"), n_atoms, alpha, marks, START_SEED, **unending)
    memory = peak_memory()
    last = None if course.final is None else objective(course.final, unseen, alpha)
    return scores(course, unseen, alpha), course.end, last, memory


def million(arguments):
    n_samples = arguments.samples or MILLION[2]
    marks, rows = marks_until(arguments.seconds), []
    fresh = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "patches.npy")
        data, unseen = load_patches(n_samples)
        np.save(path, data)
        size = data.nbytes / 1e9
        del data
        for name in learners():
            with ProcessPoolExecutor(1, mp_context=fresh) as process:
                values, end, last, memory = process.submit(measure_alone, name, path, unseen, marks).result()
            ending = ["", ""] if end is None else [f"{end:.1f}", value_text(last)]
            rows.append([name, *map(value_text, values), *ending, f"{memory:.2f} GB"])
            print(rows[-1], file=sys.stderr)
    header = ["learner", *(f"{mark} s" for mark in marks), ENDED, "objective then", "peak memory"]
    body = f"{ABOUT} One trial of {n_samples:,} patches ({size:.2f} GB) in a memory-mapped file, K = {MILLION[0]}, "
    body += f"α = {MILLION[1]}; every learner in its own process, whose peak memory includes the patches "
    body += f"(but not two more processes of scikit-learn). roadict's fit runs to its end.\n\n{table(header, rows)}"
    return Section("A million patches", body)


def report(section, arguments):
    """Write the section, unless the command was shortened or SPAMS is missing."""
    if arguments.samples or arguments.seconds or optional_spams() is None:
        print(f"## {section.title} (shortened or without SPAMS: not written)\n\n{section.body}\n")
        return
    command = f"python benchmarks/real.py {arguments.what}"
    write_section(
        section.title, command + ("" if arguments.what == "million" else f" --trials {arguments.trials}"), section.body
    )


COMMANDS = {"over-time": over_time, "million": million, **real_fits.COMMANDS}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=[*COMMANDS, "fits"])
    parser.add_argument("--trials", type=int, help="3; planted: 10")
    parser.add_argument("--samples", type=int, help="of every case instead of its own number, to try a command")
    parser.add_argument("--seconds", type=int, help="last time mark, to try a command")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if optional_spams() is None:
        print("no comparison with SPAMS, which is not installed: pip install spams-bin", file=sys.stderr)
    for what in real_fits.FITS if given.what == "fits" else [given.what]:
        trials = given.trials or real_fits.TRIALS.get(what, 3)
        arguments = argparse.Namespace(what=what, trials=trials, samples=given.samples, seconds=given.seconds)
        report(COMMANDS[what](arguments), arguments)


if __name__ == "__main__":
    main()
