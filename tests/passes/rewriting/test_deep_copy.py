"""Copies of the arrays in a value of any shape."""

from __future__ import annotations

import pytest

from hloopt.passes.rewriting.deep_copy import deep_copy
from hloopt.text import parse_module, print_module

STATE = "(f32[4], u32[], token[])"
HALF = f"(({STATE}, f32[4]), f32[4])"
TEXT = f"""HloModule m
ENTRY e {{
  x = f32[4] parameter(0)
  t = token[] after-all()
  r = {STATE} recv(t), channel_id=1
  s = {STATE} send(x, t), channel_id=2
  pair = ({STATE}, f32[4]) tuple(s, x)
  half = {HALF} tuple(pair, x)
  nested = ({HALF}, {STATE}) tuple(half, r)
  ROOT out = f32[4] negate(x)
}}"""


def test_transfers_in_flight_stay_whole() -> None:
    module = parse_module(TEXT)
    result, copies = deep_copy(module["nested"], range(13))
    half, received = result.operands
    pair, outer = half.operands
    sent, inner = pair.operands
    assert list(copies.values()) == [inner, outer]
    assert [copy.operands for copy in (inner, outer)] == [[module["x"]], [module["x"]]]
    assert (sent, received) == (module["s"], module["r"])


@pytest.mark.parametrize("name", ["r", "s"])
def test_a_transfer_itself_is_not_copied(name: str) -> None:
    module = parse_module(TEXT)
    before = print_module(module)
    transfer = module[name]
    assert deep_copy(transfer, range(4)) == (transfer, {})
    assert print_module(module) == before
