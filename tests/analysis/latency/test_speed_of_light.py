"""Speed of light: products, collectives and kernels on a GPU. Times are in microseconds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hloopt.analysis.latency import Origin, Time
from hloopt.analysis.latency.collective_tables import nearest, permute_kind
from hloopt.analysis.latency.network import (
    all_to_all_time,
    kernel_all_reduce_time,
    ring_time,
    transfer_time,
)
from hloopt.analysis.latency.speed_of_light import SpeedOfLightModel, unsupported_by_xla
from hloopt.diagnostics import HloError, render_error
from hloopt.ir import Instruction
from hloopt.targets import Target, load_target
from hloopt.targets.gpu import Gpu, Network
from hloopt.targets.performance import load_tables
from hloopt.text import parse_module

MEBI = 1 << 20
HUNDREDS = Network(
    launch=100,
    card_bandwidth=100e9,
    chunk_time=100,
    chunk_size=4 * MEBI,
    round_trip=100,
    node_size=8,
    partition_size=8,
    lanes=18,
    lane_bandwidth=20e9,
    barrier=1.5,
)


@pytest.fixture(scope="module")
def h100() -> Target:
    return load_target("h100_sxm")


def gpu(target: Target) -> Gpu:
    assert target.gpu is not None
    return target.gpu


def instructions(
    body: str, header: str = ", num_partitions=8", callees: str = ""
) -> dict[str, Instruction]:
    """The instructions of a module by name."""
    text = f"""
HloModule m{header}
add {{ x = f32[] parameter(0) y = f32[] parameter(1) ROOT z = f32[] add(x, y) }}
{callees}
ENTRY e {{ {body} }}
"""
    return {i.name: i for i in parse_module(text).instructions()}


def test_rings_take_steps_of_a_share() -> None:
    # 15/8 steps of 512 KiB, each 5.37 on the wire, one chunk, one round trip
    assert ring_time(HUNDREDS, 8 * MEBI, nodes=2) == pytest.approx(485.08, abs=0.01)
    doubled = ring_time(HUNDREDS, 8 * MEBI, nodes=2, is_all_reduce=True)
    assert doubled == pytest.approx(100 + 2 * 385.08, abs=0.01)
    assert ring_time(HUNDREDS, 8 * MEBI, nodes=2, communicators=3) is None


def test_transfers_and_all_to_alls() -> None:
    assert transfer_time(HUNDREDS, 8 * MEBI, nodes=2) == pytest.approx(485.98, abs=0.01)
    assert all_to_all_time(HUNDREDS, 8 * MEBI, nodes=1) == 100
    assert all_to_all_time(HUNDREDS, 8 * MEBI, nodes=2) == pytest.approx(1745.9, abs=0.1)


def test_an_all_reduce_of_one_kernel_needs_nvlink() -> None:
    small = kernel_all_reduce_time(HUNDREDS, 128 << 10, 8)
    large = kernel_all_reduce_time(HUNDREDS, MEBI, 8)
    assert small == pytest.approx(1 + 7 * 131072 / 360e3 + 1.5)
    assert large == pytest.approx(1 + 2 * (7 / 8 * MEBI / 360e3 + 1.5))
    assert kernel_all_reduce_time(replace(HUNDREDS, lanes=0), 1024, 8) is None


@pytest.mark.parametrize(
    ("pairs", "kind"),
    [
        ([(0, 4), (1, 5)], "one-way"),
        ([(0, 1), (1, 2)], "two-way"),
        ([(0, 1), (1, 2), (2, 0)], "two-way"),
        ([(0, 1), (1, 0)], "mutual"),
    ],
)
def test_kinds_of_permutes(pairs: list[tuple[int, int]], kind: str) -> None:
    assert permute_kind(pairs) == kind


def test_of_two_as_near_the_larger_counts() -> None:
    known = [1, 2, 4, 8, 1024]
    assert [nearest(n, known) for n in (0, 1, 3, 5, 6, 7, 1000)] == [1, 1, 4, 4, 8, 8, 1024]
    assert nearest(2000, known) == 1024


COLLECTIVES = """
  p = f32[262144] parameter(0)
  s = f32[262144] all-reduce-start(p), replica_groups=[1,8]<=[8], to_apply=add
  d = f32[262144] all-reduce-done(s)
  far = f32[262144] all-reduce-start(p), replica_groups=[1,16]<=[16], to_apply=add
  far-done = f32[262144] all-reduce-done(far)
  uneven = f32[262144] all-reduce-start(p), replica_groups={{0,1,2,3,4,5,6,7,8},{9,10,11}},
    to_apply=add
  cp = (f32[262144], f32[262144]) collective-permute-start(p), source_target_pairs={{0,8}}
  cp-done = f32[262144] collective-permute-done(cp)
  near = f32[262144] collective-permute(p), source_target_pairs={{0,1}}
  sum = f32[262144] add(d, near)
  ROOT r = (f32[262144]) tuple(sum)
