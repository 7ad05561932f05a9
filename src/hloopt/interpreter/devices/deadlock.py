"""The error that devices wait for each other for ever: who waits where, and for whom."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from hloopt.diagnostics import counted
from hloopt.interpreter.devices.meetings import Meetings
from hloopt.interpreter.errors import RunError
from hloopt.ir.instruction import Instruction

_MOST_LINES = 10
_MOST_DEVICES = 8


def deadlock(meetings: Meetings, finished: Collection[int]) -> RunError:
    """The error about all that waits when nobody can go on; placed at the first that waits."""
    waits = _by_place(
        (wait.instruction, wait.awaited.missing(), device)
        for device, wait in sorted(meetings.waiting.items())
    )
    unreceived = _by_place((send, (to,), device) for device, to, send in meetings.unreceived())
    lines = [
        f"{_devices(devices)} {_verb('wait', devices)} at %{place.name} for {_devices(whom)}"
        for (place, whom), devices in waits.items()
    ]
    lines += [
        f"what {_devices(devices)} {_verb('send', devices)} at %{place.name} is never received by "
        f"{_devices(whom)}"
        for (place, whom), devices in unreceived.items()
    ]
    if len(lines) > _MOST_LINES:
        lines[_MOST_LINES:] = [f"and so on at {counted(len(lines) - _MOST_LINES, 'more place')}"]
    awaited = {device for _, whom in (*waits, *unreceived) for device in whom}
    over = sorted(awaited.intersection(finished))
    if over:
        lines.append(f"{_devices(over)} {_verb('have', over)} finished the program")
    first, _ = next(iter((*waits, *unreceived)))
    module = first.parent.module
    return RunError(
        "devices wait for each other for ever:\n  " + "\n  ".join(lines),
        span=module.span_of(first),
        code="HLO504",
    )


def _by_place(
    stuck: Iterable[tuple[Instruction, tuple[int, ...], int]],
) -> dict[tuple[Instruction, tuple[int, ...]], list[int]]:
    """The devices at each instruction that need the same others, each once."""
    devices: dict[tuple[Instruction, tuple[int, ...]], dict[int, None]] = {}
    for instruction, whom, device in stuck:
        devices.setdefault((instruction, whom), {})[device] = None
    return {place: list(found) for place, found in devices.items()}


def _devices(numbers: Sequence[int]) -> str:
    shown = ", ".join(map(str, numbers[:_MOST_DEVICES]))
    if len(numbers) == 1:
        return f"device {shown}"
    more = len(numbers) - _MOST_DEVICES
    return f"devices {shown}" + (f" and {more} more" if more > 0 else "")


def _verb(verb: str, subjects: Sequence[int]) -> str:
    """`verb` for one subject or several."""
    if len(subjects) > 1:
        return verb
    return "has" if verb == "have" else verb + "s"
