"""A target fitted to the times of a module that it did not run as fast as it could."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hloopt.analysis.calibration import Calibration, calibrate
from hloopt.analysis.calibration.fitting import Fit
from hloopt.analysis.calibration.samples import Kind, Name, samples_of
from hloopt.analysis.latency.roofline import RooflineModel
from hloopt.diagnostics import HloError
from hloopt.ir import Module
from hloopt.targets import Target, load_target
from hloopt.text import parse_module

H100, V5P = load_target("h100_sxm"), load_target("tpu_v5p")
ADD = "add { x = f32[] parameter(0) y = f32[] parameter(1) ROOT z = f32[] add(x, y) }"


def program(devices: int = 16) -> Module:
    """Copies, products and all-reduces of several sizes, within a node and between nodes."""
    lines, results = [], []
    for number in range(6):
        n = 512 << (number % 3)
        lines += [
            f"p{number} = bf16[{n},{n}] parameter({number})",
            f"c{number} = bf16[{n},{n}] copy(p{number})",
            f"d{number} = bf16[{n},{n}] dot(c{number}, p{number}), lhs_contracting_dims={{1}}, "
            "rhs_contracting_dims={0}",
            f"f{number} = f32[{n},{n}] fusion(d{number}), kind=kLoop, calls=body{number}",
            f"near{number} = f32[{n},{n}] all-reduce(f{number}), replica_groups=[2,8]<=[16], "
            f"to_apply=add, channel_id={number + 1}",
            f"far{number} = f32[{n},{n}] all-reduce(near{number}), replica_groups=[1,16]<=[16], "
            f"to_apply=add, channel_id={number + 9}, use_global_device_ids=true",
        ]
        results.append(f"far{number}")
    bodies = "".join(
        f"body{number} {{ v = bf16[{n},{n}] parameter(0) ROOT w = f32[{n},{n}] convert(v) }}\n"
        for number, n in enumerate(512 << (number % 3) for number in range(6))
    )
    return parse_module(
        f"HloModule m, is_scheduled=true, num_partitions={devices}\n{ADD}\n{bodies}"
        f"ENTRY e {{ {' '.join(lines)} ROOT r = tuple({', '.join(results)}) }}"
    )


def costs_on(target: Target, module: Module) -> dict[str, float]:
    """Microseconds of all instructions that have a time."""
    everything = dict.fromkeys((i.name for i in module.instructions()), 1.0)
    return {
        sample.instruction.name: Fit().time(sample) * 1e6
        for sample in samples_of(module, target, everything)
    }


def slower(target: Target) -> Target:
    gpu = target.gpu
    if gpu is not None:
        network = replace(gpu.network, launch=20.0, lane_bandwidth=9e9, card_bandwidth=11e9)
        gpu = replace(gpu, network=network)
    return replace(
        target,
        memory_bandwidth=target.memory_bandwidth * 0.7,
        matrix={kind: rate * 0.5 for kind, rate in target.matrix.items()},
        links=tuple(replace(link, bandwidth=link.bandwidth * 0.6) for link in target.links),
        gpu=gpu,
    )


def figures(calibration: Calibration) -> dict[Name, float]:
    return {figure.name: figure.after for figure in calibration.figures}


def test_the_figures_of_a_gpu_are_found() -> None:
    module = program()
    found = calibrate(module, H100, costs_on(slower(H100), module), "p.pbtxt")
    after = figures(found)
    assert after == {
        Name(Kind.MEMORY): pytest.approx(H100.memory_bandwidth * 0.7),
        Name(Kind.MATRIX, "bf16"): pytest.approx(H100.matrix["bf16"] * 0.5),
        Name(Kind.NVLINK): pytest.approx(9e9),
        Name(Kind.CARD): pytest.approx(11e9),
        Name(Kind.LAUNCH): pytest.approx(20),
    }
    target = found.target
    assert target.gpu is not None
    assert H100.gpu is not None
    assert target.matrix["f8"] == H100.matrix["f8"]
    assert target.vector == H100.vector
    assert target.links == H100.links  # collectives go by the section gpu
    network = target.gpu.network
    assert network.lane_bandwidth == after[Name(Kind.NVLINK)]
    assert network.card_bandwidth == after[Name(Kind.CARD)]
    assert network.launch == after[Name(Kind.LAUNCH)]
    assert network.node_size == H100.gpu.network.node_size
    assert target.title.endswith(", calibrated")
    noted = [text.endswith("; fitted to p.pbtxt") for text in target.sources]
    assert noted == [text.startswith(("matrix", "memory")) for text in target.sources]


def test_the_links_of_others_are_found() -> None:
    module = program()
    found = calibrate(module, V5P, costs_on(slower(V5P), module), "p.pbtxt")
    (link,) = found.target.links
    assert link.bandwidth == pytest.approx(V5P.links[0].bandwidth * 0.6)
    assert link.source.endswith("; fitted to p.pbtxt")
    assert Name(Kind.LAUNCH) not in figures(found)
    assert found.target.gpu is None


@pytest.mark.parametrize("target", [H100, V5P], ids=["h100", "v5p"])
def test_the_calibrated_target_has_the_measured_times(target: Target) -> None:
    module = program()
    costs = costs_on(slower(target), module)
    found = calibrate(module, target, costs, "p")
    model = RooflineModel(found.target, module)
    for instruction in module.instructions():
        if instruction.name in costs:
            time = model.node_time(instruction).cycles
            assert time == pytest.approx(costs[instruction.name], rel=1e-6)
    *_, last = found.errors
    assert last.name is None
    assert last.samples == found.samples == len(costs)
    assert last.after < 1e-6 < 0.2 < last.before
    assert last.held_out is not None
    assert last.held_out < 0.05
    assert last.seconds == pytest.approx(sum(costs.values()) / 1e6)


def test_what_nothing_is_known_of_counts_for_no_figure() -> None:
    module = parse_module(f"""
