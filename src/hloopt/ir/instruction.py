"""One HLO instruction: a node of the graph, changed in place, compared by identity."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from hloopt.diagnostics import HloVerifyError
from hloopt.ir.attributes.text import split_attributes
from hloopt.ir.indexed_operands import MANY_OPERANDS, index_operands
from hloopt.ir.opcode import CONTROL_FLOW_CALLERS, EMBEDDED_CALLERS, Opcode
from hloopt.ir.shapes.shape import Shape

if TYPE_CHECKING:
    from hloopt.ir.computation import Computation


class Instruction:
    """An operation with its operands, attributes, called computations and control edges.

    Made by the readers of HLO text and by `Computation.add`. Some slots stay empty until they are
    read (`_LAZY` below says how each is filled), because most passes read few of them:

    - `attributes` are split from their text, once per distinct text;
    - `users` of a whole computation are linked when one of them is asked for;
    - `text` of a whole computation likewise, from its lines in the source.

    Change an instruction through its methods only: they keep users, callers and the text right.
    """

    __slots__ = (
        "__weakref__",
        "attribute_text",
        "attributes",
        "called",
        "control_predecessors",
        "control_successors",
        "name",
        "opcode",
        "operands",
        "parent",
        "payload",
        "shape",
        "text",
        "users",
    )

    name: str
    opcode: Opcode
    attribute_text: str | None
    """The attributes as they were read, references included; None where that is not known. A key
    for what depends on attributes alone: equal texts mean equal attributes."""
    operands: list[Instruction]
    parent: Computation
    shape: Shape
    attributes: Mapping[str, str]
    """Attributes as text by name, in order; without computations and control predecessors."""
    called: tuple[Computation, ...]
    """Called computations: a while's body before its condition, a select-and-scatter's select
    before its scatter, else in the order of the text."""
    control_predecessors: Mapping[Instruction, None]
    """Control predecessors, which run before: an ordered set. Change it by methods."""
    control_successors: Mapping[Instruction, None]
    users: dict[Instruction, None]
    """Instructions with this one as operand, each once, in order of creation."""
    payload: str
    """The text between a parameter's or a constant's parentheses; else empty."""
    text: str | None
    """The instruction as it was read, from its name to its last attribute; None once changed."""

    if not TYPE_CHECKING:

        def __getattr__(self, slot: str) -> Any:
            fill = _LAZY.get(slot)
            if fill is None:
                raise AttributeError(f"'Instruction' object has no attribute '{slot}'")
            return fill(self)

    # -- facts ------------------------------------------------------------------------------

    @property
    def is_root(self) -> bool:
        return self.parent.root is self

    @property
    def parameter_number(self) -> int:
        """The parameter of its computation that a parameter is. Raises HloVerifyError."""
        number = self.payload.strip()
        if not number.isdecimal() or len(number) > 9:
            raise HloVerifyError(
                f"'{number}' is not a parameter number", span=self.parent.module.span_of(self)
            )
        return int(number)

    @property
    def has_control_dependencies(self) -> bool:
        return bool(self.control_predecessors or self.control_successors)

    def attribute(self, name: str) -> str | None:
        """The text of an attribute, None without it.

        Unlike `attributes` it splits what was read only where the name is in it, which is seldom
        so: ask for a rare attribute of many instructions by this.
        """
        as_read = self.attribute_text
        if as_read is not None and name not in as_read:
            return None
        return self.attributes.get(name)

    @property
    def tuple_index(self) -> int:
        """The element a get-tuple-element reads. Raises HloVerifyError."""
        try:
            return int(self.attributes["index"])
        except (KeyError, ValueError):
            raise HloVerifyError(
                f"{self.opcode} needs the attribute 'index', a number",
                span=self.parent.module.span_of(self),
                code="HLO106",
            ) from None

    def called_attributes(self) -> Iterator[tuple[str, tuple[Computation, ...]]]:
        """The called computations under the names of their attributes, as printed."""
        called = self.called
        if not called:
            return
        match self.opcode:
            case Opcode.WHILE:
                yield "condition", called[1:]
                yield "body", called[:1]
            case Opcode.SELECT_AND_SCATTER:
                yield "select", called[:1]
                yield "scatter", called[1:]
            case Opcode.CONDITIONAL if self.operands[0].shape.type_name == "pred":
                yield "true_computation", called[:1]
                yield "false_computation", called[1:]
            case Opcode.CONDITIONAL:
                yield "branch_computations", called
            case Opcode.FUSION | Opcode.ASYNC_START:
                yield "calls", called
            case Opcode.CUSTOM_CALL:
                yield "called_computations", called
            case _:
                yield "to_apply", called

    def __repr__(self) -> str:
        return f"<%{self.name} = {self.opcode}>"

    def __str__(self) -> str:
        """The instruction as it is printed, in one line, without `ROOT`."""
        return str(import_module("hloopt.text.module_printer").instruction_line(self))

    # -- changes ----------------------------------------------------------------------------

    def changed(self) -> None:
        """Drop what was remembered of the text, here and in what contains this instruction."""
        self.text = None
        self.parent.changed()

    def set_shape(self, shape: Shape) -> None:
        """Give the value another shape; the text of its users may have stated the old one.

        O(users).
        """
        self.shape = shape
        self.changed()
        for user in self.users:
            user.changed()

    def set_attribute(self, name: str, value: str | None) -> None:
        """Give an attribute a new text, or remove it with None."""
        attributes = dict(self.attributes)
        if value is None:
            attributes.pop(name, None)
        else:
            attributes[name] = value
        self.attributes = attributes
        self.attribute_text = None
        self.changed()

    def take_name(self, name: str) -> None:
        """Take the name of an instruction that has left the module. O(users)."""
        self.name = name
        self.changed()
        for user in self.users:
            user.changed()
        for successor in self.control_successors:
            successor.changed()

    def set_payload(self, payload: str) -> None:
        """Give a parameter another number, or a constant another literal."""
        self.payload = payload
        self.changed()

    def replace_operand(self, number: int, new: Instruction) -> None:
        """Make `new` the operand at `number`. O(operands)."""
        old = self.operands[number]
        if old is new:
            return
        old_users = old.users  # filled before the edge changes
        new.users[self] = None
        self.operands = list(self.operands)
        self.operands[number] = new
        if old not in self.operands:
            del old_users[self]
        self.changed()

    def exchange_operand(self, old: Instruction, new: Instruction) -> None:
        """Make `new` the operand wherever `old` is one.

        O(operands) where they are few, or once where they are many; after that O(places of `old`).
        """
        operands, old_users = self.operands, old.users  # filled before the edge changes
        if len(operands) < MANY_OPERANDS:
            self.operands = [new if operand is old else operand for operand in operands]
        else:
            index_operands(self).exchange(old, new)
        del old_users[self]
        new.users[self] = None
        self.changed()

    def set_operands(self, operands: Iterable[Instruction]) -> None:
        """Replace all operands at once."""
        self._drop_operands()
        self.operands = list(operands)
        for operand in self.operands:
            operand.users[self] = None
        self.changed()

    def replace_all_uses_with(self, new: Instruction) -> None:
        """Let every user, and the computation's root, refer to `new` instead. O(uses)."""
        for user in list(self.users):
            if user is not new:
                user.exchange_operand(self, new)
        if self.is_root:
            self.parent.set_root(new)

    def set_called(self, called: tuple[Computation, ...]) -> None:
        """Replace the called computations, keeping their callers right."""
        for computation in self.called:
            computation.remove_caller(self)
        self.called = called
        for computation in called:
            computation.add_caller(self)
        self.changed()

    def add_control_predecessor(self, predecessor: Instruction) -> None:
        """Let this run only after `predecessor`, which is in the same computation."""
        if predecessor in self.control_predecessors:
            return
        self.control_predecessors = _with(self.control_predecessors, predecessor)
        predecessor.control_successors = _with(predecessor.control_successors, self)
        self.changed()

    def remove_control_predecessor(self, predecessor: Instruction) -> None:
        self.control_predecessors = _without(self.control_predecessors, predecessor)
        predecessor.control_successors = _without(predecessor.control_successors, self)
        self.changed()

    def drop_control_dependencies(self) -> None:
        """Remove all control edges from and to this instruction."""
        if not self.has_control_dependencies:
            return
        for predecessor in list(self.control_predecessors):
            self.remove_control_predecessor(predecessor)
        for successor in list(self.control_successors):
            successor.remove_control_predecessor(self)

    def move_control_dependencies_to(self, other: Instruction) -> None:
        """Give `other` all control edges of this instruction, edges to itself excepted."""
        if not self.has_control_dependencies:
            return
        predecessors, successors = list(self.control_predecessors), list(self.control_successors)
        self.drop_control_dependencies()
        for predecessor in predecessors:
            if predecessor is not other:
                other.add_control_predecessor(predecessor)
        for successor in successors:
            if successor is not other:
                successor.add_control_predecessor(other)

    def offer_text(self, text: str | None) -> None:
        """Take `text` as the text it was read from, unless that is known or gone already."""
        try:
            _TEXT_SLOT.__get__(self)
        except AttributeError:
            self.text = text

    def _drop_operands(self) -> None:
        users = [operand.users for operand in self.operands]  # all filled before an edge goes
        for operand_users in users:
            operand_users.pop(self, None)
        self.operands = []


