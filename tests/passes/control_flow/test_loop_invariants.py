"""What is the same in every trip moves out of loops, and constants move into them."""

from __future__ import annotations

import pytest
from tests.passes.checked_run import reasons_to_stay, run_checked, run_equal

from hloopt.ir import Module, Opcode

MOTION = "while-loop-invariant-code-motion"
EXPENSIVE = "while-loop-expensive-invariant-code-motion"
SINKING = "while-loop-constant-sinking"


def program(body: str, state: str = "f32[4]", *, result: str = "x", first: str = "p") -> str:
    """A loop of five trips over a counter, a value x of a type, and a sum of what `result` is."""
    return f"""HloModule m
body {{
  s = (s32[], {state}, {state}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  next = s32[] add(i, one)
  x = {state} get-tuple-element(s), index=1
  sum = {state} get-tuple-element(s), index=2
  {body}
  total = {state} add(sum, {result})
  ROOT r = (s32[], {state}, {state}) tuple(next, x, total)
}}
condition {{
  s = (s32[], {state}, {state}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  limit = s32[] constant(5)
  ROOT c = pred[] compare(i, limit), direction=LT
}}
ENTRY e {{
  p = {state} parameter(0)
  zero = s32[] constant(0)
  k = {state} constant({{1, 2, 3, 4}})
  init = (s32[], {state}, {state}) tuple(zero, {first}, p)
  loop = (s32[], {state}, {state}) while(init), condition=condition, body=body
  ROOT t = {state} get-tuple-element(loop), index=2
}}"""


def hoisted(module: Module) -> list[str]:
    """The opcodes in the entry that the program did not have there."""
    plain = ("parameter", "constant", "tuple", "while", "get-tuple-element")
    return [i.opcode.value for i in module.entry.instructions if i.opcode.value not in plain]


@pytest.mark.parametrize(
    ("body", "result", "opcodes"),
    [
        ("y = f32[4] negate(x)", "y", ["negate"]),
        ("y = f32[4] negate(x) z = f32[4] sine(y)", "z", ["negate", "sine"]),
        # A chain stops at what differs from trip to trip.
        ("y = f32[4] negate(x) z = f32[4] multiply(y, sum) w = f32[4] sine(z)", "w", ["negate"]),
        # What is free comes with what needs it.
        (
            "b = f32[4,4] broadcast(x), dimensions={1} y = f32[4,4] exponential(b) "
            "q = f32[1,4] slice(y), slice={[0:1], [0:4]} w = f32[4] reshape(q)",
            "w",
            ["broadcast", "exponential"],
        ),
    ],
)
def test_what_is_hoisted(body: str, result: str, opcodes: list[str]) -> None:
    assert sorted(hoisted(run_equal(MOTION, program(body, result=result)))) == opcodes


def test_original_values_of_what_is_hoisted_say_in_which_loop_it_was() -> None:
    calls = "condition=condition, body=body"
    text = program('y = f32[4] negate(x), origin={{"y"}}', result="y").replace(
        calls, calls + ', origin={({"loop" {0}}, {"loop" {1}}, {"loop" {2}})}'
    )
    entry = run_equal(MOTION, text).entry
    (copy,) = [i for i in entry.instructions if i.opcode is Opcode.NEGATE]
    (loop,) = [i for i in entry.instructions if i.opcode is Opcode.WHILE]
    assert copy.attributes["origin"] == '{{"loop#*/y"}}'
    assert loop.attributes["origin"] == (
        '{({"loop" {0}}, {"loop" {1}}, {"loop" {2}}, {"loop#*/y"})}'
    )


@pytest.mark.parametrize(
    "body",
    [
        "y = f32[4] reverse(x), dimensions={0}",
        "h = f32[] constant(0.5) y = f32[4] broadcast(h), dimensions={}",
        "z = f32[2,2] reshape(x) y = f32[4] reshape(z)",
        "y = f32[4] negate(x), control-predecessors={next}",
        "a = f32[] constant(0) b = f32[] constant(1) y = f32[4] rng(a, b), "
        "distribution=rng_uniform",
    ],
)
def test_what_is_not_hoisted_for_itself(body: str) -> None:
    assert reasons_to_stay(MOTION, program(body, result="y")) == []


