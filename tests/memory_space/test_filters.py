"""Overrides of prefetch times and of the order of allocation."""

from __future__ import annotations

from typing import Any

import pytest
from tests.memory_space.programs import named

from hloopt.analysis.flat_schedule import FlatSchedule
from hloopt.diagnostics import HloError
from hloopt.memory_space.options.filters import (
    FIRST,
    LAST,
    PreferredTimes,
    override_priority,
    prefetch_overrides,
    sort_order_overrides,
)
from hloopt.memory_space.use_site import UseSite
from hloopt.text import parse_module

MODULE = parse_module("""HloModule m, is_scheduled=true
ENTRY e { p = f32[6] parameter(0)
  t = (f32[6], (f32[6], f32[6])) parameter(1)
  negate0 = f32[6] negate(p)
  negate1 = f32[6] negate(negate0), metadata={op_name="x"}
  negate10 = f32[6] negate(negate1)
  call = f32[6] custom-call(negate10, t), custom_call_target="f"
  ROOT add = f32[6] add(call, p) }
""")
SCHEDULE = FlatSchedule.of(MODULE)  # p 0, t 1, negate0 2, negate1 3, negate10 4, call 5, add 6
ADD = UseSite(named(MODULE, "add"), 1)
PART = UseSite(named(MODULE, "call"), 1, (1, 0))


def preferred(*overrides: dict[str, Any] | str, use: UseSite = ADD, size: int = 24) -> int | None:
    data = [one for one in overrides if not isinstance(one, str)]
    found = prefetch_overrides(data or "".join(map(str, overrides)))
    return PreferredTimes(found, SCHEDULE).of(use, size, earliest=0, end=6)


def at(time: int, **filters: object) -> dict[str, Any]:
    """An override that is recognized by its time."""
    return {
        "hlo_operand_filter": filters,
        "override_options": {"prefetch_eagerness": time / 6},
    }


@pytest.mark.parametrize(
    ("filters", "matches"),
    [
        ({}, True),
        ({"size_gte": 24}, True),
        ({"size_gte": 25}, False),
        ({"size_lte": 24}, True),
        ({"size_lte": 23}, False),
        ({"operand_number": 1}, True),
        ({"operand_number": 0}, False),
        ({"instruction_name_regex": "add"}, True),
        ({"instruction_name_regex": "a.*"}, True),
        ({"instruction_name_regex": "ad"}, False),
        ({"instruction_regex": ".*"}, True),
        ({"instruction_regex": "%add = .*add.%call, %p.*"}, True),
        ({"instruction_regex": "%add"}, False),
        ({"tuple_index": {"index": []}}, True),
        ({"tuple_index": {}}, True),
        ({"tuple_index": [0]}, False),
        ({"size_gte": 24, "size_lte": 24, "operand_number": 0}, False),
    ],
)
def test_filters_of_uses(filters: dict[str, object], matches: bool) -> None:
    assert preferred(at(3, **filters)) == (3 if matches else None)


@pytest.mark.parametrize(
    ("index", "matches"), [([1, 0], True), ([1], False), ([1, 1], False), ([], False)]
)
def test_a_filter_of_a_part_of_a_tuple(index: list[int], matches: bool) -> None:
    assert preferred(at(2, tuple_index={"index": index}), use=PART) == (2 if matches else None)


@pytest.mark.parametrize(
    ("options", "time"),
    [
        ({"prefetch_eagerness": 0}, 0),
        ({"prefetch_eagerness": 0.5}, 3),
        ({"prefetch_eagerness": 0.7}, 4),
        ({"prefetch_eagerness": 1}, 6),
        ({"after_instruction": {"instruction_name_regex": "negate1"}}, 3),
        ({"before_instruction": {"instruction_name_regex": "negate1"}}, 2),
        ({"after_instruction": {"instruction_name_regex": "negate.*"}}, 2),
        ({"after_instruction": {"instruction_regex": "%negate10 .*"}}, 4),
        ({"after_instruction": {"instruction_name_regex": "add"}}, 6),
        ({"before_instruction": {"instruction_name_regex": "p"}}, -1),
        ({"before_instruction": {"instruction_name_regex": "nothing"}}, None),
        ({"after_instruction": {"instruction_name_regex": "nothing"}}, None),
    ],
)
def test_preferred_times(options: dict[str, object], time: int | None) -> None:
    assert preferred({"override_options": options}) == time


def test_eagerness_is_a_part_of_the_time_from_the_earliest_start() -> None:
    times = PreferredTimes(prefetch_overrides([at(3)]), SCHEDULE)
    assert times.of(ADD, 24, earliest=3, end=6) == 4


def test_the_first_override_that_matches_counts() -> None:
    assert preferred(at(1, size_gte=99), at(2, operand_number=1), at(3)) == 2
    lost = {"override_options": {"after_instruction": {"instruction_name_regex": "nothing"}}}
    assert preferred(lost, at(3)) is None


