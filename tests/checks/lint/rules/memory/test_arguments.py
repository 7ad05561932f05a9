"""Rules about what is handed to the program and within it."""

from __future__ import annotations

import pytest
from tests.checks.lint.linting import check, violations
from tests.passes.checked_run import run_checked

from hloopt.checks.results import Severity, Verdict
from hloopt.memory.analysis import analyze_memory
from hloopt.text import parse_module, print_module

# -- HLL401 ---------------------------------------------------------------------------------------

STEP = """HloModule m, is_scheduled=true{header}
ENTRY e {{
  w = f32[1024] parameter(0)
  g = f32[1024] parameter(1)
  n = f32[1024] subtract(w, g)
  s = f32[1024] multiply(g, n)
  ROOT t = (f32[1024], f32[1024]) tuple(n, s)
}}
"""


def peak_of(text: str) -> int:
    return analyze_memory(parse_module(text)).peak


def test_arguments_are_not_donated_and_the_claim_is_what_aliasing_saves() -> None:
    before = STEP.format(header="")
    found = violations("HLL401", before, size=1)
    assert [each.location.instruction for each in found] == ["w", "g"]
    assert found[0].message.startswith(
        "argument %w is not donated, although result {0} of the same shape could take its memory"
    )
    alias = ", input_output_alias={ {0}: (0, {}), {1}: (1, {}) }"
    saved = peak_of(before) - peak_of(STEP.format(header=alias))
    assert sum(each.impact.memory for each in found) == saved == 8192


@pytest.mark.parametrize(
    ("header", "names"),
    [
        (", input_output_alias={ {0}: (0, {}) }", ["g"]),
        (", buffer_donor={ (1, {}) }", ["w"]),
        (", input_output_alias={ {0}: (0, {}), {1}: (1, {}) }", []),
    ],
)
def test_donated_arguments_are_not_found(header: str, names: list[str]) -> None:
    found = violations("HLL401", STEP.format(header=header), size=1)
    assert [each.location.instruction for each in found] == names


def test_small_arguments_are_not_worth_a_finding() -> None:
    assert not violations("HLL401", STEP.format(header=""))
    assert not violations("HLL401", STEP.format(header=""), size=4097)
    assert len(violations("HLL401", STEP.format(header=""), size=4096)) == 2


def test_an_argument_that_is_read_after_the_output_is_written_is_not_found() -> None:
    text = """HloModule m, is_scheduled=true
ENTRY e {
  w = f32[1024] parameter(0)
  n = f32[1024] reverse(w), dimensions={0}
  zero = f32[] constant(0)
  m = f32[1024] reverse(w), dimensions={0}
  ROOT t = (f32[1024], f32[1024]) tuple(n, m)
}
"""
    assert not violations("HLL401", text, size=1)


def test_an_element_of_an_argument_is_named_by_its_index() -> None:
    text = """HloModule m, is_scheduled=true
ENTRY e {
  s = (f32[8], f32[1024]) parameter(0)
  x = f32[1024] get-tuple-element(s), index=1
  ROOT n = f32[1024] negate(x)
}
"""
    (found,) = violations("HLL401", text, size=1)
    assert found.message.startswith("argument %s{1} is not donated, although result {} of")


def test_without_a_schedule_there_is_no_verdict_on_donations() -> None:
    text = STEP.format(header="").replace(", is_scheduled=true", "")
    found = check("HLL401", text.replace("multiply(g, n)", "multiply(g, g)"))
    assert found.verdict is Verdict.NONE
    assert "not scheduled" in found.reason


# -- HLL404 ---------------------------------------------------------------------------------------


PLAIN = "call(p, q), to_apply=f"


def found_messages(text: str, **options: object) -> list[str]:
    return [each.message for each in violations("HLL404", text, **({"size": 1} | options))]


CALL = """HloModule m
f {{
  a = f32[8] parameter(0)
  b = f32[8] parameter(1)
  ROOT n = f32[8] {root}
}}
ENTRY e {{
  p = f32[8] parameter(0)
  q = f32[8] negate(p)
  ROOT c = f32[8] {call}
}}
"""