@pytest.mark.parametrize(
    ("options", "opcodes"),
    [
        ({"hoist_reshapes": True}, ["reshape", "reshape", "sine"]),
        ({"hoist_reshapes": True, "hoist_other": False}, ["reshape"]),
        ({"hoist_constants": True}, ["reshape", "sine"]),
    ],
)
def test_options_of_what_is_hoisted(options: dict[str, object], opcodes: list[str]) -> None:
    text = program("z = f32[2,2] reshape(x) w = f32[2,2] sine(z) y = f32[4] reshape(w)", result="y")
    assert sorted(hoisted(run_equal(MOTION, text, **options))) == opcodes


@pytest.mark.parametrize(
    "body",
    [
        "c = (f32[4], f32[4], u32[]) copy-start(x) w = f32[4] copy-done(c)",
        "a = ((f32[4]), f32[4], u32[]) async-start(x), calls=turned w = f32[4] async-done(a)",
    ],
)
def test_operations_in_two_parts_stay(body: str) -> None:
    turned = "turned {\n  p = f32[4] parameter(0)\n  ROOT n = f32[4] sine(p)\n}\nbody {"
    text = program(body, result="w").replace("body {", turned, 1)
    assert not hoisted(run_checked(MOTION, text, changes=False))


def test_what_would_grow_stays() -> None:
    body = (
        "b = f32[4,4] broadcast(x), dimensions={1} y = f32[4,4] exponential(b) "
        "q = f32[1,4] slice(y), slice={[0:1], [0:4]} w = f32[4] reshape(q)"
    )
    text = program(body, result="w")
    assert reasons_to_stay(MOTION, text, hoist_size_inflation_ratio=2.0) == [
        "it is larger than hoist_size_inflation_ratio allows"
    ]
    run_equal(MOTION, text, hoist_size_inflation_ratio=4.0)
    ones = {"hoist_size_inflation_ratio": 1.0, "shape_size_function": lambda _: 1}
    run_equal(MOTION, text, **ones)


def test_a_value_of_the_inner_loop_leaves_both() -> None:
    text = program("y = f32[4] sine(x)", result="y")
    inner = text.partition("ENTRY")[0].replace("body {", "inner {")
    outer = """
outer {
  s = (s32[], f32[4], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  next = s32[] add(i, one)
  x = f32[4] get-tuple-element(s), index=1
  sum = f32[4] get-tuple-element(s), index=2
  zero = s32[] constant(0)
  init = (s32[], f32[4], f32[4]) tuple(zero, x, sum)
  loop = (s32[], f32[4], f32[4]) while(init), condition=condition, body=inner
  more = f32[4] get-tuple-element(loop), index=2
  ROOT r = (s32[], f32[4], f32[4]) tuple(next, x, more)
}
"""
    entry = "ENTRY" + text.partition("ENTRY")[2].replace("body=body", "body=outer")
    module = run_equal(MOTION, inner + outer + entry)
    assert hoisted(module) == ["sine"]


def test_a_body_of_two_loops() -> None:
    text = program("y = f32[4] sine(x)", result="y").replace(
        "ROOT t = f32[4] get-tuple-element(loop), index=2",
        "again = (s32[], f32[4], f32[4]) while(loop), condition=condition, body=body, "
        "control-predecessors={p} ROOT t = f32[4] get-tuple-element(again), index=2",
    )
    module = run_equal(MOTION, text)
    assert hoisted(module) == ["sine", "sine"]
    loops = [*module.instructions(Opcode.WHILE)]
    assert [len(loop.control_predecessors) for loop in loops] == [0, 1]


@pytest.mark.parametrize("name", [MOTION, EXPENSIVE])
def test_a_state_that_is_used_whole(name: str) -> None:
    text = """HloModule m
body {
  s = (f32[4], f32[4], s32[]) parameter(0)
  x = f32[4] get-tuple-element(s), index=0
  m = f32[4,4] constant({{1,0,0,0},{0,1,0,0},{0,0,1,0},{0,0,0,1}})
  y = f32[4] dot(m, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  o = (f32[4], f32[4], s32[]) opt-barrier(s)
  z = f32[4] get-tuple-element(o), index=1
  w = f32[4] add(y, z)
  i = s32[] get-tuple-element(o), index=2
  one = s32[] constant(1)
  next = s32[] add(i, one)
  ROOT r = (f32[4], f32[4], s32[]) tuple(x, w, next)
}
condition {
  s = (f32[4], f32[4], s32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=2
  limit = s32[] constant(5)
  ROOT c = pred[] compare(i, limit), direction=LT
}
ENTRY e {
  p = f32[4] parameter(0)
  zero = s32[] constant(0)
  init = (f32[4], f32[4], s32[]) tuple(p, p, zero)
  ROOT w = (f32[4], f32[4], s32[]) while(init), condition=condition, body=body
}"""
    module = run_equal(name, text)
    assert [i for i in module.entry.instructions if i.opcode is Opcode.DOT]


