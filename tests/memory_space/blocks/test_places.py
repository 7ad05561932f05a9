"""When block prefetches start, and where they lie."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.memory_space.blocks.blocks import assign, entry, loads

from hloopt.ir import Module, Opcode
from hloopt.passes.memory_space.report import MemorySpaceReport
from hloopt.text import parse_module

CHAIN = (
    "a = f32[6] negate(q)",
    "b = f32[6] add(a, p)",
    "c = f32[6] negate(b)",
    "d = f32[6] add(c, q)",
    "ROOT r = f32[6] negate(d)",
)


def test_loads_start_as_early_as_there_is_room() -> None:
    text = entry(*CHAIN)
    assert loads(assign(text, "p", "q")[0]) == {"q": ("q", "a"), "p": ("q", "b")}
    tight, _ = assign(text, "p", "q", reserved_bytes_for_block_prefetches=24)
    assert loads(tight) == {"q": ("q", "a")}  # until %d: there is no room for %p


def test_a_buffer_without_room_is_final_in_default_memory() -> None:
    options: dict[str, Any] = {"max_outstanding_prefetches": -1}
    module, _ = assign(entry(*CHAIN), "p", reserved_bytes_for_block_prefetches=0, **options)
    assert "p" not in loads(module)
    assert "p" in loads(assign(entry(*CHAIN), **options)[0])


def test_scoped_memory_lies_below_and_adds_to_the_room() -> None:
    scoped: dict[str, Any] = {"reserved_scoped_memory": ({"names": ["c"], "bytes": 40},)}
    module, report = assign(entry(*CHAIN), "p", reserved_bytes_for_block_prefetches=24, **scoped)
    assert loads(module) == {"p": ("p", "b")}
    (chunk,) = (c for c in report.chunks if c.instruction.opcode is Opcode.COPY_DONE)
    assert (chunk.offset, report.scoped) == (40, {"c": (0, 40)})
    less = assign(entry(*CHAIN), "p", reserved_bytes_for_block_prefetches=23, **scoped)
    assert loads(less[0]) == {}


def test_all_lies_within_the_alternate_memory() -> None:
    assert loads(assign(entry(*CHAIN), "p", max_size_in_bytes=23)[0]) == {}


def test_a_result_in_alternate_memory_takes_of_the_room() -> None:
    lines = (*CHAIN[:-1], "ROOT r = f32[6]{0:S(1)} negate(d)")
    assert set(loads(assign(entry(*lines), "p", max_size_in_bytes=48)[0])) == {"p"}
    assert loads(assign(entry(*lines), "p", max_size_in_bytes=40)[0]) == {}


def test_other_buffers_use_what_scoped_memory_kept_free_meanwhile() -> None:
    scoped = ({"names": ["c"], "bytes": 40},)
    _, report = assign(entry(*CHAIN), "p", reserved_scoped_memory=scoped)
    assert {c.instruction.name: c.offset for c in report.chunks}["a"] == 0


def test_the_number_of_loads_in_flight_is_limited() -> None:
    module, _ = assign(entry(*CHAIN), "p", "q", max_outstanding_block_prefetches=1)
    assert loads(module) == {"q": ("q", "a"), "p": ("a", "b")}


def test_a_load_starts_no_earlier_than_the_one_before() -> None:
    lines = ("a = f32[6] negate(q)", "b = f32[6] negate(a)", "ROOT c = f32[6] add(b, p)")
    assert loads(assign(entry(*lines), "p")[0]) == {"p": ("p", "c")}
    assert loads(assign(entry(*lines), "p", "a")[0]) == {"a": ("a", "b"), "p": ("a", "c")}


def test_values_come_by_their_first_use() -> None:
    lines = ("a = f32[6] negate(q)", "b = f32[6] add(a, a)", "ROOT c = f32[6] add(b, p)")
    module, _ = assign(entry(*lines), "p", "q", max_outstanding_block_prefetches=1)
    assert loads(module) == {"q": ("q", "a"), "p": ("a", "c")}


def test_values_with_one_first_use_come_as_they_are_numbered() -> None:
    lines = ("a = f32[6] add(q, p)", "b = f32[6] negate(a)", "ROOT c = f32[6] negate(b)")
    options: dict[str, Any] = {"reserved_bytes_for_block_prefetches": 24}
    first = loads(assign(entry(*lines), "q", "p", **options)[0])
    assert len(first) == 1
    assert first == loads(assign(entry(*lines), "p", "q", **options)[0])


def test_no_parameter_that_is_loaded_here_is_loaded_before_the_program_as_well() -> None:
    options: dict[str, Any] = {
        "enable_cross_program_prefetch": True,
        "cross_program_prefetch_permissive_mode": True,
    }
    _, report = assign(entry(*CHAIN), "p", max_cross_program_prefetches=-1, **options)
    assert [p.parameter for p in report.cross_program_prefetches] == [1]
    text = entry(
        "s = f32[2] dynamic-slice(p, i), dynamic_slice_sizes={2}",
        "a = f32[6] negate(q)",
        "b = f32[2] negate(s)",
        "ROOT t = (f32[6], f32[2]) tuple(a, b)",
    )
    _, report = assign(text, "s", max_cross_program_prefetches=-1, **options)
    assert [p.parameter for p in report.cross_program_prefetches] == [1]


ORDER = (
    "a = f32[6] negate(q)",
    "w = f32[12] broadcast(i), dimensions={}",
    "z = f32[12] negate(w)",
    "b = f32[6] negate(a)",
    "ROOT t = (f32[6], f32[12]) tuple(b, z)",
)


@pytest.mark.parametrize(("most", "placed"), [(1, {"a"}), (0, {"w"})])
def test_with_block_prefetches_small_buffers_come_first(most: int, placed: set[str]) -> None:
    options = {"max_size_in_bytes": 48, "max_outstanding_block_prefetches": most}
    _, report = assign(entry(*ORDER), **options)
    assert {c.instruction.name for c in report.chunks} == placed


def test_what_the_text_puts_into_alternate_memory_comes_before_small_buffers() -> None:
    lines = [line.replace("w = f32[12]", "w = f32[12]{0:S(1)}") for line in ORDER]
    _, report = assign(entry(*lines), max_size_in_bytes=48)
    assert {c.instruction.name for c in report.chunks} == {"w"}


def test_colored_buffers_come_in_the_order_of_sizes_too() -> None:
    lines = (*ORDER[:-1], "u = f32[12] add(z, w)", "ROOT t = (f32[6], f32[12]) tuple(b, u)")
    colored = ({"position": "z", "memory_space": 1},)
    _, report = assign(entry(*lines), max_size_in_bytes=72, buffer_colorings=colored)
    assert "a" in {c.instruction.name for c in report.chunks}


# -- against a model ------------------------------------------------------------------------------


@st.composite
def programs(draw: st.DrawFn) -> tuple[str, list[str]]:
    """A straight program that reads parameters of 8 to 32 bytes, some of them named."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=6))
    lines = [f"p{n} = f32[{2 * size}] parameter({n})" for n, size in enumerate(sizes)]
    made = []
    for number in range(draw(st.integers(3, 14))):
        read = draw(st.sampled_from(range(len(sizes))))
        lines.append(f"v{number} = f32[{2 * sizes[read]}] negate(p{read})")
        made.append((f"v{number}", sizes[read]))
    shapes = ", ".join(f"f32[{2 * size}]" for _, size in made)
    lines.append(f"ROOT r = ({shapes}) tuple({', '.join(name for name, _ in made)})")
    named = draw(st.lists(st.sampled_from(range(len(sizes))), unique=True))
    text = "HloModule m, is_scheduled=true\nENTRY e {\n" + "\n".join(lines) + "\n}"
    return text, [f"p{number}" for number in named]


