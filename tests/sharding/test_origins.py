"""Origins of collectives at the stage of the partitioner, and behind it by their channels."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.sharding.sharding_pairs import pair, paths_of

from hloopt.diagnostics import HloError
from hloopt.ir import Module
from hloopt.sharding.explain import Confidence
from hloopt.sharding.origins import Origin, origins_of
from hloopt.text import parse_module


def changed(name: str, *pairs: tuple[str, str]) -> Module:
    """What the partitioner made of a program, changed as later passes do."""
    text = Path(paths_of(name)[1]).read_text(encoding="utf-8")
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    return parse_module(text)


def later(name: str, *pairs: tuple[str, str]) -> dict[str, Origin]:
    """The origins in a later module."""
    return origins_of(changed(name, *pairs), *pair(name))


def test_what_the_partitioner_made_has_origins_by_name() -> None:
    before, after = pair("gathered")
    (found,) = origins_of(after, before).items()
    assert found[0] == "all-gather"
    assert found[1].text() == "%d dot: operand reshard of %w, f.py:7"
    assert found[1].to_json() == {
        "made_by": "d",
        "opcode": "dot",
        "kind": "operand reshard",
        "value": "w",
        "source": "f.py:7",
        "confidence": "clear",
        "combined_with": 0,
    }


def test_a_later_collective_is_known_by_its_channel() -> None:
    assert later("gathered", ("%all-gather", "%ag.9"))["ag.9"].name == "d"


@pytest.mark.parametrize(
    "changes",
    [
        [("channel_id=1", "channel_id=7")],
        [("channel_id=1, ", ""), ("use_global_device_ids=true, ", "")],
    ],
)
def test_another_channel_or_none_has_no_origin(changes: list[tuple[str, str]]) -> None:
    assert later("gathered", *changes) == {}


def test_another_kind_of_one_channel_has_no_origin() -> None:
    changes = [
        ("%all-reduce = f32[8,32]{1,0} all-reduce(", "%c = f32[8,32]{1,0} collective-broadcast("),
        (", to_apply=%add.clone", ""),
        (", use_global_device_ids=true", ""),
        ("mesh['axis_0'=1,'axis_1'=4] {'axis_1'}", "{{0,1,2,3}}"),
    ]
    assert later("summed", *changes) == {}


def test_an_all_reduce_that_became_a_reduce_scatter_keeps_its_origin() -> None:
    changes = [
        ("ROOT %all-reduce = f32[8,32]{1,0} all-reduce(%dot)",
         "ROOT %rs = f32[2,32]{1,0} reduce-scatter(%dot), dimensions={0}"),
        ("->f32[8,32]{1,0}}", "->f32[2,32]{1,0}}"),
        ("param.1: f32[4,32]) -> f32[8,32]", "param.1: f32[4,32]) -> f32[2,32]"),
    ]  # fmt: skip
    assert later("summed", *changes)["rs"].kind == "partial result"


def test_what_is_combined_with_others_says_so() -> None:
    changes = [
        ("ROOT %all-reduce = f32[8,32]{1,0} all-reduce(%dot)",
         "%both = (f32[8,32]{1,0}, f32[8,32]{1,0}) all-reduce(%dot, %dot)"),
        ("to_apply=%add.clone\n", "to_apply=%add.clone\n  ROOT %first = f32[8,32]{1,0} "
         "get-tuple-element(%both), index=0\n"),
    ]  # fmt: skip
    origin = later("summed", *changes)["both"]
    assert origin.others == 1
    assert origin.text() == "%d dot: partial result, combined with 1 other"


def test_channels_that_come_twice_tell_nothing() -> None:
    before, after = pair("remat")
    twice = changed("remat", ("channel_id=2", "channel_id=1"))
    assert set(origins_of(after, before, after)) == {"all-gather", "all-gather.1"}
    assert origins_of(twice, before, twice) == {}


def test_an_async_start_has_the_origin_of_what_it_wraps() -> None:
    wrapped = """
%wrapped (p: f32[8,16]) -> f32[16,16] {
  %p = f32[8,16]{1,0} parameter(0)
  ROOT %inner = f32[16,16]{1,0} all-gather(%p), channel_id=1, replica_groups={{0,2},{1,3}},
    dimensions={0}, use_global_device_ids=true
}

ENTRY """
    text = Path(paths_of("gathered")[1]).read_text(encoding="utf-8")
    lines = text.replace("ENTRY ", wrapped).splitlines()
    start = "((f32[8,16]{1,0}), f32[16,16]{1,0})"
    lines = [
        f"  %s = {start} async-start(%param.1), calls=%wrapped\n"
        "  %all-gather = f32[16,16]{1,0} async-done(%s)"
        if line.startswith("  %all-gather =")
        else line
        for line in lines
    ]
    found = origins_of(parse_module("\n".join(lines)), *pair("gathered"))
    assert found["s"] == found["inner"]
    assert found["s"].name == "d"


def test_an_origin_that_is_not_found_says_so() -> None:
    origin = Origin("", "", "unknown", "", "", Confidence.AMBIGUOUS, 0)
    assert origin.text() == "an instruction that the texts do not tell"
    assert origin.to_json()["made_by"] is None


def test_names_are_shortened_where_there_is_little_room() -> None:
    origin = Origin("dot.1", "dot", "partial result", "", "f.py:1", Confidence.AMBIGUOUS, 0)
    assert origin.text(lambda name: name[:2]) == "%do dot: partial result, f., ambiguous"


def test_another_number_of_partitions_is_refused() -> None:
    with pytest.raises(HloError, match="gathered is no later stage"):
        later("gathered", ("num_partitions=4", "num_partitions=2"))


def test_other_parameters_are_refused() -> None:
    _, other = pair("summed")
    with pytest.raises(HloError, match="summed is no later stage"):
        origins_of(other, *pair("gathered"))
