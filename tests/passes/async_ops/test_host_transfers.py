"""Transfers to and from the host, asynchronous for XLA:GPU and in one piece again."""

from __future__ import annotations

import pytest
from tests.passes.checked_run import run_equal

from hloopt.ir import Module, Opcode
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module, print_module

HOST = "f32[4,8]{1,0:S(5)}"
TEXT = f"""
HloModule m

ENTRY main {{
  p = f32[4,8]{{1,0}} parameter(0)
  i = s32[] parameter(1)
  z = s32[] constant(0)
  away = {HOST} copy(p)
  slice = f32[1,8]{{1,0}} dynamic-slice(away, i, z), dynamic_slice_sizes={{1,8}},
    metadata={{op_name="s"}}
  twice = f32[1,8]{{1,0}} add(slice, slice)
  stored = {HOST} dynamic-update-slice(away, twice, z, z)
  ROOT back = f32[4,8]{{1,0}} copy(stored)
}}
"""
CONFIG = '"dynamic_slice_config":{"loop_index":"0","byte_offset":"0","byte_stride":"32"}'


def asynchronous(*, fused: bool) -> Module:
    return run_equal("host-memory-transfer-asyncifier", TEXT, fused=fused)


def synchronous(text: str) -> Module:
    return run_equal("synchronize-collectives", text, transfers=True)


@pytest.mark.parametrize("fused", [False, True])
def test_each_slice_is_in_a_fusion_of_its_own_on_request(fused: bool) -> None:
    module = asynchronous(fused=fused)
    starts = list(module.instructions(Opcode.ASYNC_START))
    assert len(starts) == 2
    for start in starts:
        assert (start.called[0].root.opcode is Opcode.FUSION) is fused
    assert sum(1 for _ in module.instructions(Opcode.COPY_START)) == 2


@pytest.mark.parametrize("fused", [False, True])
def test_what_was_split_is_one_piece_again(fused: bool) -> None:
    module = synchronous(print_module(asynchronous(fused=fused)))
    opcodes = [instruction.opcode for instruction in module.entry.instructions]
    assert sorted(opcodes) == sorted(i.opcode for i in parse_module(TEXT).entry.instructions)
    (slicing,) = (i for i in module.entry.instructions if i.opcode is Opcode.DYNAMIC_SLICE)
    assert slicing.attributes["metadata"] == '{op_name="s"}'
    assert "frontend_attributes" not in slicing.attributes


def test_where_a_slice_is_in_each_trip_is_not_kept() -> None:
    text = TEXT.replace(
        'metadata={op_name="s"}', f'backend_config={{"operation_queue_id":"0",{CONFIG}}}'
    )
    module = parse_module(text)
    create_pass("host-memory-transfer-asyncifier", {"fused": True}).run(module, PassContext())
    (slicing,) = (
        instruction
        for instruction in synchronous(print_module(module)).entry.instructions
        if instruction.opcode is Opcode.DYNAMIC_SLICE
    )
    assert slicing.attributes["backend_config"] == '{"operation_queue_id":"0"}'


def stays(text: str, **options: object) -> bool:
    module = parse_module(text)
    return not create_pass("synchronize-collectives", options).run(module, PassContext())


def test_transfers_stay_unless_they_are_asked_for() -> None:
    assert stays(print_module(asynchronous(fused=True)))


def test_copies_and_slices_on_the_device_stay() -> None:
    text = print_module(asynchronous(fused=True)).replace(":S(5)", "")
    assert stays(text, transfers=True)


def test_a_fusion_that_does_more_stays() -> None:
    text = print_module(asynchronous(fused=True))
    root = "ROOT %slice"
    begin = text.index(root)
    end = text.index("\n", begin)
    line = text[begin:end].removeprefix("ROOT ")
    name = line.partition(" ")[0]
    more = f"{line}\n  ROOT %more = f32[1,8]{{1,0}} negate({name})"
    module = parse_module(text[:begin] + more + text[end:])
    create_pass("synchronize-collectives", {"transfers": True}).run(module, PassContext())
    assert [i.called[0].root.opcode for i in module.instructions(Opcode.ASYNC_START)] == [
        Opcode.FUSION
    ]


@pytest.mark.parametrize("operands", ["%param_2, %param_1", "%param_1, %param_1"])
def test_a_fusion_that_takes_its_indices_otherwise_stays(operands: str) -> None:
    text = print_module(asynchronous(fused=True))
    assert "dynamic-slice(%param_0, %param_1, %param_2)" in text
    module = parse_module(text.replace("%param_0, %param_1, %param_2)", f"%param_0, {operands})"))
    create_pass("synchronize-collectives", {"transfers": True}).run(module, PassContext())
    (start,) = module.instructions(Opcode.ASYNC_START)
    assert start.name == "dynamic-slice-start"
