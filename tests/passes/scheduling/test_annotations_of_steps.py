"""The steps of asynchronous operations whose annotations legalize-scheduling-annotations keeps."""

from __future__ import annotations

from typing import Any

import pytest

from hloopt.diagnostics import PassRefused
from hloopt.ir.attributes.scheduling_annotations import group_of
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module

GROUP = ', frontend_attributes={_scheduling_group_id="1"}'
ADD = "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }"
RUN = "run { x = f32[8] parameter(0) ROOT y = f32[8] negate(x) }"
STEPS = {
    "all-gather": (
        "(f32[8], f32[16]) all-gather-start(p), dimensions={0}",
        "f32[16] all-gather-done(s)",
    ),
    "all-reduce": ("f32[8] all-reduce-start(p), to_apply=add", "f32[8] all-reduce-done(s)"),
    "collective-permute": (
        "(f32[8], f32[8]) collective-permute-start(p), source_target_pairs={{0,1}}",
        "f32[8] collective-permute-done(s)",
    ),
    "send": (
        "(f32[8], u32[], token[]) send(p, t), channel_id=1",
        "token[] send-done(s), channel_id=1",
    ),
    "recv": (
        "(f32[8], u32[], token[]) recv(t), channel_id=1",
        "(f32[8], token[]) recv-done(s), channel_id=1",
    ),
    "call": ("((f32[8]), f32[8]) async-start(p), calls=run", "f32[8] async-done(s)"),
    "copy": ("(f32[8], f32[8], u32[]) copy-start(p)", "f32[8] copy-done(s)"),
}
WITHOUT_SYNC: dict[str, Any] = {
    "keep_sync_annotation": False,
    "check_start_done_annotation_consistency": False,
}


def kept(kind: str, on_start: str = GROUP, **options: Any) -> list[str]:
    """The steps that are annotated in the end, of `s` and `d`; beside them is a collective."""
    start, done = STEPS[kind]
    text = f"""HloModule m
{ADD}
{RUN}
ENTRY e {{
  p = f32[8] parameter(0)
  t = token[] after-all()
  s = {start}{on_start}
  d = {done}{GROUP}
  c = f32[8] all-reduce(p), to_apply=add{GROUP}
  ROOT r = tuple(c, d)
}}"""
    module = parse_module(text)
    create_pass("legalize-scheduling-annotations", options).run(module, PassContext())
    return [i.name for i in module.entry.instructions if i.name in "sd" and group_of(i) == 1]


@pytest.mark.parametrize("kind", STEPS)
def test_annotations_of_synchronous_instructions_include_those_of_copies(kind: str) -> None:
    assert kept(kind, **WITHOUT_SYNC) == ([] if kind == "copy" else ["s", "d"])


@pytest.mark.parametrize("kind", STEPS)
def test_only_dones_of_collectives_and_calls_need_an_annotated_start(kind: str) -> None:
    if kind in ("copy", "send", "recv"):
        assert kept(kind, "") == ["d"]
        return
    with pytest.raises(PassRefused, match="'%d': Done instruction's operand is not annotated"):
        kept(kind, "")


@pytest.mark.parametrize("kind", STEPS)
def test_of_all_starts_only_a_generic_one_may_have_to_give_its_annotation_away(kind: str) -> None:
    found = kept(kind, **WITHOUT_SYNC, keep_start_annotation=False)
    assert found == {"copy": [], "call": ["d"]}.get(kind, ["s", "d"])
