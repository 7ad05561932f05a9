"""Find out what the arrays of a module's parameters are used for: see `interpreter.roles`.

Sources of a value are the arrays of the parameters whose elements it is made of: as they are
(moved, picked, converted), or after additions and scaling or, for integers, any arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import NamedTuple

from hloopt.equivalence.operand_uses import (
    INDEXED,
    MOVES,
    ROOTS,
    SIZED,
    bounds,
    fan_ins,
    is_identity,
    is_integral,
    is_scalar,
)
from hloopt.interpreter.roles import NO_ROLE, Role
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import CONTRACTIONS, Opcode
from hloopt.ir.ordering import depth_first, stable_order
from hloopt.ir.shapes.leaves import element_range, leaf_count

_MOST_SOURCES = 8
"""Of one array; further ones are not followed."""

Sources = dict[int, bool]
"""By number of an array of the parameters: whether its elements are there as they are."""
_NONE: Sources = {}


def roles_of(module: Module) -> list[Role]:
    """The role of each array of the entry's parameters, in order. O(instructions)."""
    summaries: dict[Computation, _Summary] = {}
    for computation in depth_first([module.entry], _called):
        summaries[computation] = _Summarizer(computation, summaries).run()
    entry = module.entry
    count = sum(leaf_count(parameter.shape) for parameter in entry.parameters)
    uses = summaries[entry].uses
    roles = (uses.get(leaf, NO_ROLE) for leaf in range(count))
    return [r._replace(takes_any=not (r.steers or r.is_measured)) for r in roles]


def _called(computation: Computation) -> Iterable[Computation]:
    return dict.fromkeys(c for i in computation.instructions for c in i.called)


class _Summary(NamedTuple):
    """A computation as its callers see it."""

    uses: dict[int, Role]
    """By array of its parameters."""
    result: list[Sources]
    """By array of its root."""


