"""Collectives against NumPy on all rows at once; ranks are threads here."""

import numpy as np
import pytest
import scipy.sparse

from roadict.checkpoints.schedule import fingerprint
from roadict.ranks import collectives
from roadict.ranks.collectives import (
    OtherRankError,
    allgather_json,
    allreduce_max,
    broadcast,
    gathered,
    gathered_on_root,
    joint_triangular_factor,
    largest,
    median,
    norm,
    offset,
    on_all_ranks,
    picked,
    quantile,
)
from roadict.ranks.comm import SERIAL

ROWS = np.random.default_rng(0).standard_normal((20, 4))
CUTS = {1: [], 2: [13], 3: [13, 13]}  # the second of three ranks has no rows


@pytest.fixture(params=[1, 2, 3])
def ranks(request, on_ranks):
    """Run a function of (comm, own rows) on a number of ranks; all must return the same result, which is returned."""

    def run(work, rows=ROWS):
        parts = np.split(rows, CUTS[request.param])
        results = on_ranks(request.param, lambda comm: work(comm, parts[comm.rank]))
        for other in results[1:]:
            np.testing.assert_array_equal(results[0], other)
        return results[0]

    return run


def test_rows_norms_and_extremes_are_those_of_all_rows(ranks):
    np.testing.assert_array_equal(ranks(gathered), ROWS)
    np.testing.assert_array_equal(ranks(gathered, ROWS > 0), ROWS > 0)
    assert ranks(norm) == pytest.approx(np.linalg.norm(ROWS), rel=1e-14)
    assert ranks(largest) == np.abs(ROWS).max()
    assert ranks(lambda comm, rows: allreduce_max(comm, 3 * comm.rank, 7 - comm.rank)[1]) == 7
    assert ranks(lambda comm, rows: allgather_json(comm, {"rank": comm.rank})[-1]["rank"] - comm.size) == -1


def test_rows_gathered_on_the_root_are_sent_to_no_other_rank(on_ranks, monkeypatch):
    monkeypatch.setattr(collectives, "BLOCK_ROWS", 6)
    for size, cuts in CUTS.items():
        parts = np.split(ROWS, cuts)
        first, *others = on_ranks(size, lambda comm, parts=parts: gathered_on_root(comm, parts[comm.rank]))
        np.testing.assert_array_equal(first, ROWS)
        assert [other.shape for other in others] == [(0, 4)] * (size - 1)
    assert on_ranks(3, lambda comm: offset(comm, 5 + comm.rank)) == [0, 5, 11]


@pytest.mark.parametrize("gather", [gathered, gathered_on_root])
def test_sparse_rows_are_gathered(on_ranks, monkeypatch, gather):
    monkeypatch.setattr(collectives, "BLOCK_ROWS", 6)
    rows = np.where(np.abs(ROWS) > 1, ROWS, 0).astype(np.float32)
    for size, cuts in CUTS.items():
        parts = [scipy.sparse.csr_array(part) for part in np.split(rows, cuts)]
        first, *others = on_ranks(size, lambda comm, parts=parts: gather(comm, parts[comm.rank]))
        assert first.dtype == np.float32
        np.testing.assert_array_equal(first.toarray(), rows)
        for other in others:
            np.testing.assert_array_equal(other.toarray(), rows if gather is gathered else rows[:0])


def test_codes_that_were_not_stored_cannot_be_gathered():
    with pytest.raises(ValueError, match=r"store_codes=True, or use transform\(X, sparse=True\)"):
        gathered(SERIAL, None)


def test_picked_rows_are_numbered_over_all_ranks(ranks):
    numbers = np.array([19, 0, 12, 13, 0])
    starts = dict(enumerate([0, 13, 13]))
    np.testing.assert_array_equal(
        ranks(lambda comm, rows: picked(comm, rows, starts[comm.rank], numbers)), ROWS[numbers]
    )


def test_the_joint_triangular_factor_has_the_singular_values_and_right_vectors_of_all_rows(ranks):
    _, sizes, right = np.linalg.svd(ROWS, full_matrices=False)
    _, actual, vectors = np.linalg.svd(ranks(joint_triangular_factor), full_matrices=False)
    np.testing.assert_allclose(actual[:4], sizes, rtol=1e-13)
    np.testing.assert_allclose(np.abs(np.sum(vectors[:4] * right, axis=1)), 1, rtol=1e-13)


@pytest.mark.parametrize("count", [20, 19, 2, 1])
def test_the_median_is_exact_for_any_signs_and_sizes(ranks, count):
    values = ROWS[:, 0] * 10.0 ** np.arange(-150, 150, 15)
    values[3] = 0.0
    assert ranks(median, values[:count]) == np.median(values[:count])
    assert ranks(median, np.abs(values[:count])) == np.median(np.abs(values[:count]))
    assert ranks(median, np.full(count, -2.5)) == -2.5


@pytest.mark.parametrize("count", [20, 19, 2, 1])
@pytest.mark.parametrize("share", [0.25, 0.5, 0.75])
def test_a_quantile_is_one_of_the_values(ranks, count, share):
    values = ROWS[:count, 0] * 10.0 ** np.arange(-150, 150, 15)[:count]
    expected = np.sort(values)[max(1, int(np.ceil(share * count))) - 1]
    assert ranks(lambda comm, rows: quantile(comm, rows, share), values) == expected


def test_the_array_of_rank_0_is_broadcast(ranks):
    np.testing.assert_array_equal(ranks(lambda comm, rows: broadcast(comm, ROWS + comm.rank)), ROWS)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_fingerprint_depends_on_every_entry_and_its_position_but_not_on_the_ranks(ranks, dtype):
    rows = ROWS.astype(dtype)

    def digest(data):
        return ranks(lambda comm, part: fingerprint(part, comm), data)

    assert digest(rows) == fingerprint(rows, SERIAL)
    others = {digest(rows[::-1]), digest(rows * dtype(1 + 1e-6)), digest(rows[:19]), digest(rows.T.copy())}
    assert len(others | {digest(rows)}) == 5


def test_if_some_ranks_fail_all_do_and_the_first_of_them_reports_the_reason(on_ranks):
    def work(comm):
        def task():
            if comm.rank > 0:
                raise ValueError(f"reason of rank {comm.rank}")

        if comm.rank == 1:
            with pytest.raises(ValueError, match="reason of rank 1"):
                on_all_ranks(comm, task)
        else:
            with pytest.raises(OtherRankError, match="rank 1 has failed") as failure:
                on_all_ranks(comm, task)
            assert isinstance(failure.value.__cause__, ValueError) is (comm.rank == 2)
        return True

    assert on_ranks(3, work) == [True] * 3
