"""One pass over a chunk of samples: the fused recurrence (docs/paper-to-code.md), compiled.

Atoms are SIMD lanes: per-atom arrays have shape (..., bundles, features, width), where a *bundle* is one vector of
atoms. Norms, rank-one coefficients and Gram matrices of many atoms then need no horizontal sums. The last bundle is
padded with zero atoms and infinite thresholds, and stays zero. A sample's panel is read and written once; the Gram
matrices of the next rank-one step are summed from it while it is in cache.

A loop that the compiler vectorises either writes to arrays or sums numbers, never both: a loop that writes may run
scalar or vectorised depending on the alignment of the arrays, so that a sum would not be reproducible to the bit.
"""

import numpy as np

from roadict.engines.columns import DRIFT, ERROR, GAP, MISFIT, MOVED, OBJECTIVE, SIZE
from roadict.engines.cpu.lanes import LINE_BYTES, add_gram, mirror, n_tiles
from roadict.engines.cpu.vectors import larger, load, splat, store, total, vector_kernel

BLOCK = 16
"""Samples whose panels are collected before their products are added to the Gram matrices."""


@vector_kernel
def _shrinkage(norms, thresholds, root, codes, scale):
    """Turn squared norms of Â's columns into factors of group shrinkage, apply them to the codes, return √w Σ‖A‖.

    ``root`` is √w, the factor of the sample's thresholds.
    """
    zero = norms.dtype.type(0)
    for k in range(len(norms)):
        norm = np.sqrt(norms[k])
        kept = max(norm - root * thresholds[k], zero)
        scale[k] = kept / norm if kept > 0 else zero
        codes[k] *= scale[k]
    objective = zero
    for k in range(len(norms)):
        objective += scale[k] * np.sqrt(norms[k])
    return root * objective


@vector_kernel
def _sum_lanes(lanes, sums):
    """Sum each row of lanes, and reset it to zero for the next sample."""
    n_rows, width = lanes.shape
    for m in range(n_rows):
        sums[m] = total(load(lanes, m * width))
        store(lanes, m * width, splat(lanes.dtype.type(0)))


@vector_kernel
def _add_grams(panel, gram, count, state, following):
    """Add a block's Gram matrices while prefetching the panels of the next block, from sample ``following`` on."""
    size = gram.shape[1]
    lines = BLOCK * state[0].nbytes // LINE_BYTES // (len(panel) * n_tiles(size)) + 1
    step = lines * n_tiles(size) * LINE_BYTES // state.itemsize
    for bundle in range(len(panel)):
        add_gram(panel[bundle], gram[bundle], count, state, following * state[0].size + bundle * step, lines)


@vector_kernel
def _add_images(panel, atoms, images, count, codes):
    """Add a block's images ``Σ_n b̂_n max(u·b̂_n, 0)``, from which a power step takes the atoms of nonnegative codes."""
    n_bundles, _, size, width = panel.shape
    n_features = atoms.shape[1]
    zero = splat(panel.dtype.type(0))
    for bundle in range(n_bundles):
        for n in range(count):
            inner = zero
            for m in range(n_features):
                inner = inner + load(atoms[bundle], m * width) * load(panel[bundle, n], m * width)
            store(codes, n * width, larger(inner, zero))
        for m in range(n_features):
            image = zero
            for n in range(count):
                image = image + load(codes, n * width) * load(panel[bundle], (n * size + m) * width)
            store(images[bundle], m * width, load(images[bundle], m * width) + image)


