"""Options of the collective pipeliner, as its table has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from conformance_lib.errors import NotModelled, RecordError
from conformance_lib.forms import unknown_words
from hloopt.ir import Instruction
from hloopt.ir.attributes.frontend_attributes import frontend_attributes, set_frontend_attributes
from hloopt.passes.rewriting.scheduling_annotations import annotation_of

PIPELINER = "collective-pipeliner"

_UNLIMITED = ("max_pipelining_per_loop", "collective_size_threshold_to_delay_sinking")
_PREDICATES = (
    *("acceptable_formatting", "reuse_pipelined_op_buffer"),
    "should_allow_loop_variant_parameter_in_chain",
)
_HOOKS = ("postprocess_backward_peeled_op", "postprocess_backward_rotated_op")


def pipeliner_options(options: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, object]:
    """What the pass takes for a record's options and configuration.

    Raises RecordError for unknown descriptions.

    Predicates of a table do not mark what was moved, which is what a hook of XLA:GPU does.
    """
    is_spmd = bool(config.get("use_spmd_partitioning", False))
    result = dict(options) | {
        "keep_names": False,
        "mark_pipelined": False,
        "remove_cross_partition_collective_ops": is_spmd,
    }
    direction = str(options["pipelining_direction"]).replace("_", "-")
    result["pipelining_direction"] = direction
    result["should_process"] = _predicate(options["should_process"], direction)
    for name in _PREDICATES:
        result[name] = _predicate(options[name], direction)
    for name in _UNLIMITED:
        if options[name] == "unlimited":
            result[name] = None
    for name in _HOOKS:
        if name in options:
            result[name] = _hook(options[name])
    return result


_CONSISTENT = "iteration_annotation_consistent_with_direction"
_NOT_HOST, _SINGLE_USER, _SPECIAL = "not_host_transfer", "single_user_that_is_not_root", "special"
PREDICATE_WORDS = (
    *("opcodes", "not_opcodes", "custom_call_targets", "unlimited", "set_frontend_attribute"),
    *(_CONSISTENT, _NOT_HOST, _SINGLE_USER, _SPECIAL),
)


def _predicate(value: object, direction: str) -> Callable[[Instruction], bool]:
    """`true`, `false`, or opcodes and targets of which one holds, with conditions that all hold."""
    if isinstance(value, bool):
        return lambda instruction: value
    if not isinstance(value, dict):
        raise RecordError(f"unknown predicate: {value}")
    given = dict(value)
    excluded = given.pop("not_opcodes", None)
    opcodes = given.pop("opcodes", ())
    targets = [f'"{target}"' for target in given.pop("custom_call_targets", ())]
    if _SPECIAL in given:
        raise NotModelled(f"no rule is known for special: {given[_SPECIAL]}")
    conditions = _conditions(direction)
    if reason := unknown_words("part of a predicate", given, PREDICATE_WORDS):
        raise RecordError(reason)
    if false := sorted(name for name, value in given.items() if value is not True):
        raise RecordError(f"a condition that is not true has no meaning: {', '.join(false)}")
    wanted = [conditions[name] for name in given]

    def holds(instruction: Instruction) -> bool:
        opcode = instruction.opcode.value
        if excluded is not None:
            return opcode not in excluded
        is_target = instruction.attributes.get("custom_call_target") in targets
        return (opcode in opcodes or is_target) and all(check(instruction) for check in wanted)

    return holds


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
