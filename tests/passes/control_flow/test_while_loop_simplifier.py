"""Corners of simplify-while-loops: what must be kept besides what the loop computes."""

from __future__ import annotations

from typing import Any

import pytest

from hloopt.equivalence import Reference, RunSettings
from hloopt.ir import Instruction, Module, Opcode
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module, print_module
from hloopt.verifier import ANY_TARGET, verify_module

LOOP = """HloModule m{header}

body {{
  p = {state} parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[4] get-tuple-element(p), index=1
  y = f32[4] get-tuple-element(p), index=2
  one = s32[] constant(1)
  next = s32[] add(i, one)
{body}
}}

condition {{
  q = {state} parameter(0)
  j = s32[] get-tuple-element(q), index=0
  n = s32[] constant({trips})
  ROOT less = pred[] compare(j, n), direction=LT
}}

ENTRY main {{
  zero = s32[] constant(0)
  x0 = f32[4] parameter(0)
  y0 = f32[4] parameter(1)
  state = {state} tuple(zero, x0, y0){init}
{entry}
}}
"""
STATE = "(s32[], f32[4], f32[4])"
UNUSED_Y = f"  y2 = f32[4] negate(y)\n  ROOT t = {STATE} tuple(next, x, y2)"
GIVES_X = (
    f"  w = {STATE} while(state), condition=condition, body=body{{}}\n"
    "  ROOT r = f32[4] get-tuple-element(w), index=1"
)


def simplified(
    *, body: str = UNUSED_Y, entry: str = GIVES_X.format(""), trips: int = 5, **more: str
) -> tuple[Module, bool, PassContext]:
    parts = {"header": "", "init": "", **more}
    text = LOOP.format(state=STATE, body=body, entry=entry, trips=trips, **parts)
    return run(parse_module(text))


def run(module: Module, **options: Any) -> tuple[Module, bool, PassContext]:
    assert verify_module(module, ANY_TARGET) == []
    context = PassContext("simplify-while-loops")
    changed = create_pass("simplify-while-loops", options).run(module, context)
    assert verify_module(module, ANY_TARGET) == []
    return parse_module(print_module(module)), changed, context


def the_loop(module: Module) -> Instruction:
    [loop] = module.instructions(Opcode.WHILE)
    return loop


def test_what_annotations_say_of_elements_follows_the_elements() -> None:
    config = (
        ', sharding={{replicated}, {maximal device=1}, {maximal device=0}}, origin={({"i"}, '
        '{"x" {1}}, {"y"})}, backend_config={"known_trip_count":{"n":"5"},'
        '"known_induction_variable":{"tuple_index":"0"},"dynamic_variables":[]}'
    )
    module, changed, _ = simplified(entry=GIVES_X.format(config), init=', origin={({}, {"a"}, {})}')
    loop = the_loop(module)
    assert changed
    assert loop.shape.text == "(s32[])"
    assert loop.attributes["sharding"] == "{{replicated}}"
    assert loop.attributes["origin"] == '{({"i"})}'
    assert loop.attributes["backend_config"] == '{"known_trip_count":{"n":"5"}}'
    result = module.entry.root.operands[0]
    assert result.attributes["origin"] == '{({"i"}, {"x" {1}}, {"y"})}'
    assert result.attributes["sharding"].count("maximal") == 2


def test_what_is_said_of_the_elements_around_one_that_goes_stays() -> None:
    body = (
        f"  x2 = f32[4] negate(x)\n  y2 = f32[4] add(y, y)\n  ROOT t = {STATE} tuple(next, x2, y2)"
    )
    notes = (
        ", sharding={{replicated}, {maximal device=1}, {maximal device=0}}, "
        'origin={({"i"}, {"x"}, {"y"})}'
    )
    entry = GIVES_X.format(notes).replace("index=1", "index=2")
    module, _, _ = simplified(body=body, entry=entry)
    loop = the_loop(module)
    assert loop.shape.text == "(s32[], f32[4]{0})"
    assert loop.attributes["sharding"] == "{{replicated}, {maximal device=0}}"
    assert loop.attributes["origin"] == '{({"i"}, {"y"})}'


