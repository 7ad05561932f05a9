"""Corners of constant folding: exact values, budgets, chains, deep nesting."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from tests.passes.checked_run import run_checked

from hloopt.interpreter.literals import is_writable, literal_text, literal_value
from hloopt.interpreter.values import dtype_of_shape
from hloopt.ir import Opcode
from hloopt.ir.shapes.element_type import ELEMENT_TYPES
from hloopt.ir.shapes.shape import array_shape
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module, print_module

fold = partial(run_checked, "constant-folding")


def test_negative_zero_survives_printing() -> None:
    module = fold("ENTRY e { c = f32[] constant(0)\n ROOT n = f32[] negate(c) }")
    again = parse_module(print_module(module))
    assert np.signbit(literal_value(again.entry.root.payload, again.entry.root.shape))


@pytest.mark.parametrize("name", [n for n, t in ELEMENT_TYPES.items() if t.bits])
def test_literals_keep_every_bit(name: str) -> None:
    shape = array_shape(name, (64,))
    dtype = dtype_of_shape(shape)
    if name == "pred":
        values = np.arange(64) % 2 == 0
    elif ELEMENT_TYPES[name].is_integral:
        values = (np.arange(64) * 0x0123_4567_89AB_CDEF).astype(np.int64).astype(dtype)
    else:
        numbers = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, 1 / 3, -7.25, 2.0**-140, 448, 1e300]
        with np.errstate(all="ignore"):
            values = np.resize(np.array(numbers), 64).astype(dtype)
    text = literal_text(values, shape)
    if is_writable(values):
        assert literal_value(text, shape).tobytes() == values.tobytes()


def test_complex_nans_cannot_be_written() -> None:
    assert not is_writable(np.array(complex(0, np.nan)))
    assert is_writable(np.array(complex(-0.0, np.inf)))


def test_only_the_end_of_a_chain_is_written() -> None:
    lines = "\n".join(f"  n{i} = f32[4] add(n{i - 1}, n{i - 1})" for i in range(1, 1000))
    module = parse_module(f"""ENTRY e {{
  n0 = f32[4] constant({{1, 0, 0, 0}})
{lines}
  p = f32[4] parameter(0)
  ROOT r = f32[4] multiply(p, n999)
}}""")
    context = PassContext()
    assert create_pass("constant-folding").run(module, context)
    assert [i.opcode for i in module.entry.instructions] == [
        *(Opcode.PARAMETER, Opcode.MULTIPLY, Opcode.CONSTANT),
    ]
    assert context.statistics == {"instructions folded": 1}


def test_elements_of_a_tuple_are_read_one_by_one() -> None:
    module = fold("""ENTRY e {
  a = f32[] constant(1)
  b = f32[2] broadcast(a), dimensions={}
  inner = (f32[], f32[2]) tuple(a, b)
  outer = ((f32[], f32[2]), f32[]) tuple(inner, a)
  g = (f32[], f32[2]) get-tuple-element(outer), index=0
  h = f32[2] get-tuple-element(g), index=1
  ROOT n = f32[2] negate(h)
}""")
    assert [i.payload for i in module.instructions()] == ["{-1, -1}"]


def test_what_follows_from_something_that_cannot_be_computed_stays() -> None:
    """The dot is too large a step in itself, so that its users stay, and their operands do."""
    module = fold(
        """mix {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  s = f32[] sine(y)
  ROOT a = f32[] subtract(x, s)
}
ENTRY e {
  c = f32[4] constant({1, 2, 3, 4})
  z = f32[] constant(0)
  d = f32[4] add(c, c)
  m = f32[] reduce(d, z), dimensions={0}, to_apply=mix
  n = f32[] negate(m)
  ROOT r = f32[] add(n, m)
}""",
        max_steps=3,
    )
    assert [i.opcode for i in module.entry.instructions] == [
        *(Opcode.CONSTANT, Opcode.REDUCE, Opcode.NEGATE, Opcode.ADD, Opcode.CONSTANT),
    ]


def test_calls_nested_deep_are_computed() -> None:
    depth = 3000
    callees = "".join(
        f"call{i} {{ x{i} = s32[] parameter(0)\n"
        f" ROOT r{i} = s32[] call(x{i}), to_apply=call{i - 1} }}\n"
        for i in range(1, depth)
    )
    module = fold(f"""call0 {{ x0 = s32[] parameter(0)
 ROOT r0 = s32[] add(x0, x0) }}
{callees}ENTRY e {{ c = s32[] constant(21)
 ROOT r = s32[] call(c), to_apply=call{depth - 1} }}""")
    assert module.entry.root.payload == "42"


def test_parameters_of_asynchronous_callees_stay() -> None:
    fold(
        """HloModule m
f { x = f32[] parameter(0)
 y = f32[] parameter(1)
 ROOT r = f32[] add(x, y) }
ENTRY e { c = f32[] constant(1)
 p = f32[] parameter(0)
 s = ((f32[], f32[]), f32[], s32[]) async-start(c, p), calls=f
 ROOT d = f32[] async-done(s) }""",
        changes=False,
    )


def test_random_numbers_in_an_applied_computation_stay() -> None:
    fold(
        """draw { x = f32[] parameter(0)
 ROOT r = f32[] rng(x, x), distribution=rng_uniform }
ENTRY e { c = f32[2] constant({1, 2})
 ROOT m = f32[2] map(c), dimensions={0}, to_apply=draw }""",
        changes=False,
    )


def test_calls_nested_in_a_folded_call_are_computed_once() -> None:
    depth = 2_000
    callees = "".join(
        f"f.{n} {{\n  p.{n} = f32[] parameter(0)\n  k.{n} = f32[] constant(1)\n"
        f"  c.{n} = f32[] call(k.{n}), to_apply=f.{n - 1}\n"
        f"  ROOT a.{n} = f32[] add(p.{n}, c.{n})\n}}\n"
        for n in range(1, depth)
    )
    module = parse_module(
        f"HloModule m\nf.0 {{ ROOT p = f32[] parameter(0) }}\n{callees}"
        f"ENTRY e {{\n  k = f32[] constant(1)\n  ROOT c = f32[] call(k), to_apply=f.{depth - 1}\n}}"
    )
    context = PassContext()
    create_pass("constant-folding").run(module, context)
    assert module.entry.root.payload == str(depth)
    assert context.statistics["instructions folded"] == 1
