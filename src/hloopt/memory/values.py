"""Which values a module computes, and which instruction holds which of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from hloopt.analysis.liveness import FlatSchedule, callees_in_order
from hloopt.diagnostics import HloVerifyError
from hloopt.ir import Instruction, Opcode
from hloopt.memory.sizes import slots_of

Held = tuple[int, ...]


@dataclass(slots=True)
class Values:
    """The values of a module: results that need memory of their own, numbered from 0.

    An instruction holds one value per slot of its shape. It either defines it, or passes on an
    operand's, as get-tuple-element does. The state of a while has a value of its own where the
    body changes it. O(slots held).
    """

    schedule: FlatSchedule
    held: dict[Instruction, Held] = field(default_factory=dict)
    definer: list[Instruction] = field(default_factory=list)
    slot: list[int] = field(default_factory=list)
    start: list[int] = field(default_factory=list)
    """The position in the schedule from which on each value exists."""
    loops: dict[Instruction, LoopState] = field(default_factory=dict)
    conditionals: list[Instruction] = field(default_factory=list)
    """Those whose branches' results must end in one place."""
    entry_parameters: list[Instruction] = field(default_factory=list)

    @classmethod
    def of(cls, schedule: FlatSchedule) -> Values:
        """Number the values in schedule order. Raises HloVerifyError where shapes do not fit."""
        values = cls(schedule)
        for position, instruction in enumerate(schedule.steps):
            values._check_operands(instruction)
            held = _HOLDS.get(instruction.opcode, Values._define_all)(values, instruction, position)
            if len(held) != len(slots_of(instruction.shape).sizes):
                raise _misfit(instruction)
            values.held[instruction] = held
        return values

    def size(self, value: int) -> int:
        """Bytes of a value."""
        return slots_of(self.definer[value].shape).sizes[self.slot[value]]

    def memory_space(self, value: int) -> int:
        """The memory space `S(n)` of a value."""
        return slots_of(self.definer[value].shape).memory_spaces[self.slot[value]]

    def is_tuple(self, value: int) -> bool:
        """Whether a value is the pointer table of a tuple."""
        return slots_of(self.definer[value].shape).is_tuple[self.slot[value]]

    def index(self, value: int) -> tuple[int, ...]:
        """The shape index at which a value is defined."""
        return slots_of(self.definer[value].shape).indices[self.slot[value]]

    def element(self, instruction: Instruction, number: int) -> Held:
        """The values of one element of a tuple."""
        shape = instruction.shape
        if number >= len(shape.elements):
            raise HloVerifyError(
                f"'%{instruction.name}' has no tuple element {number}",
                span=instruction.parent.module.span_of(instruction),
            )
        return self.held[instruction][slots_of(shape).element(number)]

    def _check_operands(self, instruction: Instruction) -> None:
        for operand in instruction.operands:
            if operand not in self.held:
                raise HloVerifyError(
                    f"'%{instruction.name}' is scheduled before its operand '%{operand.name}'",
                    span=instruction.parent.module.span_of(instruction),
                )
        opcode = instruction.opcode
        if opcode in _HOLDS and opcode not in _MAY_LACK_OPERANDS and not instruction.operands:
            raise _misfit(instruction)

    # -- defining ---------------------------------------------------------------------------

    def _define(self, instruction: Instruction, slot: int, position: int) -> int:
        self.definer.append(instruction)
        self.slot.append(slot)
        self.start.append(position)
        return len(self.definer) - 1

    def _define_all(self, instruction: Instruction, position: int) -> Held:
        return self._define_rest(instruction, position)

    def _define_rest(
        self, instruction: Instruction, position: int, *passed: tuple[int, Held]
    ) -> Held:
        """Pass on values from the given slots on; pointer tables and the rest are new."""
        slots = slots_of(instruction.shape)
        held = [-1] * len(slots.sizes)
        for first, values in passed:
            if first + len(values) > len(held):
                raise _misfit(instruction)
            for slot, value in enumerate(values, first):
                if not slots.is_tuple[slot]:
                    held[slot] = value
        for slot, value in enumerate(held):
            if value < 0:
                held[slot] = self._define(instruction, slot, position)
        return tuple(held)

    def _pass_on(self, instruction: Instruction, position: int) -> Held:
        return self.held[instruction.operands[0]]

    def _tuple(self, instruction: Instruction, position: int) -> Held:
        held = [self._define(instruction, 0, position)]
        for operand in instruction.operands:
            held += self.held[operand]
        return tuple(held)

    def _get_tuple_element(self, instruction: Instruction, position: int) -> Held:
        return self.element(instruction.operands[0], instruction.tuple_index)

    def _copy(self, instruction: Instruction, position: int) -> Held:
        return (
            self._define(instruction, 0, position),
            *self.held[instruction.operands[0]][1:],
        )

    def _copy_start(self, instruction: Instruction, position: int) -> Held:
        starts = slots_of(instruction.shape).element_starts
        if len(starts) < 2:
            raise _misfit(instruction)
        return self._define_rest(
            instruction, position, (starts[1], self.held[instruction.operands[0]])
        )

    def _copy_done(self, instruction: Instruction, position: int) -> Held:
        return self.element(instruction.operands[0], 0)

    def _start_with_operands(self, instruction: Instruction, position: int) -> Held:
        """Element 0 is the first operand, or the tuple of all where they are several arrays."""
        data, *others = instruction.operands
        elements = instruction.shape.elements
        if not (elements and elements[0].is_tuple) or data.shape.is_tuple:
            return self._define_rest(instruction, position, (1, self.held[data]))
        arrays = [value for operand in (data, *others) for value in self.held[operand]]
        return self._define_rest(instruction, position, (2, tuple(arrays)))

    def _done(self, instruction: Instruction, position: int) -> Held:
        result = self.element(instruction.operands[0], 1)
        return self._define_rest(instruction, position, (0, result))

    def _recv_done(self, instruction: Instruction, position: int) -> Held:
        received = self.element(instruction.operands[0], 0)
        return self._define_rest(instruction, position, (1, received))

    # -- control flow -----------------------------------------------------------------------

    def _parameter(self, instruction: Instruction, position: int) -> Held:
        computation = instruction.parent
        begin = self.schedule.spans[computation][0]
        caller = self.schedule.first_call.get(computation)
        if caller is None:
            self.entry_parameters.append(instruction)
            return self._define_rest(instruction, begin)
        if caller.opcode is Opcode.WHILE:
            return self._loop_state(caller, instruction)
        operand = instruction.parameter_number
        if caller.opcode is Opcode.CONDITIONAL:
            operand = caller.called.index(computation) + 1
        if operand < len(caller.operands):
            return self.held[caller.operands[operand]]
        if caller.opcode is Opcode.ASYNC_START or caller.parent.is_sugar:  # an update binds it
            return self._define_rest(instruction, begin)
        raise _misfit(caller)

    def _loop_state(self, loop: Instruction, parameter: Instruction) -> Held:
        state = self.loops.get(loop)
        if state is None:
            begin = self.schedule.spans[callees_in_order(loop)[0]][0]
            inside = self._define_rest(parameter, begin)
            state = self.loops[loop] = LoopState(self.held[loop.operands[0]], inside)
        return state.inside

    def _while(self, instruction: Instruction, position: int) -> Held:
        body = instruction.called[0]
        initial = self.held[instruction.operands[0]]
        if not self.schedule.is_entered_by(body, instruction):
            after = self._define_rest(instruction, position)
            self.loops[instruction] = LoopState(initial, after, after, after)
            return after
        state = self.loops.get(instruction)
        new = self.held[body.root]
        if state is None or not len(initial) == len(state.inside) == len(new):
            raise _misfit(instruction)
        state.next = new
        state.after = tuple(
            before if following == inside else self._define(instruction, slot, position)
            for slot, (before, inside, following) in enumerate(
                zip(initial, state.inside, new, strict=True)
            )
        )
        return state.after

    def _conditional(self, instruction: Instruction, position: int) -> Held:
        self.conditionals.append(instruction)
        return self._define_rest(instruction, position)

    def _call(self, instruction: Instruction, position: int) -> Held:
        callee = instruction.called[0]
        if self.schedule.is_entered_by(callee, instruction):
            return self.held[callee.root]
        return self._define_rest(instruction, position)

    def _async_start(self, instruction: Instruction, position: int) -> Held:
        """Element 0 holds the operands, element 1 the result of the wrapped computation."""
        starts = slots_of(instruction.shape).element_starts
        operands = tuple(v for operand in instruction.operands for v in self.held[operand])
        passed = [(2, operands)]
        callee = instruction.called[0]
        if self.schedule.is_entered_by(callee, instruction) and len(starts) > 1:
            passed.append((starts[1], self.held[callee.root]))
        return self._define_what_does_not_fit(instruction, position, passed)

    def _async_update(self, instruction: Instruction, position: int) -> Held:
        before = self.held[instruction.operands[0]]
        return self._define_what_does_not_fit(instruction, position, [(0, before)])

    def _define_what_does_not_fit(
        self, instruction: Instruction, position: int, passed: list[tuple[int, Held]]
    ) -> Held:
        """As `_define_rest`; parts that an update binds later can be missing or differ."""
        slots = slots_of(instruction.shape)
        fitting = [
            (first, values)
            for first, values in passed
            if tuple(map(self.is_tuple, values)) == slots.is_tuple[first : first + len(values)]
        ]
        return self._define_rest(instruction, position, *fitting)


