"""The bytes of temporaries that are alive at each time, from the history of a heap."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from hloopt.memory.heap.events import EventKind, HeapTrace


@dataclass(slots=True)
class Replay:
    """The bytes alive over a heap's history. Values at one place count once."""

    peak: int = 0
    peak_time: int = 0
    """The position in the schedule at which it is first reached."""
    live_at_peak: list[int] = field(default_factory=list)
    """The values whose memory is in use there: each is the first at its place."""
    changes: list[tuple[int, int]] = field(default_factory=list)
    """Position in the schedule and bytes alive after each event."""


def replay(trace: HeapTrace, size: Callable[[int], int]) -> Replay:
    """Count bytes, `size` of a value each. O(events + values alive at the peak)."""
    result = Replay()
    users: dict[int, int] = {}
    live = 0
    position = -1
    for number, event in enumerate(trace.events):
        place = trace.root[event.value]
        if event.kind is EventKind.FREE:
            users[place] -= 1
            if not users[place]:
                live -= size(place)
        else:
            before = users.get(place, 0)
            users[place] = before + 1
            if not before:
                live += size(place)
        result.changes.append((event.time, live))
        if live > result.peak:
            result.peak, result.peak_time, position = live, event.time, number
    result.live_at_peak = _live_after(trace, position)
    return result


def _live_after(trace: HeapTrace, position: int) -> list[int]:
    users: dict[int, int] = {}
    for event in trace.events[: position + 1]:
        place = trace.root[event.value]
        users[place] = users.get(place, 0) + (-1 if event.kind is EventKind.FREE else 1)
    return [place for place, count in users.items() if count]
