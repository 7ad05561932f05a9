"""Kernels that a compiler might make of a module before fusion, by the bytes they move."""

from __future__ import annotations

import pytest

from hloopt.analysis.latency import Origin
from hloopt.analysis.latency.roofline import RooflineModel
from hloopt.targets import load_target
from hloopt.text import parse_module

V5P = load_target("tpu_v5p")
ARRAY = 4 << 20
"""The bytes of `f32[1024,1024]`."""
TALL = "f32[1024,1024]"


UNFUSED = "e0 = f32[] constant(1) e1 = f32[] negate(e0) e2 = f32[] negate(e1)"
"""Something that could be fused, by which a module is known to be before fusion."""


def moved(entry: str, callees: str = "", *, unfused: str = UNFUSED) -> dict[str, float]:
    """The arrays of ARRAY bytes that each kernel moves, by the instruction that ends it."""
    module = parse_module(f"""HloModule m
add {{ x = f32[] parameter(0) y = f32[] parameter(1) ROOT z = f32[] add(x, y) }}
{callees}
ENTRY e {{ {unfused} {entry} }}""")
    model = RooflineModel(V5P, module)
    result = {}
    for instruction in module.entry.instructions:
        cycles, origin = model.node_time(instruction)
        if origin is not Origin.FREE and instruction.name not in unfused.split():
            result[instruction.name] = cycles * 1e-6 * V5P.memory_bandwidth / ARRAY
    return result


def test_a_chain_reads_its_inputs_once_and_writes_its_output_once() -> None:
    kernels = moved(f"""p = {TALL} parameter(0) q = {TALL} parameter(1)
      a = {TALL} add(p, q) b = {TALL} multiply(a, p) c = {TALL} tanh(b)
      ROOT r = {TALL} subtract(c, q)""")
    assert kernels == {"r": pytest.approx(3)}


def test_broadcasts_and_constants_are_not_read() -> None:
    kernels = moved(f"""p = {TALL} parameter(0) two = f32[] constant(2)
      all = {TALL} broadcast(two), dimensions={{}} i = {TALL} iota(), iota_dimension=0
      a = {TALL} multiply(p, all) ROOT r = {TALL} add(a, i)""")
    assert kernels == {"r": pytest.approx(2)}


def test_names_of_values_cost_nothing() -> None:
    kernels = moved(f"""p = {TALL} parameter(0) a = {TALL} negate(p)
      flat = f32[1048576] reshape(a) b = f32[1048576] sine(flat)
      t = (f32[1048576]) tuple(b) g = f32[1048576] get-tuple-element(t), index=0
      c = f32[1048576] copy(g) ROOT r = f32[1048576] negate(c)""")
    assert kernels == {"r": pytest.approx(2)}


def test_a_reduction_ends_a_kernel() -> None:
    kernels = moved(f"""p = {TALL} parameter(0) zero = f32[] constant(0) a = {TALL} sine(p)
      sum = f32[1024] reduce(a, zero), dimensions={{0}}, to_apply=add
      wide = {TALL} broadcast(sum), dimensions={{1}} ROOT r = {TALL} divide(a, wide)""")
    row = 1 / 1024
    # the sine is cheaper to compute twice than to write and read
    assert kernels == {"sum": pytest.approx(1 + row), "r": pytest.approx(2 + row)}


def test_a_softmax_of_rows_is_one_kernel() -> None:
    softmax = f"""p = {TALL} parameter(0) zero = f32[] constant(0)
      m = f32[1024] reduce(p, zero), dimensions={{#}}, to_apply=add
      w = {TALL} broadcast(m), dimensions={{%}} d = {TALL} subtract(p, w) e = {TALL} exponential(d)
      s = f32[1024] reduce(e, zero), dimensions={{#}}, to_apply=add
      b = {TALL} broadcast(s), dimensions={{%}} ROOT r = {TALL} divide(e, b)"""
    assert moved(softmax.replace("#", "1").replace("%", "0")) == {"r": pytest.approx(2)}
    columns = moved(softmax.replace("#", "0").replace("%", "1"))
    assert columns.keys() == {"m", "s", "r"}


def test_rows_that_two_kernels_need_are_reduced_once() -> None:
    kernels = moved(f"""p = {TALL} parameter(0) q = {TALL} parameter(1) zero = f32[] constant(0)
      m = f32[1024] reduce(p, zero), dimensions={{1}}, to_apply=add
      w = {TALL} broadcast(m), dimensions={{0}} k = {TALL} subtract(p, w) l = {TALL} add(q, w)
      ROOT t = ({TALL}, {TALL}) tuple(k, l)""")
    assert kernels["m"] == pytest.approx(1 + 1 / 1024)
    assert kernels.keys() == {"m", "k", "l"}


