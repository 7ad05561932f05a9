"""Corners of the all-reduce simplifier."""

from __future__ import annotations

import pytest

from hloopt.ir import Opcode
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module


@pytest.mark.parametrize("element", ["f32", "bf16", "s32", "c64"])
def test_a_sum_of_a_broadcast_constant_is_a_product_whatever_its_type(element: str) -> None:
    literal = "(1, 0)" if element == "c64" else "1"
    module = parse_module(f"""HloModule m, replica_count=4
sum {{
  a = {element}[] parameter(0)
  b = {element}[] parameter(1)
  ROOT s = {element}[] add(a, b)
}}
ENTRY e {{
  one = {element}[] constant({literal})
  all = {element}[8] broadcast(one), dimensions={{}}
  ROOT r = {element}[8] all-reduce(all), replica_groups={{}}, to_apply=sum
}}
""")
    changed = create_pass("all-reduce-simplifier").run(module, PassContext())
    assert changed == (next(module.instructions(Opcode.ALL_REDUCE), None) is None)
    assert changed or element == "c64"
