"""Move converts to where values are narrow: behind rearrangements, or in front of them."""

from __future__ import annotations

from hloopt.analysis.calls import callees_first
from hloopt.ir.instruction import Instruction
from hloopt.ir.literals.literal import ELIDED
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.shape_inference.element_types import is_packed, with_type
from hloopt.ir.shapes.element_type import ElementType
from hloopt.pass_framework.base import ModulePass, PassContext, XlaPass, register
from hloopt.passes.rewriting.rules import Match, Missed, Result, op, rule
from hloopt.passes.rewriting.rules.engine import RuleEngine, Settings
from hloopt.passes.rewriting.rules.rule import RuleTable

_COMMUTING = ("concatenate", "pad", "reshape", "slice", "transpose")
_OPCODES = frozenset(map(Opcode, _COMMUTING))


@rule(op(_COMMUTING))
def convert_afterwards(match: Match) -> Result:
    """op(convert(x), …) -> convert(op(x, …)), where the convert widens."""
    root, build = match.root, match.build
    converts = [o for o in root.operands if o.opcode is Opcode.CONVERT]
    others = [o for o in root.operands if o.opcode is not Opcode.CONVERT]
    if not converts or any(o.opcode is not Opcode.CONSTANT for o in others):
        return None
    narrow = converts[0].operands[0].shape.type_name
    if not all(_widens(c) for c in converts):
        return None
    for convert in converts:
        if convert.operands[0].shape.type_name != narrow:
            return Missed("its operands are converted from several types")
        if len(convert.users) > 1 or convert.is_root:
            return Missed(f"%{convert.name} has other users")
    if is_packed(narrow):
        return Missed(f"{narrow} has fewer than 8 bits")
    for constant in others:
        if not _survives(constant, narrow):
            return Missed(f"%{constant.name} would not be the same in {narrow}")
    operands = [
        o.operands[0] if o.opcode is Opcode.CONVERT else build.convert(o, narrow)
        for o in root.operands
    ]
    moved = build.clone(root, operands, with_type(root.shape, narrow))
    return build.convert(moved, root.shape.type_name)


@rule(op("convert", op(_COMMUTING).named("moved")))
def convert_before(match: Match) -> Result:
    """convert(op(x, …)) -> op(convert(x), …), where the convert narrows."""
    root, moved, build = match.root, match.moved, match.build
    narrow = root.shape.type_name
    if not _bits(root) < _bits(moved):
        return None
    if len(moved.users) > 1 or moved.is_root:
        return Missed(f"%{moved.name} has other users")
    if is_packed(narrow):
        return Missed(f"{narrow} has fewer than 8 bits")
    operands = [build.convert(o, narrow) for o in moved.operands]
    return build.clone(moved, operands, root.shape)


_AFTERWARDS, _BEFORE = RuleTable((convert_afterwards,)), RuleTable((convert_before,))


@register(
    "convert-mover",
    preserves="bits",
    xla=XlaPass(
        "ConvertMover", "xla/hlo/transforms/simplifiers/convert_mover.h"
    ),
)  # fmt: skip
class ConvertMover(ModulePass):
    """Let rearrangements work on narrow values: widen behind them, narrow in front of them.

    First concatenates, pads, reshapes, slices and transposes whose operands are all widened from
    one type, for them alone, or constants that are the same in that type, are done in it. Then
    converts to fewer bits move in front of what they alone read, over several such operations.
    Types of fewer than 8 bits, truth values excepted, are left as they are. Linear in the number
    of instructions and moves.
    """

    def run(self, module: Module, context: PassContext) -> bool:
        widening = RuleEngine(module, _AFTERWARDS, context, Settings(max_sweeps=1))
        narrowing = RuleEngine(module, _BEFORE, context, Settings())
        changed = False
        for computation in callees_first(module):
            if not computation.is_fusion:
                changed = widening.run(computation) or changed
                changed = narrowing.run(computation) or changed
        return changed


def _type(instruction: Instruction) -> ElementType:
    kind = instruction.shape.element_type
    assert kind is not None
    return kind


def _bits(instruction: Instruction) -> int:
    return _type(instruction).bits


def _widens(convert: Instruction) -> bool:
    return _bits(convert.operands[0]) < _bits(convert)


def _survives(constant: Instruction, narrow: str) -> bool:
    """Whether a constant, converted to a type and back, is the same bit by bit."""
    import numpy as np

    from hloopt.interpreter.arithmetic.conversions import converted
    from hloopt.interpreter.literals import literal_value
    from hloopt.interpreter.values import dtype_of_shape

    if ELIDED in constant.payload:
        return False
    value = literal_value(constant.payload, constant.shape)
    with np.errstate(all="ignore"):
        there = converted(value, dtype_of_shape(with_type(constant.shape, narrow)))
        back = converted(there, value.dtype)
    return bool(back.tobytes() == value.tobytes())