def test_parameters_that_a_callee_does_not_read() -> None:
    dead = CALL.format(root="negate(a)", call=PLAIN)
    assert found_messages(dead) == ["%c hands over %b of %f (32 B), which nothing in there reads"]
    assert not found_messages(CALL.format(root="add(a, b)", call=PLAIN))
    assert not found_messages(dead, size=33)
    assert not found_messages(run_cleaned(dead))


def run_cleaned(text: str) -> str:
    return print_module(run_checked("dce", text, use_call_analysis=True))


def test_a_root_is_a_result() -> None:
    text = CALL.format(root="negate(a)", call=PLAIN)
    text = text.replace("ROOT n = f32[8] negate(a)", "n = f32[8] negate(a)").replace(
        "b = f32[8] parameter(1)", "ROOT b = f32[8] parameter(1)"
    )
    assert not [message for message in found_messages(text) if "%b" in message]


def test_a_control_dependency_keeps_a_parameter() -> None:
    root = "negate(a), control-predecessors={b}"
    assert not found_messages(CALL.format(root=root, call=PLAIN))


def test_a_composite_keeps_its_operands() -> None:
    call = 'call(p, q), to_apply=f, is_composite=true, frontend_attributes={composite.name="c"}'
    assert not found_messages(CALL.format(root="negate(a)", call=call))


def test_a_parameter_of_two_callers_is_found_once() -> None:
    text = CALL.format(root="negate(a)", call="call(d, q), to_apply=f").replace(
        "  ROOT c", "  d = f32[8] call(p, q), to_apply=f\n  ROOT c"
    )
    (found,) = violations("HLL404", text, size=1)
    assert found.location.instruction == "d"
    assert [each.instruction for each in found.related] == ["b", "c"]


def test_what_is_applied_to_elements_has_its_parameters_by_its_signature() -> None:
    text = """HloModule m
last {
  a = f32[] parameter(0)
  ROOT b = f32[] parameter(1)
}
ENTRY e {
  p = f32[8] parameter(0)
  zero = f32[] constant(0)
  ROOT r = f32[] reduce(p, zero), dimensions={0}, to_apply=last
}
"""
    assert not found_messages(text)


def test_an_operand_of_a_fusion_that_nothing_reads() -> None:
    fusion = "fusion(p, q), kind=kLoop, calls=f"
    dead = CALL.format(root="negate(a)", call=fusion)
    assert found_messages(dead) == ["%c hands over %b of %f (32 B), which nothing in there reads"]
    assert not found_messages(CALL.format(root="add(a, b)", call=fusion))


def test_an_operand_of_an_asynchronous_call_that_nothing_reads() -> None:
    text = CALL.format(root="negate(a)", call="call(p, q), to_apply=f").replace(
        "ROOT c = f32[8] call(p, q), to_apply=f",
        "s = ((f32[8], f32[8]), f32[8]) async-start(p, q), calls=f\n"
        "  ROOT d = f32[8] async-done(s)",
    )
    assert found_messages(text) == ["%s hands over %b of %f (32 B), which nothing in there reads"]


LOOP = """HloModule m
body {{
  s = (s32[], f32[8], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  n = s32[] add(i, one)
  x = f32[8] get-tuple-element(s), index=1
  y = f32[8] negate(x)
  u = f32[8] get-tuple-element(s), index=2
  {body}
}}
condition {{
  s = (s32[], f32[8], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  t = f32[8] get-tuple-element(s), index={tested}
  k = s32[] constant(8)
  ROOT c = pred[] compare(i, k), direction=LT
}}
ENTRY e {{
  zero = s32[] constant(0)
  a = f32[8] parameter(0)
  b = f32[8] negate(a)
  start = (s32[], f32[8], f32[8]) tuple(zero, a, b)
  ROOT w = (s32[], f32[8], f32[8]) while(start), condition=condition, body=body
}}
"""
ROOT = "ROOT r = (s32[], f32[8], f32[8]) tuple"
IN_STATE = "%w carries %s{2} of %body (32 B) from trip to trip, and no trip reads it"


