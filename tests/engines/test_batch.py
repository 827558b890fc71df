"""Runs that share a batch on the GPU, or in Triton's interpreter: each is as if it were alone."""

import dataclasses

import numpy as np
import pytest

from roadict import ROAD, fit_all
from roadict.engines.registry import make_engine
from roadict.ranks.comm import SERIAL
from roadict.synthetic import planted

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from roadict.engines.gpu.batch import Pool, Slot  # noqa: E402
from roadict.engines.gpu.cuda import CudaEngine  # noqa: E402
from roadict.runs.driving import drive_all  # noqa: E402


def concurrently(tasks, pool):
    """Drive generators that submit iterations concurrently; returns the list that each has filled."""
    results = [[] for _ in tasks]
    drive_all([task(result, pool) for task, result in zip(tasks, results, strict=True)])
    return results


def one_by_one(tasks):
    return [concurrently([task], None)[0] for task in tasks]


def advance(engine, count, following=None):
    """One request, as the loop makes it."""
    if isinstance(engine, Slot):
        engine.submit(count, following)
    yield None
    return [engine.step(following)] if count == 1 else engine.steps(count)


pytestmark = pytest.mark.usefixtures("kernels")


def test_runs_together_are_runs_alone_to_the_bit(make_problem):
    """Runs of different lengths and penalties share a batch, take and leave slots, and do not notice each other."""

    def task(seed, lengths):
        def run(results, pool):
            for steps in lengths:
                given = make_problem("exact", (5, 3, 30), rho=8.0 + seed, seed=seed)
                engine = make_engine("cuda", *given, None, SERIAL, pool)
                for i in range(steps):
                    results.extend((yield from advance(engine, 1, 20.0 if i == 1 else None)))
                results += [engine.dictionary().tobytes(), engine.codes().tobytes()]
                engine.close()

        return run

    tasks = [task(0, (2, 1)), task(1, (3,)), task(2, (1, 2))]
    assert concurrently(tasks, Pool(3)) == one_by_one(tasks)


def test_batched_runs_in_bursts_of_different_lengths_are_bit_identical_to_single_runs(make_problem):
    def task(seed, bursts):
        def run(results, pool):
            engine = make_engine("cuda", *make_problem("exact", (5, 3, 30), seed=seed), None, SERIAL, pool)
            for count in bursts:
                results.extend((yield from advance(engine, count)))
            engine.close()

        return run

    tasks = [task(0, (2, 3)), task(1, (3, 1)), task(2, (1,))]
    assert concurrently(tasks, Pool(3)) == one_by_one(tasks)


def test_one_iteration_of_the_batch_serves_all_runs_that_have_submitted_one(make_problem, monkeypatch):
    pool = Pool(3)
    slots = [make_engine("cuda", *make_problem("exact", (5, 3, 30), seed=s), None, SERIAL, pool) for s in range(3)]
    counts, real = [], pool.batch.advance
    monkeypatch.setattr(pool.batch, "advance", lambda count: counts.append(count) or real(count))
    for slot in slots:
        slot.submit(1, None)
    for slot in slots:
        slot.step()
    assert counts == [1]


DATA = planted(30, 5, 6, sparsity=2, random_state=0).data
HOLES = DATA.copy()
HOLES[0, 0] = np.nan
INEXACT = {"formulation": "inexact", "rho": (210.0, 310.0, 260.0), "beta": (200.0, 300.0, 250.0)}


