"""The time matrix products take: between the throughputs that were measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import prod
from typing import NamedTuple

from hloopt.analysis.cost.contraction import MULTIPLY_ADD
from hloopt.analysis.latency.model import Origin, Time
from hloopt.ir import Computation, Instruction, Opcode
from hloopt.ir.attributes.backend_config import backend_config
from hloopt.ir.attributes.typed import fusion_kind_of
from hloopt.ir.attributes.values import parse_ints
from hloopt.ir.custom_targets import custom_call_target
from hloopt.targets import Target
from hloopt.targets.performance import Tables, load_tables

_GEMM = "__cublas$"


class Matmul(NamedTuple):
    """`b` products of m x k by k x n matrices, and the types of both and of the result."""

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
    """The product that an instruction is: a dot, a fusion around one, a call of a library.

    O(fused instructions).
    """
    opcode = instruction.opcode
    if opcode is Opcode.DOT:
        attributes = instruction.attributes
        return _matmul(
            instruction,
            parse_ints(attributes.get("lhs_batch_dims", "{}")),
            parse_ints(attributes.get("lhs_contracting_dims", "{}")),
        )
    if opcode is Opcode.FUSION and fusion_kind_of(instruction) == "kCustom":
        dot = _dot_in(instruction.called[0])
        return None if dot is None else matmul_of(dot)
    if opcode is Opcode.CUSTOM_CALL:
        is_gemm = custom_call_target(instruction).startswith(_GEMM)
        return _library_call(instruction) if is_gemm else None
    return None


def _dot_in(body: Computation) -> Instruction | None:
    waiting = [body]
    while waiting:
        for instruction in waiting.pop().instructions:
            if instruction.opcode is Opcode.DOT:
                return instruction
            if instruction.opcode is Opcode.FUSION:
                waiting.append(instruction.called[0])
    return None


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
        return _matmul(call, batch, contracted)
    except (TypeError, ValueError, IndexError):
        return None


def _matmul(product: Instruction, batch: Sequence[int], contracted: Sequence[int]) -> Matmul | None:
    lhs, rhs = (operand.shape for operand in product.operands[:2])
    result = product.shape.elements[0] if product.shape.is_tuple else product.shape
    b = prod(lhs.dimensions[dimension] for dimension in batch)
    k = prod(lhs.dimensions[dimension] for dimension in contracted)
    if not b * k:
        return None
    sizes = b, lhs.element_count() // (b * k), rhs.element_count() // (b * k), k
    return Matmul(*sizes, lhs.type_name, rhs.type_name, result.type_name)


class MatmulTimes:
    """The times of matrix products on a GPU."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._known: dict[Matmul, Time | None] = {}

    def of(self, matmul: Matmul) -> Time | None:
        """At the measured throughput of these types, where there is one; else at the peak rate.

        None where not even that is known. O(1).
        """
        if matmul not in self._known:
            self._known[matmul] = self._time(matmul)
        return self._known[matmul]

    def _time(self, matmul: Matmul) -> Time | None:
        gpu = self._target.gpu
        if gpu is not None and gpu.tables is not None:
            tables = load_tables(gpu.tables)
            rates = _rates(tables, matmul)
            if rates is not None:
                rate = _interpolated(tables.matmul_sizes, rates, matmul)
                return Time(matmul.flops / rate * 1e6, Origin.MATMUL_TABLE)
        peak = self._target.matrix_rate(matmul.lhs)
        return None if peak is None else Time(matmul.flops / peak * 1e6, Origin.ROOFLINE)


def _rates(tables: Tables, matmul: Matmul) -> list[int] | None:
    """Those for the types of a product, or with another type of result."""
    operands = f"{matmul.lhs}x{matmul.rhs}->"
    exact = tables.matmuls.get(operands + matmul.result)
    if exact is not None:
        return exact
    alike = (rates for types, rates in tables.matmuls.items() if types.startswith(operands))
    return next(alike, None)


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