def test_a_value_of_many_inputs_is_written_once_for_several_kernels() -> None:
    inputs = " ".join(f"p{n} = {TALL} parameter({n})" for n in range(4))
    kernels = moved(f"""{inputs} zero = f32[] constant(0)
      a = {TALL} add(p0, p1) b = {TALL} add(p2, p3) c = {TALL} add(a, b)
      s = {TALL} sine(c)
      u = f32[1024] reduce(c, zero), dimensions={{0}}, to_apply=add
      v = f32[1024] reduce(s, zero), dimensions={{1}}, to_apply=add
      ROOT t = (f32[1024], f32[1024]) tuple(u, v)""")
    row = 1 / 1024
    assert kernels == {
        "c": pytest.approx(5),
        "u": pytest.approx(1 + row),
        "v": pytest.approx(1 + row),
    }


def test_a_kernel_writes_all_results_it_computes() -> None:
    kernels = moved(f"""p = {TALL} parameter(0) m = {TALL} parameter(1)
      n = {TALL} add(m, p) q = {TALL} subtract(p, n) ROOT t = ({TALL}, {TALL}) tuple(q, n)""")
    assert kernels["q"] == pytest.approx(4)
    assert "n" not in kernels


def test_slices_are_read_and_updates_written_in_part() -> None:
    kernels = moved(f"""p = {TALL} parameter(0) q = {TALL} parameter(1) i = s32[] parameter(2)
      d = f32[256,1024] dynamic-slice(p, i, i), dynamic_slice_sizes={{256,1024}}
      v = f32[256,1024] reshape(d) n = f32[256,1024] negate(v)
      ROOT r = {TALL} dynamic-update-slice(q, n, i, i)""")
    assert kernels == {"r": pytest.approx(0.5, rel=1e-3)}


def test_what_is_sliced_later_is_computed_in_part() -> None:
    kernels = moved(f"""p = {TALL} parameter(0) n = {TALL} negate(p)
      s = f32[256,1024] slice(n), slice={{[0:256], [0:1024]}} ROOT r = f32[256,1024] sine(s)""")
    assert kernels == {"r": pytest.approx(0.5)}


PRODUCT = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
WEIGHT = "f32[1024,8] parameter(1)"
THIN = 8 / 1024


def test_a_product_reads_what_its_operands_are_converted_from() -> None:
    kernels = moved(f"""p = bf16[1024,1024] parameter(0) w = {WEIGHT} a = f32[8] parameter(2)
      c = {TALL} convert(p) t = {TALL} transpose(c), dimensions={{1,0}} u = f32[8] negate(a)
      m = f32[1024,8] dot(t, w), {PRODUCT} b = f32[1024,8] broadcast(u), dimensions={{1}}
      ROOT r = f32[1024,8] add(m, b)""")
    assert kernels["m"] == pytest.approx(0.5 + 2 * THIN)
    assert kernels.keys() == {"m", "r"}


def test_what_is_computed_for_a_product_is_written_as_it_is_read() -> None:
    kernels = moved(f"""p = {TALL} parameter(0) w = bf16[1024,8] parameter(1)
      a = {TALL} negate(p) c = bf16[1024,1024] convert(a)
      m = f32[1024,8] dot(c, w), {PRODUCT}
      h = bf16[1024,8] convert(m) ROOT r = bf16[1024,8] opt-barrier(h)""")
    assert kernels["c"] == pytest.approx(1 + 0.5)
    assert kernels["m"] == pytest.approx(0.5 + THIN / 2 + THIN / 2)
    assert kernels.keys() == {"c", "m"}


def test_what_collectives_take_is_written() -> None:
    kernels = moved(f"""p = {TALL} parameter(0) n = {TALL} negate(p)
      g = {TALL} all-reduce(n), replica_groups={{}}, to_apply=add
      ROOT r = {TALL} sine(g)""")
    assert kernels["n"] == pytest.approx(2)
    assert kernels["r"] == pytest.approx(2)


def test_copies_of_arguments_for_results_are_made() -> None:
    kernels = moved(f"""p = {TALL} parameter(0) c = {TALL} copy(p) n = {TALL} negate(p)
      s = {TALL} sine(n) ROOT t = ({TALL}, {TALL}) tuple(c, s)""")
    assert kernels["c"] == pytest.approx(2)
    assert kernels["s"] == pytest.approx(2)


def test_a_fused_module_is_taken_as_it_is() -> None:
    body = f"f {{ a = {TALL} parameter(0) b = {TALL} negate(a) ROOT c = {TALL} sine(b) }}"
    kernels = moved(
        f"""p = {TALL} parameter(0) l = {TALL} fusion(p), kind=kLoop, calls=f
        ROOT r = {TALL} add(l, p)""",
        body,
        unfused="",
    )
    assert kernels == {"l": pytest.approx(2), "r": pytest.approx(3)}
