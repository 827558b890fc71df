"""The operations of ``simd`` in plain Numba, on vectors of one number; + - * are those of numbers."""

from numba.extending import register_jitable

VECTOR_BYTES = 1
"""Less than any number has: one number each."""


@register_jitable
def load(array, index):
    """Number at flat ``index`` in a contiguous array."""
    return array.flat[index]


@register_jitable
def store(array, index, vector):
    """Write a number to flat ``index`` of a contiguous array."""
    array.flat[index] = vector


@register_jitable
def prefetch(array, index):
    """Nothing: this is no more than a hint."""


@register_jitable
def splat(number):
    """The number itself."""
    return number


@register_jitable
def larger(left, right):
    """Larger of two numbers; NaN as the first stays."""
    return right if left < right else left


@register_jitable
def total(vector):
    """The number itself."""
    return vector
