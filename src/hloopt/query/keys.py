"""The keys of selectors: what each stands for, how it is compared, where its value is."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from operator import attrgetter
from typing import Any

from hloopt.diagnostics import SelectorError, did_you_mean
from hloopt.ir.async_sugar import ASYNC_SUGAR
from hloopt.ir.attributes.table import attributes_of
from hloopt.ir.instruction import REFERENCE_ATTRIBUTES, Instruction
from hloopt.ir.opcode import OPCODES, Opcode
from hloopt.ir.shapes.element_type import ELEMENT_TYPES
from hloopt.query import values
from hloopt.query.facts import ModuleFacts
from hloopt.query.kinds import ATTRIBUTE, FLAG, LINE, NAME, NUMBER, SHAPE, SIZE, TEXT, Kind, choice

Values = Sequence[object] | frozenset[int] | bool
"""The values of something for a key: those that are there, or whether a flag holds."""
Subject = Callable[[Any], Hashable]


@dataclass(frozen=True, slots=True)
class Key:
    """A key of selectors: `doc` says what it stands for, `kind` how it is compared.

    `read` gives, for a module, the function from a subject to its values. The subject is the
    instruction, or what `subject` makes of it: its shape, its computation. `cost` tells what takes
    longer to read from what does not.
    """

    name: str
    kind: Kind
    doc: str
    read: Callable[[ModuleFacts], Callable[[Any], Values]]
    subject: Subject | None = None
    cost: int = 0


_SHAPE: Subject = attrgetter("shape")
_COMPUTATION: Subject = attrgetter("parent")


def _of(subject: Subject, name: str, kind: Kind, doc: str, read: Callable[[Any], Values]) -> Key:
    return Key(name, kind, doc, lambda facts: read, subject)


def _own(
    name: str, kind: Kind, doc: str, read: Callable[[Instruction], Values], *, cost: int = 1
) -> Key:
    return Key(name, kind, doc, lambda facts: read, cost=cost)


@cache
def opcode_names() -> frozenset[str]:
    """Every opcode in HLO text, those of asynchronous operations such as `X-start` included."""
    return frozenset((*OPCODES, *ASYNC_SUGAR))


_OPCODE = choice("opcode", opcode_names)
ELEMENT_CLASSES = {
    "float": frozenset(name for name, each in ELEMENT_TYPES.items() if each.kind == "float"),
    "int": frozenset(name for name, each in ELEMENT_TYPES.items() if each.is_integral),
    "complex": frozenset(name for name, each in ELEMENT_TYPES.items() if each.kind == "complex"),
    "f8": frozenset(name for name in ELEMENT_TYPES if name.startswith("f8")),
}
"""Names that stand for several element types."""
TYPE = choice("element type", lambda: {"tuple", *ELEMENT_TYPES}, ELEMENT_CLASSES)
_SLOW = 2  # what reads attributes, or links users

_DECLARED = (
    _of(
        values.opcodes, "opcode", _OPCODE, "opcode, as HLO text has it; of an asynchronous "
        "operation X both `async-start` and `X-start`", tuple,
    ),
    _own("name", NAME, "name of the instruction, with or without `%`", values.name),
    _of(
        _COMPUTATION, "computation", NAME, "name of the computation that the instruction is in",
        values.computation,
    ),
    _of(
        _SHAPE, "type", TYPE, "element type of the result, `f32`, or all of `float`, `int`, "
        "`complex`, `f8`; of a tuple those of all its parts, and `tuple`", values.element_types,
    ),
    _of(
        _SHAPE, "shape", SHAPE, "shape of the result as XLA prints it; `=` looks at layouts where "
        "its value has one, `~` sees them always", values.shape,
    ),
    _of(_SHAPE, "rank", NUMBER, "number of dimensions; of a tuple those of all its arrays",
        values.ranks),
    _of(_SHAPE, "dimension", NUMBER, "size of a dimension: any of any array", values.dimensions),
    _of(_SHAPE, "elements", NUMBER, "number of elements, of a tuple of all its arrays together",
        values.elements),
    _of(_SHAPE, "bytes", SIZE, "bytes of the elements, of a tuple of all its arrays together",
        values.size),
    _of(_SHAPE, "memory_space", NUMBER, "memory space `S(n)` of the layout: any array's; 0 where "
        "there is none", values.memory_spaces),
    _own("operand", NAME, "name of an operand", values.operand_names),
    _own("operands", NUMBER, "number of operands", values.operand_count),
    _own("user", NAME, "name of a user", values.user_names, cost=_SLOW),
    _own("users", NUMBER, "number of users, each once", values.user_count, cost=_SLOW),
    _own("calls", NAME, "name of a computation that the instruction calls", values.called_names),
    _own("op_name", TEXT, "`op_name` of the metadata", values.op_name, cost=_SLOW),
    _own("source", LINE, "line of the program in the metadata, the innermost that is not in a "
         "library", values.source, cost=_SLOW),
    _own("stack", LINE, "line of the program: any on the stack", values.stack, cost=_SLOW),
    _own("target", TEXT, "`custom_call_target`", values.target, cost=_SLOW),
    _own("channel", NUMBER, "`channel_id`", values.channel, cost=_SLOW),
    Key("group_size", NUMBER, "number of devices that meet in a collective, send or recv; of "
        "groups of several sizes any", lambda facts: facts.group_sizes, cost=_SLOW),
    _of(_COMPUTATION, "execution_thread", TEXT, "thread that the computation runs on",
        values.execution_thread),
    _own("is-collective", FLAG, "a collective, or a step of an asynchronous one",
         values.is_collective),
    _own("is-async", FLAG, "starts, continues or ends an asynchronous operation", values.is_async),
    _own("is-root", FLAG, "the root of its computation", values.is_root),
    _of(_COMPUTATION, "in-entry", FLAG, "in the entry computation", values.is_entry),
    Key("in-loop", FLAG, "in the body of a while loop, or in what that calls; not in the loop's "
        "own condition", lambda facts: facts.is_in_loop, _COMPUTATION),
    Key("in-fusion", FLAG, "in a fused computation, or in what that calls",
        lambda facts: facts.is_in_fusion, _COMPUTATION),
    Key("in-async", FLAG, "in what an async-start runs, or in what that calls",
        lambda facts: facts.is_in_async, _COMPUTATION),
)  # fmt: skip
KEYS = {key.name: key for key in _DECLARED}
"""Every key without a name of its own in it, in the order of the documentation."""


@dataclass(frozen=True, slots=True)
class Family:
    """Keys `prefix.NAME`, one for each name of something."""

    prefix: str
    kind: Kind
    doc: str
    read: Callable[[str, Instruction], Values]
    check: Callable[[str], None]
    """Raises SelectorError for a name that cannot be."""

    @property
    def name(self) -> str:
        return f"{self.prefix}.NAME"

    def key(self, name: str) -> Key:
        """The key of one name. Raises SelectorError."""
        if not name:
            raise SelectorError(f"expected a name behind '{self.prefix}.'")
        self.check(name)
        read = partial(self.read, name)
        return Key(f"{self.prefix}.{name}", self.kind, self.doc, lambda facts: read, cost=_SLOW)


def _check_attribute(name: str) -> None:
    if name in REFERENCE_ATTRIBUTES:
        raise SelectorError(
            f"'{name}' names computations or instructions", help="'calls=NAME' selects what calls"
        )
    known = _attribute_names()
    if name not in known:
        raise SelectorError(f"no opcode has an attribute '{name}'", help=did_you_mean(name, known))


@cache
def _attribute_names() -> frozenset[str]:
    return frozenset(attribute.name for opcode in Opcode for attribute in attributes_of(opcode))


FAMILIES = {
    family.prefix: family
    for family in (
        Family(
            "attr", ATTRIBUTE, "text of an attribute, blanks left out: `attr.dimensions={0,1}`",
            values.attribute, _check_attribute,
        ),
        Family(
            "frontend", TEXT, "value of a frontend attribute", values.frontend, lambda name: None
        ),
    )
}  # fmt: skip
"""The keys that have a name in them, by what stands before it."""


def find_key(name: str) -> Key | None:
    """The key of a name, in which `-` and `_` are the same; None where there is none.

    Raises SelectorError for a name in a family that cannot be.
    """
    prefix, dot, rest = name.partition(".")
    if dot and prefix in FAMILIES:
        return FAMILIES[prefix].key(rest)
    return _by_plain_name().get(_plain(name))


def suggestion(name: str, others: Sequence[str] = ()) -> str | None:
    """A hint at the key, or the one of some other names, that is nearest to an unknown one."""
    if name in _attribute_names():
        return f"did you mean 'attr.{name}'?"
    _, dot, rest = name.partition(".")
    families = [f"{prefix}.{rest if dot else 'NAME'}" for prefix in FAMILIES]
    return did_you_mean(name, [*KEYS, *families, *others])


@cache
def _by_plain_name() -> dict[str, Key]:
    return {_plain(name): key for name, key in KEYS.items()}


def _plain(name: str) -> str:
    return name.replace("-", "_")
