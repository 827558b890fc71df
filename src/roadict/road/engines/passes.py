"""One pass over a chunk of samples: the fused recurrence (docs/paper-to-code.md), compiled.

Per-atom arrays end with an axis over atoms, padded to whole bundles; padding has zero atoms and infinite
thresholds and so stays zero. A sample's K×M panel is read and written once; the Gram matrices of the next
rank-one step are summed from the panels while they are in cache.
"""

import numpy as np

from roadict.parallel import kernel
from roadict.road.engines.lanes import add_gram

BLOCK = 16
"""Samples whose panels are gathered before their products are added to the Gram matrices."""

# Sums over the samples of a chunk, by position in ``sums``.
OBJECTIVE, GAP, MOVED, SIZE, ERROR, MISFIT, DRIFT = range(7)
N_SUMS = 7


@kernel
def _shrinkage(norms, thresholds, codes, scale):  # type: ignore[no-untyped-def]
    """Turn squared norms of Â's columns into factors of group shrinkage, apply them to the codes, return Σ‖A‖."""
    total = 0.0
    for k in range(norms.shape[0]):
        norm = np.sqrt(norms[k])
        kept = max(norm - thresholds[k], norms.dtype.type(0))
        total += kept
        scale[k] = kept / norm if kept > 0 else norms.dtype.type(0)
        codes[k] *= scale[k]
    return total


@kernel
def _record(sums, objective, gaps, moved, size, error, misfit, drift):  # type: ignore[no-untyped-def]
    sums[OBJECTIVE] = objective
    sums[GAP] = gaps
    sums[MOVED] = moved
    sums[SIZE] = size
    sums[ERROR] = error
    sums[MISFIT] = misfit
    sums[DRIFT] = drift


@kernel
def _exact_sample(mixed, gap, shift, atoms, thresholds, codes, work, means, rebuilt):  # type: ignore[no-untyped-def]
    """A, B and Q of one sample: from D = (A + B - Q)/2 and Q to their successors, in place.

    ``means`` and ``rebuilt`` (n_features,) receive Σ_k (A+B)/2 and Σ_k u_k (u_k·A_k).
    Returns Σ‖A‖, Σ‖A-B‖²/2, Σ‖change of (A+B)/2‖² and Σ‖(A+B)/2‖².
    """
    n_features, n_atoms = mixed.shape
    norms, rank_one, scale = work[0], work[1], work[2]
    zero = mixed.dtype.type(0)
    half = mixed.dtype.type(0.5)
    for k in range(n_atoms):
        norms[k] = zero
        rank_one[k] = zero
        codes[k] = zero
    for m in range(n_features):
        f = shift[m]
        for k in range(n_atoms):
            b = mixed[m, k] + f
            a = b + gap[m, k]
            u = atoms[m, k]
            norms[k] += a * a
            rank_one[k] += u * b
            codes[k] += u * a
    objective = _shrinkage(norms, thresholds, codes, scale)
    size = zero
    for k in range(n_atoms):  # u has unit norm, so ‖A + B‖² = ‖A‖² + v² + 2v(u·A)
        size += norms[k] * scale[k] * scale[k] + rank_one[k] * (rank_one[k] + 2 * codes[k])
    gaps = moved = zero
    for m in range(n_features):
        f = shift[m]
        mean = code = zero
        for k in range(n_atoms):
            d, q, u = mixed[m, k], gap[m, k], atoms[m, k]
            a = (d + f + q) * scale[k]
            b = u * rank_one[k]
            new = half * (a + b)
            change = new - (d + half * q)
            q += b - a
            gap[m, k] = q
            mixed[m, k] = new - half * q
            mean += new
            code += u * codes[k]
            gaps += (b - a) * (b - a)
            moved += change * change
        means[m] = mean
        rebuilt[m] = code
    return objective, gaps / 2, moved, size / 4