@dataclass(slots=True)
class LoopState:
    """The values of a while's state: before it, in condition and body, the body's result, after.

    In a slot that the body passes through unchanged, `next` equals `inside`, `after` `initial`.
    """

    initial: Held
    inside: Held
    next: Held = ()
    after: Held = ()


def _misfit(instruction: Instruction) -> HloVerifyError:
    return HloVerifyError(
        f"the shape of '%{instruction.name}' does not fit its operands or called computations",
        span=instruction.parent.module.span_of(instruction),
    )


_MAY_LACK_OPERANDS = (Opcode.TUPLE, Opcode.PARAMETER, Opcode.CALL, Opcode.ASYNC_START)

_HOLDS: dict[Opcode, Callable[[Values, Instruction, int], Held]] = {
    **dict.fromkeys(
        (
            *(Opcode.BITCAST, Opcode.OPT_BARRIER, Opcode.DOMAIN),
            *(Opcode.ADD_DEPENDENCY, Opcode.ALL_REDUCE_DONE),
        ),
        Values._pass_on,
    ),
    Opcode.TUPLE: Values._tuple,
    Opcode.GET_TUPLE_ELEMENT: Values._get_tuple_element,
    Opcode.COPY: Values._copy,
    Opcode.COPY_START: Values._copy_start,
    Opcode.COPY_DONE: Values._copy_done,
    Opcode.ALL_GATHER_START: Values._start_with_operands,
    Opcode.COLLECTIVE_PERMUTE_START: Values._start_with_operands,
    Opcode.SEND: Values._start_with_operands,
    Opcode.ALL_GATHER_DONE: Values._done,
    Opcode.COLLECTIVE_PERMUTE_DONE: Values._done,
    Opcode.ASYNC_DONE: Values._done,
    Opcode.RECV_DONE: Values._recv_done,
    Opcode.PARAMETER: Values._parameter,
    Opcode.WHILE: Values._while,
    Opcode.CONDITIONAL: Values._conditional,
    Opcode.CALL: Values._call,
    Opcode.ASYNC_START: Values._async_start,
    Opcode.ASYNC_UPDATE: Values._async_update,
}
