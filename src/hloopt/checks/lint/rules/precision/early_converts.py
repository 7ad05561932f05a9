"""The rule about values that are widened before they have to be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hloopt.analysis.in_place import InPlace
from hloopt.checks.doubts import not_fused
from hloopt.checks.lint.costs import runs_text
from hloopt.checks.lint.model import Finding, RuleOptions, rule
from hloopt.checks.lint.readers import behind_bitcasts, can_compute, readers
from hloopt.checks.results import Impact
from hloopt.checks.view import View
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape_size import data_bytes
from hloopt.options import Bytes, option

_MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlyConvertOptions(RuleOptions):
    """Options of `early-convert`."""

    size: Bytes = option(_MIB, "the least bytes that a later convert saves in all runs")


@rule("HLL305", "early-convert", not_fused, options=EarlyConvertOptions)
def early_convert(view: View, options: EarlyConvertOptions) -> Iterator[Finding]:
    """Kernels that write wide what their readers could widen. O(instructions)."""
    in_place = InPlace()
    for computation in view.subject.module.computations.values():
        if not view.runs(computation.root).times or view.facts.is_in_fusion(computation):
            continue
        for kernel in computation.instructions:
            convert = _widening_at_root(kernel)
            if convert is None or kernel.is_root:
                continue
            read_by = list(readers(kernel))
            narrow = convert.operands[0].shape
            less = data_bytes(convert.shape) - data_bytes(narrow)
            saved = less * (1 + len(read_by)) * view.runs(kernel).times
            if saved < options.size or not read_by:
                continue
            if all(_can_widen(reader, kernel, in_place) for reader in read_by):
                yield Finding(
                    f"%{kernel.name} writes {convert.shape.type_name} what is {narrow.type_name} "
                    f"and is widened by its last operation; %{read_by[0].name} could widen it"
                    f"{runs_text(view, kernel)}",
                    kernel,
                    Impact(moved=saved),
                    related=tuple(read_by),
                )


def _widening_at_root(kernel: Instruction) -> Instruction | None:
    """The convert to more bits that is the last operation of a kernel with one result."""
    value = kernel.called[0].root if kernel.opcode is Opcode.FUSION else kernel
    if kernel.opcode is Opcode.FUSION:
        value = behind_bitcasts(value)
    if value.opcode is not Opcode.CONVERT:
        return None
    return value if data_bytes(value.shape) > data_bytes(value.operands[0].shape) else None


def _can_widen(reader: Instruction, value: Instruction, in_place: InPlace) -> bool:
    """Whether a reader can take a value narrow: it is fusible, and does not overwrite it."""
    overwritten = {pair.operand for pair in in_place.pairs(reader)}
    return can_compute(reader) and not any(
        behind_bitcasts(reader.operands[number]) is value for number in overwritten
    )
