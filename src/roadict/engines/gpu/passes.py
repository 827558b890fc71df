"""The fused recurrence on a GPU: Triton kernels for one iteration of every form with S1 = S2 = 0.

Blocks are stored as (problem, atom, sample, feature), so a tile of samples of one atom is contiguous. The state is A,
D = (A + B - Q)/2, and the factors of B = u vᵀ. Gram matrices need only D of a block, and Q follows from it. A column of
A that the shrinkage has zeroed is neither written nor read: its factor in ``scales`` is 0. An iteration is::

    top_eigenvectors   u of every atom, from the Gram matrices of B̂ = D + F (with signs: other steps of ``blocks``)
    update_blocks      A, v, D and the codes of a tile of samples, atom by atom; Σ_k (A + B)/2 per group of atoms
    update_samples     E, F and the misfit H of a tile of samples
    add_grams          the Gram matrices of the next B̂
    close_iteration    the sums of the iteration, and the control numbers of the next one

Samples are padded to whole tiles and features to whole vectors, by zeros that stay zero. Triton's tiles have powers of
two as sides, so features are cut into one to three parts of equal width: 34 of them into 3 × 16 and not 64. Parts of
equal width share a layout, so nothing passes through shared memory.

No two programs add to the same memory, so results are reproducible to the bit. ``control`` holds the scalars of each
problem in float64: an iteration needs nothing from the host.
"""

import triton
import triton.language as tl

from roadict.engines import columns

# Kernels can read globals only as constants.
RHO = tl.constexpr(columns.RHO)
NEXT_RHO = tl.constexpr(columns.NEXT_RHO)
LIMIT = tl.constexpr(columns.LIMIT)
SHARE = tl.constexpr(columns.SHARE)
STRETCH = tl.constexpr(columns.STRETCH)
NORM = tl.constexpr(columns.NORM)
COUNT = tl.constexpr(columns.COUNT)
ACTIVE = tl.constexpr(columns.ACTIVE)
N_CONTROL = tl.constexpr(columns.N_CONTROL)
OBJECTIVE = tl.constexpr(columns.OBJECTIVE)
GAP = tl.constexpr(columns.GAP)
MOVED = tl.constexpr(columns.MOVED)
SIZE = tl.constexpr(columns.SIZE)
ERROR = tl.constexpr(columns.ERROR)
MISFIT = tl.constexpr(columns.MISFIT)
DRIFT = tl.constexpr(columns.DRIFT)
N_SUMS = tl.constexpr(columns.SUMS_WIDTH)
OLD_SHARE = tl.constexpr(columns.OLD_SHARE)
OLD_NORM = tl.constexpr(columns.OLD_NORM)
NEW_SHARE = tl.constexpr(columns.NEW_SHARE)
N_REPORT = tl.constexpr(columns.N_REPORT)


@triton.jit
def real_features(m, END: tl.constexpr, STRIDE: tl.constexpr):  # type: ignore[no-untyped-def]
    """Mask of the features ``m``, up to ``END``, that exist: a constant if all do, so that loads need no mask."""
    if END <= STRIDE:
        return tl.full(m.shape, True, tl.int1)
    else:
        return m < STRIDE


@triton.jit
def _load_part(sparse, mixed, at, real, was, u_before, v_before, f):  # type: ignore[no-untyped-def]
    """(A + B)/2, Â and B̂ of one part of a tile."""
    d = tl.load(mixed + at, mask=real, other=0.0)
    a = tl.load(sparse + at, mask=real & was[:, None], other=0.0)
    half = 0.5 * (a + u_before[None, :] * v_before[:, None])
    return half, (half - d) + (half + f), d + f


@triton.jit
def _store_part(sparse, mixed, at, real, lives, half, a_hat, b_hat, u, v, scale, factor):  # type: ignore[no-untyped-def]
    """Write A and D of one part of a tile; returns the new (A + B)/2, its change, and B - A."""
    a = a_hat * scale[:, None]
    difference = u[None, :] * v[:, None] - a
    new = a + 0.5 * difference
    tl.store(mixed + at, new - 0.5 * factor * (a_hat - b_hat + difference), mask=real)
    tl.store(sparse + at, a, mask=real & lives[:, None])
    return new, new - half, difference


