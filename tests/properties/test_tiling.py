"""Sizes of tiled layouts: laws, worked examples, and the texts of tables and corpus."""

from __future__ import annotations

import re
from contextlib import suppress
from math import prod
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hloopt.diagnostics import HloError
from hloopt.ir.shapes.shape import Shape
from hloopt.ir.shapes.shape_parser import parse_shape
from hloopt.ir.shapes.shape_size import data_bytes, shape_bytes
from hloopt.ir.shapes.tiling import padded_count, padded_dimensions
from hloopt.memory.backends import CPU, TPU
from hloopt.memory.schedulers.schedule import Algorithm, schedule_module
from hloopt.memory.sizes import CPU_SIZES, GPU_SIZES, TPU_SIZES, SizeRule
from hloopt.text import parse_module

TYPES = ("f32", "bf16", "pred", "s4", "u2", "f8e4m3fn", "c64", "s64")


@st.composite
def tiled_arrays(draw: st.DrawFn) -> tuple[Shape, list[int]]:
    """An array in a layout with tiles, and the first tile from minor to major."""
    rank = draw(st.integers(0, 4))
    dimensions = [draw(st.integers(0, 40)) for _ in range(rank)]
    order = draw(st.permutations(range(rank)))
    tile = [draw(st.integers(1, 16)) for _ in range(draw(st.integers(1, 4)))]
    inner = draw(st.sampled_from(["", "(2,1)", "(4,128)(2,1)"]))
    element = draw(st.sampled_from(TYPES))
    bits = "E(4)" if element == "s4" and draw(st.booleans()) else ""
    sizes = ",".join(map(str, dimensions))
    tiles = ",".join(map(str, reversed(tile)))
    layout = f"{{{','.join(map(str, order))}:T({tiles}){inner}{bits}}}"
    return parse_shape(f"{element}[{sizes}]{layout}"), tile


@given(tiled_arrays())
def test_padding_is_up_to_whole_tiles_and_no_more(drawn: tuple[Shape, list[int]]) -> None:
    array, tile = drawn
    padded = padded_dimensions(array)
    sizes = [array.dimensions[number] for number in array.layout.minor_to_major]
    assert len(padded) == len(sizes)
    for number, (size, larger) in enumerate(zip(sizes, padded, strict=True)):
        multiple = tile[number] if number < len(tile) else 1
        assert larger % multiple == 0
        assert size <= larger < size + multiple


@given(tiled_arrays())
def test_an_array_is_never_smaller_than_its_elements(drawn: tuple[Shape, list[int]]) -> None:
    array, _ = drawn
    assert TPU_SIZES.bytes(array) >= data_bytes(array) == shape_bytes(array)
    assert (TPU_SIZES.bytes(array) == 0) == (0 in array.dimensions)


@given(tiled_arrays())
def test_what_is_padded_needs_no_more_padding(drawn: tuple[Shape, list[int]]) -> None:
    array, _ = drawn
    sizes = dict(zip(array.layout.minor_to_major, padded_dimensions(array), strict=True))
    text = ",".join(str(sizes[number]) for number in range(array.rank))
    larger = parse_shape(re.sub(r"\[[\d,]*\]", f"[{text}]", array.text, count=1))
    assert TPU_SIZES.bytes(larger) == shape_bytes(larger) == TPU_SIZES.bytes(array)


@given(tiled_arrays())
def test_tiles_of_ones_pad_nothing(drawn: tuple[Shape, list[int]]) -> None:
    array, _ = drawn
    text = re.sub(r"T\([\d,]+\)", "T(1,1)", array.text)
    assert TPU_SIZES.bytes(parse_shape(text)) == shape_bytes(array)


@given(tiled_arrays(), st.integers(2, 9))
def test_tail_padding_rounds_the_number_of_elements(
    drawn: tuple[Shape, list[int]], multiple: int
) -> None:
    array, _ = drawn
    count = prod(padded_dimensions(array))
    text = re.sub(r"(T(\([\d,]+\))+)", rf"\1L({multiple})", array.text)
    padded = padded_count(parse_shape(text))
    assert padded % multiple == 0
    assert count <= padded < count + multiple


