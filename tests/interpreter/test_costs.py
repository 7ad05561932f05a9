"""Work within one operation counts before it is done: steps, and bytes of what is temporary."""

from __future__ import annotations

from time import process_time
from typing import Any

import numpy as np
import pytest
from tests.interpreter.several_devices import entry

from hloopt.interpreter.costs import cost_of
from hloopt.interpreter.errors import RunError
from hloopt.interpreter.limits import Deadline, Limits
from hloopt.interpreter.machine import run_module
from hloopt.interpreter.values import Array
from hloopt.ir.module import Module
from hloopt.text import parse_module

FIRST = """HloModule m
first { ROOT a = f32[] parameter(0)  b = f32[] parameter(1)  c = f32[] add(a, b) }
ENTRY e { p = f32[100000] parameter(0)  z = f32[] constant(0)
  ROOT r = f32[] reduce(p, z), dimensions={0}, to_apply=first }"""
"""Nothing that NumPy has: it takes one element after the other."""


def limited(module: Module, *arguments: Array, **bounds: Any) -> Limits:
    limits = Limits(**bounds)
    run_module(module, [list(arguments)], limits=limits)
    return limits


def test_a_reducer_counts_for_each_element() -> None:
    elements = np.ones(100_000, np.float32)
    with pytest.raises(RunError, match=r"%r: stopped after 10,000 steps") as caught:
        limited(parse_module(FIRST), elements, steps=10_000)
    assert caught.value.code == "HLO503"
    assert caught.value.span is not None
    assert limited(parse_module(FIRST), elements).done >= 300_000


@pytest.mark.parametrize(
    ("lines", "least"),
    [
        (("p = f32[2048,2048] parameter(0)", "ROOT r = f32[2048,2048] add(p, p)"), 4096),
        (
            (
                "p = f32[2048,2048] parameter(0)",
                "ROOT r = f32[2048,2048] dot(p, p), lhs_contracting_dims={1}, "
                "rhs_contracting_dims={0}",
            ),
            2048**3 >> 14,
        ),
        (
            (
                "p = s32[2048,2048] parameter(0)",
                "ROOT r = s32[2048,2048] dot(p, p), lhs_contracting_dims={1}, "
                "rhs_contracting_dims={0}",
            ),
            2048**3 >> 10,
        ),
        (
            (
                "p = f32[1,1000,1000,1] parameter(0)",
                "k = f32[100,100,1,1] parameter(1)",
                "ROOT r = f32[1,901,901,1] convolution(p, k), window={size=100x100}, "
                "dim_labels=b01f_01io->b01f",
            ),
            901 * 901 * 10000 >> 14,
        ),
        (
            (
                "p = c64[1048576] parameter(0)",
                "ROOT r = c64[1048576] fft(p), fft_type=FFT, fft_length={1048576}",
            ),
            20 << 10,
        ),
        (
            (
                "p = c64[1048573] parameter(0)",  # a prime number
                "ROOT r = c64[1048573] fft(p), fft_type=FFT, fft_length={1048573}",
            ),
            200 << 10,
        ),
        (("p = f32[1,300,300] parameter(0)", "ROOT r = f32[1,300,300] cholesky(p)"), 4800),
    ],
)
def test_work_on_much_data_is_many_steps(lines: tuple[str, ...], least: int) -> None:
    root = parse_module(entry(*lines)).entry.root
    assert least <= cost_of(root).steps <= 20 * least


def test_an_operation_that_would_take_too_many_steps_does_not_begin() -> None:
    module = parse_module(
        entry(
            "p = f32[] parameter(0)",
            "a = f32[20000,20000] broadcast(p), dimensions={}",
            "ROOT r = f32[20000,20000] dot(a, a), lhs_contracting_dims={1}, "
            "rhs_contracting_dims={0}",
        )
    )
    began = process_time()
    with pytest.raises(RunError, match=r"%r: stopped after 1,000,000 steps"):
        limited(module, np.ones((), np.float32), steps=1_000_000)
    assert process_time() - began < 5


def test_temporaries_count_while_they_are_there() -> None:
    """Numbers of 16 bits are computed in 32: two operands and a result of 4,000 bytes each."""
    text = entry(
        "p = bf16[1000] parameter(0)",
        "a = bf16[1000] broadcast(z), dimensions={}",
        "ROOT r = bf16[1000] add(p, a)",
    ).replace("  a =", "  z = bf16[] constant(0)\n  a =")
    module = parse_module(text)
    value = np.zeros(1000, "float16").astype("float32").astype("bfloat16")
    assert limited(module, value, memory=16_000).held == 0
    with pytest.raises(RunError, match=r"%r: values would take 16,000 bytes here"):
        limited(module, value, memory=15_999)


def test_the_time_is_looked_at_within_an_operation() -> None:
    with pytest.raises(RunError, match=r"%r: stopped here: the time limit is 0.01 s") as caught:
        limited(parse_module(FIRST), np.ones(100_000, np.float32), deadline=Deadline(0.01))
    assert "--time-limit" in (caught.value.help or "")


def test_a_deadline_begins_anew() -> None:
    deadline = Deadline(0.0)
    assert deadline.is_over()
    deadline = Deadline(100)
    assert not deadline.is_over()
    assert deadline.is_over(needed=200)
    deadline.restart()
    assert not deadline.is_over()


def test_products_come_out_the_same_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hloopt.interpreter.arithmetic.matrices._MOST_PRODUCTS", 1 << 10)
    text = entry(
        "p = s32[3,20,30] parameter(0)",
        "q = s32[3,30,10] parameter(1)",
        "ROOT r = s32[3,20,10] dot(p, q), lhs_batch_dims={0}, rhs_batch_dims={0}, "
        "lhs_contracting_dims={2}, rhs_contracting_dims={1}",
    )
    p = np.arange(1800, dtype=np.int32).reshape(3, 20, 30)
    q = np.arange(900, dtype=np.int32).reshape(3, 30, 10)
    module = parse_module(text)
    (found,) = run_module(module, [[p, q]], limits=Limits(deadline=Deadline(100)))
    np.testing.assert_array_equal(found, p @ q)
