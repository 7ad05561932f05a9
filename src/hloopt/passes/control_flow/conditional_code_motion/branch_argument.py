"""A branch whose argument holds operands of what it is to compute by itself now."""

from __future__ import annotations

from typing import NamedTuple

from hloopt.ir.clone import own_computations
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.tuples import make_tuple, read_element
from hloopt.passes.control_flow.conditional_code_motion.arguments import Handed, Plan
from hloopt.passes.rewriting.replace import forget_value


class _Use(NamedTuple):
    """Uses in a branch of an instruction that gives something else from now on."""

    old: Instruction
    users: list[Instruction]
    is_root: bool
    value: Instruction
    """The instruction outside that it stood for."""
    home: Handed | None
    """The tuple that had the value as an element; None for a whole tuple or argument."""


class BranchArgument:
    """Rewrites one branch for what a plan hands to it."""

    def __init__(self, branch: Computation, plan: Plan) -> None:
        self._branch = branch
        self._plan = plan
        self._bases: dict[Handed, Instruction] = {}
        """The tuples of the plan in the branch."""
        self._readers: dict[tuple[Handed, int], Instruction] = {}
        """Their elements in the branch."""
        self._computed: dict[Instruction, Instruction] = {}
        """By instruction outside, what stands for it in the branch."""
        self._uses: list[_Use] = []

    def rewrite(self) -> None:
        """Compute in the branch what it uses. O(uses of the argument + copies)."""
        (parameter,) = self._branch.parameters
        self._find_uses(parameter)
        self._retype(parameter, self._plan.handed)
        if parameter.attributes.get("parameter_replication") is not None:
            parameter.set_attribute("parameter_replication", None)
        self._compute(self._needed())
        for use in self._uses:
            if not (use.users or use.is_root):
                continue
            new = self._value(use.value, use.home)
            for user in use.users:
                user.exchange_operand(use.old, new)
            if use.is_root:
                self._branch.set_root(new)
        for use in self._uses:
            if use.home is None:
                continue
            if use.old.has_control_dependencies:  # it still orders others
                shapes = self._plan.built[use.home].shape.elements
                use.old.set_shape(shapes[use.old.tuple_index])
            else:
                self._branch.remove(use.old)

    def _find_uses(self, parameter: Instruction) -> None:
        """Find what has to be replaced, and the elements that stay as they are."""
        plan = self._plan
        waiting = [(parameter, plan.argument)]
        while waiting:
            old, value = waiting.pop()
            handed = plan.tuples.get(value)
            whole: list[Instruction] = []
            for user in old.users:
                if handed is None or user.opcode is not Opcode.GET_TUPLE_ELEMENT:
                    whole.append(user)
                    continue
                index = user.tuple_index
                element, slot = value.operands[index], handed.slots[index]
                if slot is element:
                    self._readers.setdefault((handed, index), user)
                elif isinstance(slot, Handed):
                    waiting.append((user, element))
                else:
                    users = list(user.users)
                    self._uses.append(_Use(user, users, user.is_root, element, handed))
            if handed is not None:
                self._bases.setdefault(handed, old)
                if not plan.is_changed(value):
                    continue
                if old is not parameter:
                    self._retype(old, handed)
            self._uses.append(_Use(old, whole, old.is_root, value, None))

    def _retype(self, tuple_: Instruction, handed: Handed) -> None:
        tuple_.set_shape(self._plan.built[handed].shape)
        forget_value(tuple_)
        self._bases.setdefault(handed, tuple_)

    # -- what the branch computes -----------------------------------------------------------

    def _needed(self) -> set[Instruction]:
        """The operations that the branch needs, among those that move."""
        needed: set[Instruction] = set()
        for use in self._uses:
            if use.users or use.is_root:
                self._need(use.value, use.home, needed)
        for operation, home in self._plan.homes.items():
            if operation in needed:
                for operand in operation.operands:
                    self._need(operand, home, needed)
        return needed

    def _need(self, value: Instruction, home: Handed | None, needed: set[Instruction]) -> None:
        if home is not None and value in home.places:
            return
        handed = self._plan.tuples.get(value)
        if handed is None:
            needed.add(value)
        elif self._plan.is_changed(value):
            for element in value.operands:
                self._need(element, handed, needed)

    def _compute(self, needed: set[Instruction]) -> None:
        for operation, home in reversed(self._plan.homes.items()):
            if operation in needed:
                operands = [self._value(operand, home) for operand in operation.operands]
                copy = self._branch.add_clone(operation, operands)
                own_computations(copy, loops=True)
                self._computed[operation] = copy

    def _value(self, value: Instruction, home: Handed | None) -> Instruction:
        """The instruction in the branch that stands for one outside."""
        if home is not None and value in home.places:
            return self._element(home, home.places[value][0])
        if value not in self._computed:
            handed = self._plan.tuples[value]
            if not self._plan.is_changed(value):
                return self._base(handed)
            elements = [self._value(element, handed) for element in value.operands]
            self._computed[value] = make_tuple(self._branch, elements)
        return self._computed[value]

    def _element(self, handed: Handed, place: int) -> Instruction:
        reader = self._readers.get((handed, place))
        if reader is None:
            reader = self._readers[handed, place] = read_element(self._base(handed), place)
        return reader

    def _base(self, handed: Handed) -> Instruction:
        if handed not in self._bases:
            assert handed.around is not None, "the argument itself is known"
            self._bases[handed] = self._element(*handed.around)
        return self._bases[handed]
