"""Constants and induction variables of loops, and nested states."""

from __future__ import annotations

import pytest
from tests.passes.control_flow.test_loop_state import (
    LESS,
    THREE_TRIPS,
    Loop,
    loop_in,
    said,
    simplified,
    text_of,
)

from hloopt.ir import Opcode

# -- constants --------------------------------------------------------------------------------


def with_constants(text: str, *constants: str) -> str:
    return text.replace("zero = s32", "\n  ".join([*constants, "zero = s32"]))


HALF, SEVEN = "half = f32[] constant(0.5)", "seven = s32[] constant(7)"


def test_scalars_that_start_as_constants_and_never_change_are_constants() -> None:
    text = text_of(
        "s32[]; f32[]; f32[2]; f32[]; s32[]; s32[]",
        "b = f32[2] broadcast(p1), dimensions={}; n2 = f32[2] add(p2, b); n3 = f32[] add(p3, p1); "
        "n4 = s32[] multiply(p4, p5); next, p1, n2, n3, n4, p5",
        starts="zero, half, s.2, half, seven, seven",
        condition="k = s32[] get-tuple-element(q), index=5 kk = s32[] multiply(k, k)",
    ).replace("compare(j, n)", "compare(j, kk)")
    module, context = simplified(with_constants(text, HALF, SEVEN))
    assert loop_in(module) == Loop(
        ["0", "0.5", "s.2", "0.5", "7", "7"],
        [
            "add(p.0, 1)",
            "0.5",
            "add(p.2, broadcast(0.5))",
            "add(p.3, 0.5)",
            "multiply(p.4, 7)",
            "7",
        ],
        "compare(q.0, multiply(7, 7))",
        "w",
    )
    assert said(context) == ["applied w: 2 elements of its state replaced by constants"]
    assert context.statistics == {"elements of its state replaced by constants": 2}


def test_constants_that_reads_become_say_what_the_reads_said() -> None:
    text = text_of("s32[]; f32[]; f32[]", "n2 = f32[] add(p2, p1); next, p1, n2",
                   starts="zero, half, s.2")  # fmt: skip
    text = text.replace("(p), index=1", '(p), index=1, metadata={op_name="read"}')
    module, _ = simplified(with_constants(text, HALF))
    constants = [i for i in module.computations["body"].instructions if i.payload == "0.5"]
    assert [i.attributes.get("metadata") for i in constants] == ['{op_name="read"}']


@pytest.mark.parametrize(
    ("body", "starts", "constant"),
    [
        # An array; something that is not constant; something that changes; one of another place.
        ("n2 = f32[2] add(p2, p1); next, p1, n2", "zero, k, s.2", "k = f32[2] constant({1, 2})"),
        ("n2 = f32[2] add(p2, p1); next, n2, p2", "zero, k, s.2", "k = f32[2] constant({1, 2})"),
    ],
)
def test_arrays_that_start_as_constants_stay(body: str, starts: str, constant: str) -> None:
    text = text_of("s32[]; f32[2]; f32[2]", body, starts=starts)
    _, context = simplified(with_constants(text, constant), most=0, changes=False)
    assert said(context) == [THREE_TRIPS]


def test_what_starts_as_the_constant_that_the_body_makes_is_not_carried() -> None:
    text = text_of(
        "s32[]; f32[2]; s32[]; f32[2]; s32[]; f32[2]",
        "b1 = f32[2] constant({1, 2}); b2 = s32[] constant(5); b4 = s32[] constant(6); "
        "c = f32[] convert(p2); b = f32[2] broadcast(c), dimensions={}; x = f32[2] add(p1, b); "
        "n3 = f32[2] add(p3, x); next, b1, b2, n3, b4, b1",
        starts="zero, k1, k2, s.3, k2, k3",
        condition="x = s32[] get-tuple-element(q), index=2",
    ).replace("compare(j, n)", "compare(j, x)")
    text = with_constants(
        text, "k1 = f32[2] constant({1,2})", "k2 = s32[] constant(5)", "k3 = f32[2] constant({1,3})"
    )
    module, context = simplified(text)
    assert loop_in(module) == Loop(
        ["0", "s.3", "5", "{1,3}"],
        ["add(p.0, 1)", "add(p.1, add({1,2}, broadcast(convert(5))))", "6", "{1, 2}"],
        "compare(q.0, 5)",
        "(w.0, {1,2}, 5, w.1, w.2, w.3)",
    )
    assert said(context) == ["applied w: 2 elements of its state removed: constant"]


