"""The comparison with XLA's buffer assignments is strict."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.memory.modules import assign

from memory_agreement import Row, main
from memory_lib.cpu import compare_cpu
from memory_lib.overlaps import overlaps

TEXT = """HloModule m, is_scheduled=true

ENTRY e {
  a = f32[100] parameter(0)
  b = f32[200] concatenate(a, a), dimensions={0}
  ROOT c = f32[25] slice(b), slice={[0:25]}
}
"""


def record() -> dict[str, Any]:
    return {
        "stats": {
            "argument_size_in_bytes": 400,
            "output_size_in_bytes": 100,
            "temp_size_in_bytes": 800,
            "peak_memory_in_bytes": 1300,
        },
        "allocations": [
            {"kind": "parameter", "size": 400, "values": [[0, "a", 0, 0, 400]]},
            {"kind": "output", "size": 100, "values": [[2, "c", 0, 0, 100]]},
            {"kind": "temp", "size": 800, "values": [[1, "b", 0, 0, 800]]},
        ],
        "live_ranges": {"a{}": [0, 3], "b{}": [1, 2], "c{}": [2, 3]},
        "heap_traces": [{"events": [["alloc", 1, "b"], ["free", 1, "b"]]}],
    }


def test_what_agrees_agrees() -> None:
    result = compare_cpu("m", TEXT, record())
    assert (result.wrong, result.offsets, result.right_offsets) == ([], 3, 3)


@pytest.mark.parametrize(
    ("path", "value", "wrong"),
    [
        (("stats", "temp_size_in_bytes"), 801, ["statistics"]),
        (("allocations", 2, "size"), 801, ["allocations"]),
        (("allocations", 2, "kind"), "constant", ["allocations"]),
        (("live_ranges", "b{}"), [1, 3], ["live ranges"]),
        (("heap_traces", 0, "events", 1), ["free", 2, "b"], ["heap traces"]),
    ],
)
def test_what_differs_is_seen(path: tuple[str | int, ...], value: object, wrong: list[str]) -> None:
    changed = record()
    part: Any = changed
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    assert compare_cpu("m", TEXT, changed).wrong == wrong


def test_a_wrong_offset_is_seen() -> None:
    changed = record()
    changed["allocations"][2]["values"][0][3] = 64
    assert compare_cpu("m", TEXT, changed).right_offsets == 2


def test_values_in_the_same_bytes_are_seen() -> None:
    assignment = assign(
        "a = f32[4] parameter(0)",
        "b = f32[8] concatenate(a, a), dimensions={0}",
        "c = f32[4] slice(b), slice={[0:4]}",
        "d = f32[8] concatenate(c, c), dimensions={0}",
        "e = f32[16] concatenate(b, d), dimensions={0}",
    )
    assert overlaps(assignment) == []
    heap = assignment.allocations[-1]
    first, *others = heap.offsets
    for value in others:
        heap.offsets[value] = heap.offsets[first] + 4
    assert overlaps(assignment)


@pytest.mark.parametrize(
    ("row", "is_met"),
    [
        (Row("x", 98, 100, least=0.98), True),
        (Row("x", 97, 100, least=0.98), False),
        (Row("x", 0, 0, least=0.98), False),
        (Row("x", 1, 100, most=0), False),
        (Row("x", 0, 100, most=0), True),
        (Row("x", 0, 100), True),
    ],
)
def test_a_row_knows_its_bar(row: Row, is_met: bool) -> None:
    assert row.is_met is is_met
    assert ("MISSED" in str(row)) is not is_met


def test_the_program_fails_where_a_bar_is_missed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "oracle" / "memory_tests"
    folder.mkdir(parents=True)
    line = {"id": "m", "module": TEXT, **record()}
    schedule = {"module": TEXT, "dfs": {"e": ["a", "b", "c"]}, "bfs": {"e": ["a", "b", "c"]}}
    (folder / "assignments.jsonl").write_text(json.dumps(line) + "\n")
    (folder / "schedules.jsonl").write_text(json.dumps(schedule) + "\n")
    arguments = ["--shared", str(tmp_path), "--skip-gpu"]
    assert main(arguments) == 0
    line["allocations"][0]["size"] = 3
    (folder / "assignments.jsonl").write_text(json.dumps(line) + "\n")
    assert main(arguments) == 1
    assert "MISSED" in capsys.readouterr().out