@kernel
def exact_chunk(  # type: ignore[no-untyped-def]
    mixed, gap, level, shift, mean, misfit, data, observed, codes, atoms, thresholds, share, n_atoms, lanes, panel,
    gram, sums,
):  # fmt: skip
    """One iteration of every form with S1 = S2 = 0, for the samples of a chunk.

    ``level`` and ``shift`` are E and F, ``mean`` is Σ_k (A+B)/2, ``misfit`` is H = ΣC + Λ3 - Y, ``share`` the share
    t of it that S3 keeps (1 where ``observed``, which may be empty, is false). ``gram`` and ``sums`` receive the
    chunk's contributions.
    """
    n_samples, n_features = data.shape
    width = panel.shape[3]
    number = data.dtype.type
    work = np.empty((3, mixed.shape[2]), data.dtype)
    means, rebuilt = np.empty((2, n_features), data.dtype)
    masked = observed.size > 0
    objective = gaps = moved = size = error = norm = drift = 0.0
    for start in range(0, n_samples, BLOCK):
        count = min(BLOCK, n_samples - start)
        for slot in range(count):
            n = start + slot
            a, b, c, d = _exact_sample(mixed[n], gap[n], shift[n], atoms, thresholds, codes[n], work, means, rebuilt)
            objective += a
            gaps += b
            moved += c
            size += d
            for m in range(n_features):
                seen = not masked or observed[n, m]
                t = share if seen else number(1)
                y, h, e = data[n, m], misfit[n, m], level[n, m]
                new = (y + (2 * t - 1) * h - means[m] + n_atoms * e) / number(n_atoms + 2)
                rise, turn = np.float64(new - e), np.float64(new - e) - np.float64(shift[n, m] - e)
                level[n, m] = new
                shift[n, m] = new + (new - e)
                misfit[n, m] = means[m] + n_atoms * (new - e) + (1 - t) * h - y
                gaps += 2 * n_atoms * rise * rise
                moved += turn * (2 * np.float64(means[m] - mean[n, m]) + n_atoms * turn)
                size += rise * (2 * np.float64(means[m]) + n_atoms * rise)
                if seen:
                    error += np.float64(y - rebuilt[m]) ** 2
                    norm += np.float64(misfit[n, m]) ** 2
                    drift += (np.float64(misfit[n, m]) - np.float64(h)) ** 2
                mean[n, m] = means[m]
                f = shift[n, m]
                for bundle in range(panel.shape[0]):
                    for w in range(width):
                        panel[bundle, slot, m, w] = mixed[n, m, bundle * width + w] + f
        for bundle in range(panel.shape[0]):
            add_gram(panel[bundle], gram[bundle], count, lanes)
    _record(sums, objective, gaps, moved, size, error, norm, drift)


@kernel
def _inexact_blocks(c, w1, w2, u, scale, rank_one, coefficients):  # type: ignore[no-untyped-def]
    """A, B and P of one entry, where the next C is P plus a term that all atoms share."""
    a = (c + coefficients[0] * w1) * scale
    b = u * rank_one
    p = coefficients[2] * (a - coefficients[0] * w1) + coefficients[3] * (b - coefficients[1] * w2)
    return a, b, p


