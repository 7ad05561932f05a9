"""Conditional-code-motion on whole modules: one conditional after another."""

from __future__ import annotations

from tests.passes.control_flow.conditional_code_motion.programs import (
    PASS,
    V,
    assert_same,
    moved,
    program,
    two,
)

from hloopt.ir import Opcode
from hloopt.pass_framework.applications import Applications
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module, print_module
from hloopt.verifier import verify_module


def many(count: int) -> str:
    """A program with conditionals one after another, all of which change."""
    lines = [f"v.0 = {V} sine(x)"]
    for i in range(count):
        lines += [
            f"c.{i} = ({V}) conditional(q, v.{i}, v.{i}), true_computation=t, false_computation=f",
            f"h.{i} = {V} get-tuple-element(c.{i}), index=0",
            f"v.{i + 1} = {V} reverse(h.{i}), dimensions={{0}}",
        ]
    text = program(*two(f"s = {V} {{o}}({{p}}) r = {V} negate(s)"), "\n  ".join(lines))
    return text.replace("conditional(q, x, y)", f"conditional(q, v.{count}, y)")


def test_one_application_is_one_conditional() -> None:
    text = many(3)
    printed = []
    for limit in range(6):
        module, context = parse_module(text), PassContext(PASS)
        context.applications = Applications(limit=limit)
        assert create_pass(PASS).run(module, context) == (limit > 0)
        assert verify_module(module) == []
        assert_same(text, module)
        printed.append(print_module(module))
    assert len(set(printed)) == 5
    assert printed[4] == printed[5]


def test_conditionals_in_branches_come_first() -> None:
    inner = two(f"s = {V} {{o}}({{p}}) n = {V} negate(s) ROOT all = ({V}) tuple(n)")
    text = f"""HloModule m
    t {{ a = {V} parameter(0) {inner[0]} }}
    f {{ b = {V} parameter(0) {inner[1]} }}
    outer {{
      d = (pred[], {V}) parameter(0)
      k = pred[] get-tuple-element(d), index=0
      w = {V} get-tuple-element(d), index=1
      c = ({V}) conditional(k, w, w), true_computation=t, false_computation=f
      h = {V} get-tuple-element(c), index=0
      ROOT r = ({V}) tuple(h)
    }}
    other {{
      d = (pred[], {V}) parameter(0)
      w = {V} get-tuple-element(d), index=1
      e = {V} exponential(w)
      n = {V} negate(e)
      ROOT r = ({V}) tuple(n)
    }}
    ENTRY e {{
      x = {V} parameter(0)
      q = pred[] parameter(1)
      p = pred[] parameter(2)
      l = (pred[], {V}) tuple(p, x)
      c = ({V}) conditional(q, l, l), true_computation=outer, false_computation=other
      h = {V} get-tuple-element(c), index=0
      ROOT u = {V} reverse(h), dimensions={{0}}
    }}
    """
    module = moved(text)
    assert Opcode.NEGATE in {i.opcode for i in module.entry.instructions}


def test_a_schedule_stays_a_schedule() -> None:
    text = program(*two(f"s = {V} {{o}}({{p}}) r = {V} negate(s)"), header=", is_scheduled=true")
    module = moved(text)
    assert module.is_scheduled
    assert [i.opcode for i in module.entry.instructions][-1] is Opcode.REVERSE
