"""Let loops use constants in the place of elements of their state that always have one value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hloopt.ir.clone import copy_instructions
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import repair_schedule, stable_order
from hloopt.pass_framework.base import (
    ModulePass,
    PassContext,
    PassOptions,
    XlaPass,
    option,
    register,
)
from hloopt.passes.control_flow.loop_invariants.hoisting import invariant_elements
from hloopt.passes.simplification.dce import remove_unreachable, unreachable_computations


@register(
    "while-loop-constant-sinking",
    preserves="bits",
    xla=XlaPass("WhileLoopConstantSinking", "xla/service/while_loop_constant_sinking.h"),
)
class WhileLoopConstantSinking(ModulePass):
    """Let loops use a constant where it is an element of their first state that no trip changes.

    Body and condition get a copy of it, so that they can be simplified by its value; the state
    stays as it is. They become copies with `.sunk` behind their names where something reads the
    element there. Outer loops come before inner ones, so that constants go all the way in. Linear
    in the size of the loops that change.
    """

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options(PassOptions):
        sink_broadcast_of_constants: bool = option(False, "sink broadcasts of constants, too")
        sink_only_scalar_constants: bool = option(False, "sink only elements of rank 0")

    options: Options

    def run(self, module: Module, context: PassContext) -> bool:
        unreachable = unreachable_computations(module)
        touched: list[Computation] = []
        visited: set[Computation] = set()
        waiting = [module.entry]
        while waiting:
            computation = waiting.pop()
            if computation in visited:
                continue
            visited.add(computation)
            for caller in list(computation.instructions):
                if caller.opcode is Opcode.WHILE and caller.shape.is_tuple:
                    touched += self._sink(caller, context)
                waiting += caller.called
        if not touched:
            return False
        repair_schedule(touched)
        remove_unreachable(module, unreachable)
        return True

    def _sink(self, loop: Instruction, context: PassContext) -> list[Computation]:
        """Let a loop use its constants; returns the new computations."""
        constants = self._constants(loop, context)
        body, condition = loop.called
        of_body = {read: c for read, c in constants.items() if len(read.users) > 1}
        (state,) = condition.parameters
        by_index = {read.tuple_index: constant for read, constant in constants.items()}
        of_condition = {
            user: by_index[user.tuple_index]
            for user in state.users
            if user.opcode is Opcode.GET_TUPLE_ELEMENT
            and user.tuple_index in by_index
            and (user.users or user.is_root)
            and not user.has_control_dependencies
        }
        if not of_body and not of_condition:
            return []
        sunk = dict.fromkeys([*of_body.values(), *of_condition.values()])
        names = ", ".join(f"%{constant.name}" for constant in sunk)
        if not context.apply(loop, f"it uses {names} itself"):
            return []
        context.count("constants sunk", len(sunk))
        new_body = _with_constants(body, of_body, body.root) if of_body else body
        new_condition = _with_constants(condition, of_condition) if of_condition else condition
        loop.set_called((new_body, new_condition))
        return [c for c in (new_body, new_condition) if c not in (body, condition)]

    def _constants(self, loop: Instruction, context: PassContext) -> dict[Instruction, Instruction]:
        """The reads of elements in the body that always have one value, with that constant."""
        (init,) = loop.operands
        if init.opcode is not Opcode.TUPLE:
            context.missed(loop, f"its first state %{init.name} is no tuple of constants")
            return {}
        found = {}
        for read in invariant_elements(loop):
            value = init.operands[read.tuple_index]
            if not self._is_constant(value):
                continue
            if self.options.sink_only_scalar_constants and not value.shape.is_scalar:
                context.missed(loop, f"%{value.name} is no scalar")
            else:
                found[read] = value
        return found

    def _is_constant(self, value: Instruction) -> bool:
        if self.options.sink_broadcast_of_constants and value.opcode is Opcode.BROADCAST:
            (value,) = value.operands
        return value.opcode is Opcode.CONSTANT


def _with_constants(
    computation: Computation,
    constants: Mapping[Instruction, Instruction],
    giving_on: Instruction | None = None,
) -> Computation:
    """A copy of body or condition that reads constants instead, but for what gives them on."""
    made = computation.module.add_computation(f"{computation.name}.sunk")
    made.execution_thread = computation.execution_thread
    copies = copy_instructions(stable_order(computation), made, {})
    made.set_root(copies[computation.root])
    for read, constant in constants.items():
        element, sunk = copies[read], _copy(constant, made)
        for user in list(element.users):
            if giving_on is None or user is not copies[giving_on]:
                user.exchange_operand(element, sunk)
                continue
            for place, operand in enumerate(user.operands):
                if operand is element and place != read.tuple_index:
                    user.replace_operand(place, sunk)
        if element.is_root:
            made.set_root(sunk)
        if not element.users and not element.is_root:
            made.remove(element)
    return made


def _copy(constant: Instruction, into: Computation) -> Instruction:
    operands = [_copy(operand, into) for operand in constant.operands]
    made = into.add_clone(constant, operands, name=f"{constant.name}.sunk")
    return made
