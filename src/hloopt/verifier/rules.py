"""The rules of HLO, beyond structure and shapes: which there are, and which opcodes they are about.

A rule is a function; its docstring says what it checks. It is imported when a module has one of
its opcodes, and asked only where its opcodes, attributes and options apply: it need not look again.

- A rule about an *instruction* raises HloError. It may look at the opcode, the shapes, the
  attributes but for metadata, and the signatures of what is called: its verdict is remembered for
  all instructions with the same of these.
- A rule about a *computation* or a *module* yields errors. It is given the instructions with its
  opcodes, in order, and runs where there is one. A rule about a module and no opcode in particular
  is given the parameters of the entry computation.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from hloopt.diagnostics import HloError
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import (
    ASYNC,
    CONTROL_FLOW_CALLERS,
    EMBEDDED_CALLERS,
    PERMUTING,
    Opcode,
)

if TYPE_CHECKING:
    from hloopt.verifier.options import Setting, VerifierOptions


_CODES = {
    "calls": "HLO204",
    "shapes": "HLO302",
    "layouts": "HLO303",
    "kept_layouts": "HLO303",
    "sharding": "HLO304",
    "annotations": "HLO305",
    "collectives": "HLO400",
    "channels": "HLO401",
    "deadlocks": "HLO401",
    "async_chains": "HLO402",
    "aliasing": "HLO403",
    "buffers": "HLO404",
}
"""Codes of errors by the module of the rule."""


class Rule(NamedTuple):
    """A rule by its place, `module:function`, and when it is asked."""

    function: str
    opcodes: frozenset[Opcode] = frozenset()
    """The opcodes it is about; empty: all."""
    attributes: frozenset[str] = frozenset()
    """Asked of what has one of these attributes; empty: of all."""
    option: str = ""
    """Asked with this option of the verifier only."""
    unless: str = ""
    """Asked without this option of the verifier only."""
    of_odd_shapes: bool = False
    """Asked only where a shape is not plain (`instruction_rules`)."""
    of_mixed_types: bool = False
    """Asked only where operands differ in type, or are tuples."""

    @property
    def code(self) -> str:
        """The code of its errors."""
        return _CODES[self.function.partition(":")[0]]

    def is_asked(self, options: VerifierOptions) -> bool:
        return (not self.option or getattr(options, self.option)) and not (
            self.unless and getattr(options, self.unless)
        )


def _rule(
    function: str,
    *opcodes: Opcode,
    has: str = "",
    option: str = "",
    unless: str = "",
    of_odd_shapes: bool = False,
    of_mixed_types: bool = False,
) -> Rule:
    return Rule(
        *(function, frozenset(opcodes), frozenset(has.split()), option, unless),
        of_odd_shapes=of_odd_shapes,
        of_mixed_types=of_mixed_types,
    )


REDUCING = (Opcode.ALL_REDUCE, Opcode.ALL_REDUCE_START)
GATHERING = (Opcode.ALL_GATHER, Opcode.ALL_GATHER_START)
EXCHANGING = (Opcode.ALL_TO_ALL, Opcode.RAGGED_ALL_TO_ALL)
_PAIRED = (
    *(Opcode.ALL_GATHER_START, Opcode.ALL_GATHER_DONE, Opcode.ALL_REDUCE_START),
    *(Opcode.ALL_REDUCE_DONE, Opcode.COLLECTIVE_PERMUTE_START, Opcode.COLLECTIVE_PERMUTE_DONE),
    *(Opcode.COPY_START, Opcode.COPY_DONE),
)
_TRANSFERS = (Opcode.SEND, Opcode.SEND_DONE, Opcode.RECV, Opcode.RECV_DONE)

_MAY_MIX = frozenset(
    (
        *(Opcode.ADD_DEPENDENCY, Opcode.ALL_GATHER, Opcode.ALL_GATHER_START, Opcode.CALL),
        *(Opcode.ALL_GATHER_DONE, Opcode.ALL_REDUCE, Opcode.ALL_REDUCE_START, Opcode.ALL_TO_ALL),
        *(Opcode.ALL_REDUCE_DONE, Opcode.ASYNC_START, Opcode.ASYNC_UPDATE, Opcode.ASYNC_DONE),
        *(Opcode.BITCAST, Opcode.COLLECTIVE_PERMUTE, Opcode.COLLECTIVE_PERMUTE_START),
        *(Opcode.COLLECTIVE_PERMUTE_DONE, Opcode.CONDITIONAL, Opcode.CONVOLUTION),
        *(Opcode.COPY_START, Opcode.COPY_DONE, Opcode.CUSTOM_CALL, Opcode.DOMAIN, Opcode.DOT),
        *(Opcode.FUSION, Opcode.GET_TUPLE_ELEMENT, Opcode.INFEED, Opcode.OPT_BARRIER),
        *(Opcode.OUTFEED, Opcode.RAGGED_DOT, Opcode.RECV, Opcode.RECV_DONE, Opcode.SCALED_DOT),
        *(Opcode.REDUCE_WINDOW, Opcode.SCAN, Opcode.SEND, Opcode.SEND_DONE, Opcode.SORT),
        *(Opcode.TUPLE, Opcode.WHILE),
    )
)
"""Opcodes whose operands stand beside each other, or that convert them."""

INSTRUCTION_RULES: tuple[Rule, ...] = (
    _rule("layouts:check_dimension_order", of_odd_shapes=True),
    _rule(
        "collectives:check_replica_groups",
        *(*REDUCING, *GATHERING, *EXCHANGING, Opcode.REDUCE_SCATTER),
    ),
    _rule("collectives:check_gathered_sizes", *GATHERING, Opcode.REDUCE_SCATTER),
    _rule("collectives:check_all_to_all", Opcode.ALL_TO_ALL),
    _rule("collectives:check_ragged_all_to_all", Opcode.RAGGED_ALL_TO_ALL),
    _rule("collectives:check_source_target_pairs", *PERMUTING),
    _rule("async_chains:check_async", *ASYNC),
    _rule(
        "aliasing:check_operand_aliasing",
        *(Opcode.CUSTOM_CALL, Opcode.FUSION, Opcode.ASYNC_START),
        has="output_to_operand_aliasing",
    ),
    _rule("calls:check_composite", Opcode.CALL, has="is_composite"),
    _rule("calls:check_conditional", Opcode.CONDITIONAL),
    _rule("calls:check_fusion", Opcode.FUSION),
    _rule("buffers:check_custom_call", Opcode.CUSTOM_CALL),
    _rule("buffers:check_rng_seed", Opcode.CUSTOM_CALL),
    _rule("shapes:check_rng", Opcode.RNG),
    _rule("shapes:check_iota", Opcode.IOTA),
    _rule("shapes:check_comparison", Opcode.COMPARE, has="type"),
    _rule("shapes:check_scales", Opcode.SCALED_DOT),
    _rule(
        "shapes:check_precisions",
        *(frozenset(Opcode) - _MAY_MIX),
        unless="allow_mixed_precision",
        of_mixed_types=True,
    ),
    _rule("calls:check_applied", Opcode.MAP),
    _rule("layouts:check_copy_precision", Opcode.COPY),
)
"""Checked before the shape."""

SHAPED_RULES: tuple[Rule, ...] = (
    _rule("shapes:check_bounds", of_odd_shapes=True),
    _rule("buffers:check_allowed", of_odd_shapes=True),
    _rule("sharding:check_sharding", has="sharding"),
    _rule("annotations:check_original_value", has="origin"),
    _rule("layouts:check_host_memory", option="verify_no_host_memory_space"),
    _rule("layouts:check_layouts", option="layout_sensitive"),
    _rule(
        "kept_layouts:check_callees",
        *(Opcode.CALL, Opcode.WHILE, Opcode.CONDITIONAL, Opcode.FUSION),
        option="layout_sensitive",
    ),
    _rule("kept_layouts:check_async_layouts", *ASYNC, option="layout_sensitive"),
    _rule(
        "kept_layouts:check_outfeed", Opcode.OUTFEED, has="outfeed_shape", option="layout_sensitive"
    ),
    _rule("kept_layouts:check_bitcast", Opcode.BITCAST, option="layout_sensitive"),
    _rule("kept_layouts:check_host_copy", Opcode.COPY, option="layout_sensitive"),
    _rule(
        "kept_layouts:check_copy_pair",
        Opcode.COPY_START,
        Opcode.COPY_DONE,
        option="layout_sensitive",
    ),
    _rule("layouts:check_dynamic_slice_memory", Opcode.DYNAMIC_SLICE, option="layout_sensitive"),
    _rule(
        "layouts:check_broadcast_order",
        Opcode.BROADCAST,
        option="verify_broadcast_dimensions_order",
    ),
    _rule("layouts:check_reshape", Opcode.RESHAPE, option="verify_reshape_is_bitcast"),
    _rule("layouts:check_scan", Opcode.SCAN, option="layout_sensitive"),
)
"""Checked of instructions whose shape follows from their operands."""

COMPUTATION_RULES: tuple[Rule, ...] = (
    _rule("calls:check_threads", *(CONTROL_FLOW_CALLERS | EMBEDDED_CALLERS)),
    _rule("calls:check_fused", Opcode.FUSION),
    _rule("calls:check_fused_uses", Opcode.FUSION, unless="allow_dead_code"),
    _rule("sharding:check_consistency", Opcode.CONDITIONAL, Opcode.WHILE),
    _rule(
        "async_chains:check_chains",
        *(*ASYNC, *_TRANSFERS, *_PAIRED),
    ),
    _rule("channels:check_transfers", *_TRANSFERS),
    _rule("buffers:check_writers", Opcode.CUSTOM_CALL),
    _rule("kept_layouts:check_updates", Opcode.DYNAMIC_UPDATE_SLICE, option="layout_sensitive"),
    _rule("annotations:check_names", option="verify_instruction_name_unchanged"),
)

MODULE_RULES: tuple[Rule, ...] = (
    _rule("layouts:check_entry_layout", has="entry_computation_layout"),
    _rule("aliasing:check_module_aliasing", has="input_output_alias buffer_donor"),
    _rule("shapes:check_entry_buffers"),
    _rule("channels:check_host_channels", Opcode.SEND, Opcode.RECV),
    _rule(
        "deadlocks:check_deadlocks",
        *(Opcode.SEND, Opcode.RECV),
        option="verify_no_collective_deadlocks",
    ),
    _rule("collectives:check_constrained_layouts", *REDUCING),
)

OF_INTEREST = frozenset(
    opcode for rule in (*COMPUTATION_RULES, *MODULE_RULES) for opcode in rule.opcodes
)
"""Opcodes that some rule about computations or modules is about."""


@cache
def load(function: str) -> Any:
    """The function `module:function` of this package."""
    module, _, name = function.partition(":")
    return getattr(import_module(f"hloopt.verifier.{module}"), name)


def for_opcode(rules: Sequence[Rule], opcode: Opcode) -> list[Rule]:
    """The rules to ask about instructions with an opcode."""
    return [rule for rule in rules if not rule.opcodes or opcode in rule.opcodes]


def check(
    rules: Sequence[Rule],
    instruction: Instruction,
    attributes: Collection[str],
    setting: Setting,
    has_odd_shapes: bool,
    has_mixed_types: bool,
) -> None:
    """Raise HloError where `instruction`, with these `attributes`, breaks one of its rules."""
    for rule in rules:
        if (rule.of_odd_shapes and not has_odd_shapes) or (
            rule.of_mixed_types and not has_mixed_types
        ):
            continue
        if not rule.attributes or (attributes and not rule.attributes.isdisjoint(attributes)):
            try:
                load(rule.function)(instruction, setting)
            except HloError as error:
                raise error.coded(rule.code) from None


def broken_rules(
    rules: Sequence[Rule],
    subject: Any,
    found: Sequence[Instruction],
    setting: Setting,
    parameters: Sequence[Instruction] = (),
) -> Iterator[HloError]:
    """The errors of rules about a computation or a module, of whose instructions `found` matter.

    Rules about no opcode in particular are given `parameters`.
    """
    for rule in rules:
        if rule.opcodes:
            if not found:
                continue
            concerned = [i for i in found if i.opcode in rule.opcodes]
            if not concerned:
                continue
        else:
            concerned = list(parameters)
        if rule.attributes and subject.attributes.keys().isdisjoint(rule.attributes):
            continue
        if rule.is_asked(setting.options):
            for error in load(rule.function)(subject, concerned, setting):
                yield error.coded(rule.code)
