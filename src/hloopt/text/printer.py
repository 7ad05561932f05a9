"""IR to HLO text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import ASYNC, Opcode
from hloopt.ir.ordering import (
    computation_post_order,
    post_order,
    stable_computation_order,
    stable_order,
)
from hloopt.ir.shape import format_shape
from hloopt.text.header import format_header
from hloopt.text.print_options import PrintOptions

_KEEP = PrintOptions()


def print_module(module: Module, options: PrintOptions = _KEEP) -> str:
    """The module as HLO text. O(length of the result).

    Raises HloVerifyError where `older_syntax` cannot say what the module holds.
    """
    if options.older_syntax:
        from hloopt.text.older_syntax import in_older_syntax

        module = in_older_syntax(module)
    if options.keep_text and module.is_pristine and module.source is not None:
        return module.source.text
    parts = [format_header(module, options), "\n\n"]
    for computation in _computations(module, options):
        parts += (format_computation(computation, options), "\n\n")
    if options.keep_text:
        parts.pop()
        parts.append("\n")
    return "".join(parts)


def _computations(module: Module, options: PrintOptions) -> Iterable[Computation]:
    if not options.keep_text:
        order = computation_post_order(module)
        if not options.syntax_sugar_async_ops:
            return order
        from hloopt.text.async_printing import is_printed_in_its_start

        return [c for c in order if not (c.callers and is_printed_in_its_start(c))]
    for computation in module.computations.values():
        if computation.is_sugar and not computation.is_pristine:
            for start in computation.callers:
                start.parent.is_pristine = False  # its text is short for what changed
    return [c for c in stable_computation_order(module) if not _stands_in_its_caller(c)]


def _stands_in_its_caller(computation: Computation) -> bool:
    """Whether the text of an `X-start` that is kept says all there is to this computation."""
    return computation.is_sugar and any(_keeps_text(caller) for caller in computation.callers)


def _keeps_text(instruction: Instruction) -> bool:
    if instruction.text is None:
        return False
    if instruction.opcode is Opcode.ASYNC_START:
        return all(not called.is_sugar or called.is_pristine for called in instruction.called)
    if instruction.opcode in (Opcode.ASYNC_DONE, Opcode.ASYNC_UPDATE):
        return _keeps_text(instruction.operands[0])
    return True


def format_computation(computation: Computation, options: PrintOptions = _KEEP) -> str:
    """A computation as HLO text, without a line end after its closing brace."""
    if options.keep_text and computation.is_pristine and computation.source_range:
        source = computation.module.source
        assert source is not None
        return source.text[slice(*computation.source_range)]
    sigil = "%" if options.print_percent else ""
    entry = "ENTRY " if computation.is_entry else ""
    signature = _signature(computation) if options.print_program_shape else ""
    lines = [f"{entry}{sigil}{computation.name}{signature} {{"]
    if options.keep_text or (computation.module.is_scheduled and not computation.is_fusion):
        order = stable_order(computation)
    else:
        order = post_order(computation)
    for instruction in order:
        if not options.keep_text:
            text = format_instruction(instruction, options)
        elif not _keeps_text(instruction):
            text = _write_down(instruction)
        else:
            text = instruction.text or ""
        lines.append(f"  ROOT {text}" if instruction.is_root else f"  {text}")
    thread = computation.execution_thread
    lines.append("}" if thread == "main" else f'}}, execution_thread="{thread}"')
    return "\n".join(lines)


def _write_down(instruction: Instruction) -> str:
    """Write an instruction anew and keep the text, so that it is written once per change."""
    if instruction.opcode is Opcode.ASYNC_START:
        for called in instruction.called:
            called.is_sugar = False
    instruction.text = format_instruction(instruction)
    return instruction.text


def _signature(computation: Computation) -> str:
    parameters = ", ".join(
        f"{p.name}: {format_shape(p.shape, layout=False)}" for p in computation.parameters
    )
    return f" ({parameters}) -> {format_shape(computation.root.shape, layout=False)}"


def format_instruction(instruction: Instruction, options: PrintOptions = _KEEP) -> str:
    """An instruction written anew, from its name to its last attribute."""
    sigil = "%" if options.print_percent else ""
    shape = f"{instruction.shape.text} " if options.print_result_shape else ""
    opcode = instruction.opcode.value
    if instruction.opcode in ASYNC and (operation := _short_form(instruction, options)):
        opcode = f"{operation.opcode}-{opcode.removeprefix('async-')}"
    attributes = "".join(f", {key}={value}" for key, value in _attributes(instruction, options))
    return (
        f"{sigil}{instruction.name} = {shape}{opcode}"
        f"({_arguments(instruction, options)}){attributes}"
    )


def _short_form(instruction: Instruction, options: PrintOptions) -> Instruction | None:
    """The operation in whose name an asynchronous instruction is printed."""
    if options.keep_text or not options.syntax_sugar_async_ops:
        return None
    from hloopt.text.async_printing import wrapped_operation

    return wrapped_operation(instruction)


def _arguments(instruction: Instruction, options: PrintOptions) -> str:
    if instruction.opcode is Opcode.PARAMETER:
        return instruction.payload
    if instruction.opcode is Opcode.CONSTANT:
        if options.keep_text:
            return instruction.payload
        limit = None if options.print_large_constants else 10
        from hloopt.ir.literal import canonical_literal

        return canonical_literal(instruction.payload, instruction.shape, limit)
    sigil = "%" if options.print_percent else ""
    parts: list[str] = []
    for number, operand in enumerate(instruction.operands):
        index = f"/*index={number}*/" if number and number % 5 == 0 else ""
        shape = f"{operand.shape.text} " if options.print_operand_shape else ""
        parts.append(f"{index}{shape}{sigil}{operand.name}")
    return ", ".join(parts)


def _attributes(instruction: Instruction, options: PrintOptions) -> list[tuple[str, str]]:
    own = list(_own_attributes(instruction, options))
    if instruction.opcode is Opcode.ASYNC_START:
        operation = _short_form(instruction, options)
        if operation:
            from hloopt.text.async_printing import merge_attributes

            return merge_attributes(own, list(_own_attributes(operation, options)))
    return own


def _own_attributes(instruction: Instruction, options: PrintOptions) -> Iterator[tuple[str, str]]:
    sigil = "%" if options.print_percent else ""
    if options.keep_text:
        values = dict(instruction.attributes)
    else:
        from hloopt.ir.explicit_attributes import explicit_attributes

        values = explicit_attributes(instruction)
    own = set(values)
    for key, called in instruction.called_attributes():
        names = ", ".join(sigil + computation.name for computation in called)
        is_list = key in ("branch_computations", "called_computations")
        values[key] = f"{{{names}}}" if is_list else names
    references = values.keys() - own
    if instruction.control_predecessors and options.print_control_dependencies:
        names = ", ".join(sigil + p.name for p in instruction.control_predecessors)
        values["control-predecessors"] = f"{{{names}}}"
        references.add("control-predecessors")
    if not options.print_metadata:
        values.pop("metadata", None)
    if not options.print_backend_config:
        values.pop("backend_config", None)
    from hloopt.ir.opcode_attributes import attribute_order, canonical_value

    for key in attribute_order(instruction.opcode, values):
        value: str | None = values[key]
        if not options.keep_text and key not in references:
            value = canonical_value(instruction.opcode, key, values[key])
            if key == "literal" and not options.print_large_constants:
                from hloopt.ir.attribute_format import elided_literal

                value = elided_literal(values[key])
        if value is not None:
            yield key, value
