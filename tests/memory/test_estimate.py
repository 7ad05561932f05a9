"""Memory by liveness, on modules small enough to count by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hloopt.diagnostics import HloVerifyError
from hloopt.files import read_module
from hloopt.memory import MemoryReport, MemorySizes, analyze_memory
from hloopt.text import parse_module

TESTDATA = Path(__file__).resolve().parents[2] / "testdata"
ENTRY_OF_LOOP = """
cond { p = (s32[], f32[100]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(3)
  ROOT less = pred[] compare(i, n), direction=LT }
"""


def entry(*lines: str, header: str = "is_scheduled=true", before: str = "") -> MemoryReport:
    """The report on a module with these instructions in its entry; the last one is the root."""
    *body, root = lines
    text = "\n  ".join([*body, f"ROOT {root}"])
    return analyze_memory(
        parse_module(f"HloModule m, {header}\n{before}\nENTRY e {{\n  {text}\n}}\n")
    )


def names(report: MemoryReport) -> set[str]:
    return {buffer.name for buffer in report.live_at_peak}


def test_arguments_and_outputs_count_throughout() -> None:
    report = entry("a = f32[100] parameter(0)", "b = f32[25] slice(a), slice={[0:25]}")
    assert report.device == MemorySizes(argument=400, output=100)
    assert report.timeline == [500, 500]
    assert (report.peak, report.total) == (500, 500)


def test_a_temporary_counts_from_its_definition_to_its_last_use() -> None:
    report = entry(
        "a = f32[100] parameter(0)",
        "b = f32[200] concatenate(a, a), dimensions={0}",
        "c = f32[25] slice(b), slice={[0:25]}",
        "d = f32[25] reverse(c), dimensions={0}",
    )
    assert report.timeline == [500, 1300, 1400, 600]
    assert report.peak_instruction is not None
    assert report.peak_instruction.name == "c"
    assert [(b.name, b.size, b.kind.value) for b in report.live_at_peak] == [
        ("b", 800, "temporary"),
        ("a", 400, "argument"),
        ("c", 100, "temporary"),
        ("d", 100, "output"),
    ]


def test_an_elementwise_result_overwrites_an_operand_that_ends() -> None:
    chain = ["a = f32[100] parameter(0)", "b = f32[100] reverse(a), dimensions={0}"]
    elementwise = entry(*chain, "c = f32[100] negate(b)", "d = f32[1] slice(c), slice={[0:1]}")
    moved = entry(*chain, "c = f32[100] copy(b)", "d = f32[1] slice(c), slice={[0:1]}")
    assert elementwise.device.temp == 400
    assert moved.device.temp == 800


def test_a_temporary_can_become_the_output_in_place() -> None:
    report = entry(
        "a = f32[100] parameter(0)",
        "b = f32[100] reverse(a), dimensions={0}",
        "c = f32[100] negate(b)",
    )
    assert report.device == MemorySizes(argument=400, output=400)


def test_a_donated_argument_is_part_of_argument_and_output() -> None:
    report = entry(
        "a = f32[100] parameter(0)",
        "b = f32[100] parameter(1)",
        "c = f32[100] add(a, b)",
        "t = (f32[100]) tuple(c)",
        header="is_scheduled=true, input_output_alias={ {0}: (1, {}, may-alias) }",
    )
    assert report.device == MemorySizes(argument=800, output=408, alias=400)
    assert report.total == 808


def test_an_alias_of_a_missing_parameter_is_an_error() -> None:
    with pytest.raises(HloVerifyError, match="parameter 3"):
        entry(
            "a = f32[4] parameter(0)",
            "b = f32[4] negate(a)",
            header="is_scheduled=true, input_output_alias={ {}: (3, {}) }",
        )


def test_an_instruction_before_its_operand_is_an_error() -> None:
    module = parse_module(
        "HloModule m, is_scheduled=true\n"
        "ENTRY e {\n  a = f32[4] parameter(0)\n  ROOT b = f32[4] negate(a)\n}\n"
    )
    module.entry.reorder(reversed(list(module.entry.instructions)))
    with pytest.raises(HloVerifyError, match="'%b' is scheduled before its operand '%a'"):
        analyze_memory(module)


def test_bitcasts_tuples_and_elements_take_no_memory_of_their_own() -> None:
    report = entry(
        "a = f32[100] parameter(0)",
        "r = f32[100] reverse(a), dimensions={0}",
        "b = f32[10,10] bitcast(r)",
        "t = (f32[10,10], f32[100]) tuple(b, a)",
        "g = f32[10,10] get-tuple-element(t), index=0",
        "s = f32[1,1] slice(g), slice={[0:1], [0:1]}",
    )
    assert report.device.temp == 400 + 16


def test_an_update_in_place_shares_its_operand() -> None:
    report = entry(
        "a = f32[100] parameter(0)",
        "u = f32[1] parameter(1)",
        "i = s32[] parameter(2)",
        "c = f32[100] copy(a)",
        "d = f32[100] dynamic-update-slice(c, u, i)",
        "s = f32[10] slice(d), slice={[0:10]}",
    )
    assert report.device.temp == 400
    assert not any("copied" in text for text in report.assumptions)


def test_an_update_of_an_argument_that_is_not_donated_needs_a_copy() -> None:
    report = entry(
        "a = f32[100] parameter(0)",
        "u = f32[1] parameter(1)",
        "i = s32[] parameter(2)",
        "d = f32[100] dynamic-update-slice(a, u, i)",
        "s = f32[10] slice(d), slice={[0:10]}",
    )
    assert report.device.temp == 400
    assert any("1 values that should share" in text for text in report.assumptions)


def test_a_fusion_that_updates_its_parameter_works_in_place() -> None:
    report = entry(
        "a = f32[100] parameter(0)",
        "u = f32[1] parameter(1)",
        "i = s32[] parameter(2)",
        "c = f32[100] copy(a)",
        "d = f32[100] fusion(u, c, i), kind=kLoop, calls=f",
        "s = f32[10] slice(d), slice={[0:10]}",
        before="""f { u = f32[1] parameter(0)
  x = f32[100] parameter(1)
  i = s32[] parameter(2)
  ROOT r = f32[100] dynamic-update-slice(x, u, i) }""",
    )
    assert report.device.temp == 400


def test_the_state_of_a_loop_is_counted_once() -> None:
    report = entry(
        "a = f32[100] parameter(0)",
        "z = s32[] constant(0)",
        "i = s32[] copy(z)",
        "x = f32[100] copy(a)",
        "t = (s32[], f32[100]) tuple(i, x)",
        "w = (s32[], f32[100]) while(t), condition=cond, body=body",
        "y = f32[100] get-tuple-element(w), index=1",
        "s = f32[10] slice(y), slice={[0:10]}",
        before=ENTRY_OF_LOOP
        + """
body { q = (s32[], f32[100]) parameter(0)
  j = s32[] get-tuple-element(q), index=0
  x = f32[100] get-tuple-element(q), index=1
  next = s32[] negate(j)
  v = f32[100] reverse(x), dimensions={0}
  c = f32[100] copy(v)
  ROOT r = (s32[], f32[100]) tuple(next, c) }""",
    )
    # at the copy in the body: counter, state and the value that is copied into it
    assert report.device.temp == 4 + 400 + 400 + 16
    assert report.peak_instruction is not None
    assert report.peak_instruction.computation == "body"


def test_what_a_loop_passes_through_is_not_copied() -> None:
    report = entry(
        "a = f32[100] parameter(0)",
        "z = s32[] parameter(1)",
        "i = s32[] copy(z)",
        "t = (s32[], f32[100]) tuple(i, a)",
        "w = (s32[], f32[100]) while(t), condition=cond, body=body",
        "j = s32[] get-tuple-element(w), index=0",
        "s = s32[1] reshape(j)",
        before=ENTRY_OF_LOOP
        + """
body { q = (s32[], f32[100]) parameter(0)
  j = s32[] get-tuple-element(q), index=0
  x = f32[100] get-tuple-element(q), index=1
  next = s32[] negate(j)
  ROOT r = (s32[], f32[100]) tuple(next, x) }""",
    )
    assert report.device.temp == 4 + 1 + 16  # counter, condition, pointers
    assert not any("copied" in text for text in report.assumptions)


def test_state_elements_that_start_from_one_value_have_a_buffer_each() -> None:
    report = entry(
        "z = s32[] parameter(0)",
        "f = f32[] parameter(1)",
        "b = f32[100] broadcast(f), dimensions={}",
        "t = (s32[], f32[100], f32[100]) tuple(z, b, b)",
        "w = (s32[], f32[100], f32[100]) while(t), condition=cond2, body=body2",
        "s = s32[] get-tuple-element(w), index=0",
        header="is_scheduled=false",
        before="""
cond2 { p = (s32[], f32[100], f32[100]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  ROOT less = pred[] compare(i, i), direction=LT }
body2 { q = (s32[], f32[100], f32[100]) parameter(0)
  j = s32[] get-tuple-element(q), index=0
  x = f32[100] get-tuple-element(q), index=1
  y = f32[100] get-tuple-element(q), index=2
  sx = f32[100] sine(x)
  sy = f32[100] cosine(y)
  ROOT r = (s32[], f32[100], f32[100]) tuple(j, sx, sy) }""",
    )
    assert report.device.temp >= 800


def test_the_branches_of_a_conditional_share_their_result_and_not_their_temporaries() -> None:
    report = entry(
        "p = pred[] parameter(0)",
        "a = f32[100] parameter(1)",
        "c = f32[10] conditional(p, a, a), true_computation=f, false_computation=g",
        "s = f32[1] slice(c), slice={[0:1]}",
        before="""
f { x = f32[100] parameter(0)
  r = f32[100] reverse(x), dimensions={0}
  ROOT s = f32[10] slice(r), slice={[0:10]} }
g { x = f32[100] parameter(0)
  r = f32[100] reverse(x), dimensions={0}
  ROOT s = f32[10] slice(r), slice={[0:10]} }""",
    )
    assert report.device.temp == 440


def test_each_call_of_a_computation_counts_what_it_needs_inside() -> None:
    callee = """
f { x = f32[100] parameter(0)
  r = f32[300] concatenate(x, x, x), dimensions={0}
  ROOT s = f32[10] slice(r), slice={[0:10]} }"""
    report = entry(
        "a = f32[100] parameter(0)",
        "c = f32[10] call(a), to_apply=f",
        "big = f32[1000] concatenate(a, a, a, a, a, a, a, a, a, a), dimensions={0}",
        "d = f32[10] call(a), to_apply=f",
        "t = (f32[10], f32[1000], f32[10]) tuple(c, big, d)",
        "g = f32[1000] get-tuple-element(t), index=1",
        "s = f32[1] slice(g), slice={[0:1]}",
        before=callee,
    )
    assert report.peak_instruction is not None
    assert report.peak_instruction.name == "d"
    assert "inside f" in names(report)
    assert sum(buffer.size for buffer in report.live_at_peak) == report.peak


def test_what_runs_asynchronously_lives_to_the_done() -> None:
    report = entry(
        "a = f32[100] parameter(0)",
        "b = f32[100] reverse(a), dimensions={0}",
        'start = ((f32[100]), f32[200], u32[]) custom-call-start(b), custom_call_target="f"',
        "n = f32[50] slice(a), slice={[0:50]}",
        "done = f32[200] custom-call-done(start)",
        "s = f32[50] slice(done), slice={[0:50]}",
        "r = f32[50] add(s, n)",
    )
    position = next(i for i, b in enumerate(report.timeline) if b == report.peak)
    assert report.peak == 400 + 200 + 400 + 800 + 200 + 4
    assert position >= 3


def test_host_memory_is_listed_apart() -> None:
    report = entry(
        "a = f32[100] parameter(0)",
        "h = f32[100]{0:S(5)} copy(a)",
        "b = f32[100] copy(h)",
        "s = f32[1] slice(b), slice={[0:1]}",
    )
    assert report.host == MemorySizes(temp=400)
    assert report.device.temp == 400
    assert any("S(5)" in text for text in report.assumptions)


def test_an_unscheduled_module_says_which_order_was_assumed() -> None:
    report = entry("a = f32[4] parameter(0)", "b = f32[4] negate(a)", header="replica_count=1")
    assert report.order == "post-order (the module is not scheduled)"
    assert any("not scheduled" in text for text in report.assumptions)


def test_a_module_without_memory_has_no_peak() -> None:
    report = entry("t = token[] after-all()")
    assert report.peak == 0
    assert report.peak_instruction is None
    assert report.live_at_peak == []


def test_op_names_lose_their_escapes() -> None:
    argument = r"""a = f32[4] parameter(0), metadata={op_name="p[\'\303\251\']"}"""
    report = entry(argument, "b = f32[4] negate(a)")
    assert "p['é']" in {buffer.op_name for buffer in report.live_at_peak}


@pytest.mark.parametrize("path", sorted(TESTDATA.glob("*.hlo*")), ids=lambda path: path.name)
def test_sums_agree_on_real_modules(path: Path) -> None:
    report = analyze_memory(read_module(str(path)))
    assert sum(buffer.size for buffer in report.live_at_peak) == report.peak
    assert max(report.timeline) == report.peak
    assert report.throughout < report.peak <= report.total
    assert report.device.alias <= min(report.device.argument, report.device.output)


@pytest.mark.slow
def test_sizes_and_peak_against_xla(shared: Path) -> None:
    """Arguments, outputs and aliases are exact; the peak is rarely below XLA's, and by little."""
    paths = sorted((shared / "oracle" / "memory").glob("*/memory.json"))
    assert paths
    for path in paths:
        stats = json.loads(path.read_text())["stats"]
        text = path.with_name("after_optimizations.hlo").read_text()
        report = analyze_memory(parse_module(text))
        device = report.device
        assert (device.argument, device.output, device.alias) == (
            stats["argument_size_in_bytes"],
            stats["output_size_in_bytes"],
            stats["alias_size_in_bytes"],
        ), path
        assert 0.98 < report.peak / stats["peak_memory_in_bytes"] < 1.35, path


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
    report = entry(*lines)
    sizes = [1, *(size for size, _ in steps)]
    end = len(steps)
    expected = [
        1 + sizes[end] + sum(sizes[j] for j in range(1, end) if j <= i <= last_use[j])
        for i in range(end + 1)
    ]
    assert report.timeline == expected