@vector_kernel
def _exact_sample(mixed, gap, shift, atoms, thresholds, root, codes, factor, least, work, means, rebuilt):
    """Update D = (A + B - Q)/2 and Q of one sample in place.

    Q, a scaled multiplier, is multiplied by ``factor``: the ρ of this iteration over that of the next. ``least`` is the
    least value of a code, 0 or -inf. Adds
    Σ_k (A+B)/2 and Σ_k u_k (u_k·A_k) to ``means`` and ``rebuilt`` (n_features, width), by lane.
    Returns √w Σ‖A‖, Σ‖A-B‖²/2, Σ‖change of (A+B)/2‖² and Σ‖(A+B)/2‖².
    """
    n_bundles, n_features, width = mixed.shape
    norms, rank_one, scale = work[0], work[1], work[2]
    zero = splat(mixed.dtype.type(0))
    half = splat(mixed.dtype.type(0.5))
    rescale, floor = splat(factor), splat(least)
    for bundle in range(n_bundles):
        norm, inner, code = zero, zero, zero
        for m in range(n_features):
            at = (bundle * n_features + m) * width
            b = load(mixed, at) + splat(shift[m])
            a = b + load(gap, at)
            u = load(atoms, at)
            norm = norm + a * a
            inner = inner + u * b
            code = code + u * a
        store(norms, bundle * width, norm)
        store(rank_one, bundle * width, larger(inner, floor))
        store(codes, bundle * width, code)
    objective = _shrinkage(norms, thresholds, root, codes, scale)
    gaps, moved, size = zero, zero, zero
    for bundle in range(n_bundles):
        s, v, c = load(scale, bundle * width), load(rank_one, bundle * width), load(codes, bundle * width)
        # u has unit norm, so ‖A + B‖² = ‖A‖² + v² + 2v(u·A)
        size = size + (load(norms, bundle * width) * s * s + v * (v + c + c))
        c = larger(c, floor)
        store(codes, bundle * width, c)
        for m in range(n_features):
            at = (bundle * n_features + m) * width
            d, q, u = load(mixed, at), load(gap, at), load(atoms, at)
            a = (d + splat(shift[m]) + q) * s
            b = u * v
            new = half * (a + b)
            change = new - (d + half * q)
            q = (q + (b - a)) * rescale
            store(gap, at, q)
            store(mixed, at, new - half * q)
            store(means, m * width, load(means, m * width) + new)
            store(rebuilt, m * width, load(rebuilt, m * width) + u * c)
            gaps = gaps + (b - a) * (b - a)
            moved = moved + change * change
    return objective, total(gaps) / 2, total(moved), total(size) / 4


@vector_kernel
def _update_level(level, shift, mean, means, misfit, data, shares, n_atoms, factor, rises, turns, sums):
    """Update E, F and H of one sample in place, and add their contributions to the sums."""
    number = data.dtype.type
    inverse, many = number(1 / (n_atoms + 2)), number(n_atoms)
    for m in range(len(data)):
        t, y, h, e = shares[m], data[m], misfit[m], level[m]
        new = (y + (2 * t - 1) * h - means[m] + many * e) * inverse
        rises[m] = new - e
        turns[m] = rises[m] - (shift[m] - e)
        level[m] = new * factor
        shift[m] = new * factor + rises[m]
        misfit[m] = means[m] + many * rises[m] + (1 - t) * h - y
    gaps = moved = size = number(0)
    for m in range(len(data)):
        gaps += 2 * many * rises[m] * rises[m]
        moved += turns[m] * (2 * (means[m] - mean[m]) + many * turns[m])
        size += rises[m] * (2 * means[m] + many * rises[m])
    mean[:] = means
    sums[GAP] += gaps
    sums[MOVED] += moved
    sums[SIZE] += size


