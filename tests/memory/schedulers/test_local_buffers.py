"""The buffers that memory schedulers see in one computation."""

from __future__ import annotations

import pytest
from tests.memory.modules import module_text

from hloopt.memory.schedulers.local_buffers import LocalBuffers
from hloopt.memory.sizes import SizeRule
from hloopt.text import parse_module

SUM = """sum { k = f32[] parameter(0)
  l = f32[] parameter(1)
  ROOT z = f32[] add(k, l) }
w { x.1 = f32[8] parameter(0)
  y.1 = f32[4] parameter(1)
  ROOT t.1 = (f32[8], f32[4]) tuple(x.1, y.1) }
"""
LINES = (
    "a = f32[8] parameter(0)",
    "c = f32[4] parameter(1)",
    "p = (f32[8], f32[4]) parameter(2)",
)


def held(*lines: str) -> str:
    """For each slot of the last line the instruction that makes what is in it, with its bytes."""
    module = parse_module(module_text(*LINES, *lines, before=SUM))
    buffers = LocalBuffers(module.entry)
    numbers = buffers.held[module.entry.root]
    return " ".join(f"{buffers.definer[n].name}:{buffers.size[n]}" for n in numbers)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["r = f32[8] negate(a)"], "r:32"),
        (["r = f32[2,4] bitcast(a)"], "a:32"),
        (["r = f32[8] copy(a)"], "r:32"),
        (["r = (f32[8], f32[4]) copy(p)"], "r:16 p:32 p:16"),
        (["r = f32[4] get-tuple-element(p), index=1"], "p:16"),
        (["r = (f32[4], (f32[8], f32[4])) tuple(c, p)"], "r:16 c:16 p:16 p:32 p:16"),
        (["r = (f32[8], f32[4]) opt-barrier(p)"], "p:16 p:32 p:16"),
        (["t = token[] after-all()", "r = f32[8] add-dependency(a, t)"], "a:32"),
        (["r = (f32[8], f32[8], u32[]) copy-start(a)"], "r:24 r:32 a:32 r:4"),
        (["s = (f32[8], f32[8], u32[]) copy-start(a)", "r = f32[8] copy-done(s)"], "s:32"),
        (["r = f32[8] all-reduce-start(a), to_apply=sum"], "r:32"),
        (
            ["s = f32[8] all-reduce-start(a), to_apply=sum", "r = f32[8] all-reduce-done(s)"],
            "r:32",
        ),
        (
            ["r = ((f32[8], f32[4]), (f32[8], f32[4]), u32[]) async-start(a, c), calls=w"],
            "r:24 r:16 a:32 c:16 r:16 r:32 r:16 r:4",
        ),
        (
            [
                "s = ((f32[8], f32[4]), (f32[8], f32[4]), u32[]) async-start(a, c), calls=w",
                "r = (f32[8], f32[4]) async-done(s)",
            ],
            "s:16 s:32 s:16",
        ),
        (
            ["t = token[] after-all()", "r = (f32[8], u32[], token[]) send(a, t), channel_id=1"],
            "r:24 a:32 r:4 r:0",
        ),
        (["r = f32[8]{0:S(5)} copy(a)"], "r:0"),  # host memory is free
    ],
)
def test_what_is_passed_on_keeps_its_buffer(lines: list[str], expected: str) -> None:
    assert held(*lines) == expected


def test_an_instruction_defines_what_it_makes_but_parameters_and_constants_nothing() -> None:
    text = module_text(
        *LINES,
        "k = f32[4] constant({1, 2, 3, 4})",
        "s = (f32[8], f32[8], u32[]) copy-start(a)",
        "d = f32[8] copy-done(s)",
        "r = (f32[8], f32[4]) tuple(d, k)",
    )
    module = parse_module(text)
    for pointer, expected in ((8, [0, 0, 0, 0, 60, 0, 16]), (4, [0, 0, 0, 0, 48, 0, 8])):
        buffers = LocalBuffers(module.entry, SizeRule(alignment=64, pointer_bytes=pointer))
        assert [buffers.defined_bytes(i) for i in module.entry.instructions] == expected
