"""Prefetches in slices: `ConcatBitcast` of slice-dones, and where they stand."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from conformance_lib.expectations import compare
from conformance_lib.patterns import mismatch, show
from conformance_lib.scene import Scene
from conformance_lib.selectors import select_one
from hloopt.ir import Instruction, Opcode
from hloopt.ir.attributes.values.numbers import parse_slices
from hloopt.passes.memory_space.report import MemorySpaceReport


def check_sliced_copy(
    scene: Scene, report: MemorySpaceReport, expected: dict[str, Any]
) -> Iterator[str]:
    """Mismatches of the sliced copy at a selector with what is expected of it."""
    whole = select_one(scene, expected["at"])
    if expected.get("bitcasted"):
        if whole.opcode is not Opcode.BITCAST:
            yield f"{show(whole)} is no bitcast"
            return
        whole = whole.operands[0]
    if whole.attributes.get("custom_call_target") != '"ConcatBitcast"':
        yield f"{show(whole)} is no ConcatBitcast"
        return
    dones = list(whole.operands)
    starts = [done.operands[0] for done in dones]
    slices = [start.called[0].root for start in starts]
    for start in starts:
        source = start.operands[0]
        if expected.get("bitcasted"):
            source = source.operands[0]
        if "operand" in expected and (reason := mismatch(scene, expected["operand"], source)):
            yield reason
    if "slices" in expected:
        bounds = [[list(b[:2]) for b in parse_slices(s.attributes["slice"])] for s in slices]
        yield from compare("slices", bounds, expected["slices"])
    for key, instructions in (("to", dones), ("from", [s.operands[0] for s in starts])):
        if key in expected:
            spaces = {i.shape.layout.memory_space for i in instructions}
            yield from compare(f"memory spaces {key}", spaces, {expected[key]})
    yield from _chunks(report, whole, dones, expected)
    yield from _places(scene, whole, starts, dones, expected)


def _chunks(
    report: MemorySpaceReport,
    whole: Instruction,
    dones: list[Instruction],
    expected: dict[str, Any],
) -> Iterator[str]:
    if not expected.get("contiguous_chunks"):
        return
    by_instruction = {c.instruction: c for c in report.chunks}
    chunk = by_instruction.get(whole)
    parts = [by_instruction.get(done) for done in dones]
    if chunk is None or None in parts:
        yield "a part has no chunk"
        return
    end = chunk.offset
    for part in parts:
        assert part is not None
        if part.offset != end:
            yield f"a part begins at {part.offset}, not at {end}"
        end = part.offset + part.size
    if end != chunk.offset + chunk.size:
        yield f"the parts end at {end}, not at {chunk.offset + chunk.size}"


def _places(
    scene: Scene,
    whole: Instruction,
    starts: list[Instruction],
    dones: list[Instruction],
    expected: dict[str, Any],
) -> Iterator[str]:
    order = {i: n for n, i in enumerate(whole.parent.instructions)}
    first_to_last = sorted(order[start] for start in starts)
    if "starts_after" in expected:
        after = order[select_one(scene, expected["starts_after"])]
        if first_to_last[0] < after:
            yield f"a slice starts before {expected['starts_after']}"
    if "done_before" in expected:
        before = order[select_one(scene, expected["done_before"])]
        if max(order[done] for done in dones) > before:
            yield f"a slice is done after {expected['done_before']}"
    between = [
        sum(
            i.opcode is not Opcode.ASYNC_START and not _is_free(i)
            for i, place in order.items()
            if a < place < b
        )
        for a, b in pairwise(first_to_last)
    ]
    if expected.get("starts_apart") and not all(between):
        yield "two slices start at one place"
    if (names := expected.get("one_start_between")) is not None:
        low, high = (order[select_one(scene, name)] for name in names)
        count = sum(low < place < high for place in first_to_last)
        yield from compare(f"starts between {names[0]} and {names[1]}", count, 1)


def _is_free(instruction: Instruction) -> bool:
    return instruction.opcode in (Opcode.ASYNC_DONE, Opcode.BITCAST, Opcode.PARAMETER)
