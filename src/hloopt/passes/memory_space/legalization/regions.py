"""Regions of values in host memory, and the copies in them that can move out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from hloopt.ir.custom_targets import custom_call_target
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.layout import Layout
from hloopt.passes.memory_space.legalization.renaming import renamed
from hloopt.passes.memory_space.legalization.steps import (
    TO_DEVICE,
    TO_HOST,
    Step,
    Use,
    sources,
    steps,
)
from hloopt.passes.memory_space.places import Place

RENAMING = frozenset((Opcode.BITCAST, Opcode.RESHAPE, Opcode.COPY))
_ON_THE_WAY_BACK = RENAMING | {Opcode.SLICE, Opcode.DYNAMIC_SLICE}


class NotUnderstood(Exception):
    """The reason why a region is left alone: the reason of a remark."""


@dataclass(slots=True)
class Region:
    """All places that a value, and what shares buffers with it, goes through in host memory."""

    places: dict[Place, None] = field(default_factory=dict)
    begins: list[Place] = field(default_factory=list)
    """The places where values come to host memory."""
    source: str = ""
    """The reason why it is not known where a value comes from; empty where all is known."""

    @property
    def copies(self) -> Iterator[Instruction]:
        """The copies of whole arrays in it."""
        return (i for i, path in self.places if i.opcode is Opcode.COPY and not path)


def region_of(start: Place) -> Region:
    """The region around a place. O(places, users and tuple elements on the way)."""
    region = Region()
    waiting = [start]
    while waiting:
        place = waiting.pop()
        if place in region.places:
            continue
        region.places[place] = None
        before = sources(place)
        if before is None:
            region.source = (
                region.source or f"%{place.instruction.name} is no buffer in host memory"
            )
        elif not before:
            region.begins.append(place)
        waiting += before or ()
        waiting += (following for step in steps(place) for following in step.following)
    return region


class History(NamedTuple):
    """The layouts that a value had, the first of which it keeps."""

    layouts: tuple[Layout, ...]
    copies: tuple[Instruction, ...] = ()
    """The copies between them, which move out of the region."""
    is_behind_a_copy: bool = False
    """Whether a copy that stays is in front of it."""


@dataclass(slots=True)
class Plan:
    """The copies of a region that move, and those that stay."""

    histories: dict[Place, History]
    staying: dict[Instruction, str]
    """The copies that stay, with reasons."""

    @property
    def moving(self) -> list[Instruction]:
        """The copies that move out."""
        return [
            place.instruction
            for place, history in self.histories.items()
            if history.copies and history.copies[-1] is place.instruction
        ]


def plan_of(region: Region) -> Plan:
    """The copies that can move. Raises NotUnderstood where a copy may not be on the host at all.

    A copy stays where something behind it needs its layout. O(places and the users of each), as
    often as there are copies that follow one another.
    """
    if region.source:
        raise NotUnderstood(region.source)
    staying = {
        c: "it has control dependencies" for c in region.copies if c.has_control_dependencies
    }
    while True:
        walk = _Walk(staying)
        walk.run(region.begins)
        if not walk.stopped:
            return Plan(walk.histories, staying)
        staying |= walk.stopped


class _Walk:
    """One walk from where values come to host memory, over the copies that may move."""

    def __init__(self, staying: dict[Instruction, str]) -> None:
        self.histories: dict[Place, History] = {}
        self.stopped: dict[Instruction, str] = {}
        self._staying = staying
        self._waiting: list[Place] = []

    def run(self, begins: list[Place]) -> None:
        for place in begins:
            self._arrive(place, History((place.shape.layout,)))
        for place in self._waiting:  # grows meanwhile
            for step in steps(place):
                self._take(step, self.histories[place])

    def _take(self, step: Step, history: History) -> None:
        reason = refusal(step, history)
        if reason is not None:
            self._stop(history, reason)
            return
        if step.use is Use.COPIES:
            copy = step.user
            if copy in self._staying:
                history = History((copy.shape.layout,), is_behind_a_copy=True)
            else:
                history = history._replace(
                    layouts=(*history.layouts, copy.shape.layout),
                    copies=(*history.copies, copy),
                )
        elif step.use is Use.RENAMES:
            history = _renamed(history, step.user)
        for place in step.following:
            self._arrive(place, history)

    def _arrive(self, place: Place, history: History) -> None:
        if not history.copies:
            history = history._replace(layouts=(place.shape.layout,))
        elif not _alike(place.shape.layout, history.layouts[-1]):
            self._stop(history, f"%{place.instruction.name} changes its layout")
            return
        known = self.histories.get(place)
        if known is None:
            self.histories[place] = history
            self._waiting.append(place)
        elif _alike(known.layouts[0], history.layouts[0]):
            return
        else:
            reason = f"%{place.instruction.name} has it in another layout from elsewhere"
            for one in (known, history):
                if one.copies:
                    self._stop(one, reason)

    def _stop(self, history: History, reason: str) -> None:
        if history.copies:
            self.stopped.setdefault(history.copies[-1], reason)
        elif not history.is_behind_a_copy:
            raise NotUnderstood(reason)


def refusal(step: Step, history: History) -> str | None:
    """The reason why a use does not go with a history; None where it does."""
    user = step.user
    match step.use:
        case Use.UNKNOWN:
            return f"%{user.name} does something with it on the host"
        case _ if not history.copies:
            return None
        case Use.KEEPS:
            return f"%{user.name} takes it in that layout"
        case Use.IS_RESULT:
            return "the program returns it in that layout"
        case Use.RENAMES if any(renamed(layout, user) is None for layout in history.layouts):
            return f"%{user.name} does more than to rename dimensions"
        case Use.WRITES if update_of(user) is None:
            return f"%{user.name} writes what no MoveToHost gives"
        case Use.SLICES if way_back(user) is None:
            raise NotUnderstood(f"no MoveToDevice follows %{user.name} alone")
    return None


def _renamed(history: History, renaming: Instruction) -> History:
    """The history behind a bitcast or reshape that only renames dimensions."""
    before = [renamed(layout, renaming) for layout in history.layouts[:-1]]
    layouts = [layout for layout in before if layout is not None]
    return history._replace(layouts=(*layouts, renaming.shape.layout))


def _alike(a: Layout, b: Layout) -> bool:
    return a._replace(memory_space=0) == b._replace(memory_space=0)


def update_of(write: Instruction) -> list[Instruction] | None:
    """The instructions that make an update of what a MoveToHost gives, from that on."""
    chain = [write.operands[1]]
    while chain[-1].opcode in RENAMING:
        chain.append(chain[-1].operands[0])
    return chain[::-1] if custom_call_target(chain[-1]) == TO_HOST else None


def way_back(piece: Instruction) -> list[Instruction] | None:
    """A slice and what follows it up to a MoveToDevice, each the only user of the one before."""
    chain = [piece]
    while custom_call_target(chain[-1]) != TO_DEVICE:
        value = chain[-1]
        if value.is_root or len(value.users) != 1:
            return None
        (user,) = value.users
        if user.opcode not in _ON_THE_WAY_BACK and custom_call_target(user) != TO_DEVICE:
            return None
        if user.operands.index(value) != 0:
            return None
        chain.append(user)
    call = chain[-1]
    is_plain = _alike(call.shape.layout, call.operands[0].shape.layout)
    return chain if is_plain and not call.has_control_dependencies else None
