"""Gram matrices and top eigenvectors on a GPU, for more features than fit into a program's registers."""

import torch

from roadict.engines.gpu.layout import MAX_TEMPORARY_BYTES

# As high a power of the matrix as in the kernel for fewer features: 2¹² in each of the last steps.
SQUARINGS = 12
STEPS = 25


def _parts(n_atoms: int, bytes_per_atom: int) -> list[slice]:
    """Slices of as many atoms as MAX_TEMPORARY_BYTES allows."""
    at_once = max(1, MAX_TEMPORARY_BYTES // bytes_per_atom)
    return [slice(first, first + at_once) for first in range(0, n_atoms, at_once)]


def wide_grams(mixed: torch.Tensor, shift: torch.Tensor, grams: torch.Tensor) -> None:
    """Write ``Σ_n b̂ b̂ᵀ`` of every atom to ``grams`` (problem, 1, atom, feature, feature), some atoms at a time."""
    for part in _parts(mixed.shape[1], shift.nbytes):
        b_hat = mixed[:, part] + shift[:, None]
        torch.matmul(b_hat.transpose(2, 3), b_hat, out=grams[:, 0, part])


def wide_eigenvectors(grams: torch.Tensor, atoms: torch.Tensor) -> torch.Tensor:
    """Top eigenvectors of ``grams`` (problem, atom, feature, feature), near ``atoms`` (problem, atom, feature) in sign.

    The number of squarings and power steps is fixed, so that the host need not synchronise. Zero matrices leave their
    atoms unchanged.
    """
    n_problems, n_atoms, n_features = atoms.shape
    parts = _parts(n_atoms, n_problems * n_features**2 * torch.float64.itemsize)
    return torch.cat([_eigenvectors(grams[:, part], atoms[:, part]) for part in parts], dim=1)


def _eigenvectors(grams: torch.Tensor, atoms: torch.Tensor) -> torch.Tensor:
    power = _unit_trace(grams.to(torch.float64))
    alive = power.diagonal(dim1=-2, dim2=-1).sum(-1, keepdim=True) > 0
    vectors = atoms.to(torch.float64)
    for _ in range(SQUARINGS):
        vectors = torch.where(alive, _step(power, vectors), vectors)
        power = _unit_trace(power @ power)
    for _ in range(STEPS):
        vectors = torch.where(alive, _step(power, vectors), vectors)
    return vectors.to(atoms.dtype)


def _step(matrices: torch.Tensor, vectors: torch.Tensor) -> torch.Tensor:
    image = (matrices @ vectors[..., None])[..., 0]
    length = torch.linalg.vector_norm(image, dim=-1, keepdim=True)
    return torch.where(length > 0, image / torch.where(length > 0, length, 1), vectors)


def _unit_trace(matrices: torch.Tensor) -> torch.Tensor:
    trace = matrices.diagonal(dim1=-2, dim2=-1).sum(-1)[..., None, None]
    return torch.where(trace > 0, matrices / torch.where(trace > 0, trace, 1), 0)