class _Summarizer:
    """Follows the arrays of one computation's parameters; callees have been summarized."""

    def __init__(self, computation: Computation, summaries: dict[Computation, _Summary]) -> None:
        self._computation = computation
        self._summaries = summaries
        self._uses: dict[int, Role] = {}
        self._values: dict[Instruction, list[Sources]] = {}

    def run(self) -> _Summary:
        first = 0
        for parameter in self._computation.parameters:
            count = leaf_count(parameter.shape)
            self._values[parameter] = [{leaf: True} for leaf in range(first, first + count)]
            first += count
        for instruction in stable_order(self._computation):
            if instruction.opcode is not Opcode.PARAMETER:
                self._values[instruction] = self._follow(instruction)
        return _Summary(self._uses, self._values[self._computation.root])

    def _follow(self, instruction: Instruction) -> list[Sources]:
        """The sources of an instruction, by array; what it does with its operands is noted."""
        opcode, operands = instruction.opcode, instruction.operands
        match opcode:
            case Opcode.TUPLE:
                return [sources for operand in operands for sources in self._values[operand]]
            case Opcode.GET_TUPLE_ELEMENT:
                leaves = element_range(operands[0].shape, instruction.tuple_index)
                return self._values[operands[0]][leaves]
            case Opcode.CALL | Opcode.FUSION:
                return self._call(instruction.called[0], self._all(operands))
            case Opcode.ASYNC_START:
                result = self._call(instruction.called[0], self._all(operands))
                return self._fitted(instruction, [*self._all(operands), *result])
            case Opcode.ASYNC_DONE | Opcode.COPY_DONE | Opcode.ALL_GATHER_DONE:
                return self._done(instruction)
            case Opcode.WHILE:
                return self._while(instruction)
            case Opcode.CONDITIONAL:
                return self._conditional(instruction)
            case Opcode.SORT | Opcode.OPT_BARRIER:
                return self._fitted(instruction, self._all(operands))
            case Opcode.COPY_START:
                return self._fitted(instruction, self._all(operands) * 2)
        self._note(instruction)
        if instruction.shape.is_tuple:
            return [_NONE] * leaf_count(instruction.shape)
        return [self._sources(instruction)]

    def _all(self, operands: Sequence[Instruction]) -> list[Sources]:
        return list(chain.from_iterable(self._values[operand] for operand in operands))

    def _fitted(self, instruction: Instruction, found: list[Sources]) -> list[Sources]:
        missing = leaf_count(instruction.shape) - len(found)
        return found + [_NONE] * missing if missing >= 0 else [_NONE] * (len(found) + missing)

    def _done(self, instruction: Instruction) -> list[Sources]:
        started = instruction.operands[0]
        number = 0 if instruction.opcode is Opcode.COPY_DONE else 1
        if len(started.shape.elements) <= number:
            return [_NONE] * leaf_count(instruction.shape)
        found = self._values[started][element_range(started.shape, number)]
        return self._fitted(instruction, found)

    # -- called computations ------------------------------------------------------------------

    def _call(self, callee: Computation, arguments: list[Sources]) -> list[Sources]:
        summary = self._summaries[callee]
        for leaf, role in summary.uses.items():
            if leaf < len(arguments):
                self._add_all(arguments[leaf], role)
        return [_through(sources, arguments) for sources in summary.result]

    def _while(self, loop: Instruction) -> list[Sources]:
        body, condition = loop.called
        state = self._all(loop.operands)
        result = self._summaries[body].result
        for _ in range(_ROUNDS):
            after = [
                _union([before, _through(sources, state)])
                for before, sources in zip(state, result, strict=False)
            ]
            if after == state:
                break
            state = after
        self._call(body, state)
        (decides,) = self._call(condition, state)
        self._add_all(decides, Role(steers=True))
        return self._fitted(loop, state)

    def _conditional(self, conditional: Instruction) -> list[Sources]:
        selector, *arguments = conditional.operands
        role = Role(branches=len(conditional.called), steers=True)
        for leaf, is_same in self._values[selector][0].items():
            self._add(leaf, role if is_same else Role(steers=True))
        results = [
            self._call(branch, self._values[argument])
            for branch, argument in zip(conditional.called, arguments, strict=True)
        ]
        return [_union(sources) for sources in zip(*results, strict=False)]

    # -- one operation ------------------------------------------------------------------------

    def _of(self, instruction: Instruction, operand: int) -> Sources:
        """The sources of an operand that is an array."""
        values = self._values[instruction.operands[operand]]
        return values[0] if len(values) == 1 else _NONE

    def _add(self, leaf: int, role: Role) -> None:
        self._uses[leaf] = self._uses.get(leaf, NO_ROLE).merged(role)

    def _add_all(self, sources: Sources, role: Role) -> None:
        """Note a use of a value: only what it says of changed elements, too, holds for those."""
        for leaf, is_same in sources.items():
            self._add(leaf, role if is_same else role._replace(fan_in=1, bound=0, branches=0))

    def _note(self, instruction: Instruction) -> None:
        """Note what an operation does with its operands."""
        opcode, operands = instruction.opcode, instruction.operands
        if opcode in ROOTS:
            self._add_all(self._of(instruction, 0), Role(is_positive=True))
        elif opcode in CONTRACTIONS:
            for number, fan_in in enumerate(fan_ins(instruction)):
                self._add_all(self._of(instruction, number), Role(fan_in=fan_in))
        elif opcode is Opcode.CONVERT or opcode is Opcode.BITCAST_CONVERT:
            if not is_integral(instruction) and is_integral(operands[0]):
                self._add_all(self._of(instruction, 0), Role(is_measured=True))
        elif opcode in INDEXED:
            for number, bound in bounds(instruction):
                self._add_all(self._of(instruction, number), Role(bound=bound, steers=True))
        elif opcode in SIZED or (opcode is Opcode.CUSTOM_CALL and not is_identity(instruction)):
            for number, operand in enumerate(operands):
                if operand.shape.is_array and is_integral(operand):
                    self._add_all(self._of(instruction, number), Role(steers=True))

    def _sources(self, instruction: Instruction) -> Sources:
        opcode, operands = instruction.opcode, instruction.operands
        if opcode in MOVES or (opcode is Opcode.CUSTOM_CALL and is_identity(instruction)):
            return _union(self._of(instruction, n) for n in MOVES.get(opcode, (0,)))
        if opcode in (Opcode.CONCATENATE, Opcode.PAD, Opcode.ALL_GATHER):
            return _union(self._of(instruction, n) for n in range(len(operands)))
        if opcode is Opcode.CONVERT:
            is_same = is_integral(instruction) == is_integral(operands[0])
            return self._of(instruction, 0) if is_same else _NONE
        if is_integral(instruction):
            integers = [n for n, o in enumerate(operands) if o.shape.is_array and is_integral(o)]
            return _changed(_union(self._of(instruction, n) for n in integers))
        if opcode is Opcode.ADD:
            return _changed(_union(self._of(instruction, n) for n in (0, 1)))
        if opcode is Opcode.MULTIPLY:
            factors = [n for n in (0, 1) if not is_scalar(operands[n])]
            return _changed(self._of(instruction, factors[0])) if len(factors) == 1 else _NONE
        if opcode is Opcode.DIVIDE and is_scalar(operands[1]):
            return _changed(self._of(instruction, 0))
        return _NONE


_ROUNDS = 4
"""In which what a loop carries moves on from place to place; further ones are not followed."""


def _union(all_sources: Iterable[Sources]) -> Sources:
    found = _NONE
    for sources in all_sources:
        if sources is found or not sources:
            continue
        if not found:
            found = sources
            continue
        found = dict(found)
        for leaf, is_same in sources.items():
            if leaf in found or len(found) < _MOST_SOURCES:
                found[leaf] = found.get(leaf, False) or is_same
    return found


def _changed(sources: Sources) -> Sources:
    return dict.fromkeys(sources, False)


def _through(sources: Sources, arguments: list[Sources]) -> Sources:
    """The sources of a value of a callee, in terms of its caller."""
    return _union(
        arguments[leaf] if is_same else _changed(arguments[leaf])
        for leaf, is_same in sources.items()
        if leaf < len(arguments)
    )