def test_a_schedule_stays_complete_and_in_order() -> None:
    module, changed, _ = simplified(header=", is_scheduled=true")
    assert changed
    assert module.is_scheduled
    names = [i.name for i in module.entry.instructions]
    assert names.index("zero") < names.index("w") < names.index("r")


@pytest.mark.parametrize(
    "keeps",
    [
        '  e = f32[4] custom-call(y2), custom_call_target="f", custom_call_has_side_effect=true\n',
        "  k = f32[4] negate(y2), control-predecessors={next}\n",
    ],
)
def test_an_element_stays_for_a_side_effect_or_a_control_dependency(keeps: str) -> None:
    body = UNUSED_Y.replace("  ROOT", f"{keeps}  ROOT")
    module, changed, _ = simplified(body=body)
    assert changed  # the x that is handed on goes
    assert the_loop(module).shape.text == "(s32[], f32[4]{0})"


def test_dead_code_that_reads_an_element_does_not_keep_it() -> None:
    body = UNUSED_Y.replace("  ROOT", "  d = f32[4] add(x, y2)\n  ROOT")
    module, _, _ = simplified(body=body)
    assert the_loop(module).shape.text == "(s32[])"


def test_a_state_that_is_used_whole_in_the_body_stays() -> None:
    body = f"  c = {STATE} copy(p)\n  z = f32[4] get-tuple-element(c), index=2\n"
    body += f"  ROOT t = {STATE} tuple(next, x, z)"
    _, changed, context = simplified(body=body)
    assert not changed
    assert context.remarks[-1].reason == "it makes 5 trips"


def test_a_body_that_is_called_elsewhere_stays_as_it_is() -> None:
    second = f"  v = {STATE} while(state), condition=condition, body=body\n"
    module, changed, context = simplified(entry=second + GIVES_X.format(""))
    assert not changed
    assert [remark.reason for remark in context.remarks] == [
        "it makes 5 trips; %body is called elsewhere, too: flatten the call graph"
    ] * 2
    assert len(list(module.instructions(Opcode.WHILE))) == 2


@pytest.mark.parametrize("where", ["body", "condition"])
def test_a_loop_of_one_trip_with_a_side_effect_stays(where: str) -> None:
    effect = 'custom-call({}), custom_call_target="f", custom_call_has_side_effect=true\n'
    text = LOOP.format(
        **{"header": "", "init": "", "state": STATE, "trips": 1},
        entry=GIVES_X.format(""),
        body=f"  ROOT t = {STATE} tuple(next, y, x)",
    )
    before = "  ROOT t" if where == "body" else "  ROOT less"
    value = "x" if where == "body" else "j"
    shape = "f32[4]" if where == "body" else "s32[]"
    text = text.replace(before, f"  e = {shape} {effect.format(value)}{before}")
    _, changed, context = run(parse_module(text))
    assert not changed
    assert context.remarks[-1].reason == f"%{where} has side effects"


def test_tuples_nested_a_thousand_deep_become_flat() -> None:
    depth = 1000
    shape = "(" * depth + "f32[2], f32[2]" + ")" * depth
    module = parse_module(
        f"HloModule m\nbody {{ ROOT p = {shape} parameter(0) }}\n"
        f"condition {{ q = {shape} parameter(0) ROOT c = pred[] constant(true) }}\n"
        f"ENTRY e {{ s = {shape} parameter(0)\n"
        f"ROOT w = {shape} while(s), condition=condition, body=body }}"
    )
    assert create_pass("simplify-while-loops").run(module, PassContext())
    assert the_loop(module).shape.text == "(f32[2]{0}, f32[2]{0})"
    assert module.entry.root.shape is module.entry.parameters[0].shape


