"""Corners of replacing conditionals by selects."""

from __future__ import annotations

import pytest
from tests.passes.checked_run import run_checked

from hloopt.equivalence import Reference, RunSettings
from hloopt.ir import Opcode
from hloopt.pass_framework.applications import Applications
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.passes.rewriting.slice_places import has_notes
from hloopt.text import parse_module

PASS = "conditional-to-select"
MAP = "p = f32[8] parameter(0) ROOT r = f32[8] map(p), dimensions={0}, to_apply=applied"
CHOICE = "conditional(q, a, a), true_computation=t, false_computation=f"


def applied(choice: str = CHOICE, entry: str = MAP, branch: str = "ROOT r = f32[] sine(a)") -> str:
    return f"""HloModule m
    body {{ x = f32[] parameter(0) ROOT n = f32[] negate(x) }}
    below {{ x = f32[] parameter(0) k = f32[] constant(0)
      ROOT n = pred[] compare(x, k), direction=LT }}
    t {{ a = f32[] parameter(0) {branch} }}
    f {{ a = f32[] parameter(0) ROOT r = f32[] negate(a) }}
    applied {{ a = f32[] parameter(0) k = f32[] constant(0)
      q = pred[] compare(a, k), direction=LT
      i = s32[] convert(q)
      n = f32[] cosine(a)
      ROOT c = f32[] {choice} }}
    ENTRY e {{ {entry} }}
    """


@pytest.mark.parametrize(
    "choice",
    [
        CHOICE,
        CHOICE + ", sharding={replicated}",
        "conditional(i, a, k), branch_computations={t, f}",
    ],
)
def test_what_is_applied_to_elements_has_no_conditionals(choice: str) -> None:
    text = applied(choice)
    module = run_checked(PASS, text)
    assert next(module.instructions(Opcode.CONDITIONAL), None) is None
    assert {"t", "f"}.isdisjoint(module.computations)
    assert Reference(parse_module(text), RunSettings()).compare(module) is None


def test_notes_on_slices_go_that_are_true_of_what_a_branch_alone_does() -> None:
    branch = """z = f32[2] constant({1, 2}) i = s32[] convert(a)
      s = f32[1] dynamic-slice(z, i), dynamic_slice_sizes={1},
        backend_config={"dynamic_slice_config":{"byte_offset":0}}
      ROOT r = f32[] reshape(s)"""
    module = run_checked(PASS, applied(branch=branch))
    assert next(module.instructions(Opcode.CONDITIONAL), None) is None
    found = list(module.instructions(Opcode.DYNAMIC_SLICE))
    assert found
    assert not has_notes(found)


def test_what_that_calls_has_none_either() -> None:
    outer = "outer { b = f32[] parameter(0) ROOT d = f32[] call(b), to_apply=applied } ENTRY"
    text = applied().replace("to_apply=applied", "to_apply=outer").replace("ENTRY", outer)
    module = run_checked(PASS, text)
    assert next(module.instructions(Opcode.CONDITIONAL), None) is None


@pytest.mark.parametrize(
    "entry",
    [
        "p = f32[] parameter(0) ROOT r = f32[] call(p), to_apply=applied",
        "p = f32[] parameter(0) s = f32[] call(p), to_apply=applied "
        "ROOT r = f32[] map(s), dimensions={}, to_apply=applied",
    ],
)
def test_what_is_called_keeps_its_control_flow(entry: str) -> None:
    run_checked(PASS, applied(entry=entry), changes=False)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (applied(CHOICE + ", control-predecessors={n}"), "it has control dependencies"),
        (applied("conditional(i, a, a, a), branch_computations={t, f, f}"),
         "it has 3 branches, not two"),
        (applied(branch="ROOT r = f32[] rng(a, a), distribution=rng_uniform"),
         "a branch has a side effect"),
        (applied(branch="ROOT r = f32[] while(a), condition=below, body=body"),
         "%r in %t is a loop"),
    ],
)  # fmt: skip
def test_conditionals_that_stay_are_reported(text: str, reason: str) -> None:
    context = PassContext(PASS)
    assert not create_pass(PASS).run(parse_module(text), context)
    assert [(r.kind, r.instruction, r.reason) for r in context.remarks] == [("missed", "c", reason)]


