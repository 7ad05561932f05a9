"""Shapes that are stated, and that more than one reading of an instruction allows."""

from __future__ import annotations

import pytest

from hloopt.text import parse_module
from hloopt.verifier import verify_module


def problems(body: str, callees: str = "") -> list[str]:
    """Problems that the verifier finds in an entry computation with these lines."""
    text = f"""{callees}
ENTRY e {{
  p = f32[8] parameter(0)
  r = s32[] parameter(1)
  data = f32[2,4,4,3] parameter(2)
  out = f32[2,4,4,5] parameter(3)
  filter = f32[5,3,3,3] parameter(4)
  {body}
}}
"""
    return [error.message for error in verify_module(parse_module(text))]


@pytest.mark.parametrize(
    "line",
    [
        "x = f32[8] collective-broadcast(p), replica_groups={}, has_dynamic_root=false",
        "x = f32[8] collective-broadcast(p, r), replica_groups={}, has_dynamic_root=true",
        "x = (f32[8], f32[8]) collective-broadcast(p, p), replica_groups={}",
        "x = (f32[8], s32[]) collective-broadcast(p, r, r), replica_groups={}, "
        "has_dynamic_root=true",
    ],
)
def test_the_root_of_a_broadcast_is_not_broadcast(line: str) -> None:
    assert problems(line) == []


@pytest.mark.parametrize(
    "line",
    [
        "x = f32[8] collective-broadcast(p, r), replica_groups={}",
        "x = (f32[8], s32[]) collective-broadcast(p, r), replica_groups={}, has_dynamic_root=true",
        "x = f32[8] collective-broadcast(p), replica_groups={}, has_dynamic_root=true",
    ],
)
def test_a_broadcast_gives_what_it_takes(line: str) -> None:
    (message,) = problems(line)
    assert message.startswith("%x: ")


WGRAD = "window={size=4x4 pad=1_1x1_1}, convolution_kind=wgrad"
DGRAD = "window={size=3x3 pad=1_1x1_1}, convolution_kind=dgrad"


@pytest.mark.parametrize(
    "line",
    [
        f"x = f32[3,3,3,5] convolution(data, out), dim_labels=f01b_i01o->b01f, {WGRAD}",
        f"x = f32[5,3,3,3] convolution(data, out), dim_labels=f01b_i01o->f01b, {WGRAD}",
        f"x = f32[5,3,3,3] convolution(data, out), dim_labels=b01f_o01i->b01f, {WGRAD}",
        f"x = f32[3,3,3,5] convolution(data, out), dim_labels=b01f_i01o->b01f, {WGRAD}",
        f"x = f32[2,4,4,3] convolution(out, filter), dim_labels=b01f_i01o->b01f, {DGRAD}",
        f"x = f32[2,4,4,3] convolution(out, filter), dim_labels=b01f_o01i->b01f, {DGRAD}",
    ],
)
def test_a_gradient_has_its_own_labels_or_those_of_its_forward_convolution(line: str) -> None:
    assert problems(line) == []
    (message,) = problems(line.replace("f32[2,4,4,3] conv", "f32[2,4,4,5] conv").replace(
        "3,5] conv", "3,4] conv").replace("f32[5,3,3,3] conv", "f32[5,3,2,3] conv"))  # fmt: skip
    assert message.startswith("%x: ")


def test_only_gradients_have_the_labels_of_another_convolution() -> None:
    line = f"x = f32[3,3,3,5] convolution(data, out), dim_labels=b01f_i01o->b01f, {WGRAD}"
    for kind in (", convolution_kind=fprop", ""):
        (message,) = problems(line.replace(", convolution_kind=wgrad", kind))
        assert "LHS feature dimension" in message


CALLEES = """
one { x = f32[8] parameter(0)  n = f32[8] negate(x)  ROOT t = (f32[8]) tuple(n) }
two {
  x = f32[8] parameter(0)
  n = f32[8] negate(x)
  s = f32[8] sine(x)
  ROOT t = (f32[8], f32[8]) tuple(n, s)
}
long {
  x = f32[8] parameter(0)
  n = f32[8] negate(x)
  s = f32[8] sine(n)
  ROOT t = (f32[8]) tuple(s)
}
bare { x = f32[8] parameter(0)  n = f32[8] negate(x)  ROOT s = f32[8] sine(n) }
"""


@pytest.mark.parametrize(("callee", "result"), [("one", "(f32[8])"), ("two", "(f32[8], f32[8])")])
def test_an_asynchronous_computation_may_give_a_tuple_of_results(callee: str, result: str) -> None:
    start = f"a = ((f32[8]), {result}, u32[]) async-start(p), calls={callee}"
    line = start + f"\n  d = {result} async-done(a)"
    assert problems(line, CALLEES) == []
    bound = f"((f32[8]), {result}, u32[])"
    line = (
        f"a = ((f32[8]), (), u32[]) async-start(p), calls={callee}\n"
        f"  u = {bound} async-update(a)\n  v = {bound} async-update(u)\n"
        f"  d = {result} async-done(v)"
    )
    assert problems(line, CALLEES) == []


@pytest.mark.parametrize(("callee", "result"), [("long", "(f32[8])"), ("bare", "f32[8]")])
def test_an_asynchronous_computation_is_no_chain_of_operations(callee: str, result: str) -> None:
    line = f"a = ((f32[8]), {result}) async-start(p), calls={callee}\n  d = {result} async-done(a)"
    (message,) = problems(line, CALLEES)
    assert "expected to contain only the root and parameter" in message
