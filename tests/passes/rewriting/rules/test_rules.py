"""Patterns, and passes that are lists of rules."""

from __future__ import annotations

import pytest

from hloopt.ir import Instruction, Opcode
from hloopt.pass_framework.base import PassContext, register
from hloopt.passes.rewriting.rules import (
    Match,
    Missed,
    Pattern,
    Result,
    RulePass,
    either,
    op,
    rule,
    scalar_constant,
    splat,
    value,
)
from hloopt.passes.rewriting.rules.build import Builder, MustStay
from hloopt.passes.rewriting.rules.engine import RuleEngine, Settings
from hloopt.passes.rewriting.rules.rule import RuleTable
from hloopt.text import parse_module

TEXT = """HloModule m
ENTRY e {
  a = f32[4] parameter(0)
  b = f32[4] parameter(1)
  two = f32[] constant(2)
  spread = f32[4] broadcast(two), dimensions={}
  sum = f32[4] add(b, a)
  rest = f32[4] subtract(sum, a)
  scaled = f32[4] multiply(spread, a)
  ROOT r = (f32[4], f32[4]) tuple(rest, scaled)
}"""


@pytest.mark.parametrize(
    ("name", "pattern", "found"),
    [
        ("sum", op("add", "x", "y"), {"x": "b", "y": "a"}),
        ("sum", op("add", "x", "x"), None),
        ("sum", op("add", "x", "y", any_order=True), {"x": "b", "y": "a"}),
        ("rest", op("subtract", op("add", "x", "y", any_order=True), "x"), {"x": "a", "y": "b"}),
        ("rest", op("subtract", op("add", "x", "y"), "x"), None),
        ("scaled", op("multiply", "x", splat(2), any_order=True), {"x": "a"}),
        ("scaled", op("multiply", "x", splat(3), any_order=True), None),
        ("scaled", op(("multiply", "add"), splat().named("c"), "x"), {"c": "spread", "x": "a"}),
        ("spread", op("broadcast", scalar_constant(2)), {}),
        ("spread", op("broadcast", scalar_constant(3)), None),
        ("sum", op("add").one_use(), {}),
        (
            "scaled",
            either(op("add", "x", "y"), op("multiply", "y", "x")),
            {"x": "a", "y": "spread"},
        ),
        ("sum", either(op("multiply", "x", "y"), op("subtract", "x", "y")), None),
        ("a", value("x").one_use(), None),
        ("a", value("x").of_type("float"), {"x": "a"}),
        ("a", value("x").of_type("s32"), None),
        ("a", value("x").where(lambda each: each.shape.rank == 2), None),
        ("a", value("x").where_shape(lambda shape: shape.rank == 2), None),
        ("spread", op("broadcast", "x").where_shape(lambda shape: shape.rank == 1), {"x": "two"}),
        ("spread", op("broadcast", value("x").scalar()), {"x": "two"}),
        ("sum", op("add", value("x").scalar(), "y"), None),
        ("spread", op("broadcast", "x").where_known(lambda each: each.shape.rank == 2), None),
    ],
)
def test_a_pattern_names_what_it_finds(
    name: str, pattern: Pattern, found: dict[str, str] | None
) -> None:
    match = pattern.match(parse_module(TEXT)[name])
    names = None if match is None else {key: each.name for key, each in match.items()}
    assert names == found


@rule(op("multiply", "x", splat(2), any_order=True))
def double(m: Match) -> Instruction:
    """2·x → x + x."""
    return m.build.add(m.x, m.x)


@rule(op("subtract", "x", "y"))
def stays(m: Match) -> Result:
    """Never applied."""
    assert not hasattr(m, "z")
    return Missed("it is a difference")


@register("own-rules", preserves="rounding")
class OwnRules(RulePass):
    """Rules of a test."""

    rules = (double, stays)


