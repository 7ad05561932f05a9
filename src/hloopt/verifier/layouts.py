"""Rules about layouts and memory spaces; most apply to a layout-sensitive verifier only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

from hloopt.diagnostics import HloError, HloVerifyError
from hloopt.ir.attribute_values import parse_ints
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.shape import HOST_MEMORY_SPACE, Shape, compatible, tuple_shape
from hloopt.ir.shape_inference import infer_stated_shape
from hloopt.ir.shape_inference.operation import show
from hloopt.ir.shape_parser import parse_shape
from hloopt.ir.shape_size import data_bytes
from hloopt.verifier.async_chains import async_start
from hloopt.verifier.options import Setting
from hloopt.verifier.report import broken, header_span
from hloopt.verifier.shapes import is_unbounded

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
"""What layout assignment lets have another layout than its operands."""
_PASSES_ON = frozenset(
    (
        *(Opcode.TUPLE, Opcode.GET_TUPLE_ELEMENT, Opcode.CALL, Opcode.WHILE),
        Opcode.OPT_BARRIER,
    )
)
"""Results that are operands or results of computations as they are, layout included."""


def check_dimension_order(instruction: Instruction, setting: Setting) -> None:
    """The layout of an array lists each of its dimensions once."""
    if reason := why_no_order(instruction.shape):
        raise HloVerifyError(reason)


@cache
def why_no_order(shape: Shape) -> str | None:
    """What is wrong with the layouts in `shape`; None where they are layouts of their arrays."""
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
    """What only passes values on keeps their layouts; so do opcodes that layout assignment does
    not let change them (with `instruction_can_change_layout="layout-assignment"`)."""
    shape = instruction.shape
    operands = [operand.shape for operand in instruction.operands]
    if instruction.opcode in _PASSES_ON:
        inferred = infer_stated_shape(
            instruction.opcode, shape, operands, instruction.attributes, instruction.called
        )
        if inferred is not None:
            _expect(inferred, shape, _same_layouts(shape, inferred))
    if setting.options.instruction_can_change_layout == "all" or not shape.is_array:
        return
    is_free = instruction.opcode in _MAY_CHANGE_LAYOUT
    if is_free and instruction.attributes.get("custom_call_target") != '"LayoutConstraint"':
        return
    for number, operand in enumerate(operands):
        if operand.rank != shape.rank or not operand.is_array:
            continue
        if not _same_order(shape, operand):
            raise HloVerifyError(
                f"Instruction shouldn't change layouts: operand {number} is {operand.text}, the "
                f"result {shape.text}"
            )


def _same_layouts(a: Shape, b: Shape) -> bool:
    """Whether arrays of two compatible shapes have the same layouts."""
    return a is b or all(x.layout == y.layout for x, y in zip(a.leaves(), b.leaves(), strict=False))


def _same_order(a: Shape, b: Shape) -> bool:
    """Whether arrays of two compatible shapes have the same order of dimensions."""
    return all(
        x.layout.minor_to_major == y.layout.minor_to_major
        for x, y in zip(a.leaves(), b.leaves(), strict=False)
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


def check_callees(instruction: Instruction, setting: Setting) -> None:
    """What a computation takes and gives lies as its caller has it."""
    operands = [operand.shape for operand in instruction.operands]
    is_conditional = instruction.opcode is Opcode.CONDITIONAL
    for number, callee in enumerate(instruction.called):
        _check_taken(callee, operands[number + 1 : number + 2] if is_conditional else operands)
        if not (instruction.opcode is Opcode.WHILE and number == 1):  # the condition's is its own
            root = callee.root.shape
            _expect(root, instruction.shape, _same_layouts(root, instruction.shape))


def check_async_layouts(instruction: Instruction, setting: Setting) -> None:
    """Each link of an asynchronous chain has the layouts of the computation that it wraps."""
    start = async_start(instruction)
    if start is None or not start.called:
        return  # which another rule says
    wrapped = start.called[0]
    result = instruction.shape
    if instruction.opcode is not Opcode.ASYNC_DONE:
        bound, result, *_ = result.elements
        _check_taken(wrapped, bound.elements)
    root = wrapped.root.shape
    if compatible(result, root):  # a link need not have its results yet
        _expect(root, result, _same_layouts(root, result))


def _check_taken(callee: Computation, operands: Sequence[Shape]) -> None:
    for parameter, operand in zip(callee.parameters, operands, strict=False):
        if not _same_layouts(parameter.shape, operand):
            raise HloVerifyError(
                f"Operand shape {operand.text} does not match parameter %{parameter.name} of "
                f"%{callee.name}: {parameter.shape.text}"
            )


def check_updates(
    computation: Computation, found: Sequence[Instruction], setting: Setting
) -> Iterator[HloVerifyError]:
    """A dynamic-update-slice writes into its operand, so that layouts are the same.

    In a fusion only the order of dimensions has to be, for the rest has no meaning there.
    """
    fits = _same_order if computation.is_fusion else _same_layouts
    for update in found:
        operand = update.operands[0].shape if update.operands else update.shape
        if not fits(operand, update.shape):
            yield broken(update, _expected(operand, update.shape))


def check_outfeed(instruction: Instruction, setting: Setting) -> None:
    """An outfeed sends its operand as it lies."""
    operand = instruction.operands[0].shape
    stated = parse_shape(instruction.attributes["outfeed_shape"])
    if not _same_layouts(operand, stated):
        raise HloVerifyError(
            f"Expected outfeed shape to be equal to operand's shape {operand.text}, actual shape "
            f"is {stated.text}"
        )


def check_bitcast(instruction: Instruction, setting: Setting) -> None:
    """A bitcast reads the bytes of its operand, all of them, where they are."""
    operand, result = instruction.operands[0].shape, instruction.shape
    if not (operand.is_array and result.is_array):
        raise HloVerifyError(
            f"Bitcast cannot have tuples as operand or output: {operand.text} to {result.text}"
        )
    sizes = data_bytes(result), data_bytes(operand)
    if sizes[0] != sizes[1] and not (is_unbounded(operand) or is_unbounded(result)):
        raise HloVerifyError(
            f"Bitcast cannot have different shape sizes of output ({sizes[0]}) and operand "
            f"({sizes[1]}) ({result.text}) ({operand.text})"
        )
    if _crosses_host(operand, result):
        raise HloVerifyError(
            "Bitcast cannot have different memory spaces of output "
            f"({result.layout.memory_space}) and operand ({operand.layout.memory_space}) "
            f"({result.text}) ({operand.text})"
        )


def check_host_copy(instruction: Instruction, setting: Setting) -> None:
    """A copy out of host memory changes neither the order of dimensions nor tiles."""
    operand, result = instruction.operands[0].shape, instruction.shape
    from_host = operand.layout.memory_space == HOST_MEMORY_SPACE
    if from_host and result.layout.memory_space != HOST_MEMORY_SPACE:
        _expect(operand, result, _lies_alike(operand, result))


def check_copy_pair(instruction: Instruction, setting: Setting) -> None:
    """A copy-start and its copy-done keep the layout, memory spaces aside."""
    if not instruction.operands:
        return
    operand = instruction.operands[0].shape
    if instruction.opcode is Opcode.COPY_START:
        for part in instruction.shape.elements[:2]:
            _expect(operand, part, _same_order(operand, part))
        return
    if len(operand.elements) < 2:
        return  # which is said elsewhere
    target, source = operand.elements[:2]
    if not _lies_alike(target, source):
        raise HloVerifyError(
            "Source and destination buffers in CopyDone arguments need to be the same shape "
            f"found {target.text} and {source.text}"
        )
    _expect(target, instruction.shape, target.layout == instruction.shape.layout)


def _crosses_host(a: Shape, b: Shape) -> bool:
    in_host = [shape.layout.memory_space == HOST_MEMORY_SPACE for shape in (a, b)]
    return in_host[0] != in_host[1]


def _lies_alike(a: Shape, b: Shape) -> bool:
    """Whether two arrays have one layout, memory space and split aside."""
    bare = [shape.layout._replace(memory_space=0, splits="") for shape in (a, b)]
    return bare[0] == bare[1]


def _expect(inferred: Shape, actual: Shape, is_right: bool) -> None:
    if not is_right:
        raise HloVerifyError(_expected(inferred, actual))


def _expected(inferred: Shape, actual: Shape) -> str:
    return (
        f"Expected instruction to have shape equal to {inferred.text}, actual shape is "
        f"{actual.text}"
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
    """Where elements lie: by dimension, most major first, its size and its stride in memory,
    neighbours that are dense in both orders taken together."""
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
    from hloopt.ir.entry_layout import parse_entry_layout

    try:
        stated, result = parse_entry_layout(text)
    except HloError as error:
        span = header_span(module, "entry_computation_layout")
        yield HloVerifyError(error.message, span=span, help=error.help)
        return
    for shape in (*stated, result):
        if reason := why_no_order(shape):
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
