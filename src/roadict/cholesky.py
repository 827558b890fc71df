"""Small positive systems, solved inside other kernels."""

import numpy as np

from roadict.parallel import kernel


@kernel
def solve_positive(matrix, target):  # type: ignore[no-untyped-def]
    """Solve a symmetric positive semidefinite system in place; directions without a pivot get zero."""
    size = len(target)
    for i in range(size):
        pivot = matrix[i, i]
        for j in range(i):
            value = matrix[i, j]
            for k in range(j):
                value -= matrix[i, k] * matrix[j, k]
            matrix[i, j] = value / matrix[j, j] if matrix[j, j] > 0 else 0.0
            pivot -= matrix[i, j] * matrix[i, j]
        matrix[i, i] = np.sqrt(pivot) if pivot > 1e-12 * matrix[i, i] else 0.0
    for i in range(size):
        value = target[i]
        for j in range(i):
            value -= matrix[i, j] * target[j]
        target[i] = value / matrix[i, i] if matrix[i, i] > 0 else 0.0
    for i in range(size - 1, -1, -1):
        value = target[i]
        for j in range(i + 1, size):
            value -= matrix[j, i] * target[j]
        target[i] = value / matrix[i, i] if matrix[i, i] > 0 else 0.0
