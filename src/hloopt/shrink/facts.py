"""Facts about values whatever the inputs: their divisors, and what computes them.

Offsets of slices can be scaled where they are known to be multiples of the slice.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import NamedTuple

from hloopt.diagnostics import HloError
from hloopt.interpreter.literals import array_tokens
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import ASYNC, Opcode
from hloopt.ir.ordering import stable_order
from hloopt.ir.shapes.leaves import element_range, leaf_count
from hloopt.ir.shapes.shape import Shape
from hloopt.shrink.counters import (
    CountedLoop,
    Counter,
    computed_counter,
    counted_loop,
    joins,
)
from hloopt.shrink.errors import explaining

_LONGEST_LITERAL = 1 << 20
"""Characters of a literal; longer ones are not read."""


class Fact(NamedTuple):
    """The facts about an array."""

    divisor: int
    """All its elements are multiples of this; of 0, where all are zero."""
    computed: bool
    """Whether it is the same whatever the parameters of the module are."""
    counter: Counter | None = None
    """Its value in terms of a loop's counter, for a scalar."""


_UNKNOWN = Fact(1, False)
Facts = tuple[Fact, ...]
"""By leaf of a shape."""


def literal_elements(text: str, shape: Shape) -> Sequence[str] | None:
    """The elements of a constant array as text; None where they are too many or left out."""
    if shape.is_tuple or len(text) > _LONGEST_LITERAL or shape.element_count() > _LONGEST_LITERAL:
        return None
    try:
        return array_tokens(text, shape)
    except HloError:
        return None


class ValueFacts:
    """The facts of all values in the control flow of a module.

    Computations are looked at again as long as their callers give them less certain arguments:
    nearly linear in the instructions.
    """

    def __init__(self, module: Module) -> None:
        self.loops: dict[Instruction, CountedLoop] = {}
        """By while: those whose counter starts at 0."""
        self._facts: dict[Instruction, Facts] = {}
        self._arguments: dict[Computation, list[Facts]] = {}
        self._call(module.entry, _unknown(module.entry))

    def of(self, instruction: Instruction) -> Fact:
        """The fact of an array."""
        return self._facts.get(instruction, (_UNKNOWN,))[0]

    def leaves_of(self, instruction: Instruction) -> Facts:
        """The facts of all leaves of a value; none where control flow does not get to."""
        return self._facts.get(instruction, ())

    def _call(self, computation: Computation, arguments: Sequence[Facts]) -> Facts:
        known = self._arguments.get(computation)
        if known is None:
            joined = list(arguments)
        else:
            joined = [_join(a, b) for a, b in zip(known, arguments, strict=True)]
        if joined != known:
            self._arguments[computation] = joined
            for instruction in stable_order(computation):
                operands = [self._facts[operand] for operand in instruction.operands]
                with explaining(instruction):
                    self._facts[instruction] = self._evaluate(instruction, operands)
        return self._facts[computation.root]

    def _evaluate(self, instruction: Instruction, operands: list[Facts]) -> Facts:
        opcode, called = instruction.opcode, instruction.called
        count = leaf_count(instruction.shape)
        if opcode is Opcode.PARAMETER:
            return self._arguments[instruction.parent][instruction.parameter_number]
        if opcode is Opcode.TUPLE:
            return tuple(fact for operand in operands for fact in operand)
        if opcode is Opcode.GET_TUPLE_ELEMENT:
            place = element_range(instruction.operands[0].shape, instruction.tuple_index)
            return operands[0][place]
        if opcode is Opcode.OPT_BARRIER:
            return operands[0]
        if opcode in (Opcode.CALL, Opcode.FUSION):
            return self._call(called[0], operands)
        if opcode is Opcode.WHILE:
            return self._loop(instruction, operands[0])
        if opcode is Opcode.CONDITIONAL:
            branches = [
                self._call(branch, [argument])
                for branch, argument in zip(called, operands[1:], strict=True)
            ]
            result = branches[0]
            for other in branches[1:]:
                result = _join(result, other)
            return result
        if opcode in ASYNC:
            for computation in called:
                self._call(computation, _unknown(computation))
            return (_UNKNOWN,) * count
        if instruction.shape.is_tuple:
            return (Fact(1, all(f.computed for operand in operands for f in operand)),) * count
        return (
            _array_fact(instruction, [operand[0] if operand else _UNKNOWN for operand in operands]),
        )

    def _loop(self, instruction: Instruction, state: Facts) -> Facts:
        body, condition = instruction.called
        loop = self.loops.pop(instruction, None) or counted_loop(instruction)
        place = 0
        if loop is not None:
            place = element_range(instruction.shape, loop.element).start
            if state[place].divisor == 0:
                self.loops[instruction] = loop
                state = _counting(state, place, Counter(1, 0, loop.trips))
            else:
                loop = None
        while True:
            joined = _join(state, self._call(body, [state]))
            if loop is not None:
                joined = _counting(joined, place, state[place].counter)
            if joined == state:
                break
            state = joined
        self._call(condition, [state])
        if loop is not None:
            state = _counting(state, place, Counter(1, loop.trips.size, loop.trips))
        return state


