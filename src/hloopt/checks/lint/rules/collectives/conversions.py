"""Rules about element types that are exchanged between devices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hloopt.analysis.async_operations import async_form
from hloopt.analysis.inventory.collectives import results_of
from hloopt.checks.doubts import not_partitioned
from hloopt.checks.lint.costs import collectives, runs_text
from hloopt.checks.lint.model import Finding, RuleOptions, rule
from hloopt.checks.results import Impact, Severity
from hloopt.checks.view import View
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape import Shape
from hloopt.options import Bytes, option

_MOVING = frozenset(
    (
        *(Opcode.ALL_GATHER, Opcode.ALL_TO_ALL, Opcode.COLLECTIVE_PERMUTE),
        Opcode.COLLECTIVE_BROADCAST,
    )
)
"""Collectives that compute nothing, so that a conversion may stand behind as well as before.

A ragged-all-to-all writes into an array that it takes, which is wide.
"""
_REDUCING = frozenset((Opcode.ALL_REDUCE, Opcode.REDUCE_SCATTER))
_HANDS_ON = frozenset(
    (Opcode.BITCAST, Opcode.COPY, Opcode.TRANSPOSE, Opcode.RESHAPE, Opcode.OPT_BARRIER)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversionOptions(RuleOptions):
    """Options of the rules about conversions beside collectives."""

    size: Bytes = option(64 * 1024, "the least bytes that a collective is about")


@rule("HLL112", "convert-before-collective", not_partitioned, options=ConversionOptions)
def convert_before_collective(view: View, options: ConversionOptions) -> Iterator[Finding]:
    """Data that is converted to a wider type and then moved. O(instructions)."""
    for each in collectives(view):
        if each.kind not in _MOVING or not each.wire or each.payload < options.size:
            continue
        wide, narrow = 0, 0
        converts: list[Instruction] = []
        for operand in each.instruction.operands:
            convert = _widening(operand)
            bits = _bits(operand.shape)
            wide += bits
            if convert is None:
                narrow += bits
            else:
                ratio = _width(convert.operands[0].shape) / _width(convert.shape)
                narrow += int(bits * ratio)
                converts.append(convert)
        if not converts:
            continue
        start = each.instruction
        saved = int(each.wire * (1 - narrow / wide)) * view.runs(start).times
        yield Finding(
            f"%{start.name} moves {converts[0].shape.type_name} that %{converts[0].name} made of "
            f"{converts[0].operands[0].shape.type_name}: the conversion could follow it"
            f"{runs_text(view, start)}",
            start,
            Impact(moved=saved),
            related=tuple(converts),
        )


@rule(
    *("HLL113", "narrowed-after-reduce", not_partitioned),
    options=ConversionOptions,
    severity=Severity.NOTE,
)
def narrowed_after_reduce(view: View, options: ConversionOptions) -> Iterator[Finding]:
    """All-reduces and reduce-scatters whose result is only read in a narrower type."""
    for each in collectives(view):
        if each.kind not in _REDUCING or not each.wire or each.payload < options.size:
            continue
        results = results_of(each)
        readers = [user for result in results for user in result.users]
        if not readers or any(result.is_root for result in results):
            continue
        converts = [convert for reader in readers if (convert := _narrowing(reader))]
        if len(converts) < len(readers):
            continue
        start, first = each.instruction, converts[0]
        ratio = _width(first.shape) / _width(first.operands[0].shape)
        yield Finding(
            f"%{start.name} reduces {first.operands[0].shape.type_name} of which only "
            f"{first.shape.type_name} is read; a narrower one sends less, and rounds otherwise"
            f"{runs_text(view, start)}",
            start,
            Impact(moved=int(each.wire * (1 - ratio)) * view.runs(start).times),
            related=tuple(readers),
        )


def _widening(value: Instruction) -> Instruction | None:
    """The conversion to a wider type that a value comes from, if nothing else changes it."""
    while True:
        if value.opcode in _HANDS_ON:
            value = value.operands[0]
        elif value.opcode is Opcode.FUSION:
            value = value.called[0].root
        elif value.opcode is Opcode.PARAMETER and len(value.parent.callers) == 1:
            (caller,) = value.parent.callers
            if async_form(caller).outer is not Opcode.ASYNC_START:
                return None
            value = caller.operands[value.parameter_number]
        else:
            return value if value.opcode is Opcode.CONVERT and _is_exact(value) else None


def _is_exact(convert: Instruction) -> bool:
    """Whether every value of a type is one of the wider type: of floats, or of integers."""
    narrow, wide = convert.operands[0].shape.element_type, convert.shape.element_type
    if narrow is None or wide is None or narrow.name == "f8e8m0fnu" or wide.bits <= narrow.bits:
        return False
    return narrow.kind == wide.kind and wide.kind in ("float", "signed", "unsigned")


def _narrowing(reader: Instruction) -> Instruction | None:
    """The conversion to a narrower float type that is all an instruction does with its operand."""
    convert = reader
    if reader.opcode is Opcode.FUSION:
        convert = _without_moves(reader.called[0].root)
    if convert.opcode is not Opcode.CONVERT:
        return None
    if reader.opcode is Opcode.FUSION:
        source = _without_moves(convert.operands[0])
        if source.opcode is not Opcode.PARAMETER or len(source.users) > 1:
            return None
    wide, narrow = convert.operands[0].shape.element_type, convert.shape.element_type
    is_float = wide is not None and narrow is not None and wide.is_floating and narrow.is_floating
    is_narrower = _width(convert.shape) < _width(convert.operands[0].shape)
    return convert if is_float and is_narrower else None


def _without_moves(value: Instruction) -> Instruction:
    """The value that others only hand on in another form."""
    while value.opcode in _HANDS_ON:
        value = value.operands[0]
    return value


def _width(shape: Shape) -> int:
    """The bits of an element."""
    assert shape.element_type is not None  # of an array
    return shape.element_type.bits


def _bits(shape: Shape) -> int:
    return shape.element_count() * _width(shape) if shape.is_array else 0
