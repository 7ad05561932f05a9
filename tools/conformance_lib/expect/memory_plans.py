"""Expectations about memory space assignment: chunks, copies, and what the pass reports."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from conformance_lib.errors import RecordError
from conformance_lib.expectations import More, compare, compare_number, expectation
from conformance_lib.forms import (
    BOOL,
    BOUND,
    INT,
    either,
    keys,
    list_of,
    mapping,
    only,
    optional_list,
    row,
)
from conformance_lib.memory_space.pass_options import FakeRepacker
from conformance_lib.patterns import PATTERN
from conformance_lib.scene import Scene
from conformance_lib.selector_syntax import COMPUTATION, NAME, OPCODE, SELECTOR
from conformance_lib.selectors import find_computation, has_opcode, select_one
from hloopt.analysis.dataflow import Dataflow
from hloopt.analysis.flat_schedule import FlatSchedule
from hloopt.ir import Instruction, Opcode
from hloopt.memory.buffers import Buffers
from hloopt.memory.live_ranges import LiveRanges
from hloopt.passes.memory_space.report import MemorySpaceReport, PlacedChunk

_RANGE = row(INT, INT)


def report_of(scene: Scene) -> MemorySpaceReport:
    """The assignment that the record's pass reports. Raises RecordError where there is none."""
    report = getattr(scene.main_pass(), "report", None)
    if not isinstance(report, MemorySpaceReport):
        raise RecordError("the pass reports no assignment of memory spaces")
    return report


def _chunk(scene: Scene, selector: str) -> PlacedChunk | None:
    found = select_one(scene, selector)
    chunks = (c for c in report_of(scene).chunks if c.instruction is found)
    return next(chunks, None)


def _demanded_chunk(scene: Scene, selector: str) -> PlacedChunk:
    found = _chunk(scene, selector)
    if found is None:
        raise RecordError(f"{selector} has no place in alternate memory")
    return found


@expectation("memory_plan_ok", only(True))
def memory_plan_ok(scene: Scene, expected: bool, more: More) -> Iterator[str]:
    space = scene.options.get("alternate_memory_space", 1)
    entry = scene.module.entry
    reference = scene.reference(None) if scene.reference is not None else None
    before = (
        {} if reference is None else {p.parameter_number: p for p in reference.entry.parameters}
    )
    for parameter in entry.parameters:
        old = before.get(parameter.parameter_number)
        was_there = old is not None and _has_space(old, space)
        if _has_space(parameter, space) and not was_there:
            yield f"%{parameter.name} is in alternate memory"
    if entry.root.shape.is_array and _has_space(entry.root, space):
        yield "the result is in alternate memory"
    seen = set()
    for chunk in report_of(scene).chunks:
        shape = chunk.instruction.shape
        for number in chunk.index:
            shape = shape.elements[number]
        if shape.layout.memory_space != space:
            yield f"%{chunk.instruction.name} has a chunk but is not in alternate memory"
        if (chunk.instruction, chunk.index) in seen:
            yield f"%{chunk.instruction.name} has two chunks"
        seen.add((chunk.instruction, chunk.index))


def _has_space(instruction: Instruction, space: int) -> bool:
    return any(leaf.layout.memory_space == space for leaf in instruction.shape.leaves())


@expectation("max_live_values", keys({"memory_space": INT, "n": BOUND}))
def max_live_values(scene: Scene, expected: dict[str, Any], more: More) -> Iterator[str]:
    """The most values of a memory space that are live at one time."""
    flow = Dataflow.of(scene.module)
    ranges = LiveRanges.of(flow, FlatSchedule.of(scene.module), Buffers.of(flow))
    changes: list[tuple[int, int]] = []
    for value in flow.values():
        shape = flow.shape(value)
        if shape.is_array and shape.layout.memory_space == expected["memory_space"]:
            changes += [(ranges.start[value], 1), (ranges.end[value] + 1, -1)]
    most = live = 0
    for _, change in sorted(changes):
        live += change
        most = max(most, live)
    yield from compare_number("live values", most, expected["n"])


