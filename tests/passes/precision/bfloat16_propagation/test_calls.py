"""Propagation through calls, branches and asynchronous computations."""

from __future__ import annotations

from tests.passes.precision.rounded import MATRIX_UNIT, line, run_rounded, types

from hloopt.ir import Opcode
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module

NAME = "bfloat16-propagation"
DOT = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"


def called(body: str, calls: str, out: str = "") -> str:
    """A program with a computation `f` of one matrix, and a sum `s` to call it on."""
    return f"""HloModule m
    f {{ p = f32[4,4] parameter(0)
      {body} }}
    ENTRY e {{ a = f32[4,4] parameter(0)
      b = f32[4,4] parameter(1)
      s = f32[4,4] add(a, b)
      {calls}
      ROOT out = f32[4,4] add({out or "d, d"}) }}"""


CALL = f"c = f32[4,4] call(s), to_apply=f\n d = f32[4,4] dot(c, c), {DOT}"


def test_a_call_hands_its_types_on() -> None:
    module = run_rounded(NAME, called("ROOT r = f32[4,4] maximum(p, p)", CALL))
    assert types(module, "c", "r", "p", "s") == ["bf16"] * 4
    module = run_rounded(NAME, called("ROOT r = f32[4,4] negate(p)", CALL))
    assert types(module, "c", "r", "p", "s") == ["bf16", "bf16", "f32", "f32"]


def test_a_call_that_gives_its_operand() -> None:
    module = run_rounded(NAME, called("ROOT r = f32[4,4] copy(p)", CALL))
    assert types(module, "c", "p", "s") == ["bf16"] * 3
    same = """HloModule m
    f { ROOT p = f32[4,4] parameter(0) }
    ENTRY e { a = f32[4,4] parameter(0)
      s = f32[4,4] negate(a)
      c = f32[4,4] call(s), to_apply=f
      ROOT d = f32[4,4] dot(c, s), lhs_contracting_dims={1}, rhs_contracting_dims={0} }"""
    assert types(run_rounded(NAME, same), "c", "p", "s") == ["bf16"] * 3


def test_a_call_that_gives_an_element() -> None:
    text = """HloModule m
    f { p = (f32[4,4], (f32[4,4], f32[4,4])) parameter(0)
      ROOT g = (f32[4,4], f32[4,4]) get-tuple-element(p), index=1 }
    ENTRY e { a = f32[4,4] parameter(0)
      s = f32[4,4] negate(a)
      t = f32[4,4] sine(a)
      inner = (f32[4,4], f32[4,4]) tuple(t, s)
      outer = (f32[4,4], (f32[4,4], f32[4,4])) tuple(a, inner)
      c = (f32[4,4], f32[4,4]) call(outer), to_apply=f
      c0 = f32[4,4] get-tuple-element(c), index=0
      c1 = f32[4,4] get-tuple-element(c), index=1
      d = f32[4,4] dot(c1, c1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      ROOT out = f32[4,4] add(d, c0) }"""
    module = run_rounded(NAME, text)
    assert types(module, "c", "g", "p") == ["(f32, bf16)"] * 2 + ["(f32, (f32, bf16))"]
    assert types(module, "s", "t") == ["bf16", "f32"]


def test_two_calls_of_a_computation_keep_its_types() -> None:
    calls = CALL + f"\n c2 = f32[4,4] call(d), to_apply=f\n d2 = f32[4,4] dot(c2, c2), {DOT}"
    body = f"h = f32[4,4] negate(p)\n ROOT r = f32[4,4] dot(h, h), {DOT}"
    module = run_rounded(NAME, called(body, calls, "d2, d2"))
    assert types(module, "c", "c2", "r", "p", "s", "d") == ["f32"] * 6
    assert types(module, "h") == ["bf16"]
    run_rounded(NAME, called("ROOT r = f32[4,4] copy(p)", calls, "d2, d2"), changes=False)
    run_rounded(NAME, called(f"ROOT r = f32[4,4] dot(p, p), {DOT}", calls, "d2, d2"), changes=False)


def test_what_a_call_gives_and_something_else_needs() -> None:
    module = run_rounded(
        NAME, called("ROOT r = f32[4,4] maximum(p, p)", CALL, "d, c"), changes=False
    )
    assert types(module, "c", "r", "p", "s") == ["f32"] * 4


