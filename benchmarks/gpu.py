"""The CUDA engine: parity with Numba, time per iteration relative to the bandwidth floor, batches, memory.

python benchmarks/gpu.py [parity iterations fit batch memory]
"""

import argparse
import dataclasses
import tempfile
import time
from functools import partial

import numpy as np
import torch
from results import table, write_section

from roadict import ROAD, Checkpoint, fit_all
from roadict.engines.cpu.fused import FusedEngine
from roadict.engines.gpu.cuda import CudaEngine, make_batch
from roadict.formulation import Problem, RankOne, constrained, inexact, lasso
from roadict.metrics import dictionary_error
from roadict.synthetic import planted

SHAPES = ((16, 32, 400), (32, 64, 2000), (34, 512, 11775), (64, 256, 20000), (64, 1024, 50000))
FORMS = {"exact": constrained(0.0), "bound": constrained(1.0), "Lasso": lasso(5.0), "iADMM": inexact((20, 30, 25))}
NAMES = {
    RankOne.NEAREST: "free",
    RankOne.POSITIVE_CODES: "codes ≥ 0",
    RankOne.POSITIVE_ATOMS: "atoms ≥ 0",
    RankOne.POSITIVE: "both ≥ 0",
}
SIGNED = tuple(NAMES)[1:]


def start(shape, form, *, missing=0.0, dtype=np.float64, rho=10.0, seed=0, signs=RankOne.NEAREST):
    """A planted problem of (M, K, N) and an independent start, within the signs."""
    n_features, n_atoms, n_samples = shape
    truth = planted(n_samples, n_features, n_atoms, sparsity=3, random_state=seed)
    rng = np.random.default_rng([seed, 77])
    observed = rng.random(truth.data.shape) >= missing if missing else None
    data = truth.data if observed is None else np.where(observed, truth.data, 0)
    rhos = (rho,) * 3 if form.exact_consensus else (21.0, 31.0, 26.0)
    atoms = rng.standard_normal((n_atoms, n_features))
    atoms = np.abs(atoms) if signs.positive_dict else atoms
    atoms /= np.linalg.norm(atoms, axis=1, keepdims=True)
    codes = data @ atoms.T * (n_features / n_atoms)
    codes = np.maximum(codes, 0) if signs.positive_code else codes
    problem = Problem(data.astype(dtype), observed, dataclasses.replace(form, rank_one=signs), rhos)
    return problem, atoms.astype(dtype), codes.astype(dtype)


def rebuilt(engine):
    return engine.codes() @ engine.dictionary()


def relative(a, b):
    return float(np.linalg.norm(a - b) / np.linalg.norm(b))


def parity():
    shapes = ((16, 32, 300), (34, 40, 500), (24, 20, 100), (100, 20, 300))
    cases = [(shape, RankOne.NEAREST) for shape in shapes]
    cases += [(shape, signs) for shape in ((34, 40, 500), (100, 20, 300)) for signs in SIGNED]
    rows = []
    for shape, signs in cases:
        for name, form in FORMS.items():
            for missing in (0.0, 0.2) if form.exact_consensus else (0.0,):
                given = start(shape, form, missing=missing, signs=signs)
                ours, theirs = CudaEngine(*given), FusedEngine(*given)
                for iteration in range(50):
                    following = 12.0 if iteration == 25 and form.exact_consensus else None
                    ours.step(following)
                    theirs.step(following)
                difference = relative(rebuilt(ours), rebuilt(theirs))
                rows.append([str(shape), name, NAMES[signs], f"{missing:.0%}", f"{difference:.1e}"])
                theirs.close()
    body = table(["(M, K, N)", "form", "signs", "missing", "difference after 50 iterations, float64"], rows)
    truth = planted(400, 16, 32, sparsity=3, random_state=1)
    settings = {"rho": 10.0, "max_iter": 300, "tol": 0, "n_init": 1, "random_state": 3}
    models = [ROAD(32, engine=engine, **settings).fit(truth.data.astype(np.float32)) for engine in ("cuda", "numba")]
    difference = dictionary_error(models[0].components_, models[1].components_)
    body += f"\n\nfloat32, (16, 32, 400), 300 iterations: dictionaries differ by {difference:.1e}"
    return "The CUDA engine beside the Numba engine", f"{body}\n\n{watching(truth.data)}"


def watching(data):
    """Whether watched fits are bit-identical to unwatched ones."""
    kinds = {"callback": {"callback": lambda snapshot: None}, "verbose=1": {"verbose": 1}, "verbose=2": {"verbose": 2}}
    fits = {
        "constant ρ": {"rho": 10.0, "epsilon": 0.1, "tol": 1e-3, "n_init": 2},
        "automatic ρ, exact": {},
        "automatic ρ, bound": {"epsilon": 0.1},
    }
    rows = []
    for name, settings in fits.items():
        make = partial(ROAD, 32, engine="cuda", random_state=3, **settings)
        unwatched = make().fit(data)
        for observer, parameters in kinds.items():
            rows.append([name, observer, *same(make(**parameters).fit(data), unwatched)])
        with tempfile.TemporaryDirectory() as folder:
            rows.append([name, "checkpoint", *same(make(checkpoint=Checkpoint(folder, every=0)).fit(data), unwatched)])
        (batched,) = fit_all([make()], [data])
        rows.append([name, "in a batch", *same(batched, unwatched)])
    return table(["fit of (16, 32, 400)", "watched by", "same atoms and codes, to the bit", "iterations"], rows)