def test_a_scheduled_module_stays_in_order() -> None:
    text = program("y = f32[4] sine(x)", result="y")
    run_checked(MOTION, text.replace("HloModule m", "HloModule m, is_scheduled=true"))


def test_the_reasons_of_the_expensive_pass() -> None:
    text = program("y = f32[4] sine(x)", result="y")
    assert reasons_to_stay(EXPENSIVE, text) == []  # no dot
    one = text.replace("constant(5)", "constant(1)")
    reasons = ["it makes at most one trip"]
    assert reasons_to_stay(EXPENSIVE, one) == reasons_to_stay(MOTION, one) == reasons
    run_equal(EXPENSIVE, text, worth_hoisting_individually=(Opcode.SINE,))
    sizes = {"worth_hoisting_individually": (Opcode.SINE,), "shape_size_function": lambda _: 1}
    run_equal(EXPENSIVE, text, **sizes)


def test_constants_become_known() -> None:
    text = program("y = f32[4] sine(x)", result="y", first="k")
    module = run_equal(SINKING, text)
    body, condition = next(iter(module.instructions(Opcode.WHILE))).called
    assert (body.name, condition.name) == ("body.sunk", "condition")
    assert next(iter(module.instructions(Opcode.SINE))).operands[0].opcode is Opcode.CONSTANT
    assert reasons_to_stay(SINKING, text, sink_only_scalar_constants=True) == ["%k is no scalar"]


@pytest.mark.parametrize(
    "text",
    [
        program("y = f32[4] sine(x)", result="y"),  # no constant
        program("y = f32[4] sine(sum)", result="y", first="k"),  # which nothing else reads
        program("y = f32[4] sine(x)", result="y", first="k").replace(
            "tuple(next, x, total)", "tuple(next, y, total)"
        ),  # trips change it
    ],
)
def test_what_is_not_sunk(text: str) -> None:
    assert reasons_to_stay(SINKING, text) == []


def test_other_elements_of_the_state_get_the_constant_too() -> None:
    text = program("y = f32[4] sine(x)", first="k").replace("(next, x, total)", "(next, x, x)")
    module = run_equal(SINKING, text)
    (loop,) = module.instructions(Opcode.WHILE)
    _, same, other = loop.called[0].root.operands
    assert (same.opcode, other.opcode) == (Opcode.GET_TUPLE_ELEMENT, Opcode.CONSTANT)
    alone = text.replace("y = f32[4] sine(x)", "").replace("total = f32[4] add(sum, x)", "")
    assert reasons_to_stay(SINKING, alone) == []  # only the new state reads it


def test_broadcasts_of_constants() -> None:
    text = program("y = f32[4] sine(x)", result="y", first="b").replace(
        "k = f32[4] constant({1, 2, 3, 4})",
        "k = f32[] constant(2) b = f32[4] broadcast(k), dimensions={}",
    )
    assert reasons_to_stay(SINKING, text) == []
    module = run_equal(SINKING, text, sink_broadcast_of_constants=True)
    assert next(iter(module.instructions(Opcode.SINE))).operands[0].opcode is Opcode.BROADCAST


def test_a_fusion_as_the_root_of_a_body_is_no_tuple_of_elements() -> None:
    text = """HloModule m
fused { a = s32[] parameter(0) c = s32[] constant(1) s = s32[] add(a, c)
  ROOT t = (s32[]) tuple(s) }
body { s = (s32[]) parameter(0) i = s32[] get-tuple-element(s), index=0
  ROOT f = (s32[]) fusion(i), kind=kLoop, calls=fused }
condition { s = (s32[]) parameter(0) i = s32[] get-tuple-element(s), index=0
  l = s32[] constant(3) ROOT c = pred[] compare(i, l), direction=LT }
ENTRY e { z = s32[] constant(0) t = (s32[]) tuple(z)
  ROOT w = (s32[]) while(t), condition=condition, body=body }"""
    assert reasons_to_stay(SINKING, text) == []