def branches(first: str, second: str, operands: str) -> str:
    return f"""HloModule m
    left {{ p = f32[4,4] parameter(0)
      ROOT l = f32[4,4] {first} }}
    right {{ q = f32[4,4] parameter(0)
      ROOT r = f32[4,4] {second} }}
    ENTRY e {{ a = f32[4,4] parameter(0)
      b = f32[4,4] parameter(1)
      flag = pred[] parameter(2)
      s = f32[4,4] add(a, b)
      t = f32[4,4] multiply(a, b)
      c = f32[4,4] conditional(flag, {operands}), true_computation=left, false_computation=right
      d = f32[4,4] dot(c, c), {DOT}
      ROOT out = (f32[4,4], f32[4,4]) tuple(d, d) }}"""


def test_each_branch_has_its_operand() -> None:
    module = run_rounded(NAME, branches("maximum(p, p)", "negate(q)", "s, t"))
    assert types(module, "c", "l", "r") == ["bf16"] * 3
    assert types(module, "p", "q", "s", "t") == ["bf16", "f32", "bf16", "f32"]


def test_branches_that_share_an_operand() -> None:
    module = run_rounded(NAME, branches("maximum(p, p)", "negate(q)", "s, s"))
    assert types(module, "c", "l", "r", "p", "q", "s") == ["bf16"] * 3 + ["f32"] * 3


def test_branches_that_give_what_they_got() -> None:
    text = branches("copy(p)", "copy(q)", "s, t")
    assert types(run_rounded(NAME, text), "c", "s", "t") == ["bf16"] * 3
    passed = """HloModule m
    left { ROOT p = f32[4,4] parameter(0) }
    right { ROOT q = f32[4,4] parameter(0) }
    ENTRY e { a = f32[4,4] parameter(0)
      flag = pred[] parameter(1)
      s = f32[4,4] negate(a)
      t = f32[4,4] exponential(a)
      c = f32[4,4] conditional(flag, s, t), true_computation=left, false_computation=right
      d = f32[4,4] dot(c, c), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      ROOT out = (f32[4,4], f32[4,4]) tuple(d, OTHER) }"""
    module = run_rounded(NAME, passed.replace("OTHER", "d"))
    assert types(module, "c", "s", "t") == ["bf16"] * 3
    module = run_rounded(NAME, passed.replace("OTHER", "t"), changes=False)
    assert types(module, "c", "s", "t") == ["f32"] * 3


def test_one_branch_twice_stays() -> None:
    text = branches("copy(p)", "copy(q)", "s, t").replace(
        "false_computation=right", "false_computation=left"
    )
    text = text[: text.index("right {")] + text[text.index("ENTRY") :]
    module = run_rounded(NAME, text, changes=False)
    assert types(module, "c", "p", "s", "t") == ["f32"] * 4


def test_results_in_tuples_have_types_of_their_own() -> None:
    text = """HloModule m
    left { p = (f32[4,4], f32[4,4]) parameter(0)
      p0 = f32[4,4] get-tuple-element(p), index=0
      p1 = f32[4,4] get-tuple-element(p), index=1
      l1 = (f32[4,4]) tuple(p1)
      ROOT l = (f32[4,4], (f32[4,4])) tuple(p0, l1) }
    right { q = f32[4,4] parameter(0)
      n = f32[4,4] negate(q)
      m = f32[4,4] cosine(q)
      r1 = (f32[4,4]) tuple(n)
      ROOT r = (f32[4,4], (f32[4,4])) tuple(m, r1) }
    ENTRY e { a = f32[4,4] parameter(0)
      flag = pred[] parameter(1)
      s = f32[4,4] negate(a)
      t = f32[4,4] exponential(a)
      both = (f32[4,4], f32[4,4]) tuple(s, t)
      k = f32[4,4] sine(a)
      c = (f32[4,4], (f32[4,4])) conditional(flag, both, k), true_computation=left,
        false_computation=right
      c0 = f32[4,4] get-tuple-element(c), index=0
      c1 = (f32[4,4]) get-tuple-element(c), index=1
      c10 = f32[4,4] get-tuple-element(c1), index=0
      d = f32[4,4] dot(c0, c0), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      ROOT out = (f32[4,4], f32[4,4]) tuple(d, c10) }"""
    module = run_rounded(NAME, text)
    assert types(module, "c", "l", "r", "both") == ["(bf16, (f32))"] * 3 + ["(bf16, f32)"]
    assert types(module, "s", "t", "m", "n", "k") == ["bf16", "f32", "bf16", "f32", "f32"]


