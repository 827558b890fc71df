"""SIMD vectors as values in Numba kernels: ``load``, ``store``, ``splat``, ``larger``, ``total`` and + - *.

The compiler vectorises long loops by itself, but the loops here run over a few dozen numbers each; checks for
overlapping arrays and horizontal sums then cost as much as the work. With vectors the sums stay in registers.
Products and sums may be fused (FMA); nothing else is reordered. ``vectors`` decides whether kernels use them.
"""

import operator
from typing import Any

import numpy as np
from llvmlite import binding, ir
from numba import types
from numba.core import errors
from numba.extending import intrinsic, lower_builtin, models, register_model, type_callable

from roadict.kernels import kernel

VECTOR_BYTES = 64 if binding.get_host_cpu_features().get("avx512f", False) else 32


class Vector(types.Type):
    """Numba type of a vector of float32 or float64."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype
        super().__init__(name=f"Vector({dtype})")

    @property
    def bytes(self) -> int:
        """Size of a number."""
        return int(self.dtype.bitwidth) // 8

    @property
    def ir(self) -> Any:
        """Type in the compiler's language."""
        number = ir.FloatType() if self.dtype == types.float32 else ir.DoubleType()
        return ir.VectorType(number, VECTOR_BYTES // self.bytes)


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, vector: Vector) -> None:
        super().__init__(manager, vector, vector.ir)


def _address(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    if array_type.layout != "C":
        raise errors.TypingError(f"vectors lie in contiguous arrays, not in {array_type}")
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), Vector(array_type.dtype).ir.as_pointer())


@intrinsic
def load(typingctx: Any, array: Any, index: Any) -> Any:
    """Vector of the numbers from flat ``index`` on in a contiguous array."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address = _address(context, builder, signature.args[0], *args)
        return builder.load(address, align=signature.return_type.bytes)

    return Vector(array.dtype)(array, types.intp), generate


@intrinsic
def store(typingctx: Any, array: Any, index: Any, vector: Any) -> Any:
    """Write a vector from flat ``index`` on into a contiguous array."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address = _address(context, builder, signature.args[0], args[0], args[1])
        builder.store(args[2], address, align=signature.args[2].bytes)
        return context.get_dummy_value()

    return types.void(array, types.intp, vector), generate


@intrinsic
def prefetch(typingctx: Any, array: Any, index: Any) -> Any:
    """Ask for the cache line of flat ``index`` in a contiguous array; an index past the end does no harm."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        address = builder.bitcast(_address(context, builder, signature.args[0], *args), byte)
        function = builder.module.declare_intrinsic(
            "llvm.prefetch", [byte], ir.FunctionType(ir.VoidType(), [byte] + [number] * 3)
        )
        builder.call(function, [address, number(0), number(2), number(1)])  # read, second-level cache, data
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


@intrinsic
def splat(typingctx: Any, number: Any) -> Any:
    """Vector of one number repeated."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vector = signature.return_type.ir
        first = builder.insert_element(ir.Constant(vector, ir.Undefined), args[0], ir.Constant(ir.IntType(32), 0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), vector.count), None)
        return builder.shuffle_vector(first, ir.Constant(vector, ir.Undefined), zeros)

    return Vector(number)(number), generate


@intrinsic
def larger(typingctx: Any, left: Any, right: Any) -> Any:
    """Larger of two vectors' numbers, each with each; NaN in the first stays."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        first, second = args
        return builder.select(builder.fcmp_ordered("<", first, second), second, first)

    return left(left, right), generate


@intrinsic
def total(typingctx: Any, vector: Any) -> Any:
    """Sum of a vector's numbers, halves added to halves."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        rest, count = args[0], signature.args[0].ir.count
        while count > 1:
            count //= 2
            undefined = ir.Constant(rest.type, ir.Undefined)
            places = ir.VectorType(ir.IntType(32), count)
            low = builder.shuffle_vector(rest, undefined, ir.Constant(places, list(range(count))))
            high = builder.shuffle_vector(rest, undefined, ir.Constant(places, list(range(count, 2 * count))))
            rest = builder.fadd(low, high)
        return builder.extract_element(rest, ir.Constant(ir.IntType(32), 0))

    return vector.dtype(vector), generate


def _arithmetic(symbol: Any, instruction: str) -> None:
    @type_callable(symbol)
    def typing(context: Any) -> Any:
        def typer(left: Any, right: Any) -> Any:
            return left if isinstance(left, Vector) and left == right else None

        return typer

    @lower_builtin(symbol, Vector, Vector)
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return getattr(builder, instruction)(*args, flags=("contract",))


_arithmetic(operator.add, "fadd")
_arithmetic(operator.sub, "fsub")
_arithmetic(operator.mul, "fmul")


@kernel
def _try_all(numbers, result):
    prefetch(numbers, 0)
    vector = load(numbers, 0)
    store(result, 1, vector * vector + splat(numbers[1]) - larger(vector, splat(numbers[2])))
    return total(vector)


def check() -> None:
    """Raise an error where vectors cannot be built, or go wrong: they need internals of Numba and llvmlite."""
    numbers = np.arange(1.0, 1 + VECTOR_BYTES // 8)
    result = np.zeros(len(numbers) + 2)
    total = _try_all(numbers, result)
    if total != numbers.sum() or not np.array_equal(result, [0, *(numbers * numbers + 2 - np.maximum(numbers, 3)), 0]):
        raise ArithmeticError(f"wrong result of vectors: {result}, {total}")
