"""One pass over a chunk of samples: the fused recurrence (docs/paper-to-code.md), compiled.

Atoms are SIMD lanes: per-atom arrays have shape (..., bundles, features, width), where a *bundle* is one vector of
atoms. Norms, rank-one coefficients and Gram matrices of many atoms then need no horizontal sums. The last bundle is
padded with zero atoms and infinite thresholds, and stays zero. A sample's panel is read and written once; the Gram
matrices of the next rank-one step are summed from it while it is in cache.

A loop that the compiler vectorises either writes to arrays or sums numbers, never both: a loop that writes may run
scalar or vectorised depending on the alignment of the arrays, so that a sum would not be reproducible to the bit.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roadict.aligned import LINE_BYTES, aligned_zeros
from roadict.engines.columns import DRIFT, ERROR, GAP, MISFIT, MOVED, OBJECTIVE, SIZE
from roadict.engines.cpu.lanes import add_gram, mirror, n_tiles, padded
from roadict.engines.cpu.vectors import larger, load, splat, store, total, vector_kernel
from roadict.kernels import inlined

Array = NDArray[np.floating]

BLOCK = 16
"""Samples whose panels are collected before their products are added to the Gram matrices."""
NORM, RANK_ONE, SCALE, ALIVE = range(4)
"""Rows of scratch per atom: squared norms, rank-one coefficients, factors of shrinkage, whether an atom is none of the
padding."""
MEAN, RISE, TURN, SHARE, REBUILT, BEFORE = 0, 1, 2, 3, 4, 4 + BLOCK
"""Rows of scratch per feature: of one sample, then samples rebuilt and former misfits of a block."""


class Scratch(NamedTuple):
    """Arrays of one pass; kernels that allocate none, and take no slices, compile in a fraction of the time."""

    work: Array
    lanes: Array
    rows: Array


def scratch(atoms: Array) -> tuple[Array, Scratch]:
    """Allocate for atoms of shape (n_bundles, n_features, width), with a panel for B̂ of a block of samples.

    Padded features of the panel are zero, and so are rows of lanes before and after every sample.
    """
    n_bundles, n_features, width = atoms.shape
    return aligned_zeros((n_bundles, BLOCK, padded(n_features), width), atoms.dtype), Scratch(
        aligned_zeros((4, n_bundles * width), atoms.dtype),
        aligned_zeros((2 * n_features + BLOCK, width), atoms.dtype),
        np.empty((BEFORE + BLOCK, n_features), atoms.dtype),
    )


@inlined
def _shrinkage(work, thresholds, root, codes, n):
    """Turn squared norms of Â's columns into factors of group shrinkage, apply them to the codes, return √w Σ‖A‖.

    ``root`` is √w, the factor of the thresholds of sample ``n``.
    """
    zero = work.dtype.type(0)
    for k in range(codes.shape[1]):
        norm = np.sqrt(work[NORM, k])
        kept = max(norm - root * thresholds[k], zero)
        work[SCALE, k] = kept / norm if kept > 0 else zero
        codes[n, k] *= work[SCALE, k]
    objective = zero
    for k in range(codes.shape[1]):
        objective += work[SCALE, k] * np.sqrt(work[NORM, k])
    return root * objective


@inlined
def _sum_lanes(lanes, rows, mean, rebuilt):
    """Sum the lanes of means and rebuilt into two rows, and reset them to zero for the next sample."""
    n_features, width = rows.shape[1], lanes.shape[1]
    zero = splat(lanes.dtype.type(0))
    for m in range(n_features):
        rows[mean, m] = total(load(lanes, m * width))
        rows[rebuilt, m] = total(load(lanes, (n_features + m) * width))
        store(lanes, m * width, zero)
        store(lanes, (n_features + m) * width, zero)


@inlined
def _add_grams(panel, gram, count, state, following):
    """Add a block's Gram matrices while prefetching the panels of the next block, from sample ``following`` on."""
    n_bundles, size = len(panel), gram.shape[1]
    per_sample = state.size // len(state)
    lines = BLOCK * per_sample * state.itemsize // LINE_BYTES // (n_bundles * n_tiles(size)) + 1
    step = lines * n_tiles(size) * LINE_BYTES // state.itemsize
    for bundle in range(n_bundles):
        add_gram(panel[bundle], gram[bundle], count, state, following * per_sample + bundle * step, lines)