def test_the_annotations_of_elements_stay_where_constants_go() -> None:
    notes = (
        ", sharding={{maximal device=0}, {maximal device=1}, {maximal device=2}}, "
        'origin={({"i"}, {"k"}, {"x"})}'
    )
    state = "s32[]; s32[]; f32[2]"
    text = text_of(
        state,
        "k = s32[] constant(5); n2 = f32[2] negate(p2); next, k, n2",
        starts="zero, five, s.2",
        entry=f"ROOT w = ({state.replace(';', ',')}) while(state), condition=condition, "
        f"body=body{notes}",
    )
    text = text.replace("parameter(0)\n  p0", f"parameter(0){notes}\n  p0")
    text = text.replace("tuple(next, k, n2)", f"tuple(next, k, n2){notes}")
    text = text.replace("tuple(zero, five, s.2)", f"tuple(zero, five, s.2){notes}")
    module, _ = simplified(with_constants(text, "five = s32[] constant(5)"))
    (loop,) = module.instructions(Opcode.WHILE)
    body = loop.called[0]
    less = {
        "sharding": "{{maximal device=0}, {maximal device=2}}",
        "origin": '{({"i"}, {"x"})}',
    }
    for value in (loop, loop.operands[0], body.parameters[0], body.root):
        assert {k: v for k, v in value.attributes.items() if k in less} == less, value
    whole = module.entry.root
    assert whole.attributes["origin"] == '{({"i"}, {"k"}, {"x"})}'


# -- induction variables ----------------------------------------------------------------------

COUNTS = "s32[]; s32[]; s32[]; f32[4]"
STEPS = (
    "three = s32[] constant(3); minus = s32[] constant(-2); a = s32[] add(p1, three); "
    "b = s32[] add(minus, p2); f = f32[] convert(p1); w = f32[4] broadcast(f), dimensions={}; "
    "n3 = f32[4] add(p3, w); next, a, b, n3"
)
SUM = "add(p.3, broadcast(convert(add(p.1, multiply(p.{}, 3)))))"


def test_counters_are_computed_from_the_one_that_counts_trips() -> None:
    module, context = simplified(text_of(COUNTS, STEPS.replace("w =", "wide =").replace(
        "p3, w)", "p3, wide)")))  # fmt: skip
    assert loop_in(module) == Loop(
        ["0", "s.1", "s.2", "s.3"],
        ["add(p.0, 1)", "p.1", "p.2", SUM.format(0)],
        LESS,
        "(w.0, add(w.1, multiply(w.0, 3)), add(w.2, multiply(w.0, -2)), w.3)",
    )
    assert said(context) == ["applied w: 2 induction variables now computed from another one"]
    assert context.applications.made == 1


@pytest.mark.parametrize("first", ["constant(1)", "negate(s.1)"])
def test_a_counter_of_trips_is_added_where_there_is_none(first: str) -> None:
    text = text_of(COUNTS, STEPS.replace("w =", "wide =").replace("p3, w)", "p3, wide)"))
    text = text.replace("zero = s32[] constant(0)", f"zero = s32[] {first}")
    module, context = simplified(text)
    start = "1" if "constant" in first else first
    assert loop_in(module) == Loop(
        [start, "s.1", "s.2", "s.3", "0"],
        ["p.0", "p.1", "p.2", SUM.format(4), "add(p.4, 1)"],
        "compare(add(q.0, multiply(q.4, 1)), 3)",
        "(add(w.0, multiply(w.4, 1)), add(w.1, multiply(w.4, 3)), "
        "add(w.2, multiply(w.4, -2)), w.3)",
    )
    assert said(context) == ["applied w: 3 induction variables now computed from another one"]


def test_counters_of_each_type_are_merged_apart() -> None:
    text = text_of(
        "s32[]; s8[]; s8[]; s32[]",
        "two = s8[] constant(2); a = s8[] add(p1, two); b = s8[] add(p2, two); "
        "c = s32[] add(p3, one); next, a, b, c",
    )
    module, context = simplified(text)
    assert loop_in(module) == Loop(
        ["0", "s.1", "s.2", "s.3", "0"],
        ["add(p.0, 1)", "p.1", "p.2", "p.3", "add(p.4, 1)"],
        LESS,
        "(w.0, add(w.1, multiply(w.4, 2)), add(w.2, multiply(w.4, 2)), add(w.3, multiply(w.0, 1)))",
    )
    assert said(context) == ["applied w: 3 induction variables now computed from another one"]
    assert context.applications.made == 2


@pytest.mark.parametrize(
    "starts", ["tuple(three, {})", 'custom-call(three, {}), custom_call_target="f"']
)
def test_a_counter_that_may_not_start_at_0_does_not_count_trips(starts: str) -> None:
    # The one with step 1 starts as the first parameter, or as part of something made elsewhere.
    body = "two = s32[] constant(2); a = s32[] add(p1, one); b = s32[] add(p2, two); next, a, b"
    text = text_of("s32[]; s32[]; s32[]", body, starts="s.1, s.2", given=starts, trips=9)
    module, _ = simplified(text.replace("zero = s32[] constant(0)", "three = s32[] constant(3)"))
    assert loop_in(module).body == ["p.0", "p.1", "p.2", "add(p.3, 1)"]


def test_a_type_with_one_counter_is_no_reason_to_leave_the_others() -> None:
    body = "two = s8[] constant(2); a = s8[] add(p1, two); b = s8[] add(p2, two); next, a, b"
    module, _ = simplified(text_of("s32[]; s8[]; s8[]", body))
    assert loop_in(module).body == ["add(p.0, 1)", "p.1", "p.2", "add(p.3, 1)"]


