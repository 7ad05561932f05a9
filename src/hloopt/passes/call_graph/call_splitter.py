"""Split what is called into a first and a second part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from hloopt.analysis.calls import callees_first, calls_by_computation
from hloopt.ir.attributes.typed import is_composite
from hloopt.ir.clone import copy_instructions, own_computations
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import stable_order
from hloopt.ir.shapes.shape import tuple_shape
from hloopt.ir.tuples import read_element
from hloopt.pass_framework.base import (
    ModulePass,
    PassContext,
    PassOptions,
    XlaPass,
    is_on_thread,
    option,
    register,
)
from hloopt.passes.rewriting.replace import attributes_for_another_value
from hloopt.verifier.async_chains import CONSUMERS

Predicate = Callable[[Instruction], bool]


@register(
    "call-splitter",
    preserves="bits",
    xla=XlaPass("CallSplitter", "xla/hlo/transforms/call_splitter.h", compared="tests"),
)
class CallSplitter(ModulePass):
    """Split the computations of calls in two, along a boundary of chosen instructions.

    Down: the second part is the boundary and all that depends on it. Up: the first part is the
    boundary and all it depends on. Parameters belong to the first part, which hands what the second
    one needs on in a tuple. A call becomes a call of each part; a callee is split once for all its
    calls. call-parameter-cleanup, dce and tuple-simplifier then pass parameters directly to the
    part that uses them. Linear in the size of the module.
    """

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options(PassOptions):
        boundary: tuple[Opcode, ...] | Predicate = option(
            (), "which instructions are the boundary: those with one of these opcodes"
        )
        direction: Literal["down", "up"] = option(
            "down", "whether the boundary begins the second part or ends the first"
        )
        call_predicate: Predicate | None = option(None, "whether a call may be split")
        execution_threads: tuple[str, ...] = option((), "only callees on these; none: all")

    options: Options

    def run(self, module: Module, context: PassContext) -> bool:
        parts: dict[Computation, _Parts | str] = {}
        calls = calls_by_computation(module)
        changed = False
        for computation in callees_first(module, calls):
            placed: dict[Instruction, list[Instruction]] = {}
            for call in calls.get(computation, ()):
                if call.opcode is not Opcode.CALL:
                    continue
                if reason := self.why_not(call):
                    context.missed(call, reason)
                    continue
                if context.is_at_limit:
                    break  # before the callee is split, which makes computations
                callee = call.called[0]
                if callee not in parts:
                    parts[callee] = self._split(callee)
                found = parts[callee]
                if isinstance(found, str):
                    context.missed(call, f"%{callee.name} stays whole: {found}")
                    continue
                context.apply(call, f"split into %{found.first.name} and %{found.second.name}")
                context.count("calls split")
                placed[call] = found.call_both(call)
            _remove(computation, placed)
            changed |= bool(placed)
        return changed

    def why_not(self, call: Instruction) -> str | None:
        """The reason why a call is not looked at, or None where its callee decides."""
        callee = call.called[0]
        if not is_on_thread(callee, self.options.execution_threads):
            return f"%{callee.name} is on another thread"
        if call.has_control_dependencies:
            return "it has control dependencies"
        if call.parent.is_asynchronous:
            return "it runs asynchronously"
        if is_composite(call):
            return "it is a composite, which means something as a whole"
        if callee.root.opcode is not Opcode.TUPLE:
            return f"the root of %{callee.name} is not a tuple but {callee.root.opcode}"
        if self.options.call_predicate and not self.options.call_predicate(call):
            return "the call predicate does not want it"
        return None

    def _is_boundary(self, instruction: Instruction) -> bool:
        boundary = self.options.boundary
        return boundary(instruction) if callable(boundary) else instruction.opcode in boundary

    def _split(self, callee: Computation) -> _Parts | str:
        """The two parts as new computations; a string says why there are none. O(callee)."""
        boundary = [i for i in callee.instructions if self._is_boundary(i)]
        if not boundary:
            return "it has no boundary"
        if self.options.direction == "down":
            second = _closure(boundary, _dependents)
        else:
            before = _closure(boundary, _dependencies)
            second = {i for i in callee.instructions if i not in before}
        second = {i for i in second if i.opcode is not Opcode.PARAMETER}
        first = [i for i in callee.instructions if i not in second]
        if callee.root not in second:
            return "its root does not come after the boundary"
        if all(i.opcode is Opcode.PARAMETER for i in first):
            return "nothing comes before the boundary"
        if len(second) == 1:
            return "nothing but its root comes after the boundary"
        for instruction in first:
            edges = (*instruction.control_predecessors, *instruction.control_successors)
            if not second.isdisjoint(edges):
                return f"a control dependency of %{instruction.name} crosses the boundary"
            if instruction.opcode in CONSUMERS and not second.isdisjoint(instruction.users):
                return f"%{instruction.name} is still under way at the boundary"
        return _Parts.of(callee, second)


@dataclass(slots=True)
class _Parts:
    """The parts that a computation was split into."""

    first: Computation
    second: Computation

    @classmethod
    def of(cls, callee: Computation, second: set[Instruction]) -> _Parts:
        """Copies of the instructions in `second` and of all others. O(callee)."""
        result = cls(_new_part(callee, "first"), _new_part(callee, "second"))
        before = [i for i in stable_order(callee) if i not in second]
        outputs = [i for i in before if not second.isdisjoint(i.users)]
        copies = _copy(before, result.first, {})
        shape = tuple_shape(output.shape for output in outputs)
        passed = [copies[output] for output in outputs]
        result.first.set_root(result.first.add(Opcode.TUPLE, shape, passed))

        inputs = {
            output: result.second.add(
                Opcode.PARAMETER, output.shape, name=f"first_output_{number}", payload=str(number)
            )
            for number, output in enumerate(outputs)
        }
        after = [i for i in stable_order(callee) if i in second]
        copies = _copy(after, result.second, inputs)
        result.second.set_root(copies[callee.root])
        return result

    def call_both(self, call: Instruction) -> list[Instruction]:
        """Call both parts in place of `call`, which stays behind without users; what was made."""
        computation, shape = call.parent, self.first.root.shape
        attributes = attributes_for_another_value(call)
        first = computation.add(
            Opcode.CALL, shape, call.operands, name=call.name, attributes=attributes,
            called=(self.first,),
        )  # fmt: skip
        elements = [read_element(first, index) for index in range(len(shape.elements))]
        second = computation.add(
            Opcode.CALL, call.shape, elements, name=call.name, attributes=call.attributes,
            called=(self.second,),
        )  # fmt: skip
        call.replace_all_uses_with(second)
        return [first, *elements, second]


def _new_part(callee: Computation, name: str) -> Computation:
    part = callee.module.add_computation(f"{callee.name}.{name}")
    part.execution_thread = callee.execution_thread
    return part


def _copy(
    instructions: list[Instruction], into: Computation, inputs: dict[Instruction, Instruction]
) -> dict[Instruction, Instruction]:
    copies = copy_instructions(instructions, into, inputs)
    for instruction in instructions:
        own_computations(copies[instruction])
    return copies


def _closure(
    start: list[Instruction], neighbours: Callable[[Instruction], list[Instruction]]
) -> set[Instruction]:
    """`start` and all that is reached from it. O(edges)."""
    found = set(start)
    stack = list(start)
    while stack:
        for other in neighbours(stack.pop()):
            if other not in found:
                found.add(other)
                stack.append(other)
    return found


def _dependents(instruction: Instruction) -> list[Instruction]:
    return [*instruction.users, *instruction.control_successors]


def _dependencies(instruction: Instruction) -> list[Instruction]:
    return [*instruction.operands, *instruction.control_predecessors]


def _remove(computation: Computation, placed: dict[Instruction, list[Instruction]]) -> None:
    """Remove the calls, and put what was made for each in its place in the schedule."""
    if placed and computation.module.is_scheduled:
        computation.splice(placed)
    for call in placed:
        computation.remove(call)