@inlined
def _add_images(panel, atoms, images, count, lanes):
    """Add a block's images ``Σ_n b̂_n max(u·b̂_n, 0)``, from which a power step takes the atoms of nonnegative codes.

    The codes of the block are in the rows of ``lanes`` after the first 2 n_features.
    """
    n_bundles, _, size, width = panel.shape
    n_features = atoms.shape[1]
    zero = splat(panel.dtype.type(0))
    for bundle in range(n_bundles):
        for n in range(count):
            inner = zero
            at = (bundle * BLOCK + n) * size
            for m in range(n_features):
                inner = inner + load(atoms, (bundle * n_features + m) * width) * load(panel, (at + m) * width)
            store(lanes, (2 * n_features + n) * width, larger(inner, zero))
        for m in range(n_features):
            image = zero
            for n in range(count):
                code, at = load(lanes, (2 * n_features + n) * width), (bundle * BLOCK + n) * size + m
                image = image + code * load(panel, at * width)
            at = (bundle * size + m) * width
            store(images, at, load(images, at) + image)


@inlined
def _exact_sample(state, n, shift, atoms, thresholds, root, codes, factor, least, work, lanes, sums):
    """Update D = (A + B - Q)/2 and Q of sample ``n`` in place, and add its part of four sums.

    Q, a scaled multiplier, is multiplied by ``factor``: the ρ of this iteration over that of the next. ``least`` is the
    least value of a code, 0 or -inf. Adds Σ_k (A+B)/2 and Σ_k u_k (u_k·A_k) to the rows of ``lanes``.
    The sums: √w Σ‖A‖, Σ‖A-B‖²/2, Σ‖change of (A+B)/2‖² and Σ‖(A+B)/2‖².
    """
    _, _, n_bundles, n_features, width = state.shape
    n_lanes = n_bundles * width
    mixed = 2 * n * n_features * n_lanes
    gap = mixed + n_features * n_lanes
    zero = splat(state.dtype.type(0))
    half = splat(state.dtype.type(0.5))
    rescale, floor = splat(factor), splat(least)
    for bundle in range(n_bundles):
        norm, inner, code = zero, zero, zero
        for m in range(n_features):
            at = (bundle * n_features + m) * width
            b = load(state, mixed + at) + splat(shift[n, m])
            a = b + load(state, gap + at)
            u = load(atoms, at)
            norm = norm + a * a
            inner = inner + u * b
            code = code + u * a
        store(work, NORM * n_lanes + bundle * width, norm)
        store(work, RANK_ONE * n_lanes + bundle * width, larger(inner, floor))
        store(codes, n * n_lanes + bundle * width, code)
    sums[OBJECTIVE] += _shrinkage(work, thresholds, root, codes, n)
    gaps, moved, size = zero, zero, zero
    for bundle in range(n_bundles):
        s, v = load(work, SCALE * n_lanes + bundle * width), load(work, RANK_ONE * n_lanes + bundle * width)
        c = load(codes, n * n_lanes + bundle * width)
        # u has unit norm, so ‖A + B‖² = ‖A‖² + v² + 2v(u·A)
        size = size + (load(work, NORM * n_lanes + bundle * width) * s * s + v * (v + c + c))
        c = larger(c, floor)
        store(codes, n * n_lanes + bundle * width, c)
        for m in range(n_features):
            at = (bundle * n_features + m) * width
            d, q, u = load(state, mixed + at), load(state, gap + at), load(atoms, at)
            a = (d + splat(shift[n, m]) + q) * s
            b = u * v
            new = half * (a + b)
            change = new - (d + half * q)
            q = (q + (b - a)) * rescale
            store(state, gap + at, q)
            store(state, mixed + at, new - half * q)
            store(lanes, m * width, load(lanes, m * width) + new)
            store(lanes, (n_features + m) * width, load(lanes, (n_features + m) * width) + u * c)
            gaps = gaps + (b - a) * (b - a)
            moved = moved + change * change
    sums[GAP] += total(gaps) / 2
    sums[MOVED] += total(moved)
    sums[SIZE] += total(size) / 4