@given(programs(), st.integers(0, 10), st.integers(1, 4))
def test_starts_are_the_earliest_in_turn(
    case: tuple[str, list[str]], eights: int, most: int
) -> None:
    text, named = case
    module, report = assign(
        text,
        *named,
        reserved_bytes_for_block_prefetches=8 * eights,
        max_outstanding_block_prefetches=most,
    )
    assert _starts(module) == _earliest(parse_module(text), named, 8 * eights, most)
    _check_places(module, report, 8 * eights)


def _starts(module: Module) -> dict[str, str]:
    """By parameter, the last instruction of the text that stands before its load."""
    found, last = {}, ""
    for instruction in module.entry.instructions:
        if instruction.opcode is Opcode.COPY_START:
            found[instruction.operands[0].name] = last
        elif instruction.opcode is not Opcode.COPY_DONE:
            last = instruction.name
    return found


def _earliest(module: Module, named: Sequence[str], limit: int, most: int) -> dict[str, str]:
    """The starts, found by trying one time after the other on a map of all bytes."""
    order = list(module.entry.instructions)
    times = {instruction: time for time, instruction in enumerate(order)}
    taken: list[set[int]] = [set() for _ in order]
    flying = [0] * len(order)
    found: dict[str, str] = {}
    previous = 0
    parameters = [i for i in order if i.name in named and i.users]
    parameters.sort(key=lambda p: (min(times[u] for u in p.users), times[p]))
    for parameter in parameters:
        used = [times[user] for user in parameter.users]
        size = 4 * parameter.shape.element_count()
        for start in range(max(previous, times[parameter]), min(used)):
            busy = set().union(*taken[start + 1 : max(used) + 1])
            gaps = _gaps(busy, limit)
            fitting = [gap for gap in gaps if len(gap) >= size]
            in_flight = max(flying[start + 1 : min(used) + 1])
            if not fitting or in_flight >= most:
                continue
            offset = min(fitting, key=lambda gap: (gap[-1] == limit - 1, len(gap), gap[0]))[0]
            for time in range(start + 1, max(used) + 1):
                taken[time].update(range(offset, offset + size))
            for time in range(start + 1, min(used) + 1):
                flying[time] += 1
            found[parameter.name] = order[start].name
            previous = start
            break
    return found


def _gaps(busy: set[int], limit: int) -> list[list[int]]:
    gaps: list[list[int]] = []
    for byte in range(limit):
        if byte in busy:
            continue
        if gaps and gaps[-1][-1] == byte - 1:
            gaps[-1].append(byte)
        else:
            gaps.append([byte])
    return gaps


def _check_places(module: Module, report: MemorySpaceReport, limit: int) -> None:
    """No two values overlap; what is loaded is read when it is done, from where it is."""
    order = {i: time for time, i in enumerate(module.entry.instructions)}
    lives = []
    for placed in report.chunks:
        done = placed.instruction
        first = order[done.operands[0]] if done.opcode is Opcode.COPY_DONE else order[done]
        last = max((order[user] for user in done.users), default=first)
        assert all(order[user] > order[done] for user in done.users)
        assert done.shape.layout.memory_space == 1
        if done.opcode is Opcode.COPY_DONE:
            assert placed.offset + placed.size <= limit
        lives.append((first, last, placed.offset, placed.offset + placed.size))
    for number, (first, last, low, high) in enumerate(lives):
        for other_first, other_last, other_low, other_high in lives[:number]:
            apart = last < other_first or other_last < first
            assert apart or high <= other_low or other_high <= low
