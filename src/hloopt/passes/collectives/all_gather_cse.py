"""Gather a parameter once where it is gathered several times."""

from __future__ import annotations

from hloopt.analysis.equality import ANNOTATIONS, Equality, Key
from hloopt.analysis.side_effects import SideEffects
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import post_order, stable_order
from hloopt.pass_framework.base import ModulePass, PassContext, XlaPass, register
from hloopt.passes.rewriting.replace import replace_instruction
from hloopt.passes.simplification.dce import DeadCode, DeadCodeElimination

_REARRANGING = frozenset(
    (Opcode.GET_TUPLE_ELEMENT, Opcode.CONVERT, Opcode.BITCAST, Opcode.RESHAPE, Opcode.COPY)
)


@register(
    "all-gather-cse",
    preserves="bits",
    xla=XlaPass(
        "AllGatherCSE", "xla/hlo/transforms/collectives/all_gather_cse.h", compared="nothing"
    ),
)
class AllGatherCse(ModulePass):
    """Replace all-gathers of a parameter by the first one that gathers the same.

    `cse` leaves collectives with channels alone; this pass ignores their channel ids. They are the
    same if all else agrees and their operands are one parameter of the computation, or made of it
    by equal get-tuple-elements, converts, bitcasts, reshapes or copies. All-gathers of anything
    else stay: a gathered weight is worth its memory, a gathered activation may not be. What only
    a replaced one read is removed. Linear in the module's size.
    """

    def run(self, module: Module, context: PassContext) -> bool:
        before = module.version
        found = module.computations_with(Opcode.ALL_GATHER)
        if found:
            equality = Equality(is_layout_sensitive=True, ignored=ANNOTATIONS | {"channel_id"})
            dead = DeadCode(SideEffects(module), DeadCodeElimination.Options(), PassContext())
            for computation in found:
                _merge(computation, equality, dead, context)
        return module.version != before


def _merge(
    computation: Computation, equality: Equality, dead: DeadCode, context: PassContext
) -> None:
    in_order = stable_order if computation.module.is_scheduled else post_order
    order = in_order(computation)
    values: dict[Instruction, Key] = {}
    """A key of each value that is made of a parameter alone."""
    first: dict[Key, Instruction] = {}
    for instruction in order:
        if instruction.opcode is Opcode.PARAMETER:
            values[instruction] = (instruction.parameter_number,)
        elif instruction.opcode in _REARRANGING and instruction.operands[0] in values:
            values[instruction] = _key(instruction, equality, values)
        elif instruction.opcode is Opcode.ALL_GATHER:
            if reason := _why_not(instruction, values):
                context.missed(instruction, reason)
                continue
            earlier = first.setdefault(_key(instruction, equality, values), instruction)
            if earlier is not instruction:
                if not context.apply(instruction, f"%{earlier.name} gathers the same"):
                    break
                context.count("all-gathers replaced")
                operands = list(instruction.operands)
                replace_instruction(instruction, earlier)
                dead.remove_dead(operands)


def _key(instruction: Instruction, equality: Equality, values: dict[Instruction, Key]) -> Key:
    return equality.operation(instruction), tuple(values[o] for o in instruction.operands)


def _why_not(gather: Instruction, values: dict[Instruction, Key]) -> str | None:
    """The reason why an all-gather is neither replaced nor stands for another one."""
    for operand in gather.operands:
        if operand not in values:
            return f"%{operand.name} is made of more than a parameter"
    if gather.has_control_dependencies:
        return "it has control dependencies"
    return None
