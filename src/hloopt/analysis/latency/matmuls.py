"""The time matrix products take: between the throughputs that were measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from hloopt.analysis.latency.estimates import ATTAINABLE
from hloopt.analysis.latency.kernels import TICKS
from hloopt.analysis.latency.matmul_tables import Matmul, MatmulTable, XlaMatmuls
from hloopt.analysis.latency.model import Origin, TableTime, Time
from hloopt.ir import Instruction, Opcode
from hloopt.ir.attributes.backend_config import backend_config
from hloopt.ir.attributes.typed import fusion_kind_of
from hloopt.ir.attributes.values import parse_ints
from hloopt.ir.custom_targets import custom_call_target
from hloopt.targets import Target
from hloopt.targets.performance import load_tables

_LIBRARY = "__cublas$lt$"
_FUSIONS = ("__triton_gemm", "__triton_nested_gemm_fusion")
"""The kinds of custom fusions that are one product."""


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
    """The times of matrix products on a GPU.

    `table` has what was measured, in place of what XLA measured on the GPU; with `smooth` the times
    of XLA's measurements are monotone in size.
    """

    def __init__(
        self, target: Target, table: MatmulTable | None = None, *, smooth: bool = False
    ) -> None:
        self._target = target
        self._table = table
        if table is None and target.gpu is not None and target.gpu.tables is not None:
            tables = load_tables(target.gpu.tables)
            self._table = XlaMatmuls(tables) if tables.matmuls else None
        self._smooth = smooth
        self._known: dict[Matmul, Time | None] = {}

    def of(self, matmul: Matmul) -> Time | None:
        """The time at measured throughputs; on a target that has none by its peak rates.

        None where not even these are known. O(1) the second time.
        """
        if matmul not in self._known:
            self._known[matmul] = self._time(matmul)
        return self._known[matmul]

    def by_table(self, matmul: Matmul) -> TableTime | None:
        """The time by measurements, as they are and smoothed; None without any."""
        return None if self._table is None else self._table.time(matmul)

    def _time(self, matmul: Matmul) -> Time | None:
        found = self.by_table(matmul)
        if found is not None:
            time = found.smoothed if self._smooth else found.measured
            return Time(round(time * TICKS) / TICKS, Origin.MATMUL_TABLE)
        peak = self._target.matrix_rate(matmul.lhs)
        if peak is None:
            return None
        arithmetic = matmul.flops / (ATTAINABLE * peak)
        return Time(
            max(arithmetic, matmul.bytes / self._target.memory_bandwidth) * 1e6, Origin.RATES
        )
