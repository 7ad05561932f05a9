"""Transfers to and from the host, begun a trip before or ended a trip after."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.passes.checked_run import run_equal

from hloopt.ir import Module, Opcode
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.passes.async_ops.host_transfers import is_transfer, starts_transfer
from hloopt.passes.overlap.decisions import Draft
from hloopt.passes.overlap.judging import Judge, Judged
from hloopt.passes.overlap.options import OverlapOptions
from hloopt.passes.overlap.proposals import proposals
from hloopt.text import parse_module, print_module

SEARCH: dict[str, Any] = {"target": "h100_sxm", "iterations": 8, "memory_limit": 1 << 30}
STATE = "(s32[], f32[256,256]{1,0}, f32[6,256,256]{2,1,0:S(5)})"
PROGRAM = f"""
HloModule m

condition {{
  state = {STATE} parameter(0)
  i = s32[] get-tuple-element(state), index=0
  six = s32[] constant(6)
  ROOT goes-on = pred[] compare(i, six), direction=LT
}}

body {{
  state = {STATE} parameter(0)
  i = s32[] get-tuple-element(state), index=0
  x = f32[256,256]{{1,0}} get-tuple-element(state), index=1
  stack = f32[6,256,256]{{2,1,0:S(5)}} get-tuple-element(state), index=2
  zero = s32[] constant(0)
  one = s32[] constant(1)
  next = s32[] add(i, one)
  WORK
}}

ENTRY main {{
  x = f32[256,256]{{1,0}} parameter(0)
  host = f32[6,256,256]{{2,1,0:S(5)}} parameter(1)
  zero = s32[] constant(0)
  start = {STATE} tuple(zero, x, host)
  ROOT loop = {STATE} while(start), condition=condition, body=body
}}
"""
SIZES = "dynamic_slice_sizes={1,256,256}"
DOT = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
TAKEN = PROGRAM.replace(
    "WORK",
    f"""slice = f32[1,256,256]{{2,1,0}} dynamic-slice(stack, i, zero, zero), {SIZES}
  weights = f32[256,256]{{1,0}} bitcast(slice)
  y = f32[256,256]{{1,0}} dot(x, weights), {DOT}
  ROOT made = {STATE} tuple(next, y, stack)""",
)
STORED = PROGRAM.replace(
    "WORK",
    f"""y = f32[256,256]{{1,0}} dot(x, x), {DOT}
  piece = f32[1,256,256]{{2,1,0}} bitcast(y)
  kept = f32[6,256,256]{{2,1,0:S(5)}} dynamic-update-slice(stack, piece, i, zero, zero)
  ROOT made = {STATE} tuple(next, y, kept)""",
)


def scheduled(text: str) -> str:
    """The module as XLA:GPU runs it."""
    module = parse_module(text)
    for name, options in (
        ("host-memory-transfer-asyncifier", {"fused": True}),
        ("copy-insertion", {"alias_info": "gpu"}),
        ("hlo-memory-scheduler", {"preset": "xla-gpu"}),
        ("latency-hiding-scheduler", {"preset": "xla-gpu", "target": "h100_sxm"}),
    ):
        create_pass(name, options).run(module, PassContext(name))
    return print_module(module)


def judged(text: str) -> Judged:
    return Judge(OverlapOptions(target="h100_sxm")).finish(Draft(parse_module(text)))


def proposed(text: str) -> list[str]:
    """The changes that pipeline something."""
    changes = proposals(judged(text), ("pipeline",))
    return [" and ".join(decision.what for decision in change) for change in changes]


def decided(text: str, **options: object) -> list[str]:
    """The decisions that are made, instructions without the numbers of their names."""
    context = PassContext("overlap-search")
    create_pass("overlap-search", {**SEARCH, **options}).run(parse_module(text), context)
    told = [remark.reason for remark in context.remarks if remark.kind == "analysis"]
    return [re.sub(r"\.\d+", "", reason.partition(":")[0]) for reason in told]


@pytest.mark.parametrize(
    ("text", "made"), [(TAKEN, "pipeline %slice backward"), (STORED, "pipeline %kept forward")]
)
def test_a_transfer_that_is_waited_for_is_pipelined_and_hidden(text: str, made: str) -> None:
    assert proposed(text) == [made]
    assert made in decided(scheduled(text))
    before = judged(text)
    (change,) = proposals(before, ("pipeline",))
    draft = before.draft.after(*change)
    assert draft is not None
    after = Judge(OverlapOptions(target="h100_sxm")).finish(draft)
    (waiting,) = before.waits.values()
    assert waiting == pytest.approx(before.exposed)
    assert after.exposed < 0.2 * before.exposed
    assert after.seconds < 0.85 * before.seconds


@pytest.mark.parametrize("text", [TAKEN, STORED])
def test_what_is_pipelined_computes_the_same(text: str) -> None:
    module = run_equal("overlap-search", scheduled(text), **SEARCH)
    assert module.is_scheduled
    assert sum(map(starts_transfer, module.instructions())) > 1


@pytest.mark.parametrize("text", [TAKEN, STORED])
def test_without_a_schedule_transfers_come_back_asynchronous(text: str) -> None:
    module = run_equal("overlap-search", text, **SEARCH)
    assert not module.is_scheduled
    assert sum(map(starts_transfer, module.instructions())) > 1
    assert not any(map(is_transfer, outside_of_wrappers(module)))


def outside_of_wrappers(module: Module) -> list[Any]:
    return [
        instruction
        for computation in module.computations.values()
        if not (computation.is_fusion or computation.is_asynchronous)
        for instruction in computation.instructions
    ]


def test_memory_that_is_not_there_keeps_a_transfer_in_its_trip() -> None:
    tight = -(-judged(TAKEN).allocated // 4096) * 4096
    assert "pipeline %slice backward" not in decided(scheduled(TAKEN), memory_limit=tight)


def test_transfers_outside_of_loops_stay() -> None:
    start, _, _ = TAKEN.partition("condition {")
    text = f"""{start}
