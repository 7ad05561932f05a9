"""The order of instructions, and the header with its stack frames, as differences."""

from __future__ import annotations

import json

import pytest
from tests.reports.diff.steps import STEP, changes_of, diff_texts, edit, shown

from hloopt.reports.diff.comparison import diff_modules
from hloopt.reports.diff.record import diff_to_json
from hloopt.text import parse_module


def moved_tanh(text: str) -> str:
    lines = text.splitlines(keepends=True)
    [tanh] = [line for line in lines if "%tanh.1 =" in line]
    lines.remove(tanh)
    position = next(i for i, line in enumerate(lines) if "%all-reduce.1 =" in line)
    return "".join((*lines[:position], tanh, *lines[position:]))


def test_order_counts_in_a_scheduled_module() -> None:
    scheduled = edit(("HloModule step", "HloModule step, is_scheduled=true"))
    diff = diff_texts(scheduled, moved_tanh(scheduled))
    assert diff.count_moved() == 1
    assert not diff.is_identical


def test_order_does_not_count_in_an_unscheduled_module() -> None:
    assert diff_texts(STEP, moved_tanh(STEP)).is_identical


def test_header_attributes_are_compared() -> None:
    diff = diff_texts(STEP, edit(("HloModule step", "HloModule step2, num_partitions=8")))
    assert [(a.name, a.before, a.after) for a in diff.attributes] == [("num_partitions", None, "8")]
    assert not diff.is_identical
    assert diff.renamed.module


def test_the_name_of_the_module_is_one_of_the_names() -> None:
    text = edit(("HloModule step", "HloModule step2"))
    assert diff_texts(STEP, text).is_identical
    [change] = diff_texts(STEP, text, names=True).attributes
    assert (change.name, change.before, change.after) == ("name", "step", "step2")


FRAMES = """HloModule m

FileNames
1 "step.py"

FunctionNames
1 "step"

FileLocations
1 {file_name_id=1 function_name_id=1 line=3 end_line=3 column=4 end_column=9}

StackFrames
1 {file_location_id=1 parent_frame_id=1}

ENTRY %e {
  ROOT %p = f32[4]{0} parameter(0)
}
"""


@pytest.mark.parametrize(
    ("old", "new", "line", "tables"),
    [
        (
            "1 {file_location_id=1 parent_frame_id=1}",
            "1 {file_location_id=1 parent_frame_id=1}\n2 {file_location_id=1 parent_frame_id=2}",
            "stack frames: 1 → 2",
            ["StackFrames"],
        ),
        (
            "parent_frame_id=1}",
            "parent_frame_id=2}",
            "stack frames: 1, not the same",
            ["StackFrames"],
        ),
        ("line=3", "line=5", "stack frames: 1; FileLocations differ", ["FileLocations"]),
    ],
)
def test_stack_frames_take_one_line(old: str, new: str, line: str, tables: list[str]) -> None:
    diff = diff_texts(FRAMES, edit((old, new), text=FRAMES))
    assert shown(diff, 80).splitlines()[-1] == line
    assert not diff.is_identical
    frames = json.loads(json.dumps(diff_to_json(diff)))["stack_frames"]
    assert frames == {"before": 1, "after": 1 + ("→" in line), "tables": tables}


def test_spaces_between_stack_frames_do_not_count() -> None:
    respelled = edit(("\n1 ", " 1   "), text=FRAMES)
    assert diff_texts(FRAMES, respelled).is_identical
    assert diff_to_json(diff_texts(FRAMES, FRAMES))["stack_frames"] is None


def test_a_changed_module_can_be_compared_with_its_source() -> None:
    after = parse_module(STEP)
    instruction = next(i for i in after.instructions() if i.name == "negate.1")
    instruction.take_name("minus")
    diff = diff_modules(parse_module(STEP), after, frozenset())
    assert changes_of(diff) == [("renamed", "negate.1", "minus")]
