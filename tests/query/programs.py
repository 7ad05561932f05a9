"""The module that tests of selectors pick from."""

from __future__ import annotations

from hloopt.ir import Module
from hloopt.query import parse_selector
from hloopt.text import parse_module

TEXT = r"""HloModule step, num_partitions=4

FileNames
1 "/home/me/model.py"
2 "/usr/lib/python3.11/site-packages/flax/linear.py"

FunctionNames
1 "apply"
2 "__call__"

FileLocations
1 {file_name_id=1 function_name_id=1 line=12 end_line=12 column=1 end_column=9}
2 {file_name_id=2 function_name_id=2 line=120 end_line=120 column=1 end_column=9}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=2}

%sum (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %c = f32[] add(%a, %b)
}

%fused (fp: f32[4,8]) -> f32[4] {
  %fp = f32[4,8]{1,0} parameter(0)
  %fz = f32[] constant(0)
  ROOT %fr = f32[4]{0} reduce(%fp, %fz), dimensions={1}, to_apply=%sum
}

%inner_body (ip: (s32[], f32[4,8])) -> (s32[], f32[4,8]) {
  %ip = (s32[], f32[4,8]{1,0}) parameter(0)
  %ii = s32[] get-tuple-element(%ip), index=0
  %ix = f32[4,8]{1,0} get-tuple-element(%ip), index=1
  %in = f32[4,8]{1,0} negate(%ix), metadata={op_name="jit(step)/while/body/attention/neg" stack_frame_id=2}
  ROOT %it = (s32[], f32[4,8]{1,0}) tuple(%ii, %in)
}

%inner_condition (cp: (s32[], f32[4,8])) -> pred[] {
  %cp = (s32[], f32[4,8]{1,0}) parameter(0)
  %ci = s32[] get-tuple-element(%cp), index=0
  %cl = s32[] constant(3)
  ROOT %cc = pred[] compare(%ci, %cl), direction=LT
}

%called (qp: (s32[], f32[4,8])) -> (s32[], f32[4,8]) {
  %qp = (s32[], f32[4,8]{1,0}) parameter(0)
  ROOT %qw = (s32[], f32[4,8]{1,0}) while(%qp), condition=%inner_condition, body=%inner_body
}

%outer_body (op: (s32[], f32[4,8])) -> (s32[], f32[4,8]) {
  %op = (s32[], f32[4,8]{1,0}) parameter(0)
  ROOT %oc = (s32[], f32[4,8]{1,0}) call(%op), to_apply=%called
}

%outer_condition (rp: (s32[], f32[4,8])) -> pred[] {
  %rp = (s32[], f32[4,8]{1,0}) parameter(0)
  %ri = s32[] get-tuple-element(%rp), index=0
  %rl = s32[] constant(5)
  ROOT %rc = pred[] compare(%ri, %rl), direction=LT
}

%scatter (sp: f32[4,8]) -> f32[2,8] {
  %sp = f32[4,8]{1,0} parameter(0)
  ROOT %ss = f32[2,8]{1,0} reduce-scatter(%sp), channel_id=3, replica_groups={{0,1},{2,3}}, use_global_device_ids=true, dimensions={0}, to_apply=%sum
}, execution_thread="parallel"

ENTRY %main (x: f32[4,8], n: s32[], e: f32[0,8], h: f32[64]) -> f32[16,8] {
  %x = f32[4,8]{1,0} parameter(0), sharding={replicated}
  %n = s32[] parameter(1)
  %e = f32[0,8]{1,0} parameter(2)
  %h = f32[64]{0:S(5)} parameter(3)
  %state = (s32[], f32[4,8]{1,0}) tuple(%n, %x)
  %loop = (s32[], f32[4,8]{1,0}) while(%state), condition=%outer_condition, body=%outer_body
  %y = f32[4,8]{1,0} get-tuple-element(%loop), index=1
  %turned = f32[4,8]{0,1} copy(%y), metadata={op_name="jit(step)/a, b" source_file="/home/me/other.py" source_line=7}
  %back = f32[4,8]{1,0} copy(%turned), frontend_attributes={note="kept",other={a}}
  %fusion.1 = f32[4]{0} fusion(%back), kind=kInput, calls=%fused
  %rs = ((f32[4,8]{1,0}), f32[2,8]{1,0}, u32[]) async-start(%back), async_execution_thread="parallel", calls=%scatter
  %rd = f32[2,8]{1,0} async-done(%rs)
  %cc = bf16[4]{0} custom-call(%fusion.1, %rd, %e, %h), custom_call_target="my \"kernel\""
  %sum.0 = f32[4,8]{1,0} add(%back, %back)
  ROOT %gathered = f32[16,8]{1,0} all-gather(%sum.0), channel_id=1, replica_groups={{0,1,2,3}}, dimensions={0}, use_global_device_ids=true, metadata={op_name="jit(step)/gather" stack_frame_id=1}
}
"""  # noqa: E501  # lines are as XLA prints them


def module() -> Module:
    return parse_module(TEXT)


def selected(selector: str) -> list[str]:
    """The names of what a selector selects in it, in order; both ways of asking agree."""
    found = module()
    parsed = parse_selector(selector)
    names = [i.name for i in parsed.select(found)]
    assert names == [i.name for i in found.instructions() if parsed.matches(i)]
    return names
