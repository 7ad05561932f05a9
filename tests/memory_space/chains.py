"""Scheduled chains of negations, and the pass run on them with a small alternate memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hloopt.ir import Module
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module

BY_COUNT = {"kind": "instruction-count", "min_overlap": 2, "max_overlap": 4}
RATES = {
    "flops_per_second": 1e9,
    "default_mem_bandwidth_bytes_per_second": 1e6,
    "alternate_mem_read_bandwidth_bytes_per_second": 1e7,
    "alternate_mem_write_bandwidth_bytes_per_second": 1e7,
}


def chain(length: int, *, at_end: str = "add(%n{last}, %p1)", shape: str = "f32[8]") -> str:
    """A scheduled chain of negations of %p0; `at_end` is the root."""
    lines = [f"%n0 = {shape} negate(%p0)"]
    lines += [f"%n{n} = {shape} negate(%n{n - 1})" for n in range(1, length)]
    root = at_end.format(last=length - 1)
    body = "\n  ".join(lines)
    return (
        f"HloModule m, is_scheduled=true\n\nENTRY %e {{\n  %p0 = {shape} parameter(0)\n"
        f"  %p1 = {shape} parameter(1)\n  {body}\n  ROOT %r = {shape} {root}\n}}\n"
    )


def assign(text: str, **options: Any) -> tuple[Module, PassContext]:
    given: Mapping[str, Any] = {
        "max_size_in_bytes": 128,
        "alignment_in_bytes": 8,
        "prefetch_interval_picker": BY_COUNT,
        "enable_cross_program_prefetch": False,
        **options,
    }
    module, context = parse_module(text), PassContext()
    create_pass("memory-space-assignment", given).run(module, context)
    return module, context
