"""Rules about layouts: copies that only change them, elements that take more than they need."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hloopt.checks.lint.costs import runs_text
from hloopt.checks.lint.model import Finding, RuleOptions, rule
from hloopt.checks.lint.needs import not_scheduled
from hloopt.checks.results import Impact
from hloopt.checks.view import View
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape import Shape
from hloopt.ir.shapes.shape_size import data_bytes
from hloopt.options import Bytes, option

_MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class UnpackedOptions(RuleOptions):
    """Options of `unpacked-sub-byte`."""

    size: Bytes = option(_MIB, "the least bytes that packing saves")


@rule("HLL304", "unpacked-sub-byte", not_scheduled, options=UnpackedOptions)
def unpacked_sub_byte(view: View, options: UnpackedOptions) -> Iterator[Finding]:
    """Arrays whose elements are narrower than the byte that each takes. O(instructions)."""
    module = view.subject.module
    for computation in module.computations.values():
        if view.facts.is_in_fusion(computation):
            continue
        for instruction in computation.instructions:
            unpacked = [leaf for leaf in instruction.shape.leaves() if _waste(leaf)]
            waste = sum(map(_waste, unpacked))
            if not unpacked or waste < options.size or not _defines(instruction):
                continue
            is_argument = instruction.opcode is Opcode.PARAMETER
            name = f"{'argument ' if is_argument else ''}%{instruction.name}"
            runs = view.runs(instruction).times
            yield Finding(
                f"{name} takes a byte for each element of {unpacked[0].type_name}"
                f"{runs_text(view, instruction)}",
                instruction,
                Impact(moved=waste * runs, memory=waste if is_argument else 0),
            )


def _waste(shape: Shape) -> int:
    """The bytes that packing an array would save; 0 where it is packed, or cannot be."""
    element = shape.element_type
    if element is None or element.bits not in _PACKED_BITS or element.kind == "pred":
        return 0
    packed = shape.with_layout(shape.layout._replace(element_bits=element.bits))
    return data_bytes(shape) - data_bytes(packed)


_PACKED_BITS = (1, 2, 4)
_HAND_ON = frozenset(
    (
        *(Opcode.TUPLE, Opcode.GET_TUPLE_ELEMENT, Opcode.BITCAST, Opcode.OPT_BARRIER),
        *(Opcode.WHILE, Opcode.CALL, Opcode.CONDITIONAL, Opcode.DOMAIN, Opcode.ADD_DEPENDENCY),
        *(Opcode.ASYNC_START, Opcode.ASYNC_UPDATE, Opcode.ASYNC_DONE),
        *(Opcode.ALL_GATHER_DONE, Opcode.ALL_REDUCE_DONE, Opcode.COLLECTIVE_PERMUTE_DONE),
        *(Opcode.COPY_DONE, Opcode.SEND_DONE, Opcode.RECV_DONE),
    )
)
"""Opcodes whose results others define, in the same layout."""


def _defines(instruction: Instruction) -> bool:
    """Whether an instruction makes its result, or is an argument of the program."""
    if instruction.opcode is Opcode.PARAMETER:
        return instruction.parent is instruction.parent.module.entry
    return instruction.opcode not in _HAND_ON
