"""Every value in a module read through: attributes, literals, operands by number.

Reading leaves attributes and literals as text, and the verifier looks at them later. This is for
who wants to know at once whether a text is HLO, without the rules of its operations.
"""

from __future__ import annotations

from hloopt.diagnostics import HloSyntaxError, Span
from hloopt.ir.attributes.opcode_attributes import (
    allowed_attributes,
    canonical_value,
    check_attributes,
)
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.literals.literal import canonical_literal
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.operand_rules import check_operands


def check_syntax(module: Module) -> None:
    """Raise HloSyntaxError, with its place, for the first value that is malformed.

    O(length of the text).
    """
    _check_header(module)
    for computation in module.computations.values():
        _check_parameters(computation)
        for instruction in computation.instructions:
            _check(instruction)


def _check_header(module: Module) -> None:
    from hloopt.text.header_values import canonical_header_value
    from hloopt.text.parser import rewrite_module

    for key, text in module.attributes.items():
        try:
            canonical_header_value(key, text, rewrite_module)
            if key == "input_output_alias":
                _check_aliases(module, text)
        except HloSyntaxError as error:
            raise error.at(_span_in_header(module, key)) from None


def _check_aliases(module: Module, text: str) -> None:
    """An alias is of a part that the result has."""
    from hloopt.ir.attributes.values import parse_aliasing

    indices = {index for index, _ in module.entry.root.shape.subshapes()}
    for alias in parse_aliasing(text):
        if alias.output_index not in indices:
            index = ",".join(map(str, alias.output_index))
            raise HloSyntaxError(
                f"the result {module.entry.root.shape.text} has no part {{{index}}}"
            )


def _span_in_header(module: Module, key: str) -> Span | None:
    if module.source is None:
        return None
    start = module.source.text.find(key)
    return Span(module.source, start, start + len(key)) if start >= 0 else None


def _check_parameters(computation: Computation) -> None:
    """Parameters are numbered from 0, each once."""
    for number, parameter in enumerate(computation.parameters):
        if parameter.parameter_number != number:
            raise HloSyntaxError(
                f"parameter({parameter.payload}) of %{computation.name}: the numbers of "
                "parameters begin at 0 and have neither gaps nor duplicates",
                span=computation.module.span_of(parameter),
            )


def _check(instruction: Instruction) -> None:
    module = instruction.parent.module
    opcode = instruction.opcode
    allowed = allowed_attributes(opcode)
    for name, text in instruction.attributes.items():
        if name in allowed:
            try:
                canonical_value(opcode, name, text)
            except HloSyntaxError as error:
                raise error.at(module.span_of_attribute(instruction, name)) from None
    references = [name for name, called in instruction.called_attributes() if called]
    if instruction.control_predecessors:
        references.append("control-predecessors")
    try:
        check_attributes(opcode, instruction.attributes, references)
        check_operands(instruction)
    except HloSyntaxError as error:
        raise error.at(module.span_of(instruction)) from None
    if opcode is Opcode.CONSTANT:
        try:
            canonical_literal(instruction.payload, instruction.shape)
        except HloSyntaxError as error:
            raise error.at(_span_of_literal(instruction)) from None


def _span_of_literal(constant: Instruction) -> Span | None:
    span = constant.parent.module.span_of(constant)
    if span is None:
        return None
    start = span.source.text.find(constant.payload, span.start) if constant.payload else -1
    return Span(span.source, start, start + len(constant.payload)) if start >= 0 else span
