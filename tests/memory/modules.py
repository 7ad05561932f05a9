"""Small modules, and what is asked about their memory."""

from __future__ import annotations

from hloopt.memory.assignment import BufferAssignment
from hloopt.memory.backends import CPU, Backend
from hloopt.text import parse_module

LOOP_CONDITION = """
cond { p = (s32[], f32[100]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(3)
  ROOT less = pred[] compare(i, n), direction=LT }
"""


def module_text(*lines: str, header: str = "is_scheduled=true", before: str = "") -> str:
    """A module with these instructions in its entry; the last one is the root."""
    *body, root = lines
    text = "\n  ".join([*body, f"ROOT {root}"])
    return f"HloModule m, {header}\n{before}\nENTRY e {{\n  {text}\n}}\n"


def assign(
    *lines: str, header: str = "is_scheduled=true", before: str = "", backend: Backend = CPU
) -> BufferAssignment:
    """The buffer assignment of such a module."""
    module = parse_module(module_text(*lines, header=header, before=before))
    return BufferAssignment.of(module, backend=backend)


def name_of(assignment: BufferAssignment, value: int) -> str:
    """The place where a value is defined: `add`, `start.0.1`, `while?` for a phi."""
    flow = assignment.flow
    index = "".join(f".{i}" for i in flow.index(value))
    return flow.definer[value].name + index + "?" * (value in flow.phis)


def value_of(assignment: BufferAssignment, name: str) -> int:
    """The value with a name."""
    return next(v for v in assignment.flow.values() if name_of(assignment, v) == name)


def allocations(assignment: BufferAssignment) -> list[tuple[str, int, list[str]]]:
    """Kind, size and what lies in it of every allocation."""
    return [
        (a.kind.value, a.size, [name_of(assignment, v) for v in sorted(a.offsets)])
        for a in assignment.allocations
    ]


def offsets(assignment: BufferAssignment) -> dict[str, int]:
    """The place where each temporary lies."""
    heap = next(a for a in assignment.allocations if a.kind.value == "temporary")
    return {name_of(assignment, v): offset for v, offset in heap.offsets.items()}
