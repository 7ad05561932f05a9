"""The line of the program each instruction is from, also where its metadata does not say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hloopt.analysis.source_lines.model import LOST, NOWHERE, Basis, SourceLine
from hloopt.analysis.source_lines.moving import SAME_TUPLE, is_kept, moves
from hloopt.ir.async_chains import all_bound_operands
from hloopt.ir.attributes.formats import braces
from hloopt.ir.attributes.values import parse_metadata
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import ASYNC, Opcode
from hloopt.ir.ordering import depth_first
from hloopt.ir.sources.source_stacks import op_name_of, stack_of
from hloopt.ir.sources.stacks import Stack

Index = tuple[int, ...]

_FROM_ELSEWHERE = (Opcode.PARAMETER, Opcode.CONSTANT)
_RUNS = frozenset((Opcode.FUSION, Opcode.CALL, Opcode.WHILE, Opcode.CONDITIONAL, *ASYNC))


class SourceLines:
    """The source lines of a module, which must not change meanwhile.

    An instruction whose metadata has no line gets one by the first of these rules that finds one:

    1. what runs a computation: that of the instruction nearest to the root of what it runs;
    2. what has an op_name and is in a called computation: that of the caller (it is a function
       of JAX, whose own frames JAX leaves out);
    3. what only moves data: that of its first operand; in a called computation that of what the
       caller passes; of what a loop changes that of the loop. An argument of the program, and
       what only moves one, is named as the argument;
    4. that of its nearest user;
    5. that of its first operand that has one, and is neither a parameter nor a constant: CSE
       merges constants, so that the one that is left may be from anywhere;
    6. in a called computation that of the caller.

    Of several callers the first counts. The frames of a `call` are below those of what it calls,
    as where it is inlined. Near-linear in the computations asked about and those that call them.
    """

    def __init__(self, module: Module) -> None:
        self.module = module
        self._found: dict[Computation, dict[Instruction, SourceLine]] = {}
        self._contexts: dict[Computation, Stack | None] = {}
        self._callers: dict[Computation, SourceLine] = {}
        self._results: dict[Computation, Stack | None] = {}
        self._elements: dict[tuple[Instruction, Index], SourceLine] = {}
        self._made: dict[tuple[Stack, Basis, bool], SourceLine] = {}
        self._stacked: dict[tuple[Stack, Stack], Stack] = {}

    def of(self, instruction: Instruction, index: Index = ()) -> SourceLine:
        """The line of an instruction, or of an element of its result."""
        self._prepare(instruction.parent)
        own = self._found[instruction.parent][instruction]
        if not index:
            return own
        element = self._element(instruction, index)
        if not element.label:
            return own
        return element if element is own else self._taken(element, Basis.OPERAND)

    def called_from(self, instruction: Instruction, caller: SourceLine) -> SourceLine:
        """The line of an instruction if its computation is called from a line."""
        own = stack_of(instruction)
        stack = self._on_top_of(own, caller.stack)
        if stack is None:
            return NOWHERE
        return self._line(stack, Basis.METADATA if own else Basis.CALLER, True)

    # -- computations, callers first ------------------------------------------------------------

    def _prepare(self, computation: Computation) -> None:
        path: list[Computation] = []
        while computation not in self._found:
            path.append(computation)
            caller = caller_of(computation)
            if caller is None:
                break
            computation = caller.parent
        for at in reversed(path):
            self._look_at(at, caller_of(at))

    def _look_at(self, computation: Computation, caller: Instruction | None) -> None:
        if caller is None:
            self._contexts[computation], self._callers[computation] = None, NOWHERE
        else:
            context = self._contexts[caller.parent]
            if caller.opcode is Opcode.CALL:
                context = self._on_top_of(stack_of(caller), context)
            self._contexts[computation] = context
            self._callers[computation] = self._found[caller.parent][caller]
        order = depth_first(computation.instructions, lambda i: i.operands)
        found = self._found[computation] = {i: self._anchor(i) for i in order}
        unknown = [instruction for instruction in order if found[instruction] is NOWHERE]
        users: dict[Instruction, SourceLine] = {}
        for instruction in reversed(unknown):
            users[instruction] = self._from_users(instruction, found, users)
        for instruction in unknown:
            found[instruction] = self._choose(instruction, users[instruction], found)

    def _from_users(
        self,
        instruction: Instruction,
        found: Mapping[Instruction, SourceLine],
        others: Mapping[Instruction, SourceLine],
    ) -> SourceLine:
        """The line of the nearest user; `others` has those of the users that have none."""
        for lines in (found, others):
            for user in instruction.users:
                if lines[user].stack is not None:
                    return self._taken(lines[user], Basis.USER)
        return NOWHERE

    def _choose(
        self, instruction: Instruction, user: SourceLine, found: Mapping[Instruction, SourceLine]
    ) -> SourceLine:
        """The line of an instruction by rules 3 to 6."""
        moved = self._moved(instruction, found) if moves(instruction) else NOWHERE
        if moved.label:
            return moved
        if user.stack is not None:
            return user
        if instruction.opcode is not Opcode.TUPLE:  # a table of pointers to several lines' values
            for operand in instruction.operands:
                if operand.opcode not in _FROM_ELSEWHERE and found[operand].stack is not None:
                    return self._taken(found[operand], Basis.OPERAND)
        caller = self._callers[instruction.parent]
        if caller.stack is not None:
            return self._taken(caller, Basis.CALLER)
        metadata = instruction.attributes.get("metadata")
        return LOST if metadata and parse_metadata(metadata).stack_frame_id else NOWHERE

    # -- lines that do not depend on operands and users -----------------------------------------

    def _anchor(self, instruction: Instruction) -> SourceLine:
        """The line of an instruction by its metadata or rules 1 and 2."""
        computation = instruction.parent
        if (own := stack_of(instruction)) is not None:
            return self._in_context(own, computation, Basis.METADATA)
        op_name = op_name_of(instruction)
        is_parameter = instruction.opcode is Opcode.PARAMETER
        if is_parameter and computation.is_entry:
            return SourceLine(Basis.ARGUMENT, argument=op_name or f"%{instruction.name}")
        if instruction.called and instruction.opcode in _RUNS:
            result = self._result(instruction.called[0])
            if result is not None:
                return self._in_context(result, computation, Basis.CALLEE)
        caller = self._callers[computation]
        if op_name and not is_parameter and caller.stack is not None:
            return self._taken(caller, Basis.CALLER)
        return NOWHERE

    def _result(self, computation: Computation) -> Stack | None:
        """The stack nearest to the root of a computation."""
        if computation not in self._results:
            for callee in depth_first([computation], self._run_without_line):
                self._results[callee] = self._nearest(callee)
        return self._results[computation]

    def _run_without_line(self, computation: Computation) -> Iterable[Computation]:
        if computation in self._results:
            return ()
        return [
            i.called[0]
            for i in computation.instructions
            if i.called and i.opcode in _RUNS and stack_of(i) is None
        ]

    def _nearest(self, computation: Computation) -> Stack | None:
        waiting = [computation.root]
        seen = {computation.root}
        for instruction in waiting:  # grows
            stack = stack_of(instruction)
            if stack is None and instruction.called and instruction.opcode in _RUNS:
                stack = self._results[instruction.called[0]]
            if stack is not None:
                return stack
            for operand in instruction.operands:
                if operand not in seen and operand.opcode is not Opcode.CONSTANT:
                    seen.add(operand)
                    waiting.append(operand)
        return None

    # -- what is moved --------------------------------------------------------------------------

    def _moved(
        self, instruction: Instruction, found: Mapping[Instruction, SourceLine]
    ) -> SourceLine:
        if instruction.opcode is Opcode.PARAMETER:
            line = self._element(instruction, ())
        elif instruction.opcode is Opcode.GET_TUPLE_ELEMENT:
            line = self._element(instruction.operands[0], (instruction.tuple_index,))
        else:
            operand = next(iter(instruction.operands), None)
            is_data = operand is not None and operand.opcode is not Opcode.CONSTANT
            line = found[operand] if operand is not None and is_data else NOWHERE
        return self._taken(line, Basis.OPERAND)

    def _element(self, instruction: Instruction, index: Index) -> SourceLine:
        """The line of what was put into a tuple, or passed to a parameter."""
        path: list[tuple[Instruction, Index]] = []
        at: tuple[Instruction, Index] | SourceLine = (instruction, index)
        while not isinstance(at, SourceLine):
            path.append(at)
            at = self._elements.get(at) or self._step(*at)
        self._elements.update(dict.fromkeys(path, at))
        return at

    def _step(
        self, instruction: Instruction, index: Index
    ) -> tuple[Instruction, Index] | SourceLine:
        """The place to look next, or the line."""
        computation = instruction.parent
        if instruction.opcode is Opcode.PARAMETER:
            if not computation.is_entry:
                return self._passed(instruction, index)
            line = self._found[computation][instruction]
            if not (index and line.argument):
                return line
            argument = line.argument + braces(map(str, index))
            return SourceLine(Basis.ARGUMENT, argument=argument)
        if index:
            operands = instruction.operands
            if instruction.opcode is Opcode.TUPLE:
                return operands[index[0]], index[1:]
            if instruction.opcode is Opcode.GET_TUPLE_ELEMENT:
                return operands[0], (instruction.tuple_index, *index)
            if instruction.opcode in SAME_TUPLE and stack_of(instruction) is None:
                return operands[0], index
        return self._found[computation][instruction]

    def _passed(
        self, parameter: Instruction, index: Index
    ) -> tuple[Instruction, Index] | SourceLine:
        """The operand that the caller gives to a parameter that is not the entry's."""
        computation = parameter.parent
        caller = caller_of(computation)
        if caller is None:
            return NOWHERE
        line = self._callers[computation]
        match caller.opcode:
            case Opcode.WHILE if index and (line.stack is None or is_kept(caller, index[0])):
                return caller.operands[0], index
            case Opcode.CONDITIONAL:
                return caller.operands[1 + caller.called.index(computation)], index
            case Opcode.FUSION | Opcode.CALL:
                return caller.operands[parameter.parameter_number], index
            case Opcode.ASYNC_START:
                return all_bound_operands(caller)[parameter.parameter_number], index
        return line

    # -- lines ----------------------------------------------------------------------------------

    def _in_context(self, stack: Stack, computation: Computation, basis: Basis) -> SourceLine:
        """The line of a stack on top of those of calls of the computation."""
        whole = self._on_top_of(stack, self._contexts[computation])
        assert whole is not None
        return self._line(whole, basis, whole.user_frame is not stack.user_frame)

    def _on_top_of(self, stack: Stack | None, below: Stack | None) -> Stack | None:
        if stack is None or below is None:
            return stack or below
        key = stack, below
        if key not in self._stacked:
            is_there = below.frames[0] in stack.frames
            self._stacked[key] = stack if is_there else Stack(stack.frames + below.frames)
        return self._stacked[key]

    def _line(self, stack: Stack, basis: Basis, is_callers: bool) -> SourceLine:
        key = stack, basis, is_callers
        line = self._made.get(key)
        if line is None:
            line = self._made[key] = SourceLine(basis, stack, is_callers=is_callers)
        return line

    def _taken(self, line: SourceLine, basis: Basis) -> SourceLine:
        """The line of another instruction; arguments, and none, stay what they are."""
        if line.stack is None:
            return line
        return self._line(line.stack, basis, line.is_callers or basis is Basis.CALLER)


def caller_of(computation: Computation) -> Instruction | None:
    """The first of what calls a computation."""
    return next(iter(computation.callers), None)
