"""What the verifier is asked to check."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal, NamedTuple, get_args, get_type_hints


class VerifierOptions(NamedTuple):
    """Options of the verifier under XLA's names, with XLA's defaults; `allow_dead_code` is ours.

    These lines are also the options of `hloopt verify`: the text beside a type is its help.
    """

    layout_sensitive: Annotated[bool, "layouts must agree, too, as after layout assignment"] = False
    allow_mixed_precision: Annotated[
        bool, "operands may differ in floating-point precision, as on TPU"
    ] = False
    verify_no_collective_deadlocks: Annotated[
        bool, "in a schedule, the next send or recv must match the one before it"
    ] = False
    check_replica_groups: Annotated[
        bool, "replica groups must fit replica_count and num_partitions"
    ] = True
    verify_broadcast_dimensions_order: Annotated[bool, "dimensions of a broadcast must ascend"] = (
        False
    )
    verify_reshape_is_bitcast: Annotated[
        bool, "a reshape must not move data (needs layout_sensitive)"
    ] = False
    verify_call_nested_computation_thread_name: Annotated[
        bool, "a called computation must run on the thread of its caller"
    ] = False
    verify_instruction_name_unchanged: Annotated[
        bool, "an instruction must still have the name its metadata scheduled it under"
    ] = False
    verify_no_host_memory_space: Annotated[
        bool, "no instruction may have its result in host memory"
    ] = False
    supported_unbounded_dynamic_ops: Annotated[
        tuple[str, ...] | Literal["all"], "opcodes whose shapes may have unbounded dimensions"
    ] = ()
    instruction_can_change_layout: Annotated[
        Literal["all", "layout-assignment"],
        "which opcodes may have another layout than their operands (with layout_sensitive)",
    ] = "all"
    allow_dead_code: Annotated[
        bool, "fusions may hold instructions without users, as some passes leave them to dce"
    ] = False


class OptionInfo(NamedTuple):
    """One option, for help and documentation."""

    name: str
    type: object
    default: object
    doc: str


def option_infos() -> Iterator[OptionInfo]:
    """The options in the order of their declaration."""
    for name, hint in get_type_hints(VerifierOptions, include_extras=True).items():
        kind, doc = get_args(hint)
        yield OptionInfo(name, kind, VerifierOptions._field_defaults[name], doc)


ANY_TARGET = VerifierOptions(
    allow_mixed_precision=True, supported_unbounded_dynamic_ops="all", allow_dead_code=True
)
"""What some compiler accepts on the way: to load and transform modules wherever they come from."""


class Setting(NamedTuple):
    """What decides about an instruction besides itself."""

    options: VerifierOptions
    replica_count: int
    num_partitions: int
