"""Single changes of a module, checked where they are made, that keep schedules right."""

from __future__ import annotations

from collections.abc import Iterable

from hloopt.diagnostics import HloError, did_you_mean
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import OPCODES, Opcode
from hloopt.ir.ordering import dependencies, depends_on
from hloopt.ir.shapes.shape import Shape, compatible, format_shape
from hloopt.ir.shapes.shape_parser import parse_shape
from hloopt.passes.rewriting.replace import inherit, replace_instruction

_MOST_NAMED = 5
_STEPS = 3
_MOST_KNOWN = 100
"""How far is looked from an instruction for what runs before it."""


class Rewriter:
    """Inserts, replaces and erases instructions of a module.

    In a scheduled module the order of a computation is its schedule: an instruction is inserted at
    its position, O(instructions of the computation), and what would run before its operands is
    refused. Else positions mean nothing, and a change takes O(operands and users). Passes that
    insert thousands of instructions into a schedule move them in one `Computation.splice`.

    Every method raises HloError, at the instruction, for what would leave an invalid module; then
    nothing has changed. Shapes and attributes are left to the verifier.
    """

    def __init__(self, module: Module) -> None:
        self.module = module
        self.changed = False
        """Whether it has changed anything: what `run` of a pass returns."""

    def insert_before(
        self,
        place: Instruction,
        opcode: Opcode | str,
        shape: Shape | str,
        operands: Iterable[Instruction] = (),
        *,
        name: str | None = None,
        called: tuple[Computation, ...] = (),
        payload: str = "",
        **attributes: str,
    ) -> Instruction:
        """A new instruction right before `place`, which nothing uses yet.

        Opcode and shape may be texts: `"add"`, `"f32[8]{0}"`. Attributes have the text they have in
        HLO: `dimensions="{0}"`. Its `name`, by default the opcode, is made unique; `payload` is the
        text between the parentheses of a constant.
        """
        return self._insert(
            place, 0, _opcode(opcode), _shape(shape), [*operands], name, called, payload, attributes
        )

    def insert_after(
        self,
        place: Instruction,
        opcode: Opcode | str,
        shape: Shape | str,
        operands: Iterable[Instruction] = (),
        *,
        name: str | None = None,
        called: tuple[Computation, ...] = (),
        payload: str = "",
        **attributes: str,
    ) -> Instruction:
        """A new instruction right after `place`, as `insert_before` makes it."""
        return self._insert(
            place, 1, _opcode(opcode), _shape(shape), [*operands], name, called, payload, attributes
        )

    def replace(self, old: Instruction, new: Instruction) -> None:
        """Let all users of `old`, the root included, use `new`, and remove `old`.

        `new` takes over control dependencies, and metadata, frontend attributes and sharding where
        it has none. Where `new` is computed from `old`, that stays with its control dependencies,
        as do parameters, and what `new` needs goes on using it. Shapes agree but for layouts.
        O(users + control edges) where `new` is made of what `old` was made of, a step or two
        before it, else O(instructions before `new`); in a scheduled module O(instructions of the
        computation).
        """
        self._check_here(old)
        self._check_here(new)
        if old is new:
            return
        self._check_pair(old, new)
        kept = _needed_by(new, old)
        users = [user for user in old.users if user not in kept]
        stays = old in kept or old.opcode is Opcode.PARAMETER
        if not stays:
            self._check_control(old, new)
        runs_later = users if stays else [*users, *old.control_successors]
        self._check_order(new, before=runs_later, after=() if stays else old.control_predecessors)
        self.changed = True
        if not stays:
            replace_instruction(old, new)
            return
        inherit(old, new)
        for user in users:
            user.exchange_operand(old, new)
        if old.is_root:
            old.parent.set_root(new)

    def erase(self, instruction: Instruction) -> None:
        """Remove an instruction that nothing needs; what it called stays for `dce`. O(operands)."""
        self._check_here(instruction)
        if instruction.users:
            raise self._error(instruction, f"it is used by {_named(instruction.users)}")
        if instruction.is_root:
            raise self._error(instruction, f"it is the root of %{instruction.parent.name}")
        if instruction.opcode is Opcode.PARAMETER:
            raise self._error(instruction, f"it is a parameter of %{instruction.parent.name}")
        if instruction.has_control_dependencies:
            bound = {**instruction.control_predecessors, **instruction.control_successors}
            raise self._error(
                instruction,
                f"it has control dependencies with {_named(bound)}",
                "drop_control_dependencies() of the instruction drops them",
            )
        instruction.parent.remove(instruction)
        self.changed = True

    # -- inserting ------------------------------------------------------------------------------

    def _insert(
        self,
        place: Instruction,
        offset: int,
        opcode: Opcode,
        shape: Shape,
        operands: list[Instruction],
        name: str | None,
        called: tuple[Computation, ...],
        payload: str,
        attributes: dict[str, str],
    ) -> Instruction:
        self._check_here(place)
        computation = place.parent
        for operand in operands:
            self._check_here(operand)
            if operand.parent is not computation:
                raise self._error(
                    operand, f"it is in %{operand.parent.name}, not in %{computation.name}"
                )
        following: Instruction | None = None
        if _has_schedule(computation):
            order = list(computation.instructions)
            position = order.index(place) + offset
            ahead = {*order[:position]}
            if late := [operand for operand in operands if operand not in ahead]:
                raise self._error(
                    place, f"in the schedule {_named(late)} must run before what it is used by"
                )
            following = order[position] if position < len(order) else None
        made = computation.add(
            opcode, shape, operands,
            name=name, attributes=attributes, called=called, payload=payload,
        )  # fmt: skip
        if following is not None:
            computation.splice({following: [made]})
        self.changed = True
        return made

    # -- checks ---------------------------------------------------------------------------------

    def _check_here(self, instruction: Instruction) -> None:
        parent = instruction.parent
        if parent.module is not self.module or instruction not in parent:
            raise HloError(f"%{instruction.name} is not in module {self.module.name}")

    def _check_pair(self, old: Instruction, new: Instruction) -> None:
        if old.parent is not new.parent:
            raise self._error(
                old, f"%{new.name} is in %{new.parent.name}, it is in %{old.parent.name}"
            )
        if not compatible(old.shape, new.shape):
            ours, theirs = (format_shape(each.shape, layout=False) for each in (old, new))
            raise self._error(old, f"its shape is {ours}, that of %{new.name} {theirs}")

    def _check_control(self, old: Instruction, new: Instruction) -> None:
        """Raise HloError where control edges of `old` would make a circle with `new`."""
        for predecessor in old.control_predecessors:
            if predecessor is not new and depends_on(predecessor, new):
                raise self._error(old, f"%{predecessor.name} must run before it, after %{new.name}")

    def _check_order(
        self, new: Instruction, *, before: Iterable[Instruction], after: Iterable[Instruction]
    ) -> None:
        """Raise HloError where the schedule has `new` behind what is to use it."""
        if not _has_schedule(new.parent):
            return
        position = {instruction: n for n, instruction in enumerate(new.parent.instructions)}
        at = position[new]
        if late := [i for i in before if i is not new and position[i] < at]:
            raise self._error(new, f"in the schedule it must run before {_named(late)}")
        if early := [i for i in after if i is not new and position[i] > at]:
            raise self._error(new, f"in the schedule it must run after {_named(early)}")

    def _error(self, instruction: Instruction, why: str, help: str | None = None) -> HloError:
        place = self.module.place_of(instruction)
        return HloError(f"{place}: {why}", span=self.module.span_of(instruction), help=help)


