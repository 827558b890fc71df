"""Power steps for nonnegative codes on a GPU, by the images B̂ᵀ max(B̂u, 0) in place of Gram matrices."""

import triton
import triton.language as tl

from roadict.engines.gpu.eigen import direction
from roadict.engines.gpu.passes import ACTIVE, N_CONTROL, real_features


@triton.jit
def _add_tile(  # type: ignore[no-untyped-def]
    mixed, at0, at1, at2, real0, real1, real2, f0, f1, f2, u0, u1, u2, sum0, sum1, sum2,
    PARTS: tl.constexpr, PROJECT: tl.constexpr,
):  # fmt: skip
    """Add the rows of a tile's B̂ = D + F, times their codes, to the sums of an atom."""
    b0 = tl.load(mixed + at0, mask=real0, other=0.0) + f0
    inner = b0 * u0[None, :]
    if PARTS > 1:
        b1 = tl.load(mixed + at1, mask=real1, other=0.0) + f1
        inner += b1 * u1[None, :]
    if PARTS > 2:
        b2 = tl.load(mixed + at2, mask=real2, other=0.0) + f2
        inner += b2 * u2[None, :]
    v = PROJECT(tl.sum(inner, axis=1))[:, None]
    sum0 += v * b0
    if PARTS > 1:
        sum1 += v * b1
    if PARTS > 2:
        sum2 += v * b2
    return sum0, sum1, sum2


@triton.jit
def _store_image(into, m0, m1, m2, has0, has1, has2, sum0, sum1, sum2, PARTS: tl.constexpr):  # type: ignore[no-untyped-def]
    tl.store(into + m0, tl.sum(sum0, axis=0), mask=has0)
    if PARTS > 1:
        tl.store(into + m1, tl.sum(sum1, axis=0), mask=has1)
    if PARTS > 2:
        tl.store(into + m2, tl.sum(sum2, axis=0), mask=has2)


@triton.jit
def add_images(  # type: ignore[no-untyped-def]
    mixed, shift, atoms, control, images, n_atoms, n_samples, chunk,
    STRIDE: tl.constexpr, WIDTH: tl.constexpr, PARTS: tl.constexpr, TILE: tl.constexpr, PROJECT: tl.constexpr,
):  # fmt: skip
    """Compute Σ_n v_n b̂_n of two atoms over a chunk of samples, with v = ``PROJECT``(B̂u) and the present u.

    Two atoms share the reads of F. Features are in parts as in ``update_blocks``; every number of a tile has its own
    sum, so that the loop adds nothing across rows.
    """
    pair, part, problem = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    if tl.load(control + problem * N_CONTROL + ACTIVE) == 0:
        return
    rows, m0 = tl.arange(0, TILE), tl.arange(0, WIDTH)
    m1, m2 = WIDTH + m0, 2 * WIDTH + m0
    has0 = real_features(m0, WIDTH, STRIDE)
    has1, has2 = real_features(m1, 2 * WIDTH, STRIDE), real_features(m2, 3 * WIDTH, STRIDE)
    real0, real1, real2 = has0[None, :], has1[None, :], has2[None, :]
    at0 = rows[:, None] * STRIDE + m0[None, :]
    at1, at2 = at0 + WIDTH, at0 + 2 * WIDTH
    # For an odd number of atoms the last program computes its only one twice.
    one, other = 2 * pair, min(2 * pair + 1, n_atoms - 1)
    u_one, u_other = atoms + (problem * n_atoms + one) * STRIDE, atoms + (problem * n_atoms + other) * STRIDE
    u0, w0 = tl.load(u_one + m0, mask=has0, other=0.0), tl.load(u_other + m0, mask=has0, other=0.0)
    u1, w1 = tl.load(u_one + m1, mask=has1, other=0.0), tl.load(u_other + m1, mask=has1, other=0.0)
    u2, w2 = tl.load(u_one + m2, mask=has2, other=0.0), tl.load(u_other + m2, mask=has2, other=0.0)
    zeros = tl.zeros((TILE, WIDTH), shift.dtype.element_ty)
    f1, f2, sum0, sum1, sum2, more0, more1, more2 = zeros, zeros, zeros, zeros, zeros, zeros, zeros, zeros
    for start in range(part * chunk, min(part * chunk + chunk, n_samples), TILE):
        here = shift + (problem.to(tl.int64) * n_samples + start) * STRIDE
        f0 = tl.load(here + at0, mask=real0, other=0.0)
        if PARTS > 1:
            f1 = tl.load(here + at1, mask=real1, other=0.0)
        if PARTS > 2:
            f2 = tl.load(here + at2, mask=real2, other=0.0)
        first = mixed + ((problem * n_atoms + one).to(tl.int64) * n_samples + start) * STRIDE
        sum0, sum1, sum2 = _add_tile(
            first, at0, at1, at2, real0, real1, real2, f0, f1, f2, u0, u1, u2, sum0, sum1, sum2, PARTS, PROJECT
        )
        second = mixed + ((problem * n_atoms + other).to(tl.int64) * n_samples + start) * STRIDE
        more0, more1, more2 = _add_tile(
            second, at0, at1, at2, real0, real1, real2, f0, f1, f2, w0, w1, w2, more0, more1, more2, PARTS, PROJECT
        )
    into = images + ((problem * tl.num_programs(1) + part) * n_atoms).to(tl.int64) * STRIDE
    _store_image(into + one * STRIDE, m0, m1, m2, has0, has1, has2, sum0, sum1, sum2, PARTS)
    _store_image(into + other * STRIDE, m0, m1, m2, has0, has1, has2, more0, more1, more2, PARTS)


@triton.jit
def step_by_images(  # type: ignore[no-untyped-def]
    images, atoms_before, atoms, control, n_atoms, n_fixed, n_parts,
    STRIDE: tl.constexpr, PADDED: tl.constexpr, POSITIVE: tl.constexpr,
):  # fmt: skip
    """Copy an atom to ``atoms_before`` and replace it by the direction of the sum of its images.

    ``POSITIVE`` clips the sum at 0. The first ``n_fixed`` atoms stay.
    """
    k, problem = tl.program_id(0) + n_fixed, tl.program_id(1)
    if tl.load(control + problem * N_CONTROL + ACTIVE) == 0:
        return
    m = tl.arange(0, PADDED)
    known = m < STRIDE
    image = tl.zeros((PADDED,), tl.float64)
    for part in range(n_parts):
        first = ((problem * n_parts + part) * n_atoms + k).to(tl.int64) * STRIDE
        image += tl.load(images + first + m, mask=known, other=0.0).to(tl.float64)
    if POSITIVE:
        image = tl.maximum(image, 0.0)
    here = (problem * n_atoms + k) * STRIDE + m
    before = tl.load(atoms + here, mask=known, other=0.0)
    tl.store(atoms_before + here, before, mask=known)
    tl.store(atoms + here, direction(image, before.to(tl.float64)).to(before.dtype), mask=known)
