"""Propagation into, out of and around while loops."""

from __future__ import annotations

import pytest
from tests.passes.precision.rounded import run_rounded, types

from hloopt.ir import Opcode
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module, print_module

NAME = "bfloat16-propagation"
DOT = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
STATE = "(s32[], f32[4,4], f32[4,4])"


def loop(
    body: str = "x2 = f32[4,4] dot(x, x), " + DOT + "\n y2 = f32[4,4] negate(y)",
    condition: str = "",
    init: str = "tuple(zero, s, t)",
    after: str = "",
) -> str:
    """A loop over a counter and matrices `x` and `y`, of which a product reads `x` behind it."""
    return f"""HloModule m
    body {{
      p = {STATE} parameter(0)
      i = s32[] get-tuple-element(p), index=0
      one = s32[] constant(1)
      next = s32[] add(i, one)
      x = f32[4,4] get-tuple-element(p), index=1
      y = f32[4,4] get-tuple-element(p), index=2
      {body}
      ROOT r = {STATE} tuple(next, x2, y2)
    }}
    condition {{
      q = {STATE} parameter(0)
      j = s32[] get-tuple-element(q), index=0
      n = s32[] constant(2)
      {condition}
      ROOT less = pred[] compare(j, n), direction=LT
    }}
    ENTRY e {{
      a = f32[4,4] parameter(0)
      b = f32[4,4] parameter(1)
      zero = s32[] constant(0)
      s = f32[4,4] add(a, b)
      t = f32[4,4] multiply(a, b)
      init = {STATE} {init}
      w = {STATE} while(init), condition=condition, body=body
      c = f32[4,4] get-tuple-element(w), index=1
      g = f32[4,4] get-tuple-element(w), index=2
      d = f32[4,4] dot(c, c), {DOT}
      {after}
      ROOT out = (f32[4,4], f32[4,4]) tuple(d, g)
    }}"""


def test_an_element_goes_round_in_bf16() -> None:
    module = run_rounded(NAME, loop())
    assert types(module, "s", "x", "x2", "c") == ["bf16"] * 4
    assert types(module, "t", "y", "y2", "g") == ["f32"] * 4
    assert types(module, "p", "q", "w") == ["(s32, bf16, f32)"] * 3


def test_the_body_may_need_all_of_it() -> None:
    body = "x2 = f32[4,4] negate(x)\n y2 = f32[4,4] negate(y)"
    module = run_rounded(NAME, loop(body), changes=False)
    assert types(module, "s", "x", "x2", "c") == ["f32"] * 4


def test_the_condition_may_need_all_of_it() -> None:
    condition = """k = f32[4,4] get-tuple-element(q), index=1
      h = f32[4,4] negate(k)
      m = f32[4,4] dot(h, h), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      f = f32[1,1] slice(m), slice={[0:1], [0:1]}
      z = f32[] reshape(f)
      big = f32[] constant(1e30)
      small = pred[] compare(z, big), direction=LT"""
    text = loop(condition=condition).replace(
        "ROOT less = pred[] compare(j, n), direction=LT",
        "less = pred[] compare(j, n), direction=LT\n ROOT go = pred[] and(less, small)",
    )
    module = run_rounded(NAME, text)
    assert types(module, "s", "x", "x2", "c", "k") == ["f32"] * 5
    assert types(module, "h") == ["bf16"]  # read by a product alone


NEEDED = """k = f32[4,4] get-tuple-element(q), index=1
      h = f32[4,4] sine(k)
      f = f32[1,1] slice(h), slice={[0:1], [0:1]}
      z = f32[] reshape(f)
      big = f32[] constant(1e30)
      small = pred[] compare(z, big), direction=LT
      both = pred[] compare(j, n), direction=LT
      ROOT go = pred[] and(both, small)"""
"""A condition that needs element 1 in full, which is found out when the body is decided."""


def needed(body: str, before: str = "") -> str:
    text = loop(body, NEEDED).replace("ROOT less = pred[] compare(j, n), direction=LT", "")
    return text.replace("HloModule m", f"HloModule m\n {before}")


def test_what_is_written_over_a_value_that_is_needed_after_all() -> None:
    body = f"""x2 = f32[4,4] negate(x)
      zero = s32[] constant(0)
      u = f32[4,4] dynamic-update-slice(x2, y, zero, zero)
      y2 = f32[4,4] dot(u, u), {DOT}"""
    run_rounded(NAME, needed(body), changes=False)
    moved = body.replace("dynamic-update-slice(x2, y, zero, zero)", "maximum(x2, y)")
    assert types(run_rounded(NAME, needed(moved)), "u", "x2") == ["bf16", "f32"]


def test_fusions_of_a_value_that_is_needed_after_all() -> None:
    inner = f"inner {{ v = f32[4,4] parameter(0)\n ROOT m = f32[4,4] dot(v, v), {DOT} }}"
    body = """x2 = f32[4,4] negate(x)
      y2 = f32[4,4] fusion(x2), kind=kLoop, calls=inner"""
    run_rounded(NAME, needed(body, inner), changes=False)
    outer = "outer { v = f32[4,4] parameter(0)\n ROOT m = f32[4,4] negate(v) }"
    body = f"""x2 = f32[4,4] fusion(y), kind=kLoop, calls=outer
      y2 = f32[4,4] dot(x2, x2), {DOT}"""
    run_rounded(NAME, needed(body, outer), changes=False)


