"""The values of a module, and the parts of instructions that hold them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from hloopt.analysis.dataflow.phis import resolve, superfluous_phis
from hloopt.analysis.dataflow.propagation import NOTHING, Propagation, members_of
from hloopt.analysis.dataflow.scope import Scope, may_hold_others
from hloopt.analysis.dataflow.slots import Index, slots_of
from hloopt.ir import Computation, Instruction, Module, Opcode
from hloopt.ir.shapes.shape import Shape

_PASSES_TABLE_ONLY = (Opcode.GET_TUPLE_ELEMENT, Opcode.COPY)
_MANY = 16
"""Operands from which on an index of them pays."""
_READS_NOTHING = (Opcode.TUPLE, Opcode.DOMAIN)


class Position(NamedTuple):
    """A part of a result that holds a value."""

    instruction: Instruction
    slot: int


class Use(NamedTuple):
    """A part of an operand through which an instruction reads a value."""

    user: Instruction
    operand: int
    slot: int


@dataclass(slots=True)
class Dataflow:
    """The values of a module: results that need memory of their own, numbered from 0.

    An instruction holds one value per slot of its shape. It defines it, passes it on, as
    get-tuple-element does, or merges several that may reach it into a new one, a phi, as a while
    does. The bodies of fusions are left out unless asked for, but their values count in `numbers`,
    which are those of XLA. Near-linear in the slots of all instructions covered.
    """

    module: Module
    scope: Scope
    held: Mapping[Instruction, list[int]]
    """The value in each slot of a covered instruction."""
    definer: list[Instruction]
    slot: list[int]
    """Per value the instruction that defines it, and where in its shape."""
    numbers: list[int]
    """XLA's number of each value: the same order, with gaps."""
    phis: dict[int, None]
    unions: dict[int, tuple[int, ...]]
    """Stand-ins for any of several values, without memory of their own: what reaches a parameter
    of a computation that several instructions call."""
    merged: dict[int, list[int]]
    """Per phi and stand-in the values that it merges, other phis and stand-ins among them."""
    _elsewhere: dict[int, list[tuple[Instruction, int]]] | None = None
    """Per value its positions beside its definition; None until somebody asks."""
    _operand_numbers: dict[Instruction, dict[Instruction, list[int]]] = field(default_factory=dict)
    """Of instructions with many operands, by operand where it stands among them."""
    _root_values: dict[Instruction, frozenset[int]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        module: Module,
        leave_out: Callable[[Computation], bool] | None = None,
        *,
        in_fusions: bool = False,
        before_printing: bool = False,
    ) -> Dataflow:
        """Analyze a module, without the computations for which `leave_out` holds (see `Scope.of`).

        With `in_fusions` the bodies of fusions have values, too; none passes their borders. If some
        computations are left out, `numbers` are not those of XLA; with `before_printing` those of
        the compiler that printed the schedule. Raises HloVerifyError where
        shapes do not fit or a computation calls itself.
        """
        scope = Scope.of(module, leave_out, in_fusions=in_fusions, before_printing=before_printing)
        flow = Propagation(scope)
        flow.run()
        return cls(
            module=module,
            scope=flow.scope,
            held=flow.held,
            definer=flow.definer,
            slot=flow.slot,
            numbers=flow.numbers,
            phis=flow.phis,
            unions=flow.unions,
            merged=flow.merged,
        )

    # -- values -------------------------------------------------------------------------------

    def shape(self, value: int) -> Shape:
        """The shape of a value, where it is defined."""
        slot, shape = self.slot[value], self.definer[value].shape
        return slots_of(shape).parts[slot] if slot else shape

    def index(self, value: int) -> Index:
        """The shape index at which a value is defined."""
        return slots_of(self.definer[value].shape).indices[self.slot[value]]

    def members(self, held: Iterable[int]) -> Iterable[int]:
        """The values among those held: stand-ins give way to what they stand for."""
        if not self.unions:
            return held
        return [member for value in held for member in self.unions.get(value, (value,))]

    def values(self) -> Iterator[int]:
        """The values in order; phis that turned out superfluous have no number."""
        return (value for value, number in enumerate(self.numbers) if number >= 0)

    def at(self, instruction: Instruction, index: Index) -> int | None:
        """The value `instruction` holds at a shape index, or None. O(length of the index)."""
        slot = slots_of(instruction.shape).at(index)
        value = NOTHING if slot is None else self.held[instruction][slot]
        return None if value == NOTHING else value

    def read(self, user: Instruction, operand: Instruction) -> Iterable[int]:
        """The values `user` reads of an operand, as `uses` has it but for roots. O(result)."""
        if user.opcode in _READS_NOTHING:
            return ()
        held = self.held[operand]
        return self.members(held[:1] if user.opcode in _PASSES_TABLE_ONLY else held)

    def positions(self, value: int) -> list[Position]:
        """The positions of a value: its definition, then in order of the text. O(all), once."""
        elsewhere = self._find_positions() if self._elsewhere is None else self._elsewhere
        first = Position(self.definer[value], self.slot[value])
        return [first, *(Position(*other) for other in elsewhere.get(value, ()))]

    def uses(self, value: int) -> list[Use]:
        """The readers of a value, by its positions.

        Tuples and domains read nothing, get-tuple-elements and copies of tuples the outermost
        pointer table only; but what the root of a computation holds itself, it uses. O(uses), and
        once O(operands) of users with many of them and O(slots) of roots.
        """
        elsewhere = self._find_positions() if self._elsewhere is None else self._elsewhere
        result = self._uses_at(value, self.definer[value], self.slot[value])
        for instruction, slot in elsewhere.get(value, ()):
            result += self._uses_at(value, instruction, slot)
        return result

    def _uses_at(self, value: int, instruction: Instruction, slot: int) -> list[Use]:
        result = []
        for user in instruction.users:
            if self._reads(user, slot, value):
                operands = user.operands
                if len(operands) == 1:
                    result.append(Use(user, 0, slot))
                else:
                    result += [Use(user, n, slot) for n in self._numbers_of(instruction, user)]
        return result

    def replace_values(self, replaced: Mapping[int, int]) -> dict[int, int]:
        """Update the analysis after values were replaced by others, as copies by their sources.

        The caller has changed the instructions already. Returns all values that are gone, each
        with its replacement; phis that now merge a single value are among them. O(positions of
        these, and inputs of phis), beside finding all positions once.
        """
        elsewhere = self._find_positions() if self._elsewhere is None else self._elsewhere
        merged = {
            phi: [resolve(replaced, value) for value in values]
            for phi, values in self.merged.items()
        }
        more = superfluous_phis(merged)
        gone = {value: resolve(more, resolve(replaced, value)) for value in (*replaced, *more)}
        self.merged = {
            phi: [gone.get(value, value) for value in values]
            for phi, values in merged.items()
            if phi not in more
        }
        for old, new in gone.items():
            self.phis.pop(old, None)
            self.unions.pop(old, None)
            self.numbers[old] = NOTHING
            for position in self.positions(old):
                instruction, slot = position
                self.held[instruction][slot] = new
                if instruction in instruction.parent:
                    elsewhere.setdefault(new, []).append(position)
            elsewhere.pop(old, None)
        for union in self.unions:
            self.unions[union] = members_of(union, self.merged, self.unions)
        self._operand_numbers.clear()
        self._root_values.clear()
        return gone

    def _numbers_of(self, operand: Instruction, user: Instruction) -> list[int]:
        """The operand numbers at which a user takes an instruction."""
        if len(user.operands) < _MANY:
            return [n for n, other in enumerate(user.operands) if other is operand]
        numbers = self._operand_numbers.get(user)
        if numbers is None:
            numbers = self._operand_numbers[user] = {}
            for number, other in enumerate(user.operands):
                numbers.setdefault(other, []).append(number)
        return numbers[operand]

    def _reads(self, user: Instruction, slot: int, value: int) -> bool:
        if user.parent.root is user and value in self.held_by(user):
            return True
        opcode = user.opcode
        if opcode in _READS_NOTHING:
            return False
        return not slot or opcode not in _PASSES_TABLE_ONLY

    def held_by(self, root: Instruction) -> frozenset[int]:
        """All values in a result: to be asked of roots, of which it is remembered."""
        found = self._root_values.get(root)
        if found is None:
            found = self._root_values[root] = frozenset(self.members(self.held[root]))
        return found

    def _find_positions(self) -> dict[int, list[tuple[Instruction, int]]]:
        definer, own_slot, unions = self.definer, self.slot, self.unions
        elsewhere: dict[int, list[tuple[Instruction, int]]] = {}
        for computation in self.scope.orders:
            for instruction in computation.instructions:
                if not may_hold_others(instruction):
                    continue
                for slot, held in enumerate(self.held[instruction]):
                    for value in unions.get(held, (held,)) if unions else (held,):
                        if value != NOTHING and (
                            definer[value] is not instruction or own_slot[value] != slot
                        ):
                            elsewhere.setdefault(value, []).append((instruction, slot))
        self._elsewhere = elsewhere
        return elsewhere