@triton.jit
def update_blocks(  # type: ignore[no-untyped-def]
    sparse, mixed, rank_one, scales, codes, shift, roots, atoms_before, atoms, control, means, sums, n_atoms, n_samples,
    STRIDE: tl.constexpr, WIDTH: tl.constexpr, PARTS: tl.constexpr, TILE: tl.constexpr, GROUP: tl.constexpr,
    SHRINK: tl.constexpr, PROJECT: tl.constexpr,
):  # fmt: skip
    """A, v, D and the codes of a tile of samples for one group of atoms, with Q scaled for the next ρ.

    ``roots`` are factors of the samples' thresholds. ``SHRINK`` and ``PROJECT`` are the steps of A and B, functions of
    ``blocks``; reported codes obey the latter too.
    """
    tile, group, problem = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    if tl.load(control + problem * N_CONTROL + ACTIVE) == 0:
        return
    number = shift.dtype.element_ty
    rho = tl.load(control + problem * N_CONTROL + RHO)
    factor = (rho / tl.load(control + problem * N_CONTROL + NEXT_RHO)).to(number)
    rows, m0 = tl.arange(0, TILE), tl.arange(0, WIDTH)
    root = tl.load(roots + problem * n_samples + tile * TILE + rows)
    threshold = (1.0 / rho).to(number) * root
    m1, m2 = WIDTH + m0, 2 * WIDTH + m0
    has0 = real_features(m0, WIDTH, STRIDE)
    has1, has2 = real_features(m1, 2 * WIDTH, STRIDE), real_features(m2, 3 * WIDTH, STRIDE)
    real0, real1, real2 = has0[None, :], has1[None, :], has2[None, :]
    at0 = rows[:, None] * STRIDE + m0[None, :]
    at1, at2 = at0 + WIDTH, at0 + 2 * WIDTH
    here = shift + (problem.to(tl.int64) * n_samples + tile * TILE) * STRIDE
    f0 = tl.load(here + at0, mask=real0, other=0.0)
    if PARTS > 1:
        f1 = tl.load(here + at1, mask=real1, other=0.0)
    if PARTS > 2:
        f2 = tl.load(here + at2, mask=real2, other=0.0)
    mean0, mean1 = tl.zeros((TILE, WIDTH), number), tl.zeros((TILE, WIDTH), number)
    mean2 = tl.zeros((TILE, WIDTH), number)
    gaps, moved = tl.zeros((TILE, WIDTH), number), tl.zeros((TILE, WIDTH), number)
    size, objective = tl.zeros((TILE,), number), tl.zeros((TILE,), number)
    first, last = group * GROUP, min(group * GROUP + GROUP, n_atoms)
    # Prefetch one atom ahead: the mask of the load of A depends on it.
    here = (problem * n_atoms + first).to(tl.int64) * n_samples + tile * TILE + rows
    next_scale, next_v = tl.load(scales + here), tl.load(rank_one + here)
    for k in range(first, last):
        atom = problem * n_atoms + k
        column = atom.to(tl.int64) * n_samples + tile * TILE
        a_k, d_k = sparse + column * STRIDE, mixed + column * STRIDE
        u_k, w_k = atoms + atom * STRIDE, atoms_before + atom * STRIDE
        was, v_before = next_scale != 0, next_v
        here = (problem * n_atoms + min(k + 1, last - 1)).to(tl.int64) * n_samples + tile * TILE + rows
        next_scale, next_v = tl.load(scales + here), tl.load(rank_one + here)

        u0 = tl.load(u_k + m0, mask=has0, other=0.0)
        w0 = tl.load(w_k + m0, mask=has0, other=0.0)
        half0, a0, b0 = _load_part(a_k, d_k, at0, real0, was, w0, v_before, f0)
        squares, inner, image = a0 * a0, b0 * u0[None, :], a0 * u0[None, :]
        if PARTS > 1:
            u1 = tl.load(u_k + m1, mask=has1, other=0.0)
            w1 = tl.load(w_k + m1, mask=has1, other=0.0)
            half1, a1, b1 = _load_part(a_k, d_k, at1, real1, was, w1, v_before, f1)
            squares, inner, image = squares + a1 * a1, inner + b1 * u1[None, :], image + a1 * u1[None, :]
        if PARTS > 2:
            u2 = tl.load(u_k + m2, mask=has2, other=0.0)
            w2 = tl.load(w_k + m2, mask=has2, other=0.0)
            half2, a2, b2 = _load_part(a_k, d_k, at2, real2, was, w2, v_before, f2)
            squares, inner, image = squares + a2 * a2, inner + b2 * u2[None, :], image + a2 * u2[None, :]

        square, v = tl.sum(squares, axis=1), PROJECT(tl.sum(inner, axis=1))
        scale, lives, length = SHRINK(square, threshold)
        code = tl.sum(image, axis=1) * scale
        tl.store(rank_one + column + rows, v)
        tl.store(scales + column + rows, scale)
        tl.store(codes + column + rows, PROJECT(code))
        objective += length
        size += square * scale * scale + v * (v + code + code)  # ‖A + B‖², for u has unit norm

        new0, change0, d0 = _store_part(a_k, d_k, at0, real0, lives, half0, a0, b0, u0, v, scale, factor)
        mean0 += new0
        gaps += d0 * d0
        moved += change0 * change0
        if PARTS > 1:
            new1, change1, d1 = _store_part(a_k, d_k, at1, real1, lives, half1, a1, b1, u1, v, scale, factor)
            mean1 += new1
            gaps += d1 * d1
            moved += change1 * change1
        if PARTS > 2:
            new2, change2, d2 = _store_part(a_k, d_k, at2, real2, lives, half2, a2, b2, u2, v, scale, factor)
            mean2 += new2
            gaps += d2 * d2
            moved += change2 * change2

    n_groups = tl.num_programs(1)
    here = means + ((problem * n_groups + group).to(tl.int64) * n_samples + tile * TILE) * STRIDE
    tl.store(here + at0, mean0, mask=real0)
    if PARTS > 1:
        tl.store(here + at1, mean1, mask=real1)
    if PARTS > 2:
        tl.store(here + at2, mean2, mask=real2)
    into = sums + ((problem * n_groups + group) * tl.num_programs(0) + tile) * N_SUMS
    tl.store(into + OBJECTIVE, tl.sum((root * objective).to(tl.float64)))
    tl.store(into + GAP, _total(gaps) / 2)
    tl.store(into + MOVED, _total(moved))
    tl.store(into + SIZE, tl.sum(size.to(tl.float64)) / 4)


