"""A computation: instructions in order, one of them the root."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar

from hloopt.ir.instruction import NO_INSTRUCTIONS, Instruction
from hloopt.ir.lookup import find_by_name
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape import Shape

if TYPE_CHECKING:
    from hloopt.ir.module import Module

_WITH_PAYLOAD = (Opcode.PARAMETER, Opcode.CONSTANT)
_PARAMETER = Opcode.PARAMETER  # a member of an enum is slow to look up in a loop
_FUSION = Opcode.FUSION
_NUMBERS = [str(number) for number in range(100)]


class Computation:
    """A function of the module.

    `instructions` iterates in the order of the text, new ones last. In a scheduled module this
    order *is* the schedule, so a pass that adds instructions there also says where (`splice`).
    """

    __slots__ = (
        "_linked",
        "_listed",
        "_members",
        "async_starts",
        "callers",
        "execution_thread",
        "is_pristine",
        "is_sugar",
        "module",
        "name",
        "root",
        "signature",
        "source_range",
        "unscheduled",
        "version",
    )

    def __init__(self, module: Module, name: str) -> None:
        self.module = module
        self.name = name
        self.root: Instruction = None  # type: ignore[assignment]  # set before anyone looks
        self.execution_thread = "main"
        self.callers: dict[Instruction, int] = {}
        """Instructions that call this computation, with their number of references to it."""
        self.signature: str | None = None
        """The text between name and brace, as read; None where there was none."""
        self.is_sugar = False
        """Whether this is the wrapped computation of an `X-start` that was read as such."""
        self.source_range: tuple[int, int] | None = None
        """The range of the module's source that spells this computation; None where it was not
        read."""
        self.is_pristine = False
        """Whether the computation is still exactly what its source says."""
        self.version = 0
        """Counts changes of the computation and its instructions."""
        self.async_starts: tuple[int, dict[Instruction, Instruction]] = (0, {})
        """The result of `async_chains.find_async_start`, with the version it is of."""
        self.unscheduled: tuple[Instruction, ...] = ()
        """The instructions in the order before the module got a schedule; empty where it came with
        one."""
        self._listed: list[Instruction] | None = None  # as read, until membership matters
        self._members: dict[Instruction, None] = {}
        self._linked = False

    @property
    def instructions(self) -> Iterable[Instruction]:
        """The instructions in order; copy before changing the computation."""
        return self._members if self._listed is None else self._listed

    @property
    def parameters(self) -> list[Instruction]:
        """The parameters by number. O(instructions)."""
        found = [i for i in self.instructions if i.opcode is _PARAMETER]
        if len(found) > 1 and not numbered_in_order(found):
            found.sort(key=lambda parameter: parameter.parameter_number)
        return found

    @property
    def is_entry(self) -> bool:
        return self.module.entry is self

    @property
    def is_fusion(self) -> bool:
        for caller in self.callers:  # noqa: SIM110  # asked often, and `any` makes a generator
            if caller.opcode is _FUSION:
                return True
        return False

    @property
    def is_asynchronous(self) -> bool:
        """Whether an async-start wraps this computation."""
        return any(caller.opcode is Opcode.ASYNC_START for caller in self.callers)

    def __len__(self) -> int:
        return len(self._members if self._listed is None else self._listed)

    __iter__: ClassVar[None] = None
    """Lookup by name does not make it a sequence: iterate over `instructions`."""

    def __getitem__(self, name: str) -> Instruction:
        """The instruction of a name, with or without `%`.

        O(instructions). Raises NoSuchName, a KeyError, with a near name.
        """
        return find_by_name(name, self.instructions, self.module.read_names, f"%{self.name}")

    def __contains__(self, instruction: object) -> bool:
        return instruction in (self._members if self._listed is None else self._as_members())

    def holding(self, instructions: Iterable[Instruction]) -> list[Instruction]:
        """The instructions among these that are in this computation, in their order."""
        members = self._as_members()
        return [instruction for instruction in instructions if instruction in members]

    def __repr__(self) -> str:
        return f"<computation %{self.name}, {len(self)} instructions>"

    def __str__(self) -> str:
        """The computation as it is printed. O(instructions)."""
        return str(import_module("hloopt.text.printer").format_computation(self))

    # -- changes ----------------------------------------------------------------------------

    def changed(self) -> None:
        self.is_pristine = False
        self.version += 1
        self.module.changed()

    def add(
        self,
        opcode: Opcode,
        shape: Shape,
        operands: Iterable[Instruction] = (),
        *,
        name: str | None = None,
        attributes: Mapping[str, str] | None = None,
        called: tuple[Computation, ...] = (),
        payload: str = "",
    ) -> Instruction:
        """Append a new instruction; its name (default: the opcode) is made unique. O(operands)."""
        instruction = Instruction()
        instruction.opcode = opcode
        instruction.name = self.module.instruction_names.unique(name or opcode.value)
        instruction.shape = shape
        instruction.operands = list(operands)
        instruction.attributes = {} if attributes is None else attributes
        instruction.payload = payload
        self._append(instruction, called)
        return instruction

    def add_clone(
        self,
        original: Instruction,
        operands: Iterable[Instruction],
        *,
        name: str | None = None,
    ) -> Instruction:
        """Append a copy of an instruction of this module, with other operands. O(operands).

        Its name (default: that of the original) is made unique, called computations are shared,
        control dependencies not copied.
        """
        clone = Instruction()
        clone.opcode = original.opcode
        clone.name = self.module.instruction_names.unique(name or original.name)
        clone.shape = original.shape
        clone.operands = list(operands)
        text = clone.attribute_text = original.attribute_text
        if text is None:  # else they are split if someone asks
            clone.attributes = original.attributes
        if original.opcode in _WITH_PAYLOAD:
            clone.payload = original.payload
        self._append(clone, original.called)
        return clone

    def _append(self, instruction: Instruction, called: tuple[Computation, ...]) -> None:
        instruction.parent = self
        instruction.users = {}
        instruction.text = None
        instruction.control_predecessors = instruction.control_successors = NO_INSTRUCTIONS
        self.link_users()
        self._as_members()[instruction] = None
        for operand in instruction.operands:
            operand.users[instruction] = None
        instruction.called = called
        for computation in called:
            computation.add_caller(instruction)
        self.changed()

    def move_to_thread(self, thread: str) -> None:
        """Let it, and all it calls, run on `thread`: that of the async-start that calls it.

        What starts in there says itself on which thread it runs. O(instructions of these
        computations).
        """
        waiting, seen = [self], {self}
        while waiting:
            computation = waiting.pop()
            if computation.execution_thread != thread:
                computation.execution_thread = thread
                computation.is_pristine = False
            called = {
                callee
                for i in computation.instructions
                if i.opcode is not Opcode.ASYNC_START
                for callee in i.called
            }
            waiting += called - seen
            seen |= called

    def set_root(self, root: Instruction) -> None:
        self.root = root
        self.changed()

    def remove(self, instruction: Instruction) -> None:
        """Remove an instruction without users that is not the root. O(operands)."""
        assert not instruction.users, f"{instruction!r} still has users"
        assert instruction is not self.root, f"{instruction!r} is the root"
        instruction.drop_control_dependencies()
        instruction._drop_operands()
        for computation in instruction.called:
            computation.remove_caller(instruction)
        instruction.called = ()
        del self._as_members()[instruction]
        self.changed()

    def move_to_end(self, instruction: Instruction) -> None:
        """Let an instruction be the last one."""
        members = self._as_members()
        members[instruction] = members.pop(instruction)
        self.changed()

    def splice(self, replacements: Mapping[Instruction, Iterable[Instruction]]) -> None:
        """Move instructions to stand right before others: `{anchor: [instructions]}`.

        O(instructions of the computation), so collect moves and make them in one call.
        """
        moved = {i for group in replacements.values() for i in group}
        order: dict[Instruction, None] = {}
        for instruction in self.instructions:
            if instruction in replacements:
                order.update(dict.fromkeys(replacements[instruction]))
            if instruction not in moved:
                order[instruction] = None
        self._members, self._listed = order, None
        self.changed()

    def reorder(self, order: Iterable[Instruction]) -> None:
        """Put the instructions in a new order, which holds each of them once."""
        instructions = dict.fromkeys(order)
        assert instructions.keys() == self._as_members().keys()
        self._members = instructions
        self.changed()

    # -- bookkeeping of the readers and of Instruction --------------------------------------

    def adopt(self, instructions: Iterable[Instruction]) -> None:
        """Take freshly read instructions as they are, users not linked."""
        self._listed = list(instructions)

    def _as_members(self) -> dict[Instruction, None]:
        """The instructions as an ordered set. O(instructions), once after reading."""
        if self._listed is not None:
            self._members = dict.fromkeys(self._listed)
            self._listed = None
        return self._members

    def link_users(self) -> None:
        """Fill `users` of every instruction that was read from text. O(edges), once."""
        if self._linked:
            return
        self._linked = True
        for instruction in self.instructions:
            instruction.users = {}
        for instruction in self.instructions:
            for operand in instruction.operands:
                operand.users[instruction] = None

    def fill_texts(self) -> None:
        """Give `text` to every instruction that the fast lane read and nobody changed.

        O(length of the computation's source).
        """
        texts: dict[str, str] = {}
        if self.source_range and self.module.source:
            start, end = self.source_range
            for line in self.module.source.text[start:end].split("\n"):
                text = line.lstrip().removeprefix("ROOT ")
                texts[text.partition(" = ")[0].removeprefix("%")] = text
        for instruction in self.instructions:
            instruction.offer_text(texts.get(instruction.name))

    def add_caller(self, caller: Instruction) -> None:
        self.callers[caller] = self.callers.get(caller, 0) + 1

    def remove_caller(self, caller: Instruction) -> None:
        if self.callers[caller] == 1:
            del self.callers[caller]
        else:
            self.callers[caller] -= 1


def numbered_in_order(parameters: list[Instruction]) -> bool:
    """Whether parameters are numbered 0, 1, 2, …, as nearly all are written; False for many."""
    return [parameter.payload for parameter in parameters] == _NUMBERS[: len(parameters)]
