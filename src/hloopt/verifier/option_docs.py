"""The meaning of the verifier's options, for help and documentation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, get_type_hints

from hloopt.verifier.options import VerifierOptions

OPTION_DOCS = {
    "layout_sensitive": "layouts must agree, too, as after layout assignment",
    "allow_mixed_precision": "operands may differ in floating-point precision, as on TPU",
    "verify_no_collective_deadlocks": "in a schedule, loops and calls included, the next send or "
    "recv must match the one before it; of synchronous collectives only all-reduce and "
    "reduce-scatter may run between them",
    "check_replica_groups": "replica groups must fit replica_count and num_partitions",
    "verify_broadcast_dimensions_order": "dimensions of a broadcast must ascend",
    "verify_reshape_is_bitcast": "a reshape must not move data (needs layout_sensitive)",
    "verify_call_nested_computation_thread_name": "a called computation must run on the thread of "
    "its caller",
    "verify_instruction_name_unchanged": "an instruction must still have the name its metadata "
    "scheduled it under",
    "verify_no_host_memory_space": "no instruction may have its result in host memory",
    "supported_unbounded_dynamic_ops": "opcodes whose shapes may have unbounded dimensions",
    "instruction_can_change_layout": "which opcodes may have another layout than their operands "
    "(with layout_sensitive)",
    "allow_dead_code": "fusions may hold instructions without users, as some passes leave them to "
    "dce",
}
"""The meaning of each option of `VerifierOptions`, in a line of help."""


class OptionInfo(NamedTuple):
    """One option, for help and documentation."""

    name: str
    type: object
    default: object
    doc: str


def option_infos() -> Iterator[OptionInfo]:
    """The options in the order of their declaration."""
    for name, kind in get_type_hints(VerifierOptions).items():
        yield OptionInfo(name, kind, VerifierOptions._field_defaults[name], OPTION_DOCS[name])
