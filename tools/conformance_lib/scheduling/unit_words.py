"""The words of records that ask one question, by question."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conformance_lib.errors import NotModelled, RecordError
from conformance_lib.forms import (
    ANY,
    BOOL,
    INT,
    NUMBER,
    TEXT,
    Form,
    either,
    keys,
    list_of,
    mapping,
    only,
    optional_list,
    row,
    unknown_words,
)
from conformance_lib.scheduling.outcome import KINDS
from conformance_lib.scheduling.units import FUTURE_UNITS, UNITS
from conformance_lib.scheduling.words import DEVICE, FIELDS
from conformance_lib.selector_syntax import NAME, OPCODE

_NONE = only(None)
_ANSWER: Mapping[str, Form] = {
    "equals_us": INT,
    "differs_from_us": INT,
    "ok": only(True),
    "error": TEXT,
    "error_kind": only(*KINDS),
}
_INTERPOLATOR = only(None, "built_in_table")
_NETWORK = keys(
    {
        "nccl_op_launch_time_us": NUMBER,
        "nic_speed_gbps": NUMBER,
        "chunk_prep_time_us": NUMBER,
        "rtt_us": NUMBER,
        "gpus_per_node": INT,
        "chunk_size_bytes": INT,
    },
    {
        "partition_size": INT,
        "nvlink_bw_per_lane_gbps": NUMBER,
        "nvlink_barrier_latency_us": NUMBER,
    },
)
_FORMULA = keys(
    {"formula": only("ring", "all_to_all", "intra_node_all_reduce", "config_for_device")},
    {
        "collective": only(
            *("all-gather", "all-reduce", "reduce-scatter", "all-to-all", "send-recv")
        ),
        "bytes": INT,
        "num_nodes": INT,
        "num_communicators": INT,
        "num_gpus": INT,
        "active_nvlink_links": INT,
        "device_name": TEXT,
        "nic_speed_gbps_floor": NUMBER,
        "chunk_prep_time_us": NUMBER,
        "tolerance_us": NUMBER,
        **_ANSWER,
    },
)
_LATENCY = keys(
    {},
    {"interpolator": _INTERPOLATOR, "collective_backend_config": ANY, **_ANSWER},
)
_QUERY = keys({"kind": only("collective_time", "node_cost", "edge_latency"), "opcode": OPCODE})
_OPERATION = keys(
    {},
    {
        "add": row(INT, NAME),
        "delete": row(INT, NAME),
        "delete_missing": row(INT, NAME),
        "finish_times": list_of(NUMBER),
    },
)
RESOURCE_CASE = keys(
    {"instr": NAME},
    {
        "supported_async_start": BOOL,
        "supported_async_done": BOOL,
        "resources": optional_list(row(TEXT, TEXT)),
        "resource_counts": either(INT, mapping(TEXT, INT)),
    },
)
_MISSING = {
    "expect": list_of(keys({}, {"missing_opcodes": optional_list(OPCODE), "found_count": INT}))
}
_GPU_CONFIG = either(only({}), mapping(TEXT, ANY))
_OWN: Mapping[str, Mapping[str, Form]] = {
    "latency_from_metadata": {
        "cases": list_of(
            keys(
                {"latency_metadata": either(TEXT, _NONE), "cycles_per_microsecond": NUMBER},
                {"equals": either(NUMBER, _NONE), "tolerance": NUMBER},
            )
        )
    },
    "shareable_resource_occupiers": {
        "cases": list_of(keys({"latency": mapping(NAME, NUMBER), "ops": list_of(_OPERATION)})),
        "tolerance": NUMBER,
    },
    "latency_between": {
        "expect": list_of(keys({"latency_between": row(NAME, NAME, NUMBER)})),
        "config": keys({"latency_estimator": ANY}, {"schedule_send_recvs": BOOL}),
    },
    "gpu_profile_missing_costs": _MISSING,
    "gpu_profile_missing_latencies": _MISSING,
    "gpu_resources": {"cases": list_of(RESOURCE_CASE)},
    "gpu_resource_hazards": {
        "cases": list_of(keys({"config": _GPU_CONFIG, "hazards": mapping(TEXT, TEXT)}))
    },
    "gpu_valuable_for_selective_overlap": {
        "cases": list_of(keys({"config": _GPU_CONFIG, "valuable": mapping(NAME, BOOL)})),
        "reification_cost": mapping(NAME, mapping(TEXT, NUMBER)),
    },
    "sol_supported_for_module": {"equals": BOOL, "debug_options": mapping(TEXT, ANY)},
    "sol_cost_model": {"cases": list_of(_FORMULA), "sol_config": _NETWORK},
    "sol_latency": {
        "cases": list_of(_LATENCY),
        "query": _QUERY,
        "sol_config": either(only("from_device"), _NETWORK),
        "interpolator": _INTERPOLATOR,
        "base_estimator": only("zero"),
        **_ANSWER,
    },
}
_USUAL = ("id", "notes", "hlo", "hlo_authored", "hlo_from", "hlo_format", "hlo_subst", "platform")
_DEMANDS = ("cases", "expect", "equals", *_ANSWER)

UNIT_WORDS = frozenset(
    word
    for unit, forms in _OWN.items()
    for name, form in forms.items()
    for word in (unit, name, *form.words)
)


def check_unit(fields: Mapping[str, Any]) -> None:
    """Raise RecordError for words that nothing here knows, NotModelled for a known question that
    nothing answers."""
    unit = fields["unit"]
    if unit in FUTURE_UNITS:
        raise NotModelled(f"nothing answers the question '{unit}'")
    if reason := unknown_words("unit", [unit], [*UNITS, *FUTURE_UNITS]):
        raise RecordError(reason)
    usual = {name: FIELDS[name] for name in _USUAL}
    forms = {**usual, "unit": TEXT, "device": DEVICE, "verify_input": BOOL, **_OWN[unit]}
    if reason := keys({}, forms, what="record field").problem(dict(fields)):
        raise RecordError(reason)
    if not any(name in fields for name in _DEMANDS):
        raise RecordError("the record expects nothing: any outcome would pass")
