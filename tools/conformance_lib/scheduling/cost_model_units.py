"""Records that ask a model of time one question."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from conformance_lib.errors import RecordError
from conformance_lib.expectations import compare
from conformance_lib.records import text_of
from conformance_lib.scheduling.devices import GIGA, find_target, gpu_of, with_network
from conformance_lib.scheduling.models import find_model
from hloopt.analysis.latency import GpuFixedModel, LatencyModel, Origin, Time
from hloopt.analysis.latency.network import (
    all_to_all_time,
    kernel_all_reduce_time,
    ring_time,
    transfer_time,
)
from hloopt.analysis.latency.profile import Profile, ProfileModel, missing_edges, missing_nodes
from hloopt.analysis.latency.speed_of_light import SpeedOfLightModel, unsupported_by_xla
from hloopt.ir import Instruction
from hloopt.targets.gpu import Network
from hloopt.text import parse_module


class _Zero(LatencyModel):
    """The estimator that answers 0."""

    @property
    def cycles_per_microsecond(self) -> float:
        return 1.0

    def node_time(self, instruction: Instruction) -> Time:
        return Time(0.0, Origin.CONSTANT)

    def edge_time(self, source: Instruction, target: Instruction) -> Time:
        return Time(0.0, Origin.CONSTANT)


def _network(base: Network, config: Any, links: int | None) -> Network:
    """The parameters of a record's `sol_config`; "from_device": those of the target."""
    lanes = base.lanes if links is None else links
    if config == "from_device":
        return replace(base, lanes=lanes)
    return replace(
        base,
        launch=config["nccl_op_launch_time_us"],
        card_bandwidth=config["nic_speed_gbps"] * GIGA,
        chunk_time=config["chunk_prep_time_us"],
        chunk_size=config["chunk_size_bytes"],
        round_trip=config["rtt_us"],
        node_size=config["gpus_per_node"],
        partition_size=config.get("partition_size") or config["gpus_per_node"],
        lanes=lanes,
        lane_bandwidth=config.get("nvlink_bw_per_lane_gbps", base.lane_bandwidth / GIGA) * GIGA,
        barrier=config.get("nvlink_barrier_latency_us", base.barrier),
    )


def _formula(network: Network, case: Mapping[str, Any]) -> float | None:
    size = case["bytes"]
    if case["formula"] == "intra_node_all_reduce":
        return kernel_all_reduce_time(network, size, case["num_gpus"])
    nodes, communicators = case["num_nodes"], case["num_communicators"]
    if case["formula"] == "all_to_all":
        return all_to_all_time(network, size, nodes=nodes, communicators=communicators)
    if case["collective"] == "send-recv":
        return transfer_time(network, size, nodes=nodes)
    is_all_reduce = case["collective"] == "all-reduce"
    return ring_time(
        network, size, nodes=nodes, communicators=communicators, is_all_reduce=is_all_reduce
    )


def _sol_formulas(fields: Mapping[str, Any]) -> Iterator[str]:
    for case in fields["cases"]:
        if case["formula"] == "config_for_device":
            yield from _device_figures(case)
            continue
        base = gpu_of(find_target(None)).network
        network = _network(base, fields["sol_config"], case.get("active_nvlink_links"))
        yield from _check_time(str(case), _formula(network, case), case)


def _device_figures(case: Mapping[str, Any]) -> Iterator[str]:
    name = case["device_name"].removeprefix("NVIDIA ").partition(" ")[0].lower()
    network = gpu_of(find_target(name)).network
    if "nic_speed_gbps_floor" in case:
        speed = network.card_bandwidth // GIGA
        yield from compare(f"GB/s of {name}", speed, case["nic_speed_gbps_floor"])
    if "chunk_prep_time_us" in case:
        wanted, tolerance = case["chunk_prep_time_us"], case.get("tolerance_us", 0)
        if abs(network.chunk_time - wanted) > tolerance:
            yield f"µs per chunk of {name}: expected {wanted}, found {network.chunk_time}"


