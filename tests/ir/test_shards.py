"""Parts of arrays by device: tiles, subgroups, meshes, and Shardy's forms of them."""

from __future__ import annotations

import pytest

from hloopt.ir.attributes.values.shards import Shards, mesh_shards, shards_of
from hloopt.ir.attributes.values.shardy import (
    parse_manual_axes,
    parse_shardy_meshes,
    parse_shardy_shardings,
)


@pytest.mark.parametrize(
    ("sharding", "counts", "places"),
    [
        ("{replicated}", (1,), [0, 0, 0, 0]),
        ("{devices=[4]<=[4]}", (4,), [0, 1, 2, 3]),
        ("{devices=[4]3,2,1,0}", (4,), [3, 2, 1, 0]),
        ("{devices=[2,2]<=[4] last_tile_dim_replicate}", (2,), [0, 0, 1, 1]),
        ("{devices=[2,2]<=[2,2]T(1,0) last_tile_dim_replicate}", (2,), [0, 1, 0, 1]),
        ("{maximal device=2}", (1,), [None, None, 0, None]),
        ("{mesh['a'=2,'b'=2], [{'b'}]}", (2,), [0, 1, 0, 1]),
        ("{mesh['a'=2,'b'=2], [{'b', 'a'}]}", (4,), [0, 2, 1, 3]),
        ("{mesh['a'=4], [{'a':(2)2}]}", (2,), [0, 1, 0, 1]),
        ("{mesh['a'=2,'b'=2], device_ids=(3,2,1,0), [{'a', ?}]}", (2,), [1, 1, 0, 0]),
        ("{mesh['a'=2,'b'=2], replicated}", (1,), [0, 0, 0, 0]),
    ],
)
def test_parts(sharding: str, counts: tuple[int, ...], places: list[int | None]) -> None:
    found = shards_of(sharding, 1, 4)
    assert isinstance(found, Shards)
    assert found.counts == counts
    assert [place and place[0] for place in found.places] == places
    assert set(found.groups) == {0}


@pytest.mark.parametrize(
    ("sharding", "groups"),
    [
        ("{manual}", (0, 1, 2, 3)),
        ("{devices=[1,2,2]<=[4] last_tile_dims={manual, replicated}}", (0, 0, 1, 1)),
        ("{mesh['a'=2,'b'=2], [{}], manual={'b'}}", (0, 1, 0, 1)),
    ],
)
def test_manual_subgroups_have_arrays_of_their_own(sharding: str, groups: tuple[int, ...]) -> None:
    found = shards_of(sharding, 1, 4)
    assert isinstance(found, Shards)
    assert found.groups == groups


@pytest.mark.parametrize(
    ("sharding", "why"),
    [
        ("{unknown}", "does not say"),
        ("{devices=[2,2]<=[4] last_tile_dims={unreduced}}", "has a subgroup that is unreduced"),
        ("{devices=[2,2]<=[4]}", "is not one of 1 dimensions"),
        ("{devices=[8]<=[8]}", "names device 4 of 4"),
        ("{mesh['a'=4], [{}], unreduced={'a'}}", "leaves sums unreduced"),
    ],
)
def test_what_does_not_tell_says_why(sharding: str, why: str) -> None:
    found = shards_of(sharding, 1, 4)
    assert isinstance(found, str)
    assert why in found


def test_parts_are_rounded_up() -> None:
    found = shards_of("{devices=[4]<=[4]}", 1, 4)
    assert isinstance(found, Shards)
    assert [found.part([n]) for n in (8, 9, 1, 0)] == [(2,), (3,), (1,), (0,)]


def test_shardy_says_the_same() -> None:
    meshes = parse_shardy_meshes('{mesh = #sdy.mesh<["a"=2, "b"=2]>}')
    text = (
        '#sdy.sharding_per_value<[<@mesh, [{"b", ?}p1]>, <mesh<["x"=4]>, [{}], replicated={"x"}>]>'
    )
    first, second = parse_shardy_shardings(text, meshes)
    found = [mesh_shards(sharding.mesh, sharding.dimensions, 4) for sharding in (first, second)]
    assert found == [
        shards_of("{mesh['a'=2,'b'=2], [{'b'}]}", 1, 4),
        shards_of("{replicated}", 1, 4),
    ]
    assert parse_manual_axes('#sdy<manual_axes{"a", "b"}>') == ("a", "b")
