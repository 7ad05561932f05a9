"""Options of tables as options of our passes: where a table uses words, passes take callables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from conformance_lib.errors import RecordError
from conformance_lib.memory_space.pass_options import memory_space_options
from conformance_lib.pipeliner import PIPELINER, pipeliner_options
from conformance_lib.predicates import predicate
from conformance_lib.vocabulary.passes import has_option
from hloopt.analysis.side_effects import SideEffects
from hloopt.ir import Computation, Instruction
from hloopt.passes.simplification.cse import may_be_merged

DEBUG_OPTIONS = "debug_options"
_POLICIES = ("allow_inline", "prohibit_inline", "allow_ignore_frontend_attributes")


def pass_options(
    pass_name: str, options: Mapping[str, Any], config: Mapping[str, Any]
) -> dict[str, object]:
    """Arguments of `create_pass` for a record's options and configuration.

    Raises RecordError for a description in words that this module does not know. Options that a
    pass does not have are found by `create_pass`.
    """
    if pass_name == "memory-space-assignment":
        return memory_space_options(options)
    if pass_name == PIPELINER:
        return pipeliner_options(options, config)
    result: dict[str, object] = {}
    if pass_name == "float-normalization":
        options = _target_of_support(options)
    for name, value in options.items():
        translate = _TRANSLATIONS.get((pass_name, name))
        result[name] = translate(value) if translate else _plain(pass_name, name, value)
    for name, value in {**config, **config.get(DEBUG_OPTIONS, {})}.items():
        if has_option(pass_name, name):
            result[name] = value
    if pass_name == "call-inliner" and config.get("use_shardy_partitioner"):
        result["use_shardy"] = True
    if pass_name == "windowed-einsum-handler":
        result["assume_equal_scales"] = True  # as XLA does always
    return result


def _plain(pass_name: str, name: str, value: object) -> object:
    if isinstance(value, list):
        return tuple(value)
    if isinstance(value, dict):
        raise RecordError(f"option '{name}' of {pass_name}: no meaning is known for {value}")
    return value


def _override_policy(value: Mapping[str, Any]) -> Callable[[Instruction], str]:
    rules = [_rule(rule) for rule in value.get("rules", ())]
    default = _policy(value["default"])
    if unknown := value.keys() - {"default", "rules"}:
        raise RecordError(f"unknown in override_policy: {', '.join(sorted(unknown))}")

    def policy(call: Instruction) -> str:
        for applies, result in rules:
            if applies(call):
                return result
        return default

    return policy


def _rule(rule: Mapping[str, Any]) -> tuple[Callable[[Instruction], bool], str]:
    result = _policy(rule["policy"])
    match {name: value for name, value in rule.items() if name != "policy"}:
        case {"callee": list(names), **rest} if not rest:
            return lambda call: call.called[0].name in names, result
        case {"callee_root_opcode": str(opcode), **rest} if not rest:
            return lambda call: call.called[0].root.opcode == opcode, result
    raise RecordError(f"unknown rule of override_policy: {rule}")


def _policy(name: str) -> str:
    if name not in _POLICIES:
        raise RecordError(f"unknown policy '{name}'")
    return name


def _words(meanings: Mapping[str, object]) -> Callable[[Any], object]:
    """A translation of predicates, and of descriptions in words, each with its one meaning."""

    def translate(text: Any) -> object:
        if isinstance(text, bool | dict):
            return predicate(text)
        if not isinstance(text, str) or text not in meanings:
            raise RecordError(f"no meaning is known for {text!r}")
        return meanings[text]

    return translate


def _on_computations(value: object) -> Callable[[Computation], bool]:
    """`true` or `false`: the documents have no other predicate on computations."""
    if not isinstance(value, bool):
        raise RecordError(f"unknown predicate on computations: {value}")
    return lambda computation: value


def _target_of_support(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options that name a device's float support and a pair of types, as our passes take them."""
    rest = {name: value for name, value in options.items() if name not in SUPPORT_OPTIONS}
    low, high, support = (options.get(name) for name in SUPPORT_OPTIONS)
    if low is not None and high is not None:
        rest["float_support"] = {"low": low, "high": high}
    if support is not None:
        if support not in TARGETS_OF_SUPPORT:
            raise RecordError(f"unknown float support: {support}")
        rest["target"] = TARGETS_OF_SUPPORT[support]
    return rest


SUPPORT_OPTIONS = ("low_precision_type", "high_precision_type", "support")
"""Options of float-normalization in tables, for which ours are `float_support` and `target`."""

TARGETS_OF_SUPPORT = {
    "gpu, compute capability 8.0": "a100_sxm_80",
    "gpu, compute capability 9.0": "h100_sxm",
    "gpu, compute capability 10.0": "b200",
}
"""Our targets by the words that tables have for a device's float support."""


def _as_written(value: object) -> object:
    """A value that the pass itself reads in the form of the records."""
    return value


def _is_scalar(instruction: Instruction) -> bool:
    return instruction.shape.is_scalar


def _is_scalar_by_default(instruction: Instruction) -> bool:
    effects = SideEffects(instruction.parent.module)
    return instruction.shape.is_scalar and may_be_merged(instruction, effects)


def _scaled_dot_filter(value: Any) -> object:
    """All, none, or those of whose operands some have other element types than these."""
    match value:
        case bool():
            return value
        case {"operand_type_not": dict(types), **rest} if not rest:
            return lambda dot: all(
                dot.operands[int(number)].shape.type_name != name for number, name in types.items()
            )
    raise RecordError(f"unknown filter of scaled-dots: {value}")


def _most(value: object) -> object:
    """A number, or the word for none."""
    return None if value == "unlimited" else value


def _queue_id(value: Mapping[str, int]) -> Callable[[Instruction], int]:
    """The queue of the dots that are named, and of all others."""
    return lambda dot: value.get(f"%{dot.name}", value["else"])


_TRANSLATIONS: dict[tuple[str, str], Callable[[Any], object]] = {
    ("bfloat16-conversion-folding", "float_support"): _as_written,
    ("bfloat16-propagation", "float_support"): _as_written,
    ("call-inliner", "override_policy"): _override_policy,
    ("call-splitter", "boundary"): predicate,
    ("call-splitter", "call_predicate"): predicate,
    ("copy-insertion", "should_skip_removal"): predicate,
    ("rematerialization", "async_computation_parallelism"): _as_written,
    ("remove-unnecessary-copies", "should_skip_removal"): predicate,
    ("cse", "should_eliminate_computation"): _on_computations,
    ("cse", "should_combine_constant"): _words({"result is a scalar": _is_scalar}),
    ("cse", "should_eliminate_instruction"): _words(
        {"default and result is a scalar": _is_scalar_by_default}
    ),
    ("dot-merger", "max_size_to_merge"): _most,
    ("dot-merger", "queue_id"): _queue_id,
    ("float-normalization", "float_support"): _as_written,
    ("scaled-dot-rewriter", "filter"): _scaled_dot_filter,
    ("operand_upcaster", "extra_filter"): predicate,
    ("reduce-decomposer", "custom_layout_allowed"): predicate,
    ("result_caster", "extra_filter"): predicate,
    ("topk-decomposer", "should_decompose"): predicate,
    ("topk-rewriter", "is_profitable_to_convert"): predicate,
    ("tree_reduction_rewriter", "filter"): predicate,
    ("while-loop-expensive-invariant-code-motion", "worth_hoisting_individually"): predicate,
    ("flatten-call-graph", "skip_cloning"): _words(
        {"computations whose callers are all call instructions": "call-only"}
    ),
}
