"""Stack-frame tables, and chains of frames put on top of each other."""

from __future__ import annotations

import pytest

from hloopt.ir.stack_frames import FrameConcatenation, StackFrames

TEXT = """FileNames
1 "a.py"
2 "dir/b \\"x\\".py"

FunctionNames
1 "main"
2 "layer"

FileLocations
1 {file_name_id=1 function_name_id=1 line=3 end_line=4 column=1 end_column=9}
2 {file_name_id=2 function_name_id=2 line=8 end_line=8 column=5 end_column=7}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=2}
3 {file_location_id=2 parent_frame_id=1}"""


@pytest.fixture
def tables() -> StackFrames:
    return StackFrames.parse(TEXT)


def test_tables_survive_reading_and_writing(tables: StackFrames) -> None:
    assert tables.format() == TEXT
    assert StackFrames.parse(tables.format()) == tables


def test_tables_may_be_indented(tables: StackFrames) -> None:
    assert StackFrames.parse(TEXT.replace("\n", "\n    ")) == tables


def test_no_text_means_no_frames() -> None:
    assert StackFrames.parse("") == StackFrames([], [], [], [])


def test_chains_go_from_the_inside_out(tables: StackFrames) -> None:
    assert tables.frames == [(1, 0), (2, 1), (2, 0)]
    assert tables.ancestry(2) == [2, 1]
    assert tables.chain(2) == [('dir/b \\"x\\".py', "layer", 8), ("a.py", "main", 3)]
    assert tables.ancestry(0) == tables.ancestry(99) == []


def test_a_cycle_of_parents_ends() -> None:
    tables = StackFrames([], [], [], [(1, 2), (1, 1)])
    assert tables.ancestry(1) == [1, 2]


def test_frames_are_put_on_top_of_others_and_reused(tables: StackFrames) -> None:
    frames = FrameConcatenation(tables)
    assert frames.on_top_of(3, 1) == 2  # (location 2, parent 1) is there already
    assert not frames.has_new_frames
    assert frames.on_top_of(2, 3) == 5  # main and layer on top of 3
    assert tables.frames[3:] == [(1, 3), (2, 4)]
    assert frames.on_top_of(2, 3) == 5
    assert frames.has_new_frames


def test_nothing_to_do_where_a_frame_is_missing_or_there_already(tables: StackFrames) -> None:
    frames = FrameConcatenation(tables)
    assert frames.on_top_of(2, 0) == 2
    assert frames.on_top_of(0, 2) == 2
    assert frames.on_top_of(2, 1) == 2
    assert frames.on_top_of(2, 2) == 2
    assert not frames.has_new_frames
