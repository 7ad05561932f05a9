"""Chains of asynchronous instructions: which start they belong to."""

from __future__ import annotations

import pytest

from hloopt.diagnostics import HloSyntaxError
from hloopt.ir.async_chains import find_async_start
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.proto.decode import decode
from hloopt.proto.encode import encode
from hloopt.text import parse_module

TYPE = "((f32[8]), f32[8], u32[])"


def chain(updates: int) -> Module:
    """Two starts; the updates and the done continue the first one."""
    lines = [
        f"  y{i + 1} = {TYPE} async-update({f'y{i}' if i else 'first'})\n" for i in range(updates)
    ]
    return parse_module(
        f"""HloModule m
w {{ x = f32[8] parameter(0)  ROOT n = f32[8] negate(x) }}
v {{ x = f32[8] parameter(0)  ROOT n = f32[8] negate(x) }}
ENTRY e {{
  p = f32[8] parameter(0)
  first = {TYPE} async-start(p), calls=w
  second = {TYPE} async-start(p), calls=v
{"".join(lines)}  ROOT d = f32[8] async-done(y{updates})
}}
"""
    )


def by_name(module: Module) -> dict[str, Instruction]:
    return {i.name: i for i in module.entry.instructions}


class _Counting(list[Instruction]):
    """Operands that count how often they are looked at."""

    looks = 0

    def __getitem__(self, key: object) -> Instruction:  # type: ignore[override]  # no slices here
        _Counting.looks += 1
        return super().__getitem__(key)  # type: ignore[call-overload,no-any-return]  # as above


def test_all_links_of_a_long_chain_take_linear_time() -> None:
    module = chain(500)
    entry = module.entry
    for instruction in entry.instructions:
        instruction.operands = _Counting(instruction.operands)
    entry.changed()
    _Counting.looks = 0
    found = {find_async_start(i) for i in entry.instructions if i.opcode != "parameter"}
    assert {start.name for start in found if start is not None} == {"first", "second"}
    assert _Counting.looks < 4 * len(entry)


def test_a_chain_that_changes_has_another_start() -> None:
    module = chain(3)
    named = by_name(module)
    assert find_async_start(named["d"]) is named["first"]
    named["y1"].replace_operand(0, named["second"])
    assert find_async_start(named["d"]) is named["second"]
    assert find_async_start(named["p"]) is None
    assert find_async_start(named["second"]) is named["second"]


def test_two_starts_of_one_computation_are_refused() -> None:
    """XLA takes them from a proto, but no text could say what it is."""
    text = f"""HloModule m
w {{ x = f32[8] parameter(0)  ROOT n = f32[8] negate(x) }}
v {{ x = f32[8] parameter(0)  ROOT n = f32[8] negate(x) }}
ENTRY e {{
  p = f32[8] parameter(0)
  a = {TYPE} async-start(p), calls=w
  b = {TYPE} async-start(p), calls=v
  c = f32[8] async-done(a)
  d = f32[8] async-done(b)
  ROOT r = f32[8] add(c, d)
}}
"""
    refused = "computation '%w' belongs to another async-start"
    with pytest.raises(HloSyntaxError, match=refused):
        parse_module(text.replace("calls=v", "calls=w"))
    module = parse_module(text)
    by_name(module)["b"].set_called((module.computations["w"],))
    with pytest.raises(HloSyntaxError, match=refused):
        decode(encode(module))