def test_arrays_of_sizes_that_may_differ_are_not_selected() -> None:
    text = """HloModule m
    t { a = f32[<=4] parameter(0) ROOT r = f32[<=4] negate(a) }
    applied { a = f32[] parameter(0) q = pred[] constant(true) n = s32[] constant(2)
      k = f32[4] broadcast(a), dimensions={}
      d = f32[<=4] set-dimension-size(k, n), dimensions={0}
      c = f32[<=4] conditional(q, d, d), true_computation=t, false_computation=t
      ROOT r = f32[] negate(a) }
    ENTRY e { p = f32[8] parameter(0) ROOT r = f32[8] map(p), dimensions={0}, to_apply=applied }
    """
    context = PassContext(PASS)
    assert not create_pass(PASS).run(parse_module(text), context)
    assert [r.reason for r in context.remarks] == ["it gives f32[<=4]{0}, which select cannot"]


def test_nested_conditionals_go_in_one_run() -> None:
    inner = "k = f32[] constant(1) q = pred[] compare(a, k), direction=LT ROOT r = f32[] " + (
        "conditional(q, a, a), true_computation=body, false_computation=body"
    )
    text = applied(branch=inner)
    module = run_checked(PASS, text)
    assert next(module.instructions(Opcode.CONDITIONAL), None) is None
    assert Reference(parse_module(text), RunSettings()).compare(module) is None


TWO = """
    two { a = f32[] parameter(0) k = f32[] constant(0)
      q = pred[] compare(a, k), direction=LT
      n = f32[] cosine(a)
      c0 = f32[] conditional(q, a, a), true_computation=t, false_computation=f,
        control-predecessors={n}
      c1 = f32[] conditional(q, a, n), true_computation=t, false_computation=f
      c2 = f32[] conditional(q, n, a), true_computation=t, false_computation=f
      c3 = f32[] conditional(q, a, a), true_computation=t, false_computation=f,
        control-predecessors={n}
      first = f32[] add(c0, c1)
      later = f32[] add(c2, c3)
      ROOT s = f32[] add(first, later) }
    ENTRY"""


@pytest.mark.parametrize(
    ("most", "left", "said"),
    [
        (0, ["c0", "c1", "c2", "c3"], ["missed c0"]),
        (1, ["c0", "c2", "c3"], ["missed c0", "applied c1"]),
        (2, ["c0", "c3"], ["missed c0", "applied c1", "applied c2", "missed c3"]),
    ],
)
def test_conditionals_between_others_that_stay_are_replaced_up_to_the_limit(
    most: int, left: list[str], said: list[str]
) -> None:
    text = applied(entry=MAP.replace("=applied", "=two")).replace("ENTRY", TWO)
    module = parse_module(text)
    context = PassContext(PASS, applications=Applications(most))
    assert create_pass(PASS).run(module, context) is (most > 0)
    stays = [i.name for i in module.computations["two"].instructions]
    assert [name for name in stays if name in ("c0", "c1", "c2", "c3")] == left
    assert [f"{r.kind} {r.instruction}" for r in context.remarks] == said
    assert context.statistics.get("conditionals removed", 0) == most
    assert Reference(parse_module(text), RunSettings()).compare(module) is None


def test_what_the_entry_does_not_run_is_left_alone() -> None:
    apart = """apart { p = f32[8] parameter(0)
      ROOT r = f32[8] map(p), dimensions={0}, to_apply=applied }
    ENTRY"""
    text = applied(entry="ROOT p = f32[8] parameter(0)").replace("ENTRY", apart)
    run_checked(PASS, text, changes=False)


def test_a_schedule_stays_valid() -> None:
    text = applied().replace("HloModule m", "HloModule m, is_scheduled=true")
    module = run_checked(PASS, text)
    assert [i.opcode.value for i in module.computations["applied"].instructions] == [
        *("parameter", "constant", "compare", "convert", "cosine", "sine", "negate", "select")
    ]


def test_what_reads_a_conditional_comes_after_its_selects_in_the_schedule() -> None:
    first = f"n = f32[] cosine(a) d = f32[] {CHOICE}"
    text = applied("negate(d)").replace("n = f32[] cosine(a)", first)
    module = run_checked(PASS, text.replace("HloModule m", "HloModule m, is_scheduled=true"))
    opcodes = [i.opcode.value for i in module.computations["applied"].instructions]
    assert opcodes[-2:] == ["select", "negate"]


def test_computations_without_conditionals_keep_the_schedule_they_have() -> None:
    text = applied().replace("HloModule m", "HloModule m, is_scheduled=true")
    module = parse_module(text)
    below = module.computations["below"]
    before = below.version
    create_pass(PASS).run(module, PassContext())
    assert below.version == before
