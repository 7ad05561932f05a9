"""Selecting takes one pass over the instructions."""

from __future__ import annotations

import gc
import time

import pytest

from hloopt.query import parse_selector
from hloopt.text import parse_module

COUNT = 50_000
OPCODES = ("negate", "exponential", "copy", "all-gather")


def line(number: int) -> str:
    opcode = OPCODES[number % 4]
    rows = 128 if opcode == "all-gather" else 64
    attributes = ", replica_groups={{0,1}}, dimensions={0}" if opcode == "all-gather" else ""
    return (
        f"  %i{number} = f32[{rows},64]{{1,0}} {opcode}(%p){attributes}, "
        f'metadata={{op_name="jit(step)/layer_{number}/attention" source_file="m.py" '
        f"source_line={number % 300}}}"
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("selector", "count"),
    [
        ("opcode=all-gather, type=f32, bytes>1KiB", COUNT // 4),
        ("all-gather, op_name~layer_1.*attention, not in-loop", 2778),
        ("shape=f32[64,64], users=0, operand=p", COUNT - COUNT // 4),
    ],
)
def test_three_keys_on_50_000_instructions_take_no_time(selector: str, count: int) -> None:
    head = "HloModule m\nENTRY %e {\n  %p = f32[64,64]{1,0} parameter(0)\n"
    text = head + "\n".join(map(line, range(COUNT))) + "\n  ROOT %t = f32[] constant(0)\n}\n"
    parsed = parse_selector(selector)
    times = []
    for _ in range(3):  # other work of the machine makes one run slow
        module = parse_module(text)
        gc.collect()
        start = time.process_time()
        found = sum(1 for _ in parsed.select(module))
        times.append(time.process_time() - start)
        assert found == count
    assert min(times) < 0.15