@pytest.mark.parametrize(
    ("body", "is_found"),
    [
        (f"{ROOT}(n, y, u)", True),
        (f"v = f32[8] copy(u)\n  {ROOT}(n, y, v)", True),
        (f"{ROOT}(n, u, u)", False),  # it becomes another element
        (f"{ROOT}(n, y, x)", False),  # it changes
        (f"v = f32[8] add(u, y)\n  {ROOT}(n, v, u)", False),  # it is read
        (f"c = f32[8] copy(u)\n  v = f32[8] add(c, y)\n  {ROOT}(n, v, u)", False),
        (f"v = f32[8] copy(u)\n  {ROOT}(n, v, u)", False),
    ],
)
def test_state_that_no_trip_reads(body: str, is_found: bool) -> None:
    found = found_messages(LOOP.format(body=body, tested=1))
    assert (IN_STATE in found) == is_found
    assert len(found) == is_found


def test_state_that_the_condition_reads_or_somebody_reads_as_a_whole() -> None:
    body = f"{ROOT}(n, y, u)"
    assert not found_messages(LOOP.format(body=body, tested=2))
    whole = "w = ((s32[], f32[8], f32[8])) tuple(s)\n  " + body
    assert not found_messages(LOOP.format(body=whole, tested=1))


CONDITIONAL = """HloModule m
one {{
  a = (f32[8], f32[4]) parameter(0)
  x = f32[8] get-tuple-element(a), index=0
  {one}
}}
two {{
  ROOT b = f32[8] parameter(0)
}}
ENTRY e {{
  p = pred[] parameter(0)
  q = (f32[8], f32[4]) parameter(1)
  s = f32[8] parameter(2)
  ROOT c = f32[8] conditional(p, q, s), true_computation=one, false_computation=two
}}
"""


def test_elements_that_a_branch_does_not_read() -> None:
    text = CONDITIONAL.format(one="ROOT n = f32[8] negate(x)")
    assert found_messages(text) == [
        "%c hands over %a{1} of %one (16 B), which nothing in there reads"
    ]
    read = "y = f32[4] get-tuple-element(a), index=1\n  ROOT n = f32[8] negate(x)"
    assert not found_messages(CONDITIONAL.format(one=read))
    whole = "t = ((f32[8], f32[4])) tuple(a)\n  ROOT n = f32[8] negate(x)"
    assert not found_messages(CONDITIONAL.format(one=whole))


ENTRY = """HloModule m{header}
ENTRY e {{
  p = f32[1024] parameter(0)
  q = f32[1024] parameter(1)
  ROOT n = f32[1024] negate(p)
}}
"""


def test_an_argument_that_is_not_read_is_a_note_of_its_size_at_the_peak() -> None:
    text = ENTRY.format(header=", is_scheduled=true")
    (found,) = violations("HLL404", text, size=4096)
    assert found.message == "argument %q is not read by the program (4.0 KiB at the peak)"
    assert found.severity is Severity.NOTE
    after = run_checked("dce", text, remove_dead_parameters_from_entry_computation=True)
    assert found.impact.memory == peak_of(text) - analyze_memory(after).peak
    assert check("HLL404", text, size=1).verdict is Verdict.PASSED


@pytest.mark.parametrize(
    "header", [", input_output_alias={ {}: (1, {}) }", ", buffer_donor={ (1, {}) }"]
)
def test_an_argument_that_lends_its_memory_is_not_found(header: str) -> None:
    assert not found_messages(ENTRY.format(header=header))


def test_a_module_that_is_not_partitioned_has_no_sizes_of_one_device() -> None:
    text = ENTRY.format(header=", num_partitions=2").replace(
        "ROOT n = f32[1024] negate(p)",
        "ROOT n = f32[1024] negate(p), sharding={devices=[2]0,1}",
    )
    assert check("HLL404", text).verdict is Verdict.NONE