"""


def test_collectives_within_a_node_were_measured(h100: Target) -> None:
    found = instructions(COLLECTIVES, ", num_partitions=16")
    model = SpeedOfLightModel(h100)
    rates = load_tables(str(gpu(h100).tables)).collectives
    expected = MEBI / rates["all-reduce"]["8"][MEBI] * 1e6
    assert model.edge_time(found["s"], found["d"]) == Time(expected, Origin.COLLECTIVE_TABLE)
    assert model.node_time(found["s"]) == model.node_time(found["d"]) == Time(1, Origin.CONSTANT)
    one_way = MEBI / rates["collective-permute"]["one-way"][MEBI] * 1e6
    assert model.latency(found["near"], found["sum"]) == one_way
    assert model.latency(found["p"], found["sum"]) == 1
    assert model.whole_time(found["near"]) == Time(one_way, Origin.COLLECTIVE_TABLE)
    assert model.whole_time(found["s"]) == model.edge_time(found["s"], found["d"])
    assert model.whole_time(found["uneven"]) == Time(5000, Origin.GUESS)
    stated = (
        'near = f32[262144] collective-permute(p), frontend_attributes={latency_metadata="9000"},'
    )
    found = instructions(COLLECTIVES.replace("near = f32[262144] collective-permute(p),", stated))
    assert model.whole_time(found["near"]) == Time(9, Origin.STATED)


def test_a_partition_is_what_counts_as_within_a_node(h100: Target) -> None:
    found = instructions(COLLECTIVES, ", num_partitions=16")
    origins = {}
    for size in (4, 8, 16):
        network = replace(gpu(h100).network, partition_size=size)
        target = replace(h100, gpu=replace(gpu(h100), network=network))
        model = SpeedOfLightModel(target)
        pairs = ("s", "d"), ("far", "far-done"), ("cp", "cp-done")
        origins[size] = [model.edge_time(found[a], found[b]).origin for a, b in pairs]
    table, formula = Origin.COLLECTIVE_TABLE, Origin.NETWORK
    assert origins == {4: [formula] * 3, 8: [table, formula, formula], 16: [table] * 3}


def test_collectives_between_nodes_have_formulas(h100: Target) -> None:
    found = instructions(COLLECTIVES, ", num_partitions=16")
    model = SpeedOfLightModel(h100)
    wire = ring_time(gpu(h100).network, MEBI, nodes=2, is_all_reduce=True)
    time = model.edge_time(found["far"], found["far-done"])
    assert time.origin is Origin.NETWORK
    assert wire is not None
    assert wire < time.cycles < wire + 1  # what is read, added and written
    sent = transfer_time(gpu(h100).network, MEBI, nodes=2)
    assert model.latency(found["cp"], found["cp-done"]) == pytest.approx(sent, rel=0.01)


@pytest.mark.parametrize(
    ("devices", "channel", "expected"),
    [
        ("num_partitions=8", "", 20.96),
        ("num_partitions=8", ", channel_id=1", 51.936),
        ("num_partitions=16", ", channel_id=1", 51.936),
        ("replica_count=4, num_partitions=4", "", 43.456),
        ("replica_count=16", "", 194.163),
    ],
)
def test_without_groups_replicas_decide_how_far_it_goes(
    devices: str, channel: str, expected: float, h100: Target
) -> None:
    text = f"ROOT all = f32[262144] all-reduce-start(p), replica_groups={{}}, to_apply=add{channel}"
    found = instructions(f"p = f32[262144] parameter(0)\n{text}", f", {devices}")
    time = SpeedOfLightModel(h100).collective_time(found["all"])
    assert time is not None
    assert time.cycles == pytest.approx(expected, rel=1e-4)  # of XLA:GPU's compiler


def test_uneven_groups_are_a_guess(h100: Target) -> None:
    found = instructions(COLLECTIVES, ", num_partitions=16")
    assert SpeedOfLightModel(h100).collective_time(found["uneven"]) is None


def kernel(body: str, operands: str, result: str, kind: str = "kLoop") -> Instruction:
    """A fusion of `body`, whose parameters have the shapes `operands`."""
    shapes = operands.split()
    parameters = "\n".join(f"p{n} = {shape} parameter({n})" for n, shape in enumerate(shapes))
    callee = "\n".join(f"f{n} = {shape} parameter({n})" for n, shape in enumerate(shapes))
    names = ", ".join(f"p{n}" for n in range(len(shapes)))
    entry = f"{parameters}\nROOT k = {result} fusion({names}), kind={kind}, calls=f"
    return instructions(entry, callees=f"f {{\n{callee}\n{body}\n}}")["k"]


def time_of(fusion: Instruction, target: Target) -> float:
    time = SpeedOfLightModel(target).node_time(fusion)
    assert time.origin is Origin.ROOFLINE
    return time.cycles


# What XLA:GPU's compiler says of these kernels on an H100.
KERNELS = {
    "one sum": (
        ("ROOT r = f32[1048576] add(f0, f0)", "f32[1048576]", "f32[1048576]"),
        2.50475,
    ),
    "a scalar everywhere": (
        ("ROOT r = f32[8192,128] broadcast(f0), dimensions={}", "f32[]", "f32[8192,128]"),
        1.31375,
    ),
    "an even concatenation": (
        (
            "ROOT r = f32[1024,1024] concatenate(f0, f1), dimensions={0}",
            "f32[1023,1024] f32[1,1024]",
            "f32[1024,1024]",
        ),
        2.50725,
    ),
    "threads of a warp in different parts": (
        (
            "ROOT r = f32[8192,128] concatenate(f0, f1), dimensions={1}",
            "f32[8192,127] f32[8192,1]",
            "f32[8192,128]",
        ),
        6.39375,
    ),
    "few blocks": (
        ("ROOT r = f32[4096] add(f0, f0)", "f32[4096]", "f32[4096]"),
        0.013,
    ),
    "one block": (("ROOT r = f32[128] add(f0, f0)", "f32[128]", "f32[128]"), 0.00825),
    "one lane": (("ROOT r = s32[] add(f0, f0)", "s32[]", "s32[]"), 0.001),
    "one block that reduces": (
        (
            "c = f32[] constant(0)\nROOT r = f32[] reduce(f0, c), dimensions={0}, to_apply=add",
            "f32[2047]",
            "f32[]",
            "kInput",
        ),
        0.12975,
    ),
}


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_take_what_xla_says(name: str, h100: Target) -> None:
    parts, expected = KERNELS[name]
    assert time_of(kernel(*parts), h100) == pytest.approx(expected, rel=0.004, abs=2.6e-4)


def test_transcendentals_are_dear(h100: Target) -> None:
    steps = ["v0 = f32[1048576] exponential(f0)"]
    steps += [f"v{n} = f32[1048576] exponential(v{n - 1})" for n in range(1, 63)]
    chain = "\n".join((*steps, "ROOT r = f32[1048576] exponential(v62)"))
    found = time_of(kernel(chain, "f32[1048576]", "f32[1048576]"), h100)
    assert found == pytest.approx(86.3833, rel=1e-4)


def test_a_slice_reads_its_part(h100: Target) -> None:
    body = "ROOT r = f32[1024,1024] slice(f0), slice={[0:1024],[0:1024]}"
    part = time_of(kernel(body, "f32[65536,1024]", "f32[1024,1024]"), h100)
    whole = time_of(
        kernel("ROOT r = f32[1024,1024] copy(f0)", "f32[1024,1024]", "f32[1024,1024]"), h100
    )
    assert part == whole


def test_an_update_in_place_touches_the_update(h100: Target) -> None:
    body = "ROOT r = f32[4096,1024] dynamic-update-slice(f0, f1, f2, f2)"
    found = time_of(kernel(body, "f32[4096,1024] f32[1024,1024] s32[]", "f32[4096,1024]"), h100)
    assert found == pytest.approx(2 * 4 * MEBI / 3352320, abs=0.001)


def test_what_is_read_again_comes_from_caches(h100: Target) -> None:
    def rest(rows: int) -> float:
        """The time of a broadcast beyond reading its operand once and writing."""
        body = f"ROOT r = f32[64,{rows},1024] broadcast(f0), dimensions={{1,2}}"
        fusion = kernel(body, f"f32[{rows},1024]", f"f32[64,{rows},1024]")
        size = rows * 4096
        return (time_of(fusion, h100) * 3352320 - 65 * size) / (63 * size)

    assert rest(32) == pytest.approx(1 / 20, rel=0.05)  # 128 KiB: level 1
    assert rest(1024) == pytest.approx(1 / 2.5, rel=0.05)  # 4 MiB: level 2
    assert rest(1 << 15) == pytest.approx(1, rel=0.05)  # 128 MiB: memory


def test_a_target_without_figures_is_refused() -> None:
    with pytest.raises(HloError) as caught:
        SpeedOfLightModel(load_target("tpu_v5p"))
    assert "b200, gb200_nvl72, gb300_nvl72, h100_sxm, h200_sxm" in render_error(caught.value)


def test_without_tables_collectives_within_a_node_are_not_known(h100: Target) -> None:
    target = replace(h100, gpu=replace(gpu(h100), tables=None))
    found = instructions(COLLECTIVES, ", num_partitions=16")
    time = SpeedOfLightModel(target).edge_time(found["s"], found["d"])
    assert time == Time(5000.0, Origin.GUESS)


def test_what_xla_would_not_use_the_model_for() -> None:
    module = parse_module(
        "HloModule m ENTRY e { p = f32[2] parameter(0) "
        "ROOT c = f32[2] collective-broadcast(p), replica_groups={} }"
    )
    assert unsupported_by_xla(module) == "it has a collective-broadcast, %c"
    module = parse_module("HloModule m ENTRY e { ROOT p = f32[2] parameter(0) }")
    assert unsupported_by_xla(module) is None


IN_A_KERNEL = """
  p = f32[1024] parameter(0)
  s = f32[1024] all-reduce-start(p), replica_groups={{0,1,2,3,4,5,6,7}}, to_apply=add,
    backend_config={"collective_backend_config":{"is_sync":true,
    "kernel_strategy":"KERNEL_STRATEGY_TRITON_ONE_SHOT"}}
  ROOT d = f32[1024] all-reduce-done(s)
