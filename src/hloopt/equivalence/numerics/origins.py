"""The instruction where two programs part: its error is more than that of its operands explains."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import sqrt

from hloopt.analysis.equality import ANNOTATIONS, Equality
from hloopt.equivalence.coverage import CALLERS
from hloopt.equivalence.measures import eps_of
from hloopt.equivalence.numerics.findings import (
    NO_ERROR,
    ArrayError,
    OperandChange,
    Origin,
    ValueErrors,
)
from hloopt.equivalence.numerics.tracing import Key
from hloopt.interpreter.rounding_noise import terms_of
from hloopt.interpreter.values import dtype_of
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import COLLECTIVES, COMMUTATIVE, Opcode
from hloopt.ir.ordering import stable_order
from hloopt.ir.shapes.element_type import ELEMENT_TYPES

Partners = Mapping[Instruction, Instruction]

_TIMES = 8
"""The number of times more than its operands an instruction has to be off that is not the same."""
_ULPS = 4
"""Units in the last place by which the same function, written otherwise, may be off."""
_NEAR = 256
"""Instructions without partners that are looked through."""
_IGNORED = ANNOTATIONS | {"backend_config", "channel_id", "sharding", "operand_precision"}
_MOVES = frozenset(
    (
        *(Opcode.PARAMETER, Opcode.TUPLE, Opcode.GET_TUPLE_ELEMENT, Opcode.OPT_BARRIER),
        *(Opcode.ADD_DEPENDENCY, Opcode.DOMAIN, Opcode.COPY_DONE, Opcode.ASYNC_DONE),
        *(Opcode.WHILE, Opcode.CALL, Opcode.CONDITIONAL),
    )
)
"""Operations that give what others have computed."""


class OriginSearch:
    """Told the errors of all values, finds the instructions where the programs part.

    An instruction with the same operation on operands that are partners computes the same function
    in both: its error is that of its operands, whatever becomes of it. Another one has an error of
    its own where it is off by much more than its operands. Constants, and what depends on constants
    alone, are a part of the instructions that use them.
    """

    def __init__(
        self,
        before: Module,
        partners: Partners,
        least: Callable[[Instruction], float],
    ) -> None:
        """`least` gives the unit of the errors, as a part of a value, that may be anywhere."""
        self._partners = partners
        self._least = least
        self._equality = Equality(is_layout_sensitive=False, ignored=_IGNORED)
        self.fixed = _fixed(before)
        """The instructions that depend on constants alone."""
        self._same: dict[Instruction, bool] = {}
        self._errors: dict[tuple[int, Instruction], ArrayError] = {}
        """By device: the errors of the last run of an instruction."""
        self._devices: set[int] = set()
        self._found: dict[Instruction, tuple[Key, ArrayError, float]] = {}
        """The first time, on any device, that an instruction was off by itself."""
        self._found_fixed: dict[Instruction, tuple[Key, ArrayError, float]] = {}

    def add(self, key: Key, error: ArrayError) -> None:
        """Another value, behind all that it is computed from."""
        device, instruction, _ = key
        self._devices.add(device)
        self._errors[device, instruction] = error
        if not error.unequal:
            return
        if instruction in self.fixed:
            self._found_fixed.setdefault(instruction, (key, error, 0.0))
            return
        if instruction.opcode in _MOVES or instruction in self._found:
            return
        inputs = self._inputs(device, instruction)
        if self._is_off_by_itself(instruction, error, inputs):
            self._found[instruction] = key, error, inputs

    def _is_off_by_itself(self, instruction: Instruction, error: ArrayError, inputs: float) -> bool:
        if instruction.opcode in CALLERS and self._is_followed(instruction):
            return self._has_other_constants(instruction)
        if self._is_same(instruction) and not self._has_other_constants(instruction):
            return False
        return error.relative > _TIMES * inputs

    def _is_followed(self, caller: Instruction) -> bool:
        """Whether what a caller runs is compared by itself."""
        return all(computation.root in self._partners for computation in caller.called)

    def _inputs(self, device: int, instruction: Instruction) -> float:
        """The largest error of the operands, on any device where these exchange them."""
        devices = self._devices if instruction.opcode in COLLECTIVES else {device}
        sources = list(self._sources(instruction))
        return max(
            (
                self._errors[each, source].relative
                for each in devices
                for source in sources
                if (each, source) in self._errors
            ),
            default=0.0,
        )

    def _sources(self, instruction: Instruction) -> Iterator[Instruction]:
        """The nearest instructions with partners that the operands depend on."""
        stack = list(instruction.operands)
        seen = set(stack)
        while stack and len(seen) < _NEAR:
            source = stack.pop()
            if source in self._partners and source.opcode is not Opcode.TUPLE:
                if source not in self.fixed:
                    yield source
                continue
            further = [operand for operand in source.operands if operand not in seen]
            seen.update(further)
            stack += further

    def _is_same(self, instruction: Instruction) -> bool:
        """Whether an instruction and its partner are one operation, on operands that are
        partners."""
        found = self._same.get(instruction)
        if found is None:
            other = self._partners[instruction]
            found = self._equality.operation(instruction) == self._equality.operation(other)
            found = found and not _other_operands(instruction, other, self._partners)
            self._same[instruction] = found
        return found

    def _has_other_constants(self, instruction: Instruction) -> bool:
        return any(
            self._errors.get((device, operand), NO_ERROR).unequal
            for operand in instruction.operands
            if operand in self.fixed
            for device in self._devices
        )

    def first(self, errors: Mapping[Instruction, ValueErrors]) -> Origin | None:
        """The first instruction, in time, that is off by more than rounding; else the first that is
        off at all; constants where there is nothing else."""
        for candidates in (self._found, self._found_fixed):
            far = (i for i, (_, error, _) in candidates.items() if self._is_far(i, error))
            instruction = next(far, next(iter(candidates), None))
            if instruction is not None:
                return self._origin(errors[instruction], *candidates[instruction])
        return None

    def _is_far(self, instruction: Instruction, error: ArrayError) -> bool:
        """Whether an error is more than what another order of sums, or another function, makes."""
        both = (instruction, self._partners[instruction])
        elements = [i.shape.element_type or ELEMENT_TYPES[error.type] for i in both]
        if not all(element.is_floating for element in elements):
            return True
        units = _ULPS + sqrt(terms_of(instruction))
        wider = min(eps_of(dtype_of(element)) for element in elements)
        return error.relative > units * max(wider, self._least(instruction))

    def _origin(self, errors: ValueErrors, key: Key, error: ArrayError, inputs: float) -> Origin:
        device, before, run = key
        after = errors.after
        return Origin(
            errors,
            device,
            run,
            error,
            inputs,
            list(self._operand_changes(before, after)),
            _other_attributes(before, after),
        )

    def _operand_changes(self, before: Instruction, after: Instruction) -> Iterator[OperandChange]:
        others = _other_operands(before, after, self._partners)
        for number, operand in enumerate(before.operands):
            other = after.operands[number] if number < len(after.operands) else None
            is_other_constant = operand in self.fixed and any(
                self._errors.get((device, operand), NO_ERROR).unequal for device in self._devices
            )
            if other is not None and (number in others or is_other_constant):
                values = _value_text(operand), _value_text(other)
                if values[0] == values[1]:
                    values = _name_text(operand), _name_text(other)
                yield OperandChange(number, *values)


def _other_operands(before: Instruction, after: Instruction, partners: Partners) -> list[int]:
    """The numbers of operands that are not partners."""
    mapped = [partners.get(operand) for operand in before.operands]
    theirs: Sequence[Instruction] = after.operands
    if before.opcode in COMMUTATIVE and mapped[::-1] == list(theirs):
        return []
    if len(mapped) != len(theirs):
        return list(range(len(mapped)))
    return [n for n, (a, b) in enumerate(zip(mapped, theirs, strict=True)) if a is not b]


def _other_attributes(before: Instruction, after: Instruction) -> list[str]:
    names = dict.fromkeys((*before.attributes, *after.attributes))
    return [
        name
        for name in names
        if name not in _IGNORED and before.attributes.get(name) != after.attributes.get(name)
    ]


_LONGEST = 24


def _value_text(instruction: Instruction) -> str:
    """Opcode and name; of a short constant, and a broadcast of one, its value."""
    source = instruction
    while source.opcode in (Opcode.BROADCAST, Opcode.CONVERT, Opcode.RESHAPE):
        source = source.operands[0]
    if source.opcode is Opcode.CONSTANT and len(source.payload) <= _LONGEST:
        return source.payload
    return _name_text(instruction)


def _name_text(instruction: Instruction) -> str:
    return f"{instruction.opcode} %{instruction.name}"


def _fixed(module: Module) -> set[Instruction]:
    """The instructions that depend on constants alone."""
    found: set[Instruction] = set()
    for computation in module.computations.values():
        for instruction in stable_order(computation):
            is_fixed = instruction.opcode in (Opcode.CONSTANT, Opcode.IOTA) or (
                bool(instruction.operands) and found.issuperset(instruction.operands)
            )
            if is_fixed and not instruction.called:
                found.add(instruction)
    return found