def _has_schedule(computation: Computation) -> bool:
    """Whether the order of a computation is that in which it runs."""
    return computation.module.is_scheduled and not computation.is_fusion


def _needed_by(new: Instruction, old: Instruction) -> set[Instruction]:
    """`new` and what must run before it; of that all that depends on `old`, and `old` if it does.

    What is known to run before `old` is left out with all before it: so the answer is near where
    `new` is made of what `old` was made of, else it takes O(instructions before `new`).
    """
    known: set[Instruction] = set()
    latest: list[Instruction] = [old]
    for _ in range(_STEPS):
        latest = [before for each in latest for before in dependencies(each)][:_MOST_KNOWN]
        known.update(latest)
    found = {new}
    stack = [] if new in known else [new]
    while stack:
        for before in dependencies(stack.pop()):
            if before not in known and before not in found:
                found.add(before)
                stack.append(before)
    return found


def _named(instructions: Iterable[Instruction]) -> str:
    names = [f"%{instruction.name}" for instruction in instructions]
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more


def _opcode(opcode: Opcode | str) -> Opcode:
    if isinstance(opcode, Opcode):
        return opcode
    found = OPCODES.get(opcode)
    if found is None:
        raise HloError(f"no opcode '{opcode}'", help=did_you_mean(opcode, OPCODES))
    return found


def _shape(shape: Shape | str) -> Shape:
    return parse_shape(shape) if isinstance(shape, str) else shape
