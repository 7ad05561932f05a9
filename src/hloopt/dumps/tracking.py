"""One operation on its way through a compilation: which pass made, changed, fused or removed it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from hloopt.diagnostics import HloError, did_you_mean
from hloopt.dumps.chain import Chain, Effect, Step
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.sources.source_stacks import op_name_of

if TYPE_CHECKING:
    from hloopt.ir.module import Module


class Sight(NamedTuple):
    """An instruction at one stage."""

    name: str
    computation: str
    text: str
    """Opcode and shape."""
    inside: str
    """The fusion that it is in; empty outside of fusions."""


@dataclass(slots=True)
class Event:
    """A step at which what is followed became another thing."""

    step: Step
    verbs: list[str]
    """`made`, `changed`, `renamed`, `fused`, `moved`, `copied`, `removed`."""
    sights: list[Sight] = field(default_factory=list)
    """The instructions of it now, in the order of the text."""
    replaced_by: list[str] = field(default_factory=list)
    """Of what was removed: what is in its place, as far as neighbours tell."""


def track(chain: Chain, what: str) -> list[Event]:
    """The steps at which an operation changed: `%name`, or an op_name, from its first stage on.

    A name is followed by matching the modules of consecutive dumps; an op_name stands for all
    instructions that have it, at each stage. Raises HloError where no dump has it. O(n log n) for
    each step that changed something.
    """
    by_name = what.startswith("%")
    follower = _ByName(what[1:]) if by_name else _ByOpName(what)
    events: list[Event] = []
    before: _View | None = None
    known: set[str] = set()
    for step in chain.steps:
        if step.effect is Effect.NOTHING and before is not None:
            continue
        view = _View.read(step)
        if view is None:
            continue
        if before is None or not before.found:
            view.found = follower.first(view.module)
            if not view.found and not events:
                known |= follower.candidates(view.module)
        else:
            view.found = follower.next(before, view)
        event = _event(before, view)
        if event is not None:
            events.append(event)
        before = view
    if not events:
        raise HloError(
            f"no dump has {what}",
            help=did_you_mean(what, known) or "give a %name of any stage, or a whole op_name",
        )
    return events


@dataclass(slots=True)
class _View:
    """A stage, and what is followed in it."""

    step: Step
    module: Module
    found: list[Instruction] = field(default_factory=list)
    _partners: Mapping[Instruction, Instruction] | None = None

    @classmethod
    def read(cls, step: Step) -> _View | None:
        from hloopt.files import read_module
        from hloopt.verifier.well_formed import why_invalid

        try:
            module = read_module(step.path)
            why_invalid(module)  # raises where nothing can be said
            return cls(step, module)
        except HloError:
            return None

    def partners(self, before: _View) -> Mapping[Instruction, Instruction]:
        """The instructions here of those of the stage before. O(n log n), once."""
        from hloopt.analysis.matching import ModuleMatch

        if self._partners is None:
            self._partners = ModuleMatch.of(before.module, self.module).instructions
        return self._partners

    def sights(self) -> list[Sight]:
        return [
            Sight(i.name, i.parent.name, f"{i.opcode.value} {i.shape.text}", _fusion_of(i))
            for i in self.found
        ]


def _fusion_of(instruction: Instruction) -> str:
    callers = instruction.parent.callers
    fusions = [caller.name for caller in callers if caller.opcode is Opcode.FUSION]
    return fusions[0] if fusions else ""


class _ByOpName:
    """All instructions with one op_name."""

    def __init__(self, op_name: str) -> None:
        self._op_name = op_name

    def first(self, module: Module) -> list[Instruction]:
        return [each for each in module.instructions() if op_name_of(each) == self._op_name]

    def next(self, before: _View, view: _View) -> list[Instruction]:
        return self.first(view.module)

    def candidates(self, module: Module) -> set[str]:
        return {name for each in module.instructions() if (name := op_name_of(each))}


class _ByName:
    """An instruction, its partner at the next stage, and so on."""

    def __init__(self, name: str) -> None:
        self._name = name

    def first(self, module: Module) -> list[Instruction]:
        return [each for each in module.instructions() if each.name == self._name]

    def next(self, before: _View, view: _View) -> list[Instruction]:
        partners = view.partners(before)
        found = [partners[each] for each in before.found if each in partners]
        lost = {each.name for each in before.found if each not in partners}
        taken = set(partners.values())
        for each in view.module.instructions():  # moved into another computation, under its name
            if each.name in lost and each not in taken:
                found.append(each)
        return found

    def candidates(self, module: Module) -> set[str]:
        return {f"%{each.name}" for each in module.instructions()}


def _event(before: _View | None, view: _View) -> Event | None:
    new = view.sights()
    old = [] if before is None else before.sights()
    if before is None or not old:
        verb = "there" if before is None else "made"  # by that pass, or by one before it
        return Event(view.step, [verb], new) if new else None
    if not new:
        return Event(view.step, ["removed"], [], _replacements(before, view))
    verbs = _verbs(old, new)
    return Event(view.step, verbs, new) if verbs else None


def _verbs(old: Sequence[Sight], new: Sequence[Sight]) -> list[str]:
    """How two lists of sights differ; empty if they do not."""
    verbs: list[str] = []
    if len(new) != len(old):
        verbs.append("copied" if len(new) > len(old) else "merged")
    for verb, part in (
        ("fused", "inside"), ("moved", "computation"), ("changed", "text"), ("renamed", "name")
    ):  # fmt: skip
        before, after = (sorted({getattr(s, part) for s in each}) for each in (old, new))
        if before != after and not (verb == "moved" and "fused" in verbs):
            verbs.append(verb if verb != "fused" or any(after) else "taken out of a fusion")
    return verbs


def _replacements(before: _View, view: _View) -> list[str]:
    """Names of what the users of removed instructions read instead."""
    partners = view.partners(before)
    found: dict[str, None] = {}
    for removed in before.found:
        for user in removed.users:
            partner = partners.get(user)
            if partner is None or len(partner.operands) != len(user.operands):
                continue
            for old, new in zip(user.operands, partner.operands, strict=True):
                if old is removed:
                    found[f"%{new.name}"] = None
    return list(found)


def tracks_to_json(events: Iterable[Event]) -> list[dict[str, object]]:
    """Events as plain data."""
    return [
        {
            "stage": event.step.stage.label,
            "pass": event.step.maker,
            "file": event.step.path,
            "verbs": event.verbs,
            "instructions": [sight._asdict() for sight in event.sights],
            "replaced_by": event.replaced_by,
        }
        for event in events
    ]
