"""Scheduled programs that are assigned with block prefetches, and what became of them."""

from __future__ import annotations

from typing import Any

from hloopt.ir import Instruction, Module, Opcode
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.passes.memory_space.report import MemorySpaceReport
from hloopt.text import parse_module
from hloopt.verifier import verify_module

PARAMETERS = "p = f32[6] parameter(0)\n q = f32[6] parameter(1)\n i = s32[] parameter(2)"
STARTS = (Opcode.COPY_START, Opcode.ASYNC_START)

LOOP = """
condition {
  cs = (s32[], f32[6]) parameter(0)
  ROOT done = pred[] constant(false)
}
body {
  bs = (s32[], f32[6]) parameter(0)
  n = s32[] get-tuple-element(bs), index=0
  x = f32[6] get-tuple-element(bs), index=1
  m = s32[] add(n, n)
  x1 = f32[6] negate(x)
  x2 = f32[6] negate(x1)
  LINES
  ROOT bt = (s32[], f32[6]) tuple(m, LAST)
}
"""
"""A loop whose body has `LINES`, and passes `LAST` on."""


def entry(*lines: str, computations: str = "", header: str = "") -> str:
    """A module with three parameters: %p and %q of 24 bytes, and the number %i."""
    body = "\n ".join(lines)
    opening = f"HloModule m, is_scheduled=true{header}"
    return f"{opening}\n{computations}\nENTRY e {{\n {PARAMETERS}\n {body}\n}}\n"


def assign(text: str, *named: str, **options: Any) -> tuple[Module, MemorySpaceReport]:
    """Prefetch named values in blocks, nothing else: ordinary copies are not allowed."""
    given: dict[str, Any] = {
        "max_size_in_bytes": 1000,
        "alignment_in_bytes": 8,
        "alternate_memory_space": 1,
        "prefetch_interval_picker": {
            "kind": "instruction-count",
            "min_overlap": 1,
            "max_overlap": 9,
        },
        "max_outstanding_prefetches": 0,
        "max_outstanding_block_prefetches": 10,
        "reserved_bytes_for_block_prefetches": 1000,
        "block_prefetched_positions": named,
        "enable_cross_program_prefetch": False,
        "enable_sync_slice_replacement": True,
        "async_slices_implemented": {"opcodes": ["slice", "dynamic-slice"]},
    }
    module = parse_module(text)
    assignment: Any = create_pass("memory-space-assignment", given | options)
    assignment.run(module, PassContext())
    verify_module(module)
    return module, assignment.report


def loads(module: Module) -> dict[str, tuple[str, str]]:
    """By what is loaded, the instructions before the start and behind the done."""
    order = [i for c in module.computations.values() for i in c.instructions]
    found = {}
    for start in order:
        if start.opcode in STARTS:
            (done,) = start.users
            before = next(i for i in order[order.index(start) :: -1] if not _is_half(i))
            behind = next(i for i in order[order.index(done) + 1 :] if not _is_half(i))
            found[start.operands[0].name] = (before.name, behind.name)
    return found


def _is_half(instruction: Instruction) -> bool:
    return instruction.opcode in (*STARTS, Opcode.COPY_DONE, Opcode.ASYNC_DONE)


def names(module: Module) -> list[str]:
    """The instructions of the entry, in order."""
    return [instruction.name for instruction in module.entry.instructions]
