"""Modules put to expectations in tests."""

from __future__ import annotations

from hloopt import parse_module
from hloopt.checks.expectations.evaluation import check
from hloopt.checks.expectations.grammar import parse_expectation
from hloopt.checks.results import Check, Verdict
from hloopt.checks.subject import Subject
from hloopt.checks.view import View
from hloopt.cost_models import CostModelChoice

STEP = """HloModule step, is_scheduled=true, num_partitions=4

%sum (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %z = f32[] add(%x, %y)
}

%gather (q: bf16[16]) -> bf16[64] {
  %q = bf16[16]{0} parameter(0)
  ROOT %inner = bf16[64]{0} all-gather(%q), replica_groups=[1,4]<=[4], dimensions={0},
    channel_id=2, use_global_device_ids=true
}

%body (s: (s32[], f32[8])) -> (s32[], f32[8]) {
  %s = (s32[], f32[8]{0}) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one)
  %v = f32[8]{0} get-tuple-element(%s), index=1
  %in_loop = f32[8]{0} all-reduce(%v), replica_groups={{0,1},{2,3}}, channel_id=3,
    use_global_device_ids=true, to_apply=%sum, metadata={op_name="jit(step)/psum"
    source_file="/src/model.py" source_line=12}
  ROOT %t = (s32[], f32[8]{0}) tuple(%next, %in_loop)
}

%more (c: (s32[], f32[8])) -> pred[] {
  %c = (s32[], f32[8]{0}) parameter(0)
  %j = s32[] get-tuple-element(%c), index=0
  %limit = s32[] constant(5)
  ROOT %less = pred[] compare(%j, %limit), direction=LT
}

ENTRY %main (a: f32[8], b: bf16[16], w: f32[8,8]) -> (f32[8], bf16[64], f32[8,8]) {
  %a = f32[8]{0} parameter(0), sharding={devices=[4]<=[4]}, metadata={op_name="params['embed']"}
  %b = bf16[16]{0} parameter(1), sharding={replicated}
  %w = f32[8,8]{1,0} parameter(2)
  %as = ((bf16[16]{0}), bf16[64]{0}) async-start(%b), calls=%gather
  %whole = f32[8]{0} all-reduce(%a), replica_groups={{0,1,2,3}}, channel_id=1,
    use_global_device_ids=true, to_apply=%sum
  %ad = bf16[64]{0} async-done(%as)
  %zero = s32[] constant(0)
  %init = (s32[], f32[8]{0}) tuple(%zero, %whole)
  %loop = (s32[], f32[8]{0}) while(%init), condition=%more, body=%body
  %last = f32[8]{0} get-tuple-element(%loop), index=1
  %d = f32[8,8]{1,0} dot(%w, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  %k = f32[8,8]{1,0} custom-call(%d), custom_call_target="my$f8"
  ROOT %r = (f32[8]{0}, bf16[64]{0}, f32[8,8]{1,0}) tuple(%last, %ad, %k)
}
"""
"""Three collectives: one wrapped, one synchronous, one in a loop of five trips."""

UNPARTITIONED = """HloModule whole, num_partitions=4

ENTRY %main (a: f32[8]) -> f32[8] {
  %a = f32[8]{0} parameter(0), sharding={devices=[4]<=[4]}
  ROOT %c = f32[8]{0} custom-call(%a), custom_call_target="Sharding", sharding={replicated}
}
"""


def view_of(text: str = STEP, target: str | None = None) -> View:
    """A module as expectations see it."""
    choice = CostModelChoice(target=target)
    return View.of(Subject("step.hlo", parse_module(text), choice))


def checked(expectation: str, text: str = STEP, target: str | None = None) -> Check:
    """What comes of an expectation put to a module."""
    return check(parse_expectation(expectation), view_of(text, target))


def verdict(expectation: str, text: str = STEP, target: str | None = None) -> Verdict:
    return checked(expectation, text, target).verdict
