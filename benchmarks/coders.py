"""Speed of the coders: Batch-OMP and Lasso compared with scikit-learn and SPAMS on the same number of threads, all with
and without missing entries. Idle cores are needed: a busy machine delays the slower program more.

python benchmarks/coders.py  # SPAMS: pip install spams-bin
python benchmarks/coders.py spams
"""

import sys
import time
import warnings
from functools import partial

import joblib
import numpy as np
import skimage.data
from results import table, write_section
from sklearn.decomposition import sparse_encode
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.image import extract_patches_2d
from threadpoolctl import threadpool_limits

from roadict.coders.registry import encode, encode_sparse
from roadict.synthetic import planted

N, M, K, S = 20_000, 64, 256, 8
ALPHAS = (0.3, 0.1, 0.03)
REPEATS = 3
OTHERS = 2_000
CODERS = {
    "omp": {"n_nonzero_coefs": S},
    "mp": {"n_nonzero_coefs": S},
    "sp": {"n_nonzero_coefs": S},
    "cosamp": {"n_nonzero_coefs": S},
    "lasso": {"alpha": 0.1},
    "basis-pursuit": {"epsilon": 0.1},
    "half": {"n_nonzero_coefs": S},
    "threshold": {"alpha": 0.1},
}


def seconds(function, repeats=REPEATS):
    """Shortest time of several runs, and the last result."""
    times = []
    for _ in range(repeats):
        before = time.perf_counter()
        result = function()
        times.append(time.perf_counter() - before)
    return min(times), result


def objective(data, codes, dictionary, alpha):
    return ((data - codes @ dictionary) ** 2).sum() / 2 + alpha * np.abs(codes).sum()


def against_scikit_learn(data, dictionary):
    """Both on the same number of threads: one, and all cores."""
    counts = {"n_nonzero_coefs": S}
    coders = [("omp", "omp", counts), *(("lasso", "lasso_cd", {"alpha": alpha}) for alpha in ALPHAS)]
    gram = dictionary @ dictionary.T
    rows = []
    for ours, theirs, settings in coders:
        for n_jobs in sorted({1, joblib.cpu_count()}):
            with threadpool_limits(n_jobs):
                functions = [
                    partial(encode, data, None, dictionary, algorithm=ours, n_jobs=n_jobs, **settings),
                    partial(sparse_encode, data, dictionary, gram=gram, algorithm=theirs, n_jobs=n_jobs, **settings),
                ]
                times, (codes, other) = in_turn(functions, REPEATS)
            mine, reference = times.min(axis=1)
            row = [name_of(ours, settings, codes), n_jobs, f"{mine:.3f} s", f"{reference:.3f} s"]
            rows.append([*row, f"{reference / mine:.1f}", same_codes(data, dictionary, codes, other, **settings)])
            print(rows[-1], file=sys.stderr)
    return table(["coder", "threads", "roadict", "scikit-learn", "times faster", "agreement"], rows)


def name_of(algorithm, settings, codes):
    if algorithm == "omp":
        return f"Batch-OMP, {S} nonzeros"
    return f"Lasso, alpha = {settings['alpha']:g}, {(codes != 0).sum(axis=1).mean():.1f} nonzeros"


def same_codes(data, dictionary, codes, other, alpha=None, n_nonzero_coefs=None):
    if alpha is None:
        return f"largest difference of codes {np.abs(codes - other).max():.0e}"
    mine, reference = (objective(data, c, dictionary, alpha) for c in (codes, other))
    return f"objective {mine:.8g} and {reference:.8g}"


def every_coder(data, dictionary):
    observed = np.random.default_rng(1).random(data.shape) < 0.5
    rows = []
    for algorithm, arguments in CODERS.items():
        times = []
        for mask in (None, observed):
            encode(data[:5], None if mask is None else mask[:5], dictionary, algorithm=algorithm, **arguments)
            times.append(seconds(lambda: encode(data, mask, dictionary, algorithm=algorithm, **arguments))[0])  # noqa: B023
        settings = ", ".join(f"{name} = {value:g}" for name, value in arguments.items())
        rows.append([algorithm, settings, *(f"{1e6 * t / len(data):.1f} µs" for t in times)])
    return table(["coder", "setting", "per sample", "with half of the entries missing"], rows)


