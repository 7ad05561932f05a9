"""The time that algsimp takes, beside that of parsing the module, and with its size."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module

_LAYER = """
w{n} = f32[64,64]{{1,0}} parameter({n})
d{n} = f32[32,64]{{1,0}} dot(r{m}, w{n}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
e{n} = f32[] constant(2)
b{n} = f32[32,64]{{1,0}} broadcast(e{n}), dimensions={{}}
q{n} = f32[32,64]{{1,0}} divide(d{n}, b{n})
t{n} = f32[64,32]{{1,0}} transpose(q{n}), dimensions={{1,0}}
k{n} = f32[32,64]{{1,0}} transpose(t{n}), dimensions={{1,0}}
l{n} = f32[2048]{{0}} reshape(k{n})
v{n} = f32[32,64]{{1,0}} reshape(l{n})
a{n} = f32[32,64]{{1,0}} add(v{n}, r{m})
r{n} = f32[32,64]{{1,0}} tanh(a{n})
"""


def _layers(count: int) -> str:
    """A module in each of whose layers a few rules apply."""
    body = "".join(_LAYER.format(n=n, m=n - 1) for n in range(1, count + 1))
    return (
        f"HloModule m\nENTRY e {{\nr0 = f32[32,64]{{1,0}} parameter(0)\n{body}"
        f"ROOT r = f32[32,64]{{1,0}} copy(r{count})\n}}\n"
    )


def _seconds(text: str, runs: int = 5) -> tuple[float, float]:
    """CPU seconds to parse a module and to simplify it: the best of a few runs."""
    parsing, simplifying = [], []
    for _ in range(runs):
        begin = time.process_time()
        module = parse_module(text)
        parsing.append(time.process_time() - begin)
        begin = time.process_time()
        create_pass("algsimp").run(module, PassContext(wants_remarks=False))
        simplifying.append(time.process_time() - begin)
    return min(parsing), min(simplifying)


@pytest.mark.slow
def test_algsimp_takes_little_longer_than_parsing(shared: Path) -> None:
    """The bar of 2 is one of `make bench`; the rest is what else the machine may do."""
    path = shared / "corpus" / "benchmarks" / "hlo_llama31_8b_bf16_1x8.hlo"
    parsing, simplifying = _seconds(path.read_text(encoding="utf-8"))
    assert simplifying <= 3 * parsing


@pytest.mark.slow
def test_an_instruction_takes_as_long_among_four_times_as_many() -> None:
    _seconds(_layers(10), runs=1)
    small, large = (_seconds(_layers(layers))[1] for layers in (500, 2000))
    assert large <= 1.2 * 4 * small
