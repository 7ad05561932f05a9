"""Stack-frame tables, and chains of frames put on top of each other."""

from __future__ import annotations

import pytest

from hloopt.diagnostics import HloSyntaxError
from hloopt.ir.sources.stack_frames import FrameConcatenation, StackFrames
from hloopt.text import PrintOptions, parse_module, print_module

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


def test_frames_are_numbered_as_instructions_refer_to_them() -> None:
    text = f"""HloModule m

{TEXT}

ENTRY e {{
  p = f32[] parameter(0), metadata={{op_name="p" stack_frame_id=3}}
  q = f32[] parameter(1), metadata={{op_name="q" stack_frame_id=7}}
  ROOT r = f32[] add(p, q), metadata={{op_name="r" stack_frame_id=3}}
}}
"""
    printed = print_module(parse_module(text), PrintOptions.default())
    assert '%p = f32[] parameter(0), metadata={op_name="p" stack_frame_id=1}' in printed
    assert '%q = f32[] parameter(1), metadata={op_name="q"}' in printed
    tables = StackFrames.parse(printed[printed.index("FileNames") :])
    assert tables.files == ['"dir/b \\"x\\".py"']
    assert tables.functions == ['"layer"']
    assert tables.frames == [(1, 0)]
    assert print_module(parse_module(printed), PrintOptions.default()) == printed


def test_frames_that_are_their_own_ancestors_vanish() -> None:
    text = TEXT.replace("parent_frame_id=2", "parent_frame_id=3")
    module = parse_module(
        f"HloModule m\n{text}\nENTRY e {{ ROOT p = f32[] parameter(0), "
        'metadata={op_name="p" stack_frame_id=2} }'
    )
    printed = print_module(module, PrintOptions.default())
    assert "FileNames" not in printed
    assert "stack_frame_id" not in printed


def test_tables_need_every_field() -> None:
    with pytest.raises(HloSyntaxError, match="end_column"):
        StackFrames.parse(TEXT.replace(" end_column=9", ""))


@pytest.mark.parametrize(
    "broken",
    [("end_line=4", "end_line=2147483648"), ("parent_frame_id=2", "parent_frame_id=99999999999")],
)
def test_numbers_of_more_than_32_bits_are_refused_with_a_place(broken: tuple[str, str]) -> None:
    text = f"HloModule m\n\n{TEXT.replace(*broken)}\n\nENTRY e {{ ROOT p = f32[] parameter(0) }}"
    with pytest.raises(HloSyntaxError, match="does not fit into 32 bits") as caught:
        parse_module(text)
    assert caught.value.location == (3, 1)