def same(model, other):
    equal = all(np.array_equal(getattr(model, name), getattr(other, name)) for name in ("components_", "codes_"))
    return "yes" if equal else "NO", f"{model.n_iter_} and {other.n_iter_}"


def bandwidth():
    """Bytes per second, read and written, of a copy."""
    source = torch.zeros(2**29, device="cuda")
    target = torch.empty_like(source)
    return 2 * source.nbytes / timed(lambda: target.copy_(source))


def timed(function, repeats=10):
    function()
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(repeats):
        function()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / repeats / 1e3


def iterations():
    speed = bandwidth()
    rows = []
    for shape, signs in [(shape, RankOne.NEAREST) for shape in SHAPES] + [((34, 512, 11775), each) for each in SIGNED]:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        size = int(np.prod(shape)) * 4
        engine = CudaEngine(*start(shape, constrained(0.0), dtype=np.float32, rho=rho_for(shape), signs=signs))
        for _ in range(20):
            engine.steps(10)
        seconds = min(timed(lambda engine=engine: engine.steps(10), 3) / 10 for _ in range(3))
        alive = float((engine._batch._scales[0, :, : shape[2]] != 0).double().mean())
        floor = 4 * size / speed
        rows.append(
            [
                str(shape),
                NAMES[signs],
                f"{seconds * 1e3:.3f} ms",
                f"{floor * 1e3:.3f} ms",
                f"{seconds / floor:.2f}",
                f"{alive:.1%}",
                f"{torch.cuda.max_memory_allocated() / size:.2f}",
            ]
        )
        del engine
    names = ["per iteration", "floor", "ratio", "columns of A not zero", "peak memory, state arrays"]
    note = (
        f"Copy bandwidth {speed / 1e12:.2f} TB/s (bytes read and written). Floor: both state arrays read and written "
        "once. After 200 iterations of the exact form, float32, residuals read every 10."
    )
    return "One iteration on a GPU", f"{note}\n\n{table(['(M, K, N)', 'signs', *names], rows)}"


def rho_for(shape):
    """ROAD's automatic constant ρ, for samples of norm √3."""
    return 10 * shape[1] / shape[0] / np.sqrt(3)


def fit():
    shape = (34, 512, 11775)
    data = planted(shape[2], shape[0], shape[1], sparsity=3, random_state=5).data.astype(np.float32)
    rows = []
    for given in ("NumPy array", "CUDA tensor"):
        X = data if given == "NumPy array" else torch.from_numpy(data).cuda()
        for run in ("first", "second"):
            before = time.perf_counter()
            model = ROAD(
                512, engine="cuda", rho=rho_for(shape), max_iter=300, tol=0, n_init=1, epsilon=0, random_state=0
            ).fit(X)
            seconds = time.perf_counter() - before
            rows.append([f"{given}, {run} time", f"{model.history_['seconds'][-1]:.2f} s", f"{seconds:.2f} s"])
    header = [f"{shape}, float32, 300 iterations", "the iterations", "the whole fit"]
    return "A fit on a GPU", table(header, rows)


def batch():
    rows = []
    for name, count in (("exact", 300), ("iADMM", 10_000)):
        given = [start((16, 32, 400), FORMS[name], dtype=np.float32, seed=seed) for seed in range(100)]
        problems = make_batch(given[0][0], 32, 100)
        for slot, (problem, atoms, codes) in enumerate(given):
            problems.load(slot, problem, atoms, codes)
        problems.advance(10)
        before = time.perf_counter()
        for _ in range(count // 10):
            problems.advance(10)
        seconds = time.perf_counter() - before
        rows.append([f"100 problems (16, 32, 400), {name}, float32", str(count), f"{seconds:.2f} s"])
        del problems
    truths = [planted(400, 16, 32, sparsity=3, random_state=seed) for seed in range(100)]

    settings = {"rho": 10.0, "max_iter": 300, "tol": 0, "n_init": 1, "random_state": 0}
    before = time.perf_counter()
    models = fit_all([ROAD(32, engine="cuda", **settings) for _ in truths], [truth.data for truth in truths])
    errors = [dictionary_error(m.components_, t.dictionary) for m, t in zip(models, truths, strict=True)]
    seconds = time.perf_counter() - before
    rows.append([f"100 fits with rho=10, float64: mean error {np.mean(errors):.4f}", "300", f"{seconds:.2f} s"])
    return "Batches on a GPU", table(["what", "iterations", "time"], rows)


def memory():
    data = np.zeros((400_000, 64), np.float32) + np.eye(64, dtype=np.float32)[np.arange(400_000) % 64]
    try:
        ROAD(1024, engine="cuda", epsilon=0.1, rho=1.0, max_iter=1, n_init=1).fit(data)
        message = "no error"
    except MemoryError as error:
        message = str(error)
    small = planted(400, 16, 32, sparsity=3, random_state=0).data
    after = ROAD(32, engine="cuda", random_state=0).fit(small).stop_reason_
    return "Too large for a GPU", f"`{message}`; the next fit of the same process: {after}."


SECTIONS = {"parity": parity, "iterations": iterations, "fit": fit, "batch": batch, "memory": memory}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("sections", nargs="*", default=list(SECTIONS))
    for name in parser.parse_args().sections:
        title, body = SECTIONS[name]()
        write_section(title, f"python benchmarks/gpu.py {name}", body)


if __name__ == "__main__":
    main()
