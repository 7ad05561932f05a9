"""A small module, edits of it, and the differences they make."""

from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console

from hloopt.analysis.content import as_classes
from hloopt.files import read_module
from hloopt.ir.module import Module
from hloopt.reports.diff.comparison import NAMES, diff_modules
from hloopt.reports.diff.findings import ModuleDiff
from hloopt.reports.diff.terminal import render_diff
from hloopt.text import parse_module

TESTDATA = Path(__file__).parents[3] / "testdata"

STEP = """HloModule step

%sum (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %s = f32[] add(%x, %y)
}

ENTRY %main (p: f32[64,32], w: f32[32,16]) -> f32[64,16] {
  %p = f32[64,32]{1,0} parameter(0)
  %w = f32[32,16]{1,0} parameter(1)
  %dot.1 = f32[64,16]{1,0} dot(%p, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, \
metadata={op_name="jit(step)/query" stack_frame_id=12}
  %all-reduce.1 = f32[64,16]{1,0} all-reduce(%dot.1), channel_id=1, \
replica_groups={{0,1,2,3},{4,5,6,7}}, use_global_device_ids=true, to_apply=%sum
  %tanh.1 = f32[64,16]{1,0} tanh(%dot.1)
  %negate.1 = f32[64,16]{1,0} negate(%tanh.1)
  ROOT %out = f32[64,16]{1,0} add(%negate.1, %all-reduce.1)
}
"""


def diff_texts(before: str, after: str, *, names: bool = False, ignore: str = "") -> ModuleDiff:
    ignored = as_classes(ignore.split()) | (frozenset() if names else NAMES)
    return diff_modules(parse_module(before), parse_module(after), ignored)


def edit(*changes: tuple[str, str], text: str = STEP) -> str:
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


def changes_of(diff: ModuleDiff) -> list[tuple[str, str, str]]:
    """Kind, name before and name after of every instruction that is on both sides."""
    return [
        (change.kind.value, change.before.name, change.after.name)
        for computation in diff.computations
        for change in computation.changed
    ]


def shown(diff: ModuleDiff, width: int, top: int = 20, **options: bool) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, no_color=True)
    render_diff(diff, console, top=top, **options)
    return out.getvalue()


def read(path: Path) -> Module:
    return read_module(str(path))


STAGES = ["before_optimizations", "after_spmd_partitioning", "after_optimizations"]
