"""The place where buffers lie and when: what pictures of the memory show."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from tests.memory.modules import LOOP_CONDITION, module_text
from tests.properties.strategies.modules import module_texts

from hloopt.files import read_module
from hloopt.ir import Module
from hloopt.memory.analysis import MemoryAnalysis
from hloopt.memory.places import PlacedBuffer, placed_buffers
from hloopt.text import parse_module

TESTDATA = Path(__file__).resolve().parents[2] / "testdata"


def placed(*lines: str, header: str = "is_scheduled=true", before: str = "") -> list[PlacedBuffer]:
    text = module_text(*lines, header=header, before=before)
    return placed_buffers(MemoryAnalysis.of(parse_module(text)))


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


BODY = """
body { q = (s32[], f32[100]) parameter(0)
  j = s32[] get-tuple-element(q), index=0
  x = f32[100] get-tuple-element(q), index=1
  next = s32[] negate(j)
  b = f32[200] concatenate(x, x), dimensions={0}
  c = f32[200] negate(b)
  v = f32[100] slice(c), slice={[0:100]}
  ROOT r = (s32[], f32[100]) tuple(next, v) }"""
LOOP = (
    "z = s32[] parameter(0)",
    "a = f32[100] parameter(1)",
    "i = s32[] copy(z)",
    "s = f32[100] copy(a)",
    "t = (s32[], f32[100]) tuple(i, s)",
    "w = (s32[], f32[100]) while(t), condition=cond, body=body",
    "g = f32[100] get-tuple-element(w), index=1",
    "o = f32[1] slice(g), slice={[0:1]}",
)


def test_the_state_of_a_loop_changes_hands() -> None:
    buffers = placed(*LOOP, before=LOOP_CONDITION + BODY)
    state = [b for b in buffers if (b.allocation, b.offset) == (4, 896)]
    # times: z a i s t 0-4, condition 5-8, body 9-16, w g o 17-19
    assert [(b.name, b.live, b.computation) for b in state] == [
        ("s", (3, 4), "e"),
        ("p{1}", (5, 8), "cond"),
        ("q{1}", (9, 13), "body"),
        ("v", (15, 16), "body"),
        ("w{1}", (17, 19), "e"),
    ]
    assert {(b.size, b.kind.value, b.in_timeline) for b in state} == {(400, "temporary", True)}
    inside = [(b.name, b.live) for b in buffers if (b.allocation, b.offset) == (4, 64)]
    assert inside == [("less", (8, 9)), ("b", (13, 13)), ("c", (14, 15))]
    tables = [(b.name, b.live, b.in_timeline) for b in buffers if b.size == 16]
    assert tables == [
        ("t", (4, 4), False),
        ("p", (5, 8), False),
        ("q", (9, 11), False),
        ("r", (16, 16), False),
        ("w", (17, 18), False),
    ]


def test_what_is_set_aside_throughout_has_the_size_of_each_value() -> None:
    buffers = placed(
        "a = f32[<=8] parameter(0)",
        "n = s32[] parameter(1)",
        'd = f32[8] custom-call(a), custom_call_target="f", '
        "output_to_operand_aliasing={{}: (0, {})}",
        header="is_scheduled=true, input_output_alias={ {}: (0, {}) }",
    )
    assert [(b.name, b.size, b.live, b.allocation) for b in buffers] == [
        ("a", 36, (0, 1), 0),
        ("n", 4, (0, 3), 1),
        ("d", 32, (2, 3), 0),
    ]


def test_arrays_of_nothing_take_no_place() -> None:
    buffers = placed(
        "a = f32[4] parameter(0)",
        "n = f32[0] slice(a), slice={[0:0]}",
        "b = f32[4] concatenate(n, a), dimensions={0}",
    )
    assert [(b.name, b.size) for b in buffers] == [("a", 16), ("b", 16)]


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
