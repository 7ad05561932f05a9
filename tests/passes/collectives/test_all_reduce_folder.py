"""All-reduces of all-reduces: those that are folded, and why others are not."""

from __future__ import annotations

import pytest
from tests.passes.checked_run import run_checked
from tests.passes.collectives.test_all_reduce_passes import entry, missed


def test_groups_over_all_partitions_are_not_folded() -> None:
    text = entry(
        """x = f32[4] parameter(0)
        one = f32[4] all-reduce(x), channel_id=1, replica_groups={{0,1},{2,3}}, to_apply=sum
        ROOT two = f32[4] all-reduce(one), channel_id=2, replica_groups={{0,2},{1,3}}, to_apply=sum
        """,
        partitions=2,
    )
    assert missed("all-reduce-folder", text) == ["both reduce over all partitions"]


def test_groups_that_make_up_no_larger_ones_are_not_folded() -> None:
    text = entry(
        """x = f32[4] parameter(0)
        one = f32[4] all-reduce(x), replica_groups={{0,1},{2},{3}}, to_apply=sum
        ROOT two = f32[4] all-reduce(one), replica_groups={{0,2},{1,3}}, to_apply=sum"""
    )
    reason = "its groups and those of %two make up no larger ones"
    assert missed("all-reduce-folder", text) == [reason]


FIRST = "replica_groups={{0,1},{2,3}}, to_apply=sum"


SECOND = "replica_groups={{0,2},{1,3}}, to_apply=sum"


@pytest.mark.parametrize(
    ("first", "second", "rest", "reason"),
    [
        (FIRST, SECOND, "ROOT t = (f32[4], f32[4]) tuple(one, two)", "not only %two uses it"),
        (FIRST + ", control-predecessors={x}", SECOND, "",
         "%one has several operands or control dependencies"),
        (FIRST, SECOND + ", control-predecessors={x}", "",
         "%two has several operands or control dependencies"),
        (FIRST + ", constrain_layout=true", SECOND, "", "the layout of %one is constrained"),
        (FIRST, SECOND + ", constrain_layout=true", "", "the layout of %two is constrained"),
        (FIRST, SECOND.replace("sum", "most"), "", "%two reduces in another way"),
        (FIRST.replace("sum", "last"), SECOND.replace("sum", "last"), "",
         "%two reduces in another way"),
        (FIRST + ", channel_id=1, use_global_device_ids=true", SECOND, "",
         "its mode is flattened_id, that of %two is cross_replica"),
        ("to_apply=sum", SECOND, "", "%one lists no groups"),
        (FIRST, "to_apply=sum", "", "%two lists no groups"),
        (FIRST, "replica_groups={{0,1},{2,3}}, to_apply=sum", "",
         "%two would count a device twice"),
    ],
)  # fmt: skip
def test_all_reduces_that_are_not_folded(first: str, second: str, rest: str, reason: str) -> None:
    text = entry(
        f"""x = f32[4] parameter(0)
        one = f32[4] all-reduce(x), {first}
        two = f32[4] all-reduce(one), {second}
        {rest}"""
    )
    assert missed("all-reduce-folder", text) == [reason]


def test_what_is_folded_has_a_channel_of_its_own_if_it_had_one() -> None:
    global_ids = ", use_global_device_ids=true, channel_id="
    for ids, expected in ((("", ""), None), ((f"{global_ids}4", f"{global_ids}7"), "8")):
        text = entry(
            f"""x = f32[4] parameter(0)
            one = f32[4] all-reduce(x), {FIRST}{ids[0]}
            ROOT two = f32[4] all-reduce(one), {SECOND}{ids[1]}"""
        )
        root = run_checked("all-reduce-folder", text).entry.root
        assert root.attributes["replica_groups"] == "{{0,1,2,3}}"
        assert root.attributes.get("channel_id") == expected
