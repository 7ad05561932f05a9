"""Kinds of instructions by what they do."""

from __future__ import annotations

from enum import StrEnum

from hloopt.ir.async_chains import find_async_start
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import ASYNC, COLLECTIVES, CONTRACTIONS, CONTROL_FLOW_CALLERS, Opcode


class WorkKind(StrEnum):
    """The work of an instruction, as reports tell instructions apart by colour."""

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
    fusion that has a product inside it or a fusion in it. O(instructions of the fusion)."""
    opcode = instruction.opcode
    if opcode in ASYNC:
        start = find_async_start(instruction)
        called = start.called if start is not None else ()
        return work_kind(called[0].root) if called else WorkKind.CONTROL_FLOW
    if opcode is Opcode.FUSION:
        inside = (each for called in instruction.called for each in called.instructions)
        is_product = any(work_kind(each) is WorkKind.PRODUCT for each in inside)
        return WorkKind.PRODUCT if is_product else WorkKind.COMPUTE
    return _KINDS.get(opcode, WorkKind.COMPUTE)


_KINDS = {
    **dict.fromkeys(COLLECTIVES | _TRANSFERS, WorkKind.COLLECTIVE),
    **dict.fromkeys(CONTRACTIONS, WorkKind.PRODUCT),
    **dict.fromkeys(_COPIES, WorkKind.COPY),
    **dict.fromkeys(CONTROL_FLOW_CALLERS, WorkKind.CONTROL_FLOW),
    **dict.fromkeys(_VALUES, WorkKind.VALUE),
    Opcode.CUSTOM_CALL: WorkKind.CUSTOM_CALL,
}