@vector_kernel
def _add_squares(data, rebuilt, misfit, before, observed, sums):
    """Add the squared error, misfit and change of the misfit, over the observed entries of a block."""
    error = norm = drift = 0.0
    for n in range(len(misfit)):
        for m in range(misfit.shape[1]):
            if observed.size == 0 or observed[n, m]:
                error += np.float64(data[n, m] - rebuilt[n, m]) ** 2
                norm += np.float64(misfit[n, m]) ** 2
                drift += np.float64(misfit[n, m] - before[n, m]) ** 2
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
):
    """One iteration of every form with S1 = S2 = 0, for the samples of a chunk.

    ``state`` holds D and Q, ``level`` and ``shift`` are E and F, ``mean`` is Σ_k (A+B)/2, ``misfit`` is
    H = ΣC + Λ3 - Y, ``share`` the share t of it that S3 absorbs (1 where ``observed``, which may be empty, is false).
    ``roots`` are factors of the samples' thresholds, ``least`` is the least value of a code, 0 or -inf. ``gram`` and
    ``sums`` are the chunk's contributions; with nonnegative codes ``gram`` has one row per atom, its image.
    """
    n_samples, n_features = data.shape
    n_bundles, _, _, width = panel.shape
    work = np.empty((3, codes.shape[1]), data.dtype)
    lanes = np.zeros((2, n_features, width), data.dtype)
    means, rises, turns = np.empty((3, n_features), data.dtype)
    shares = np.full(n_features, share, data.dtype)
    rebuilt, before = np.empty((2, BLOCK, n_features), data.dtype)
    next_codes = np.empty((BLOCK, width), data.dtype)
    sums[:] = 0
    for start in range(0, n_samples, BLOCK):
        block = slice(start, min(start + BLOCK, n_samples))
        count = block.stop - start
        before[:count] = misfit[block]
        for slot in range(count):
            n = start + slot
            objective, gaps, moved, size = _exact_sample(
                state[n, 0], state[n, 1], shift[n], atoms, thresholds, roots[n, 0], codes[n], factor, least, work,
                lanes[0], lanes[1],
            )  # fmt: skip
            sums[OBJECTIVE] += objective
            sums[GAP] += gaps
            sums[MOVED] += moved
            sums[SIZE] += size
            _sum_lanes(lanes[0], means)
            _sum_lanes(lanes[1], rebuilt[slot])
            if observed.size > 0:
                shares[:] = np.where(observed[n], share, data.dtype.type(1))
            _update_level(
                level[n], shift[n], mean[n], means, misfit[n], data[n], shares, n_atoms, factor, rises, turns, sums
            )
            for bundle in range(n_bundles):
                for m in range(n_features):
                    mixed = load(state[n, 0, bundle], m * width)
                    store(panel[bundle, slot], m * width, mixed + splat(shift[n, m]))
        _add_squares(data[block], rebuilt, misfit[block], before, observed[block], sums)
        if least == 0:
            _add_images(panel, atoms, gram, count, next_codes)
        else:
            _add_grams(panel, gram, count, state, start + BLOCK)


@vector_kernel
def _inexact_sample(
    consensus, first, second, data, misfit, atoms, thresholds, root, codes, coefficients, least, work, lanes, common,
    rebuilt, sums,
):  # fmt: skip
    """Update C, W1, W2 (bundles, n_features, width) and H (n_features,) of one sample in place."""
    n_bundles, n_features, width = consensus.shape
    norms, rank_one, scale, alive = work[0], work[1], work[2], work[3]
    c1, c2, w1, w2, c3, keep1, keep2, keep3, weight, n_atoms = coefficients
    lean1, lean2, weight1, weight2 = splat(c1), splat(c2), splat(w1), splat(w2)
    zero, floor = splat(consensus.dtype.type(0)), splat(least)
    for bundle in range(n_bundles):
        norm, inner, code = zero, zero, zero
        for m in range(n_features):
            at = (bundle * n_features + m) * width
            c, u = load(consensus, at), load(atoms, at)
            a = c + lean1 * load(first, at)
            norm = norm + a * a
            inner = inner + u * (c + lean2 * load(second, at))
            code = code + u * a
        store(norms, bundle * width, norm)
        store(rank_one, bundle * width, larger(inner, floor))
        store(codes, bundle * width, larger(code, floor))
    sums[OBJECTIVE] += _shrinkage(norms, thresholds, root, codes, scale)
    for bundle in range(n_bundles):
        s, v, k = load(scale, bundle * width), load(rank_one, bundle * width), load(codes, bundle * width)
        for m in range(n_features):
            at = (bundle * n_features + m) * width
            u, lag1, lag2 = load(atoms, at), lean1 * load(first, at), lean2 * load(second, at)
            p = weight1 * ((load(consensus, at) + lag1) * s - lag1) + weight2 * (u * v - lag2)
            store(lanes[0], m * width, load(lanes[0], m * width) + p)
            store(lanes[1], m * width, load(lanes[1], m * width) + u * k)
    _sum_lanes(lanes[0], common)
    _sum_lanes(lanes[1], rebuilt)
    for m in range(n_features):
        mean = common[m]
        common[m] = weight * (data[m] + c3 * misfit[m] - mean)
        misfit[m] = mean + n_atoms * common[m] - data[m] + keep3 * misfit[m]
    gaps, moved, size = zero, zero, zero
    for bundle in range(n_bundles):
        s, v, real = load(scale, bundle * width), load(rank_one, bundle * width), load(alive, bundle * width)
        for m in range(n_features):
            at = (bundle * n_features + m) * width
            c, x1, x2 = load(consensus, at), load(first, at), load(second, at)
            a = (c + lean1 * x1) * s
            b = load(atoms, at) * v
            new = weight1 * (a - lean1 * x1) + weight2 * (b - lean2 * x2) + real * splat(common[m])
            new1 = a - new + splat(keep1) * x1
            new2 = b - new + splat(keep2) * x2
            store(consensus, at, new)
            store(first, at, new1)
            store(second, at, new2)
            change1, change2 = splat(keep1) * (new1 - x1), splat(keep2) * (new2 - x2)
            gaps = gaps + (change1 * change1 + change2 * change2)
            moved = moved + (new - c) * (new - c)
            size = size + new * new
    sums[GAP] += total(gaps)
    sums[MOVED] += total(moved)
    sums[SIZE] += total(size)