ASYNC = """HloModule m
  f { p = f32[4,4] parameter(0)
    ROOT r = f32[4,4] BODY }, execution_thread="THREAD"
  ENTRY e { a = f32[4,4] parameter(0)
    s = f32[4,4] negate(a)
    start = ((f32[4,4]), f32[4,4], s32[]) async-start(s), calls=f, async_execution_thread="THREAD"
    done = f32[4,4] async-done(start)
    ROOT d = f32[4,4] dot(done, done), lhs_contracting_dims={1}, rhs_contracting_dims={0} }"""


def test_asynchronous_computations() -> None:
    here = ASYNC.replace("THREAD", "main").replace(', execution_thread="main"', "")
    module = run_rounded(NAME, here.replace("BODY", "maximum(p, p)"))
    assert types(module, "s", "p", "r", "done") == ["bf16"] * 4
    assert types(module, "start") == ["((bf16), bf16, s32)"]
    module = run_rounded(NAME, here.replace("BODY", "exponential(p)"))
    assert types(module, "s", "start", "done") == ["f32", "((f32), bf16, s32)", "bf16"]


def test_an_asynchronous_operation_stays_alone() -> None:
    here = ASYNC.replace("THREAD", "main").replace(', execution_thread="main"', "")
    copied = here.replace("BODY", "copy(p)")
    module = run_rounded(NAME, copied)
    assert types(module, "s", "p", "r") == ["bf16"] * 3
    needed = copied.replace("dot(done, done)", "dot(done, k)").replace(
        "start =", "k = f32[4,4] sine(s)\n start ="
    )
    module = run_rounded(NAME, needed)
    assert types(module, "s", "p", "r", "done", "k") == ["f32"] * 4 + ["bf16"]
    bits = here.replace("f32[4,4] BODY", "f32[4,4] bitcast-convert(p)")
    bits = bits.replace("p = f32", "p = s32").replace("s = f32", "s = s32")
    bits = bits.replace("negate(a)", "convert(a)").replace("((f32[4,4])", "((s32[4,4])")
    module = parse_module(bits)
    assert not create_pass(NAME, {"float_support": MATRIX_UNIT}).run(module, PassContext())


def test_an_asynchronous_convert_is_still_one() -> None:
    here = ASYNC.replace("THREAD", "main").replace(', execution_thread="main"', "")
    text = here.replace("f32[4,4] BODY", "bf16[4,4] convert(p)").replace(
        "((f32[4,4]), f32[4,4], s32[])", "((f32[4,4]), bf16[4,4], s32[])"
    )
    module = run_rounded(NAME, text.replace("done = f32", "done = bf16"))
    assert types(module, "s", "p") == ["bf16", "bf16"]
    assert module.entry["start"].called[0].root.opcode is Opcode.CONVERT


def test_asynchronous_computations_of_other_threads_stay() -> None:
    module = run_rounded(
        NAME,
        ASYNC.replace("THREAD", "other").replace("BODY", "maximum(p, p)"),
        changes=False,
    )
    assert types(module, "s", "start", "done") == ["f32", "((f32), f32, s32)", "f32"]


def test_results_that_cannot_change_are_converted_where_they_are_returned() -> None:
    body = "u = u32[4,4] bitcast-convert(p)\n ROOT r = f32[4,4] bitcast-convert(u)"
    module = run_rounded(NAME, called(body, CALL))
    assert types(module, "c", "r", "p", "s") == ["bf16", "f32", "f32", "f32"]
    root = module.computations["f"].root
    assert line(module, root.name) == "bf16[4,4] convert(r)"


def test_what_is_not_reached_is_decided_as_well() -> None:
    module = run_rounded(
        NAME,
        called("ROOT r = f32[4,4] copy(p)", CALL).replace(
            "ENTRY",
            f"""g {{ k = f32[4,4] parameter(0)
              h = f32[4,4] negate(k)
              ROOT j = f32[4,4] dot(h, h), {DOT} }}
            ENTRY""",
        ),
    )
    assert types(module, "c", "r", "s") == ["bf16"] * 3
