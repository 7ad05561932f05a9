"""Parts, copies and pictures of values in all forms of shardings."""

from __future__ import annotations

import pytest

from hloopt.ir.attributes.values.shards import Shards, shards_of
from hloopt.sharding.axes import parse_mesh_option
from hloopt.sharding.layouts import Layout, layouts_of, picture, ranges
from hloopt.text import parse_module

MESH = parse_mesh_option("a=2,b=2", 4)


def layouts(shape: str, rest: str, *, header: str = "", **how: bool) -> list[Layout]:
    module = parse_module(
        f"HloModule m, num_partitions=4{header}\n"
        f"ENTRY e {{ ROOT p = {shape} parameter(0){rest} }}\n"
    )
    options = {"is_part": False, "is_replicated": True} | how
    return [own for _, own in layouts_of(module.entry.root, 4, MESH, **options)]


@pytest.mark.parametrize(
    ("sharding", "text", "part", "copies", "redundant"),
    [
        ("{devices=[2,2]0,1,2,3}", "[{a}, {b}]", (4, 2), 1, 0),
        ("{devices=[2,2]<=[4]}", "[{a}, {b}]", (4, 2), 1, 0),
        ("{devices=[4,1]<=[4]}", "[{a, b}, {}]", (2, 4), 1, 0),
        ("{devices=[2,1,2]<=[4] last_tile_dim_replicate}", "[{a}, {}]", (4, 4), 2, 32),
        ("{replicated}", "[{}, {}]", (8, 4), 4, 96),
        ("{maximal device=2}", "maximal device=2", (8, 4), 1, 0),
        ("{manual}", "[{}, {}] manual", (8, 4), 1, 0),
        ("{devices=[2,1,2]<=[4] last_tile_dims={manual}}", "[{a}, {}] manual", (4, 4), 1, 0),
        ("{mesh['x'=2,'y'=2], [{'y'}, {}]}", "[{b}, {}]", (4, 4), 2, 32),
    ],
)
def test_all_forms_of_shardings_tell_parts_and_copies(
    sharding: str, text: str, part: tuple[int, ...], copies: int, redundant: int
) -> None:
    (found,) = layouts("f32[8,4]", f", sharding={sharding}")
    assert found.sharding == text
    assert found.part.dimensions == part
    assert found.copies == copies
    assert found.redundant_bytes == redundant
    assert found.bytes_per_device == part[0] * part[1] * 4 if redundant else True


@pytest.mark.parametrize(
    "sharding",
    [
        "devices=[2,1,2]<=[4] last_tile_dims={manual}",
        "devices=[2,1,2]<=[4] last_tile_dims={unreduced}",
        "mesh['x'=2,'y'=2], [{'y'}, {}]",
        "maximal device=2",
    ],
)
def test_without_a_mesh_a_sharding_is_as_xla_prints_it(sharding: str) -> None:
    value = f"f32[8,4] parameter(0), sharding={{{sharding}}}"
    module = parse_module(f"HloModule m, num_partitions=4\nENTRY e {{ ROOT p = {value} }}")
    found = layouts_of(module.entry.root, 4, None, is_part=False, is_replicated=True)
    assert [own.sharding for _, own in found] == [sharding]


def test_an_uneven_part_is_the_largest() -> None:
    (found,) = layouts("f32[7]", ", sharding={devices=[4]<=[4]}")
    assert (found.part.dimensions, found.bytes_per_device) == ((2,), 8)


def test_a_tuple_has_a_layout_for_each_leaf() -> None:
    found = layouts("(f32[8], s32[])", ", sharding={{devices=[4]<=[4]}, {replicated}}")
    assert [own.sharding for own in found] == ["[{a, b}]", "[]"]


def test_shardy_attributes_are_read_with_the_mesh_in_the_header() -> None:
    header = ', frontend_attributes={xla.sdy.meshes="{mesh = #sdy.mesh<[\\"dp\\"=2, \\"tp\\"=2]>}"}'
    text = ', frontend_attributes={xla.sdy.sharding="#sdy.sharding<@mesh, [{\\"tp\\"}, {}]>"}'
    (found,) = layouts("f32[8,4]", text, header=header)
    assert (found.sharding, found.part.dimensions, found.copies) == ("[{tp}, {}]", (4, 4), 2)


def test_shapes_of_a_partitioned_module_are_parts() -> None:
    (found,) = layouts("f32[2,4]", ", sharding={devices=[4,1]<=[4]}", is_part=True)
    assert (found.shape.dimensions, found.part.dimensions) == ((8, 4), (2, 4))


def test_a_value_without_a_sharding_is_replicated_or_left_out() -> None:
    (found,) = layouts("f32[8]", "")
    assert (found.sharding, found.copies) == ("[{}]", 4)
    assert layouts("f32[8]", "", is_replicated=False) == []


def test_a_sharding_that_does_not_tell_parts_says_why() -> None:
    (found,) = layouts("f32[8]", ", sharding={devices=[1,4]<=[4] last_tile_dims={unreduced}}")
    assert found.shards is None
    assert "does not say which part a device has" in found.why_unknown


@pytest.mark.parametrize(
    ("sharding", "rank", "cells"),
    [
        ("{devices=[2,2]<=[4]}", 2, [["0", "1"], ["2", "3"]]),
        ("{devices=[2,2]<=[2,2]T(1,0)}", 2, [["0", "2"], ["1", "3"]]),
        ("{devices=[2,1,2]<=[4] last_tile_dim_replicate}", 2, [["0-1"], ["2-3"]]),
        ("{devices=[1,4]<=[4]}", 2, [["0"], ["1"], ["2"], ["3"]]),
        ("{replicated}", 1, [["0-3"]]),
        ("{maximal device=2}", 1, [["2"]]),
    ],
)
def test_a_picture_has_the_devices_of_each_part(
    sharding: str, rank: int, cells: list[list[str]]
) -> None:
    shards = shards_of(sharding, rank, 4)
    assert isinstance(shards, Shards)
    assert picture(shards) == cells


@pytest.mark.parametrize(
    ("numbers", "text"),
    [([], ""), ([4], "4"), ([0, 1, 2, 5], "0-2,5"), ([3, 1], "1,3"), ([0, 2, 3], "0,2-3")],
)
def test_numbers_in_a_row_are_one_range(numbers: list[int], text: str) -> None:
    assert ranges(numbers) == text
