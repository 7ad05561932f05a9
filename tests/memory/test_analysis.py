"""The memory report: the peak, what is alive there, memory over time."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.memory.modules import LOOP_CONDITION, allocations, assign, module_text

from hloopt.files import read_module
from hloopt.memory import MemoryReport, MemorySizes, analyze_memory
from hloopt.memory.analysis import MemoryAnalysis
from hloopt.text import parse_module

TESTDATA = Path(__file__).resolve().parents[2] / "testdata"


def report_on(*lines: str, header: str = "is_scheduled=true", before: str = "") -> MemoryReport:
    return analyze_memory(parse_module(module_text(*lines, header=header, before=before)))


def test_arguments_and_outputs_count_throughout() -> None:
    report = report_on("a = f32[100] parameter(0)", "b = f32[25] slice(a), slice={[0:25]}")
    assert report.statistics.device == MemorySizes(argument=400, output=100)
    assert report.timeline == [500, 500]
    assert report.peak == 500


def test_a_temporary_counts_from_its_definition_to_its_last_use() -> None:
    report = report_on(
        "a = f32[100] parameter(0)",
        "b = f32[200] concatenate(a, a), dimensions={0}",
        "c = f32[25] slice(b), slice={[0:25]}",
        "d = f32[25] reverse(c), dimensions={0}",
    )
    assert report.timeline == [500, 1300, 1400, 600]
    assert report.peak_instruction is not None
    assert report.peak_instruction.name == "c"
    assert [(b.name, b.size, b.kind.value, b.live) for b in report.live_at_peak] == [
        ("b", 800, "temporary", (1, 2)),
        ("a", 400, "parameter", (0, 4)),
        ("d", 100, "output", (0, 4)),
        ("c", 100, "temporary", (2, 3)),
    ]


def test_a_place_is_called_by_what_it_holds_at_the_peak() -> None:
    body = """
