"""Origins by tags: what a partitioner told about a tagged program."""

from __future__ import annotations

import re

from tests.sharding.sharding_pairs import pair

from hloopt.ir.module import Module
from hloopt.sharding.explain import Confidence, explain
from hloopt.sharding.tags import origins_by_tag, tagged
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


def test_nothing_is_told_where_the_partitioner_made_others() -> None:
    before, after = pair("chained")
    _, tags = tagged(before)
    _, other = pair("gathered")
    assert origins_by_tag(other, after, tags) == {}
