"""Rules that copies, bitcasts and calls keep layouts, with `layout_sensitive`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hloopt.diagnostics import HloVerifyError
from hloopt.ir.async_chains import find_async_start
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.layout import HOST_MEMORY_SPACE
from hloopt.ir.shapes.shape import Shape, compatible
from hloopt.ir.shapes.shape_parser import parse_shape
from hloopt.ir.shapes.shape_size import data_bytes
from hloopt.verifier.calls import check_binding
from hloopt.verifier.layout_comparison import (
    expect,
    expected,
    same_but_space,
    same_layouts,
    same_order,
)
from hloopt.verifier.options import Setting
from hloopt.verifier.report import broken
from hloopt.verifier.shapes import is_unbounded


def check_callees(instruction: Instruction, setting: Setting) -> None:
    """Parameters and root of a computation have the layouts of its caller's operands and result."""
    operands = [operand.shape for operand in instruction.operands]
    is_conditional = instruction.opcode is Opcode.CONDITIONAL
    for number, callee in enumerate(instruction.called):
        _check_parameters(callee, operands[number + 1 : number + 2] if is_conditional else operands)
        if not (instruction.opcode is Opcode.WHILE and number == 1):  # the condition's is its own
            root = callee.root.shape
            expect(root, instruction.shape, same_layouts(root, instruction.shape))


def check_async_layouts(instruction: Instruction, setting: Setting) -> None:
    """Each link of an asynchronous chain has the layouts of the computation that it wraps."""
    start = find_async_start(instruction)
    if start is None or not start.called:
        return  # reported by another rule
    wrapped = start.called[0]
    result = instruction.shape
    if instruction.opcode is not Opcode.ASYNC_DONE:
        bound, result, *_ = result.elements
        _check_parameters(wrapped, bound.elements)
    root = wrapped.root.shape
    if compatible(result, root):  # a link need not have its results yet
        expect(root, result, same_layouts(root, result))


def _check_parameters(callee: Computation, operands: Sequence[Shape]) -> None:
    check_binding(
        callee.parameters,
        operands,
        same_layouts,
        lambda _, parameter, operand: (
            f"Operand shape {operand.text} does not match parameter %{parameter.name} of "
            f"%{callee.name}: {parameter.shape.text}"
        ),
    )


def check_updates(
    computation: Computation, found: Sequence[Instruction], setting: Setting
) -> Iterator[HloVerifyError]:
    """A dynamic-update-slice has the layout of its operand, into which it writes.

    In a fusion only the order of dimensions must agree.
    """
    fits = same_order if computation.is_fusion else same_layouts
    for update in found:
        operand = update.operands[0].shape if update.operands else update.shape
        if not fits(operand, update.shape):
            yield broken(update, expected(operand, update.shape))


def check_outfeed(instruction: Instruction, setting: Setting) -> None:
    """The layout in `outfeed_shape` is that of the operand."""
    operand = instruction.operands[0].shape
    stated = parse_shape(instruction.attributes["outfeed_shape"])
    if not same_layouts(operand, stated):
        raise HloVerifyError(
            f"Expected outfeed shape to be equal to operand's shape {operand.text}, actual shape "
            f"is {stated.text}"
        )


def check_bitcast(instruction: Instruction, setting: Setting) -> None:
    """A bitcast has as many bytes as its operand, and does not cross between host and device."""
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
    """A copy from host memory to the device keeps order of dimensions and tiles."""
    operand, result = instruction.operands[0].shape, instruction.shape
    from_host = operand.layout.memory_space == HOST_MEMORY_SPACE
    if from_host and result.layout.memory_space != HOST_MEMORY_SPACE:
        expect(operand, result, same_but_space(operand, result))


def check_copy_pair(instruction: Instruction, setting: Setting) -> None:
    """A copy-start and its copy-done keep the layout, memory spaces aside."""
    if not instruction.operands:
        return
    operand = instruction.operands[0].shape
    if instruction.opcode is Opcode.COPY_START:
        for part in instruction.shape.elements[:2]:
            expect(operand, part, same_order(operand, part))
        return
    if len(operand.elements) < 2:
        return  # reported by another rule
    target, source = operand.elements[:2]
    if not same_but_space(target, source):
        raise HloVerifyError(
            "Source and destination buffers in CopyDone arguments need to be the same shape "
            f"found {target.text} and {source.text}"
        )
    expect(target, instruction.shape, target.layout == instruction.shape.layout)


def _crosses_host(a: Shape, b: Shape) -> bool:
    in_host = [shape.layout.memory_space == HOST_MEMORY_SPACE for shape in (a, b)]
    return in_host[0] != in_host[1]
