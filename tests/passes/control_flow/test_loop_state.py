"""Values that simplified loops carry, as expressions of their state."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from tests.properties.consistency import assert_consistent

from hloopt.equivalence import Reference, RunSettings
from hloopt.ir import Instruction, Module, Opcode
from hloopt.pass_framework.applications import Applications
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module
from hloopt.verifier import verify_module

PASS = "simplify-while-loops"


class Loop(NamedTuple):
    """A loop as expressions of the elements of its state: `p.0` in the body, else `q.0`."""

    starts: list[str]
    body: list[str]
    condition: str
    result: str


def value_of(value: Instruction, path: tuple[int, ...] = ()) -> str:
    """A value, or an element of it, as an expression of parameters and loops."""
    if value.opcode is Opcode.GET_TUPLE_ELEMENT:
        return value_of(value.operands[0], (value.tuple_index, *path))
    if value.opcode is Opcode.TUPLE and path:
        return value_of(value.operands[path[0]], path[1:])
    if value.opcode is Opcode.TUPLE:
        return f"({', '.join(map(value_of, value.operands))})"
    steps = "".join(f".{index}" for index in path)
    if value.opcode is Opcode.CONSTANT:
        return value.payload + steps
    if value.opcode in (Opcode.PARAMETER, Opcode.WHILE):
        return value.name + steps
    return f"{value.opcode}({', '.join(map(value_of, value.operands))}){steps}"


def loop_in(module: Module) -> Loop:
    (loop,) = module.instructions(Opcode.WHILE)
    body, condition = loop.called
    for computation in loop.called:
        assert computation.parameters[0].shape is loop.shape
    count = range(len(loop.shape.elements))
    return Loop(
        [value_of(loop.operands[0], (i,)) for i in count],
        [value_of(body.root, (i,)) for i in count],
        value_of(condition.root),
        value_of(module.entry.root),
    )


def text_of(
    state: str,
    body: str,
    *,
    starts: str = "",
    entry: str = "",
    condition: str = "",
    given: str = "tuple({})",
    header: str = "",
    trips: int = 3,
    root: str = "tuple({})",
) -> str:
    """A loop that counts up in element 0; the lines of `body` end in what the next trip takes."""
    shapes = state.split("; ")
    whole = f"({', '.join(shapes)})"
    *lines, nexts = body.split("; ")
    inits = starts or ", ".join(["zero", *(f"s.{i}" for i in range(1, len(shapes)))])
    reads = "\n  ".join(
        f"p{i} = {shape} get-tuple-element(p), index={i}" for i, shape in enumerate(shapes)
    )
    parameters = "\n  ".join(
        f"s.{i} = {shape} parameter({i - 1})" for i, shape in enumerate(shapes) if i
    )
    newline = "\n  "
    return f"""HloModule m{header}