ENTRY main {{
  host = f32[6,256,256]{{2,1,0:S(5)}} parameter(0)
  i = s32[] parameter(1)
  zero = s32[] constant(0)
  ROOT slice = f32[1,256,256]{{2,1,0}} dynamic-slice(host, i, zero, zero), {SIZES}
}}
"""
    assert proposed(text) == []


def test_slices_that_are_fused_with_other_work_stay() -> None:
    module = parse_module(TAKEN)
    create_pass("host-memory-transfer-asyncifier", {"fused": True}).run(module, PassContext())
    assert proposed(print_module(module)) == []


def test_slices_on_the_device_are_no_transfers() -> None:
    assert proposed(TAKEN.replace(":S(5)", "")) == []


def test_both_directions_are_proposed_together_first() -> None:
    both = TAKEN.replace(
        "ROOT made",
        """piece = f32[1,256,256]{2,1,0} bitcast(y)
  kept = f32[6,256,256]{2,1,0:S(5)} dynamic-update-slice(stack, piece, i, zero, zero)
  ROOT made""",
    ).replace("tuple(next, y, stack)", "tuple(next, y, kept)")
    back, forth = "pipeline %slice backward", "pipeline %kept forward"
    assert proposed(both) == [f"{back} and {forth}", back, forth]


def test_whole_copies_are_pipelined_themselves() -> None:
    text = TAKEN.replace("slice(stack", "slice(here").replace(
        "slice = ", "here = f32[6,256,256]{2,1,0} copy(stack)\n  slice = "
    )
    before = judged(text)
    assert proposed(text) == ["pipeline %here backward"]
    assert before.waits["here"] > 0


def test_a_module_with_an_asynchronous_transfer_is_searched() -> None:
    module = parse_module(TAKEN)
    create_pass("host-memory-transfer-asyncifier", {}).run(module, PassContext())
    assert any(i.opcode is Opcode.ASYNC_START for i in module.instructions())
    assert "pipeline %slice backward" in decided(print_module(module))