@inlined
def _update_level(level, shift, mean, misfit, data, n, n_atoms, factor, rows, sums):
    """Update E, F and H of sample ``n`` in place, and add their contributions to the sums."""
    number = data.dtype.type
    inverse, many = number(1 / (n_atoms + 2)), number(n_atoms)
    for m in range(data.shape[1]):
        t, h, e = rows[SHARE, m], misfit[n, m], level[n, m]
        new = (data[n, m] + (2 * t - 1) * h - rows[MEAN, m] + many * e) * inverse
        rise = new - e
        rows[RISE, m] = rise
        rows[TURN, m] = rise - (shift[n, m] - e)
        level[n, m] = new * factor
        shift[n, m] = new * factor + rise
        misfit[n, m] = rows[MEAN, m] + many * rise + (1 - t) * h - data[n, m]
    gaps = moved = size = number(0)
    for m in range(data.shape[1]):
        rise, turn = rows[RISE, m], rows[TURN, m]
        gaps += 2 * many * rise * rise
        moved += turn * (2 * (rows[MEAN, m] - mean[n, m]) + many * turn)
        size += rise * (2 * rows[MEAN, m] + many * rise)
    for m in range(data.shape[1]):
        mean[n, m] = rows[MEAN, m]
    sums[GAP] += gaps
    sums[MOVED] += moved
    sums[SIZE] += size


@inlined
def _add_squares(data, misfit, observed, rows, start, count, sums):
    """Add the squared error, misfit and change of the misfit, over the observed entries of a block."""
    error = norm = drift = 0.0
    for slot in range(count):
        n = start + slot
        for m in range(data.shape[1]):
            if observed.size == 0 or observed[n, m]:
                error += np.float64(data[n, m] - rows[REBUILT + slot, m]) ** 2
                norm += np.float64(misfit[n, m]) ** 2
                drift += np.float64(misfit[n, m] - rows[BEFORE + slot, m]) ** 2
    sums[ERROR] += error
    sums[MISFIT] += norm
    sums[DRIFT] += drift


@vector_kernel
def exact_chunk(
    state,
    level,
    shift,
    mean,
    misfit,
    data,
    observed,
    codes,
    atoms,
    thresholds,
    roots,
    share,
    factor,
    least,
    n_atoms,
    panel,
    gram,
    sums,
    scratch,
):
    """One iteration of every form with S1 = S2 = 0, for the samples of a chunk.

    ``state`` holds D and Q, ``level`` and ``shift`` are E and F, ``mean`` is Σ_k (A+B)/2, ``misfit`` is
    H = ΣC + Λ3 - Y, ``share`` the share t of it that S3 absorbs (1 where ``observed``, which may be empty, is false).
    ``roots`` are factors of the samples' thresholds, ``least`` is the least value of a code, 0 or -inf. ``gram`` and
    ``sums`` are the chunk's contributions; with nonnegative codes ``gram`` has one row per atom, its image.
    """
    n_samples, n_features = data.shape
    n_bundles, _, padded, width = panel.shape
    work, lanes, rows = scratch
    per_sample = 2 * n_bundles * n_features * width
    for m in range(n_features):
        rows[SHARE, m] = share
    for i in range(len(sums)):
        sums[i] = 0
    for start in range(0, n_samples, BLOCK):
        count = min(BLOCK, n_samples - start)
        for slot in range(count):
            n = start + slot
            for m in range(n_features):
                rows[BEFORE + slot, m] = misfit[n, m]
            _exact_sample(state, n, shift, atoms, thresholds, roots[n, 0], codes, factor, least, work, lanes, sums)
            _sum_lanes(lanes, rows, MEAN, REBUILT + slot)
            if observed.size > 0:
                for m in range(n_features):
                    rows[SHARE, m] = share if observed[n, m] else 1
            _update_level(level, shift, mean, misfit, data, n, n_atoms, factor, rows, sums)
            for bundle in range(n_bundles):
                for m in range(n_features):
                    mixed = load(state, n * per_sample + (bundle * n_features + m) * width)
                    store(panel, ((bundle * BLOCK + slot) * padded + m) * width, mixed + splat(shift[n, m]))
        _add_squares(data, misfit, observed, rows, start, count, sums)
        if least == 0:
            _add_images(panel, atoms, gram, count, lanes)
        else:
            _add_grams(panel, gram, count, state, start + BLOCK)