@triton.jit
def _total(tile):  # type: ignore[no-untyped-def]
    return tl.sum(tl.sum(tile, axis=1).to(tl.float64))


@triton.jit
def update_samples(  # type: ignore[no-untyped-def]
    data, observed, level, shift, mean, misfit, means, rebuilt, control, sums, n_atoms, n_numbers, n_groups,
    BLOCK: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """Update E, F, H and the mean of some samples, as ``n_numbers`` consecutive entries; padding stays zero."""
    block, problem = tl.program_id(0), tl.program_id(1)
    if tl.load(control + problem * N_CONTROL + ACTIVE) == 0:
        return
    number = data.dtype.element_ty
    i = block.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    real = i < n_numbers
    at = problem.to(tl.int64) * n_numbers + i
    rho = tl.load(control + problem * N_CONTROL + RHO)
    factor = (rho / tl.load(control + problem * N_CONTROL + NEXT_RHO)).to(number)
    share = tl.load(control + problem * N_CONTROL + SHARE).to(number)
    stretch = tl.load(control + problem * N_CONTROL + STRETCH).to(number)
    new_mean = tl.zeros((BLOCK,), number)
    for group in range(n_groups):
        part = (problem * n_groups + group).to(tl.int64) * n_numbers + i
        new_mean += tl.load(means + part, mask=real, other=0.0)
    image = tl.load(rebuilt + at, mask=real, other=0.0)
    y = tl.load(data + at, mask=real, other=0.0)
    h = tl.load(misfit + at, mask=real, other=0.0)
    e = tl.load(level + at, mask=real, other=0.0)
    f = tl.load(shift + at, mask=real, other=0.0)
    old_mean = tl.load(mean + at, mask=real, other=0.0)
    seen = real
    t = tl.zeros((BLOCK,), number) + share
    if MASKED:
        seen = tl.load(observed + at, mask=real, other=0) != 0
        t = tl.where(seen, t, 1.0)
        h = tl.where(seen, h * stretch, h)
    else:
        h = h * stretch
    many = n_atoms * 1.0
    new = (y + (2 * t - 1) * h - new_mean + many * e) / (many + 2)
    rise = new - e
    turn = rise - (f - e)
    now = new_mean + many * rise + (1 - t) * h - y
    tl.store(level + at, new * factor, mask=real)
    tl.store(shift + at, new * factor + rise, mask=real)
    tl.store(misfit + at, now, mask=real)
    tl.store(mean + at, new_mean, mask=real)

    into = sums + (problem * tl.num_programs(0) + block) * N_SUMS
    tl.store(into + GAP, tl.sum((2 * many * rise * rise).to(tl.float64)))
    tl.store(into + MOVED, tl.sum((turn * (2 * (new_mean - old_mean) + many * turn)).to(tl.float64)))
    tl.store(into + SIZE, tl.sum((rise * (2 * new_mean + many * rise)).to(tl.float64)))
    tl.store(into + ERROR, _squares(seen, y - image))
    tl.store(into + MISFIT, _squares(seen, now))
    tl.store(into + DRIFT, _squares(seen, now - h))


@triton.jit
def _squares(seen, values):  # type: ignore[no-untyped-def]
    masked = tl.where(seen, values, 0.0).to(tl.float64)
    return tl.sum(masked * masked)


@triton.jit
def _add_rows(sums, n_rows, problem, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Sum the rows of one problem, column by column."""
    total = tl.zeros((BLOCK, N_SUMS), tl.float64)
    column = tl.arange(0, N_SUMS)
    for start in range(0, n_rows, BLOCK):
        i = start + tl.arange(0, BLOCK)
        at = (problem * n_rows + i)[:, None] * N_SUMS + column[None, :]
        total += tl.load(sums + at, mask=(i < n_rows)[:, None], other=0.0)
    return tl.sum(total, axis=0)


@triton.jit
def sum_for_ranks(  # type: ignore[no-untyped-def]
    products, block_sums, n_block_sums, sample_sums, n_sample_sums, totals, n_numbers, n_chunks,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Pack what ranks exchange: Gram matrices or images, summed over chunks as their readers do, and sums."""
    block, problem = tl.program_id(0), tl.program_id(1)
    i = block.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    into = totals + problem.to(tl.int64) * (n_numbers + N_SUMS)
    total = tl.zeros((BLOCK,), tl.float64)
    for chunk in range(n_chunks):
        at = (problem * n_chunks + chunk).to(tl.int64) * n_numbers + i
        total += tl.load(products + at, mask=i < n_numbers, other=0.0).to(tl.float64)
    tl.store(into + i, total, mask=i < n_numbers)
    if block == 0:
        sums = _add_rows(block_sums, n_block_sums, problem, BLOCK) + _add_rows(
            sample_sums, n_sample_sums, problem, BLOCK
        )
        tl.store(into + n_numbers + tl.arange(0, N_SUMS), sums)


@triton.jit
def _misfit_share(limit, norm, rho, BALL: tl.constexpr):  # type: ignore[no-untyped-def]
    """``Formulation.misfit_share``."""
    if BALL:
        return tl.where(norm <= limit, 1.0, limit / tl.where(norm > 0, norm, 1.0))
    else:
        return rho / (limit + rho)


@triton.jit
def close_iteration(  # type: ignore[no-untyped-def]
    block_sums, n_block_sums, sample_sums, n_sample_sums, control, report,
    BALL: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Report the sums of one problem's iteration, and set its control numbers for the next one."""
    problem = tl.program_id(0)
    if tl.load(control + problem * N_CONTROL + ACTIVE) == 0:
        return
    mine = control + problem * N_CONTROL
    rho, following, limit = tl.load(mine + RHO), tl.load(mine + NEXT_RHO), tl.load(mine + LIMIT)
    count = tl.load(mine + COUNT)
    row = report + (count.to(tl.int64) * tl.num_programs(0) + problem) * N_REPORT
    column = tl.arange(0, N_SUMS)
    totals = _add_rows(block_sums, n_block_sums, problem, BLOCK) + _add_rows(sample_sums, n_sample_sums, problem, BLOCK)
    norm = tl.sqrt(tl.sum(tl.where(column == MISFIT, totals, 0.0)))
    share = _misfit_share(limit, norm, rho, BALL)
    tl.store(row + column, totals)
    tl.store(row + OLD_SHARE, tl.load(mine + SHARE))
    tl.store(row + OLD_NORM, tl.load(mine + NORM))
    tl.store(row + NEW_SHARE, share)
    stretch = tl.where(following == rho, 1.0, share + rho / following * (1.0 - share))
    norm = norm * stretch
    tl.store(mine + STRETCH, stretch)
    tl.store(mine + NORM, norm)
    tl.store(mine + SHARE, _misfit_share(limit, norm, following, BALL))
    tl.store(mine + RHO, following)
    tl.store(mine + COUNT, count + 1)


@triton.jit
def _add_products(mixed, at0, at1, real0, real1, f0, f1, g00, g01, g11, TWO: tl.constexpr):  # type: ignore[no-untyped-def]
    """Add the products of a tile's B̂ = D + F, main part and rest, to an atom's sums."""
    b0 = tl.load(mixed + at0, mask=real0, other=0.0) + f0
    b1 = tl.load(mixed + at1, mask=real1, other=0.0) + f1
    t0 = tl.trans(b0)
    g00 = tl.dot(t0, b0, g00, input_precision="ieee", out_dtype=g00.dtype)
    if TWO:
        g01 = tl.dot(t0, b1, g01, input_precision="ieee", out_dtype=g00.dtype)
        g11 = tl.dot(tl.trans(b1), b1, g11, input_precision="ieee", out_dtype=g00.dtype)
    return g00, g01, g11


@triton.jit
def _store_gram(out, i, j, g00, g01, g11, STRIDE: tl.constexpr, TWO: tl.constexpr):  # type: ignore[no-untyped-def]
    rows, columns, main, rest = i[:, None], j[:, None], i[None, :], j[None, :]
    tl.store(out + rows * STRIDE + main, g00, mask=(rows < STRIDE) & (main < STRIDE))
    if TWO:
        tl.store(out + rows * STRIDE + rest, g01, mask=rest < STRIDE)
        tl.store(out + columns * STRIDE + rest, g11, mask=(columns < STRIDE) & (rest < STRIDE))


@triton.jit
def add_grams(  # type: ignore[no-untyped-def]
    mixed, shift, control, grams, n_atoms, n_samples, chunk,
    STRIDE: tl.constexpr, MAIN: tl.constexpr, REST: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """Compute Σ_n b̂ b̂ᵀ of two atoms over a chunk of samples, without the product of the second part with the first.

    Two atoms share the reads of F. Features have a main part and a rest here, as factors of a matrix product may have
    different widths. Products are plain multiply-adds: the three tf32 products that float32 accuracy requires on tensor
    cores were slower (docs/decisions/0012-gpu.md).
    """
    pair, part, problem = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    if tl.load(control + problem * N_CONTROL + ACTIVE) == 0:
        return
    number = shift.dtype.element_ty
    two: tl.constexpr = MAIN < STRIDE
    rows, m0, m1 = tl.arange(0, TILE), tl.arange(0, MAIN), MAIN + tl.arange(0, REST)
    at0, at1 = rows[:, None] * STRIDE + m0[None, :], rows[:, None] * STRIDE + m1[None, :]
    real0, real1 = real_features(m0, MAIN, STRIDE)[None, :], real_features(m1, MAIN + REST, STRIDE)[None, :]
    # For an odd number of atoms the last program computes its only one twice.
    one, other = 2 * pair, min(2 * pair + 1, n_atoms - 1)
    g00, g01, g11 = tl.zeros((MAIN, MAIN), number), tl.zeros((MAIN, REST), number), tl.zeros((REST, REST), number)
    h00, h01, h11 = g00, g01, g11
    for start in tl.range(part * chunk, min(part * chunk + chunk, n_samples), TILE, num_stages=3):
        here = shift + (problem.to(tl.int64) * n_samples + start) * STRIDE
        f0, f1 = tl.load(here + at0, mask=real0, other=0.0), tl.load(here + at1, mask=real1, other=0.0)
        first = mixed + ((problem * n_atoms + one).to(tl.int64) * n_samples + start) * STRIDE
        g00, g01, g11 = _add_products(first, at0, at1, real0, real1, f0, f1, g00, g01, g11, two)
        second = mixed + ((problem * n_atoms + other).to(tl.int64) * n_samples + start) * STRIDE
        h00, h01, h11 = _add_products(second, at0, at1, real0, real1, f0, f1, h00, h01, h11, two)
    into = grams + ((problem * tl.num_programs(1) + part) * n_atoms).to(tl.int64) * STRIDE * STRIDE
    _store_gram(into + one * STRIDE * STRIDE, m0, m1, g00, g01, g11, STRIDE, two)
    _store_gram(into + other * STRIDE * STRIDE, m0, m1, h00, h01, h11, STRIDE, two)
