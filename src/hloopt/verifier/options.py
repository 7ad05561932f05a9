"""The options of the verifier."""

from __future__ import annotations

from typing import Literal, NamedTuple


class VerifierOptions(NamedTuple):
    """Options of the verifier under XLA's names, with XLA's defaults; `allow_dead_code` is ours.

    `option_docs` says what they mean; together these are the options of `hloopt verify`.
    """

    layout_sensitive: bool = False
    allow_mixed_precision: bool = False
    verify_no_collective_deadlocks: bool = False
    check_replica_groups: bool = True
    verify_broadcast_dimensions_order: bool = False
    verify_reshape_is_bitcast: bool = False
    verify_call_nested_computation_thread_name: bool = False
    verify_instruction_name_unchanged: bool = False
    verify_no_host_memory_space: bool = False
    supported_unbounded_dynamic_ops: tuple[str, ...] | Literal["all"] = ()
    instruction_can_change_layout: Literal["all", "layout-assignment"] = "all"
    allow_dead_code: bool = False


ANY_TARGET = VerifierOptions(
    allow_mixed_precision=True, supported_unbounded_dynamic_ops="all", allow_dead_code=True
)
"""Options that accept what some compiler accepts: to load and transform modules wherever they come
from."""


class Setting(NamedTuple):
    """The setting that decides about an instruction besides itself."""

    options: VerifierOptions
    replica_count: int
    num_partitions: int