def test_a_pass_of_rules_applies_and_reports_them() -> None:
    module, context = parse_module(TEXT), PassContext("own-rules")
    assert OwnRules().run(module, context)
    assert str(module.entry.root.operands[1]).endswith("add(%a, %a)")
    assert "scaled" not in [i.name for i in module.entry.instructions]
    assert context.statistics == {"double": 1}
    assert [(r.kind, r.instruction, r.reason) for r in context.remarks] == [
        ("missed", "rest", "stays: it is a difference"),
        ("applied", "scaled", "double: replaced by %add"),
    ]
    assert not OwnRules().run(module, PassContext())


def test_a_name_that_a_pattern_does_not_have() -> None:
    match = Match(parse_module(TEXT)["sum"], {}, None, None, False)  # type: ignore[arg-type]  # not built
    with pytest.raises(AttributeError, match="the pattern has no name 'z'"):
        _ = match.z


@rule(op("negate", "x"))
def again(m: Match) -> Instruction:
    """-x → -x, for ever."""
    return m.build.unary("negate", m.x)


def test_rules_that_undo_each_other_end_with_a_note() -> None:
    text = "HloModule m\nENTRY e { a = f32[] parameter(0) ROOT r = f32[] negate(a) }"
    module, context = parse_module(text), PassContext()
    settings = Settings(max_sweeps=3)
    assert RuleEngine(module, RuleTable([again]), context, settings).run(module.entry)
    assert context.notes == ["%e still changed after 3 sweeps"]
    assert context.statistics == {"again": 3}


def test_an_operand_is_looked_at_again_where_another_one_of_its_user_changes() -> None:
    @rule(op("abs", "x"))
    def bare(m: Match) -> Instruction:
        """|x| → x, which is not so."""
        return m.x

    def is_beside_a_parameter(root: Instruction) -> bool:
        (user,) = root.users
        return user.operands[1].opcode is Opcode.PARAMETER

    @rule(op("negate", "x").where(is_beside_a_parameter))
    def drop(m: Match) -> Instruction:
        """-x → x, which is not so."""
        return m.x

    text = """HloModule m
    ENTRY e {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      n = f32[] negate(a)
      p = f32[] abs(b)
      ROOT s = f32[] add(n, p)
    }"""
    module = parse_module(text)
    assert RuleEngine(module, RuleTable([bare, drop]), PassContext(), Settings()).run_all()
    assert [i.name for i in module.entry.instructions] == ["a", "b", "s"]


@pytest.mark.parametrize(
    ("operand", "stays"),
    [
        ('custom-call(a), custom_call_target="Sharding", sharding={replicated}', True),
        ("sine(a)", False),
    ],
)
def test_shardings_stay_where_nothing_reads_them_any_more(operand: str, stays: bool) -> None:
    @rule(op("multiply", "x", splat().named("c")))
    def forget(m: Match) -> Instruction:
        """x·c → c, which is not so."""
        return m.c

    text = f"""HloModule m
    ENTRY e {{
      a = f32[] parameter(0)
      k = f32[] constant(2)
      o = f32[] {operand}
      ROOT r = f32[] multiply(o, k)
    }}"""
    module = parse_module(text)
    assert RuleEngine(module, RuleTable([forget]), PassContext(), Settings()).run_all()
    assert ("o" in [i.name for i in module.entry.instructions]) == stays


def test_a_computation_of_scalars_is_made_once_and_only_where_something_may_be_made() -> None:
    module = parse_module(TEXT)
    build = Builder(module.entry)
    adder = build.scalar_computation("add", "f32")
    assert str(adder.root).endswith("add(%parameter, %parameter.1)")
    assert build.scalar_computation(Opcode.ADD, "f32") is adder
    assert build.scalar_computation("add", "f64") is not adder
    build.only_existing = True
    with pytest.raises(MustStay):
        build.scalar_computation("add", "f32")


def test_a_run_stops_at_the_limit_of_applications() -> None:
    module, context = parse_module(TEXT), PassContext()
    context.applications.limit = 0
    assert not OwnRules().run(module, context)
    assert str(module["scaled"]).endswith("multiply(spread, a)")
