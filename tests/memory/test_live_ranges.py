"""From when to when values are needed."""

from __future__ import annotations

from tests.memory.modules import LOOP_CONDITION, assign, name_of, value_of

BODY = """
body { q = (s32[], f32[100]) parameter(0)
  j = s32[] get-tuple-element(q), index=0
  x = f32[100] get-tuple-element(q), index=1
  next = s32[] negate(j)
  ROOT r = (s32[], f32[100]) tuple(next, x) }"""


def ranges(*lines: str, header: str = "is_scheduled=true", before: str = "") -> dict[str, object]:
    assignment = assign(*lines, header=header, before=before)
    live = assignment.ranges
    return {
        name_of(assignment, value): (live.start[value], live.end[value])
        for value in assignment.flow.values()
        if live.start[value] >= 0
    }


def test_from_the_definition_to_the_last_reader() -> None:
    found = ranges(
        "a = f32[8] parameter(0)",
        "b = f32[8] negate(a)",
        "dead = f32[8] sine(b)",
        "c = f32[8] negate(b)",
    )
    # a parameter lives to the end, the root as well
    assert found == {"a": (0, 4), "b": (1, 3), "dead": (2, 2), "c": (3, 4)}


def test_an_aliased_parameter_ends_with_its_last_reader() -> None:
    found = ranges(
        "a = f32[8] parameter(0)",
        "b = f32[8] reverse(a), dimensions={0}",
        "c = f32[8] reverse(b), dimensions={0}",
        header="is_scheduled=true, input_output_alias={ {}: (0, {}) }",
    )
    assert found["a"] == (0, 1)


def test_what_stands_in_a_tuple_lives_as_long_as_the_tuple_does() -> None:
    found = ranges(
        "a = f32[8] parameter(0)",
        "b = f32[8] negate(a)",
        "t = (f32[8], f32[8]) tuple(b, a)",
        "g = f32[8] get-tuple-element(t), index=1",
        "r = f32[8] negate(g)",
    )
    assert found["b"] == (1, 2)  # the get-tuple-element reads the table only
    assert found["t"] == (2, 3)


def test_state_moves_from_the_start_of_a_loop_to_its_end() -> None:
    found = ranges(
        "a = s32[] parameter(0)",
        "b = f32[100] parameter(1)",
        "c = s32[] copy(a)",
        "t = (s32[], f32[100]) tuple(c, b)",
        "w = (s32[], f32[100]) while(t), condition=cond, body=body",
        "g = s32[] get-tuple-element(w), index=0",
        "r = s32[] negate(g)",
        before=LOOP_CONDITION + BODY,
    )
    # times: a b c t 0-3, condition 4-7, body 8-12, while 13
    assert [found[name] for name in ("c", "p.0?", "q.0?", "next", "w.0?")] == [
        *((2, 4), (4, 8), (8, 11), (11, 13), (13, 15))
    ]


def test_what_runs_asynchronously_lives_to_the_done() -> None:
    found = ranges(
        "a = f32[8] parameter(0)",
        "b = f32[8] negate(a)",
        "s = ((f32[8]), f32[8], u32[]) async-start(b), calls=f",
        "n = f32[8] negate(a)",
        "d = f32[8] async-done(s)",
        "r = f32[8] add(d, n)",
        before="""
f { x = f32[8] parameter(0)
  y = f32[8] sine(x)
  ROOT z = f32[8] cosine(y) }""",
    )
    assert found["y"] == (3, 7)
    assert found["b"] == (1, 7)  # held by the start until the done
    assert found["z"] == (4, 8)


def test_the_last_position_is_where_a_value_is_held_last() -> None:
    assignment = assign(
        "a = f32[8] parameter(0)",
        "b = f32[8] negate(a)",
        "c = f32[2,4] bitcast(b)",
        "r = f32[2,4] negate(c)",
    )
    position = assignment.ranges.last_position[value_of(assignment, "b")]
    assert (position.instruction.name, position.slot) == ("c", 0)


def test_values_written_over_while_they_are_needed_are_counted() -> None:
    lines = [
        "a = f32[8] parameter(0)",
        "u = f32[1] parameter(1)",
        "i = s32[] parameter(2)",
        "c = f32[8] sine(a)",
        "d = f32[8] dynamic-update-slice(c, u, i)",
    ]
    assert assign(*lines).ranges.conflicts == 0
    assert assign(*lines, "e = f32[8] add(c, d)").ranges.conflicts == 1


def test_a_loop_that_keeps_its_state_in_place_writes_over_nothing_that_is_needed() -> None:
    assignment = assign(
        "a = s32[] parameter(0)",
        "b = f32[100] parameter(1)",
        "c = s32[] copy(a)",
        "t = (s32[], f32[100]) tuple(c, b)",
        "w = (s32[], f32[100]) while(t), condition=cond, body=body",
        before=LOOP_CONDITION + BODY,
    )
    assert assignment.ranges.conflicts == 0
