"""Rules about buffers that outputs share with parameters or operands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hloopt.diagnostics import HloError, HloVerifyError
from hloopt.ir.attributes.values import (
    Alias,
    parse_aliasing,
    parse_buffer_donor,
    parse_output_to_operand_aliasing,
)
from hloopt.ir.custom_targets import custom_call_target
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.layout import Layout
from hloopt.ir.shapes.shape import Shape, tuple_shape
from hloopt.verifier.options import Setting
from hloopt.verifier.report import header_span, show_index

_PINNING = ("Pin", "Unpin")


def check_operand_aliasing(instruction: Instruction, setting: Setting) -> None:
    """`output_to_operand_aliasing` names outputs and operands that exist and have one shape.

    Layouts count where the verifier is layout-sensitive. Outputs of an async-start are counted
    in its own shape; its operands are those of the computation it wraps.
    """
    operands = [operand.shape for operand in instruction.operands]
    result = instruction.shape
    if instruction.opcode is Opcode.ASYNC_START and instruction.called:
        wrapped = instruction.called[0]
        operands = [parameter.shape for parameter in wrapped.parameters]
        result = tuple_shape((tuple_shape(operands), wrapped.root.shape, *result.elements[2:]))
    for alias in parse_output_to_operand_aliasing(
        instruction.attributes["output_to_operand_aliasing"]
    ):
        if alias.parameter < 0:
            raise HloVerifyError("Negative operand number in aliasing config.")
        if alias.parameter >= len(operands):
            raise HloVerifyError(
                f"Operand number {alias.parameter} in aliasing config is out of bounds."
            )
        if instruction.opcode is Opcode.ASYNC_START and not alias.output_index:
            raise HloVerifyError("Output index should not be empty.")
        operand = _at(operands[alias.parameter], alias.parameter_index)
        output = _at(result, alias.output_index)
        if operand is None or output is None:
            index = alias.parameter_index if operand is None else alias.output_index
            raise HloVerifyError(
                f"Invalid aliasing {'operand' if operand is None else 'output'} shape index "
                f"{show_index(index)}."
            )
        if not _can_share(operand, output, instruction, setting):
            raise HloVerifyError(f"Different aliasing shapes: {operand.text} vs {output.text}")


def _at(shape: Shape, index: tuple[int, ...]) -> Shape | None:
    """The part of `shape` at `index`; None where there is none."""
    for number in index:
        if number >= len(shape.elements):
            return None
        shape = shape.elements[number]
    return shape


def _can_share(operand: Shape, output: Shape, instruction: Instruction, setting: Setting) -> bool:
    if setting.options.layout_sensitive:
        pairs = zip(operand.subshapes(), output.subshapes(), strict=False)
        if any(_buffer_layout(a) != _buffer_layout(b) for (_, a), (_, b) in pairs):
            return False
    if custom_call_target(instruction) not in _PINNING and (operand.is_buffer != output.is_buffer):
        return False
    bare = [(s.type_name, s.dimensions) for _, s in operand.subshapes()]
    return bare == [(s.type_name, s.dimensions) for _, s in output.subshapes()]


def _buffer_layout(shape: Shape) -> Layout:
    """The layout as far as sharing goes: a single element may be in any memory space."""
    layout = shape.layout._replace(element_bits=0)
    is_single = shape.is_array and shape.element_count() == 1
    return layout._replace(memory_space=0) if is_single else layout


def check_module_aliasing(
    module: Module, found: Sequence[Instruction], setting: Setting
) -> Iterator[HloVerifyError]:
    """`input_output_alias` and `buffer_donor` name arrays that exist, each parameter once."""
    try:
        aliases = parse_aliasing(module.attributes.get("input_output_alias", "{}"))
        donors = parse_buffer_donor(module.attributes.get("buffer_donor", "{}"))
    except HloError as error:
        yield HloVerifyError(error.message, span=header_span(module, "HloModule"), help=error.help)
        return
    if not (aliases or donors):
        return
    for message in _problems(module, found, aliases, donors, setting):
        name = "buffer_donor" if "donor" in message else "input_output_alias"
        yield HloVerifyError(message, span=header_span(module, name))


def _problems(
    module: Module,
    entry_parameters: Sequence[Instruction],
    aliases: tuple[Alias, ...],
    donors: tuple[tuple[int, tuple[int, ...]], ...],
    setting: Setting,
) -> Iterator[str]:
    parameters = [parameter.shape for parameter in entry_parameters]
    taken: set[tuple[int, tuple[int, ...]]] = set()
    for alias in aliases:
        place = alias.parameter, alias.parameter_index
        for message in _why_wrong(alias, module.entry.root.shape, parameters, setting):
            yield f"input_output_alias of output {show_index(alias.output_index)}: {message}"
        if place in taken:
            yield (
                f"input_output_alias of output {show_index(alias.output_index)}: {_place(place)} "
                "is already aliased with another output"
            )
        taken.add(place)
    for number, index in donors:
        if reason := _why_no_parameter(parameters, number, index):
            yield f"buffer_donor: {reason}"
        if (number, index) in taken:
            yield (
                f"{_place((number, index))} is registered as a buffer donor. However, it is also "
                "in the input output alias config."
            )
        taken.add((number, index))


def _why_wrong(
    alias: Alias, root: Shape, parameters: list[Shape], setting: Setting
) -> Iterator[str]:
    """The reasons why an alias cannot be, but for what else its parameter is aliased with."""
    output = _at(root, alias.output_index)
    if output is None or not output.is_array:
        yield "the entry computation has no such array"
    if reason := _why_no_parameter(parameters, alias.parameter, alias.parameter_index):
        yield reason
    if output is not None and alias.parameter < len(parameters):
        parameter = _at(parameters[alias.parameter], alias.parameter_index)
        if parameter not in (None, output) and (
            reason := _why_not_aliased(alias, parameter, output, setting)
        ):
            yield reason


def _why_not_aliased(alias: Alias, parameter: Shape, output: Shape, setting: Setting) -> str | None:
    """The reason why an output cannot reuse the buffer of a parameter of another shape; None if
    it can."""
    if alias.kind == "must-alias":
        return (
            f"Shape and memory space of the result {output.text} must be the same as the shape "
            f"and memory space of aliased {_place((alias.parameter, alias.parameter_index))} "
            f"({parameter.text})"
        )
    if not setting.options.layout_sensitive:
        return None
    from hloopt.ir.shapes.shape_size import data_bytes  # few runs need it

    if data_bytes(parameter) != data_bytes(output):
        return (
            f"Expected aliased {_place((alias.parameter, alias.parameter_index))} and output to "
            f"have the same size: {parameter.text} and {output.text}"
        )
    return None


def _place(place: tuple[int, tuple[int, ...]]) -> str:
    return f"Input {place[0]} at index {show_index(place[1])}"


def _why_no_parameter(parameters: list[Shape], number: int, index: tuple[int, ...]) -> str | None:
    """The reason why there is no array at `index` of a parameter; None if there is one."""
    if number >= len(parameters):
        return f"there is no parameter {number}, the entry computation has {len(parameters)}"
    shape = _at(parameters[number], index)
    if shape is None or not shape.is_array:
        return f"parameter {number} has no array at index {show_index(index)}"
    return None
