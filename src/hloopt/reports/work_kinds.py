"""Kinds of instructions by what they do."""

from __future__ import annotations

from enum import StrEnum

from hloopt.ir.async_chains import find_async_start
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import ASYNC, COLLECTIVES, CONTRACTIONS, CONTROL_FLOW_CALLERS, Opcode


class WorkKind(StrEnum):
    """The kinds of instructions."""

    COLLECTIVE = "collective"
    PRODUCT = "product"
    COMPUTE = "compute"
    CUSTOM_CALL = "custom call"
    COPY = "copy"
    CONTROL_FLOW = "control flow"
    VALUE = "value"
    """Parameters, constants, and what only names parts of values."""


_COPIES = frozenset((Opcode.COPY, Opcode.COPY_START, Opcode.COPY_DONE))
_VALUES = frozenset(
    (
        *(Opcode.PARAMETER, Opcode.CONSTANT, Opcode.TUPLE, Opcode.GET_TUPLE_ELEMENT),
        *(Opcode.BITCAST, Opcode.AFTER_ALL, Opcode.ADD_DEPENDENCY, Opcode.OPT_BARRIER),
        *(Opcode.PARTITION_ID, Opcode.REPLICA_ID),
    )
)
_TRANSFERS = frozenset(
    (
        *(Opcode.SEND, Opcode.SEND_DONE, Opcode.RECV, Opcode.RECV_DONE),
        *(Opcode.INFEED, Opcode.OUTFEED),
    )
)


def work_kind(instruction: Instruction) -> WorkKind:
    """The kind of an instruction; that of the operation which asynchronous ones wrap, and of a
    fusion that has a product inside it. O(instructions of the fusion)."""
    opcode = instruction.opcode
    if opcode in ASYNC:
        start = find_async_start(instruction)
        called = start.called if start is not None else ()
        return work_kind(called[0].root) if called else WorkKind.CONTROL_FLOW
    if opcode is Opcode.FUSION:
        inside = instruction.called[0].instructions if instruction.called else ()
        is_product = any(each.opcode in CONTRACTIONS for each in inside)
        return WorkKind.PRODUCT if is_product else WorkKind.COMPUTE
    for kind, opcodes in _KINDS.items():
        if opcode in opcodes:
            return kind
    return WorkKind.COMPUTE


_KINDS = {
    WorkKind.COLLECTIVE: COLLECTIVES | _TRANSFERS,
    WorkKind.PRODUCT: CONTRACTIONS,
    WorkKind.CUSTOM_CALL: frozenset((Opcode.CUSTOM_CALL,)),
    WorkKind.COPY: _COPIES,
    WorkKind.CONTROL_FLOW: CONTROL_FLOW_CALLERS,
    WorkKind.VALUE: _VALUES,
}
