"""Rules about precision: products wider than their operands, bits that converts lose."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from hloopt.checks.doubts import Doubt, not_partitioned
from hloopt.checks.lint.costs import runs_text
from hloopt.checks.lint.model import Finding, RuleOptions, rule
from hloopt.checks.results import NO_IMPACT, Impact, Severity
from hloopt.checks.view import View
from hloopt.ir.custom_targets import custom_call_target
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape_size import data_bytes
from hloopt.memory.backends import backend_of
from hloopt.options import Bytes, option
from hloopt.targets import Target, load_target

_WIDE = "f32"
_PRODUCTS = frozenset((Opcode.DOT, Opcode.CONVOLUTION, Opcode.RAGGED_DOT))
_LIBRARY = ("__cublas$gemm", "__cublas$lt$matmul")
_MULTIPLIED = frozenset(
    (
        *(("bf16", "bf16"), ("f16", "f16"), ("f8e4m3fn", "f8e4m3fn")),
        *(("f8e4m3fn", "f8e5m2"), ("f8e5m2", "f8e4m3fn")),
    )
)
"""The types of operands that units for products take, with a result of f32."""
_ARRANGING = frozenset(
    (
        *(Opcode.BITCAST, Opcode.RESHAPE, Opcode.TRANSPOSE, Opcode.BROADCAST, Opcode.COPY),
        *(Opcode.SLICE, Opcode.DYNAMIC_SLICE, Opcode.REVERSE),
    )
)
"""Opcodes that put the elements of their first operand in another place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpcastDotOptions(RuleOptions):
    """Options of `upcast-dot`."""

    flops: int = option(10_000_000, "the least flops of a product that is worth a finding")


class _Upcast(NamedTuple):
    """A product in f32, and the converts from narrower floats behind its operands."""

    product: Instruction
    lhs: Instruction
    rhs: Instruction

    @property
    def types(self) -> list[str]:
        """The narrow types, each once."""
        return list(dict.fromkeys(c.operands[0].shape.type_name for c in (self.lhs, self.rhs)))


def _widened_by_compiler(view: View) -> Doubt | None:
    """XLA:CPU is done with the module: it widens products itself."""
    module = view.subject.module
    is_done = module.is_scheduled or view.subject.stage.fused.holds is True
    if not is_done or backend_of(module).name != "cpu" or not _upcasts(view):
        return None
    return Doubt(
        "nothing tells that XLA:GPU compiled the module, and XLA:CPU widens products itself",
        "Give the module before optimizations.",
    )


@rule("HLL301", "upcast-dot", not_partitioned, _widened_by_compiler, options=UpcastDotOptions)
def upcast_dot(view: View, options: UpcastDotOptions) -> Iterator[Finding]:
    """Products in f32 of operands that were narrower. O(instructions)."""
    for upcast in _upcasts(view):
        product, lhs, rhs = upcast
        if view.subject.costs.of(product).flops < options.flops:
            continue
        impact = _cost_of_width(view, upcast)
        if view.cost_model.target is not None and impact == NO_IMPACT:
            continue
        converts = tuple(dict.fromkeys((lhs, rhs)))
        made = " and ".join(f"%{convert.name}" for convert in converts)
        yield Finding(
            f"%{product.name} multiplies in {_WIDE}, although its operands are "
            f"{' and '.join(upcast.types)}, widened by {made}{runs_text(view, product)}",
            product,
            impact,
            related=converts,
        )


def _upcasts(view: View) -> list[_Upcast]:
    """The upcasts of a module, found once. O(instructions)."""
    return view.once("upcasts", lambda: list(_find_upcasts(view)))


def _find_upcasts(view: View) -> Iterator[_Upcast]:
    for computation in view.subject.module.computations.values():
        for product in computation.instructions:
            if _is_wide_product(product):
                lhs, rhs = (_convert_behind(operand) for operand in product.operands[:2])
                if lhs is not None and rhs is not None and _multiply(lhs, rhs):
                    yield _Upcast(product, lhs, rhs)


def _cost_of_width(view: View, upcast: _Upcast) -> Impact:
    """The time and the bytes of a product beyond those of the narrow one, in all its runs.

    Times are by the peak rates of the target. Operands are read wide where they come from another
    kernel of a scheduled module; else a compiler fuses the converts.
    """
    product, is_scheduled = upcast.product, view.subject.module.is_scheduled
    runs = view.runs(product).times
    widened = read_wide = 0
    for operand, convert in zip(product.operands, (upcast.lhs, upcast.rhs), strict=False):
        shape = operand.shape.with_element_type(convert.operands[0].shape.type_name)
        more = data_bytes(operand.shape) - data_bytes(shape)
        widened += more
        read_wide += more if is_scheduled and convert.parent is not product.parent else 0
    if view.cost_model.target is None:
        return Impact(moved=read_wide * runs)
    cost = view.subject.costs.of(product)
    target = load_target(view.cost_model.target)
    least = cost.bytes_accessed - widened
    wide = _least_seconds(target, _WIDE, cost.flops, least + read_wide)
    narrow = _least_seconds(target, upcast.types[0], cost.flops, least)
    return Impact((wide - narrow) * runs, read_wide * runs)