def test_what_a_trip_does_not_put_together_itself_is_not_merged() -> None:
    text = text_of("s32[]; s32[]", "two = s32[] constant(2); a = s32[] add(p1, two); next, a",
                   root='custom-call({}), custom_call_target="f"')  # fmt: skip
    simplified(text, changes=False)


@pytest.mark.parametrize("most", [0, 1])
def test_at_the_limit_the_counters_of_other_types_stay(most: int) -> None:
    text = text_of(
        "s32[]; s8[]; s8[]; s32[]",
        "two = s8[] constant(2); a = s8[] add(p1, two); b = s8[] add(p2, two); "
        "c = s32[] add(p3, one); next, a, b, c",
    )
    module, context = simplified(text, most=most, changes=most > 0)
    assert len(loop_in(module).starts) == 4
    merged = "applied w: 1 induction variable now computed from another one"
    assert said(context) == [merged if most else THREE_TRIPS]


@pytest.mark.parametrize(
    ("state", "body"),
    [
        # Alone of its type; not a scalar; a type that XLA leaves alone; a float.
        ("s32[]; s8[]", "two = s8[] constant(2); a = s8[] add(p1, two); next, a"),
        ("s32[]; s32[1]", "two = s32[1] constant({2}); a = s32[1] add(p1, two); next, a"),
        ("s32[]; s16[]; s16[]", "two = s16[] constant(2); a = s16[] add(p1, two); "
         "b = s16[] add(p2, two); next, a, b"),
        ("s32[]; f32[]; f32[]", "two = f32[] constant(2); a = f32[] add(p1, two); "
         "b = f32[] add(p2, two); next, a, b"),
        # Not a sum; of another element; with what is no constant.
        ("s32[]; s32[]", "two = s32[] constant(2); a = s32[] subtract(p1, two); next, a"),
        ("s32[]; s32[]; s32[]", "two = s32[] constant(2); a = s32[] add(p2, two); "
         "b = s32[] add(p1, two); next, a, b"),
        ("s32[]; s32[]", "a = s32[] add(p1, p1); next, a"),
        ("s32[]; s32[]", "m = s32[] negate(p1); a = s32[] add(m, one); next, a"),
    ],
)  # fmt: skip
def test_what_does_not_go_in_step_is_not_merged(state: str, body: str) -> None:
    _, context = simplified(text_of(state, body), changes=False)
    assert said(context) == [THREE_TRIPS]


def test_a_merged_counter_keeps_its_original_value() -> None:
    entry = "w = (s32[], s32[], s32[]) while(state), condition=condition, body=body"
    for index, notes in enumerate(("", "", "", ', origin={{"mine"}}')):
        entry += f"\n  x{index} = s32[] get-tuple-element(w), index={min(index, 2)}{notes}"
    entry += "\n  c = (s32[], s32[], s32[]) copy(w)"
    entry += "\n  ROOT r = (s32[], s32[], s32[], s32[]) tuple(x0, x1, x2, x3)"
    text = text_of(
        "s32[]; s32[]; s32[]",
        "two = s32[] constant(2); a = s32[] add(p1, two); "
        'b = s32[] add(p2, two), origin={{"count"}}; next, a, b',
        entry=entry,
    )
    module, _ = simplified(text)
    origins = [read.attributes.get("origin") for read in module.entry.root.operands]
    assert origins == [None, None, '{{"count"}}', '{{"mine"}}']
    sums = [i for i in module.entry.instructions if i.opcode is Opcode.ADD]
    assert [i.attributes.get("origin") for i in sums] == [None, '{{"count"}}']


# -- nested states ----------------------------------------------------------------------------

NESTED = "s32[]; (f32[4], (f32[2], ())); (); ((s32[2]))"
TURNED = (
    "x = f32[4] get-tuple-element(p1), index=0; i = (f32[2], ()) get-tuple-element(p1), index=1; "
    "y = f32[2] get-tuple-element(i), index=0; e = () get-tuple-element(i), index=1; "
    "x2 = f32[4] negate(x); y2 = f32[2] sine(y); i2 = (f32[2], ()) tuple(y2, e); "
    "o2 = (f32[4], (f32[2], ())) tuple(x2, i2); next, o2, p2, p3"
)


def test_all_arrays_of_a_nested_state_are_elements_of_their_own() -> None:
    module, context = simplified(text_of(NESTED, TURNED))
    assert loop_in(module) == Loop(
        ["0", "s.1.0", "s.1.1.0", "s.3.0.0"],
        ["add(p.0, 1)", "negate(p.1)", "sine(p.2)", "p.3"],
        LESS,
        "(w.0, (w.1, (w.2, ())), (), ((w.3)))",
    )
    assert said(context) == ["applied w: 4 elements made of its state of nested tuples"]


def test_a_nested_state_stays_at_the_limit() -> None:
    module, context = simplified(text_of(NESTED, TURNED), most=0, changes=False)
    assert module.is_pristine
    assert said(context) == [THREE_TRIPS]
