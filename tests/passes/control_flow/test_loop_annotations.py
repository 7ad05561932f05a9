"""Annotations of the elements of a loop's state, after the state has changed."""

from __future__ import annotations

import pytest
from tests.passes.control_flow.test_loop_state import loop_in, said, simplified, text_of, value_of

from hloopt.ir import Instruction, Module, Opcode


def notes_of(names: str, devices: str) -> str:
    """Annotations of the elements of a flat state: an original value and a device for each."""
    origins = ", ".join(f'{{"{name}"}}' for name in names)
    shardings = ", ".join(f"{{maximal device={device}}}" for device in devices)
    return f", sharding={{{shardings}}}, origin={{({origins})}}"


def attributes_of(names: str, devices: str) -> dict[str, str]:
    notes = notes_of(names, devices).removeprefix(", sharding=")
    sharding, _, origin = notes.partition(", origin=")
    return {"sharding": sharding, "origin": origin}


def said_of(value: Instruction) -> dict[str, str]:
    return {k: v for k, v in value.attributes.items() if k in ("sharding", "origin")}


def annotated(text: str, notes: str) -> str:
    """A loop with the same notes where its state starts, is taken, is made and is given."""
    for mark in ("parameter(0)\n  p0", "parameter(0)\n  j"):
        text = text.replace(mark, mark.replace("\n", f"{notes}\n"))
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if line.startswith(("  ROOT t =", "  state =")) or " while(" in line:
            lines[number] = line + notes
    return "\n".join(lines) + "\n"


def states(module: Module) -> list[Instruction]:
    (loop,) = module.instructions(Opcode.WHILE)
    body, condition = loop.called
    return [loop, loop.operands[0], body.parameters[0], body.root, condition.parameters[0]]


WHOLE = "w = ({}) while(state), condition=condition, body=body"
CASES = {
    "unused": (
        "s32[]; f32[2]; f32[4]", "n1 = f32[2] negate(p1); n2 = f32[4] sine(p2); next, n1, n2", "",
        "ROOT end = f32[4] get-tuple-element(w), index=2", "ac", "02",
    ),
    "never changed": (
        "s32[]; f32[2]; f32[4]", "n2 = f32[4] sine(p2); next, p1, n2", "",
        "ROOT end = (s32[], f32[2], f32[4]) copy(w)", "ac", "02",
    ),
    "merged": (
        "s32[]; f32[2]; f32[2]; f32[2]", "x = f32[2] add(p2, p3); n1 = f32[2] add(p1, x); "
        "next, n1, p2, p3", "zero, s.1, s.2, s.2",
        "ROOT end = (s32[], f32[2], f32[2], f32[2]) copy(w)", "abc", "012",
    ),
    "constant": (
        "s32[]; s32[]; f32[4]", "k = s32[] constant(5); n2 = f32[4] sine(p2); next, k, n2",
        "zero, five, s.2", "ROOT end = (s32[], s32[], f32[4]) copy(w)", "ac", "02",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_the_annotations_of_all_elements_that_stay_are_kept(case: str) -> None:
    state, body, starts, end, names, devices = CASES[case]
    count = state.count(";") + 1
    before = notes_of("abcd"[:count], "0123"[:count])
    entry = f"{WHOLE.format(state.replace(';', ','))}\n  {end}"
    text = annotated(text_of(state, body, starts=starts, entry=entry), before)
    text = text.replace("zero = s32[]", "five = s32[] constant(5)\n  zero = s32[]")
    module, _ = simplified(text)
    assert len(loop_in(module).starts) == len(names)
    for value in states(module):
        assert said_of(value) == attributes_of(names, devices), value
    user = module.entry.root
    assert said_of(user.operands[0]) == attributes_of("abcd"[:count], "0123"[:count])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            notes_of("ab", "01"),
            {
                "sharding": "{{maximal device=0}, {maximal device=1}, {replicated}}",
                "origin": '{({"a"}, {"b"}, {})}',
            },
        ),
        (", sharding={replicated}, origin={[synthetic_call]}", {}),
    ],
)
def test_a_counter_that_is_added_has_no_original_value_and_is_replicated(
    before: str, after: dict[str, str]
) -> None:
    body = "two = s32[] constant(2); a = s32[] add(p1, two); next, a"
    text = text_of("s32[]; s32[]", body, starts="first, s.1")
    text = text.replace("zero = s32[] constant(0)", "first = s32[] constant(1)")
    module, _ = simplified(annotated(text, before))
    for value in states(module):
        assert said_of(value) == after, value
    sharding, _, origin = before.removeprefix(", sharding=").partition(", origin=")
    assert said_of(module.entry.root) == {"sharding": sharding, "origin": origin}


NESTED = "s32[]; (f32[2], f32[4])"
TURNED = (
    "x = f32[2] get-tuple-element(p1), index=0; y = f32[4] get-tuple-element(p1), index=1; "
    "x2 = f32[2] negate(x); y2 = f32[4] sine(y); both = (f32[2], f32[4]) tuple(x2, y2); next, both"
)


def test_a_state_that_becomes_flat_keeps_the_annotations_of_its_arrays() -> None:
    before = notes_of("abc", "012").replace('({"a"}, {"b"}, {"c"})', '({"a"}, ({"b"}, {"c"}))')
    module, _ = simplified(annotated(text_of(NESTED, TURNED), before))
    for value in states(module):
        assert said_of(value) == attributes_of("abc", "012"), value
    assert said_of(module.entry.root)["origin"] == '{({"a"}, ({"b"}, {"c"}))}'


