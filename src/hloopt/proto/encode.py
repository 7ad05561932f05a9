"""IR to HloModuleProto, as XLA writes it."""

from __future__ import annotations

from typing import Any

from hloopt.diagnostics import HloError, HloSyntaxError
from hloopt.ir.attributes.explicit import is_total_order
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.literals.literal import ELIDED, canonical_literal, zero_bits_text
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import stable_computation_order, stable_order
from hloopt.proto.attributes import write_attributes
from hloopt.proto.header import write_header
from hloopt.proto.literals import write_literal
from hloopt.proto.schema import message
from hloopt.proto.shapes import write_shape


def encode(module: Module) -> bytes:
    """The module as a serialized HloModuleProto. O(instructions). Raises HloError.

    A constant whose elements are elided in the text has no literal in the message, which XLA
    prints as elided again. Attributes of the header that
    the message has no field for (`header.left_out`) are left out.
    """
    return _serialized(_encoded(module))


def encode_file(module: Module) -> bytes:
    """The module as a serialized HloProto: what XLA dumps as `.hlo.pb`. Raises HloError."""
    return _serialized(message("HloProto")(hlo_module=_encoded(module)))


def encode_with_zeros(module: Module) -> bytes:
    """As `encode`, with zeros for the elements of constants that the text elides: compilers want
    some. O(instructions + elements). Raises HloError."""
    proto = _encoded(module)
    for computation, its_proto in zip(
        stable_computation_order(module), proto.computations, strict=True
    ):
        for constant, target in zip(stable_order(computation), its_proto.instructions, strict=True):
            if is_elided(constant) and (element := constant.shape.element_type) is not None:
                write_literal(zero_bits_text(element), constant.shape, target.literal)
    return _serialized(proto)


def _encoded(module: Module) -> Any:
    proto = message("HloModuleProto")()
    encode_module(module, proto)
    return proto


def _serialized(proto: Any) -> bytes:
    data: bytes = proto.SerializeToString(deterministic=True)
    return data


def encode_module(module: Module, proto: Any) -> None:
    """Fill the HloModuleProto `proto`. Raises HloError."""
    proto.name = module.name
    proto.entry_computation_name = module.entry.name
    computations = stable_computation_order(module)
    ids = {computation: number for number, computation in enumerate(computations)}
    proto.entry_computation_id = ids[module.entry]
    if module.is_scheduled:
        proto.schedule.SetInParent()
    for computation in computations:
        target = proto.computations.add()
        _encode_computation(computation, ids, target)
        if module.is_scheduled and not computation.is_fusion:
            numbers = [instruction.id for instruction in target.instructions]
            proto.schedule.sequences[target.id].instruction_ids.extend(numbers)
    write_header(module, proto, encode_module)


def _encode_computation(computation: Computation, ids: dict[Computation, int], proto: Any) -> None:
    proto.id = ids[computation]
    proto.name = computation.name
    proto.is_fusion_computation = computation.is_fusion
    if computation.execution_thread != "main":
        proto.execution_thread = computation.execution_thread
    order = stable_order(computation)
    numbers = {instruction: proto.id << 32 | place for place, instruction in enumerate(order)}
    proto.root_id = numbers[computation.root]
    for instruction in order:
        target = proto.instructions.add()
        target.id = numbers[instruction]
        try:
            _encode_instruction(instruction, target)
        except HloError as error:
            raise HloSyntaxError(
                f"%{instruction.name}: {error.message}", help=error.help, code="HLO013"
            ) from None
        target.operand_ids.extend(numbers[operand] for operand in instruction.operands)
        predecessors = instruction.control_predecessors
        target.control_predecessor_ids.extend(numbers[p] for p in predecessors)
        target.called_computation_ids.extend(ids[called] for called in instruction.called)
    for parameter in computation.parameters:
        write_shape(parameter.shape, proto.program_shape.parameters.add())
        proto.program_shape.parameter_names.append(parameter.name)
    write_shape(computation.root.shape, proto.program_shape.result)


def _encode_instruction(instruction: Instruction, proto: Any) -> None:
    opcode = instruction.opcode
    proto.name = instruction.name
    proto.opcode = opcode.value
    write_shape(instruction.shape, proto.shape)
    write_attributes(opcode, dict(instruction.attributes), proto)
    if opcode is Opcode.PARAMETER:
        proto.parameter_number = instruction.parameter_number
    elif opcode is Opcode.COMPARE and is_total_order(instruction):
        proto.comparison_type = "TOTALORDER"
    elif opcode is Opcode.CONSTANT and not is_elided(instruction):
        write_literal(instruction.payload, instruction.shape, proto.literal)
    elif opcode is Opcode.OUTFEED and instruction.operands and not proto.HasField("outfeed_shape"):
        write_shape(instruction.operands[0].shape, proto.outfeed_shape)


def is_elided(instruction: Instruction) -> bool:
    """Whether it is a constant whose elements the text elides: `constant({...})`."""
    payload = instruction.payload
    return (
        instruction.opcode is Opcode.CONSTANT
        and "..." in payload
        and canonical_literal(payload, instruction.shape) == ELIDED
    )
