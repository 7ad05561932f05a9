"""Roofline: bytes and flops over the rates and links of any target. Times are in microseconds."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest

from hloopt.analysis.latency import Origin, Time
from hloopt.analysis.latency.estimates import ATTAINABLE
from hloopt.analysis.latency.model import ErrorClass
from hloopt.analysis.latency.roofline import RooflineModel
from hloopt.analysis.latency.run_times import RunTimes
from hloopt.ir import Instruction
from hloopt.targets import Target, load_target, target_names
from hloopt.text import parse_module

V5P = load_target("tpu_v5p")
ICI = 600e9
"""Bytes per second that a TPU v5p sends."""
SIZE = 8 << 20
"""The bytes of `f32[2097152]`."""
MEGA = 1e6


def modelled(
    body: str, callees: str = "", *, target: Target = V5P, devices: int = 8
) -> tuple[RooflineModel, dict[str, Instruction]]:
    """The model for a module, and its instructions by name."""
    text = f"""HloModule m, num_partitions={devices}
add {{ x = f32[] parameter(0) y = f32[] parameter(1) ROOT z = f32[] add(x, y) }}
{callees}
ENTRY e {{ {body} }}
"""
    module = parse_module(text)
    return RooflineModel(target, module), {i.name: i for i in module.instructions()}


def time_of(body: str, callees: str = "", *, target: Target = V5P, devices: int = 8) -> Time:
    """The time of the instruction `r`."""
    model, named = modelled(body, callees, target=target, devices=devices)
    return model.node_time(named["r"])


def test_memory_bounds_what_computes_little() -> None:
    time = time_of("p = f32[2097152] parameter(0) r = f32[2097152] negate(p)")
    assert time == pytest.approx(Time(2 * SIZE / 2765e9 * MEGA, Origin.RATES))


VMEM = replace(V5P, space_bandwidths={"VMEM": 4e13})
ROW = "f32[2097152]{0:T(1024)%s}"
HBM, FAST = ROW % "", ROW % "S(1)"


@pytest.mark.parametrize(
    ("operand", "result", "main", "fast"),
    [(HBM, HBM, 2, 0), (HBM, FAST, 1, 1), (FAST, HBM, 1, 1), (FAST, FAST, 0, 2)],
)
def test_bytes_in_fast_memory_take_its_rate_and_none_of_main_memory(
    operand: str, result: str, main: int, fast: int
) -> None:
    body = f"p = {operand} parameter(0) r = {result} negate(p)"
    move = f"""p = {operand} parameter(0)
      r = ({result}, {operand}, u32[]{{:S(2)}}) copy-start(p) d = {result} copy-done(r)"""
    fused = f"p = {operand} parameter(0) r = {result} fusion(p), kind=kLoop, calls=f"
    callee = "f { q = f32[2097152] parameter(0) ROOT n = f32[2097152] negate(q) }"
    for target, rate in ((V5P, inf), (VMEM, 4e13)):
        expected = pytest.approx((main * SIZE / 2765e9 + fast * SIZE / rate) * MEGA)
        assert time_of(body, target=target).cycles == expected
        assert time_of(fused, callee, target=target).cycles == expected
        model, named = modelled(move, target=target)
        time = model.edge_time(named["r"], named["d"])
        assert time.cycles == expected
        assert time.origin is (Origin.RATES if main or rate < inf else Origin.GUESS)


def test_a_target_without_fast_memory_has_all_in_main_memory() -> None:
    time = time_of(f"p = {FAST} parameter(0) r = {HBM} negate(p)", target=replace(V5P, spaces={}))
    assert time == pytest.approx(Time(2 * SIZE / 2765e9 * MEGA, Origin.RATES))


def test_of_a_tuple_each_leaf_takes_its_part() -> None:
    body = f"p = {HBM} parameter(0) r = ({HBM}, {FAST}) fusion(p), kind=kLoop, calls=f"
    callee = """f { q = f32[2097152] parameter(0)
      n = f32[2097152] negate(q) e = f32[2097152] exponential(q)
      ROOT t = (f32[2097152], f32[2097152]) tuple(n, e) }"""
    time = time_of(body, callee, target=VMEM)
    assert time.cycles == pytest.approx((2 * SIZE / 2765e9 + SIZE / 4e13) * MEGA)


def test_products_reach_a_share_of_the_rate_of_their_type() -> None:
    product = """p = #[4096,4096] parameter(0)
      r = #[4096,4096] dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}"""
    for element_type, rate in (("bf16", 459e12), ("s8", 918e12)):
        time = time_of(product.replace("#", element_type))
        assert time == pytest.approx(Time(2 * 4096**3 / (rate * ATTAINABLE) * MEGA, Origin.RATES))
    assert time_of(product.replace("#", "f64")).origin is Origin.GUESS  # the target has no rate


