"""Texts that are not one program before and after the partitioner."""

from __future__ import annotations

import pytest
from tests.sharding.sharding_pairs import NAMES, pair

from hloopt.diagnostics import HloError
from hloopt.sharding.belonging import check_belonging
from hloopt.sharding.shapes import DeviceShapes
from hloopt.text import parse_module

SMALL = """HloModule m, num_partitions=2
ENTRY e {
  x = f32[8] parameter(0), sharding={devices=[2]<=[2]}
  ROOT n = f32[8] negate(x), sharding={devices=[2]<=[2]}
}
"""
PART = """HloModule m, num_partitions=2
ENTRY e {
  x = f32[4] parameter(0)
  ROOT n = f32[4] negate(x)
}
"""
FUSED = """HloModule m, num_partitions=2
f { p = f32[4] parameter(0)  ROOT n = f32[4] negate(p) }
ENTRY e {
  x = f32[4] parameter(0)
  ROOT g = f32[4] fusion(x), kind=kLoop, calls=f
}
"""


@pytest.mark.parametrize("name", NAMES)
def test_the_two_sides_of_the_partitioner_belong_together(name: str) -> None:
    before, after = pair(name)
    check_belonging(before, after, DeviceShapes(before.num_partitions))


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (SMALL.replace(", num_partitions=2", ""), PART, "has num_partitions=1"),
        (SMALL.replace(", sharding={devices=[2]<=[2]}", ""), PART, "has a sharding"),
        (SMALL, PART.replace("=2", "=4"), "is for 2 partitions, the second one for 4"),
        (SMALL, FUSED, "%g of the second one is a fusion"),
        (SMALL, PART.replace("f32[4]", "f32[2]"), "parameter 0 is f32\\[2\\] in the second one"),
        (SMALL, PART.replace("f32", "f16"), "parameter 0 is f16\\[4\\] in the second one"),
        (
            SMALL,
            PART.replace("ROOT n = f32[4] negate(x)", "ROOT n = f32[4,1] reshape(x)"),
            "the result is f32\\[4,1\\] in the second one",
        ),
        (
            SMALL,
            PART.replace("negate(x)", "negate(y)").replace("x =", "y = f32[4] parameter(1)\n  x ="),
            "has 1 parameter, the second one 2",
        ),
        (
            SMALL.replace(
                "negate(x)", 'custom-call(x), custom_call_target="xla.sdy.FuncResultSharding"'
            ),
            PART,
            "%n of the first one calls xla.sdy.FuncResultSharding",
        ),
        (
            SMALL.replace("negate(x)", 'custom-call(x), custom_call_target="Sharding"'),
            PART,
            "%n of the first one calls Sharding: nothing is propagated yet",
        ),
        (
            SMALL.replace(
                "=2\n", '=2, frontend_attributes={xla.sdy.meshes="{mesh = #sdy.mesh<[]>}"}\n', 1
            ),
            PART,
            "still has the shardings of Shardy",
        ),
    ],
)
def test_texts_that_do_not_belong_together_are_refused(
    before: str, after: str, message: str
) -> None:
    with pytest.raises(HloError, match=message):
        check_belonging(parse_module(before), parse_module(after), DeviceShapes(2))


def test_a_sharding_that_does_not_tell_parts_is_taken_as_it_comes() -> None:
    before = SMALL.replace("[2]<=[2]}", "[1,2]<=[2] last_tile_dims={unreduced}}")
    check_belonging(parse_module(before), parse_module(PART), DeviceShapes(2))