def test_a_loop_in_a_loop_of_one_trip_is_inlined_with_it() -> None:
    inner = LOOP.format(
        **{"header": "", "init": "", "state": STATE, "trips": 5, "entry": "ENTRY"},
        body=f"  ROOT t = {STATE} tuple(next, y, x)",
    ).partition("ENTRY")[0]
    outer = LOOP.format(
        **{"header": "", "init": "", "state": STATE, "trips": 1},
        body=f"  s = {STATE} tuple(zero, y, x)\n  v = {STATE} while(s), condition=condition, "
        f"body=body\n  z = f32[4] get-tuple-element(v), index=2\n"
        f"  ROOT t = {STATE} tuple(next, z, x)",
        entry=GIVES_X.format(""),
    ).partition("body")[2]
    outer = outer.replace("one =", "zero = s32[] constant(0)\n  one =", 1)
    outer = outer.replace("condition {", "once {", 1)
    outer = outer.replace("while(state), condition=condition, body=body", "while(state), "
                          "condition=once, body=outer")  # fmt: skip
    module, changed, _ = run(parse_module(f"{inner}outer{outer}"))
    assert changed
    assert the_loop(module).parent is module.entry
    assert set(module.computations) == {"body", "condition", "main"}


def test_a_loop_that_runs_asynchronously_stays() -> None:
    text = LOOP.format(
        **{"header": "", "init": "", "state": STATE, "trips": 1}, body=UNUSED_Y,
        entry=f"  s = (({STATE}), {STATE}, u32[]) async-start(state), calls=wrapped\n"
        f"  ROOT d = {STATE} async-done(s)",
    )  # fmt: skip
    wrapped = f"ROOT w = {STATE} while(v), condition=condition, body=body"
    wrapped = f"wrapped {{\n  v = {STATE} parameter(0)\n  {wrapped}\n}}\n\nENTRY"
    _, changed, context = run(parse_module(text.replace("ENTRY", wrapped)))
    assert not changed
    assert context.remarks[-1].reason == "it runs asynchronously"


@pytest.mark.parametrize("trips", [0, 1])
def test_a_loop_whose_initial_state_is_laid_out_otherwise_stays(trips: int) -> None:
    state = "(s32[], f32[2,3]{0,1})"
    _, changed, context = run(
        parse_module(f"""HloModule m
body {{
  p = {state} parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[2,3]{{0,1}} get-tuple-element(p), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  y = f32[2,3]{{0,1}} negate(x)
  ROOT t = {state} tuple(next, y)
}}
condition {{
  q = {state} parameter(0)
  j = s32[] get-tuple-element(q), index=0
  n = s32[] constant({trips})
  ROOT less = pred[] compare(j, n), direction=LT
}}
ENTRY e {{
  zero = s32[] constant(0)
  x = f32[2,3]{{1,0}} parameter(0)
  s = (s32[], f32[2,3]{{1,0}}) tuple(zero, x)
  ROOT w = {state} while(s), condition=condition, body=body
}}""")
    )
    assert not changed
    assert context.remarks[-1].reason == "its initial state is laid out in another way"


def test_a_loop_that_dce_must_not_touch_keeps_its_elements() -> None:
    for value, stays in (("true", True), ("false", False)):
        hint = f', frontend_attributes={{xla_disable_while_loop_dce="{value}"}}'
        module, changed, _ = simplified(entry=GIVES_X.format(hint))
        assert changed is not stays
        assert (the_loop(module).shape.text == "(s32[], f32[4]{0}, f32[4]{0})") is stays