def _check_time(what: str, found: float | None, case: Mapping[str, Any]) -> Iterator[str]:
    """Compare a time in microseconds; None stands for an error."""
    if "error" in case:
        yield from compare(what, found, None)
        if case.get("error_kind", _REFUSAL) != _REFUSAL:
            yield f"{what}: the formulas refuse arguments, which is {_REFUSAL}"
    elif found is None:
        yield f"{what}: no answer"
    elif "equals_us" in case:
        yield from compare(what, int(found), case["equals_us"])
    elif "differs_from_us" in case:
        if case["differs_from_us"] == int(found):
            yield f"{what}: {found}"
    elif case.get("ok") is not True:
        raise RecordError(f"{what} expects nothing")


def _sol_latency(fields: Mapping[str, Any]) -> Iterator[str]:
    query = fields["query"]
    own = {name: fields[name] for name in ANSWERS if name in fields}
    for case in fields.get("cases", [own]):
        module = parse_module(text_of(fields))
        instruction = next(i for i in module.entry.instructions if i.opcode == query["opcode"])
        if "collective_backend_config" in case:
            config = {"collective_backend_config": case["collective_backend_config"]}
            instruction.set_attribute("backend_config", json.dumps(config))
        is_measured = case.get("interpolator", fields.get("interpolator")) is not None
        device = fields["device"]
        links = device.get("nvlink_active_links") if isinstance(device, Mapping) else None
        target = find_target(device)
        network = _network(gpu_of(target).network, fields["sol_config"], links)
        target = with_network(target, network, is_measured=is_measured)
        base = _Zero() if fields.get("base_estimator") == "zero" else None
        model = SpeedOfLightModel(target, base)
        match query["kind"]:
            case "collective_time":
                time = model.collective_time(instruction)
                found = None if time is None else time.cycles
            case "node_cost":
                found = model.node_cost(instruction)
            case "edge_latency":
                found = model.edge_time(instruction, next(iter(instruction.users))).cycles
            case _:
                raise RecordError(f"unknown query {query['kind']}")
        yield from _check_time(str(case), found, case)


_REFUSAL = "invalid_argument"
"""XLA's status where a formula has no answer."""
ANSWERS = ("equals_us", "differs_from_us", "ok", "error")


def _sol_supported(fields: Mapping[str, Any]) -> Iterator[str]:
    is_asked = fields["debug_options"]["xla_gpu_enable_analytical_sol_latency_estimator"]
    reason = unsupported_by_xla(parse_module(text_of(fields)))
    yield from compare("supported", is_asked and reason is None, fields["equals"])


def _latency_between(fields: Mapping[str, Any]) -> Iterator[str]:
    instructions = {i.name: i for i in parse_module(text_of(fields)).instructions()}
    model = find_model(fields["config"]["latency_estimator"])
    for expected in fields["expect"]:
        source, target, cycles = expected["latency_between"]
        found = model.latency(instructions[source], instructions[target])
        yield from compare(f"latency from %{source} to %{target}", found, cycles)


def _missing(fields: Mapping[str, Any]) -> Iterator[str]:
    """The instructions that an empty profile does not know."""
    entry = parse_module(text_of(fields)).entry
    model = ProfileModel(Profile(), GpuFixedModel())
    find = missing_nodes if fields["unit"] == "gpu_profile_missing_costs" else missing_edges
    found = [instruction.opcode.value for instruction in find(model, entry)]
    for expected in fields["expect"]:
        if "missing_opcodes" in expected:
            wanted = sorted(expected["missing_opcodes"])
            yield from compare("what is missing", sorted(found), wanted)
        else:
            yield from compare("what is found", len(model.profile.costs), expected["found_count"])


COST_MODEL_UNITS: dict[str, Callable[[Mapping[str, Any]], Iterator[str]]] = {
    "gpu_profile_missing_costs": _missing,
    "gpu_profile_missing_latencies": _missing,
    "latency_between": _latency_between,
    "sol_cost_model": _sol_formulas,
    "sol_latency": _sol_latency,
    "sol_supported_for_module": _sol_supported,
}
"""The questions by the name that records give them."""
