"""Rules about layouts and memory spaces; most apply to a layout-sensitive verifier only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

from hloopt.diagnostics import HloError, HloVerifyError
from hloopt.ir.attributes.values import parse_ints
from hloopt.ir.custom_targets import custom_call_target
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.shape_inference import infer_stated_shape
from hloopt.ir.shape_inference.operation import show
from hloopt.ir.shapes.layout import HOST_MEMORY_SPACE
from hloopt.ir.shapes.shape import Shape, compatible, tuple_shape
from hloopt.verifier.layout_comparison import expect, same_layouts, same_order
from hloopt.verifier.options import Setting
from hloopt.verifier.report import broken, header_span

_MAY_CHANGE_LAYOUT = frozenset(
    (
        *(Opcode.ASYNC_START, Opcode.ASYNC_UPDATE, Opcode.ASYNC_DONE, Opcode.BATCH_NORM_GRAD),
        *(Opcode.BATCH_NORM_INFERENCE, Opcode.BATCH_NORM_TRAINING, Opcode.BITCAST),
        *(Opcode.BROADCAST, Opcode.CALL, Opcode.COLLECTIVE_PERMUTE_START, Opcode.CONDITIONAL),
        *(Opcode.COLLECTIVE_PERMUTE_DONE, Opcode.CONSTANT, Opcode.CONVOLUTION, Opcode.COPY),
        *(Opcode.COPY_START, Opcode.COPY_DONE, Opcode.DOMAIN, Opcode.DOT, Opcode.RAGGED_DOT),
        *(Opcode.SCALED_DOT, Opcode.FUSION, Opcode.GATHER, Opcode.GET_TUPLE_ELEMENT),
        *(Opcode.INFEED, Opcode.OUTFEED, Opcode.IOTA, Opcode.PARAMETER, Opcode.PARTITION_ID),
        *(Opcode.REPLICA_ID, Opcode.RECV, Opcode.RECV_DONE, Opcode.SEND, Opcode.SEND_DONE),
        *(Opcode.REDUCE, Opcode.RESHAPE, Opcode.DYNAMIC_RESHAPE, Opcode.RNG),
        *(Opcode.RNG_BIT_GENERATOR, Opcode.RNG_GET_AND_UPDATE_STATE, Opcode.AFTER_ALL),
        *(Opcode.TRANSPOSE, Opcode.TUPLE, Opcode.GET_DIMENSION_SIZE, Opcode.CUSTOM_CALL),
    )
)
"""Opcodes whose result layout assignment lets differ from that of their operands."""
_PASSES_ON = frozenset(
    (
        *(Opcode.TUPLE, Opcode.GET_TUPLE_ELEMENT, Opcode.CALL, Opcode.WHILE),
        Opcode.OPT_BARRIER,
    )
)
"""Results that are operands or results of computations as they are, layout included."""


def check_dimension_order(instruction: Instruction, setting: Setting) -> None:
    """The layout of an array lists each of its dimensions once."""
    if reason := why_malformed(instruction.shape):
        raise HloVerifyError(reason)


@cache
def why_malformed(shape: Shape) -> str | None:
    """The reason why a layout in `shape` is malformed; None if each lists all dimensions once."""
    for leaf in shape.leaves():
        order = leaf.layout.minor_to_major
        if leaf.is_array and sorted(order) != list(range(leaf.rank)):
            listed = ",".join(map(str, order))
            is_outside = any(not 0 <= dimension < leaf.rank for dimension in order)
            return (
                f"layout minor_to_major field has {'out-of-bounds' if is_outside else 'duplicate'} "
                f"value: {{{listed}}}; shape: {show(leaf)}"
            )
    return None


def check_layouts(instruction: Instruction, setting: Setting) -> None:
    """Opcodes that only pass values on keep their layouts; so do opcodes that layout assignment
    does
    not let change them (with `instruction_can_change_layout="layout-assignment"`)."""
    shape = instruction.shape
    operands = [operand.shape for operand in instruction.operands]
    if instruction.opcode in _PASSES_ON:
        inferred = infer_stated_shape(
            instruction.opcode, shape, operands, instruction.attributes, instruction.called
        )
        if inferred is not None:
            expect(inferred, shape, same_layouts(shape, inferred))
    if setting.options.instruction_can_change_layout == "all" or not shape.is_array:
        return
    is_free = instruction.opcode in _MAY_CHANGE_LAYOUT
    if is_free and custom_call_target(instruction) != "LayoutConstraint":
        return
    for number, operand in enumerate(operands):
        if operand.rank != shape.rank or not operand.is_array:
            continue
        if not same_order(shape, operand):
            raise HloVerifyError(
                f"Instruction shouldn't change layouts: operand {number} is {operand.text}, the "
                f"result {shape.text}"
            )


def check_copy_precision(instruction: Instruction, setting: Setting) -> None:
    """A copy has the element type of its operand, whatever the precision allowed."""
    operand = instruction.operands[0].shape if instruction.operands else None
    if operand is None or compatible(operand, instruction.shape):
        return
    both = operand, instruction.shape
    expected, actual = (
        shape.text if setting.options.layout_sensitive else show(shape) for shape in both
    )
    raise HloVerifyError(
        f"Expected instruction to have shape equal to {expected}, actual shape is {actual}"
    )


def check_dynamic_slice_memory(instruction: Instruction, setting: Setting) -> None:
    """A dynamic-slice does not move its result from device to host memory."""
    operand = instruction.operands[0].shape
    if (
        instruction.shape.layout.memory_space == HOST_MEMORY_SPACE
        and operand.layout.memory_space != HOST_MEMORY_SPACE
    ):
        raise HloVerifyError(
            "DynamicSlice instruction shouldn't change layout memory space from device to host: "
            f"{operand.text} to {instruction.shape.text}"
        )


def check_host_memory(instruction: Instruction, setting: Setting) -> None:
    """No result is in host memory, with `verify_no_host_memory_space`."""
    if any(leaf.layout.memory_space == HOST_MEMORY_SPACE for leaf in instruction.shape.leaves()):
        raise HloVerifyError("Instruction shouldn't have the layout of host memory space")


def check_broadcast_order(instruction: Instruction, setting: Setting) -> None:
    """Dimensions of a broadcast ascend, with `verify_broadcast_dimensions_order`."""
    text = instruction.attributes.get("dimensions", "{}")
    dimensions = parse_ints(text)
    if list(dimensions) != sorted(dimensions):
        raise HloVerifyError(f"Broadcast dimensions should be ordered, found {text}")


def check_reshape(instruction: Instruction, setting: Setting) -> None:
    """A reshape only reinterprets memory, with `verify_reshape_is_bitcast`."""
    if not setting.options.layout_sensitive:
        return
    shapes = (instruction.operands[0].shape, instruction.shape)
    if any(shape.layout.tiles or shape.is_dynamic for shape in shapes):
        return  # what tiles do to memory depends on the target
    before, after = (_strides_by_position(shape) for shape in shapes)
    if before != after:
        raise HloVerifyError(
            f"Reshape should be a physical bitcast: {shapes[0].text} to {shapes[1].text} moves data"
        )


def _strides_by_position(shape: Shape) -> list[tuple[int, int]]:
    """The layout of elements in memory: by dimension, most major first, its size and its stride in
    memory, neighbours that are dense in both orders taken together."""
    stride_of: dict[int, int] = {}
    stride = 1
    for dimension in shape.layout.minor_to_major:
        stride_of[dimension] = stride
        stride *= shape.dimensions[dimension]
    merged: list[tuple[int, int]] = []
    for dimension, size in enumerate(shape.dimensions):
        if size == 1:
            continue
        stride = stride_of.get(dimension, 0)
        if merged and merged[-1][1] == stride * size:
            merged[-1] = merged[-1][0] * size, stride
        else:
            merged.append((size, stride))
    return merged


def check_scan(instruction: Instruction, setting: Setting) -> None:
    """Only an associative scan survives until layouts are assigned."""
    if instruction.attributes.get("is_associative") != "true":
        raise HloVerifyError(
            "Non-associative scan reached layout-sensitive HloVerifier; the pass ScanExpander "
            "turns it into a loop"
        )


def check_entry_layout(
    module: Module, found: Sequence[Instruction], setting: Setting
) -> Iterator[HloVerifyError]:
    """`entry_computation_layout` has the shapes of the entry's parameters and result; with
    `layout_sensitive` the layouts, too."""
    text = module.attributes["entry_computation_layout"]
    root = module.entry.root
    parameters = tuple_shape(parameter.shape for parameter in found)
    if text == f"{{{parameters.text}->{root.shape.text}}}":
        return  # as XLA prints it: nothing to parse
    from hloopt.ir.shapes.entry_layout import parse_entry_layout

    try:
        stated, result = parse_entry_layout(text)
    except HloError as error:
        span = header_span(module, "entry_computation_layout")
        yield HloVerifyError(error.message, span=span, help=error.help)
        return
    for shape in (*stated, result):
        if reason := why_malformed(shape):
            yield HloVerifyError(reason, span=header_span(module, "entry_computation_layout"))
            return
    if len(stated) != len(found):
        yield HloVerifyError(
            f"entry_computation_layout has {len(stated)} parameters, the entry "
            f"computation {len(found)}",
            span=header_span(module, "entry_computation_layout"),
        )
        return
    layouts_count = setting.options.layout_sensitive
    for number, parameter in enumerate(found):
        if not _fits(parameter.shape, stated[number], layouts_count):
            yield broken(
                parameter,
                f"Shape of the entry computation parameter {number} is {parameter.shape.text} "
                "should be compatible to the one specified in module's entry computation layout "
                f"{stated[number].text}",
            )
    if not _fits(root.shape, result, layouts_count):
        yield broken(
            root,
            "Shape of the root instruction of entry computation "
            f"({root.shape.text}) should be compatible to one specified in module's "
            f"entry computation layout ({result.text})",
        )


def _fits(shape: Shape, stated: Shape, layouts_count: bool) -> bool:
    """Whether shapes agree, dynamic sizes aside."""
    if shape is stated:
        return True
    mine, theirs = shape.subshapes(), stated.subshapes()
    if len(mine) != len(theirs):
        return False
    return all(
        a.type_name == b.type_name
        and a.dimensions == b.dimensions
        and not (layouts_count and a.layout.minor_to_major != b.layout.minor_to_major)
        for (_, a), (_, b) in zip(mine, theirs, strict=True)
    )