def test_readers_of_a_value_that_is_needed_after_all() -> None:
    body = f"""m = f32[4,4] negate(y)
      x2 = f32[4,4] maximum(m, y)
      y2 = f32[4,4] dot(x2, x2), {DOT}"""
    run_rounded(NAME, needed(body), changes=False)


def test_what_goes_in_is_separate_from_what_else_reads_it() -> None:
    after = "z = f32[4,4] negate(s)\n"
    text = loop(after=after).replace("tuple(d, g)", "tuple(d, z)")
    module = run_rounded(NAME, text)
    assert types(module, "s", "x", "w") == ["f32", "bf16", "(s32, bf16, f32)"]
    converts = [i for i in module.entry.instructions if i.opcode is Opcode.CONVERT]
    assert [i.operands[0].name for i in converts] == ["s"]


def test_elements_that_change_places_have_one_type() -> None:
    text = loop(f"y2 = f32[4,4] dot(x, x), {DOT}").replace("(next, x2, y2)", "(next, y, y2)")
    module = run_rounded(NAME, text, changes=False)
    assert types(module, "w") == ["(s32, f32, f32)"]
    module = run_rounded(NAME, text.replace("tuple(d, g)", "tuple(d, d)"))
    assert types(module, "w") == ["(s32, bf16, bf16)"]


def test_elements_that_are_copied_to_another_place_have_types_of_their_own() -> None:
    body = f"y2 = f32[4,4] dot(x, x), {DOT}\n x2 = f32[4,4] copy(y)"
    module = run_rounded(NAME, loop(body))
    assert types(module, "w", "x2", "y") == ["(s32, bf16, f32)", "bf16", "f32"]


def test_an_element_that_only_passes_through() -> None:
    module = run_rounded(NAME, loop("x2 = f32[4,4] copy(x)\n y2 = f32[4,4] negate(y)"))
    assert types(module, "w", "s") == ["(s32, bf16, f32)", "bf16"]
    text = loop("y2 = f32[4,4] negate(y)").replace("tuple(next, x2, y2)", "tuple(next, x, y2)")
    assert types(run_rounded(NAME, text), "w", "s") == ["(s32, bf16, f32)", "bf16"]


def test_loops_in_a_row() -> None:
    after = f"""start = {STATE} tuple(zero, g, c)
      w2 = {STATE} while(start), condition=condition.2, body=body.2
      g2 = f32[4,4] get-tuple-element(w2), index=1
      d2 = f32[4,4] dot(g2, c), {DOT}"""
    text = loop(after=after).replace("tuple(d, g)", "tuple(d, d2)")
    inner = text[text.index("body {") : text.index("ENTRY")]
    text = text.replace("ENTRY", inner.replace("body {", "body.2 {").replace(
        "condition {", "condition.2 {") + "ENTRY")  # fmt: skip
    module = run_rounded(NAME, text)
    # The second one negates what the product made in the first one.
    assert types(module, "w", "w2") == ["(s32, f32, f32)", "(s32, bf16, f32)"]


def test_loops_in_loops() -> None:
    inner = """HloModule m
    inner_body {
      ip = (s32[], f32[4,4]) parameter(0)
      ii = s32[] get-tuple-element(ip), index=0
      ix = f32[4,4] get-tuple-element(ip), index=1
      ione = s32[] constant(1)
      inext = s32[] add(ii, ione)
      ix2 = f32[4,4] dot(ix, ix), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      ROOT ir = (s32[], f32[4,4]) tuple(inext, ix2)
    }
    inner_condition {
      iq = (s32[], f32[4,4]) parameter(0)
      ij = s32[] get-tuple-element(iq), index=0
      in = s32[] constant(2)
      ROOT iless = pred[] compare(ij, in), direction=LT
    }"""
    body = """izero = s32[] constant(0)
      iinit = (s32[], f32[4,4]) tuple(izero, x)
      iw = (s32[], f32[4,4]) while(iinit), condition=inner_condition, body=inner_body
      x2 = f32[4,4] get-tuple-element(iw), index=1
      y2 = f32[4,4] negate(y)"""
    module = run_rounded(NAME, loop(body).replace("HloModule m", inner))
    assert types(module, "w", "iw", "s") == ["(s32, bf16, f32)", "(s32, bf16)", "bf16"]
    needing = body.replace("x2 = f32[4,4] get", "h = f32[4,4] get") + "\n x2 = f32[4,4] negate(h)"
    run_rounded(NAME, loop(needing).replace("HloModule m", inner), changes=False)


