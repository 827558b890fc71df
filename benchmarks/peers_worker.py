"""Learn dictionaries with one of the peers' packages; called by peers.py in their environment.

python peers_worker.py PEER problems.npz results.npz

problems.npz: n_components, sparsity, seeds, and data_0, data_1, ...; results.npz: components_0, ..., seconds (of CPU)
and version. Weights of the l1 methods were tuned on other seeds.
"""

import sys
import time
import warnings
from importlib import metadata

import numpy as np


def samples(data, n_components, seed):
    """Distinct samples of unit norm, the usual start."""
    chosen = np.random.default_rng([seed, 7]).choice(len(data), n_components, replace=False)
    return data[chosen] / np.linalg.norm(data[chosen], axis=1, keepdims=True)


def sporco(data, n_components, sparsity, seed):
    from sporco.dictlrn.bpdndl import BPDNDictLearn

    weight = 0.02
    options = BPDNDictLearn.Options(
        {
            "Verbose": False,
            "MaxMainIter": 1000,
            "BPDN": {"rho": 10.0 * weight + 0.1},
            "CMOD": {"rho": len(data) / 1e3},
        }
    )
    solver = BPDNDictLearn(samples(data, n_components, seed).T, data.T, weight, options)
    solver.solve()
    return solver.getdict().T


def spams(data, n_components, sparsity, seed):
    import spams

    start = np.asfortranarray(samples(data, n_components, seed).T)
    return spams.trainDL(
        np.asfortranarray(data.T), D=start, K=n_components, mode=2, lambda1=0.05, iter=300, numThreads=1, verbose=False
    ).T


def sklearn(data, n_components, sparsity, seed):
    from sklearn.decomposition import DictionaryLearning

    start = {"dict_init": samples(data, n_components, seed), "code_init": np.zeros((len(data), n_components))}
    model = DictionaryLearning(n_components, alpha=0.05, fit_algorithm="cd", max_iter=300, tol=1e-8, **start)
    return model.fit(data).components_


def dictlearn(data, n_components, sparsity, seed):
    from dictlearn import DictionaryLearning

    model = DictionaryLearning(
        n_components, fit_algorithm="uaksvd", n_nonzero_coefs=sparsity, max_iter=300, random_state=seed
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
    learn(small, 12, 2, 0)  # imports and compiles
    results, seconds = {}, []
    with np.load(source) as problems:
        for i, seed in enumerate(problems["seeds"]):
            data = problems[f"data_{i}"]
            before = time.process_time()
            found = learn(data, int(problems["n_components"]), int(problems["sparsity"]), int(seed))
            seconds.append(time.process_time() - before)
            results[f"components_{i}"] = np.nan_to_num(np.asarray(found, float))
    np.savez(target, seconds=seconds, version=metadata.version(package), **results)


if __name__ == "__main__":
    main(*sys.argv[1:])
