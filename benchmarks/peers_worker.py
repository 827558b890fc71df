"""Learn dictionaries with one of the peers' packages; called by peers.py in their environment.

python peers_worker.py PEER problems.npz results.npz

problems.npz: n_components, sparsity, noisy, iterations (of one fit or of several), seeds, and data_0, data_1, ...
results.npz: components, CPU seconds (iterations x seeds), and version. Once the fits of a number of iterations take
longer than ENOUGH, no larger number is tried. Weights of the l1 methods were tuned on other seeds, for exact data
and for 20 dB.
"""

import sys
import time
import warnings
from importlib import metadata

import numpy as np

ENOUGH = 5.0
"""CPU seconds."""


def samples(data, n_components, seed):
    """Distinct samples of unit norm, the usual start."""
    chosen = np.random.default_rng([seed, 7]).choice(len(data), n_components, replace=False)
    return data[chosen] / np.linalg.norm(data[chosen], axis=1, keepdims=True)


def sporco(data, n_components, sparsity, seed, iterations, noisy):
    from sporco.dictlrn.bpdndl import BPDNDictLearn

    weight = 0.05 if noisy else 0.02
    options = BPDNDictLearn.Options(
        {
            "Verbose": False,
            "MaxMainIter": iterations,
            "BPDN": {"rho": 10.0 * weight + 0.1},
            "CMOD": {"rho": len(data) / 1e3},
        }
    )
    solver = BPDNDictLearn(samples(data, n_components, seed).T, data.T, weight, options)
    solver.solve()
    return solver.getdict().T


def spams(data, n_components, sparsity, seed, iterations, noisy):
    import spams

    start = np.asfortranarray(samples(data, n_components, seed).T)
    settings = {"mode": 2, "lambda1": 0.1 if noisy else 0.05, "iter": iterations, "numThreads": 1, "verbose": False}
    return spams.trainDL(np.asfortranarray(data.T), D=start, K=n_components, **settings).T


def sklearn(data, n_components, sparsity, seed, iterations, noisy):
    from sklearn.decomposition import DictionaryLearning

    start = {"dict_init": samples(data, n_components, seed), "code_init": np.zeros((len(data), n_components))}
    settings = {"alpha": 0.1 if noisy else 0.05, "fit_algorithm": "cd", "max_iter": iterations, "tol": 1e-8}
    return DictionaryLearning(n_components, **settings, **start).fit(data).components_


def dictlearn(data, n_components, sparsity, seed, iterations, noisy):
    from dictlearn import DictionaryLearning

    model = DictionaryLearning(
        n_components, fit_algorithm="uaksvd", n_nonzero_coefs=sparsity, max_iter=iterations, random_state=seed
    )
    return model.fit(data).components_


PEERS = {
    "sporco": (sporco, "sporco"),
    "spams": (spams, "spams-bin"),
    "scikit-learn": (sklearn, "scikit-learn"),
    "dictlearn": (dictlearn, "dictlearn"),
}


def main(name, source, target):
    warnings.simplefilter("ignore")
    learn, package = PEERS[name]
    small = np.random.default_rng(0).standard_normal((60, 8))
    learn(small, 12, 2, 0, 20, noisy=False)  # imports and compiles
    components, seconds = [], []
    with np.load(source) as problems:
        size = int(problems["n_components"]), int(problems["sparsity"])
        for iterations in problems["iterations"]:
            found, times = [], []
            for i, seed in enumerate(problems["seeds"]):
                data = problems[f"data_{i}"]
                before = time.process_time()
                atoms = learn(data, *size, int(seed), int(iterations), noisy=bool(problems["noisy"]))
                times.append(time.process_time() - before)
                found.append(np.nan_to_num(np.asarray(atoms, float)))
            components.append(found)
            seconds.append(times)
            if np.mean(times) > ENOUGH:
                break
    np.savez(target, components=components, seconds=seconds, version=metadata.version(package))


if __name__ == "__main__":
    main(*sys.argv[1:])