@pytest.mark.parametrize(
    ("kind", "merges"),
    [
        *(("s8", True), ("u8", True), ("s16", False), ("u16", False), ("s32", True)),
        *(("s64", True), ("u64", True), ("s4", False), ("u4", False)),
    ],
)
def test_counters_are_merged_where_xla_merges_them(kind: str, merges: bool) -> None:
    text = f"""HloModule m
body {{
  p = ({kind}[], {kind}[], f32[4]) parameter(0)
  i = {kind}[] get-tuple-element(p), index=0
  k = {kind}[] get-tuple-element(p), index=1
  x = f32[4] get-tuple-element(p), index=2
  one = {kind}[] constant(1)
  two = {kind}[] constant(2)
  ii = {kind}[] add(i, one)
  kk = {kind}[] add(k, two)
  c = f32[] convert(k)
  b = f32[4] broadcast(c), dimensions={{}}
  xx = f32[4] add(x, b)
  ROOT t = ({kind}[], {kind}[], f32[4]) tuple(ii, kk, xx)
}}
condition {{
  q = ({kind}[], {kind}[], f32[4]) parameter(0)
  j = {kind}[] get-tuple-element(q), index=0
  n = {kind}[] constant(3)
  ROOT less = pred[] compare(j, n), direction=LT
}}
ENTRY main {{
  zero = {kind}[] constant(0)
  x0 = f32[4] parameter(0)
  start = {kind}[] parameter(1)
  state = ({kind}[], {kind}[], f32[4]) tuple(zero, start, x0)
  ROOT w = ({kind}[], {kind}[], f32[4]) while(state), condition=condition, body=body
}}"""
    reference = Reference(parse_module(text), RunSettings())
    module, changed, _ = run(parse_module(text))
    assert changed is merges
    assert reference.compare(module) is None


def test_a_loop_whose_trips_are_not_known_says_why() -> None:
    entry = "  w = {} while(state), condition=condition, body=body\n  ROOT r = {} copy(w)"
    text = LOOP.format(
        **{"header": "", "init": "", "state": STATE, "trips": 1},
        body=f"  ROOT t = {STATE} tuple(next, y, x)",
        entry=entry.format(STATE, STATE),
    ).replace("zero = s32[] constant(0)", "zero = s32[] parameter(2)")
    _, changed, context = run(parse_module(text))
    assert not changed
    assert [remark.reason for remark in context.remarks] == [
        "its trip count is not known: the initial value of its counter, element 0, is not constant"
    ]


def test_elements_that_are_the_same_stay_where_the_state_is_read_whole() -> None:
    whole = f"  c = {STATE} copy(p)\n  k = s32[] get-tuple-element(c), index=0\n"
    for taken, read, elements in (("k", whole, 3), ("i", "", 2)):
        body = f"{read}  m = s32[] add({taken}, one)\n  ROOT t = {STATE} tuple(m, x, y)"
        entry = f"  w = {STATE} while(state), condition=condition, body=body\n"
        entry += f"  ROOT r = {STATE} copy(w)"
        text = LOOP.format(header="", init="", state=STATE, body=body, entry=entry, trips=5)
        text = text.replace("tuple(zero, x0, y0)", "tuple(zero, x0, x0)")
        module, _, _ = run(parse_module(text))
        assert len(the_loop(module).shape.elements) == elements


@pytest.mark.parametrize(
    ("hint", "stays"),
    [
        ('inlineable="false"', "it is marked inlineable=false"),
        (
            'skip-simplify-while-loops_trip-count-one="true"',
            "it is marked skip-simplify-while-loops_trip-count-one=true",
        ),
        ('other="true"', None),
    ],
)
def test_a_loop_of_one_trip_stays_where_it_is_marked(hint: str, stays: str | None) -> None:
    marked = GIVES_X.format(f", frontend_attributes={{{hint}}}")
    body = f"  ROOT t = {STATE} tuple(next, y, x)"
    module, _, context = simplified(body=body, entry=marked, trips=1)
    assert [i.opcode for i in module.instructions(Opcode.WHILE)] == [Opcode.WHILE] * bool(stays)
    assert [r.reason for r in context.remarks if r.kind == "missed"] == ([stays] if stays else [])
