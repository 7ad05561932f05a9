"""Corners of simplifying sorts."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.passes.checked_run import reasons_to_stay, run_checked

from hloopt.equivalence import Reference, RunSettings
from hloopt.ir import Module, Opcode
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module

PASS = "simplify-sorts"
COMPARATOR = """
c { a = f32[] parameter(0) b = f32[] parameter(1) x = s32[] parameter(2) y = s32[] parameter(3)
  ROOT r = pred[] compare(a, b), direction=LT }
"""


def sorts(body: str, size: int = 3) -> str:
    return f"""HloModule m
    {COMPARATOR}
    ENTRY e {{ p = f32[{size}] parameter(0) q = s32[{size}] parameter(1)
      {body.replace("[N]", f"[{size}]")} }}
    """


def the_sort(module: Module) -> str:
    (sort,) = module.instructions(Opcode.SORT)
    operands = ", ".join(operand.name for operand in sort.operands)
    return f"{sort.shape.text} sort({operands})"


def test_one_operand_left_gives_an_array_with_what_the_sort_said() -> None:
    module = run_checked(
        PASS,
        sorts(
            """n = f32[N] negate(p)
            s = (f32[N], s32[N]) sort(p, q), dimensions={0}, is_stable=true, to_apply=c,
              control-predecessors={n}, sharding={{replicated}, {maximal device=0}},
              origin={({"v"}, {"w" {1}})}, metadata={op_name="sort"}
            g = f32[N] get-tuple-element(s), index=0, control-predecessors={n}
            ROOT t = (f32[N], f32[N], f32[N]) tuple(g, g, n)"""
        ),
    )
    assert the_sort(module) == "f32[3]{0} sort(p)"
    (sort,) = module.instructions(Opcode.SORT)
    assert [i.name for i in sort.control_predecessors] == ["n"]
    assert sort.attributes["sharding"] == "{replicated}"
    assert sort.attributes["origin"] == '{{"v"}}'
    assert sort.attributes["is_stable"] == "true"


def test_what_the_comparator_reads_stays() -> None:
    module = run_checked(
        PASS,
        """HloModule m
        c { a = f32[] parameter(0) b = f32[] parameter(1) x = s32[] parameter(2)
          y = s32[] parameter(3) u = s8[] parameter(4) v = s8[] parameter(5)
          ROOT r = pred[] compare(u, v), direction=LT }
        ENTRY e { p = f32[3] parameter(0) q = s32[3] parameter(1) k = s8[3] parameter(2)
          s = (f32[3], s32[3], s8[3]) sort(p, q, k), dimensions={0}, to_apply=c
          n = s32[3] negate(q)
          ROOT g = f32[3] get-tuple-element(s), index=0 }
        """,
    )
    assert the_sort(module) == "(f32[3]{0}, s8[3]{0}) sort(p, k)"
    assert len(module.computations["c"].parameters) == 4


def test_a_comparator_that_gives_its_parameter_reads_it() -> None:
    text = """HloModule m
    c { ROOT a = pred[] parameter(0) b = pred[] parameter(1) x = s32[] parameter(2)
      y = s32[] parameter(3) }
    ENTRY e { p = pred[3] parameter(0) q = s32[3] parameter(1)
      s = (pred[3], s32[3]) sort(p, q), dimensions={0}, to_apply=c
      ROOT g = s32[3] get-tuple-element(s), index=1 }
    """
    run_checked(PASS, text, changes=False)


def test_what_only_the_dropped_operand_needed_goes_with_it() -> None:
    module = run_checked(
        PASS,
        sorts(
            """n = s32[N] negate(q)
            s = (f32[N], s32[N]) sort(p, n), dimensions={0}, to_apply=c
            ROOT g = f32[N] get-tuple-element(s), index=0"""
        ),
    )
    assert [i.opcode.value for i in module.entry.instructions] == ["parameter", "parameter", "sort"]


def test_a_shared_comparator_is_copied() -> None:
    module = run_checked(
        PASS,
        sorts(
            """s = (f32[N], s32[N]) sort(p, q), dimensions={0}, to_apply=c
            g = f32[N] get-tuple-element(s), index=0
            u = (f32[N], s32[N]) sort(g, q), dimensions={0}, to_apply=c
            ROOT t = (f32[N], (f32[N], s32[N])) tuple(g, u)"""
        ),
    )
    assert sorted(len(c.parameters) for c in module.computations.values()) == [2, 2, 4]


@pytest.mark.parametrize(
    "body",
    [
        "ROOT s = (f32[N], s32[N]) sort(p, q), dimensions={0}, to_apply=c",
        "s = (f32[N], s32[N]) sort(p, q), dimensions={0}, to_apply=c "
        "g = f32[N] get-tuple-element(s), index=0 "
        "ROOT t = (f32[N], (f32[N], s32[N])) tuple(g, s)",
        "s = (f32[N], s32[N]) sort(p, q), dimensions={0}, to_apply=c ROOT n = f32[N] negate(p)",
    ],
)
def test_sorts_that_are_read_whole_or_not_at_all_stay(body: str) -> None:
    run_checked(PASS, sorts(body), changes=False)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("s = (f32[N], s32[N]) sort(p, q), dimensions={0}, to_apply=c "
         "g = f32[N] get-tuple-element(s), index=0 n = f32[N] sine(g) "
         "h = f32[N] get-tuple-element(s), index=0, control-predecessors={n} "
         "ROOT t = (f32[N], f32[N]) tuple(g, h)",
         "a control predecessor of %h depends on it"),
        ("s = (f32[N], s32[N]) sort(p, q), dimensions={0}, to_apply=c, "
         "sharding={{replicated}, {replicated}} "
         "ROOT h = f32[N] get-tuple-element(s), index=0, sharding={maximal device=0}",
         "the sharding of %h differs from its own"),
    ],
)  # fmt: skip
def test_readers_that_the_sort_cannot_replace_are_reported(body: str, reason: str) -> None:
    context = PassContext(PASS)
    assert not create_pass(PASS).run(parse_module(sorts(body)), context)
    assert [(r.kind, r.instruction, r.reason) for r in context.remarks] == [("missed", "s", reason)]


@pytest.mark.parametrize("size", [0, 1])
def test_nothing_to_sort(size: int) -> None:
    body = "ROOT s = (f32[N], s32[N]) sort(p, q), dimensions={0}, to_apply=c"
    module = run_checked(PASS, sorts(body, size))
    assert [i.name for i in module.entry.root.operands] == ["p", "q"]


def test_a_sort_of_one_element_that_changes_the_layout_stays() -> None:
    text = """HloModule m
    c { a = f32[] parameter(0) b = f32[] parameter(1)
      ROOT r = pred[] compare(a, b), direction=LT }
    ENTRY e { p = f32[1,3]{1,0} parameter(0)
      ROOT s = f32[1,3]{0,1} sort(p), dimensions={0}, to_apply=c }
    """
    context = PassContext(PASS)
    assert not create_pass(PASS).run(parse_module(text), context)
    assert [r.reason for r in context.remarks] == ["its layout is not that of its operands"]


@given(
    keys=st.lists(st.sampled_from("abxy"), min_size=2, max_size=2, unique=True),
    read=st.lists(st.integers(0, 2), min_size=1, max_size=3),
    size=st.sampled_from((1, 4)),
    is_scheduled=st.booleans(),
)
@settings(max_examples=40, deadline=None)
def test_any_sort_still_computes_the_same(
    keys: list[str], read: list[int], size: int, is_scheduled: bool
) -> None:
    readers = [f"g{n} = s32[{size}] get-tuple-element(s), index={i}" for n, i in enumerate(read)]
    shape, names = f"s32[{size}]", ", ".join(f"g{n}" for n in range(len(read)))
    text = f"""HloModule m{", is_scheduled=true" * is_scheduled}
    c {{ a = s32[] parameter(0) b = s32[] parameter(1) x = s32[] parameter(2)
      y = s32[] parameter(3) v = s32[] parameter(4) w = s32[] parameter(5)
      ROOT r = pred[] compare({", ".join(keys)}), direction=LT }}
    ENTRY e {{ p = {shape} parameter(0) q = {shape} parameter(1) o = {shape} parameter(2)
      s = ({shape}, {shape}, {shape}) sort(p, q, o), dimensions={{0}}, is_stable=true, to_apply=c
      {" ".join(readers)}
      ROOT t = ({", ".join([shape] * len(read))}) tuple({names}) }}
    """
    reference = Reference(parse_module(text), RunSettings(seeds=2))
    module = parse_module(text)
    create_pass(PASS).run(module, PassContext())
    assert reference.compare(module) is None


@pytest.mark.parametrize(
    ("attribute", "reason"),
    [
        ("sharding={maximal device=0}", "its sharding differs from that of %p"),
        ("control-predecessors={n}", "a control predecessor of it may depend on %p"),
    ],
)
def test_sorts_of_one_element_that_its_operand_cannot_replace(attribute: str, reason: str) -> None:
    body = (
        f"n = f32[N] negate(p) ROOT s = f32[N] sort(p), dimensions={{0}}, to_apply=d, {attribute}"
    )
    comparator = "d { a = f32[] parameter(0) b = f32[] parameter(1) "
    comparator += "ROOT r = pred[] compare(a, b), direction=LT }\nENTRY"
    text = (
        sorts(body, 1)
        .replace("ENTRY", comparator)
        .replace("p = f32[1] parameter(0)", "p = f32[1] parameter(0), sharding={replicated}")
    )
    assert reasons_to_stay(PASS, text.replace(COMPARATOR, "")) == [reason]
