"""Nonnegative codes and atoms, and atoms that stay, on a GPU or in Triton's interpreter: against the reference."""

import dataclasses

import numpy as np
import pytest

from roadict.engines.reference import ReferenceEngine
from roadict.engines.registry import make_engine
from roadict.formulation import RankOne
from roadict.ranks.comm import SERIAL

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from roadict.engines.gpu import cuda  # noqa: E402
from roadict.engines.gpu import layout as gpu_layout  # noqa: E402
from roadict.engines.gpu.batch import Pool, Slot  # noqa: E402
from roadict.engines.gpu.cuda import CudaEngine  # noqa: E402

pytestmark = pytest.mark.usefixtures("kernels")

SIGNS = [RankOne.POSITIVE_CODES, RankOne.POSITIVE_ATOMS, RankOne.POSITIVE]
SMALL = (5, 3, 24)
STEPS = 20


def assert_same_run(ours, theirs, steps=STEPS, changes=()):
    for iteration in range(steps):
        following = changes[iteration] if iteration < len(changes) else None
        measured, expected = ours.step(following), theirs.step(following)
        for name, value in vars(expected).items():
            assert vars(measured)[name] == pytest.approx(value, rel=1e-9, abs=1e-12), name
    atoms, expected_atoms = ours.dictionary(), theirs.dictionary()
    free = theirs.problem.formulation.rank_one == RankOne.NEAREST  # then an atom and its codes may both change sign
    turns = np.sign(np.sum(atoms * expected_atoms, axis=1)) if free else np.ones(len(atoms))
    np.testing.assert_allclose(turns[:, None] * atoms, expected_atoms, rtol=0, atol=1e-9)
    np.testing.assert_allclose(turns * ours.codes(), theirs.codes(), rtol=0, atol=1e-9)


@pytest.mark.parametrize("form", ["exact", "ball", "lasso", "inexact-three"])
@pytest.mark.parametrize("signs", SIGNS)
def test_every_form_follows_the_reference(make_signed, signs, form):
    given = make_signed(signs, form, SMALL)
    assert_same_run(CudaEngine(*given), ReferenceEngine(*given))


@pytest.mark.parametrize("form", ["exact", "ball", "lasso"])
@pytest.mark.parametrize("signs", SIGNS)
def test_missing_entries_and_a_changing_rho(make_signed, signs, form):
    given = make_signed(signs, form, SMALL, 0.2)
    assert_same_run(CudaEngine(*given), ReferenceEngine(*given), 6, changes=(12.0, None, 9.0))


@pytest.mark.parametrize("shape", [(18, 3, 20), (33, 3, 20), (5, 3, 300)], ids=["two parts", "three parts", "chunks"])
@pytest.mark.parametrize("signs", SIGNS)
def test_parts_of_features_and_chunks_of_samples(make_signed, signs, shape):
    given = make_signed(signs, "exact", shape)
    assert_same_run(CudaEngine(*given), ReferenceEngine(*given), 2)


@pytest.mark.parametrize("form", ["exact", "inexact-three"])
@pytest.mark.parametrize("signs", list(RankOne))
def test_many_features(make_signed, signs, form):
    """Gram matrices and images are then PyTorch's products."""
    given = make_signed(signs, form, (gpu_layout.MAX_KERNEL_FEATURES + 6, 3, 20), n_fixed=1)
    engine = CudaEngine(*given)
    assert_same_run(engine, ReferenceEngine(*given), 3)
    assert np.array_equal(engine.dictionary()[0], given[1][0])


@pytest.mark.parametrize("n_fixed", [2, 3])
@pytest.mark.parametrize("form", ["exact", "inexact-three"])
@pytest.mark.parametrize("signs", list(RankOne))
def test_fixed_atoms_stay(make_signed, signs, form, n_fixed):
    given = make_signed(signs, form, SMALL, n_fixed=n_fixed)
    engine = CudaEngine(*given)
    assert_same_run(engine, ReferenceEngine(*given), 4)
    assert np.array_equal(engine.dictionary()[:n_fixed], given[1][:n_fixed])


@pytest.mark.parametrize("shape", [SMALL, (gpu_layout.MAX_KERNEL_FEATURES + 6, 3, 20)], ids=["kernels", "wide"])
@pytest.mark.parametrize("form", ["exact", "inexact-three"])
@pytest.mark.parametrize("signs", SIGNS)
def test_an_atom_without_an_image_stays(make_signed, signs, form, shape):
    """No sample uses atom 1 at the start, so that its block is zero; each engine still has it one iteration later."""
    problem, dictionary, codes = make_signed(signs, form, shape)
    codes[:, 1] = 0
    engine, reference = CudaEngine(problem, dictionary, codes), ReferenceEngine(problem, dictionary, codes)
    engine.step(), reference.step()
    np.testing.assert_allclose(engine.dictionary()[1], dictionary[1], rtol=0, atol=1e-12)
    assert_same_run(engine, reference, 2)


