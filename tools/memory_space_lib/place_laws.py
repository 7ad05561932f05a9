"""Laws of places: chunks in bounds, one colour and one chunk per place, no overlaps."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from hloopt.ir import Instruction, Opcode
from hloopt.ir.shapes.leaves import index_range, leaf_count
from hloopt.ir.shapes.shape_size import shape_bytes
from memory_space_lib.faults import Fault, Kind
from memory_space_lib.liveness import Range, dones_of, is_concat
from memory_space_lib.overlaps import Block, overlaps
from memory_space_lib.sharing import Sharing
from memory_space_lib.subject import Faults, Subject, is_for_next_run
from memory_space_lib.timeline import Timeline

_SCOPED, _AFTER = -1, -2
"""Stand for the places of scoped memory, each its own, and of what follows the program."""


def chunks_are_right(subject: Subject) -> Faults:
    """Each chunk is of one position in alternate memory, in bounds; a place has one chunk."""
    line, seen = subject.line, set()
    for chunk in subject.report.chunks:
        name = f"the chunk of %{chunk.instruction.name}{list(chunk.index) or ''}"
        if chunk.instruction not in line.base:
            yield Fault(Kind.CHUNK, f"{name}: the instruction does not run")
            continue
        leaves = index_range(chunk.instruction.shape, chunk.index)
        position = line.base[chunk.instruction] + leaves.start
        if position in seen or leaves.stop - leaves.start != 1:
            yield Fault(Kind.CHUNK, f"{name} is not the only one, or of a tuple")
        seen.add(position)
        if subject.space_of(position) != subject.space:
            yield Fault(Kind.CHUNK, f"{name}: its position is not in alternate memory")
        yield from _bounds(subject, name, chunk.offset, chunk.size)
        place = subject.sharing.places.find(position)
        known = subject.chunks[place]
        if known != (chunk.offset, chunk.size):
            yield Fault(
                Kind.CHUNK,
                f"{name} is {chunk.size} bytes at {chunk.offset}, that of {line.name(place)} is "
                f"{known[1]} at {known[0]}",
            )
    for owner, offset, size in _scoped(subject):
        yield from _bounds(subject, owner, offset, size)


def _bounds(subject: Subject, name: str, offset: int, size: int) -> Faults:
    most, alignment = subject.options.max_size_in_bytes, subject.options.alignment_in_bytes
    if offset < 0 or offset + size > most:
        yield Fault(Kind.SIZE, f"{name} ends at {offset + size} of {most} bytes")
    if offset % alignment:
        yield Fault(Kind.ALIGNMENT, f"{name} starts at {offset}, no multiple of {alignment}")


def _scoped(subject: Subject) -> Iterator[tuple[str, int, int]]:
    for name, (offset, size) in subject.report.scoped.items():
        yield f"scoped memory of %{name}", offset, size
    if subject.report.post_module_chunk is not None:
        yield "memory after the program", *subject.report.post_module_chunk


def colors_are_right(subject: Subject) -> Faults:
    """All positions of a place have one memory space, and a chunk if it is the alternate one."""
    line = subject.line
    spaces: dict[int, int] = {}
    for position, shape in enumerate(line.shapes):
        place, space = subject.sharing.places.find(position), subject.space_of(position)
        name = line.name(position)
        if spaces.setdefault(place, space) != space:
            there = line.name(place)
            yield Fault(Kind.COLOR, f"{name} is in space {space}, {there} in {spaces[place]}")
        if space != subject.space:
            continue
        if not shape.is_array:
            yield Fault(Kind.COLOR, f"{name} is no array, but in alternate memory")
        chunk = subject.chunks.get(place)
        if chunk is None:
            if place not in subject.colored_before:
                yield Fault(Kind.CHUNK, f"{name} is in alternate memory without a chunk")
        elif chunk[1] < shape_bytes(shape):
            yield Fault(Kind.SIZE, f"{name} has {shape_bytes(shape)} bytes, its chunk {chunk[1]}")


def nothing_overlaps(subject: Subject) -> Faults:
    """No two values that are needed at one time have a byte in common; nor has scoped memory.

    Where the program had a result in the place of what it is made of, it may have it there still.
    """
    was_one = _PlacesBefore(subject)
    for one, other in overlaps(_blocks(subject)):
        if one.end == other.start and was_one(one.place, other.place):
            continue
        yield Fault(
            Kind.OVERLAP,
            f"{one.owner} is {_shown(one)}, {other.owner} {_shown(other)}",
        )


class _PlacesBefore:
    """Whether two places had positions in one place before the pass."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject

    @cached_property
    def _before(self) -> Sharing:
        return Sharing(Timeline.of(self._subject.before))

    @cached_property
    def _origins(self) -> dict[int, set[int]]:
        """The places of the module before whose positions are now in a place."""
        found: dict[int, set[int]] = {}
        before, subject = self._before, self._subject
        for position, holder in enumerate(subject.line.holders):
            old = subject.old.get(holder.name)
            leaf = position - subject.line.base[holder]
            if old is not None and old in before.line.base and leaf < leaf_count(old.shape):
                place = before.places.find(before.line.base[old] + leaf)
                found.setdefault(subject.sharing.places.find(position), set()).add(place)
        for start in subject.new_starts():  # what a copy makes stands for its source
            if start.opcode is Opcode.COPY_START:
                made, source = list(map(subject.sharing.places.find, _halves(subject, start)))
                found.setdefault(made, set()).update(found.get(source, ()))
        return found

    def __call__(self, one: int, other: int) -> bool:
        return not self._origins.get(one, set()).isdisjoint(self._origins.get(other, ()))


