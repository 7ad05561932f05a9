"""The place where buffers lie and when: what pictures of the memory show."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from tests.memory.modules import module_text
from tests.properties.strategies.modules import module_texts

from hloopt.files import read_module
from hloopt.ir import Module
from hloopt.memory.analysis import MemoryAnalysis
from hloopt.memory.places import PlacedBuffer, placed_buffers
from hloopt.text import parse_module

TESTDATA = Path(__file__).resolve().parents[2] / "testdata"


def placed(*lines: str) -> list[PlacedBuffer]:
    return placed_buffers(MemoryAnalysis.of(parse_module(module_text(*lines))))


def check(module: Module) -> None:
    """Temporaries add up to the timeline, and no two lie in one byte at one time."""
    analysis = MemoryAnalysis.of(module)
    report = analysis.report()
    buffers = placed_buffers(analysis)
    change = [0] * (len(report.timeline) + 1)
    by_start: dict[int, list[PlacedBuffer]] = {}
    for buffer in buffers:
        first, last = buffer.live
        assert 0 <= first <= last
        if buffer.in_timeline:
            assert buffer.kind == "temporary"
            change[first] += buffer.size
            change[min(last + 1, len(report.timeline))] -= buffer.size
            by_start.setdefault(buffer.allocation, []).append(buffer)
    live = report.throughout
    for position, size in enumerate(report.timeline):
        live += change[position]
        assert live == size
    if analysis.ranges.conflicts:
        return
    for together in by_start.values():
        for number, one in enumerate(together):
            for other in together[number + 1 :]:
                if other.live[0] > one.live[1]:
                    break
                assert one.offset + one.size <= other.offset or (
                    other.offset + other.size <= one.offset
                )


def test_a_value_that_takes_over_a_place_ends_the_one_before() -> None:
    buffers = placed(
        "a = f32[100] parameter(0)",
        "b = f32[200] concatenate(a, a), dimensions={0}",
        "c = f32[200] negate(b)",
        "d = f32[25] slice(c), slice={[0:25]}",
    )
    temporaries = [(b.name, b.live, b.offset) for b in buffers if b.kind == "temporary"]
    assert temporaries == [("b", (1, 1), 0), ("c", (2, 3), 0)]
    parameter = next(b for b in buffers if b.kind == "parameter")
    assert (parameter.name, parameter.live, parameter.size) == ("a", (0, 4), 400)


def test_origins_are_kept() -> None:
    metadata = 'metadata={op_name="jit(f)/neg" source_file="a.py" source_line=3}'
    buffers = placed("a = f32[4] parameter(0)", f"b = f32[4] negate(a), {metadata}")
    found = next(b for b in buffers if b.name == "b")
    assert (found.op_name, found.source.label, found.opcode) == ("jit(f)/neg", "a.py:3", "negate")


@given(module_texts())
def test_sums_agree_of_any_module(text: str) -> None:
    check(parse_module(text))


@pytest.mark.parametrize("path", sorted(TESTDATA.glob("*.hlo")), ids=lambda path: path.name)
def test_sums_agree_on_real_modules(path: Path) -> None:
    check(read_module(str(path)))