body { q = (s32[], f32[100]) parameter(0)
  j = s32[] get-tuple-element(q), index=0
  x = f32[100] get-tuple-element(q), index=1
  next = s32[] negate(j)
  b = f32[200] concatenate(x, x), dimensions={0}
  c = f32[200] negate(b)
  v = f32[100] slice(c), slice={[0:100]}
  ROOT r = (s32[], f32[100]) tuple(next, v) }"""
    report = report_on(
        "z = s32[] parameter(0)",
        "a = f32[100] parameter(1)",
        "i = s32[] copy(z)",
        "s = f32[100] copy(a)",
        "t = (s32[], f32[100]) tuple(i, s)",
        "w = (s32[], f32[100]) while(t), condition=cond, body=body",
        "g = f32[100] get-tuple-element(w), index=1",
        "o = f32[1] slice(g), slice={[0:1]}",
        before=LOOP_CONDITION + body,
    )
    peak = report.peak_instruction
    assert peak is not None
    assert (peak.position, peak.name, peak.computation, peak.opcode) == (
        *(13, "b", "body", "concatenate"),
    )
    assert [(b.name, b.size, b.kind.value, b.live) for b in report.live_at_peak] == [
        ("b", 800, "temporary", (13, 14)),
        ("a", 400, "parameter", (0, 20)),
        ("q{1}", 400, "temporary", (9, 13)),
        ("n", 4, "constant", (0, 20)),
        ("o", 4, "output", (0, 20)),
        ("z", 4, "parameter", (0, 20)),
    ]
    assert (report.statistics.heap, report.statistics.device.temp) == (1232, 64 + 1232)
    assert report.timeline[:10] == [412, 412, 412, 812, 812, 812, 812, 812, 813, 813]
    assert report.timeline[10:] == [812, 812, 812, 1612, 1212, 1612, 812, 812, 812, 812]
    assert [(a.holds, a.values, a.is_live_out) for a in report.allocations] == [
        ("a", 1, False),
        ("n", 1, False),
        ("o", 6, True),
        ("z", 1, False),
        ("b", 13, False),
    ]


def test_the_peak_is_that_of_the_memory_space_that_needs_most() -> None:
    report = report_on(
        "a = f32[100] parameter(0)",
        "b = f32[300]{0:S(5)} concatenate(a, a, a), dimensions={0}",
        "c = f32[50] slice(b), slice={[0:50]}",
        "d = f32[150] concatenate(c, a), dimensions={0}",
        "e = f32[150]{0:S(5)} copy(d)",
        "f = f32[1] slice(e), slice={[0:1]}",
    )
    assert report.peak_instruction is not None
    assert (report.peak, report.peak_instruction.name) == (404 + 1200, "b")
    assert [b.name for b in report.live_at_peak] == ["b", "a", "f"]
    assert report.timeline == [404, 1604, 1604, 404, 1004, 1004]


def test_origins_are_op_names_and_source_lines() -> None:
    metadata = r'metadata={op_name="p[\'\303\251\']" source_file="a.py" source_line=3}'
    report = report_on(f"a = f32[4] parameter(0), {metadata}", "b = f32[4] negate(a)")
    assert ("p['é']", "a.py:3") in {(b.op_name, b.source.label) for b in report.live_at_peak}


def test_allocations_are_summed_up() -> None:
    report = report_on(
        "a = (f32[100], f32[4]) parameter(0)",
        "b = f32[100] get-tuple-element(a), index=0",
        "c = f32[100] negate(b)",
    )
    first = report.allocations[1]
    assert (first.holds, first.size, first.parameter) == ("a{0}", 400, (0, (0,)))
    assert [a.index for a in report.allocations] == list(range(len(report.allocations)))


def test_an_unscheduled_module_gets_an_order_and_says_so() -> None:
    lines = ("a = f32[4] parameter(0)", "b = f32[4] negate(a)")
    report = report_on(*lines, header="replica_count=1")
    assert report.order == "list (the module is not scheduled)"
    assert any("default memory scheduler" in text for text in report.assumptions)
    assert report_on(*lines).order == "schedule"


def test_an_unscheduled_module_is_measured_in_the_order_that_was_found() -> None:
    call = 'custom_call_target="f"'
    lines = (
        "a = f32[4] parameter(0)",
        f"b = f32[1000] custom-call(a), {call}",
        f"c = f32[1000] custom-call(a), {call}",
        f"d = f32[2] custom-call(b), {call}",
        f"e = f32[2] custom-call(c), {call}",
        "t = (f32[2], f32[2]) tuple(d, e)",
    )
    report = report_on(*lines, header="replica_count=1")
    assert report.timeline == [48, 4048, 4048, 4048, 4048, 48]
    assert report_on(*lines).timeline == [48, 4048, 8048, 8048, 4048, 48]


def test_missing_copies_are_mentioned() -> None:
    report = report_on(
        "a = f32[100] parameter(0)",
        "u = f32[1] parameter(1)",
        "i = s32[] parameter(2)",
        "d = f32[100] dynamic-update-slice(a, u, i)",
        "s = f32[10] slice(d), slice={[0:10]}",
    )
    missing = "1 value is written over while it is needed: XLA inserts copies there"
    assert any(text.startswith(missing) for text in report.assumptions)


def test_computations_called_twice_are_mentioned() -> None:
    report = report_on(
        "a = f32[100] parameter(0)",
        "c = f32[100] call(a), to_apply=f",
        "d = f32[100] call(c), to_apply=f",
        before="f { x = f32[100] parameter(0)\n  ROOT r = f32[100] reverse(x), dimensions={0} }",
    )
    assert any("flatten-call-graph" in text for text in report.assumptions)


def test_host_memory_is_mentioned() -> None:
    report = report_on(
        "a = f32[100] parameter(0)", "h = f32[100]{0:S(5)} copy(a)", "b = f32[100] copy(h)"
    )
    assert any("S(5)" in text for text in report.assumptions)


def test_arrays_of_nothing_are_not_alive_at_the_peak() -> None:
    report = report_on(
        "a = f32[4] parameter(0)",
        "n = f32[0] parameter(1)",
        "m = f32[0] negate(n)",
        "k = f32[0] sine(m)",
        "b = f32[4] reverse(a), dimensions={0}",
        "t = (f32[4], f32[0]) tuple(b, k)",
    )
    assert [buffer.name for buffer in report.live_at_peak if not buffer.size] == []


def test_a_module_without_memory_has_no_peak() -> None:
    report = report_on("t = token[] after-all()")
    assert report.peak == 0
    assert report.peak_instruction is None
    assert report.live_at_peak == []


@pytest.mark.parametrize("path", sorted(TESTDATA.glob("*.hlo*")), ids=lambda path: path.name)
def test_sums_agree_on_real_modules(path: Path) -> None:
    report = analyze_memory(read_module(str(path)))
    assert sum(buffer.size for buffer in report.live_at_peak) == report.peak
    assert max(report.timeline) == report.peak
    assert report.throughout < report.peak
    device = report.statistics.device
    assert device.alias <= min(device.argument, device.output)


@given(st.lists(st.tuples(st.integers(1, 50), st.integers(0, 5)), min_size=1, max_size=12))
def test_the_timeline_adds_what_is_between_definition_and_last_use(
    steps: list[tuple[int, int]],
) -> None:
    lines = ["x0 = s8[1] parameter(0)"]
    last_use = {0: 0}
    for i, (size, back) in enumerate(steps, 1):
        operand = max(0, i - 1 - back)
        lines.append(f'x{i} = s8[{size}] custom-call(x{operand}), custom_call_target="f"')
        last_use[operand] = i
        last_use[i] = i
    temporary = {
        name
        for kind, _, names in allocations(assign(*lines))
        if kind == "temporary"
        for name in names
    }
    sizes = [1, *(size for size, _ in steps)]
    end = len(steps)
    expected = [
        1
        + sizes[end]
        + sum(
            sizes[j]
            for j in range(1, end)
            if j <= i <= last_use[j] and f"x{j}" in temporary  # others lie in the output's place
        )
        for i in range(end + 1)
    ]
    assert report_on(*lines).timeline == expected


@pytest.mark.parametrize("path", sorted(TESTDATA.glob("*.after_optimizations.hlo*")), ids=str)
def test_what_is_alive_is_known_without_packing(path: Path) -> None:
    module = read_module(str(path))
    buffers = analyze_memory(module).live_at_peak
    names = {buffer.name.partition("{")[0] for buffer in buffers}
    assert MemoryAnalysis.of(module, packs=False).alive_at_peak() == names
