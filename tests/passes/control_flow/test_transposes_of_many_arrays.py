"""Many arrays in the state of one loop, and loops in loops, transposed slice by slice."""

from __future__ import annotations

import time

import pytest
from tests.memory_space.residuals.programs import changed
from tests.passes.checked_run import reasons_to_stay, run_equal

from hloopt.ir import Module, Opcode
from hloopt.pass_framework.applications import Applications
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module, print_module
from hloopt.verifier import verify_module

PASS = "while-loop-transpose-sinking"
_ARRAY = "f32[4,8,6]{2,1,0}"
_ROW = "f32[8,6]{1,0}"


def _loop(name: str, state: str, steps: str, results: str, trips: int) -> str:
    """The body of a loop whose counter is `i`, and its condition."""
    return f"""
{name} {{
  s = {state} parameter(0)
  i = s32[] get-tuple-element(s), index=0
  zero = s32[] constant(0)
{steps}
  step = s32[] constant(1)
  next = s32[] add(i, step)
  ROOT t = {state} tuple(next, {results})
}}

{name}_condition {{
  s = {state} parameter(0)
  i = s32[] get-tuple-element(s), index=0
  trips = s32[] constant({trips})
  ROOT go = pred[] compare(i, trips), direction=LT
}}
"""


def _arrays(count: int) -> str:
    """A loop adds up slices of so many transposed arrays, which are in a tuple of their own."""
    held = f"({', '.join([_ARRAY] * count)})"
    state = f"(s32[], {_ROW}, {held})"
    steps = [
        f"  y0 = {_ROW} get-tuple-element(s), index=1",
        f"  held = {held} get-tuple-element(s), index=2",
    ]
    before = []
    for n in range(count):
        before += [
            f"  p{n} = f32[8,4,6]{{2,1,0}} parameter({n + 1})",
            f"  w{n} = {_ARRAY} transpose(p{n}), dimensions={{1,0,2}}",
        ]
        steps += [
            f"  w{n} = {_ARRAY} get-tuple-element(held), index={n}",
            f"  l{n} = f32[1,8,6]{{2,1,0}} dynamic-slice(w{n}, i, zero, zero), "
            "dynamic_slice_sizes={1,8,6}",
            f"  r{n} = {_ROW} reshape(l{n})",
            f"  y{n + 1} = {_ROW} add(y{n}, r{n})",
        ]
    body = _loop("layers", state, "\n".join(steps), f"y{count}, held", 4)
    lines = "\n".join(before)
    return f"""HloModule m
{body}
ENTRY main {{
  x = {_ROW} parameter(0)
{lines}
  zero = s32[] constant(0)
  held = {held} tuple({", ".join(f"w{n}" for n in range(count))})
  first = {state} tuple(zero, x, held)
  loop = {state} while(first), condition=layers_condition, body=layers
  ROOT y = {_ROW} get-tuple-element(loop), index=1
}}
"""


_INNER = f"(s32[], {_ROW}, f32[2,8,6]{{2,1,0}})"
_OUTER = f"(s32[], {_ROW}, {_ARRAY})"
_NESTED = (
    "HloModule m\n"
    + _loop(
        "inner",
        _INNER,
        f"""  x = {_ROW} get-tuple-element(s), index=1
  weights = f32[2,8,6]{{2,1,0}} get-tuple-element(s), index=2
  layer = f32[1,8,6]{{2,1,0}} dynamic-slice(weights, i, zero, zero), dynamic_slice_sizes={{1,8,6}}
  row = {_ROW} reshape(layer)
  y = {_ROW} add(x, row)""",
        "y, weights",
        2,
    )
    + _loop(
        "outer",
        _OUTER,
        f"""  x = {_ROW} get-tuple-element(s), index=1
  weights = {_ARRAY} get-tuple-element(s), index=2
  pair = f32[2,8,6]{{2,1,0}} dynamic-slice(weights, i, zero, zero), dynamic_slice_sizes={{2,8,6}}
  first = {_INNER} tuple(zero, x, pair)
  loop = {_INNER} while(first), condition=inner_condition, body=inner
  y = {_ROW} get-tuple-element(loop), index=1""",
        "y, weights",
        3,
    )
    + f"""
ENTRY main {{
  x = {_ROW} parameter(0)
  stored = f32[8,4,6]{{2,1,0}} parameter(1)
  weights = {_ARRAY} transpose(stored), dimensions={{1,0,2}}
  zero = s32[] constant(0)
  first = {_OUTER} tuple(zero, x, weights)
  loop = {_OUTER} while(first), condition=outer_condition, body=outer
  ROOT y = {_ROW} get-tuple-element(loop), index=1
}}
"""
)


def _transposed_in(module: Module) -> list[str]:
    return [i.parent.name for i in module.instructions(Opcode.TRANSPOSE)]


def test_slices_of_slices_are_transposed_in_the_innermost_loop() -> None:
    module = run_equal(PASS, _NESTED)
    assert _transposed_in(module) == ["inner"]
    assert reasons_to_stay(PASS, print_module(module)) == []


def test_slices_that_are_transposed_again_go_into_the_innermost_loop() -> None:
    turned = (
        "  turned = f32[2,6,8]{2,1,0} transpose(pair), dimensions={0,2,1}\n"
        "  again = f32[2,8,6]{2,1,0} transpose(turned), dimensions={0,2,1}\n"
    )
    first = f"  first = {_INNER} tuple(zero, x, pair)"
    text = changed(_NESTED, (first, turned + first.replace("pair", "again")))
    module = run_equal(PASS, text)
    assert _transposed_in(module) == ["inner"] * 3
    assert reasons_to_stay(PASS, print_module(module)) == []


def test_all_arrays_of_a_state_are_changed() -> None:
    module = run_equal(PASS, _arrays(3))
    assert _transposed_in(module) == ["layers"] * 3


def test_one_of_two_arrays_is_left_at_a_limit() -> None:
    module = parse_module(_arrays(2))
    context = PassContext(PASS, applications=Applications(1))
    assert create_pass(PASS, {}).run(module, context)
    assert verify_module(module) == []
    assert _transposed_in(module) == ["layers", "main"]


def _seconds(count: int) -> float:
    """Processor time for so many arrays: the best of a few runs."""
    best = float("inf")
    for _ in range(3):
        module = parse_module(_arrays(count))
        begin = time.process_time()
        create_pass(PASS, {}).run(module, PassContext(PASS))
        best = min(best, time.process_time() - begin)
    return best


@pytest.mark.slow
def test_an_array_takes_as_long_among_eight_times_as_many() -> None:
    assert _seconds(2000) <= 20 * _seconds(250)