def test_a_state_that_stays_nested_has_no_original_value_where_it_loses_elements() -> None:
    state = f"{NESTED}; f32[4]; f32[4]"
    body = TURNED.replace("next, both", "x3 = f32[4] add(p2, p3); next, both, p2, p3")
    before = notes_of("abcde", "01234").replace('{"b"}, {"c"}', '({"b"}, {"c"})')
    module, context = simplified(
        annotated(text_of(state, body, starts="zero, s.1, s.2, s.2"), before)
    )
    assert said(context) == ["applied w: 1 element of its state merged with equal ones"]
    for value in states(module):
        assert said_of(value) == {"sharding": attributes_of("abcd", "0123")["sharding"]}, value


@pytest.mark.parametrize(
    ("notes", "after"),
    [
        (", sharding={replicated}", {}),
        (', origin={[synthetic_call]}', {}),
        ("", {}),
    ],
)  # fmt: skip
def test_annotations_that_are_not_of_each_array_go(notes: str, after: dict[str, str]) -> None:
    state, body, starts, end, *_ = CASES["never changed"]
    entry = f"{WHOLE.format(state.replace(';', ','))}\n  {end}"
    module, _ = simplified(annotated(text_of(state, body, starts=starts, entry=entry), notes))
    for value in states(module):
        assert said_of(value) == after, value


# -- other users of states --------------------------------------------------------------------

EFFECT = 'custom_call_target="f", custom_call_has_side_effect=true'


def test_what_else_reads_the_result_of_a_trip_goes_on_reading_all_of_it() -> None:
    text = text_of("s32[]; f32[4]; f32[4]", "next, p1, p2", starts="zero, s.1, s.1").replace(
        "tuple(next, p1, p2)",
        "tuple(next, p1, p2)\n  last = f32[4] get-tuple-element(t), index=2\n"
        f"  e = f32[4] custom-call(last), {EFFECT}",
    )
    module, context = simplified(text)
    assert said(context) == ["applied w: 1 element of its state merged with equal ones"]
    assert loop_in(module).body == ["add(p.0, 1)", "p.1"]
    effect = next(i for i in module.computations["body"].instructions if i.name == "e")
    whole = effect.operands[0].operands[0]
    assert value_of(whole) == "(add(p.0, 1), p.1, p.1)"


CONFIG = (
    '{{"known_trip_count":{{"n":"3"}},"known_induction_variable":{{"tuple_index":"0"}},'
    '"known_init_step":{{"init":"0","step":"1"}},"dynamic_variables":[]{}}}'
)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (CONFIG.format(""), '{"known_trip_count":{"n":"3"}}'),
        (CONFIG.format(',"a":[1]'), '{"known_trip_count":{"n":"3"},"a":[1]}'),
        ('{"known_trip_count": {"n":"3"}}', '{"known_trip_count": {"n":"3"}}'),
        ('{"dynamic_variables":[]}', None),
        ('{"known_init_step":{"init":"0","step":"1"}}', None),
        ('{"known_induction_variable":{"tuple_index":"0"}}', None),
        ('"words"', '"words"'),
        (None, None),
    ],
)
def test_the_backend_config_says_nothing_of_elements_by_number(
    before: str | None, after: str | None
) -> None:
    state, body, starts, end, *_ = CASES["never changed"]
    config = "" if before is None else f", backend_config={before}"
    entry = f"{WHOLE.format(state.replace(';', ','))}{config}\n  {end}"
    module, _ = simplified(text_of(state, body, starts=starts, entry=entry))
    (loop,) = module.instructions(Opcode.WHILE)
    assert loop.attributes.get("backend_config") == after


def test_frontend_attributes_of_a_loop_are_said_of_its_result_too() -> None:
    state, body, starts, end, *_ = CASES["never changed"]
    notes = ', frontend_attributes={a="b"}, metadata={op_name="loop"}'
    entry = f"{WHOLE.format(state.replace(';', ','))}{notes}\n  {end}"
    module, _ = simplified(text_of(state, body, starts=starts, entry=entry))
    result = module.entry.root.operands[0]
    assert result.opcode is Opcode.TUPLE
    assert dict(result.attributes) == {
        "metadata": '{op_name="loop"}',
        "frontend_attributes": '{a="b"}',
    }


def test_all_that_reads_a_loop_reads_the_old_state_made_of_the_new_one() -> None:
    state, body, starts, _, *_ = CASES["never changed"]
    entry = WHOLE.format(state.replace(";", ",")) + (
        "\n  x1 = f32[2] get-tuple-element(w), index=1\n"
        "  c = (s32[], f32[2], f32[4]) copy(w)\n"
        "  x2 = f32[4] get-tuple-element(w), index=2\n"
        "  ROOT r = (f32[2], (s32[], f32[2], f32[4]), f32[4]) tuple(x1, c, x2)"
    )
    module, _ = simplified(text_of(state, body, starts=starts, entry=entry))
    assert value_of(module.entry.root) == "(s.1, copy((w.0, s.1, w.1)), w.1)"
    (loop,) = module.instructions(Opcode.WHILE)
    assert {user.opcode for user in loop.users} == {Opcode.GET_TUPLE_ELEMENT}
