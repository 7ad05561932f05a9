"""A module: computations, one of them the entry, and the attributes of the header."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING, ClassVar

from hloopt.diagnostics import Source, Span
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.lookup import find_by_name
from hloopt.ir.names import NameTable
from hloopt.ir.opcode import Opcode

if TYPE_CHECKING:
    from hloopt.ir.sources.stack_frames import CanonicalFrames
    from hloopt.ir.sources.stacks import Stacks


class Module:
    """An HLO module.

    `computations` keeps the order of the text, new ones last. Instruction names are unique over
    the whole module, computation names are a space of their own.
    """

    __slots__ = (
        "attributes",
        "canonical_frames",
        "computation_names",
        "computations",
        "entry",
        "header_text",
        "instruction_names",
        "is_pristine",
        "name",
        "read_names",
        "source",
        "stack_frames",
        "stacks",
        "version",
    )

    def __init__(self, name: str, source: Source | None = None) -> None:
        self.name = name
        self.source = source
        self.attributes: dict[str, str] = {}
        """The header's attributes as text, `is_scheduled` included."""
        self.stack_frames: str = ""
        """The four stack-frame tables as text; empty where there are none."""
        self.canonical_frames: tuple[int, CanonicalFrames] | None = None
        """The result of `canonical_frames.canonical_frames`, with the version it is of."""
        self.stacks: Stacks | None = None
        """Results of `source_stacks.stack_of`, with the tables they are of."""
        self.computations: dict[str, Computation] = {}
        self.entry: Computation = None  # type: ignore[assignment]  # set before anyone looks
        self.header_text: str | None = None
        """The header as it was read; None once one of its attributes changed."""
        self.read_names: dict[Instruction, str] = {}
        """Names in the source of instructions that were renamed while they were read."""
        self.instruction_names = NameTable()
        self.computation_names = NameTable()
        self.version = 0
        """Counts changes: equal versions mean that nothing happened in between."""
        self.is_pristine = False
        """Whether the module is still exactly what its source says."""

    @property
    def is_scheduled(self) -> bool:
        return self.attributes.get("is_scheduled") == "true"

    @property
    def replica_count(self) -> int:
        """The number of replicas; 1 if the header has none, or 0."""
        return int(self.attributes.get("replica_count", 1)) or 1

    @property
    def num_partitions(self) -> int:
        return int(self.attributes.get("num_partitions", 1))

    __iter__: ClassVar[None] = None
    """Lookup by name does not make it a sequence: iterate over `instructions()`."""

    def __getitem__(self, name: str) -> Instruction:
        """The instruction of a name, with or without `%`; `computations` has those by name.

        O(instructions). Raises NoSuchName, a KeyError: with a near name, or with all instructions
        that have the name in the text, where it is in several computations.
        """
        found = self.instructions()
        return find_by_name(name, found, self.read_names, f"module {self.name}", self.computations)

    def instructions(self, opcode: Opcode | None = None) -> Iterator[Instruction]:
        """All instructions, or those with an opcode, computation by computation."""
        found = chain.from_iterable(c.instructions for c in self.computations.values())
        return found if opcode is None else (i for i in found if i.opcode is opcode)

    def computations_with(self, opcode: Opcode) -> list[Computation]:
        """The computations that have an instruction with an opcode. O(instructions)."""
        return list(dict.fromkeys(i.parent for i in self.instructions(opcode)))

    def instruction_count(self) -> int:
        return sum(len(computation) for computation in self.computations.values())

    def span_of(self, instruction: Instruction) -> Span | None:
        """The span of the source that defines `instruction`, or that it was read as a part of.

        None for what a pass made. O(computation).
        """
        if self.source is None:
            return None
        scope = instruction.parent.source_range
        if scope is None:
            callers = iter(instruction.parent.callers if instruction.parent.is_sugar else ())
            caller = next(callers, None)
            return self.span_of(caller) if caller else None
        name = re.escape(self.read_names.get(instruction, instruction.name))
        text = self.source.text
        match = (
            re.compile(rf"%?\b{name}\s+=\s[^\n]*").search(text, *scope)
            # An attribute may be called the same: so only where nothing else is found.
            or re.compile(rf"%?\b{name}\s*=[^\n]*").search(text, *scope)
        )
        if match:
            return Span(self.source, match.start(), match.end())
        is_nameless = ".anon" in instruction.name and len(instruction.users) == 1
        return self.span_of(next(iter(instruction.users))) if is_nameless else None

    def span_of_attribute(self, instruction: Instruction, name: str) -> Span | None:
        """The span of an attribute's value of `instruction` in the source. O(computation)."""
        span = self.span_of(instruction)
        if span is None:
            return None
        text = span.source.text
        match = re.compile(rf"\b{re.escape(name)}=\s*").search(text, span.start)
        if match is None:
            return span
        line_end = text.find("\n", match.end())
        value_end = match.end() + len(instruction.attributes.get(name, ""))
        return Span(
            span.source, match.end(), min(value_end, line_end if line_end >= 0 else len(text))
        )

    def place_of(self, instruction: Instruction) -> str:
        """The name of `instruction` in messages; more than its name where there is no text to
        show."""
        if self.source is None or self.source.text:
            return f"%{instruction.name}"
        computation = instruction.parent.name
        return f"{self.source.name}: %{instruction.name} in computation %{computation}"

    def __repr__(self) -> str:
        return f"<module {self.name}, {len(self.computations)} computations>"

    def __str__(self) -> str:
        """The module as HLO text, as `print_module` prints it. O(length of the result)."""
        return str(import_module("hloopt.text.printer").print_module(self))

    # -- changes ----------------------------------------------------------------------------

    def changed(self) -> None:
        self.is_pristine = False
        self.version += 1

    def set_attribute(self, name: str, value: str | None) -> None:
        """Give an attribute of the header a new text, or remove it with None."""
        if value is None:
            self.attributes.pop(name, None)
        else:
            self.attributes[name] = value
        self.header_text = None
        self.changed()

    def set_stack_frames(self, text: str) -> None:
        self.stack_frames = text
        self.changed()

    def become(self, other: Module) -> None:
        """Take over all of `other`, which must not be used afterwards. O(computations)."""
        version = self.version + 1
        for slot in Module.__slots__:
            setattr(self, slot, getattr(other, slot))
        for computation in self.computations.values():
            computation.module = self
        self.version = version

    def add_computation(self, name: str) -> Computation:
        """A new, empty computation at the end; its name is made unique."""
        computation = Computation(self, self.computation_names.unique(name))
        self.computations[computation.name] = computation
        self.changed()
        return computation

    def move_to_end(self, computations: Iterable[Computation]) -> None:
        """Let computations be the last ones, in this order. O(those given)."""
        for computation in computations:
            self.computations[computation.name] = self.computations.pop(computation.name)
        self.changed()

    def remove_computations(self, computations: Iterable[Computation]) -> None:
        """Remove computations that only each other call, with their instructions."""
        gone = list(computations)
        for computation in gone:
            assert computation is not self.entry, f"{computation!r} is the entry"
            for instruction in computation.instructions:
                for callee in instruction.called:
                    callee.remove_caller(instruction)
        for computation in gone:
            assert not computation.callers, f"{computation!r} is still called"
            del self.computations[computation.name]
        if gone:
            self.changed()