@pytest.mark.parametrize(
    ("shape", "size"),
    [
        ("f32[10,10]{1,0:T(8,128)}", 16 * 128 * 4),
        ("f32[10,10]{0,1:T(8,128)}", 16 * 128 * 4),
        ("f32[3,10,200]{2,1,0:T(8,128)}", 3 * 16 * 256 * 4),
        ("f32[3,10,200]{0,1,2:T(8,128)}", 200 * 16 * 128 * 4),
        ("bf16[10,10]{1,0:T(8,128)(2,1)}", 16 * 128 * 2),
        ("bf16[16,128]{1,0:T(16,128)(2,1)}", 16 * 128 * 2),
        ("s4[10,10]{1,0:T(8,128)E(4)}", 16 * 128 // 2),
        ("s4[10,10]{1,0:T(8,128)}", 16 * 128),
        ("pred[5]{0:T(1024)}", 1024),
        ("f32[]{:T(128)}", 4),  # a tile pads no dimension that is not there
        ("f32[7]{0:T(8,128)}", 128 * 4),
        ("f32[0,7]{1,0:T(8,128)}", 0),
        ("f32[7,0]{1,0:T(8,128)}", 0),
        ("f32[2,3,5]{2,1,0:T(*,8,128)}", 8 * 128 * 4),  # 2 · 3 is padded as one dimension
        ("f32[2,3,5]{2,1,0:T(*,4)}", 2 * 16 * 4),  # 3 · 5
        ("f32[3,5]{1,0:T(*,*)}", 15 * 4),
        ("f32[<=10,10]{1,0:T(8,128)}", 16 * 128 * 4 + 8),
        ("s32[<=4096]{0:T(8)M(1024)}", 4096 * 4 + 1024),  # their sizes, before the data
        ("s32[4096]{0:T(8)M(1024)}", 4096 * 4),
        ("s4[<=9]{0:T(16)E(4)}", 8 + 4),
        ("f32[10]{0:L(16)}", 64),
        ("(f32[10]{0:T(128)}, f32[10]{0:T(128)})", 16),
        ("token[]", 0),
    ],
)
def test_worked_examples(shape: str, size: int) -> None:
    assert TPU_SIZES.bytes(parse_shape(shape)) == size


_TILED = re.compile(r"\b[a-z]\w*\[[\d,<=]*\]\{[\d,]*:[^}]*T\([^}]*\}")


def _tiled_texts(folder: Path) -> set[str]:
    """The tiled shapes of all texts in tables, corpus and what XLA printed."""
    found: set[str] = set()
    for part in ("conformance", "corpus", "oracle"):
        for path in (folder / part).rglob("*"):
            if path.suffix in (".jsonl", ".hlo", ".txt"):
                found.update(_TILED.findall(path.read_text(encoding="utf-8", errors="replace")))
    return found


def _parsed(text: str) -> Shape | None:
    """The shape; None for what XLA refuses, too: tables have such texts on purpose."""
    with suppress(HloError):
        return parse_shape(text)
    return None


@pytest.mark.parametrize(
    ("rule", "expected"), [(CPU_SIZES, 100 * 4), (GPU_SIZES, 100 * 4), (TPU_SIZES, 16 * 128 * 4)]
)
def test_only_the_rule_of_tpu_pads(rule: SizeRule, expected: int) -> None:
    assert rule.bytes(parse_shape("f32[10,10]{1,0:T(8,128)}")) == expected


def test_a_memory_scheduler_for_tpu_counts_padding() -> None:
    module = parse_module("""HloModule m
ENTRY e {
  p = f32[1024]{0:T(128)} parameter(0)
  a = f32[1024]{0:T(128)} negate(p)
  b = f32[8]{0:T(1024)} slice(a), slice={[0:8]}
  ROOT c = f32[1024]{0:T(128)} exponential(a), control-predecessors={b}
}
""")
    peaks = [
        schedule_module(module, backend=backend).peaks[Algorithm.LIST] for backend in (CPU, TPU)
    ]
    assert peaks == [2 * 4096 + 8 * 4, 3 * 4096]  # c is written over a


def test_no_tiled_array_of_tables_and_corpus_is_smaller_than_its_elements(shared: Path) -> None:
    shapes = [shape for text in _tiled_texts(shared) if (shape := _parsed(text)) is not None]
    assert len(shapes) > 100
    for shape in shapes:
        assert TPU_SIZES.bytes(shape) >= data_bytes(shape)
