"""Sends and recvs: what host transfers on one channel share, and which schedules wait for ever."""

from __future__ import annotations

import pytest

from hloopt.text import parse_module
from hloopt.verifier import VerifierOptions, verify_module


def problems(body: str, options: VerifierOptions | None = None) -> list[str]:
    """What the verifier says about an entry computation with these lines."""
    text = f"""ENTRY e {{
  p = f32[8] parameter(0)
  k = token[] parameter(1)
  q = f32[4,2]{{1,0}} parameter(2)
  r = f32[4,2]{{0,1}} parameter(3)
  {body}
}}
"""
    return [error.message for error in verify_module(parse_module(text), options)]


HOST = "channel_id=1, is_host_transfer=true"


def to_host(name: str, start: str = "", done: str = "", operand: str = "p, f32[8]") -> str:
    value, shape = operand.split(", ")
    return (
        f"{name} = ({shape}, u32[], token[]) send({value}, k), {HOST}{start}\n"
        f"{name}.done = token[] send-done({name}), {HOST}{done}\n"
    )


def from_host(name: str, start: str = "", done: str = "") -> str:
    return (
        f"{name} = (f32[8], u32[], token[]) recv(k), {HOST}{start}\n"
        f"{name}.done = (f32[8], token[]) recv-done({name}), {HOST}{done}\n"
    )


NAMED = ', frontend_attributes={_xla_host_transfer_rendezvous="one"}'
OTHER = ', frontend_attributes={_xla_host_transfer_rendezvous="two"}'


@pytest.mark.parametrize(
    "body",
    [
        to_host("a", NAMED) + to_host("b", OTHER),
        to_host("a", NAMED) + to_host("b"),
        to_host("a") + to_host("b", ', backend_config="x"'),
        to_host("a") + to_host("b") + to_host("c", NAMED),
        from_host("a", NAMED) + from_host("b", OTHER),
        to_host("a") + from_host("b"),
        to_host("a") + to_host("b", operand="q, f32[4,2]"),
        to_host("a", operand="q, f32[4,2]{1,0}") + to_host("b", operand="r, f32[4,2]{0,1}"),
    ],
)
def test_host_transfers_on_one_channel_are_alike(body: str) -> None:
    (message,) = problems(body)
    assert "Host-transfer send/recv instructions that use the same channel" in message
    apart = body.replace("b = ", "b = ", 1).split("\nb = ")
    if len(apart) == 2 and "c = " not in body:
        other = "b = " + apart[1]
        assert problems(apart[0] + "\n" + other.replace("channel_id=1", "channel_id=2")) == []


@pytest.mark.parametrize(
    "body",
    [
        to_host("a", NAMED) + to_host("b", NAMED),
        to_host("a", "", NAMED) + to_host("b", "", OTHER),
        to_host("a", ", sharding={maximal device=0}") + to_host("b"),
        to_host("a", ', metadata={op_name="x"}') + to_host("b"),
        "w = f32[8] negate(p)\n" + to_host("a") + to_host("b", operand="w, f32[8]"),
        from_host("a", NAMED, OTHER) + from_host("b", NAMED),
        to_host("a", NAMED).replace("is_host_transfer=true", "is_host_transfer=false")
        + to_host("b", OTHER),
    ],
)
def test_where_they_come_from_and_their_operands_may_differ(body: str) -> None:
    assert problems(body) == []
