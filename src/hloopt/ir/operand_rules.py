"""Checks of operands that XLA makes when it reads an instruction: their number, and what
follows."""

from __future__ import annotations

from functools import cache

from hloopt.diagnostics import HloSyntaxError
from hloopt.ir.attributes.typed import channel_of
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import ELEMENTWISE_BINARY, ELEMENTWISE_UNARY, Opcode
from hloopt.ir.shapes.shape import agree


def check_operands(instruction: Instruction) -> None:
    """Raise HloSyntaxError where the operands cannot be those of the opcode. O(operands)."""
    opcode = instruction.opcode
    operands = instruction.operands
    count = len(operands)
    least, most = _counts().get(opcode, (0, None))
    if count < least or (most is not None and count > most):
        wanted = f"{least}" if least == most else f"at least {least}"
        raise HloSyntaxError(f"{opcode} expects {wanted} operands, but has {count} operands")
    if opcode not in _MORE:
        return
    if opcode in _PAIRED and count % 2 != (opcode is Opcode.SCATTER):
        raise HloSyntaxError(f"{opcode} cannot have {count} operands: {_PAIRED[opcode]}")
    if opcode in _INDEXED:
        before = _INDEXED[opcode]
        rank = operands[0].shape.rank if operands else 0
        if count not in (before + rank, before + 1):
            raise HloSyntaxError(
                f"{opcode} expects {before + rank} operands, but has {count} operands"
            )
    if opcode is Opcode.BROADCAST:
        if "dimensions" not in instruction.attributes and operands[0].shape.dimensions:
            raise HloSyntaxError("broadcast of an array needs the attribute 'dimensions'")
    elif opcode is Opcode.CONDITIONAL:
        _check_index(instruction)
    elif opcode is Opcode.CUSTOM_CALL:
        _check_layout_constraints(instruction)
    elif opcode is Opcode.TUPLE and count != len(instruction.shape.elements):
        raise HloSyntaxError(
            f"tuple expects {len(instruction.shape.elements)} operands, but has {count} operands"
        )
    elif opcode in (Opcode.SEND_DONE, Opcode.RECV_DONE):
        _check_channel(instruction)
    elif opcode is Opcode.PARAMETER and "parameter_replication" in instruction.attributes:
        _check_replication(instruction)


_PAIRED = {
    Opcode.REDUCE: "every input has its initial value",
    Opcode.REDUCE_WINDOW: "every input has its initial value",
    Opcode.SCATTER: "every input has its update",
}
_INDEXED = {Opcode.DYNAMIC_SLICE: 1, Opcode.DYNAMIC_UPDATE_SLICE: 2}
"""Operands in front of one index for each dimension, or of one for all."""
_MORE = frozenset(
    (
        *(*_PAIRED, *_INDEXED, Opcode.BROADCAST, Opcode.CONDITIONAL, Opcode.CUSTOM_CALL),
        *(Opcode.TUPLE, Opcode.SEND_DONE, Opcode.RECV_DONE, Opcode.PARAMETER),
    )
)
"""Opcodes of which more than the number of operands is checked."""


def _check_index(conditional: Instruction) -> None:
    index = conditional.operands[0].shape
    if not index.is_scalar or index.type_name not in ("pred", "s32"):
        raise HloSyntaxError(
            f"Conditional branch index must be a pred or s32 scalar; got {index.text}."
        )


def _check_channel(done: Instruction) -> None:
    start = done.operands[0]
    own, other = (channel_of(i) for i in (done, start))
    if start.opcode in (Opcode.SEND, Opcode.RECV) and own != other:
        raise HloSyntaxError(
            f"{done.opcode} is of the channel {'none' if own is None else own}, "
            f"its {start.opcode} of the channel {'none' if other is None else other}"
        )


def _check_replication(parameter: Instruction) -> None:
    text = parameter.attributes["parameter_replication"]
    given = text.count("true") + text.count("false")
    leaves = len(parameter.shape.leaves())
    if given != leaves:
        raise HloSyntaxError(f"parameter_replication has {given} values for {leaves} arrays")


def _check_layout_constraints(call: Instruction) -> None:
    text = call.attributes.get("operand_layout_constraints")
    if text is None:
        return
    from hloopt.ir.attributes.shapes import parse_shapes

    constraints = parse_shapes(text)
    if len(constraints) != len(call.operands):
        raise HloSyntaxError(
            f"expected {len(call.operands)} operand layout constraints, {len(constraints)} given"
        )
    for number, (constraint, operand) in enumerate(zip(constraints, call.operands, strict=True)):
        if not agree(constraint, operand.shape):
            raise HloSyntaxError(
                f"layout constraint {constraint.text} does not fit operand {number}, "
                f"which is {operand.shape.text}"
            )


@cache
def _counts() -> dict[Opcode, tuple[int, int | None]]:
    """The least and the largest number of operands; None: any number."""
    exact = {
        0: (Opcode.IOTA, Opcode.PARTITION_ID, Opcode.REPLICA_ID, Opcode.RNG_GET_AND_UPDATE_STATE),
        1: (
            *(ELEMENTWISE_UNARY - {Opcode.REDUCE_PRECISION}),
            *(Opcode.BITCAST, Opcode.COPY_START, Opcode.COPY_DONE, Opcode.OPT_BARRIER),
            *(Opcode.ALL_GATHER_DONE, Opcode.ALL_REDUCE_DONE, Opcode.COLLECTIVE_PERMUTE_DONE),
            *(Opcode.GET_TUPLE_ELEMENT, Opcode.BROADCAST, Opcode.RESHAPE, Opcode.TRANSPOSE),
            *(Opcode.REVERSE, Opcode.SLICE, Opcode.TOPK, Opcode.FFT, Opcode.CHOLESKY),
            *(Opcode.GET_DIMENSION_SIZE, Opcode.REDUCE_PRECISION),
            *(Opcode.WHILE, Opcode.DOMAIN, Opcode.INFEED, Opcode.RECV, Opcode.SEND_DONE),
            Opcode.RECV_DONE,
        ),
        2: (
            *ELEMENTWISE_BINARY,
            *(Opcode.ADD_DEPENDENCY, Opcode.PAD, Opcode.DOT, Opcode.CONVOLUTION, Opcode.GATHER),
            *(Opcode.TRIANGULAR_SOLVE, Opcode.SET_DIMENSION_SIZE, Opcode.OUTFEED, Opcode.SEND),
        ),
        3: (
            *(Opcode.CLAMP, Opcode.SELECT, Opcode.SELECT_AND_SCATTER, Opcode.RAGGED_DOT),
            Opcode.BATCH_NORM_TRAINING,
        ),
        4: (Opcode.SCALED_DOT,),
        5: (Opcode.BATCH_NORM_INFERENCE, Opcode.BATCH_NORM_GRAD),
    }
    counts: dict[Opcode, tuple[int, int | None]] = {
        opcode: (count, count) for count, opcodes in exact.items() for opcode in opcodes
    }
    some = (
        *(Opcode.DYNAMIC_RESHAPE, Opcode.CONDITIONAL, Opcode.RNG_BIT_GENERATOR, Opcode.SCATTER),
    )
    return counts | dict.fromkeys(some, (1, None))