# -- chunks ---------------------------------------------------------------------------------------


@expectation("post_module_chunk_size", BOUND)
def post_module_chunk_size(scene: Scene, expected: Any, more: More) -> Iterator[str]:
    found = report_of(scene).post_module_chunk
    yield from compare_number("size of the chunk", found[1] if found else 0, expected)


@expectation("chunk_count", BOUND)
def chunk_count(scene: Scene, expected: Any, more: More) -> Iterator[str]:
    yield from compare_number("chunks", len(report_of(scene).chunks), expected)


@expectation("has_offset", list_of(SELECTOR))
def has_offset(scene: Scene, expected: list[str], more: More) -> Iterator[str]:
    for selector in expected:
        if _chunk(scene, selector) is None:
            yield f"{selector} has no offset"


@expectation("no_offset", list_of(SELECTOR))
def no_offset(scene: Scene, expected: list[str], more: More) -> Iterator[str]:
    for selector in expected:
        if (chunk := _chunk(scene, selector)) is not None:
            yield f"{selector} has the offset {chunk.offset}"


@expectation("same_offset", list_of(row(SELECTOR, SELECTOR)))
def same_offset(scene: Scene, expected: list[list[str]], more: More) -> Iterator[str]:
    for first, second in expected:
        offsets = [_demanded_chunk(scene, selector).offset for selector in (first, second)]
        if offsets[0] != offsets[1]:
            yield f"{first} and {second} are at {offsets[0]} and {offsets[1]}"


@expectation("different_offset", list_of(row(SELECTOR, SELECTOR)))
def different_offset(scene: Scene, expected: list[list[str]], more: More) -> Iterator[str]:
    for first, second in expected:
        offsets = [_demanded_chunk(scene, selector).offset for selector in (first, second)]
        if offsets[0] == offsets[1]:
            yield f"{first} and {second} are both at {offsets[0]}"


@expectation("some_offset", keys({"opcode": OPCODE, "offset": INT}))
def some_offset(scene: Scene, expected: dict[str, Any], more: More) -> Iterator[str]:
    offsets = [
        chunk.offset
        for chunk in report_of(scene).chunks
        if has_opcode(chunk.instruction, expected["opcode"])
    ]
    if expected["offset"] not in offsets:
        yield f"no {expected['opcode']} is at {expected['offset']}; they are at {offsets}"


@expectation("chunk_of_copy", mapping(SELECTOR, _RANGE))
def chunk_of_copy(scene: Scene, expected: dict[str, list[int]], more: More) -> Iterator[str]:
    """The chunk of the first asynchronous copy of a value."""
    for selector, wanted in expected.items():
        source = select_one(scene, selector)
        found = [
            [chunk.offset, chunk.size]
            for chunk in report_of(scene).chunks
            if chunk.instruction.opcode is Opcode.COPY_DONE
            and chunk.instruction.operands[0].operands[0] is source
        ]
        if not found:
            yield f"there is no copy of {selector} in alternate memory"
        else:
            yield from compare(f"chunk of the copy of {selector}", found[0], wanted)


# -- scoped memory --------------------------------------------------------------------------------


@expectation("scoped_chunks", mapping(NAME, _RANGE))
def scoped_chunks(scene: Scene, expected: dict[str, list[int]], more: More) -> Iterator[str]:
    scoped = report_of(scene).scoped
    for name, wanted in expected.items():
        yield from compare(f"scoped chunk of {name}", list(scoped.get(name, ())), wanted)


@expectation("no_scoped_chunks", either(only(True), list_of(NAME)))
def no_scoped_chunks(scene: Scene, expected: Any, more: More) -> Iterator[str]:
    """No instruction, or none of those named, has scoped memory."""
    scoped = report_of(scene).scoped
    named = expected if isinstance(expected, list) else [*scoped]
    for name in named:
        if name in scoped:
            yield f"%{name} has scoped memory"


