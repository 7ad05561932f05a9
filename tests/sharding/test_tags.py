"""Origins by tags: what a partitioner told about a tagged program."""

from __future__ import annotations

import re

import pytest
from tests.sharding.sharding_pairs import pair

from hloopt.ir.module import Module
from hloopt.sharding.explain import Confidence, explain
from hloopt.sharding.tags import (
    agreed_origins,
    has_same_collectives,
    origins_by_tag,
    tagged,
    told_origins,
)
from hloopt.text import parse_module


def told(after: Module, tag: str) -> Module:
    """A partitioned module whose collectives all have a tag."""
    text = re.sub(r", metadata=\{[^{}]*\}", "", str(after))
    calls = r"^(.* (?:all-gather|all-reduce|all-to-all|collective-permute)\(.*)$"
    return parse_module(re.sub(calls, rf'\1, metadata={{op_name="{tag}"}}', text, flags=re.M))


def test_each_instruction_has_a_tag_of_its_own_in_a_copy() -> None:
    before, _ = pair("looped")
    text = str(before)
    copy, tags = tagged(before)
    assert len(tags) == before.instruction_count()
    assert str(before) == text
    for tag, instruction in tags.items():
        own = copy.computations[instruction.parent.name][instruction.name]
        assert own.attributes["metadata"] == f'{{op_name="{tag}"}}'


def test_tags_tell_origins() -> None:
    before, after = pair("chained")
    _, tags = tagged(before)
    tag = next(tag for tag, own in tags.items() if own.name == "padded")
    known = origins_by_tag(told(after, tag), after, tags)
    assert {c.name: own.name for c, own in known.items()} == {
        "collective-permute": "padded",
        "collective-permute.1": "padded",
    }
    for found in explain(before, after, known=known):
        assert found.confidence is Confidence.EXACT
        assert found.origin is not None
        assert found.origin.name == "padded"
        assert found.candidates == []


def test_an_origin_that_the_text_did_not_suggest_is_taken_over() -> None:
    before, after = pair("gathered")
    (collective,) = (e.collective.instruction for e in explain(before, after))
    (found,) = explain(before, after, known={collective: before["x"]})
    assert found.origin is before["x"]


def test_collectives_without_a_tag_are_not_told() -> None:
    before, after = pair("chained")
    _, tags = tagged(before)
    assert origins_by_tag(told(after, "jit(f)/pad"), after, tags) == {}


def agreed(name: str, origin: str, shape: str = "", *, times: int = 1) -> dict[str, str]:
    """Origins of which texts and tags say the same, where a partitioner made the collectives of a
    pair with another shape or several times, and tells one origin of all."""
    before, after = pair(name)
    _, tags = tagged(before)
    tag = next(tag for tag, own in tags.items() if own.name == origin)
    calls = re.compile(r"^ *(%(?:all-gather|collective-permute)[\w.]*) = (\S+)(.*)$", re.M)

    def again(match: re.Match[str]) -> str:
        name, own, rest = match.groups()
        copies = [f"  %again.{number} = {shape or own}{rest}" for number in range(times - 1)]
        return "\n".join([f"  {name} = {shape or own}{rest}", *copies])

    made = parse_module(calls.sub(again, str(told(after, tag))))
    known = agreed_origins(made, explain(before, after), tags)
    return {collective.name: own.name for collective, own in known.items()}


@pytest.mark.parametrize("shape", ["", "f32[1,16,16]", "f32[16,1,16]{2,1,0}"])
def test_collectives_in_other_forms_are_told_where_the_texts_say_the_same(shape: str) -> None:
    assert agreed("gathered", "d", shape) == {"all-gather": "d"}


@pytest.mark.parametrize("shape", ["f32[16,64]", "bf16[16,16]"])
def test_collectives_of_other_sizes_or_types_are_not_told(shape: str) -> None:
    assert agreed("gathered", "d", shape) == {}


def test_an_origin_that_the_texts_do_not_tell_is_not_agreed_on() -> None:
    assert agreed("gathered", "x") == {}
    assert agreed("chained", "padded") == {}


def test_an_origin_that_tags_name_more_often_is_not_agreed_on() -> None:
    assert set(agreed("chained", "cut").values()) == {"cut"}
    assert agreed("gathered", "d", times=2) == {}


def test_a_tag_of_what_makes_a_tuple_tells_what_the_texts_say_too() -> None:
    before, after = pair("tupled")
    _, tags = tagged(before)
    found = explain(before, after)
    for origin, known in (("t", ["t"]), ("p", []), ("b", ["b"])):
        tag = next(tag for tag, own in tags.items() if own.name == origin)
        made = told(after, tag)
        assert [own.name for own in told_origins(made, after, found, tags).values()] == known


def test_collectives_are_the_same_by_kind_shape_and_order() -> None:
    _, after = pair("chained")
    _, other = pair("gathered")
    assert has_same_collectives(after, after)
    assert not has_same_collectives(other, after)