@vector_kernel
def inexact_chunk(state, misfit, data, codes, atoms, thresholds, roots, coefficients, least, panel, gram, sums):
    """One iteration of the inexact form for the samples of a chunk.

    ``state`` holds C, W1 and W2. W1, W2 and -``misfit`` are W_i = residual_i + U_i, of which S_i is the share r_i.
    The next C_k is P_k plus a term that all atoms share. ``coefficients``: 2r1-1, 2r2-1, ρ1/(ρ1+ρ2), ρ2/(ρ1+ρ2),
    2r3-1, 1-r1, 1-r2, 1-r3, ρ3/(ρ1+ρ2+Kρ3), K. The rest as for ``exact_chunk``.
    """
    n_samples, n_features = data.shape
    n_bundles, _, _, width = panel.shape
    work = np.empty((4, codes.shape[1]), data.dtype)
    for k in range(codes.shape[1]):
        work[3, k] = 1 if thresholds[k] < np.inf else 0
    lanes = np.zeros((2, n_features, width), data.dtype)
    rebuilt, before = np.empty((2, BLOCK, n_features), data.dtype)
    common, next_codes = np.empty(n_features, data.dtype), np.empty((BLOCK, width), data.dtype)
    sums[:] = 0
    for start in range(0, n_samples, BLOCK):
        block = slice(start, min(start + BLOCK, n_samples))
        count = block.stop - start
        before[:count] = misfit[block]
        for slot in range(count):
            n = start + slot
            _inexact_sample(
                state[n, 0], state[n, 1], state[n, 2], data[n], misfit[n], atoms, thresholds, roots[n, 0], codes[n],
                coefficients, least, work, lanes, common, rebuilt[slot], sums,
            )  # fmt: skip
            for bundle in range(n_bundles):
                for m in range(n_features):
                    consensus, second = load(state[n, 0, bundle], m * width), load(state[n, 2, bundle], m * width)
                    store(panel[bundle, slot], m * width, consensus + splat(coefficients[1]) * second)
        _add_squares(data[block], rebuilt, misfit[block], before, np.empty((0, 0), np.bool_), sums)
        if least == 0:
            _add_images(panel, atoms, gram, count, next_codes)
        else:
            _add_grams(panel, gram, count, state, start + BLOCK)


@vector_kernel
def sum_grams(grams, bundle, packed):
    """Sum one bundle's Gram matrices over the chunks, in order: the lower triangles, row by row."""
    n_chunks, size, width = grams.shape[0], grams.shape[2], grams.shape[4]
    packed[:] = 0
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
