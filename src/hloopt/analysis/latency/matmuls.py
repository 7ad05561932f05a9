"""The time matrix products take: between the throughputs that were measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import prod
from typing import NamedTuple

from hloopt.analysis.cost.contraction import MULTIPLY_ADD
from hloopt.analysis.latency.kernels import TICKS
from hloopt.analysis.latency.model import Origin, Time
from hloopt.ir import Instruction, Opcode
from hloopt.ir.attributes.backend_config import backend_config
from hloopt.ir.attributes.typed import fusion_kind_of
from hloopt.ir.attributes.values import parse_ints
from hloopt.ir.custom_targets import custom_call_target
from hloopt.ir.shapes.element_type import ELEMENT_TYPES
from hloopt.targets import Target
from hloopt.targets.performance import Tables, load_tables

_LIBRARY = "__cublas$lt$"
_FUSIONS = ("__triton_gemm", "__triton_nested_gemm_fusion")
"""The kinds of custom fusions that are one product."""
_COMMON = "bf16xbf16->bf16"
"""The throughputs that stand in for those of types that were not measured."""
_COMMON_BYTES = 2
"""The bytes of an element of their results."""


class Matmul(NamedTuple):
    """`b` products of m x k by k x n matrices, and the types of both and of what is written."""

    b: int
    m: int
    n: int
    k: int
    lhs: str
    rhs: str
    result: str

    @property
    def flops(self) -> int:
        return MULTIPLY_ADD * self.b * self.m * self.n * self.k


def matmul_of(instruction: Instruction) -> Matmul | None:
    """The product that an instruction is: a dot, a Triton fusion around one, a cuBLASLt call.

    XLA:GPU takes no other fusions and calls for products, and no fusions with several dots. The
    result's type is that of the fusion: what it does to the dot's result comes before it is
    written. O(fused instructions).
    """
    opcode = instruction.opcode
    if opcode is Opcode.DOT:
        return _dot(instruction, instruction)
    if opcode is Opcode.FUSION and _is_product(instruction):
        dots = [i for i in instruction.called[0].instructions if i.opcode is Opcode.DOT]
        return _dot(dots[0], instruction) if len(dots) == 1 else None
    if opcode is Opcode.CUSTOM_CALL:
        is_product = custom_call_target(instruction).startswith(_LIBRARY)
        return _library_call(instruction) if is_product else None
    return None


def _is_product(fusion: Instruction) -> bool:
    if fusion_kind_of(fusion) != "kCustom":
        return False
    config = backend_config(fusion).get("fusion_backend_config")
    return isinstance(config, Mapping) and config.get("kind") in _FUSIONS


def _dot(dot: Instruction, writer: Instruction) -> Matmul | None:
    attributes = dot.attributes
    return _matmul(
        dot,
        parse_ints(attributes.get("lhs_batch_dims", "{}")),
        parse_ints(attributes.get("lhs_contracting_dims", "{}")),
        writer,
    )


def _library_call(call: Instruction) -> Matmul | None:
    config = backend_config(call)
    config = config.get("gemm_backend_config", config)
    numbers = config.get("dot_dimension_numbers") if isinstance(config, Mapping) else None
    if not isinstance(numbers, Mapping) or len(call.operands) < 2:
        return None
    try:
        batch, contracted = (
            tuple(map(int, numbers.get(f"lhs_{kind}_dimensions", ())))
            for kind in ("batch", "contracting")
        )
        return _matmul(call, batch, contracted, call)
    except (TypeError, ValueError, IndexError):
        return None


def _matmul(
    product: Instruction, batch: Sequence[int], contracted: Sequence[int], writer: Instruction
) -> Matmul:
    lhs, rhs = (operand.shape for operand in product.operands[:2])
    result = writer.shape.elements[0] if writer.shape.is_tuple else writer.shape
    b = prod(lhs.dimensions[dimension] for dimension in batch)
    k = prod(lhs.dimensions[dimension] for dimension in contracted)
    shared = max(b * k, 1)  # 0 where there is nothing to multiply, whatever m and n are
    sizes = b, lhs.element_count() // shared, rhs.element_count() // shared, k
    return Matmul(*sizes, lhs.type_name, rhs.type_name, result.type_name)


class MatmulTimes:
    """The times of matrix products on a GPU."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._known: dict[Matmul, Time | None] = {}

    def of(self, matmul: Matmul) -> Time | None:
        """At throughputs that were measured; at the peak rate on a target that has none.

        None where not even that is known. O(1).
        """
        if matmul not in self._known:
            self._known[matmul] = self._time(matmul)
        return self._known[matmul]

    def _time(self, matmul: Matmul) -> Time | None:
        gpu = self._target.gpu
        if gpu is not None and gpu.tables is not None:
            microseconds = _measured(load_tables(gpu.tables), matmul)
            return Time(round(microseconds * TICKS) / TICKS, Origin.MATMUL_TABLE)
        peak = self._target.matrix_rate(matmul.lhs)
        return None if peak is None else Time(matmul.flops / peak * 1e6, Origin.ROOFLINE)


def _measured(tables: Tables, matmul: Matmul) -> float:
    """Microseconds at the throughput of the types of a product, or of `_COMMON`.

    XLA:GPU counts m, n and k in bytes of the result there. So a product of another type is one of
    bf16 whose matrices are as many bytes high and wide: with an f32 result 8 times the flops.
    """
    exact = tables.matmuls.get(f"{matmul.lhs}x{matmul.rhs}->{matmul.result}")
    if exact is not None:
        return matmul.flops / _interpolated(tables.matmul_sizes, exact, matmul) * 1e6
    axes = {
        dimension: sizes if dimension == "b" else [size * _COMMON_BYTES for size in sizes]
        for dimension, sizes in tables.matmul_sizes.items()
    }
    size = ELEMENT_TYPES[matmul.result].bytes
    counted = matmul._replace(m=matmul.m * size, n=matmul.n * size, k=matmul.k * size)
    return counted.flops / _interpolated(axes, tables.matmuls[_COMMON], counted) * 1e6


def _interpolated(
    sizes: Mapping[str, Sequence[int]], rates: Sequence[int], matmul: Matmul
) -> float:
    """The mean of the measured points around a product, near ones weighing more.

    Weights are 1 / (squared distance + 1); the distance counts beyond the measured sizes, too.
    """
    point = matmul[:4]
    axes = [sizes[dimension] for dimension in "bmnk"]
    strides = [prod(map(len, axes[number + 1 :])) for number in range(4)]
    around = [_around(size, axis) for size, axis in zip(point, axes, strict=True)]
    total = weights = 0.0
    for corner in product(*around):
        places = zip(corner, axes, point, strict=True)
        weight = 1 / (sum((axis[place] - size) ** 2 for place, axis, size in places) + 1)
        index = sum(place * stride for place, stride in zip(corner, strides, strict=True))
        total += weight * rates[index]
        weights += weight
    return total / weights


def _around(size: int, axis: Sequence[int]) -> tuple[int, ...]:
    """The places in ascending sizes of the nearest one below and above; one at the borders."""
    above = next((place for place, known in enumerate(axis) if known >= size), len(axis) - 1)
    if above == 0 or axis[above] <= size:
        return (above,)
    return above - 1, above