@inlined
def _inexact_sample(state, n, data, misfit, atoms, thresholds, root, codes, coefficients, least, scratch, slot, sums):
    """Update C, W1, W2 (bundles, n_features, width) and H (n_features,) of sample ``n`` in place."""
    work, lanes, rows = scratch
    _, _, n_bundles, n_features, width = state.shape
    n_lanes = n_bundles * width
    consensus = 3 * n * n_features * n_lanes
    first, second = consensus + n_features * n_lanes, consensus + 2 * n_features * n_lanes
    c1, c2, w1, w2, c3 = coefficients[0], coefficients[1], coefficients[2], coefficients[3], coefficients[4]
    keep1, keep2, keep3 = splat(coefficients[5]), splat(coefficients[6]), coefficients[7]
    slack1, slack2 = splat(coefficients[10]), splat(coefficients[11])
    weight, n_atoms = coefficients[8], coefficients[9]
    lean1, lean2, weight1, weight2 = splat(c1), splat(c2), splat(w1), splat(w2)
    zero, floor = splat(data.dtype.type(0)), splat(least)
    for bundle in range(n_bundles):
        norm, inner, code = zero, zero, zero
        for m in range(n_features):
            at = (bundle * n_features + m) * width
            c, u = load(state, consensus + at), load(atoms, at)
            a = c + lean1 * load(state, first + at)
            norm = norm + a * a
            inner = inner + u * (c + lean2 * load(state, second + at))
            code = code + u * a
        store(work, NORM * n_lanes + bundle * width, norm)
        store(work, RANK_ONE * n_lanes + bundle * width, larger(inner, floor))
        store(codes, n * n_lanes + bundle * width, larger(code, floor))
    sums[OBJECTIVE] += _shrinkage(work, thresholds, root, codes, n)
    for bundle in range(n_bundles):
        s, v = load(work, SCALE * n_lanes + bundle * width), load(work, RANK_ONE * n_lanes + bundle * width)
        k = load(codes, n * n_lanes + bundle * width)
        for m in range(n_features):
            at = (bundle * n_features + m) * width
            u, lag1, lag2 = load(atoms, at), lean1 * load(state, first + at), lean2 * load(state, second + at)
            p = weight1 * ((load(state, consensus + at) + lag1) * s - lag1) + weight2 * (u * v - lag2)
            store(lanes, m * width, load(lanes, m * width) + p)
            store(lanes, (n_features + m) * width, load(lanes, (n_features + m) * width) + u * k)
    _sum_lanes(lanes, rows, MEAN, REBUILT + slot)
    for m in range(n_features):
        mean, h = rows[MEAN, m], misfit[n, m]
        common = weight * (data[n, m] + c3 * h - mean)
        rows[MEAN, m] = common
        misfit[n, m] = mean + n_atoms * common - data[n, m] + keep3 * h
    gaps, moved, size = zero, zero, zero
    for bundle in range(n_bundles):
        s, v = load(work, SCALE * n_lanes + bundle * width), load(work, RANK_ONE * n_lanes + bundle * width)
        real = load(work, ALIVE * n_lanes + bundle * width)
        for m in range(n_features):
            at = (bundle * n_features + m) * width
            c, x1, x2 = load(state, consensus + at), load(state, first + at), load(state, second + at)
            a = (c + lean1 * x1) * s
            b = load(atoms, at) * v
            new = weight1 * (a - lean1 * x1) + weight2 * (b - lean2 * x2) + real * splat(rows[MEAN, m])
            new1 = a - new + keep1 * x1
            new2 = b - new + keep2 * x2
            store(state, consensus + at, new)
            store(state, first + at, new1)
            store(state, second + at, new2)
            change1, change2 = new1 - x1, new2 - x2
            gap1, gap2, slide1, slide2 = keep1 * change1, keep2 * change2, slack1 * change1, slack2 * change2
            gaps = gaps + (gap1 * gap1 + gap2 * gap2)
            moved = moved + (slide1 * slide1 + slide2 * slide2)
            size = size + new * new
    sums[GAP] += total(gaps)
    sums[MOVED] += total(moved)
    sums[SIZE] += total(size)


