"""All-reduces and reduce-scatters between nodes: what memory and arithmetic add to the wires.

The microseconds are what XLA:GPU's compiler says on an H100.
"""

from __future__ import annotations

import pytest

from hloopt.analysis.latency.speed_of_light import SpeedOfLightModel
from hloopt.targets import load_target
from hloopt.text import parse_module

REDUCERS = """
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
product { d = f64[] parameter(0) e = f64[] parameter(1) ROOT f = f64[] multiply(d, e) }
largest { g = f64[] parameter(0) h = f64[] parameter(1) ROOT i = f64[] maximum(g, h) }
"""
GROUPS = "replica_groups=[1,16]<=[16], channel_id=1, use_global_device_ids=true"
LARGE = "f32[16777216]"


def time_of(
    *collectives: str, operands: str = f"p = {LARGE} parameter(0)", callees: str = ""
) -> list[float]:
    """The times of collectives of one module, each by its shape and operation."""
    names = [f"c{n}" for n in range(len(collectives))]
    lines = [f"{name} = {text}" for name, text in zip(names, collectives, strict=True)]
    text = f"HloModule m, num_partitions=16\n{REDUCERS}{callees}\nENTRY main {{\n{operands}\n"
    text += "\n".join(lines) + f"\nROOT r = tuple({', '.join(names)})\n}}"
    module, model = parse_module(text), SpeedOfLightModel(load_target("h100_sxm"))
    found = {i.name: i for i in module.entry.instructions}
    times = [model.collective_time(found[name]) for name in names]
    return [time.cycles for time in times if time is not None]


def test_an_application_of_the_reducer_costs_what_the_operation_does() -> None:
    """Nothing in two large reductions differs but that: 97 flops per element beside 3."""
    shape = "f64[16777216]"
    product, largest = time_of(
        f"{shape} all-reduce-start(p), {GROUPS}, to_apply=product",
        f"{shape} all-reduce-start(p), {GROUPS}, to_apply=largest",
        operands=f"p = {shape} parameter(0)",
    )
    assert product - largest == pytest.approx(1560.28 - 1536.71, abs=0.01)


def test_the_operation_on_several_arrays_has_no_cost_of_its_own() -> None:
    shape = "(f64[16777216], f64[16777216])"
    product, largest = time_of(
        f"{shape} all-reduce-start(p, p), {GROUPS}, to_apply=product",
        f"{shape} all-reduce-start(p, p), {GROUPS}, to_apply=largest",
        operands="p = f64[16777216] parameter(0)",
    )
    assert product == largest


def test_few_elements_keep_few_lanes_busy() -> None:
    shape = "f64[300]"
    product, largest = time_of(
        f"{shape} all-reduce-start(p), {GROUPS}, to_apply=product",
        f"{shape} all-reduce-start(p), {GROUPS}, to_apply=largest",
        operands=f"p = {shape} parameter(0)",
    )
    assert product - largest == pytest.approx(183.806 - 183.788, abs=1.1e-3)


def test_a_reduce_scatter_computes_its_share() -> None:
    [time] = time_of(f"f32[1048576] reduce-scatter(p), {GROUPS}, dimensions={{0}}, to_apply=add")
    assert time == pytest.approx(495.645, abs=1e-3)


def test_a_start_of_an_all_reduce_counts_what_it_writes_only() -> None:
    start, whole = time_of(
        f"{LARGE} all-reduce-start(p), {GROUPS}, to_apply=add",
        f"{LARGE} all-reduce(p), {GROUPS}, to_apply=add",
    )
    assert start == pytest.approx(849.357, abs=1e-3)
    assert whole == pytest.approx(869.375, abs=1e-3)


def test_an_all_reduce_in_an_async_start_counts_both() -> None:
    wrapper = f"w {{ q = {LARGE} parameter(0) ROOT s = {LARGE} all-reduce(q), {GROUPS}"
    [time] = time_of(
        f"(({LARGE}), {LARGE}) async-start(p), calls=w", callees=f"{wrapper}, to_apply=add }}"
    )
    assert time == pytest.approx(869.375, abs=1e-3)