def model(n_components=4, **parameters):
    settings = {"rho": 10.0, "max_iter": 2, "tol": 0, "n_init": 1, "random_state": 0} | parameters
    return ROAD(n_components, engine="cuda", **settings)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((HOLES, {"missing_values": np.nan}), (DATA, {"missing_values": np.nan})),
        ((DATA, {"epsilon": 0.3}), (DATA, {"formulation": "lasso"})),
        ((DATA, {}), (DATA, INEXACT)),
        ((DATA, INEXACT), (3 * DATA, INEXACT)),
        ((DATA, {}), (DATA.astype(np.float32), {})),
        ((DATA, {}), (DATA[:20], {})),
        ((DATA, {}), (DATA, {"n_components": 1})),
    ],
    ids=["missing entries", "another form", "inexact", "another scale", "float32", "fewer samples", "fewer atoms"],
)
def test_fits_of_different_kinds_do_not_affect_each_other(first, second):
    both = (first, second)
    batched = fit_all([model(**parameters) for _, parameters in both], [data for data, _ in both])
    for each, (data, parameters) in zip(batched, both, strict=True):
        single = model(**parameters).fit(data)
        np.testing.assert_allclose(each.components_, single.components_, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(each.history_["objective"], single.history_["objective"], rtol=1e-12)


def test_each_of_many_fits_calls_its_callback():
    seen = []
    models = [
        model(callback=lambda snapshot, index=index: seen.append((index, snapshot.iteration))) for index in (0, 1)
    ]
    fit_all(models, [DATA, 2 * DATA])
    assert sorted(seen) == [(0, 1), (0, 2), (1, 1), (1, 2)]


@pytest.mark.parametrize("block", ["sparse", "rank_one"])
def test_runs_with_different_blocks_share_no_batch(make_problem, block):
    """The second has an unknown block and is rejected; the batch of the first would use a different step."""
    problem, atoms, codes = make_problem("exact", (5, 3, 30))
    form = dataclasses.replace(problem.formulation, **{block: "other"})
    pool = Pool(2)
    make_engine("cuda", problem, atoms, codes, None, SERIAL, pool)
    with pytest.raises(ValueError, match=f'no step for {block}="other"'):
        make_engine("cuda", dataclasses.replace(problem, formulation=form), atoms, codes, None, SERIAL, pool)


def test_ranks_share_no_batch(make_problem):
    """Ranks exchange the sums of a single problem."""

    class Two:
        rank, size = 0, 2

        def sum(self, array):
            return array

    pool = Pool(2)
    kinds = [type(make_engine("cuda", *make_problem("exact", (5, 3, 30)), None, c, pool)) for c in (Two(), SERIAL)]
    assert kinds == [CudaEngine, Slot]


def test_a_start_that_fails_releases_its_slot(make_problem):
    problem, atoms, codes = make_problem("exact", (5, 3, 30))
    pool = Pool(1)
    with pytest.raises(RuntimeError):
        make_engine("cuda", problem, atoms, codes[:10], None, SERIAL, pool)
    assert type(make_engine("cuda", problem, atoms, codes, None, SERIAL, pool)) is Slot


@pytest.mark.parametrize(
    ("models", "data", "message"),
    [
        ([model()], [DATA, DATA], "1 models and 2 arrays of data; pass one for each"),
        ([model(checkpoint="folder")], [DATA], "write no checkpoints; pass checkpoint=None"),
        ([model()] * 2, [DATA, DATA], "a model occurs twice; pass different objects"),
        ([None], [DATA], "None is not a ROAD estimator"),
    ],
)
def test_invalid_arguments_of_fit_all_are_rejected(models, data, message):
    with pytest.raises(ValueError, match=message):
        fit_all(models, data)


def test_running_out_of_memory_late_is_reported_with_the_remedy(make_problem, monkeypatch):
    """Without a GPU the test raises torch's error itself."""
    pool = Pool(1)
    slot = make_engine("cuda", *make_problem("exact", (5, 3, 30)), None, SERIAL, pool)

    def no_memory(count):
        raise torch.cuda.OutOfMemoryError

    monkeypatch.setattr(pool.batch, "advance", no_memory)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (2**30, 2**31))
    with pytest.raises(MemoryError, match=r"GiB of GPU memory and 1\.0 GiB are free; use fewer samples"):
        slot.step()