@vector_kernel
def inexact_chunk(
    state, misfit, data, observed, codes, atoms, thresholds, roots, coefficients, least, panel, gram, sums, scratch
):
    """One iteration of the inexact form for the samples of a chunk.

    ``state`` holds C, W1 and W2. W1, W2 and -``misfit`` are W_i = residual_i + U_i, of which S_i is the share r_i.
    The next C_k is P_k plus a term that all atoms share. ``coefficients``: 2r1-1, 2r2-1, ρ1/(ρ1+ρ2), ρ2/(ρ1+ρ2),
    2r3-1, 1-r1, 1-r2, 1-r3, ρ3/(ρ1+ρ2+Kρ3), K, r1, r2. ``observed`` is empty. The rest as for ``exact_chunk``.
    """
    n_samples, n_features = data.shape
    n_bundles, _, padded, width = panel.shape
    work, lanes, rows = scratch
    per_sample, second = 3 * n_bundles * n_features * width, 2 * n_bundles * n_features * width
    for k in range(codes.shape[1]):
        work[ALIVE, k] = 1 if thresholds[k] < np.inf else 0
    for i in range(len(sums)):
        sums[i] = 0
    for start in range(0, n_samples, BLOCK):
        count = min(BLOCK, n_samples - start)
        for slot in range(count):
            n = start + slot
            for m in range(n_features):
                rows[BEFORE + slot, m] = misfit[n, m]
            _inexact_sample(
                state, n, data, misfit, atoms, thresholds, roots[n, 0], codes, coefficients, least, scratch, slot, sums
            )
            for bundle in range(n_bundles):
                for m in range(n_features):
                    at = n * per_sample + (bundle * n_features + m) * width
                    leaning = load(state, at) + splat(coefficients[1]) * load(state, at + second)
                    store(panel, ((bundle * BLOCK + slot) * padded + m) * width, leaning)
        _add_squares(data, misfit, observed, rows, start, count, sums)
        if least == 0:
            _add_images(panel, atoms, gram, count, lanes)
        else:
            _add_grams(panel, gram, count, state, start + BLOCK)


@vector_kernel
def sum_grams(grams, bundle, packed):
    """Sum one bundle's Gram matrices over the chunks, in order: the lower triangles, row by row."""
    n_chunks, size, width = grams.shape[0], grams.shape[2], grams.shape[4]
    for at in range(len(packed)):
        for w in range(width):
            packed[at, w] = 0
    for c in range(n_chunks):
        at = 0
        for i in range(size):
            for j in range(i + 1):
                for w in range(width):
                    packed[at, w] += grams[c, bundle, i, j, w]
                at += 1


@vector_kernel
def unpack_gram(packed, gram):
    """Unpack the lower triangles of one bundle's Gram matrices to full matrices."""
    size, _, width = gram.shape
    at = 0
    for i in range(size):
        for j in range(i + 1):
            for w in range(width):
                gram[i, j, w] = packed[at, w]
            at += 1
    mirror(gram)