HloModule m, is_scheduled=true, replica_count=2
{ADD}
less {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = pred[] compare(a, b), direction=LT }}
w {{ u = f32[64] parameter(0) ROOT s.w = f32[64] sort(u), dimensions={{0}}, to_apply=less }}
ENTRY e {{
  p = f32[64] parameter(0)
  sorted = f32[64] sort(p), dimensions={{0}}, to_apply=less
  mine = f32[64] custom-call(sorted), custom_call_target="mine"
  called = f32[64] call(mine), to_apply=w
  lonely = f32[64] all-reduce(called), replica_groups={{{{0}},{{1}}}}, to_apply=add
  s = (f32[64], f32[128]) all-gather-start(lonely), dimensions={{0}}
  d = f32[128] all-gather-done(s)
  k = f32[128] copy(d)
  cs = (f32[128], f32[128], u32[]) copy-start(k)
  cd = f32[128] copy-done(cs)
  t = (f32[128]) tuple(cd)
  ROOT g = f32[128] get-tuple-element(t), index=0
}}
""")
    everything = dict.fromkeys((i.name for i in module.instructions()), 1.0)
    names = [sample.instruction.name for sample in samples_of(module, V5P, everything)]
    assert names == ["z", "c", "s", "k"]


def test_costs_of_0_and_of_others_do_not_count() -> None:
    module = program()
    costs = costs_on(slower(V5P), module)
    more = costs | {"nobody": 5.0, "r": 0.0}
    found = calibrate(module, V5P, more, "p")
    assert (found.costs, found.named) == (len(costs) + 1, len(costs))
    assert figures(found) == figures(calibrate(module, V5P, costs, "p"))


def test_few_times_are_refused_and_few_more_have_no_held_out_error() -> None:
    module = program()
    costs = costs_on(slower(V5P), module)
    two = {name: costs[name] for name in ("c0", "c1")}
    with pytest.raises(HloError, match="times of 2 instructions of m whose bytes or flops are kn"):
        calibrate(module, V5P, two, "p")
    three = calibrate(module, V5P, two | {"c2": costs["c2"]}, "p")
    assert figures(three) == {Name(Kind.MEMORY): pytest.approx(V5P.memory_bandwidth * 0.7)}
    assert three.errors[-1].held_out is None


def test_a_module_before_fusion_is_refused() -> None:
    module = parse_module("""
HloModule m
ENTRY e { p = f32[8] parameter(0) a = f32[8] negate(p) ROOT b = f32[8] negate(a) }
""")
    with pytest.raises(HloError, match="m is not fused"):
        calibrate(module, V5P, {"a": 1.0}, "p")


def test_a_link_may_have_the_name_of_another_figure() -> None:
    (ici,) = V5P.links
    odd = replace(V5P, links=(replace(ici, name="memory"),))
    module = program()
    found = calibrate(module, odd, costs_on(slower(odd), module), "p")
    assert figures(found)[Name(Kind.LINK, "memory")] == pytest.approx(ici.bandwidth * 0.6)
    assert found.target.memory_bandwidth == pytest.approx(V5P.memory_bandwidth * 0.7)
