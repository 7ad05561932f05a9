"""Places in alternate memory that overlap, and equal slices of arrays."""

from __future__ import annotations

import pytest
from tests.memory_space.chains import assign, chain

from hloopt.diagnostics import Defect
from hloopt.ir.shapes.shape_parser import parse_shape
from hloopt.memory_space.allocation.slices import Slicer
from hloopt.memory_space.costs.pickers import InstructionCountPicker
from hloopt.memory_space.heap.chunks import Chunk, ChunkHeap
from hloopt.memory_space.options.options import MemorySpaceOptions
from hloopt.memory_space.options.parts import SlicedPrefetchOptions
from hloopt.memory_space.program import Program
from hloopt.text import parse_module


@pytest.mark.parametrize(
    ("offset", "start", "end", "conflict"),
    [
        (16, 3, 5, None),  # the next byte
        (0, 3, 5, None),  # the next time
        (8, 2, 5, (8, 2)),
        (0, 0, 9, (0, 0)),
    ],
)
def test_a_conflict_is_an_address_and_a_time(
    offset: int, start: int, end: int, conflict: tuple[int, int] | None
) -> None:
    heap = ChunkHeap(8)
    heap.take(Chunk(0, 16), 0, 2)
    heap.take(Chunk(offset, 8), start, end)
    assert heap.conflict() == conflict


def test_one_place_is_no_conflict() -> None:
    heap, chunk = ChunkHeap(8), Chunk(0, 16)
    heap.take(chunk, 0, 2)
    heap.take(chunk, 1, 3)
    assert heap.conflict() is None


@pytest.mark.parametrize(
    ("start", "end", "copied", "free", "stays"),
    [
        (3, 5, False, True, True),  # after it
        (2, 5, False, False, True),  # a copy would fill what is read at 2
        (0, 1, False, True, True),  # what is there at 1 is updated in place
        (0, 2, False, False, True),
        (2, 5, True, False, True),
        (1, 5, True, False, False),  # the copy is there since 1
        (0, 1, True, True, False),
    ],
)
def test_a_place_that_is_shared(
    start: int, end: int, copied: bool, free: bool, stays: bool
) -> None:
    heap, chunk, other = ChunkHeap(8), Chunk(0, 16), Chunk(0, 16)
    heap.take(chunk, 1, 2, copied=copied)
    heap.unite(chunk, other)
    assert heap.is_free(other, start, end) is free
    assert heap.may_stay(other, start, end) is stays


def test_a_place_that_is_not_shared() -> None:
    heap = ChunkHeap(8)
    heap.take(Chunk(0, 16), 1, 2)
    for question in (heap.is_free, heap.may_stay):
        assert not question(Chunk(8, 8), 2, 3)
        assert question(Chunk(8, 8), 3, 4)


def test_verify_finds_two_values_in_one_place(monkeypatch: pytest.MonkeyPatch) -> None:
    assign(chain(6), verify=True)
    monkeypatch.setattr(ChunkHeap, "best_offset", lambda *_: 0)
    monkeypatch.setattr(ChunkHeap, "is_free", lambda *_: True)
    assign(chain(6))
    with pytest.raises(Defect, match="two values lie at byte 0 of alternate memory at time"):
        assign(chain(6), verify=True)


@pytest.mark.parametrize(
    ("shape", "size", "given", "bounds"),
    [
        ("f32[8]", 32, {"max_slices": 2, "preferred_slice_size": 16}, [(0, 16), (16, 32)]),
        (
            "f32[8]",
            32,
            {"max_slices": 3, "preferred_slice_size": 12},
            [(0, 12), (12, 24), (24, 32)],
        ),
        ("f32[8]", 32, {"max_slices": 2, "preferred_slice_size": 12}, []),
        ("f32[8]", 32, {"max_slices": 2, "preferred_slice_size": 32}, []),
        ("f32[8]", 32, {"max_slices": 2}, []),
        ("f32[8]", 64, {"max_slices": 4, "preferred_slice_size": 16}, []),  # padded
    ],
)
def test_equal_slices(
    shape: str, size: int, given: dict[str, int], bounds: list[tuple[int, int]]
) -> None:
    options = MemorySpaceOptions(sliced_prefetch_options=SlicedPrefetchOptions(**given))
    program = Program.of(parse_module(chain(3)))
    slicer = Slicer(program, options, InstructionCountPicker(2, 4))
    slices = slicer.propose(parse_shape(shape), size)
    assert [one.bounds[0] for one in slices] == bounds
    assert [one.size for one in slices] == [high - low for low, high in bounds]
