"""Random programs for buffer assignment: valid, the same each time; verdicts."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from hloopt.memory.assignment import BufferAssignment
from hloopt.memory.backends import backend_of
from hloopt.text import parse_module
from hloopt.verifier import ANY_TARGET, verify_module
from memory_fuzz_lib.programs import program
from memory_fuzz_lib.subject import Programs, outcome_table

OPCODES = (
    *("reduce", "dot", "transpose", "dynamic-update-slice", "dynamic-slice", "convert", "pad"),
    *("broadcast", "while", "conditional", "call", "all-reduce", "all-gather", "reduce-scatter"),
    *("collective-permute", "all-to-all", "sort", "scatter", "gather", "concatenate"),
    *("convolution", "custom-call", "opt-barrier"),
)
FEATURES = {
    *("donations", "parameters returned", "results twice", "nested loops", "tuple parameters"),
    *("several devices", "large constants"),
}
FINAL = """
HloModule m, is_scheduled=true
f {
  x = f32[1024] parameter(0)
  y = f32[512] parameter(1)
  ROOT t = (f32[1024], f32[512]) tuple(x, y)
}
ENTRY e {
  p = f32[1024] parameter(0)
  a = f32[1024] sine(p)
  b = f32[512] slice(a), slice={[0:512]}
  c = f32[512] cosine(b)
  ROOT r = (f32[1024], f32[512]) fusion(a, c), kind=kLoop, calls=f
}
"""


def answer() -> Any:
    """Our own assignment in the place of the compiler's."""
    module = parse_module(FINAL)
    assignment = BufferAssignment.of(module, backend=backend_of(module))
    flow = assignment.flow
    allocations = [
        {
            "kind": allocation.kind.value,
            "color": allocation.color,
            "size": allocation.size,
            "values": [
                {
                    "name": flow.definer[value].name,
                    "offset": offset,
                    "size": assignment.buffers.value_size(value),
                }
                for value, offset in allocation.offsets.items()
                if flow.definer[value].name in "abc"
            ],
        }
        for allocation in assignment.allocations
    ]
    return SimpleNamespace(final=FINAL, memory={"allocations": allocations})


def test_programs_are_valid_and_the_same_each_time() -> None:
    programs = [program(5, number) for number in range(60)]
    assert programs == [program(5, number) for number in range(60)]
    texts = [made.text for made in programs]
    assert [verify_module(parse_module(text), ANY_TARGET) for text in texts] == [[]] * 60
    for opcode in OPCODES:
        assert any(f" {opcode}(" in text for text in texts), opcode
    for type_name in ("s4", "pred", "f8e5m2", "bf16", "f64", "s64", "c128"):
        assert any(f" {type_name}[" in text for text in texts), type_name
    assert any("[0," in text for text in texts)
    assert {feature for made in programs for feature in made.features} >= FEATURES


def test_equal_buffers_are_no_finding() -> None:
    progress = Programs(0, Path(), "").judged(3, answer())
    assert progress.findings == []
    assert progress.outcomes["equal"] == progress.outcomes["programs"] == 1
    assert progress.outcomes["offsets"] == progress.outcomes["equal offsets"] > 0
    assert progress.outcomes["fusions of several results: equal"] == 1


def test_another_size_or_offset_is_one() -> None:
    sizes, offsets = answer(), answer()
    sizes.memory["allocations"][0]["size"] += 1
    values = next(a["values"] for a in offsets.memory["allocations"] if a["values"])
    values[0]["offset"] += 128
    programs = Programs(0, Path(), "")
    kinds = [
        finding.problem.kind
        for changed in (sizes, offsets)
        for finding in programs.judged(3, changed).findings
    ]
    assert kinds == ["other sizes, program 3", "other offsets, program 3"]
    outcomes = programs.judged(3, sizes).outcomes
    assert outcomes["equal"] == 0
    others = {what: n for what, n in outcomes.items() if what.startswith("other ")}
    assert others == {f"other {sizes.memory['allocations'][0]['kind']}": 1}


def test_the_table_has_a_row_for_each_feature_and_counts_kinds() -> None:
    counts = {"programs": 4, "equal": 3, "offsets": 20, "equal offsets": 19}
    outcomes = Counter({scene + what: n for scene in ("", "loops: ") for what, n in counts.items()})
    outcomes["other constant"] = 1
    *rows, _, kinds = outcome_table(outcomes).splitlines()
    assert rows[2:] == [f"| {name} | 4 | 3 | 75.00% | 20 | 19 |" for name in ("loops", "**all**")]
    assert "1 of constant memory" in kinds
    assert "0 of temporary memory" in kinds


def test_what_is_not_compiled_is_counted() -> None:
    lost = SimpleNamespace(final="", memory=None)
    assert Programs(0, Path(), "").judged(3, lost).outcomes == {"lost": 1}


def test_the_tool_shows_a_program_and_asks_for_a_compiler(root: Path) -> None:
    tool = [sys.executable, str(root / "tools" / "memory_fuzz.py")]
    shown = subprocess.run([*tool, "--show", "2"], capture_output=True, text=True, check=True)
    assert shown.stdout == program(0, 2).text
    refused = subprocess.run(tool, capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "--shared and --ask are needed" in refused.stderr


def test_a_python_without_the_compiler_is_refused_before_the_sweep(
    root: Path, shared: Path, tmp_path: Path
) -> None:
    for name in ("memory_fuzz", "schedule_fuzz"):
        tool = [sys.executable, str(root / "tools" / f"{name}.py"), "--save", str(tmp_path)]
        asked = [*tool, "--shared", str(shared), "--ask", sys.executable]
        refused = subprocess.run(asked, capture_output=True, text=True, check=False)
        assert refused.returncode == 2
        assert f"{sys.executable} has no XLA:GPU" in refused.stderr
        assert list(tmp_path.iterdir()) == []
