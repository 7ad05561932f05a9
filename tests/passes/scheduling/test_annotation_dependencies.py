"""The check that no member of a scheduling group is an operand of another."""

from __future__ import annotations

import pytest

from hloopt.diagnostics import PassRefused
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module, print_module

CHECK = "check-no-data-dependency-in-scheduling-annotations"


def annotated(group: str) -> str:
    return f', frontend_attributes={{_scheduling_group_id="{group}"}}'


def check(first: str, second: str, body: str = "add(p, a)") -> None:
    """Run the check on two instructions, `a` and `b`, with these groups."""
    on_first, on_second = (annotated(group) if group else "" for group in (first, second))
    module = parse_module(
        f"""HloModule m
fused {{ x = f32[8] parameter(0)
  y = f32[8] negate(x){annotated("1")}
  ROOT z = f32[8] sine(y){annotated("1")} }}
ENTRY e {{
  p = f32[8] parameter(0)
  a = f32[8] negate(p){on_first}
  n = f32[8] sine(a)
  b = f32[8] {body}{on_second}
  ROOT f = f32[8] fusion(b), kind=kLoop, calls=fused
}}"""
    )
    before = print_module(module)
    assert not create_pass(CHECK).run(module, PassContext())
    assert print_module(module) == before


@pytest.mark.parametrize(("first", "second"), [("1", "1"), ("1:2", "1:3"), ("0", "0")])
def test_an_operand_of_the_same_group_is_refused(first: str, second: str) -> None:
    group = first[0]
    message = (
        "Found a direct data dependency between instructions with the same scheduling group id "
        f"{group}: '%b' and its operand '%a'"
    )
    with pytest.raises(PassRefused) as refused:
        check(first, second)
    assert refused.value.message == message
    assert refused.value.span is not None


@pytest.mark.parametrize(
    ("first", "second"),
    [("1", "2"), ("1", ""), ("", "1"), ("", ""), (":1", ":1"), ("noop", "noop")],
)
def test_operands_of_other_groups_or_none_are_not(first: str, second: str) -> None:
    check(first, second)


@pytest.mark.parametrize("body", ["negate(n)", "negate(p), control-predecessors={a}"])
def test_only_direct_operands_count(body: str) -> None:
    check("1", "1", body)