def picture_patches(n, size=8):
    """Patches of pictures without their means, of norm one in the root mean square."""
    names = "astronaut", "brick", "camera", "chelsea", "coffee", "coins", "grass", "gravel", "moon", "rocket"
    parts = []
    for seed, name in enumerate(names):
        picture = np.asarray(getattr(skimage.data, name)(), float)
        picture = picture.mean(axis=2) if picture.ndim == 3 else picture
        parts.append(extract_patches_2d(picture / picture.max(), (size, size), max_patches=n // 10, random_state=seed))
    patches = np.concatenate(parts).reshape(n, -1)
    patches -= patches.mean(axis=1, keepdims=True)
    return patches / np.sqrt((patches**2).sum(axis=1).mean())


def in_turn(functions, repeats=9):
    """Times of several functions that run one after the other, shape (functions, repeats), and their results."""
    results = [function() for function in functions]
    times = np.empty((len(functions), repeats))
    for i in range(repeats):
        for j, function in enumerate(functions):
            before = time.perf_counter()
            function()
            times[j, i] = time.perf_counter() - before
    return times, results


def agreement(data, dictionary, ours, theirs, alpha):
    if alpha is None:
        errors = [np.linalg.norm(data - codes @ dictionary) for codes in (ours, theirs)]
        return f"error {errors[0]:.5g} and {errors[1]:.5g}"
    mine, reference = (objective(data, codes, dictionary, alpha) for codes in (ours, theirs))
    return f"objective {mine:.7g}, {(mine - reference) / reference:+.0e} relative"


def against_spams(spams):
    data = picture_patches(N)
    learned = spams.trainDL(np.asfortranarray(data.T), K=K, lambda1=0.15, iter=300, batchsize=400, verbose=False)
    dictionary = np.ascontiguousarray(learned.T / np.linalg.norm(learned, axis=0)[:, None])
    double, single = (data, dictionary), (data.astype(np.float32), dictionary.astype(np.float32))
    rows = []
    for n_jobs in (1, joblib.cpu_count()):
        for name, alpha in ((f"OMP, {S} nonzeros", None), *((f"Lasso, alpha = {a:g}", a) for a in (0.15, 0.05))):
            settings = {"algorithm": "lasso", "alpha": alpha} if alpha else CODERS["omp"] | {"algorithm": "omp"}
            settings["n_jobs"] = n_jobs

            def theirs(samples, atoms, n_jobs=n_jobs, alpha=alpha):
                given = np.asfortranarray(samples.T), np.asfortranarray(atoms.T)
                if alpha is None:
                    return spams.omp(*given, L=S, eps=0.0, numThreads=n_jobs)
                return spams.lasso(*given, lambda1=alpha, mode=2, numThreads=n_jobs)

            dense, sparse = (partial(coder, observed=None, **settings) for coder in (encode, encode_sparse))
            functions = [
                partial(f, given[0], dictionary=given[1]) for given in (double, single) for f in (sparse, dense)
            ]
            functions += [partial(theirs, *given) for given in (double, single)]
            times, codes = in_turn(functions)
            for i, dtype in enumerate(("float64", "float32")):
                mine, filled, reference = times[2 * i], times[2 * i + 1], times[4 + i]
                found, other = codes[2 * i + 1].astype(float), codes[4 + i].toarray().T.astype(float)
                row = [name, n_jobs, dtype, *(f"{1e6 * np.median(t) / N:.2f} µs" for t in (mine, filled, reference))]
                row += [f"{np.median(reference / t):.2f}" for t in (mine, filled)]
                row += [f"{np.median(times[0] / mine):.2f}" if i else ""]
                rows.append([*row, agreement(*double, found, other, alpha)])
                print(rows[-1], file=sys.stderr)
    head = ["coder", "threads", "dtype", "roadict, sparse", "dense", "SPAMS", "times faster, sparse", "dense"]
    head += ["float32 against float64"]
    return table([*head, "agreement, roadict first"], rows) + "\n\n" + warm_passes(data, dictionary)


def warm_passes(data, dictionary):
    """Time of a pass that starts from the codes of a slightly different dictionary, as in dictionary learning."""
    moved = dictionary + 0.02 * np.random.default_rng(0).standard_normal(dictionary.shape) / M**0.5
    rows = []
    for alpha in (0.15, 0.05):
        settings = {"algorithm": "lasso", "alpha": alpha, "n_jobs": 1}
        start = encode(data, None, moved, **settings)
        passes = (None, start)
        times, _ = in_turn([lambda s=s: encode(data, None, dictionary, start=s, **settings) for s in passes])  # noqa: B023
        mean = [f"{1e6 * np.median(t) / N:.2f} µs" for t in times]
        rows.append([f"Lasso, alpha = {alpha:g}", *mean, f"{np.median(times[0] / times[1]):.2f}"])
    text = "A pass from zero, and one from the codes for atoms that were 2 % different (float64, one thread):\n\n"
    return text + table(["coder", "from zero", "warm", "times faster"], rows)


def write_spams_section():
    try:
        import spams
    except ImportError:
        print("no comparison with SPAMS, which is not installed: pip install spams-bin", file=sys.stderr)
        return
    body = f"{N} patches of 8x8 pixels without their means, {K} atoms learned by SPAMS. The programs run in turn; "
    body += (
        "ratios are medians of pairs, times are per sample. SPAMS returns sparse codes, roadict sparse or dense ones. "
    )
    body += (
        "OMP of SPAMS takes the atom that lowers the error most (orthogonal least squares), ours the one of largest "
    )
    body += "correlation, like scikit-learn: their codes differ, those of the Lasso do not.\n\n" + against_spams(spams)
    write_section("Coders compared with SPAMS", "python benchmarks/coders.py spams", body)


def main():
    write_spams_section()
    if sys.argv[1:] == ["spams"]:
        return
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("ignore", RuntimeWarning)  # scikit-learn on ill-conditioned columns
    truth = planted(N, M, K, sparsity=S, snr_db=30, random_state=50_000)
    data, dictionary = truth.data, truth.dictionary
    for algorithm, arguments in CODERS.items():
        encode(data[:5], None, dictionary, algorithm=algorithm, **arguments)  # compiles
    body = f"{N} samples of {M} features, {K} atoms, {S} of them in each sample, 30 dB; float64. "
    body += "The programs run in turn, on the same number of threads, once to warm up; then the shortest time of "
    body += f"{REPEATS}. scikit-learn: `sparse_encode` with the Gram matrix given; its threads are processes.\n\n"
    body += against_scikit_learn(data, dictionary)
    body += f"\n\nAll coders, {OTHERS} of the samples:\n\n" + every_coder(data[:OTHERS], dictionary)
    write_section("Coders", "python benchmarks/coders.py", body)


if __name__ == "__main__":
    main()