_TEXT_SLOT = Instruction.__dict__["text"]
_USERS_SLOT = Instruction.__dict__["users"]


NO_INSTRUCTIONS: Mapping[Instruction, None] = MappingProxyType({})
"""Shared by all instructions without control dependencies."""


def _with(items: Mapping[Instruction, None], item: Instruction) -> Mapping[Instruction, None]:
    """`items` with one more: the same dict where it is one. O(1)."""
    if not isinstance(items, dict):
        return {item: None}
    items[item] = None
    return items


def _without(items: Mapping[Instruction, None], item: Instruction) -> Mapping[Instruction, None]:
    """`items` with one less: the same dict unless that is empty now. O(1)."""
    if isinstance(items, dict):
        items.pop(item, None)
    return items or NO_INSTRUCTIONS


def _fill_attributes(instruction: Instruction) -> Mapping[str, str]:
    attributes = without_references(
        instruction.opcode, split_attributes(instruction.attribute_text or "")
    )
    instruction.attributes = attributes
    return attributes


def without_references(opcode: Opcode, attributes: Mapping[str, str]) -> Mapping[str, str]:
    """`attributes` of an instruction without those that name computations or instructions."""
    if REFERENCE_ATTRIBUTES.isdisjoint(attributes):
        return attributes
    calls = opcode in CONTROL_FLOW_CALLERS or opcode in EMBEDDED_CALLERS
    kept = REFERENCE_ATTRIBUTES if calls else _CONTROL  # elsewhere they are out of place
    return {k: v for k, v in attributes.items() if k not in kept}