GROUPS = "replica_groups={{0,1,2,3},{4,5,6,7}}, channel_id=1, use_global_device_ids=true"


@pytest.mark.parametrize(
    ("collective", "sent"),
    [
        (f"f32[2097152] all-reduce(p), {GROUPS}, to_apply=add", 2 * 3 / 4 * SIZE),
        (f"f32[8388608] all-gather(p), {GROUPS}, dimensions={{0}}", 3 / 4 * 4 * SIZE),
        (f"f32[524288] reduce-scatter(p), {GROUPS}, dimensions={{0}}, to_apply=add", 3 / 4 * SIZE),
        (
            "f32[2097152] all-to-all(p), channel_id=1, replica_groups={{0,1,2,3},{4,5,6,7}}, "
            "dimensions={0}",
            3 / 4 * SIZE,
        ),
        ("f32[2097152] all-reduce(p), channel_id=1, to_apply=add", 2 * 7 / 8 * SIZE),
        ("f32[2097152] all-reduce(p), replica_groups={{0}}, to_apply=add", 0),
        ("f32[2097152] collective-permute(p), source_target_pairs={{0,1},{1,0}}", SIZE),
    ],
)
def test_collectives_pass_bytes_around_a_ring(collective: str, sent: float) -> None:
    time = time_of(f"p = f32[2097152] parameter(0) r = {collective}")
    assert time == pytest.approx(Time(sent / ICI * MEGA, Origin.LINK))


def test_starts_and_their_dones_take_as_long_as_what_is_not_split() -> None:
    model, named = modelled(f"""p = f32[2097152] parameter(0)
      r = f32[2097152] all-reduce(p), {GROUPS}, to_apply=add
      s = f32[2097152] all-reduce-start(p), {GROUPS}, to_apply=add
      d = f32[2097152] all-reduce-done(s)""")
    assert model.edge_time(named["s"], named["d"]) == model.node_time(named["r"])
    assert model.whole_time(named["r"]) == model.node_time(named["r"])
    assert model.node_time(named["s"]) == model.node_time(named["d"]) == Time(0, Origin.FREE)
    times = RunTimes(model, named["r"].parent.module)
    assert times.edge_time(named["s"], named["d"]) == model.node_time(named["r"])


def test_copies_to_the_host_go_over_pcie_where_there_is_one() -> None:
    copy = """p = f32[2097152] parameter(0)
      s = (f32[2097152]{0:S(5)}, f32[2097152], u32[]) copy-start(p)
      d = f32[2097152]{0:S(5)} copy-done(s)"""
    for name, rate, origin in (("mi300x", 64e9, Origin.LINK), ("tpu_v5p", 2765e9, Origin.GUESS)):
        model, named = modelled(copy, target=load_target(name))
        assert model.whole_time(named["s"]) == pytest.approx(Time(SIZE / rate * MEGA, origin))


def test_a_ragged_all_to_all_is_a_guess() -> None:
    shape = "f32[2097152] parameter"
    sizes = " ".join(f"i{number} = s32[8] parameter({number})" for number in range(2, 6))
    time = time_of(f"""p = {shape}(0) q = {shape}(1) {sizes}
      r = f32[2097152] ragged-all-to-all(p, q, i2, i3, i4, i5), channel_id=1,
        replica_groups={{}}""")
    assert time.origin is Origin.GUESS
    assert time.cycles > 0


