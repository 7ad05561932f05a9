"""HLL107: all-reduces of which each device reads its own part alone."""

from __future__ import annotations

import pytest
from tests.checks.lint.linting import check, found_names, violations

from hloopt.analysis.inventory.collectives import collectives_of
from hloopt.pass_framework.base import PassContext
from hloopt.passes.collectives.reduce_scatter_creator import ReduceScatterCreator
from hloopt.text import parse_module

GROUPS = "channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=sum"
REDUCE = f"whole = f32[8,1024] all-reduce(p), {GROUPS}"
PART = "part = f32[8,256] dynamic-slice(whole, zero, at), dynamic_slice_sizes={8,256}"


def module(body: str, header: str = "is_scheduled=true, ") -> str:
    return f"""
HloModule m, {header}num_partitions=4

sum {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}}

ENTRY e {{
  p = f32[8,1024] parameter(0)
  id = u32[] partition-id()
  size = u32[] constant(256)
  at = u32[] multiply(id, size)
  zero = u32[] constant(0)
  zero.1 = s32[] constant(0)
  {body}
}}
"""


@pytest.mark.parametrize(
    ("body", "name"),
    [
        (f"{REDUCE}\n  ROOT {PART}", "whole"),
        (
            f"start = f32[8,1024] all-reduce-start(p), {GROUPS}\n"
            f"  whole = f32[8,1024] all-reduce-done(start)\n  ROOT {PART}",
            "start",
        ),
        (
            f"{REDUCE}\n  flat = f32[4,2,1024] reshape(whole)\n"
            "  ROOT part = f32[4,2,256] dynamic-slice(flat, zero, zero, at), "
            "dynamic_slice_sizes={4,2,256}",
            "whole",
        ),
    ],
)
def test_each_device_reads_its_own_part(body: str, name: str) -> None:
    (found,) = violations("HLL107", module(body))
    assert found.location.instruction == name
    assert f"of %{name} each device reads its own part alone, %part" in found.message
    assert [each.instruction for each in found.related] == ["part"]


@pytest.mark.parametrize(
    "body",
    [
        # all of it is read, too
        f"{REDUCE}\n  {PART}\n  ROOT t = (f32[8,256], f32[8,1024]) tuple(part, whole)",
        # all devices read the same part
        f"{REDUCE}\n  ROOT {PART.replace('zero, at', 'zero, size')}",
        # another device's part
        f"{REDUCE}\n  offsets = s32[4] constant({{768, 512, 256, 0}})\n"
        "  offset = s32[1] dynamic-slice(offsets, id), dynamic_slice_sizes={1}\n"
        f"  back = s32[] reshape(offset)\n  ROOT {PART.replace('zero, at', 'zero.1, back')}",
        # a slice of what is not reduced
        f"whole = f32[8,1024] copy(p)\n  ROOT {PART}",
        # a reduction of which nothing is sliced
        f"ROOT {REDUCE}",
    ],
)
def test_devices_read_more_or_another_part(body: str) -> None:
    assert not found_names("HLL107", module(body))


def test_the_bytes_are_the_difference_of_two_inventories() -> None:
    text = module(f"{REDUCE}\n  ROOT {PART}")
    (found,) = violations("HLL107", text)
    assert found.impact.moved == _wire(text) - _wire(text, scatter=True) > 0


def test_a_rest_that_nobody_reads_is_not_sent() -> None:
    text = module(f"{REDUCE}\n  ROOT {PART}").replace("8,1024]", "8,1026]")
    (found,) = violations("HLL107", text)
    assert found.impact.moved == _wire(text) - _wire(text, scatter=True) > 0


def test_in_a_loop_all_trips_count() -> None:
    text = module(f"{REDUCE}\n  {PART}\n  ROOT t = (s32[], f32[8,1024]) tuple(next, p)")
    text = text.replace("ENTRY e {", "body {").replace(
        "p = f32[8,1024] parameter(0)",
        "state = (s32[], f32[8,1024]) parameter(0)\n  i = s32[] get-tuple-element(state), index=0\n"
        "  p = f32[8,1024] get-tuple-element(state), index=1\n  one = s32[] constant(1)\n"
        "  next = s32[] add(i, one)",
    )
    text += """
condition {
  state.1 = (s32[], f32[8,1024]) parameter(0)
  i.1 = s32[] get-tuple-element(state.1), index=0
  n = s32[] constant(5)
  ROOT less = pred[] compare(i.1, n), direction=LT
}

ENTRY e {
  p.2 = f32[8,1024] parameter(0)
  zero.2 = s32[] constant(0)
  init = (s32[], f32[8,1024]) tuple(zero.2, p.2)
  ROOT loop = (s32[], f32[8,1024]) while(init), condition=condition, body=body
}
"""
    (once,) = violations("HLL107", module(f"{REDUCE}\n  ROOT {PART}"))
    (found,) = violations("HLL107", text)
    assert ", 5 runs" in found.message
    assert found.impact.moved == 5 * once.impact.moved


def _wire(text: str, *, scatter: bool = False) -> int:
    module = parse_module(text)
    if scatter:
        assert ReduceScatterCreator().run(module, PassContext())
    return sum(each.wire for each in collectives_of(module))


def test_a_module_that_is_not_fused_has_no_verdict() -> None:
    work = "n = f32[8,1024] negate(p)\n  k = f32[8,1024] exponential(n)\n  "
    body = work + f"{REDUCE.replace('(p)', '(k)')}\n  ROOT {PART}"
    assert "not fused" in check("HLL107", module(body, header="")).reason
