"""Texts, and ways to run records, that several test modules need."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from conformance_lib.records import Record
from conformance_lib.runner import Outcome, run_record
from conformance_lib.scene import Scene
from conformance_lib.source_names import SourceNames
from hloopt.ir import Module
from hloopt.pass_framework.base import PassContext
from hloopt.text import parse_module

LOOP = """
HloModule m

condition {
  p = (s32[], f32[4]{0}) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(3)
  ROOT less = pred[] compare(i, n), direction=LT
}

body (p: (s32[], f32[4]{0})) -> (s32[], f32[4]{0}) {
  p = (s32[], f32[4]{0}) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[4]{0} get-tuple-element(p), index=1
  next.body = s32[] add(i, s32[] constant(1))
  ROOT t = (s32[], f32[4]{0}) tuple(next.body, x)
}

ENTRY main {
  a = f32[4]{0} parameter(0), frontend_attributes={note={n = 1}, x.y="z"}
  zero = s32[] constant(0)
  t = (s32[], f32[4]{0}) tuple(zero, a)
  loop = (s32[], f32[4]{0}) while(t), condition=condition, body=body
  ROOT x = f32[4]{0} get-tuple-element(loop), index=1, metadata={op_name="n/x" stack_frame_id=2}
}
"""

ASYNC = """
ENTRY main {
  a = f32[4]{0} parameter(0)
  b = f32[4]{0} parameter(1)
  start.0 = ((f32[4]{0}, f32[4]{0}), f32[4]{0}) add-start(a, b)
  done.0 = f32[4]{0} add-done(start.0)
  ROOT n = f32[4]{0} negate(done.0), control-predecessors={a, start.0}
}
"""


def scene_of(text: str) -> Scene:
    module = parse_module(text)
    return Scene(module, SourceNames(module), lambda: False, changed=False)


class Edit:
    """A pass that does what a function does."""

    def __init__(self, edit: Callable[[Module], bool]) -> None:
        self.edit = edit

    def run(self, module: Module, context: PassContext) -> bool:
        return self.edit(module)


def nothing(module: Module) -> bool:
    return False


def check(
    text: str, *expected: Mapping[str, Any], edit: Callable[[Module], bool] = nothing, **fields: Any
) -> Outcome:
    """The outcome of a record whose passes all do `edit`."""
    fields = {"id": "a", "pass": "dce", "hlo": text, "expect": list(expected)} | fields
    return run_record(Record("a", fields), lambda name, options: Edit(edit))


SUM = """HloModule m, entry_computation_layout={(f32[])->f32[]}

%f (q: f32[]) -> f32[] {
  %q = f32[] parameter(0)
  ROOT %n = f32[] negate(%q), metadata={op_name="n"}
}

ENTRY %e (p: f32[]) -> f32[] {
  %p = f32[] parameter(0)
  %y = f32[] call(%p), to_apply=%f
  %c = f32[] constant(1)
  ROOT %s = f32[] add(%y, %c)
}
"""
