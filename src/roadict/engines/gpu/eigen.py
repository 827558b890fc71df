"""Top eigenvectors of many small matrices on a GPU, one program each, or power steps within a sign.

See ``lanes.top_eigenvectors``.
"""

import triton
import triton.language as tl

from roadict.engines.gpu.passes import ACTIVE, N_CONTROL

DOMINANT = tl.constexpr(0.75)
MAX_SQUARINGS = tl.constexpr(10)
MAX_STEPS = tl.constexpr(100)
PATIENCE = tl.constexpr(3)


@triton.jit
def _unit_trace(gram, diagonal):  # type: ignore[no-untyped-def]
    trace = tl.sum(tl.sum(tl.where(diagonal, gram, 0.0), axis=1))
    return gram * tl.where(trace > 0, 1.0 / tl.where(trace > 0, trace, 1.0), 0.0)


@triton.jit
def direction(image, u):  # type: ignore[no-untyped-def]
    """Return the unit vector along an image, or ``u`` if it is zero."""
    length = tl.sqrt(tl.sum(image * image))
    return tl.where(length > 0, image / tl.where(length > 0, length, 1.0), u)


@triton.jit
def _sum_grams(grams, k, problem, n_atoms, n_parts, m, STRIDE: tl.constexpr, PADDED: tl.constexpr):  # type: ignore[no-untyped-def]
    """Sum an atom's Gram matrices, of which only the upper triangles are read."""
    lower, upper = tl.maximum(m[:, None], m[None, :]), tl.minimum(m[:, None], m[None, :])
    gram = tl.zeros((PADDED, PADDED), tl.float64)
    for part in range(n_parts):
        first = ((problem * n_parts + part) * n_atoms + k).to(tl.int64) * STRIDE * STRIDE
        gram += tl.load(grams + first + upper * STRIDE + lower, mask=lower < STRIDE, other=0.0).to(tl.float64)
    return gram


@triton.jit
def top_eigenvectors(  # type: ignore[no-untyped-def]
    grams, atoms_before, atoms, control, n_atoms, n_fixed, n_parts, tolerance,
    STRIDE: tl.constexpr, PADDED: tl.constexpr,
):  # fmt: skip
    """Copy an atom to ``atoms_before`` and replace it by the top eigenvector of the sum of its Gram matrices.

    The first ``n_fixed`` atoms stay.

    As on the CPU: power steps from the last atom, accepted if the Rayleigh quotient exceeds 3/4 of the trace; otherwise
    the matrix is squared, here also if a few steps have not converged. If ten squarings do not separate the top two
    eigenvalues, the last step is accepted.
    """
    k, problem = tl.program_id(0) + n_fixed, tl.program_id(1)
    if tl.load(control + problem * N_CONTROL + ACTIVE) == 0:
        return
    m = tl.arange(0, PADDED)
    known = m < STRIDE
    diagonal = m[:, None] == m[None, :]
    gram = _sum_grams(grams, k, problem, n_atoms, n_parts, m, STRIDE, PADDED)
    here = (problem * n_atoms + k) * STRIDE + m
    before = tl.load(atoms + here, mask=known, other=0.0)
    tl.store(atoms_before + here, before, mask=known)
    gram = _unit_trace(gram, diagonal)
    u = before.to(tl.float64)
    step, squarings, done = 0, 0, 0
    while (step < MAX_STEPS) & (done == 0):
        image = tl.sum(gram * u[None, :], axis=1)
        length = tl.sqrt(tl.sum(image * image))
        share = tl.sum(u * image)
        moved = tl.where(length > 0, image / tl.where(length > 0, length, 1.0), u)
        change = tl.sum((moved - u) * (moved - u))
        u = moved
        converged = change <= tolerance * tolerance
        unsure = (share < DOMINANT) & (length > 0)
        done = (converged & (unsure == 0)).to(tl.int32)
        slow = (step >= PATIENCE) & (converged == 0)
        if (unsure | slow) & (squarings < MAX_SQUARINGS):
            gram = tl.dot(gram, gram, input_precision="ieee", out_dtype=tl.float64)
            gram = _unit_trace(gram, diagonal)
            squarings += 1
        step += 1
    tl.store(atoms + here, u.to(before.dtype), mask=known)


@triton.jit
def power_steps(  # type: ignore[no-untyped-def]
    grams, atoms_before, atoms, control, n_atoms, n_fixed, n_parts,
    STRIDE: tl.constexpr, PADDED: tl.constexpr, COUNT: tl.constexpr,
):  # fmt: skip
    """Copy an atom to ``atoms_before`` and take power steps u = max(Gu, 0) / ‖·‖, G the sum of its Gram matrices.

    The first ``n_fixed`` atoms stay.
    """
    k, problem = tl.program_id(0) + n_fixed, tl.program_id(1)
    if tl.load(control + problem * N_CONTROL + ACTIVE) == 0:
        return
    m = tl.arange(0, PADDED)
    known = m < STRIDE
    gram = _sum_grams(grams, k, problem, n_atoms, n_parts, m, STRIDE, PADDED)
    here = (problem * n_atoms + k) * STRIDE + m
    before = tl.load(atoms + here, mask=known, other=0.0)
    tl.store(atoms_before + here, before, mask=known)
    u = before.to(tl.float64)
    for _ in range(COUNT):
        u = direction(tl.maximum(tl.sum(gram * u[None, :], axis=1), 0.0), u)
    tl.store(atoms + here, u.to(before.dtype), mask=known)
