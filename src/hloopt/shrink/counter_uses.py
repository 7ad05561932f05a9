"""The loops that depend on how many trips they make: those keep them."""

from __future__ import annotations

from collections.abc import Sequence

from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.leaves import element_range
from hloopt.shrink.counters import CountedLoop, Counter, is_index, is_never, is_never_chosen, joins
from hloopt.shrink.factors import Factor, keep, leaves
from hloopt.shrink.facts import Fact, Facts, ValueFacts

_HAND_ON = (Opcode.TUPLE, Opcode.GET_TUPLE_ELEMENT, Opcode.OPT_BARRIER)
_COMPUTE = (Opcode.COPY, Opcode.ADD, Opcode.SUBTRACT)
_COPIES = (Opcode.COPY, Opcode.COPY_START, Opcode.COPY_DONE)


def keep_trips(module: Module, facts: ValueFacts) -> None:
    """Let loops have as many trips as they have unless these only count indexed layers.

    O(leaves of the module's shapes), and some passes over the bodies of counted loops.
    """
    if not facts.loops:
        return
    uses = _Uses(facts)
    for computation in module.computations.values():
        for instruction in computation.instructions:
            uses.check(instruction)
    _keep(facts.leaves_of(module.entry.root), "the counter of a loop is a result")
    for loop, counted in facts.loops.items():
        uses.check_state(loop, counted)


def _keep(counters: Facts, reason: str) -> None:
    for fact in counters:
        if fact.counter is not None:
            keep([fact.counter.trips], reason)


class _Uses:
    """Looks at what uses counters."""

    def __init__(self, facts: ValueFacts) -> None:
        self._facts = facts
        self._compares = {loop.compare for loop in facts.loops.values()}
        self._reads: list[tuple[Instruction, Factor]] = []
        """Slices of one layer, and the trips of the loop that goes over the layers."""

    def check(self, instruction: Instruction) -> None:
        """Keep the trips of loops whose counters are used for anything but an index."""
        for number, operand in enumerate(instruction.operands):
            given = self._facts.leaves_of(operand)
            if all(fact.counter is None for fact in given):
                continue
            if not self._allows(instruction, number, given):
                _keep(given, f"%{instruction.name}: {instruction.opcode} of a loop's counter")
            elif instruction.opcode is Opcode.DYNAMIC_SLICE and given[0].counter is not None:
                self._reads.append((instruction, given[0].counter.trips))
        if instruction.opcode is Opcode.CONDITIONAL:
            for branch in instruction.called:
                self._check_result(branch, self._facts.leaves_of(instruction), instruction)
        elif instruction.opcode is Opcode.WHILE and instruction not in self._facts.loops:
            body = instruction.called[0]
            self._check_result(body, self._facts.leaves_of(body.parameters[0]), instruction)

    def _check_result(self, computation: Computation, taken: Facts, caller: Instruction) -> None:
        given = self._facts.leaves_of(computation.root)
        if not _arrive(given, taken):
            _keep(given, f"%{caller.name}: {caller.opcode} gives a loop's counter")

    def _allows(self, instruction: Instruction, number: int, operands: Facts) -> bool:
        opcode, called = instruction.opcode, instruction.called
        counter = operands[0].counter
        if opcode in _HAND_ON:
            return True
        if opcode in _COMPUTE:
            return self._facts.of(instruction).counter is not None
        if opcode in (Opcode.CALL, Opcode.FUSION):
            return _arrive(operands, self._facts.leaves_of(called[0].parameters[number]))
        if opcode is Opcode.WHILE:
            takers = (computation.parameters[0] for computation in called)
            return all(_arrive(operands, self._facts.leaves_of(taker)) for taker in takers)
        if opcode is Opcode.CONDITIONAL and number > 0:
            return _arrive(operands, self._facts.leaves_of(called[number - 1].parameters[0]))
        if opcode is Opcode.SELECT:
            return is_never_chosen(instruction, self._facts.of(instruction.operands[2]).counter)
        if opcode is Opcode.COMPARE and number == 0:
            return instruction in self._compares or is_never(instruction, counter)
        return is_index(instruction, number, counter)

    def check_state(self, loop: Instruction, counted: CountedLoop) -> None:
        """Keep the trips if part of the state is not made of layers, but by the trips alone.

        Somewhere else it could be computed without a loop.
        """
        body = loop.called[0]
        taken = list(self._facts.leaves_of(body.parameters[0]))
        counter = element_range(loop.shape, counted.element).start
        taken[counter] = taken[counter]._replace(counter=Counter(1, 1, counted.trips))
        given = self._facts.leaves_of(body.root)
        if given[counter].counter is None or not _arrive(given, taken):
            keep([counted.trips], f"%{loop.name}: its counter does not just go up by 1")
        made_of_layers = self._made_of_layers(body, counted)
        for number, element in enumerate(body.root.operands):
            is_kept = number == counted.element or element.shape.is_token
            if not is_kept and element not in made_of_layers and not _stays(loop, number):
                reason = f"%{loop.name}: element {number} of its state depends on the trips alone"
                keep([counted.trips], reason)

    def _made_of_layers(self, body: Computation, counted: CountedLoop) -> set[Instruction]:
        """The instructions that depend, in any trip, on layers that the loop goes over."""
        trips = leaves([counted.trips])
        waiting = [read for read, factor in self._reads if leaves([factor]) == trips]
        elements: dict[int, list[Instruction]] = {}
        for user in body.parameters[0].users:
            if user.opcode is Opcode.GET_TUPLE_ELEMENT:
                elements.setdefault(user.tuple_index, []).append(user)
        found: set[Instruction] = set()
        while waiting:
            instruction = waiting.pop()
            if instruction in found:
                continue
            found.add(instruction)
            if instruction.parent is not body:
                waiting += instruction.parent.callers
                continue
            for user in instruction.users:
                if user is not body.root:
                    waiting.append(user)
                    continue
                for number, element in enumerate(user.operands):
                    if element is instruction:
                        waiting += elements.get(number, ())
        return found


def _arrive(given: Facts, taken: Sequence[Fact]) -> bool:
    """Whether the counters among values are known where these get to."""
    return all(
        a.counter is None or joins(a.counter, b.counter) for a, b in zip(given, taken, strict=True)
    )


def _stays(loop: Instruction, number: int) -> bool:
    """Whether an element of a loop's state is the same in all trips.

    It is if the body gives it back, or another one that stays and begins as the same value.
    """
    elements = {number}
    while True:
        given = _source(loop.called[0].root.operands[number])
        is_element = given.opcode is Opcode.GET_TUPLE_ELEMENT
        if not is_element or given.operands[0].opcode is not Opcode.PARAMETER:
            return False
        number = given.tuple_index
        if number in elements:
            break
        elements.add(number)
    start = loop.operands[0]
    return len(elements) == 1 or (
        start.opcode is Opcode.TUPLE and len({_source(start.operands[n]) for n in elements}) == 1
    )


def _source(value: Instruction) -> Instruction:
    """The value that is copied to this one."""
    while value.opcode in _COPIES:
        value = value.operands[0]
    return value
