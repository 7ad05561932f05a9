"""Origins of collectives at stages behind the partitioner, as reports name them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hloopt.analysis.inventory.collectives import Collective, Form, collectives_of
from hloopt.diagnostics import counted
from hloopt.ir.attributes.typed import channel_of
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.sharding.belonging import check_later
from hloopt.sharding.explain import Confidence, Explanation, explain

Origins = Mapping[str, "Origin"]
"""The origins of a module's collectives by name; of asynchronous ones by that of the start, too."""


NOT_FOUND = "an instruction that the texts do not tell"


@dataclass(frozen=True, slots=True)
class Origin:
    """The instruction before the partitioner that a collective comes from."""

    name: str
    """Empty where no instruction was found."""
    opcode: str
    kind: str
    """The kind of cause: `operand reshard`, …"""
    value: str
    """The value that moves; empty where it is that of the instruction itself."""
    source: str
    """The line of the program; empty where it is not known."""
    confidence: Confidence
    others: int
    """Collectives that a pass combined with this one, whose origins are not told."""

    @classmethod
    def of(cls, explanation: Explanation, others: int) -> Origin:
        origin, value = explanation.origin, explanation.cause.value
        return cls(
            "" if origin is None else origin.name,
            "" if origin is None else origin.opcode.value,
            explanation.cause.kind.value,
            "" if value is None or value is origin else value.name,
            "" if explanation.line is None else explanation.line.label,
            explanation.confidence,
            others,
        )

    def text(self, cut: Callable[[str], str] = str) -> str:
        """`%d dot: operand reshard of %w, f.py:7`, and what is not sure about it.

        `cut` shortens names.
        """
        if not self.name:
            return NOT_FOUND
        moved = f" of %{cut(self.value)}" if self.value else ""
        line = f", {cut(self.source)}" if self.source else ""
        doubt = ", ambiguous" if self.confidence is Confidence.AMBIGUOUS else ""
        more = f", combined with {counted(self.others, 'other')}" if self.others else ""
        return f"%{cut(self.name)} {self.opcode}: {self.kind}{moved}{line}{doubt}{more}"

    def to_json(self) -> dict[str, Any]:
        """The origin as plain data; `made_by` is null where none was found."""
        return {
            "made_by": self.name or None,
            "opcode": self.opcode or None,
            "kind": self.kind,
            "value": self.value or None,
            "source": self.source or None,
            "confidence": self.confidence.value,
            "combined_with": self.others,
        }


def origins_of(module: Module, before: Module, after: Module | None = None) -> dict[str, Origin]:
    """The origins of the collectives of a module, by name.

    `before` is the program before the partitioner, `after` what the partitioner made of it; without
    that it is the module itself. Later passes keep the channel of a collective, and one that
    combines several keeps the channel of the first: a collective of a later module has the origin
    of the only one of its kind and channel in `after`, or none. Raises HloError where the texts do
    not belong together. Near-linear.
    """
    if after is not None:
        check_later(module, after)
    explained = explain(before, module if after is None else after)
    if after is None:
        return _by_name({e.collective: Origin.of(e, 0) for e in explained})
    by_channel: dict[int, list[Explanation]] = {}
    for explanation in explained:
        channel = channel_of(explanation.collective.instruction)
        if channel is not None:
            by_channel.setdefault(channel, []).append(explanation)
    found: dict[Collective, Origin] = {}
    for collective in collectives_of(module):
        made = by_channel.get(channel_of(collective.instruction) or 0, [])
        if len(made) == 1 and _is_kept(made[0].collective.kind, collective.kind):
            others = _combined(made[0].collective.instruction, collective)
            found[collective] = Origin.of(made[0], others)
    return _by_name(found)


def _is_kept(before: Opcode, after: Opcode) -> bool:
    """Whether a collective may have become another: an all-reduce of which parts are read is made
    a reduce-scatter."""
    return before is after or (before, after) == (Opcode.ALL_REDUCE, Opcode.REDUCE_SCATTER)


def _combined(made: Instruction, collective: Collective) -> int:
    """The number of collectives that were combined with one, by operands: those of an all-to-all
    are parts of one array."""
    if collective.kind is Opcode.ALL_TO_ALL:
        return 0
    return max(len(collective.instruction.operands) - len(made.operands), 0)


def _by_name(found: Mapping[Collective, Origin]) -> dict[str, Origin]:
    names: dict[str, Origin] = {}
    for collective, origin in found.items():
        names[collective.instruction.name] = origin
        if collective.form is Form.WRAPPED:
            callers = collective.instruction.parent.callers
            names.update((start.name, origin) for start in callers)
    return names
