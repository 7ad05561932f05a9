"""Reasons for which copies stay or are added, as the remarks of the passes give them."""

from __future__ import annotations

from typing import Any

import pytest

from hloopt.diagnostics import PassRefused
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module

STATE = "(s32[], f32[4], f32[4])"


def loop(results: str) -> str:
    """A loop that hands on `results`; `n` is computed from its second element."""
    return f"""
    body {{
      p = {STATE} parameter(0)
      i = s32[] get-tuple-element(p), index=0
      a = f32[4] get-tuple-element(p), index=1
      b = f32[4] get-tuple-element(p), index=2
      one = s32[] constant(1)
      next = s32[] add(i, one)
      n = f32[4] negate(a)
      ROOT t = {STATE} tuple(next, {results})
    }}
    condition {{
      q = {STATE} parameter(0)
      j = s32[] get-tuple-element(q), index=0
      ten = s32[] constant(10)
      ROOT less = pred[] compare(j, ten), direction=LT
    }}
    ENTRY e {{
      zero = s32[] constant(0)
      start = s32[] negate(zero)
      x = f32[4] parameter(0)
      u = f32[4] negate(x)
      v = f32[4] abs(x)
      s = {STATE} tuple(start, u, v)
      ROOT w = {STATE} while(s), condition=condition, body=body
    }}"""


def remarks(name: str, text: str, **options: Any) -> set[str]:
    context = PassContext(name)
    create_pass(name, options).run(parse_module(text), context)
    return {f"{r.kind} %{r.instruction}: {r.reason}" for r in context.remarks}


def test_copies_that_cannot_go() -> None:
    reason = "it stays: what %p gives may be needed after %copy.5 is computed"
    assert f"missed %copy.7: {reason}" in remarks("copy-insertion", loop("b, a"))
    [remark] = remarks("copy-insertion", loop("n, a"))
    assert remark.endswith(
        "it stays: both what it reads and what it writes lie between other values"
    )


def test_a_copy_that_must_not_go() -> None:
    text = "ENTRY e { x = f32[4] parameter(0) n = f32[4] negate(x) ROOT c = f32[4] copy(n) }"
    keep = {"should_skip_removal": lambda copy: True}
    assert remarks("remove-unnecessary-copies", text, **keep) == {
        "missed %c: it stays: should_skip_removal says so"
    }


@pytest.mark.parametrize(
    ("body", "remark"),
    [
        (
            "ROOT x = f32[4] parameter(0)",
            "%x: copied: it lies where nothing may be written, and shares that place or is a "
            "result",
        ),
        (
            "x = f32[4] parameter(0) n = f32[4] negate(x) ROOT t = tuple(n, n)",
            "%t: copied: another part of the result lies in the same place",
        ),
        (
            "x = f32[4] parameter(0) n = f32[4] negate(x) ROOT c = f32[4] custom-call(n, n), "
            'custom_call_target="f", output_to_operand_aliasing={{}: (0, {})}',
            "%n: copied: %c writes its result over it, but may read it later",
        ),
    ],
)
def test_copies_that_no_assignment_can_do_without(body: str, remark: str) -> None:
    found = remarks("add-special-case-copies", f"ENTRY e {{ {body} }}")
    assert found == {f"applied {remark}"}


def test_a_transfer_under_way_that_something_else_reads() -> None:
    text = """ENTRY e {
      p = f32[4] parameter(0)
      k = token[] after-all()
      s = (f32[4], u32[], token[]) send(p, k), channel_id=1
      d = token[] send-done(s), channel_id=1
      ROOT g = u32[] get-tuple-element(s), index=1
    }"""
    with pytest.raises(PassRefused) as refused:
        create_pass("copy-insertion").run(parse_module(text), PassContext())
    assert refused.value.message == "Non-copyable op must have a single user."
    assert refused.value.help is not None
    assert refused.value.help.startswith("%s has 2: only its done may use it, or one tuple")


def test_a_call_graph_that_is_not_flat() -> None:
    text = """f { x = f32[] parameter(0)  ROOT n = f32[] negate(x) }
    ENTRY e {
      x = f32[] parameter(0)
      a = f32[] call(x), to_apply=f
      ROOT b = f32[] call(a), to_apply=f
    }"""
    with pytest.raises(PassRefused) as refused:
        create_pass("copy-insertion").run(parse_module(text), PassContext())
    assert refused.value.message == "Call graph must be flattened before copy insertion."