"""


def test_an_all_reduce_in_a_kernel_has_measured_times_as_in_the_library(h100: Target) -> None:
    found = instructions(IN_A_KERNEL)
    model = SpeedOfLightModel(h100)
    assert model.node_time(found["s"]) == Time(1, Origin.CONSTANT)
    time = model.edge_time(found["s"], found["d"])
    assert time.origin is Origin.COLLECTIVE_TABLE
    assert time.cycles == pytest.approx(32.512)  # of XLA:GPU's compiler


def test_a_target_may_have_a_formula_of_all_reduces_in_a_kernel(h100: Target) -> None:
    found = instructions(IN_A_KERNEL)
    target = replace(h100, gpu=replace(gpu(h100), kernel_formula=True))
    model = SpeedOfLightModel(target)
    moved = 4096 / target.memory_bandwidth * 1e6
    expected = 1 + 7 * 4096 / 360e3 + 1.5 + moved
    assert model.node_time(found["s"]).cycles == pytest.approx(expected)
    assert model.edge_time(found["s"], found["d"]).cycles == 1
    of_default = IN_A_KERNEL.replace("TRITON_ONE_SHOT", "DEFAULT")
    found = instructions(of_default)
    assert model.edge_time(found["s"], found["d"]).cycles == pytest.approx(32.512)
