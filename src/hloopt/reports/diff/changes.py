"""Differences between an instruction and its partner, and their kinds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from hloopt.analysis.content import Bodies, Content
from hloopt.analysis.matching import ModuleMatch
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.literals.literal import canonical_literal
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape import format_shape, without_layout
from hloopt.text import PrintOptions, format_instruction


class Difference(StrEnum):
    """Kinds of difference between two partners, or of an instruction or computation without one."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"
    REWIRED = "rewired"
    """Only operands differ, and only where an instruction was added or removed."""
    METADATA = "metadata"
    """Nothing but metadata differs, names aside."""
    RENAMED = "renamed"
    """Nothing but the name differs."""


@dataclass(slots=True)
class InstructionLine:
    """One instruction as XLA prints it; large constants are elided unless these differ."""

    name: str
    opcode: str
    text: str
    shape: str = ""
    """Without layouts."""


@dataclass(slots=True)
class InstructionChange:
    """A pair of partners that differ.

    `what` names the parts that differ: `shape`, `layout`, `operands`, `calls`, `root`, `control`,
    `constant`, `parameter number`, attributes, `metadata.FIELD`; `values` has for each the
    texts before and after, None where there are none; of operands the opcodes of differing ones.
    """

    kind: Difference
    before: InstructionLine
    after: InstructionLine
    what: tuple[str, ...] = ()
    values: tuple[tuple[str | None, str | None], ...] = ()


_ELIDED = PrintOptions.default()
_WHOLE = PrintOptions(print_large_constants=True)


def line_of(instruction: Instruction, options: PrintOptions = _ELIDED) -> InstructionLine:
    """Print an instruction, with its shape apart."""
    text = format_instruction(instruction, options)
    if instruction.is_root:
        text = f"ROOT {text}"
    shape = format_shape(instruction.shape, layout=False)
    return InstructionLine(instruction.name, instruction.opcode.value, text, shape)


@dataclass(slots=True)
class _Parts:
    """The parts in which two instructions differ, each with its texts before and after."""

    texts: dict[str, tuple[str | None, str | None]] = field(default_factory=dict)
    follows: bool = True
    """Whether all differences follow from added or removed instructions."""

    def add(
        self,
        name: str,
        before: str | None = None,
        after: str | None = None,
        *,
        follows: bool = False,
    ) -> None:
        self.texts[name] = before, after
        self.follows = self.follows and follows


class ChangeFinder:
    """Compares partners of a match, without the classes of content that `content` ignores."""

    def __init__(self, match: ModuleMatch, content: Content, before: Module, after: Module) -> None:
        self._content = content
        self._partner = match.instructions
        self._origin = {new: old for old, new in match.instructions.items()}
        self._computations = match.computations
        self._modules = before, after
        self._bodies: Bodies | None = None

    def is_added(self, new: Instruction) -> bool:
        return new not in self._origin

    def bodies(self) -> Bodies:
        """Value numbers for both modules, metadata aside. Near-linear, once."""
        if self._bodies is None:
            self._bodies = Bodies(Content(self._content.ignored | {"metadata"}))
            for module in self._modules:
                self._bodies.add(module)
        return self._bodies

    def compare(self, old: Instruction, new: Instruction) -> InstructionChange | None:
        """The difference of two partners; None if they are equal. O(operands)."""
        parts = _Parts()
        self._compare_values(old, new, parts)
        self._compare_references(old, new, parts)
        names = self._content.differing_attributes(old, new)
        if not parts.texts and not names:
            if old.name == new.name or "names" in self._content.ignored:
                return None
            return InstructionChange(Difference.RENAMED, line_of(old), line_of(new))
        if not parts.texts and all(map(_is_metadata, names)):
            kind = Difference.METADATA
        elif names or not parts.follows:
            kind = Difference.CHANGED
        else:
            kind = Difference.REWIRED
        for name in names:
            parts.add(name, old.attributes.get(name), new.attributes.get(name))
        options = _WHOLE if "constant" in parts.texts else _ELIDED
        before, after = line_of(old, options), line_of(new, options)
        return InstructionChange(
            kind, before, after, tuple(parts.texts), tuple(parts.texts.values())
        )

    def _compare_values(self, old: Instruction, new: Instruction, parts: _Parts) -> None:
        content = self._content
        if old.shape is not new.shape:
            a, b = content.shape(old.shape), content.shape(new.shape)
            if a is not b:
                is_layout = without_layout(a) is without_layout(b)
                parts.add("layout" if is_layout else "shape", a.text, b.text)
        if old.payload != new.payload and content.payload(old) != content.payload(new):
            if old.opcode is not Opcode.CONSTANT:
                parts.add("parameter number")
            elif _literal(old) != _literal(new):
                parts.add("constant")

    def _compare_references(self, old: Instruction, new: Instruction, parts: _Parts) -> None:
        if [self._partner.get(operand) for operand in old.operands] != list(new.operands):
            pairs = [
                (a.opcode.value, b.opcode.value)
                for a, b in zip(old.operands, new.operands, strict=False)
                if self._partner.get(a) is not b
            ]
            parts.add(
                "operands",
                ", ".join(before for before, _ in pairs),
                ", ".join(after for _, after in pairs),
                follows=self._follows(old.operands, new.operands),
            )
        if old.is_root != new.is_root:
            follows = old.parent.root not in self._partner or self.is_added(new.parent.root)
            parts.add("root", follows=follows)
        if (old.called or new.called) and not self._calls_the_same(old, new):
            parts.add("calls")
        if "control" in self._content.ignored:
            return
        control = {self._partner.get(each) for each in old.control_predecessors}
        if control != set(new.control_predecessors):
            lost = [p for p in old.control_predecessors if p in self._partner]
            kept = [p for p in new.control_predecessors if p in self._origin]
            parts.add("control", follows={self._partner[p] for p in lost} == set(kept))

    def _follows(self, old: Sequence[Instruction], new: Sequence[Instruction]) -> bool:
        """Whether operands differ only in removed and added ones."""
        if len(old) == len(new):
            return all(
                self._partner.get(a) is b or a not in self._partner or self.is_added(b)
                for a, b in zip(old, new, strict=True)
            )
        kept = [self._partner[a] for a in old if a in self._partner]
        return kept == [b for b in new if not self.is_added(b)]

    def _calls_the_same(self, old: Instruction, new: Instruction) -> bool:
        if len(old.called) != len(new.called):
            return False
        return all(
            self._computations.get(a) is b or self._do_the_same(a, b)
            for a, b in zip(old.called, new.called, strict=True)
        )

    def _do_the_same(self, old: Computation, new: Computation) -> bool:
        numbers = self.bodies().computations
        return numbers[old] == numbers[new]


def _is_metadata(name: str) -> bool:
    return name.startswith("metadata") or name in ("origin", "statistics")


def _literal(constant: Instruction) -> str:
    return canonical_literal(constant.payload, constant.shape)