def test_what_nobody_knows_is_a_guess() -> None:
    parameter = "p = f32[2097152] parameter(0)"
    least = 2 * SIZE / 2765e9 * MEGA
    unknown = time_of(f'{parameter} r = f32[2097152] custom-call(p), custom_call_target="f"')
    assert unknown == pytest.approx(Time(least, Origin.GUESS))
    less = """less { a = f32[] parameter(0) b = f32[] parameter(1)
      ROOT c = pred[] compare(a, b), direction=LT }"""
    sort = time_of(f"{parameter} r = f32[2097152] sort(p), dimensions={{0}}, to_apply=less", less)
    assert sort.origin is Origin.GUESS


def test_a_loop_takes_all_its_trips() -> None:
    callees = """
    body { b = (s32[], f32[2097152]) parameter(0) i = s32[] get-tuple-element(b), index=0
      one = s32[] constant(1) next = s32[] add(i, one)
      v = f32[2097152] get-tuple-element(b), index=1 w = f32[2097152] negate(v)
      ROOT t = (s32[], f32[2097152]) tuple(next, w) }
    condition { c = (s32[], f32[2097152]) parameter(0) j = s32[] get-tuple-element(c), index=0
      n = s32[] constant(5) ROOT l = pred[] compare(j, n), direction=LT }"""
    model, named = modelled(
        """p = f32[2097152] parameter(0) zero = s32[] constant(0)
      t0 = (s32[], f32[2097152]) tuple(zero, p)
      r = (s32[], f32[2097152]) while(t0), condition=condition, body=body,
        backend_config={"known_trip_count":{"n":"5"}}""",
        callees,
    )
    trip = model.node_time(named["w"]).cycles
    assert model.node_time(named["r"]).cycles == pytest.approx(5 * trip, rel=1e-3)


def test_a_stated_latency_comes_first() -> None:
    stated = 'frontend_attributes={latency_metadata="5000"}'
    time = time_of(f"p = f32[4] parameter(0) r = f32[4] negate(p), {stated}")
    assert time == Time(5, Origin.STATED)


@pytest.mark.parametrize("name", target_names())
def test_every_target_has_times_of_all_that_runs(name: str) -> None:
    model, named = modelled(
        f"""p = f32[2097152] parameter(0) n = f32[2097152] exponential(p)
      q = f32[64,64] parameter(1)
      m = f32[64,64] dot(q, q), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
      r = f32[2097152] all-reduce(n), {GROUPS}, to_apply=add""",
        target=load_target(name),
    )
    for part in ("n", "m", "r"):
        time = model.node_time(named[part])
        assert time.cycles > 0
        is_without_link = part == "r" and name == "cpu"
        assert time.origin is (
            Origin.GUESS if is_without_link else Origin.LINK if part == "r" else Origin.RATES
        )


def test_every_origin_has_a_class_of_error() -> None:
    classes = {origin: origin.error_class for origin in Origin}
    assert classes[Origin.GUESS] is ErrorClass.GUESSED
    assert classes[Origin.UNKNOWN] is ErrorClass.UNKNOWN
    estimated = {origin for origin, error in classes.items() if error is ErrorClass.ESTIMATED}
    assert estimated == {Origin.RATES, Origin.LINK, Origin.FUSION}


def test_a_loop_fusion_reads_the_slices_it_needs() -> None:
    callees = """f { a = f32[4,2097152] parameter(0) b = f32[8388608] bitcast(a)
      ROOT c = f32[1048576] slice(b), slice={[0:1048576]} }"""
    time = time_of(
        "p = f32[4,2097152] parameter(0) r = f32[1048576] fusion(p), kind=kLoop, calls=f", callees
    )
    assert time == pytest.approx(Time(2 * (4 << 20) / 2765e9 * MEGA, Origin.RATES))
