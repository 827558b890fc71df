"""Errata of the paper that numbers can show; the numbers are those of docs/paper-to-code.md."""

import copy

import numpy as np
import pytest

from roadict.engines.reference import ReferenceEngine
from roadict.experiments.published import PSNR
from roadict.formulation import Problem, inexact
from roadict.linalg import unit_rows
from roadict.pictures.predictors import _least_squares
from roadict.prox import group_norm, nearest_rank_one, project_ball

BETAS, RHOS = (2.0, 3.0, 2.5), (3.0, 6.0, 4.0)


def make_engine(rhos=RHOS):
    rng = np.random.default_rng(8)
    dictionary, codes = unit_rows(rng.standard_normal((4, 3)))[0], rng.standard_normal((6, 4))
    return ReferenceEngine(Problem(rng.standard_normal((6, 3)), None, inexact(BETAS), rhos), dictionary, codes)


def squares(arrays, others):
    return [float(np.sum((a - b) ** 2)) for a, b in zip(arrays, others, strict=True)]


@pytest.mark.parametrize(("rhos", "right"), [((5.0,) * 3, True), (RHOS, False)])
def test_1_the_printed_consensus_is_that_of_equal_penalties(rhos, right):
    engine = make_engine(rhos)
    engine.step()
    (S1, S2, S3), (U1, U2, U3), Y = engine.slacks, engine.multipliers, engine.problem.data
    engine.step()
    terms = (engine.sparse - S1 + U1) + (engine.rank_one - S2 + U2) + (Y - S3 + U3)
    printed = (terms - terms.sum(axis=0) / (len(terms) + 2)) / 2
    assert np.allclose(printed, engine.consensus) == right


def test_2_misfits_within_the_bound_stay_where_the_printed_step_pushes_them_to_its_surface():
    misfit = np.array([[0.3, 0.4]])
    assert project_ball(misfit, 1.0) == pytest.approx(misfit)
    assert project_ball(10 * misfit, 1.0) == pytest.approx(np.array([[0.6, 0.8]]))


def test_8_15_descent_of_the_lagrangian_by_each_step():
    """L at the new X with the old or new rest, from copies of the engine."""
    engine = make_engine()
    engine.step()
    before = copy.copy(engine)
    engine.step()
    for beta, rho, slack, multiplier in zip(BETAS, RHOS, engine.slacks, engine.multipliers, strict=True):
        assert rho * multiplier == pytest.approx(beta * slack)  # first-order condition of the slack
    consensus_step = copy.copy(before)
    consensus_step.sparse, consensus_step.rank_one = engine.sparse, engine.rank_one
    start = consensus_step.lagrangian()
    consensus_step.consensus = engine.consensus
    fall, (rho1, rho2, rho3) = start - consensus_step.lagrangian(), RHOS
    moved = before.consensus - engine.consensus
    assert fall == pytest.approx((rho1 + rho2) / 2 * np.sum(moved**2) + rho3 / 2 * np.sum(moved.sum(axis=0) ** 2))

    moves = squares(engine.slacks, before.slacks)
    fall = consensus_step.lagrangian() - engine.lagrangian()
    exact = sum((r - b) * (r + 2 * b) / (2 * r) * move for r, b, move in zip(RHOS, BETAS, moves, strict=True))
    printed = sum((r - b) / 2 * move for r, b, move in zip(RHOS, BETAS, moves, strict=True))
    assert fall == pytest.approx(exact)
    assert fall > 1.1 * printed


def test_12_the_second_dictionary_is_that_of_least_squares():
    """Of 245 samples, with a slight ridge; the printed product of these shapes does not exist."""
    rng = np.random.default_rng(1)
    high, codes = rng.standard_normal((245, 36)), rng.standard_normal((245, 64))
    meant = np.linalg.lstsq(codes, high)[0]
    assert np.linalg.norm(_least_squares(codes, high) - meant) < 0.03 * np.linalg.norm(meant)


def test_13_others_exceed_bicubic_in_the_papers_own_table():
    table = PSNR["digits", "yang"]
    assert [name for name in table if table[name] > table["bicubic"]] == ["road", "ksvd", "mod"]


def test_14_the_rank_one_projection_is_not_continuous():
    delta = 1e-6
    blocks = np.array([np.diag([1 + delta, 1]), np.diag([1, 1 + delta])])
    codes, atoms = nearest_rank_one(blocks)
    projected = codes[:, :, None] * atoms[:, None, :]
    assert np.linalg.norm(blocks[0] - blocks[1]) == pytest.approx(np.sqrt(2) * delta)
    assert np.linalg.norm(projected[0] - projected[1]) > np.sqrt(2)


def test_14_the_lagrangian_is_bounded_below_but_not_by_as_much_as_printed():
    """By the objective with the gaps as slacks; with the printed use of convexity all penalties would add to it."""
    engine = make_engine()
    engine.step()
    sums = engine.consensus.sum(axis=0)
    gaps = [engine.sparse - engine.consensus, engine.rank_one - engine.consensus, engine.problem.data - sums]
    objective = group_norm(engine.sparse) + sum(b / 2 * np.sum(gap**2) for b, gap in zip(BETAS, gaps, strict=True))
    penalties = sum(r / 2 * move for r, move in zip(RHOS, squares(gaps, engine.slacks), strict=True))
    assert objective < engine.lagrangian() < objective + penalties
