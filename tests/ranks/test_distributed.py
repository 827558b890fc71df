"""How ranks are placed on GPUs, and which errors are blamed on other ranks."""

import pytest

from roadict import ROAD, fit_all
from roadict.ranks.comm import SERIAL, RankLostError, TorchComm, current, is_first_to_report, placement
from roadict.synthetic import planted

BOTH = "cpu:gloo,cuda:nccl"


@pytest.mark.parametrize(
    ("engine", "n_gpus", "local_rank", "local_size", "expected"),
    [
        ("cuda", 8, 5, 8, (5, BOTH)),
        ("auto", 8, 5, 8, (5, BOTH)),
        ("auto", 1, 0, 1, (0, BOTH)),
        ("cuda", 2, 3, 4, (1, "gloo")),  # NCCL would refuse two ranks on one GPU
        ("cuda", 0, 1, 2, (None, "gloo")),  # the engine reports that there is none
        ("auto", 0, 1, 2, (None, "gloo")),
        ("numba", 8, 1, 2, (None, "gloo")),
        ("reference", 8, 1, 2, (None, "gloo")),
    ],
)
def test_every_rank_has_the_gpu_of_its_local_number(engine, n_gpus, local_rank, local_size, expected):
    assert placement(engine, n_gpus, local_rank, local_size) == expected


@pytest.fixture
def group():
    """A process group of this process only."""
    torch = pytest.importorskip("torch")
    from torch import distributed

    store = torch.distributed.HashStore()
    distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    yield TorchComm(store)
    distributed.destroy_process_group()


def test_a_local_failure_is_not_blamed_on_other_ranks(group):
    import torch

    with pytest.raises(RuntimeError, match="memory") as failure:
        group.sum(torch.zeros(1).expand(2**60))
    assert not isinstance(failure.value, RankLostError)


def test_the_same_message_is_reported_once(group):
    assert [is_first_to_report(group, text) for text in ("this", "that", "this")] == [True, True, False]


def test_fits_that_share_a_gpu_do_not_use_the_group(group):
    """They advance in an order of their own, in which ranks would wait for each other."""
    pytest.importorskip("triton")
    seen = []
    data = planted(60, 6, 8, sparsity=2, random_state=0).data
    models = [
        ROAD(8, rho=10.0, n_init=1, max_iter=2, tol=0, callback=lambda snapshot: seen.append(current())) for _ in "ab"
    ]
    fit_all(models, [data, data])
    assert seen == [SERIAL] * 4
    assert current() is not SERIAL
