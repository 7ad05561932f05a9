"""Values that change by the same amount in every trip of a loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hloopt.analysis.loops.expressions import constant_value
from hloopt.analysis.loops.induction import MIRRORED, initial_value
from hloopt.analysis.loops.integers import holds, is_integer, wrap
from hloopt.analysis.loops.sources import source_of
from hloopt.ir.attributes.typed import direction_of
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.passes.collectives.collective_pipeliner.counted_loop import CountedLoop
from hloopt.passes.collectives.collective_pipeliner.markers import unmarked

_MOST_STEPS = 256
_ARITHMETIC = frozenset(
    (Opcode.ADD, Opcode.SUBTRACT, Opcode.MULTIPLY, Opcode.NEGATE, Opcode.COMPARE, Opcode.SELECT)
)
_FOLLOWED = _ARITHMETIC | {Opcode.COPY}
_SUMS = (Opcode.ADD, Opcode.SUBTRACT)


class Progression(NamedTuple):
    """`first + trip · step`, without any overflow in the loop's trips."""

    first: int
    step: int


class Progressions:
    """The values in the body of a loop that are progressions.

    `with_lags` is whether elements of the state count that lag a trip behind another progression,
    as what this pass has moved leaves them: only rounds that move it once more look for them.
    """

    def __init__(self, loop: CountedLoop, *, with_lags: bool = False) -> None:
        self._loop = loop
        self._with_lags = with_lags
        self._known: dict[Instruction, Progression | None] = {}

    def last(self, values: Progression) -> int:
        """The value in the last trip."""
        return values.first + values.step * (self._loop.trips - 1)

    def of(self, value: Instruction) -> Progression | None:
        """The progression of a value from trip to trip; None where it is not known.

        Followed are constants, the counter, elements that no trip changes or that lag, sums,
        differences, products with a constant, choices that always come out the same, and copies.
        O(what it is computed from), of which 256 instructions are looked at.
        """
        known = self._known
        path = [value]
        steps = 0
        while path:
            current = path[-1]
            pending = [i for i in self._needed(current) if i not in known]
            steps += 1
            if steps > _MOST_STEPS or any(i in path for i in pending):
                known.update(dict.fromkeys(path))
                break
            if current in known or not pending:
                known.setdefault(current, self._evaluate(current))
                path.pop()
            path += pending[:1]
        return known[value]

    def _needed(self, value: Instruction) -> list[Instruction]:
        """The values to evaluate before a value."""
        value = unmarked(value)
        if not _is_number(value):
            return []
        index = self._loop.element_of(value)
        if index is not None:
            return [self._loop.root.operands[index]] if self._may_lag(index) else []
        return value.operands if value.opcode in _FOLLOWED else []

    def _may_lag(self, index: int) -> bool:
        loop = self._loop
        return self._with_lags and index != loop.counter and not loop.keeps(index)

    def _evaluate(self, value: Instruction) -> Progression | None:
        value = unmarked(value)
        if not _is_number(value):
            return None
        index = self._loop.element_of(value)
        if index == self._loop.counter:
            return Progression(self._loop.start, self._loop.step)
        if index is not None and not self._loop.keeps(index):
            return self._lagging(index) if self._with_lags else None
        if value.opcode not in _FOLLOWED:
            source = source_of(value).instruction
            number = constant_value(source) if is_integer(source) else None
            return None if number is None else Progression(number, 0)
        result = self._computed(value)
        if result is None or value.shape.type_name == "pred":
            return result
        ends = (result.first, self.last(result))
        return result if all(end == wrap(end, value) for end in ends) else None

    def _lagging(self, index: int) -> Progression | None:
        """An element that takes, in each trip, what a progression was in the trip before."""
        led_by = self._known[self._loop.root.operands[index]]
        first = initial_value(self._loop.instruction, index)
        if led_by is None or first != led_by.first - led_by.step:
            return None
        return Progression(first, led_by.step)

    def _computed(self, value: Instruction) -> Progression | None:
        operands = [self._known[operand] for operand in value.operands]
        if self._is_unknown_to_xla(value.opcode, operands):
            return None
        match value.opcode, operands:
            case Opcode.COPY, [Progression() as a]:
                return a
            case Opcode.ADD, [Progression() as a, Progression() as b]:
                return Progression(a.first + b.first, a.step + b.step)
            case Opcode.SUBTRACT, [Progression() as a, Progression() as b]:
                return Progression(a.first - b.first, a.step - b.step)
            case Opcode.NEGATE, [Progression() as a]:
                return Progression(-a.first, -a.step)
            case Opcode.MULTIPLY, [Progression() as a, Progression() as b] if not a.step * b.step:
                return Progression(a.first * b.first, a.first * b.step + a.step * b.first)
            case Opcode.COMPARE, [Progression() as a, Progression() as b]:
                return self._compared(direction_of(value), a, b)
            case Opcode.SELECT, [Progression(first, 0), on_true, on_false]:
                return on_true if first else on_false
        return None

    def _is_unknown_to_xla(self, opcode: Opcode, operands: Sequence[Progression | None]) -> bool:
        """Whether `as_xla` gives up: sums of a counter that goes down, as the compiler
        answered, and copies, which its pass never meets."""
        if not self._loop.as_xla:
            return False
        goes_down = self._loop.step < 0 and any(each and each.step for each in operands)
        return opcode is Opcode.COPY or (goes_down and opcode in _SUMS)

    def _compared(self, direction: str, a: Progression, b: Progression) -> Progression | None:
        """1 or 0 where the comparison comes out the same in all trips."""
        first = holds(a.first, direction, b.first)
        is_ordered = direction in MIRRORED and direction not in ("EQ", "NE")
        if is_ordered and first == holds(self.last(a), direction, self.last(b)):
            return Progression(int(first), 0)
        return None


def _is_number(value: Instruction) -> bool:
    return is_integer(value) or (value.shape.is_scalar and value.shape.type_name == "pred")