@kernel
def _inexact_sample(  # type: ignore[no-untyped-def]
    consensus, first, second, data, misfit, atoms, thresholds, codes, coefficients, work, sums
):
    """C, W1, W2 (n_features, atoms) and H (n_features,) of one sample to their successors, in place."""
    n_features, n_atoms = consensus.shape
    norms, rank_one, scale, alive = work[0], work[1], work[2], work[3]
    c1, c2, c3 = coefficients[0], coefficients[1], coefficients[4]
    keep1, keep2, keep3, common, total = (
        coefficients[5], coefficients[6], coefficients[7], coefficients[8], coefficients[9],
    )  # fmt: skip
    zero = consensus.dtype.type(0)
    for k in range(n_atoms):
        norms[k] = zero
        rank_one[k] = zero
        codes[k] = zero
    for m in range(n_features):
        for k in range(n_atoms):
            a = consensus[m, k] + c1 * first[m, k]
            u = atoms[m, k]
            norms[k] += a * a
            rank_one[k] += u * (consensus[m, k] + c2 * second[m, k])
            codes[k] += u * a
    sums[OBJECTIVE] += _shrinkage(norms, thresholds, codes, scale)
    for m in range(n_features):
        mean = code = zero
        for k in range(n_atoms):
            u = atoms[m, k]
            _, _, p = _inexact_blocks(
                consensus[m, k], first[m, k], second[m, k], u, scale[k], rank_one[k], coefficients
            )
            mean += p
            code += u * codes[k]
        h = misfit[m]
        e = common * (data[m] + c3 * h - mean)
        misfit[m] = mean + total * e - data[m] + keep3 * h
        sums[ERROR] += np.float64(data[m] - code) ** 2
        sums[MISFIT] += np.float64(misfit[m]) ** 2
        sums[DRIFT] += (np.float64(misfit[m]) - np.float64(h)) ** 2
        gaps = moved = size = zero
        for k in range(n_atoms):
            c, x1, x2 = consensus[m, k], first[m, k], second[m, k]
            a, b, p = _inexact_blocks(c, x1, x2, atoms[m, k], scale[k], rank_one[k], coefficients)
            new = p + e * alive[k]
            new1 = a - new + keep1 * x1
            new2 = b - new + keep2 * x2
            consensus[m, k] = new
            first[m, k] = new1
            second[m, k] = new2
            gaps += (keep1 * (new1 - x1)) ** 2 + (keep2 * (new2 - x2)) ** 2
            moved += (new - c) ** 2
            size += new * new
        sums[GAP] += gaps
        sums[MOVED] += moved
        sums[SIZE] += size


@kernel
def inexact_chunk(  # type: ignore[no-untyped-def]
    consensus, first, second, misfit, data, codes, atoms, thresholds, coefficients, lanes, panel, gram, sums
):
    """One iteration of the inexact form for the samples of a chunk.

    ``first``, ``second`` and -``misfit`` are W_i = residual_i + U_i, of which S_i is the share r_i.
    ``coefficients``: 2r1-1, 2r2-1, ρ1/(ρ1+ρ2), ρ2/(ρ1+ρ2), 2r3-1, 1-r1, 1-r2, 1-r3, ρ3/(ρ1+ρ2+Kρ3), K.
    """
    n_samples, n_features = data.shape
    width = panel.shape[3]
    work = np.empty((4, consensus.shape[2]), data.dtype)
    for k in range(consensus.shape[2]):
        work[3, k] = 1 if thresholds[k] < np.inf else 0
    for start in range(0, n_samples, BLOCK):
        count = min(BLOCK, n_samples - start)
        for slot in range(count):
            n = start + slot
            _inexact_sample(
                consensus[n], first[n], second[n], data[n], misfit[n], atoms, thresholds, codes[n], coefficients,
                work, sums,
            )  # fmt: skip
            for m in range(n_features):
                for bundle in range(panel.shape[0]):
                    for w in range(width):
                        k = bundle * width + w
                        panel[bundle, slot, m, w] = consensus[n, m, k] + coefficients[1] * second[n, m, k]
        for bundle in range(panel.shape[0]):
            add_gram(panel[bundle], gram[bundle], count, lanes)


@kernel
def sum_bundle(grams, bundle, total):  # type: ignore[no-untyped-def]
    """Sum the chunks' Gram matrices of one bundle, in the order of the chunks, and complete their upper halves."""
    n_chunks, size, width = grams.shape[0], grams.shape[2], grams.shape[4]
    for i in range(size):
        for j in range(i + 1):
            for w in range(width):
                value = 0.0
                for c in range(n_chunks):
                    value += grams[c, bundle, i, j, w]
                total[i, j, w] = value
                total[j, i, w] = value
