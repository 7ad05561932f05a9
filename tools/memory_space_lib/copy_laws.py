"""Laws of copies: nothing reads them early or writes over their source; not too many at once."""

from __future__ import annotations

from collections import Counter

from hloopt.ir import Instruction, Opcode
from memory_space_lib.faults import Fault, Kind
from memory_space_lib.liveness import DONES, Liveness, dones_of, first_overlap
from memory_space_lib.sharing import Sharing
from memory_space_lib.subject import Faults, Subject, is_for_next_run
from memory_space_lib.timeline import Timeline


def copies_are_waited_for(subject: Subject) -> Faults:
    """A start that the pass made is read by its done alone, and moves between the two memories."""
    line = subject.line
    for start in subject.new_starts():
        name = f"%{start.name}"
        if len(dones_of(start)) != 1:
            yield Fault(Kind.EARLY, f"{name} has {len(dones_of(start))} dones")
        for user in start.users:
            if user.opcode not in DONES:
                yield Fault(Kind.EARLY, f"%{user.name} reads {name}, which may still run")
        if start.is_root:
            yield Fault(Kind.EARLY, f"{name} is a root")
        if start.opcode is Opcode.COPY_START:
            own = line.positions(start)
            if subject.space_of(own[0]) == subject.space_of(own[1]):
                space = subject.space_of(own[0])
                yield Fault(Kind.COLOR, f"{name} copies within memory space {space}")


def sources_stay(subject: Subject) -> Faults:
    """No value is replaced in its place while something needs it, a running copy for example.

    Modules that were so already before the pass are passed over.
    """
    if any(True for _ in _replaced(Sharing(Timeline.of(subject.before)))):
        return
    line = subject.line
    for one, other, time in _replaced(subject.sharing, subject.live):
        yield Fault(
            Kind.OVERWRITTEN,
            f"{line.name(one)} is needed when {line.name(other)} takes its place at {time}",
        )


def _replaced(sharing: Sharing, live: Liveness | None = None) -> list[tuple[int, int, int]]:
    by_place: dict[int, list[tuple[int, int, int]]] = {}
    for value, ranges in (live or Liveness(sharing)).values():
        place = by_place.setdefault(sharing.places.find(value), [])
        place += [(start, end, value) for start, end in ranges]
    found = (first_overlap(ranges) for ranges in by_place.values() if len(ranges) > 1)
    return [each for each in found if each is not None]


def not_too_many_run(subject: Subject) -> Faults:
    """Copies of each direction that the pass made and that run at one time stay within limits.

    Colours and spills come before limits: modules with such copies are passed over.
    """
    options = subject.options
    is_forced = options.buffer_colorings or options.always_spill_to_default_memory
    if is_forced or subject.colored_before or options.has_block_prefetches:
        return
    extra = options.extend_async_copies_limit_for_sync_mem_op_conversion
    if subject.line.module.instructions(Opcode.WHILE):
        extra += options.while_use_extra_outstanding_prefetch_limit
    limits = {
        "prefetches": options.max_outstanding_prefetches,
        "evictions": options.max_outstanding_evictions,
    }
    starts = {s: _direction(subject, s) for s in subject.new_starts() if not is_for_next_run(s)}
    ends = {done: start for start in starts for done in dones_of(start)}
    running: Counter[str] = Counter()
    for step in subject.line.steps:
        if step in ends:
            running[starts[ends[step]]] -= 1
        if step in starts:
            kind = starts[step]
            running[kind] += 1
            most = limits[kind] + (extra if kind == "prefetches" else 0)
            if limits[kind] >= 0 and running[kind] > most:
                text = f"%{step.name} starts while {running[kind] - 1} {kind} run, of {most}"
                yield Fault(Kind.OUTSTANDING, text)


def _direction(subject: Subject, start: Instruction) -> str:
    """The kind of an asynchronous operation, by where its result lies."""
    (done,) = dones_of(start)
    first = subject.line.base[done]
    return "prefetches" if subject.space_of(first) == subject.space else "evictions"
