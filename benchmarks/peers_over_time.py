"""Share of planted atoms that ROAD and other packages have found after seconds of CPU, in one run.

python benchmarks/peers_over_time.py [--trials 8]

Learners, starts and settings are those of benchmarks/peers.py. A peer learns anew for every number of iterations; ROAD
is stopped by its callback. The table has, for every time, the last fit that had ended by then.
docs/charts.py draws the chart of the page "Beside other packages" from it.
"""

import argparse
import sys
import time
import warnings

import numpy as np
from joblib import Parallel, delayed
from peers import NAMES, compile_road, draw, run_peer, share_found, tuned_weight  # first: it sets the threads
from results import table, write_section

from roadict import ROAD

FIRST_SEED = 51_000
PROBLEMS = [((16, 32, 3, 200), None), ((32, 64, 6, 800), None), ((16, 32, 3, 400), 20)]
"""Features, atoms, nonzeros and samples; SNR in dB, or None for exact data."""
ITERATIONS = {
    "SPORCO": (30, 100, 300, 1000, 3000, 10_000),
    "SPAMS": (10, 30, 100, 300, 1000, 3000, 10_000),
    "scikit-learn": (3, 10, 30, 100, 300, 1000),
    "dictlearn": (10, 30, 100, 300, 1000, 3000),
}
STOPS = (0.05, 0.1, 0.2, 0.5, 1, 2, 5, np.inf)
"""CPU seconds after which a fit of ROAD is stopped."""
ENOUGH = 5.0
"""Mean CPU seconds of the last fits of a peer: no larger number of iterations is tried."""
AFTER = 1.5
"""A fit is shown up to this many times its seconds."""
MARKS = (0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)


def fit_road(data, n_components, seed, stop):
    """Atoms, CPU seconds, and whether the fit ended by itself."""
    before = time.process_time()
    model = ROAD(n_components, random_state=seed, n_jobs=1, callback=lambda _: time.process_time() - before > stop).fit(
        data
    )
    return model.components_, time.process_time() - before, model.stop_reason_ != "callback"


def road_course(truth, n_components, seed):
    """CPU seconds and share of atoms found of fits with later and later stops, until one ends by itself."""
    warnings.simplefilter("ignore")
    compile_road()
    course = []
    for stop in STOPS:
        atoms, seconds, ended = fit_road(truth.data, n_components, seed, stop)
        course.append((seconds, share_found(atoms, truth)))
        if ended:
            break
    return course


def peer_courses(name, truths, problem, seeds, snr):
    """The same for every seed, by numbers of iterations; and the version of the package."""
    peer = name.lower()
    weight = tuned_weight(peer, problem, NAMES[peer][1], snr) or 0.0
    fits = run_peer(peer, truths, problem, seeds, ITERATIONS[name], weight, enough=ENOUGH)
    found = [[share_found(each, truth) for each, truth in zip(row, truths, strict=True)] for row in fits["atoms"]]
    courses = zip(fits["seconds"].T, np.transpose(found), strict=True)
    return [list(zip(*course, strict=True)) for course in courses], str(fits["version"])


def at_marks(courses, *, ended):
    """Mean share found of the last fits that had ended at each mark.

    Empty before all seeds have one, and long after the last fit of a learner that could go on (not ``ended``).
    """
    until = np.inf if ended else AFTER * max(course[-1][0] for course in courses)
    texts = []
    for mark in MARKS:
        last = [[share for seconds, share in course if seconds <= mark][-1:] for course in courses]
        texts.append(f"{np.mean(last):.3f}" if all(last) and mark <= until else "")
    return texts


def measure(problem, snr, trials):
    """Rows of a problem, by learner, and the versions."""
    n_features, n_components, sparsity, n_samples = problem
    seeds = [FIRST_SEED + trial for trial in range(trials)]
    truths = draw(problem, seeds, snr)
    fits = [delayed(road_course)(truth, n_components, seed) for truth, seed in zip(truths, seeds, strict=True)]
    peers = [delayed(peer_courses)(name, truths, problem, seeds, snr) for name in ITERATIONS]
    results = Parallel(2, batch_size=1)([*peers, *fits])
    courses, versions = zip(*results[: len(peers)], strict=True)
    found = {"ROAD": results[len(peers) :], **dict(zip(ITERATIONS, courses, strict=True))}
    noise = "exact" if snr is None else f"{snr} dB"
    rows = []
    for name, course in found.items():
        end = f"{np.mean([each[-1][0] for each in course]):.2f}" if name == "ROAD" else ""
        rows.append(
            [(n_features, n_components, sparsity), n_samples, noise, name, *at_marks(course, ended=name == "ROAD"), end]
        )
        print(rows[-1], file=sys.stderr)
    return rows, dict(zip(ITERATIONS, versions, strict=True))


def main(trials):
    rows, versions = [], {}
    for problem, snr in PROBLEMS:
        more, versions = measure(problem, snr, trials)
        rows += more
    used = ", ".join(f"{name} {version}" for name, version in versions.items())
    header = [
        "(M, K, S)",
        "N",
        "noise",
        "learner",
        *(f"{mark:g} s" for mark in MARKS),
        "ended by itself after, seconds",
    ]
    body = (
        "Share of the planted atoms found (correlation above 0.99) after seconds of CPU, one thread each; means of "
        f"{trials} seeds. ROAD: defaults, nothing told of noise or sparsity, several starts. The others: one start; "
        f"l1 weights tuned for every problem on other seeds, dictlearn (uaksvd) with the true S. {used}.\n\n"
    )
    command = f"python benchmarks/peers_over_time.py --trials {trials}"
    write_section("Atoms found over time", command, body + table(header, rows))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=8)
    main(parser.parse_args().trials)
