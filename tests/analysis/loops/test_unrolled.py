"""Blocks of instructions that are repeated one behind the other."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hloopt.analysis.loops.unrolled import UnrolledLoop, unrolled_loops
from hloopt.text import parse_module

X = "f32[8,8]"
DOT = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
CALLED = f"""
layer {{
  g0 = {X} parameter(0)
  g1 = {X} parameter(1)
  g2 = {X} dot(g0, g1), {DOT}
  ROOT g3 = {X} tanh(g2)
}}
cheap {{ h0 = {X} parameter(0) h1 = {X} tanh(h0) ROOT h2 = {X} negate(h1) }}
"""


def product(n: int) -> str:
    return f"d{n} = {X} dot(x{n - 1}, w), {DOT} x{n} = {X} tanh(d{n})"


def module(
    step: Callable[[int], str], count: int, root: str = "", computations: str = CALLED
) -> str:
    steps = "\n  ".join(step(n) for n in range(1, count + 1))
    return f"""HloModule m
{computations}
ENTRY e {{
  x0 = {X} parameter(0)
  w = {X} parameter(1)
  {steps}
  ROOT r = {X} negate({root or f"x{count}"})
}}
"""


def found(text: str, *, repeats: int = 4, block: int = 2) -> list[UnrolledLoop]:
    return unrolled_loops(parse_module(text), repeats=repeats, block=block)


def shapes(text: str, **least: int) -> list[tuple[int, int]]:
    return [(each.repeats, each.block) for each in found(text, **least)]


def test_a_chain_of_products_is_a_loop() -> None:
    (loop,) = found(module(product, 12))
    names = [anchor.name for anchor in loop.anchors]
    assert names == sorted(names, key=lambda name: int(name[1:]))
    assert names[-1] == "d12"
    assert loop.block == 2
    assert loop.instructions == 2 * loop.repeats


def test_the_ends_of_a_chain_may_differ_from_what_is_between() -> None:
    """The first blocks have other operands within sight."""
    (loop,) = found(module(product, 12))
    assert 10 <= loop.repeats <= 12


@pytest.mark.parametrize(
    ("step", "size"),
    [
        (lambda n: f"x{n} = {X} call(x{n - 1}, w), to_apply=layer", 2),
        (lambda n: f"d{n} = {X} fusion(x{n - 1}, w), kind=kOutput, calls=layer "
         f"x{n} = {X} tanh(d{n})", 2),
        (lambda n: f'd{n} = {X} custom-call(x{n - 1}), custom_call_target="f" '
         f"x{n} = {X} tanh(d{n})", 2),
        (lambda n: f"d{n} = {X} all-gather(x{n - 1}), dimensions={{0}}, replica_groups={{{{0}}}} "
         f"x{n} = {X} tanh(d{n})", 2),
        (lambda n: f"d{n} = {X} all-gather-start(x{n - 1}), dimensions={{0}}, "
         f"replica_groups={{{{0}}}} x{n} = {X} all-gather-done(d{n})".replace(
             f"d{n} = {X}", f"d{n} = ({X}, {X})"), 2),
    ],
    ids=["call", "fusion", "custom-call", "collective", "start"],
)  # fmt: skip
def test_what_a_block_is_made_of(step: Callable[[int], str], size: int) -> None:
    (loop,) = found(module(step, 12))
    assert loop.block == size


def test_what_only_a_block_needs_counts_with_it() -> None:
    def step(n: int) -> str:
        return (
            f"k{n} = {X} parameter({n + 1}) c{n} = {X} exponential(k{n}) b{n} = {X} sine(c{n}) "
            f"d{n} = {X} dot(x{n - 1}, b{n}), {DOT} x{n} = {X} tanh(d{n})"
        )

    (loop,) = found(module(step, 12))
    assert loop.block == 4


def test_what_others_need_too_does_not_count() -> None:
    """Neither does what gives the result of the module."""

    def step(n: int) -> str:
        return f"c{n} = {X} exponential(w) {product(n).replace(', w)', f', c{n})')}"

    text = module(step, 12)
    assert [loop.block for loop in found(text)] == [3]
    kept = " ".join(f"k{n} = {X} sine(c{n})" for n in range(1, 13))
    shared = text.replace("  ROOT r", f"  {kept}\n  ROOT r")
    assert [loop.block for loop in found(shared)] == [2]


@pytest.mark.parametrize(
    "step",
    [
        lambda n: f"d{n} = {X} dot(x0, w), {DOT} x{n} = {X} tanh(d{n})",
        lambda n: f"d{n} = {X} negate(x{n - 1}) x{n} = {X} tanh(d{n})",
        lambda n: f"d{n} = {X} fusion(x{n - 1}), kind=kLoop, calls=cheap x{n} = {X} tanh(d{n})",
    ],
    ids=["independent", "cheap", "cheap fusions"],
)
def test_what_is_no_loop(step: Callable[[int], str]) -> None:
    assert shapes(module(step, 12)) == []


def test_short_chains_side_by_side_are_no_loop() -> None:
    """All products are alike, but only two of them follow one another."""

    def column(n: int) -> str:
        taken = f"p{n} = {X} parameter({n + 1}) "
        first = f"k{n} = {X} tanh(p{n}) l{n} = {X} sine(k{n}) m{n} = {X} tanh(l{n}) "
        second = f"k{n}.2 = {X} tanh(d{n}) l{n}.2 = {X} sine(k{n}.2) m{n}.2 = {X} tanh(l{n}.2) "
        return (
            f"{taken}{first}d{n} = {X} dot(m{n}, m{n}), {DOT} "
            f"{second}x{n} = {X} dot(m{n}.2, m{n}.2), {DOT}"
        )

    text = module(column, 6)
    assert shapes(text) == []
    assert len(found(text, repeats=2)) == 1


def test_a_block_is_found_once_whatever_is_in_it() -> None:
    def step(n: int) -> str:
        return f"d{n} = {X} dot(x{n - 1}, w), {DOT} x{n} = {X} dot(w, d{n}), {DOT}"

    (loop,) = found(module(step, 12))
    assert loop.block == 2


def test_blocks_of_several_shapes_are_several_loops_or_none() -> None:
    def growing(n: int) -> str:
        size = 8 + n
        return (
            f"w{n} = f32[{size - 1},{size}] parameter({n + 1}) "
            f"d{n} = f32[8,{size}] dot(x{n - 1}, w{n}), {DOT} x{n} = f32[8,{size}] tanh(d{n})"
        )

    text = module(growing, 12).replace(f"r = {X}", "r = f32[8,20]")
    assert shapes(text) == []


def test_a_loop_and_its_gradient_are_two() -> None:
    def backward(n: int) -> str:
        return f"g{n} = {X} dot(y{n - 1}, w), {DOT} y{n} = {X} multiply(g{n}, x{13 - n})"

    both = module(product, 12, "y12").replace(
        "  ROOT r", f"  y0 = {X} sine(x12)\n  " + "\n  ".join(map(backward, range(1, 13)))
        + "\n  ROOT r"
    )  # fmt: skip
    first, second = found(both)
    assert {first.anchors[-1].name, second.anchors[-1].name} == {"d12", "g12"}


def test_the_least_of_repeats_and_instructions() -> None:
    text = module(product, 12)
    [(repeats, size)] = shapes(text)
    assert shapes(text, repeats=repeats, block=size) == [(repeats, size)]
    assert shapes(text, repeats=repeats + 1) == []
    assert shapes(text, block=size + 1) == []


def test_instructions_of_what_is_applied_are_not_looked_at() -> None:
    steps = "\n".join(product(n) for n in range(1, 13))
    fused = f"fused {{ x0 = {X} parameter(0) w = {X} parameter(1) {steps} ROOT q = {X} tanh(x12) }}"
    text = f"""HloModule m
{fused}
ENTRY e {{
  a = {X} parameter(0)
  b = {X} parameter(1)
  ROOT r = {X} fusion(a, b), kind=kOutput, calls=fused
}}
"""
    assert shapes(text) == []
    called = text.replace("fusion(a, b), kind=kOutput, calls=fused", "call(a, b), to_apply=fused")
    assert len(found(called)) == 1
