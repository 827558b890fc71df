"""Learn dictionaries with one of the peers' packages; called by peers.py in their environment.

python peers_worker.py PEER problems.npz results.npz

problems.npz: n_components, sparsity, iterations and weights (one fit for each pair), enough, seeds, data_0, data_1, ...
and budgets, the CPU seconds of every seed. A fit has at least one start, and more as long as its budget is not spent;
the start with the lowest value of the method's own objective is kept. results.npz: for fits x seeds the atoms, CPU
seconds and number of starts, atoms and CPU seconds of the first start, and the version. Once the fits of a pair take
longer than `enough`, no other is tried.
"""

import sys
import time
import warnings
from functools import partial
from importlib import metadata

import numpy as np

MOST_STARTS = 1000
"""Seeds of starts are apart by as many."""


def samples(data, n_components, seed):
    """Distinct samples of unit norm, the usual start."""
    chosen = np.random.default_rng([seed, 7]).choice(len(data), n_components, replace=False)
    return data[chosen] / np.linalg.norm(data[chosen], axis=1, keepdims=True)


def lasso_objective(data, codes, atoms, weight):
    return ((data - codes @ atoms) ** 2).sum() / 2 + weight * np.abs(codes).sum()


# Every learner returns atoms and its objective there.


def sporco(data, n_components, sparsity, seed, iterations, weight):
    from sporco.dictlrn.bpdndl import BPDNDictLearn

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
    atoms = solver.getdict().T
    return atoms, lasso_objective(data, solver.getcoef().T, atoms, weight)


def spams(data, n_components, sparsity, seed, iterations, weight):
    import spams

    start = np.asfortranarray(samples(data, n_components, seed).T)
    given, settings = np.asfortranarray(data.T), {"mode": 2, "lambda1": weight, "numThreads": 1}
    atoms = spams.trainDL(given, D=start, K=n_components, iter=iterations, verbose=False, **settings)
    codes = spams.lasso(given, np.asfortranarray(atoms), **settings)
    return atoms.T, lasso_objective(data, codes.toarray().T, atoms.T, weight)


def sklearn(data, n_components, sparsity, seed, iterations, weight):
    from sklearn.decomposition import DictionaryLearning

    start = {"dict_init": samples(data, n_components, seed), "code_init": np.zeros((len(data), n_components))}
    settings = {"alpha": weight, "fit_algorithm": "cd", "max_iter": iterations, "tol": 1e-8}
    model = DictionaryLearning(n_components, **settings, **start).fit(data)
    return model.components_, model.error_[-1]


def dictlearn(data, n_components, sparsity, seed, iterations, weight):
    from dictlearn import DictionaryLearning

    model = DictionaryLearning(
        n_components, fit_algorithm="uaksvd", n_nonzero_coefs=sparsity, max_iter=iterations, random_state=seed
    )
    return model.fit(data).components_, model.error_[-1]


PEERS = {
    "sporco": (sporco, "sporco"),
    "spams": (spams, "spams-bin"),
    "scikit-learn": (sklearn, "scikit-learn"),
    "dictlearn": (dictlearn, "dictlearn"),
}


def fit(learn, seed, budget):
    """Starts until the budget is spent: what results.npz has of one fit."""
    began, objectives, atoms, seconds = time.process_time(), [], [], []
    while not seconds or (seconds[-1] < budget and len(seconds) < MOST_STARTS):
        found, objective = learn(seed=MOST_STARTS * seed + len(seconds))
        objectives.append(objective if np.isfinite(found).all() else np.inf)
        atoms.append(np.nan_to_num(np.asarray(found, float)))
        seconds.append(time.process_time() - began)
    best = atoms[int(np.argmin(np.nan_to_num(objectives, nan=np.inf)))]
    return {
        "atoms": best,
        "seconds": seconds[-1],
        "starts": len(seconds),
        "first": atoms[0],
        "first_seconds": seconds[0],
    }


def main(name, source, target):
    warnings.simplefilter("ignore")
    learn, package = PEERS[name]
    small = np.random.default_rng(0).standard_normal((60, 8))
    learn(small, 12, 2, 0, 20, 0.1)  # imports and compiles
    fits = []
    with np.load(source) as problems:
        size = {"n_components": int(problems["n_components"]), "sparsity": int(problems["sparsity"])}
        for iterations, weight in zip(problems["iterations"], problems["weights"], strict=True):
            settings = {"iterations": int(iterations), "weight": float(weight), **size}
            seeds = zip(problems["seeds"], problems["budgets"], strict=True)
            fits.append(
                [fit(partial(learn, problems[f"data_{i}"], **settings), int(s), b) for i, (s, b) in enumerate(seeds)]
            )
            if np.mean([each["seconds"] for each in fits[-1]]) > problems["enough"]:
                break
    results = {key: np.array([[each[key] for each in row] for row in fits]) for key in fits[0][0]}
    np.savez(target, version=metadata.version(package), **results)


if __name__ == "__main__":
    main(*sys.argv[1:])