def _least_seconds(target: Target, type_name: str, flops: int, moved: int) -> float:
    """The time of a product of operands of a type by the peak rates of a target."""
    rate = target.matrix_rate(type_name)
    return max(flops / rate if rate else 0.0, moved / target.memory_bandwidth)


def _is_wide_product(instruction: Instruction) -> bool:
    """Whether an instruction multiplies f32 by f32 to f32, by an algorithm that nobody chose."""
    is_product = instruction.opcode in _PRODUCTS or (
        instruction.opcode is Opcode.CUSTOM_CALL and custom_call_target(instruction) in _LIBRARY
    )
    if not is_product or "algorithm" in instruction.attributes:
        return False
    result = next(iter(instruction.shape.leaves()))
    types = [result.type_name, *(operand.shape.type_name for operand in instruction.operands[:2])]
    return types == [_WIDE] * 3


def _multiply(lhs: Instruction, rhs: Instruction) -> bool:
    """Whether there are products with a result of f32 of what two converts widen."""
    types = tuple(convert.operands[0].shape.type_name for convert in (lhs, rhs))
    return types in _MULTIPLIED


def _convert_behind(value: Instruction) -> Instruction | None:
    """The convert from a narrower float that makes the elements of a value; None without one.

    Looks through what only arranges elements, into fusions and out of them.
    """
    while True:
        source = _source(value)
        if source is None:
            break
        value = source
    if value.opcode is not Opcode.CONVERT:
        return None
    return value if _is_wider(value, value.operands[0]) else None


def _source(value: Instruction) -> Instruction | None:
    """The value whose elements a value has, in another order or place; None where it makes them."""
    if value.opcode in _ARRANGING:
        operand = value.operands[0]
        return operand if operand.shape.element_type is value.shape.element_type else None
    if value.opcode is Opcode.PARAMETER:
        fusion = next((c for c in value.parent.callers if c.opcode is Opcode.FUSION), None)
        return None if fusion is None else fusion.operands[value.parameter_number]
    if value.opcode is Opcode.FUSION and not value.shape.is_tuple:
        return value.called[0].root
    if value.opcode is Opcode.GET_TUPLE_ELEMENT and value.operands[0].opcode is Opcode.FUSION:
        root = value.operands[0].called[0].root
        return root.operands[value.tuple_index] if root.opcode is Opcode.TUPLE else None
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class PrecisionLosingOptions(RuleOptions):
    """Options of `precision-losing-converts`."""

    size: Bytes = option(4096, "the least bytes of a value, wide, that is worth a finding")


@rule(
    *("HLL302", "precision-losing-converts"),
    options=PrecisionLosingOptions,
    severity=Severity.NOTE,
)
def precision_losing_converts(view: View, options: PrecisionLosingOptions) -> Iterator[Finding]:
    """Floats that are rounded and widened again, with nobody else to read them narrow.

    O(instructions).
    """
    for widening in view.subject.module.instructions(Opcode.CONVERT):
        rounding = _rounding_before(widening)
        if rounding is None or data_bytes(widening.shape) < options.size:
            continue
        source = rounding.operands[0].shape
        yield Finding(
            f"%{rounding.name} rounds {source.type_name} to {rounding.shape.type_name}, and "
            f"%{widening.name} goes on in {widening.shape.type_name}: the values lose bits that "
            "nothing saves",
            widening,
            related=(rounding,),
        )


def _rounding_before(widening: Instruction) -> Instruction | None:
    """The convert to a narrower float that only feeds a convert to a wider one; None without."""
    value = widening.operands[0]
    while len(value.users) == 1 and not value.is_root and value.opcode in _ARRANGING:
        value = value.operands[0]
    if value.opcode is not Opcode.CONVERT or len(value.users) > 1 or value.is_root:
        return None
    source = value.operands[0]
    if not (_is_wider(source, value) and _is_wider(widening, value)):
        return None
    before = _arranged(source)
    held = before.opcode is Opcode.CONVERT and not _is_wider(before.operands[0], value)
    return None if held else value


def _is_wider(value: Instruction, other: Instruction) -> bool:
    """Whether the floats of one value have more bits than those of another."""
    wide, narrow = value.shape.element_type, other.shape.element_type
    if wide is None or narrow is None:
        return False
    return wide.is_floating and narrow.is_floating and wide.bits > narrow.bits


def _arranged(value: Instruction) -> Instruction:
    while value.opcode in _ARRANGING:
        value = value.operands[0]
    return value