def test_loops_that_share_their_computations_are_decided_from_inside() -> None:
    after = f"w2 = {STATE} while(init), condition=condition, body=body\n" + (
        f"c2 = f32[4,4] get-tuple-element(w2), index=1\n d2 = f32[4,4] dot(c2, d), {DOT}"
    )
    body = "h = f32[4,4] negate(x)\n x2 = f32[4,4] dot(h, h), " + DOT + "\n y2 = f32[4,4] negate(y)"
    module = run_rounded(NAME, loop(body, after=after).replace("tuple(d, g)", "tuple(d2, g)"))
    assert types(module, "w", "w2", "x", "x2", "s") == ["(s32, f32, f32)"] * 2 + ["f32"] * 3
    assert types(module, "h") == ["bf16"]


def test_a_loop_that_is_the_result() -> None:
    text = loop()
    text = text[: text.index("c = f32[4,4]")].replace("w = (", "ROOT w = (") + "}"
    module = run_rounded(NAME, text, changes=False)
    assert types(module, "w", "p", "s") == ["(s32, f32, f32)"] * 2 + ["f32"]


def test_a_state_that_is_an_array() -> None:
    text = """HloModule m
    body { p = f32[4,4] parameter(0)
      ROOT r = f32[4,4] dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={0} }
    condition { q = f32[4,4] parameter(0)
      f = f32[1,1] slice(q), slice={[0:1], [0:1]}
      h = bf16[1,1] convert(f)
      z = bf16[] reshape(h)
      n = bf16[] constant(0.5)
      ROOT less = pred[] compare(z, n), direction=LT }
    ENTRY e { a = f32[4,4] parameter(0)
      half = f32[] constant(0.51)
      k = f32[4,4] broadcast(half), dimensions={}
      s = f32[4,4] maximum(a, k)
      w = f32[4,4] while(s), condition=condition, body=body
      ROOT d = f32[4,4] dot(w, w), lhs_contracting_dims={1}, rhs_contracting_dims={0} }"""
    module = run_rounded(NAME, text)
    assert types(module, "w", "p", "q", "r", "s", "k") == ["bf16"] * 6


@pytest.mark.parametrize("is_scheduled", [False, True])
def test_a_module_without_changes_is_what_it_was(is_scheduled: bool) -> None:
    text = loop("x2 = f32[4,4] negate(x)\n y2 = f32[4,4] negate(y)")
    if is_scheduled:
        text = text.replace("HloModule m", "HloModule m, is_scheduled=true")
    module = parse_module(text)
    users = [(i.name, [u.name for u in i.users]) for i in module.instructions()]
    versions = [module.version, *[c.version for c in module.computations.values()]]
    assert not create_pass(NAME, {}).run(module, PassContext(NAME))
    assert users == [(i.name, [u.name for u in i.users]) for i in module.instructions()]
    assert versions == [module.version, *[c.version for c in module.computations.values()]]
    assert print_module(module) == text


def test_a_scheduled_module_stays_in_order() -> None:
    text = loop(after="z = f32[4,4] negate(s)\n").replace("tuple(d, g)", "tuple(d, z)")
    module = run_rounded(NAME, text.replace("HloModule m", "HloModule m, is_scheduled=true"))
    assert types(module, "s", "x") == ["f32", "bf16"]


def test_a_recv_in_flight_in_the_state_stays_whole() -> None:
    state = "((f32[4,4], u32[], token[]), f32[4,4], s32[])"
    module = parse_module(f"""HloModule m
    body {{
      p = {state} parameter(0)
      r = (f32[4,4], u32[], token[]) get-tuple-element(p), index=0
      x = f32[4,4] get-tuple-element(p), index=1
      i = s32[] get-tuple-element(p), index=2
      one = s32[] constant(1)
      next = s32[] add(i, one)
      d = f32[4,4] dot(x, x), {DOT}
      done = (f32[4,4], token[]) recv-done(r), channel_id=1
      t = token[] after-all()
      r2 = (f32[4,4], u32[], token[]) recv(t), channel_id=1, control-predecessors={{done}}
      ROOT s = {state} tuple(r2, d, next)
    }}
    condition {{
      q = {state} parameter(0)
      j = s32[] get-tuple-element(q), index=2
      n = s32[] constant(2)
      ROOT less = pred[] compare(j, n), direction=LT
    }}
    ENTRY e {{
      a = f32[4,4] parameter(0)
      t0 = token[] after-all()
      r0 = (f32[4,4], u32[], token[]) recv(t0), channel_id=1
      zero = s32[] constant(0)
      init = {state} tuple(r0, a, zero)
      w = {state} while(init), condition=condition, body=body
      g = (f32[4,4], u32[], token[]) get-tuple-element(w), index=0
      ROOT done0 = (f32[4,4], token[]) recv-done(g), channel_id=1
    }}""")
    dots = {"opcodes": ["dot"]}
    lower = {"operand": True, "output": True, "mixed": True, "operand_effectively_low": dots}
    assert create_pass(NAME, {"float_support": lower}).run(module, PassContext())
    assert [user.opcode for user in module["r0"].users] == [Opcode.TUPLE]
    assert module["d"].shape.type_name == "bf16"
