"""Runs that share a batch on the GPU, or in Triton's interpreter: each is as if it were alone."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from roadict import ROAD
from roadict.engines.registry import PARTY, make_engine
from roadict.ranks.comm import SERIAL
from roadict.synthetic import planted

torch = pytest.importorskip("torch")
pytest.importorskip("triton")
pytest.importorskip("greenlet")

from roadict.engines.gpu.batch import Member, all_together  # noqa: E402
from roadict.engines.gpu.cuda import CudaEngine  # noqa: E402

pytestmark = pytest.mark.usefixtures("kernels")


def test_runs_together_are_runs_alone_to_the_bit(make_problem):
    """Runs of different lengths and penalties share a batch, take and leave places, and do not notice each other."""

    def run(seed, lengths):
        outcomes = []
        for steps in lengths:
            problem, atoms, codes = make_problem("exact", (5, 3, 30), rho=8.0 + seed, seed=seed)
            engine = make_engine("cuda", problem, atoms, codes, None, SERIAL)
            measures = [engine.step(20.0 if i == 1 else None) for i in range(steps)]
            outcomes.append((measures, engine.dictionary().tobytes(), engine.codes().tobytes()))
            engine.close()
        return outcomes

    tasks = [(0, (2, 1)), (1, (3,)), (2, (1, 2))]
    alone = [run(*task) for task in tasks]
    assert all_together([lambda task=task: run(*task) for task in tasks]) == alone


def test_runs_in_bursts_of_unlike_lengths_are_runs_alone_to_the_bit(make_problem):
    def run(seed, bursts):
        engine = make_engine("cuda", *make_problem("exact", (5, 3, 30), seed=seed), None, SERIAL)
        measures = [each for count in bursts for each in engine.steps(count)]
        engine.close()
        return measures

    tasks = [(0, (2, 3)), (1, (3, 1)), (2, (1,))]
    assert all_together([lambda task=task: run(*task) for task in tasks]) == [run(*task) for task in tasks]


def test_runs_go_on_while_one_waits_for_another_process(make_problem):
    told = []

    def waits():
        answer = PARTY.get().result_of(pool.submit(said.wait, 60))
        told.append("waited")
        return answer

    def works():
        engine = make_engine("cuda", *make_problem("exact", (5, 3, 30)), None, SERIAL)
        engine.step()
        told.append("worked")
        said.set()
        return len([engine.step() for _ in range(2)])

    said = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        assert all_together([waits, works]) == [True, 2]
    assert sorted(told) == ["waited", "worked"]
    assert told[0] == "worked"


def test_a_failure_of_one_run_does_not_hold_up_the_others(make_problem):
    def fails():
        engine = make_engine("cuda", *make_problem("exact", (5, 3, 30)), None, SERIAL)
        try:
            engine.step()
            raise ZeroDivisionError
        finally:
            engine.close()

    def works():
        engine = make_engine("cuda", *make_problem("exact", (5, 3, 30)), None, SERIAL)
        return [engine.step() for _ in range(2)]

    with pytest.raises(ZeroDivisionError):
        all_together([fails, works])


DATA = planted(30, 5, 6, sparsity=2, random_state=0).data
HOLES = DATA.copy()
HOLES[0, 0] = np.nan
INEXACT = {"formulation": "inexact", "rho": (210.0, 310.0, 260.0), "beta": (200.0, 300.0, 250.0)}


def fitted(data, n_components=4, **parameters):
    settings = {"rho": 10.0, "max_iter": 2, "tol": 0, "n_init": 1, "random_state": 0} | parameters
    return ROAD(n_components, engine="cuda", **settings).fit(data)


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
def test_unlike_fits_do_not_disturb_each_other(first, second):
    tasks = [lambda each=each: fitted(each[0], **each[1]) for each in (first, second)]
    for together, alone in zip(all_together(tasks), [task() for task in tasks], strict=True):
        np.testing.assert_allclose(together.components_, alone.components_, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(together.history_["objective"], alone.history_["objective"], rtol=1e-12)


def test_ranks_share_no_batch(make_problem):
    """What ranks sum is of one problem."""

    class Two:
        rank, size = 0, 2

        def sum(self, array):
            return array

    def kind_of(comm):
        return type(make_engine("cuda", *make_problem("exact", (5, 3, 30)), None, comm))

    assert all_together([lambda: kind_of(Two()), lambda: kind_of(SERIAL)]) == [CudaEngine, Member]


def test_a_start_that_fails_leaves_its_place_free(make_problem):
    problem, atoms, codes = make_problem("exact", (5, 3, 30))

    def twice():
        with pytest.raises(RuntimeError):
            make_engine("cuda", problem, atoms, codes[:10], None, SERIAL)
        return type(make_engine("cuda", problem, atoms, codes, None, SERIAL))

    assert all_together([twice]) == [Member]


def test_a_fit_in_company_keeps_no_checkpoint(tmp_path):
    with pytest.raises(ValueError, match="keeps no checkpoint; do it by itself"):
        all_together([lambda: fitted(DATA, checkpoint=tmp_path / "kept")])


def test_memory_that_runs_out_late_is_told_with_the_remedy(make_problem, monkeypatch):
    """Without a GPU its memory cannot run out: what torch would say then is said for it."""

    def runs_out():
        engine = make_engine("cuda", *make_problem("exact", (5, 3, 30)), None, SERIAL)
        monkeypatch.setattr(PARTY.get().batch, "advance", no_memory)
        engine.step()

    def no_memory(count):
        raise torch.cuda.OutOfMemoryError

    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (2**30, 2**31))
    with pytest.raises(MemoryError, match=r"GiB of GPU memory and 1\.0 GiB are free; use fewer samples"):
        all_together([runs_out])
