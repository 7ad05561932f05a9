"""Shardings and groups of devices in axes of a mesh."""

from __future__ import annotations

import pytest

from hloopt.diagnostics import HloError
from hloopt.ir.attributes.values.shards import Shards, shards_of
from hloopt.sharding.axes import axes_of_groups, in_axes, parse_mesh_option

MESH = parse_mesh_option("dp=2, tp=4", 8)


@pytest.mark.parametrize(
    ("sharding", "text"),
    [
        ("{devices=[2,4]<=[8]}", "[{dp}, {tp}]"),
        ("{devices=[4,2]<=[2,4]T(1,0)}", "[{tp}, {dp}]"),
        ("{devices=[2,1,4]<=[8] last_tile_dim_replicate}", "[{dp}, {}]"),
        ("{devices=[8,1]<=[8]}", "[{dp, tp}, {}]"),
        ("{devices=[1,8]<=[2,4]T(1,0)}", "[{}, {tp, dp}]"),
        ("{replicated}", "[{}, {}]"),
        ("{devices=[2,1,4]<=[8] last_tile_dims={manual}}", "[{dp}, {}] manual"),
        ("{devices=[2,1,4]<=[4,2]T(1,0) last_tile_dim_replicate}", None),
        ("{maximal device=3}", None),
    ],
)
def test_a_sharding_is_named_by_the_axes_that_cut_each_dimension(
    sharding: str, text: str | None
) -> None:
    shards = shards_of(sharding, 2, 8)
    assert isinstance(shards, Shards)
    assert in_axes(shards, MESH) == text


@pytest.mark.parametrize(
    ("groups", "axes"),
    [
        ([(0, 1, 2, 3), (4, 5, 6, 7)], ("tp",)),
        ([(0, 4), (1, 5), (2, 6), (3, 7)], ("dp",)),
        ([tuple(range(8))], ("dp", "tp")),
        ([(0, 1), (2, 3)], ("tp",)),
        ([(0, 9)], ()),
    ],
)
def test_groups_are_named_by_the_axes_along_which_their_devices_differ(
    groups: list[tuple[int, ...]], axes: tuple[str, ...]
) -> None:
    assert axes_of_groups(groups, MESH) == axes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dp", "'dp' is not a mesh"),
        ("dp=2,dp=4", "'dp=2,dp=4' is not a mesh"),
        ("dp=0", "'dp=0' is not a mesh"),
        ("dp=2,tp=2", "the mesh dp=2,tp=2 has 4 devices, the program is for 8"),
    ],
)
def test_a_mesh_that_is_none_is_refused(text: str, message: str) -> None:
    with pytest.raises(HloError, match=message):
        parse_mesh_option(text, 8)