def _fill_users(instruction: Instruction) -> dict[Instruction, None]:
    instruction.parent.link_users()
    try:
        return _USERS_SLOT.__get__(instruction)  # type: ignore[no-any-return]  # untyped slot
    except AttributeError:  # not (yet) in its computation's list
        instruction.users = {}
        return instruction.users


def _fill_text(instruction: Instruction) -> str | None:
    instruction.parent.fill_texts()
    return instruction.text


def _fill_called(instruction: Instruction) -> tuple[Computation, ...]:
    instruction.called = ()
    return ()


def _fill_control_predecessors(instruction: Instruction) -> Mapping[Instruction, None]:
    instruction.control_predecessors = NO_INSTRUCTIONS
    return NO_INSTRUCTIONS


def _fill_control_successors(instruction: Instruction) -> Mapping[Instruction, None]:
    instruction.control_successors = NO_INSTRUCTIONS
    return NO_INSTRUCTIONS


def _fill_payload(instruction: Instruction) -> str:
    instruction.payload = ""
    return ""


def _fill_attribute_text(instruction: Instruction) -> None:
    instruction.attribute_text = None


COMPUTATION_LISTS = ("branch_computations", "called_computations")
"""Attributes that name several computations, in braces."""
REFERENCE_ATTRIBUTES = frozenset(
    (
        *("to_apply", "calls", "condition", "body", "branch_computations", "true_computation"),
        *("false_computation", "select", "scatter", "called_computations"),
        "control-predecessors",
    )
)
"""Attributes that name computations or instructions: kept as references, never as text."""
_CONTROL = frozenset(("control-predecessors",))

_LAZY: dict[str, Callable[[Instruction], Any]] = {
    "attributes": _fill_attributes,
    "text": _fill_text,
    "users": _fill_users,
    "called": _fill_called,
    "control_predecessors": _fill_control_predecessors,
    "control_successors": _fill_control_successors,
    "payload": _fill_payload,
    "attribute_text": _fill_attribute_text,
}