def _counting(state: Facts, place: int, counter: Counter | None) -> Facts:
    return (*state[:place], state[place]._replace(counter=counter), *state[place + 1 :])


def _unknown(computation: Computation) -> list[Facts]:
    return [(_UNKNOWN,) * leaf_count(parameter.shape) for parameter in computation.parameters]


def _join(a: Facts, b: Facts) -> Facts:
    if a == b:
        return a
    return tuple(
        Fact(
            gcd(x.divisor, y.divisor),
            x.computed and y.computed,
            x.counter if x.counter is not None and joins(x.counter, y.counter) else None,
        )
        for x, y in zip(a, b, strict=True)
    )


_SAME_ELEMENTS = frozenset(
    (
        *(Opcode.BITCAST, Opcode.RESHAPE, Opcode.BROADCAST, Opcode.TRANSPOSE, Opcode.COPY),
        *(Opcode.SLICE, Opcode.REVERSE, Opcode.DYNAMIC_SLICE, Opcode.GATHER, Opcode.CONVERT),
        *(Opcode.ALL_GATHER, Opcode.COLLECTIVE_PERMUTE, Opcode.ADD_DEPENDENCY, Opcode.NEGATE),
    )
)
"""Opcodes whose results have elements of their first operand only."""
_OFFSET_BITS = 32
"""Of integers that are taken not to overflow."""
_COMMON_DIVISOR = frozenset(
    (
        *(Opcode.ADD, Opcode.SUBTRACT, Opcode.MAXIMUM, Opcode.MINIMUM, Opcode.REMAINDER),
        *(Opcode.CLAMP, Opcode.CONCATENATE, Opcode.PAD, Opcode.DYNAMIC_UPDATE_SLICE),
    )
)


def _array_fact(instruction: Instruction, operands: list[Fact]) -> Fact:
    opcode = instruction.opcode
    element = instruction.shape.element_type
    divisors = [operand.divisor for operand in operands]
    if opcode is Opcode.CONSTANT:
        return Fact(_constant_divisor(instruction), True)
    # what has no operands (iota, partition-id) included
    computed = all(operand.computed for operand in operands)
    divisor = 1
    if element is not None and element.is_integral and element.bits >= _OFFSET_BITS:
        if opcode in _SAME_ELEMENTS:
            divisor = divisors[0]
        elif opcode in _COMMON_DIVISOR:
            taken = divisors[:2] if opcode is Opcode.DYNAMIC_UPDATE_SLICE else divisors
            divisor = gcd(*taken)
        elif opcode is Opcode.SELECT:
            divisor = gcd(*divisors[1:])
        elif opcode is Opcode.MULTIPLY:
            divisor = divisors[0] * divisors[1]
        elif opcode is Opcode.SHIFT_LEFT:
            divisor = divisors[0]
    return Fact(divisor, computed, computed_counter(instruction, [o.counter for o in operands]))


def _constant_divisor(constant: Instruction) -> int:
    element = constant.shape.element_type
    if element is None or element.kind not in ("signed", "unsigned"):
        return 1
    elements = literal_elements(constant.payload, constant.shape)
    return 1 if elements is None else gcd(*map(int, elements))
