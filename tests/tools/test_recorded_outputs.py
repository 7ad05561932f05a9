"""Outputs of commands, recorded to compare two commits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import recorded_outputs


def test_two_recordings_are_equal_and_hold_what_was_written(root: Path) -> None:
    file = "testdata/ring_matmul_8dev.after_spmd_partitioning.hlo"
    lines = [
        ["verify", file, "--format", "json"],
        ["opt", file, "--passes", "dce", "-o", "written/out.hlo"],
        ["explain", "HLO999"],
    ]
    first, second = (recorded_outputs.answers_of(root, lines) for _ in range(2))
    assert first == second
    codes = [json.loads(answer)[0] for answer in first]
    assert codes == [0, 0, 2]
    assert "ENTRY" in json.loads(first[1])[json.loads(first[1]).index("out.hlo") + 1]
    assert "HLO999" in first[2]


def test_every_file_of_testdata_is_recorded(root: Path) -> None:
    groups = recorded_outputs.command_lines()
    assert {path.name for path in (root / "testdata").glob("*.hlo*")} < groups.keys()
    commands = {line[0] for lines in groups.values() for line in lines}
    assert {"opt", "fmt", "memory", "schedule", "cost", "run", "diff", "passes"} <= commands


@pytest.mark.parametrize(
    ("line", "a", "b", "is_prose"),
    [
        (["memory", "f"], [0, "err", "", "out", "one"], [0, "err", "", "out", "two"], True),
        (["memory", "f"], [0, "err", "", "out", "one"], [1, "err", "", "out", "one"], False),
        (
            ["memory", "f", "--format", "json"],
            [0, "err", "", "out", "1"],
            [0, "err", "", "out", "2"],
            False,
        ),
        (["opt", "f"], [0, "err", "a", "out", "HLO"], [0, "err", "b", "out", "HLO"], True),
        (["opt", "f"], [0, "err", "a", "out", "HLO"], [0, "err", "a", "out", "other"], False),
        (
            ["opt", "f", "-o", "g"],
            [0, "err", "", "out", "", "out.hlo", "HLO"],
            [0, "err", "", "out", "", "out.hlo", "other"],
            False,
        ),
    ],
)
def test_what_programs_read_is_not_prose(
    line: list[str], a: list[object], b: list[object], is_prose: bool
) -> None:
    assert recorded_outputs.is_prose(line, json.dumps(a), json.dumps(b)) is is_prose