def test_the_text_form_says_the_same() -> None:
    text = """
    overrides { hlo_operand_filter { size_lte: 23 } override_options { prefetch_eagerness: 0.9 } }
    overrides {
      hlo_operand_filter {
        tuple_index { index: 1 index: 0 } operand_number: 1 instruction_name_regex: "c.*"
      }
      override_options { after_instruction { instruction_regex: "%?negate1 =.*" } }
    }
    """
    assert preferred(text, use=PART) == 3
    assert preferred(text) is None
    assert prefetch_overrides("") == prefetch_overrides([]) == []


# -- which buffers are allocated first -------------------------------------------------------------

DEFINITION = named(MODULE, "negate0"), ()
USES = [UseSite(named(MODULE, "negate1"), 0)]


def priority(*overrides: dict[str, Any], **more: bool) -> int:
    return override_priority(sort_order_overrides(overrides), 24, DEFINITION, USES, **more)


def to(number: int, **matcher: object) -> dict[str, Any]:
    return {"hlo_position_matcher": matcher, "override_options": {"assign_priority": number}}


@pytest.mark.parametrize(
    ("matcher", "matches"),
    [
        ({}, True),
        ({"size_lte": 24, "size_gte": 24}, True),
        ({"size_lte": 23}, False),
        ({"size_gte": 25}, False),
        ({"instruction_name_regex": "negate0"}, True),
        ({"instruction_name_regex": "negate1"}, False),
        ({"instruction_regex": "%negate0 .*"}, True),
        ({"instruction_regex": "%negate1 .*"}, False),
        ({"tuple_index": {"index": []}}, True),
        ({"tuple_index": {"index": [0]}}, False),
        ({"hlo_use_filter": {"instruction_name_regex": "negate1"}}, True),
        ({"hlo_use_filter": {"instruction_name_regex": "negate0"}}, False),
        ({"hlo_use_filter": {"operand_number": 1}}, False),
    ],
)
def test_filters_of_buffers(matcher: dict[str, object], matches: bool) -> None:
    assert priority(to(-7, **matcher)) == (-7 if matches else 0)


def test_priorities() -> None:
    first = {"override_options": {"assign_first": True}}
    last = {"override_options": {"assign_last": True}}
    assert (priority(first), priority(last), priority()) == (FIRST, LAST, 0)
    assert priority(to(3, size_lte=1), to(5), first) == 5
    none = to(3, size_lte=1)
    assert (priority(none, first), priority(none, last)) == (FIRST, LAST)
    assert priority({"override_options": {"assign_first": False}}) == 0


def test_cross_program_prefetches_see_their_own_overrides_only() -> None:
    general = to(1)
    special = {**to(2), "apply_to_cross_program_prefetches": True}
    assert priority(general, special) == 1
    assert priority(general, special, is_cross_program_prefetch=True) == 2
    assert priority(general, is_cross_program_prefetch=True) == 0


@pytest.mark.parametrize(
    ("given", "message", "help_text"),
    [
        ([{"size": 1}], "[0] has no field 'size'", "fields: hlo_position_matcher"),
        ([to(1), {}], "[1] has no 'override_options'", "add it"),
        ([{"override_options": {}}], "override_options takes one field", "assign_first"),
        ([{"override_options": {"assign_first": True, "assign_last": True}}], "takes one", ""),
        ([{"override_options": {"assign_first": 2}}], "assign_first is 2", "true or false"),
        ([{"override_options": {"assign_priority": 1.5}}], "assign_priority is 1.5", "an integer"),
        ([{"override_options": {"assign_priority": True}}], "is True", "an integer"),
        ([to(1, size_lt=1)], "hlo_position_matcher has no field 'size_lt'", "'size_lte'"),
        (
            [to(1, instruction_regex="(")],
            "instruction_regex: '(' is no regular expression: missing ), unterminated subpattern",
            "",
        ),
        ([to(1, instruction_regex=1)], "instruction_regex is 1", "a regular expression"),
        ([to(1, tuple_index=1)], "tuple_index is 1", "the numbers of a shape index"),
        ([to(1, tuple_index={"indices": [1]})], "tuple_index is {", "the numbers"),
        ([to(1, tuple_index=["x"])], "tuple_index is 'x'", "an integer"),
        (["first"], "[0] is 'first'", "it has fields"),
        ("override { }", "msa_sort_order_overrides has 'override'", "overrides {"),
        ("overrides { override_options { assign_first: yes } }", "is 'yes'", "true or false"),
        ("overrides {", "expected", "protocol buffer"),
    ],
)
def test_overrides_that_make_no_sense(given: Any, message: str, help_text: str) -> None:
    with pytest.raises(HloError) as caught:
        sort_order_overrides(given)
    assert message in caught.value.message
    assert help_text in str(caught.value.help)


def test_an_eagerness_is_a_number() -> None:
    for wrong in ("soon", [1], True):
        with pytest.raises(HloError, match="prefetch_eagerness is"):
            prefetch_overrides([{"override_options": {"prefetch_eagerness": wrong}}])