@pytest.mark.parametrize("signs", SIGNS)
def test_signs_hold_in_float32(make_signed, signs):
    engine = CudaEngine(*make_signed(signs, "exact", SMALL, dtype=np.float32))
    for _ in range(5):
        engine.step()
    assert engine.codes().dtype == engine.dictionary().dtype == np.float32
    assert (engine.codes().min() >= 0) == signs.positive_code
    assert (engine.dictionary().min() >= 0) == signs.positive_dict


@pytest.mark.parametrize("form", ["exact", "inexact-three"])
@pytest.mark.parametrize("signs", SIGNS)
def test_runs_of_a_batch_take_turns(make_signed, signs, form):
    """Iterations of one do not change the other, which is not active then."""
    given = [make_signed(signs, form, SMALL, n_fixed=1, seed=seed) for seed in (0, 1)]
    pool = Pool(2)
    slots = [make_engine("cuda", *each, None, SERIAL, pool) for each in given]
    assert [type(slot) for slot in slots] == [Slot, Slot]
    references = [ReferenceEngine(*each) for each in given]
    for turn in (0, 1, 0):
        assert_same_run(slots[turn], references[turn], 2)
    for slot in slots:
        slot.submit(1, None)
    for slot, reference in zip(slots, references, strict=True):
        assert_same_run(slot, reference, 1)


@pytest.mark.parametrize("other", [{"n_fixed": 0}, {"formulation": "unsigned"}], ids=["fixed atoms", "signs"])
def test_unlike_problems_share_no_batch(make_signed, other):
    problem, *start = make_signed(RankOne.POSITIVE, "exact", SMALL, n_fixed=1)
    if "formulation" in other:
        other = {"formulation": dataclasses.replace(problem.formulation, rank_one=RankOne.NEAREST)}
    pool = Pool(3)
    make_engine("cuda", problem, *start, None, SERIAL, pool)
    assert pool.accepts(problem, 3)
    assert not pool.accepts(dataclasses.replace(problem, **other), 3)


@pytest.mark.parametrize("form", ["ball", "inexact-three"])
@pytest.mark.parametrize("signs", SIGNS)
def test_a_run_resumes_from_its_state_bit_identically(make_signed, signs, form):
    given = make_signed(signs, form, SMALL, n_fixed=1)
    unbroken, resumed = CudaEngine(*given), CudaEngine(*given)
    for _ in range(2):
        unbroken.step()
    resumed.restore(unbroken.state())
    for _ in range(2):
        assert resumed.step() == unbroken.step()
    assert np.array_equal(resumed.codes(), unbroken.codes())
    assert np.array_equal(resumed.dictionary(), unbroken.dictionary())


class Twins:
    """Two ranks with the same samples."""

    rank, size = 0, 2

    def sum(self, array):
        return array + array


@pytest.mark.parametrize("form", ["lasso", "inexact-three"])
@pytest.mark.parametrize("signs", SIGNS)
def test_two_ranks_are_one_with_all_samples(make_signed, signs, form):
    problem, dictionary, codes = make_signed(signs, form, SMALL, n_fixed=1)
    ours = CudaEngine(problem, dictionary, codes, Twins())
    both = dataclasses.replace(problem, data=np.vstack([problem.data] * 2))
    theirs = ReferenceEngine(both, dictionary, np.vstack([codes] * 2))
    for _ in range(3):
        assert vars(ours.step()) == pytest.approx(vars(theirs.step()), rel=1e-9, abs=1e-12)
    np.testing.assert_allclose(ours.dictionary(), theirs.dictionary(), rtol=0, atol=1e-9)


@pytest.mark.parametrize("signs", list(RankOne))
def test_the_memory_that_is_asked_for_is_that_of_the_arrays(make_signed, signs):
    """Nonnegative codes need no Gram matrices, here a third of all."""
    problem, dictionary, codes = make_signed(signs, "exact", (60, 3, 32))
    arrays = vars(CudaEngine(problem, dictionary, codes)._batch).values()
    taken = sum(array.nbytes for array in arrays if isinstance(array, torch.Tensor))
    assert 0.9 < cuda._required_bytes(problem, 3, 1) / taken < 1.2
