"""Options of the collective pipeliner, as its table has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from conformance_lib.errors import NotModelled, RecordError
from conformance_lib.predicates import Predicate, predicate
from hloopt.ir import Instruction
from hloopt.ir.attributes.frontend_attributes import frontend_attributes, set_frontend_attributes
from hloopt.ir.attributes.scheduling_annotations import annotation_of

PIPELINER = "collective-pipeliner"

_UNLIMITED = ("max_pipelining_per_loop", "collective_size_threshold_to_delay_sinking")
_PREDICATES = (
    *("should_process", "acceptable_formatting", "reuse_pipelined_op_buffer"),
    "should_allow_loop_variant_parameter_in_chain",
)
_HOOKS = ("postprocess_backward_peeled_op", "postprocess_backward_rotated_op")


def pipeliner_options(options: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, object]:
    """The pass's arguments for a record's options and configuration.

    Raises RecordError for unknown descriptions.

    Predicates of a table do not mark what was moved, which is what a hook of XLA:GPU does.
    """
    is_spmd = bool(config.get("use_spmd_partitioning", False))
    result = dict(options) | {
        "keep_names": False,
        "mark_pipelined": False,
        "remove_cross_partition_collective_ops": is_spmd,
    }
    direction = str(options.get("pipelining_direction", "forward")).replace("_", "-")
    result["pipelining_direction"] = direction
    for name in _PREDICATES:
        if name in options:
            result[name] = _predicate(options[name], direction)
    for name in _UNLIMITED:
        if options.get(name) == "unlimited":
            result[name] = None
    for name in _HOOKS:
        if name in options:
            result[name] = _hook(options[name])
    return result


_CONSISTENT = "iteration_annotation_consistent_with_direction"
_NOT_HOST, _SINGLE_USER, _SPECIAL = "not_host_transfer", "single_user_that_is_not_root", "special"
WORDS = (
    *("unlimited", "set_frontend_attribute"),
    *(_CONSISTENT, _NOT_HOST, _SINGLE_USER, _SPECIAL),
)


def _predicate(value: object, direction: str) -> Predicate:
    if isinstance(value, dict) and _SPECIAL in value:
        raise NotModelled(f"no rule is known for special: {value[_SPECIAL]}")
    return predicate(value, _conditions(direction))


def _conditions(direction: str) -> dict[str, Callable[[Instruction], bool]]:
    iteration = -1 if direction == "backward" else 1

    def is_consistent(instruction: Instruction) -> bool:
        annotation = annotation_of(instruction)
        return annotation is not None and annotation.iteration == iteration

    return {
        _CONSISTENT: is_consistent,
        _NOT_HOST: lambda i: i.attributes.get("is_host_transfer") != "true",
        _SINGLE_USER: lambda i: len(i.users) == 1 and not next(iter(i.users)).is_root,
    }


def _hook(value: object) -> Callable[[Instruction], None]:
    match value:
        case {"set_frontend_attribute": dict(attributes), **rest} if not rest:
            return lambda instruction: set_frontend_attributes(
                instruction, {**frontend_attributes(instruction), **attributes}
            )
    raise RecordError(f"unknown hook: {value}")
