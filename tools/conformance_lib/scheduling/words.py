"""Whether a record of the scheduler is made of known words, before anything runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields as fields_of
from typing import Any

from conformance_lib.errors import RecordError
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
from conformance_lib.scheduling.expectations import ACROSS, EXPECTATIONS
from conformance_lib.scheduling.trackers import TRACKER
from conformance_lib.selector_syntax import NAME, OPCODE
from hloopt.scheduling.config import SchedulerConfig

PASSES = (
    *("async-collective-creator", "legalize-scheduling-annotations", "latency-hiding-scheduler"),
    *("convert-async-collectives-to-sync", "gpu-convert-async-collectives-to-sync"),
    *("latency-hiding-scheduler-preparation", "hlo-memory-scheduler", "hlo-trivial-scheduler"),
    *("hlo-descheduler", "gpu-schedule-module", "gpu-schedule-post-process"),
)
_PASS = only(*PASSES)
_SUBSTITUTIONS = list_of(row(TEXT, TEXT))


def _estimator_problem(value: object) -> str | None:
    names = ("approximate", "test", "gpu")
    if isinstance(value, str) and value in names:
        return None
    if not isinstance(value, dict):
        return f"no meaning is known for latency_estimator {value}"
    return _GUIDED.problem(value)


_ESTIMATOR = Form(_estimator_problem, frozenset(("approximate", "test", "gpu")))
_GUIDED = keys(
    {"kind": only("profile_guided"), "base": _ESTIMATOR},
    {"costs": mapping(NAME, NUMBER), "latencies": mapping(TEXT, NUMBER)},
)
EARLY_RULE = "gpu_d2d_overlap"
_CONFIG: Mapping[str, Form] = {
    **{field.name: ANY for field in fields_of(SchedulerConfig)},
    "latency_estimator": Form(_estimator_problem, _ESTIMATOR.words | _GUIDED.words),
    "async_tracker": either(only("gpu"), TRACKER),
    "early_target_rule": only(EARLY_RULE),
    "log_computation_re": TEXT,
    "use_real_cost_model": BOOL,
}
_CONFIGURATION = keys({}, _CONFIG, what="field of the scheduler's configuration")
_PROFILE = keys({"costs": mapping(NAME, NUMBER)}, {"format": only("binary")})
_FLAGS = mapping(TEXT, ANY)
_VARIANT = keys(
    {"name": TEXT},
    {
        "config": _CONFIGURATION,
        "debug_options": _FLAGS,
        "pgle_profile": _PROFILE,
        "expect": EXPECTATIONS,
    },
)
DEVICE = either(
    only("any", "rtx_a6000", "h100_sxm", "h100", "h200", "b200"),
    keys({"name": TEXT}, {"compute_capability": TEXT, "nvlink_active_links": INT}),
)
FIELDS: Mapping[str, Form] = {
    "id": TEXT,
    "skip": TEXT,
    "notes": TEXT,
    "hlo": TEXT,
    "hlo_authored": BOOL,
    "hlo_from": ANY,
    "hlo_format": ANY,
    "hlo_subst": _SUBSTITUTIONS,
    "verify_input": BOOL,
    "module_config": keys({}, {"replica_count": INT, "device_memory_size": INT}),
    "platform": only("gpu"),
    "device": DEVICE,
    "passes": list_of(_PASS),
    "pass_options": either(only({}), mapping(_PASS, ANY)),
    "config": either(only({}), _CONFIGURATION),
    "debug_options": either(only({}), _FLAGS),
    "pgle_profile": _PROFILE,
    "expect": EXPECTATIONS,
    "variants": list_of(_VARIANT),
    "steps": list_of(keys({"config": _CONFIGURATION, "expect": EXPECTATIONS})),
    "runs": list_of(keys({"name": TEXT, "hlo_subst": optional_list(row(TEXT, TEXT))})),
    "expect_across_runs": list_of(ACROSS),
    "then": list_of(keys({"passes": list_of(_PASS), "expect": EXPECTATIONS})),
    "unschedule": list_of(NAME),
    "preferences": either(only("random"), mapping(NAME, NUMBER)),
    "force_schedule": list_of(NAME),
    "initial_schedule": only("post_order"),
    "async_names": mapping(NAME, row(NAME, NAME)),
    "resource_cases": list_of(ANY),
}
_DEMANDS = ("expect", "steps", "expect_across_runs", "then", "resource_cases")
PREDICATE = keys({}, {"only_opcodes": list_of(OPCODE), "except_opcodes": list_of(OPCODE)})
PREDICATE_OPTIONS = ("keep_sync_annotation", "keep_trivial_sync_annotation")


def check_words(fields: Mapping[str, Any]) -> None:
    """Raise RecordError for a word that nothing here knows, and where nothing is expected."""
    if reason := keys({}, FIELDS, what="record field").problem(dict(fields)):
        raise RecordError(reason)
    told = [fields, *fields.get("variants", ())]
    if not any(part.get(name) for part in told for name in _DEMANDS):
        raise RecordError("the record expects nothing: any outcome would pass")
    later = [name for then in fields.get("then", ()) for name in then["passes"]]
    runs = [*fields["passes"], *later]
    options = fields.get("pass_options", {})
    if reason := unknown_words("pass with options", options, runs):
        raise RecordError(reason)
    for given in options.values():
        for name in given.keys() & set(PREDICATE_OPTIONS):
            form = either(only("all", "none", True, False), PREDICATE)
            if reason := form.problem(given[name]):
                raise RecordError(f"{name}: {reason}")
    if "async_names" in fields and "async-collective-creator" not in runs:
        raise RecordError("async_names without async-collective-creator")
