"""Manual regions: programs for all devices that compute on parts in between."""

from __future__ import annotations

import numpy as np
import pytest

from hloopt.equivalence import Reference, RunSettings
from hloopt.equivalence.placement import place
from hloopt.interpreter.errors import RunError
from hloopt.interpreter.machine import run_module
from hloopt.text import parse_module

MESH = 'frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["a"=2, "b"=2]>}}'
_CUT = '"#sdy.sharding_per_value<[<@mesh, [AXES, {}]>]>"'
_MANUAL = 'xla.sdy.manual_axes="#sdy<manual_axes{MANUAL}>"'
SHARDY = f"""HloModule m, num_partitions=4, {MESH}
ENTRY e {{
  p = f32[4,3] parameter(0)
  l = f32[LOCAL,3] custom-call(p), custom_call_target="xla.sdy.GlobalToLocalShape",
    frontend_attributes={{xla.sdy.in_shardings={_CUT},{_MANUAL}}}
  i = u32[] partition-id()
  f = f32[] convert(i)
  b = f32[LOCAL,3] broadcast(f), dimensions={{}}
  s = f32[LOCAL,3] add(l, b)
  ROOT r = f32[4,3] custom-call(s), custom_call_target="xla.sdy.LocalToGlobalShape",
    frontend_attributes={{xla.sdy.out_shardings={_CUT},{_MANUAL}}}
}}
"""
GSPMD = """HloModule m, num_partitions=4
ENTRY e {
  p = f32[4,3] parameter(0)
  c = f32[4,3] copy(p), sharding={devices=[4,1]SHARDS}
  l = f32[1,3] custom-call(c), custom_call_target="SPMDFullToShardShape", sharding={manual}
  i = u32[] partition-id(), sharding={manual}
  f = f32[] convert(i), sharding={manual}
  b = f32[1,3] broadcast(f), dimensions={}, sharding={manual}
  s = f32[1,3] add(l, b), sharding={manual}
  ROOT r = f32[4,3] custom-call(s), custom_call_target="SPMDShardToFullShape",
    sharding={devices=[4,1]SHARDS}
}
"""
INPUT = np.arange(12, dtype=np.float32).reshape(4, 3)


def added(text: str) -> list[list[float]]:
    """By device and row, result minus input: the number of the device that computed the row."""
    placement = place(parse_module(text))
    assert placement.is_whole
    count = placement.grid.device_count
    results = run_module(placement.program, [[INPUT]] * count, devices=placement.devices)
    return [(result - INPUT)[:, 0].tolist() for result in results]


@pytest.mark.parametrize(
    ("local", "axes", "manual", "rows"),
    [
        (1, '{"a", "b"}', '"a", "b"', [[0, 1, 2, 3]] * 4),
        (1, '{"b", "a"}', '"a", "b"', [[0, 2, 1, 3]] * 4),
        # Each value of "a" has a result of its own: that axis is not manual.
        (2, '{"b"}', '"b"', [[0, 0, 1, 1]] * 2 + [[2, 2, 3, 3]] * 2),
        (2, '{"a", "b"}', '"a"', [[0, 0, 2, 2], [1, 1, 3, 3]] * 2),
        # Both are, but only one cuts: the first device of those that have the same part counts.
        (2, '{"a"}', '"a", "b"', [[0, 0, 2, 2]] * 4),
    ],
)
def test_shardy(local: int, axes: str, manual: str, rows: list[list[float]]) -> None:
    axes, manual = (names.replace('"', '\\"') for names in (axes, manual))  # as XLA prints them
    text = SHARDY.replace("LOCAL", str(local)).replace("AXES", axes).replace("MANUAL", manual)
    assert added(text) == rows


@pytest.mark.parametrize(("order", "row"), [("<=[4]", [0, 1, 2, 3]), ("3,1,2,0", [3, 1, 2, 0])])
def test_gspmd(order: str, row: list[float]) -> None:
    assert added(GSPMD.replace("SHARDS", order)) == [row] * 4


def test_a_region_without_a_sharding_is_refused() -> None:
    text = GSPMD.replace(", sharding={devices=[4,1]SHARDS}\n  l", "\n  l").replace(
        "SHARDS", "<=[4]"
    )
    with pytest.raises(RunError, match="%c has no sharding that says who has which part"):
        place(parse_module(text))


def test_roundings_in_regions_may_move_in_each_comparison_with_one_reference() -> None:
    """The region is another module as it runs, made anew for each comparison."""
    names = '\\"a\\", \\"b\\"'
    plain = SHARDY.replace("LOCAL", "1").replace("AXES", f"{{{names}}}").replace("MANUAL", names)
    rounding = plain.replace(
        "s = f32[1,3] add(l, b)",
        """x = f32[1,3] exponential(l)
  y = f32[1,3] multiply(x, x)
  z = f32[1,3] multiply(y, y)
  u = f32[1,3] multiply(y, x)
  o = f32[1,3] multiply(z, u)
  n = bf16[1,3] convert(o)
  s = f32[1,3] convert(n)""",
    )
    earlier = rounding.replace("multiply(x, x)", "multiply(w, w)").replace(
        "  y =", "  m = bf16[1,3] convert(x)\n  w = f32[1,3] convert(m)\n  y ="
    )
    reference = Reference(parse_module(rounding), RunSettings(seeds=1))
    found = [reference.examine(parse_module(earlier), "precision") for _ in range(2)]
    assert [comparison.mismatch for comparison in found] == [None, None]
    tolerances = [comparison.outputs[0].tolerance_in_units for comparison in found]
    assert tolerances[0] == tolerances[1] is not None