body {{
  p = {whole} parameter(0)
  {reads}
  one = s32[] constant(1)
  next = s32[] add(p0, one)
  {newline.join(lines)}
  ROOT t = {whole} {root.format(nexts)}
}}
condition {{
  q = {whole} parameter(0)
  j = s32[] get-tuple-element(q), index=0
  n = s32[] constant({trips})
  {condition}
  ROOT less = pred[] compare(j, n), direction=LT
}}
ENTRY e {{
  {parameters}
  zero = s32[] constant(0)
  state = {whole} {given.format(inits)}
  {entry or f"ROOT w = {whole} while(state), condition=condition, body=body"}
}}
"""


def simplified(
    text: str, *, most: int | None = None, changes: bool = True, **options: object
) -> tuple[Module, PassContext]:
    module = parse_module(text)
    assert verify_module(module) == []
    context = PassContext(PASS, applications=Applications(most))
    assert create_pass(PASS, options).run(module, context) is changes
    assert verify_module(module) == []
    assert_consistent(module)
    if not changes:
        assert context.applications.made == 0
    else:
        assert Reference(parse_module(text), RunSettings()).compare(module) is None
    return module, context


def said(context: PassContext) -> list[str]:
    return [f"{r.kind} {r.instruction}: {r.reason}" for r in context.remarks]


LESS = "compare(q.0, 3)"
THREE_TRIPS = "missed w: it makes 3 trips"


# -- elements that nothing needs ------------------------------------------------------------


def after(count: int, *reads: str) -> str:
    """The loop, and what reads it."""
    whole = ", ".join(["s32[]", *["f32[2]"] * (count - 1)])
    return "\n  ".join([f"w = ({whole}) while(state), condition=condition, body=body", *reads])


FIVE = "s32[]" + "; f32[2]" * 4
WORKS = "n2 = f32[2] negate(p2); n3 = f32[2] add(p3, p4); n4 = f32[2] sine(p4); "
WORKS += "next, p1, n2, n3, n4"
READS = (
    "x1 = f32[2] get-tuple-element(w), index=1",
    "x3 = f32[2] get-tuple-element(w), index=3",
    "ROOT r = (f32[2], f32[2]) tuple(x1, x3)",
)


def test_elements_that_no_trip_changes_or_nothing_needs_are_not_carried() -> None:
    module, context = simplified(text_of(FIVE, WORKS, entry=after(5, *READS)))
    assert loop_in(module) == Loop(
        ["0", "s.3", "s.4"],
        ["add(p.0, 1)", "add(p.1, p.2)", "sine(p.2)"],
        LESS,
        "(s.1, w.1)",
    )
    assert said(context) == ["applied w: 2 elements of its state removed: unused or never changed"]
    assert context.statistics == {"elements of its state removed: unused or never changed": 2}
    assert context.applications.made == 1


@pytest.mark.parametrize(
    ("reads", "kept"),
    [
        (("ROOT x = f32[2] get-tuple-element(w), index=2",), "2"),
        (("x2 = f32[2] get-tuple-element(w), index=2",
          "ROOT r = s32[] get-tuple-element(w), index=0"), ""),
        (("x2 = f32[2] get-tuple-element(w), index=2", "ROOT r = f32[2] sine(x2)"), "2"),
        (("ROOT x = f32[2] get-tuple-element(w), index=4",), "4"),
        (("ROOT x = f32[2] get-tuple-element(w), index=3",), "34"),
        (("ROOT x = f32[2] get-tuple-element(w), index=1",), ""),
        (("x1 = f32[2] get-tuple-element(w), index=1",
          "ROOT x = (s32[], f32[2], f32[2], f32[2], f32[2]) copy(w)"), "234"),
        (("x = s32[] get-tuple-element(w), index=0", "ROOT r = s32[] negate(x)"), ""),
    ],
)  # fmt: skip
def test_what_is_read_after_the_loop_stays_with_what_makes_it(
    reads: tuple[str, ...], kept: str
) -> None:
    module, context = simplified(text_of(FIVE, WORKS, entry=after(5, *reads)))
    (loop,) = module.instructions(Opcode.WHILE)
    names = [value_of(loop.operands[0], (i,)) for i in range(len(loop.shape.elements))]
    assert names == ["0", *(f"s.{index}" for index in kept)]
    count = 4 - len(kept)
    plural = "s" * (count != 1)
    assert said(context) == [
        f"applied w: {count} element{plural} of its state removed: unused or never changed"
    ]


EFFECT = 'custom_call_target="f", custom_call_has_side_effect=true'
NOTHING = after(5, "ROOT end = s32[] get-tuple-element(w), index=0")


@pytest.mark.parametrize(
    ("body", "condition", "kept"),
    [
        (f"e = f32[2] custom-call(p2), {EFFECT}; {WORKS}", "", "2"),
        (f"e = f32[2] custom-call(p3), {EFFECT}; {WORKS}", "", "34"),
        (f"c = f32[2] sine(p4); d = f32[2] sine(p2), control-predecessors={{c}}; {WORKS}", "",
         "24"),
        (WORKS, f"y = f32[2] get-tuple-element(q), index=4 e = f32[2] custom-call(y), {EFFECT}",
         "4"),
        (WORKS, "y = f32[2] get-tuple-element(q), index=4 e = f32[2] sine(y)", ""),
        (f"d = f32[2] add(p1, p2); {WORKS}", "", ""),
        # Dead code that dce leaves.
        (f'd = f32[2] custom-call(p2), custom_call_target="Sharding", sharding={{replicated}}; '
         f"{WORKS}", "", ""),
    ],
)  # fmt: skip
def test_side_effects_and_control_dependencies_keep_what_they_need(
    body: str, condition: str, kept: str
) -> None:
    module, _ = simplified(text_of(FIVE, body, condition=condition, entry=NOTHING))
    (loop,) = module.instructions(Opcode.WHILE)
    names = [value_of(loop.operands[0], (i,)) for i in range(len(loop.shape.elements))]
    assert names == ["0", *(f"s.{index}" for index in kept)]


def test_a_root_that_waits_for_something_keeps_no_elements() -> None:
    text = text_of(FIVE, WORKS, entry=NOTHING, root="tuple({}), control-predecessors={{one}}")
    module, _ = simplified(text)
    assert loop_in(module).starts == ["0"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (text_of(FIVE, WORKS, entry=NOTHING), None),
        (text_of(FIVE, f"c = {'(' + FIVE.replace(';', ',') + ')'} copy(p); {WORKS}",
                 entry=NOTHING), THREE_TRIPS),
        (text_of(FIVE, WORKS, entry=NOTHING,
                 condition=f"c = {'(' + FIVE.replace(';', ',') + ')'} copy(q)"), THREE_TRIPS),
        (text_of(FIVE, "n2 = f32[2] add(p2, p1); n3 = f32[2] add(p3, p2); "
                       "n4 = f32[2] add(p4, p3); n1 = f32[2] add(p1, p4); next, n1, n2, n3, n4"),
         THREE_TRIPS),
    ],
)  # fmt: skip
def test_a_state_that_is_needed_or_read_as_a_whole_stays(text: str, why: str | None) -> None:
    module, context = simplified(text, most=0, changes=False)
    assert module.is_pristine
    assert said(context) == [why or THREE_TRIPS]


# -- elements that are equal ------------------------------------------------------------------


def merged(body: str, starts: str = "zero, s.1, s.1, s.1", **more: str) -> tuple[Loop, list[str]]:
    state = "s32[]; f32[4]; f32[4]; f32[4]"
    module, context = simplified(text_of(state, body, starts=starts))
    return loop_in(module), said(context)


def test_elements_that_are_handed_on_alike_are_carried_once() -> None:
    loop, remarks = merged("n2 = f32[4] add(p1, p3); next, p1, n2, p3")
    assert loop == Loop(
        ["0", "s.1", "s.1"], ["add(p.0, 1)", "p.1", "add(p.1, p.1)"], LESS, "(w.0, w.1, w.2, s.1)"
    )
    assert remarks == ["applied w: 1 element of its state merged with equal ones"]


UPDATES = "k = f32[1] constant({7}); up1 = f32[4] dynamic-update-slice(p1, k, p0); "


@pytest.mark.parametrize(
    ("body", "body_after"),
    [
        ("up2 = f32[4] dynamic-update-slice(p2, k, p0); "
         "up3 = f32[4] dynamic-update-slice(p3, k, p0); next, up1, up2, up3",
         ["dynamic-update-slice(p.1, {7}, p.0)"]),
        ("up2 = f32[4] dynamic-update-slice(p2, k, p0); "
         "up3 = f32[4] dynamic-update-slice(p3, k, one); next, up1, up2, up3",
         ["dynamic-update-slice(p.1, {7}, p.0)", "dynamic-update-slice(p.2, {7}, 1)"]),
    ],
)  # fmt: skip
def test_elements_that_are_updated_alike_are_carried_once(body: str, body_after: list[str]) -> None:
    loop, remarks = merged(UPDATES + body)
    assert loop.body == ["add(p.0, 1)", *body_after]
    gone = 3 - len(body_after)
    plural = "s" * (gone > 1)
    assert remarks == [f"applied w: {gone} element{plural} of its state merged with equal ones"]
    elements = ["w.0", "w.1", "w.1", "w.1" if gone == 2 else "w.2"]
    assert loop.result == f"({', '.join(elements)})"


def test_elements_of_both_kinds_are_merged_in_one_run() -> None:
    state = "s32[]; f32[4]; f32[4]; f32[4]; f32[4]"
    text = text_of(
        state, UPDATES + "up2 = f32[4] dynamic-update-slice(p2, k, p0); next, up1, up2, p3, p4",
        starts="zero, s.1, s.1, s.2, s.2",
    )  # fmt: skip
    module, context = simplified(text)
    assert loop_in(module).starts == ["0", "s.1", "s.2"]
    assert said(context) == ["applied w: 2 elements of its state merged with equal ones"]


@pytest.mark.parametrize(
    ("body", "starts"),
    [
        # Other first values.
        ("n2 = f32[4] add(p1, p2); n3 = f32[4] add(p3, n2); next, p1, n2, n3", ""),
        # Updates of another element, of what is not of the state, with other values.
        (UPDATES + "up2 = f32[4] dynamic-update-slice(p3, k, p0); "
         "up3 = f32[4] dynamic-update-slice(p2, k, p0); next, up1, up2, up3",
         "zero, s.1, s.2, s.2"),
        (UPDATES + "a = f32[4] negate(p2); b = f32[4] negate(p3); "
         "up2 = f32[4] dynamic-update-slice(a, k, p0); "
         "up3 = f32[4] dynamic-update-slice(b, k, p0); next, up1, up2, up3", "zero, s.1, s.2, s.2"),
        (UPDATES + "z = f32[4] constant({1, 2, 3, 4}); "
         "up2 = f32[4] dynamic-update-slice(z, k, p0); up3 = f32[4] negate(p3); "
         "next, up1, up2, up3", "zero, s.1, s.2, s.2"),
        (UPDATES + "z = (f32[4], f32[4], f32[4], f32[4]) custom-call(p1), "
         'custom_call_target="f"; z2 = f32[4] get-tuple-element(z), index=2; '
         "z3 = f32[4] get-tuple-element(z), index=3; "
         "up2 = f32[4] dynamic-update-slice(z2, k, p0); "
         "up3 = f32[4] dynamic-update-slice(z3, k, p0); next, up1, up2, up3",
         "zero, s.1, s.2, s.2"),
        (UPDATES + "m = f32[1] constant({8}); up2 = f32[4] dynamic-update-slice(p2, m, p0); "
         "up3 = f32[4] negate(p3); next, up1, up2, up3", "zero, s.1, s.1, s.1"),
    ],
)  # fmt: skip
def test_elements_that_may_differ_are_not_merged(body: str, starts: str) -> None:
    state = "s32[]; f32[4]; f32[4]; f32[4]"
    entry = f"ROOT w = ({state.replace(';', ',')}) while(state), condition=condition, body=body"
    entry += ', frontend_attributes={xla_disable_while_loop_dce="true"}'
    _, context = simplified(text_of(state, body, starts=starts, entry=entry), changes=False)
    assert said(context) == [THREE_TRIPS]


@pytest.mark.parametrize("whole", ["read", "given", "root"])
def test_a_state_that_is_not_put_together_from_elements_is_not_looked_into(whole: str) -> None:
    state = "(s32[], f32[4], f32[4])"
    call = 'custom-call({}), custom_call_target="f"'
    text = text_of(
        "s32[]; f32[4]; f32[4]",
        ("c = {} copy(p); " if whole == "read" else "").format(state) + "next, p1, p2",
        starts="zero, s.1, s.1",
        given=call if whole == "given" else "tuple({})",
        root=call if whole == "root" else "tuple({})",
    )
    _, context = simplified(
        text.replace(
            "body=body", 'body=body, frontend_attributes={xla_disable_while_loop_dce="true"}'
        ),
        changes=False,
    )
    (remark,) = said(context)
    unknown = "missed w: its trip count is not known"
    assert remark.startswith(THREE_TRIPS if whole == "read" else unknown)