@expectation("scoped_sizes_follow_options", list_of(NAME))
def scoped_sizes_follow_options(scene: Scene, expected: list[str], more: More) -> Iterator[str]:
    """Scoped chunks are as large as the options say for what is in alternate memory at the end."""
    scoped = report_of(scene).scoped
    space = scene.options.get("alternate_memory_space", 1)
    for name in expected:
        instruction = scene.find(name)
        wanted = 0
        for rule in scene.options.get("reserved_scoped_memory", ()):
            inside = any(_has_space(operand, space) for operand in instruction.operands)
            if (
                name in rule.get("names", (name,))
                and instruction.opcode.value in rule.get("opcodes", (instruction.opcode.value,))
                and not (rule.get("no_operand_in_alternate_memory") and inside)
                and not (
                    rule.get("no_output_in_alternate_memory") and _has_space(instruction, space)
                )
            ):
                wanted += rule["bytes"]
        yield from compare(f"scoped bytes of %{name}", scoped.get(name, (0, 0))[1], wanted)


@expectation("repacked_colocations", list_of(optional_list(INT)))
def repacked_colocations(scene: Scene, expected: list[list[int]], more: More) -> Iterator[str]:
    repacker = getattr(scene.main_pass().options, "repacker", None)
    if not isinstance(repacker, FakeRepacker):
        raise RecordError("the record has no fake repacker")
    found = repacker.colocations
    if len(found) != len(expected):
        yield f"{len(found)} blocks were repacked: their colocations are {found}"
        return
    for number, (count, allowed) in enumerate(zip(found, expected, strict=True)):
        if count not in allowed:
            yield f"block {number}: {count} colocated blocks, expected one of {allowed}"


# -- copies ---------------------------------------------------------------------------------------

_COUNTS = keys({}, {"prefetches": BOUND, "evictions": BOUND})


@expectation("max_outstanding_copies", _COUNTS, **{"in": COMPUTATION})
def max_outstanding_copies(scene: Scene, expected: dict[str, Any], more: More) -> Iterator[str]:
    space = scene.options.get("alternate_memory_space", 1)
    most = {"prefetches": 0, "evictions": 0}
    running = dict.fromkeys(most, 0)
    for instruction in find_computation(scene, more.get("in", "entry")).instructions:
        if instruction.opcode not in (Opcode.COPY_START, Opcode.COPY_DONE):
            continue
        is_start = instruction.opcode is Opcode.COPY_START
        start = instruction if is_start else instruction.operands[0]
        is_prefetch = start.shape.elements[0].layout.memory_space == space
        kind = "prefetches" if is_prefetch else "evictions"
        running[kind] += 1 if is_start else -1
        most[kind] = max(most[kind], running[kind])
    for kind, bound in expected.items():
        yield from compare_number(f"outstanding {kind}", most[kind], bound)


_SLICED_COPY = keys(
    {"at": SELECTOR},
    {
        "from": INT,
        "to": INT,
        "operand": PATTERN,
        "slices": list_of(list_of(_RANGE)),
        "bitcasted": BOOL,
        "contiguous_chunks": BOOL,
        "starts_after": SELECTOR,
        "done_before": SELECTOR,
        "starts_apart": BOOL,
        "one_start_between": row(SELECTOR, SELECTOR),
    },
)


@expectation("sliced_copy", _SLICED_COPY)
def sliced_copy(scene: Scene, expected: dict[str, Any], more: More) -> Iterator[str]:
    from conformance_lib.expect.sliced_copies import check_sliced_copy

    yield from check_sliced_copy(scene, report_of(scene), expected)


@expectation("follows_loop_plan", keys({"loop": _RANGE}, {"unsupported": BOOL}))
def follows_loop_plan(scene: Scene, expected: dict[str, Any], more: More) -> Iterator[str]:
    from conformance_lib.expect.loop_plans import check_loop_plan

    yield from check_loop_plan(scene, report_of(scene), expected)
