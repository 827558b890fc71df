"""Gram matrices and top eigenvectors of many small matrices at once, one per SIMD lane.

A *bundle* is an array whose last axis runs over ``width`` atoms, one vector register of them (or a few). Products
of bundles then need no shuffles and no horizontal sums, whatever the size of the matrices.
"""

from typing import Any

import numpy as np
from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from roadict.parallel import kernel

VECTOR_BYTES = 64 if binding.get_host_cpu_features().get("avx512f", False) else 32
TILE = 4
"""Rows and columns of Gram entries that a tile keeps in registers."""

DOMINANT = 0.75
"""Share of the trace at which the top eigenvalue is known to be the top one, and power steps settle in a few."""
MAX_SQUARINGS = 10
MAX_STEPS = 60


def width_of(dtype: np.dtype[Any]) -> int:
    """Atoms per bundle."""
    return VECTOR_BYTES // dtype.itemsize


def padded(n_features: int) -> int:
    """Features rounded up to whole tiles."""
    return -(-n_features // TILE) * TILE


@intrinsic
def _add_tile(typingctx: Any, panel: Any, gram: Any, row: Any, column: Any, lane: Any, count: Any) -> Any:
    """Add ``Σ_n panel[n, i] * panel[n, j]`` to ``gram[i, j]`` for a tile of i, j and one vector of lanes.

    The sixteen sums stay in registers over all n, which the compiler does not find by itself.
    """
    signature = types.void(panel, gram, types.intp, types.intp, types.intp, types.intp)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        panel_type, gram_type = signature.args[:2]
        number = context.get_data_type(panel_type.dtype)
        itemsize = panel_type.dtype.bitwidth // 8
        vector = ir.VectorType(number, VECTOR_BYTES // itemsize)
        row, column, lane, count = args[2:]
        panel = context.make_array(panel_type)(context, builder, args[0])
        gram = context.make_array(gram_type)(context, builder, args[1])
        size, width = cgutils.unpack_tuple(builder, panel.shape)[1:]

        def at(data: Any, index: Any) -> Any:
            offset = builder.add(builder.mul(index, width), lane)
            return builder.bitcast(builder.gep(data, [offset]), vector.as_pointer())

        def below(start: Any, step: int) -> Any:
            return builder.add(start, ir.Constant(start.type, step))

        tile = [(i, j) for i in range(TILE) for j in range(TILE)]
        sums = {ij: cgutils.alloca_once_value(builder, ir.Constant(vector, None)) for ij in tile}
        with cgutils.for_range(builder, count) as loop:
            first = builder.mul(loop.index, size)
            left, right = (
                [builder.load(at(panel.data, builder.add(first, below(start, i))), align=itemsize) for i in range(TILE)]
                for start in (row, column)
            )
            for i, j in tile:
                product = builder.fmul(left[i], right[j], flags=("contract",))
                builder.store(builder.fadd(product, builder.load(sums[i, j]), flags=("contract",)), sums[i, j])
        for i, j in tile:
            target = at(gram.data, builder.add(builder.mul(below(row, i), size), below(column, j)))
            total = builder.fadd(builder.load(target, align=itemsize), builder.load(sums[i, j]))
            builder.store(total, target, align=itemsize)
        return context.get_dummy_value()

    return signature, generate


@kernel
def add_gram(panel, gram, count, lanes):  # type: ignore[no-untyped-def]
    """Add ``Σ_{n < count} panel[n, i] * panel[n, j]`` to ``gram[i, j]`` for all j ≤ i (and some above).

    Both arrays are contiguous: panel (block, padded, width) and gram (padded, padded, width); ``lanes`` is
    ``width_of`` their type.
    """
    size, width = panel.shape[1:]
    for lane in range(0, width, lanes):
        for i in range(0, size, TILE):
            for j in range(0, i + 1, TILE):
                _add_tile(panel, gram, i, j, lane, count)


@kernel
def mirror(gram):  # type: ignore[no-untyped-def]
    """Copy the entries below the diagonal to those above."""
    size, _, width = gram.shape
    for i in range(size):
        for j in range(i):
            for w in range(width):
                gram[j, i, w] = gram[i, j, w]


@kernel
def _normalise_trace(gram):  # type: ignore[no-untyped-def]
    size, _, width = gram.shape
    factor = np.zeros(width)
    for i in range(size):
        for w in range(width):
            factor[w] += gram[i, i, w]
    for w in range(width):
        factor[w] = 1 / factor[w] if factor[w] > 0 else 0.0
    for i in range(size):
        for j in range(size):
            for w in range(width):
                gram[i, j, w] *= factor[w]
    return factor


@kernel
def _power_step(gram, atoms, image, share, change):  # type: ignore[no-untyped-def]
    """Replace atoms by normalised ``gram @ atoms``; zero matrices keep theirs.

    ``share`` receives the Rayleigh quotients, ``change`` the squared lengths of the steps.
    """
    n_features, width = atoms.shape
    length = np.zeros(width)
    share[:] = 0
    change[:] = 0
    for i in range(n_features):
        for w in range(width):
            image[i, w] = 0
        for j in range(n_features):
            for w in range(width):
                image[i, w] += gram[i, j, w] * atoms[j, w]
        for w in range(width):
            share[w] += atoms[i, w] * image[i, w]
            length[w] += image[i, w] * image[i, w]
    for w in range(width):
        length[w] = 1 / np.sqrt(length[w]) if length[w] > 0 else 0.0
    for i in range(n_features):
        for w in range(width):
            moved = image[i, w] * length[w] if length[w] > 0 else atoms[i, w]
            step = moved - atoms[i, w]
            change[w] += step * step
            atoms[i, w] = moved


@kernel
def top_eigenvectors(gram, atoms, tolerance, lanes):  # type: ignore[no-untyped-def]
    """Replace each atom by the top eigenvector of its positive semidefinite matrix, which is overwritten.

    Power steps start from the atoms given. An eigenvector that is not the top one is a fixed point of them too, so
    a result is trusted only where its Rayleigh quotient is above half of the trace, which no other eigenvector's
    can be. Where it is not, the matrix is squared, which squares all ratios of eigenvalues, and the steps go on;
    the few lanes that ten squarings do not separate go to LAPACK. A zero matrix leaves its atom alone.

    Parameters
    ----------
    gram : float64 array of shape (padded, padded, width), symmetric
    atoms : float64 array of shape (n_features, width)
    tolerance : float
        Length of the last power step.
    lanes : int
        ``width_of(float64)``.
    """
    n_features, width = atoms.shape
    original = gram.copy()
    alive = _normalise_trace(gram) > 0
    squared = np.empty_like(gram)
    image = np.empty_like(atoms)
    share, change = np.empty(width), np.empty(width)
    squarings = 0
    for _ in range(MAX_STEPS + 4 * MAX_SQUARINGS):
        _power_step(gram, atoms, image, share, change)
        unsure = False
        settled = True
        for w in range(width):
            if alive[w]:
                unsure |= share[w] < DOMINANT
                settled &= change[w] <= tolerance * tolerance
        if settled and not unsure:
            return
        if unsure and squarings < MAX_SQUARINGS:
            squared[:] = 0
            add_gram(gram, squared, gram.shape[0], lanes)
            mirror(squared)
            _normalise_trace(squared)
            gram, squared = squared, gram
            squarings += 1
    for w in range(width):
        if alive[w] and (share[w] < DOMINANT or change[w] > tolerance * tolerance):
            _, vectors = np.linalg.eigh(np.ascontiguousarray(original[:n_features, :n_features, w]))
            atoms[:, w] = vectors[:, -1]