def _halves(subject: Subject, start: Instruction) -> tuple[int, int]:
    """The positions of what a copy-start makes, and of its source."""
    made, source, _ = subject.line.positions(start)
    return made, source


def _shown(block: Block) -> str:
    return f"at [{block.offset}, {block.offset + block.size}) from {block.start} to {block.end}"


def _blocks(subject: Subject) -> Iterator[Block]:
    line, places = subject.line, subject.sharing.places
    ranges: dict[int, list[Range]] = {}
    for value, found in subject.live.values():
        place = places.find(value)
        if place in subject.chunks:
            ranges.setdefault(place, []).extend(found)
    for place, times in _for_next_run(subject):
        ranges.setdefault(place, []).append(times)
    for place, found in ranges.items():
        offset, size = subject.chunks[place]
        for start, end in joined(found):
            yield Block(start, end, offset, size, line.name(place), place)
    named = {step.name: time for step, time in line.time.items()}
    for name, (offset, size) in subject.report.scoped.items():
        if name in named:
            at = named[name]
            yield Block(at, at, offset, size, f"scoped memory of %{name}", _SCOPED - 2 * at)
    if subject.report.post_module_chunk is not None:
        offset, size = subject.report.post_module_chunk
        yield Block(line.end, line.end, offset, size, "memory after the program", _AFTER)


def _for_next_run(subject: Subject) -> Iterator[tuple[int, Range]]:
    """Times at which parameters that are loaded before the program have to be there.

    From the start to the first copy; and from the last copy, which nothing reads, to the end.
    """
    line, places = subject.line, subject.sharing.places
    for first, last in _loads(subject):
        yield places.find(line.base[first]), (0, line.time[first])
        yield places.find(line.base[last]), (line.time[last], line.end)


def _loads(subject: Subject) -> Iterator[tuple[Instruction, Instruction]]:
    """The copies that load parameters before the program, each with the one for the next run.

    They are one where the parameter stays in its place.
    """
    line, values = subject.line, subject.sharing.values
    unread: dict[int, Instruction] = {}
    for start in subject.new_starts():
        is_read = any(done.users for done in dones_of(start))
        if start.opcode is Opcode.COPY_START and not is_read and not is_for_next_run(start):
            unread[values.find(line.base[start.operands[0]])] = start
    for step in line.steps:
        if is_for_next_run(step):
            yield step, unread.get(values.find(line.base[step.operands[0]]), step)


def places_fit(subject: Subject) -> Faults:
    """Slices tile the chunk of what they become; what the next run needs has one place."""
    line = subject.line

    def chunk(step: Instruction) -> tuple[int, int]:
        return subject.chunks.get(subject.sharing.places.find(line.base[step]), (-1, 0))

    for step in line.steps:
        if is_concat(step) and step.name not in subject.old:
            end = chunk(step)[0]
            for piece in step.operands:
                offset, size = chunk(piece)
                if offset != end:
                    text = f"%{piece.name} is at {offset}, its part of %{step.name} at {end}"
                    yield Fault(Kind.CHUNK, text)
                end = offset + size
    for first, last in _loads(subject):
        if chunk(first) != chunk(last):
            text = f"%{last.name} does not load what %{first.name} loads to the same place"
            yield Fault(Kind.CHUNK, text)


def joined(ranges: list[Range]) -> list[Range]:
    """Ranges in order, those that share a time, or follow on each other, made one. O(n log n)."""
    found: list[Range] = []
    for start, end in sorted(ranges):
        if found and start <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((start, end))
    return found
