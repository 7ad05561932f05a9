"""Instructions, and the bodies of computations, written anew in a style."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from hloopt.diagnostics import printable
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import COMPUTATION_LISTS, Instruction
from hloopt.ir.opcode import ASYNC, Opcode
from hloopt.ir.ordering import post_order, stable_order
from hloopt.ir.shapes.shape import Shape, format_shape
from hloopt.patterns import pattern
from hloopt.text.print_options import PrintOptions

_LARGE = 10  # elements of a constant that is printed in the default style
_LARGEST_ESSENTIAL = 500_000  # integers that a fingerprint spells out
_COMPACT = 4  # operands that are shown of many

_WITH_APPLIED = frozenset(
    (
        *(Opcode.CALL, Opcode.MAP, Opcode.REDUCE, Opcode.REDUCE_WINDOW, Opcode.SORT, Opcode.TOPK),
        *(Opcode.ALL_REDUCE, Opcode.ALL_REDUCE_START, Opcode.SCATTER),
    )
)
"""Opcodes whose computation keeps the name `to_apply` where its body is printed."""

_GENERAL = frozenset(
    (
        *("sharding", "frontend_attributes", "control-predecessors", "statistics"),
        *("origin", "metadata", "backend_config"),
    )
)
"""Attributes that every opcode has."""


class InstructionPrinter:
    """Writes instructions in one style."""

    def __init__(self, options: PrintOptions) -> None:
        self.options = options
        self._sigil = "%" if options.print_percent else ""
        self._names: Mapping[Instruction, str] = {}
        self._blocks: dict[tuple[Computation, int], str] = {}
        self._wrapped: dict[Instruction, Instruction | None] = {}  # by async-start

    # -- computations -----------------------------------------------------------------------

    def lines(self, computation: Computation, indent: int = 1) -> Iterator[tuple[Instruction, str]]:
        """Each instruction with its text, in printing order."""
        options = self.options
        is_scheduled = computation.module.is_scheduled and not computation.is_fusion
        if options.keep_order or (is_scheduled and indent == 1):  # XLA forgets it further inside
            order = stable_order(computation)
        else:
            order = post_order(computation)
        outer = self._names
        if options.canonicalize_instruction_names:
            self._names = {member: f"tmp_{n}" for n, member in enumerate(order)}
        margin = "  " * indent
        for member in order:
            root = "ROOT " if member.is_root else ""
            text = self.instruction(member, indent)
            yield member, f"{margin}{root}{text}{self.source_comment(member)}"
        self._names = outer

    def head(self, computation: Computation) -> str:
        """The line that opens a computation, up to its brace."""
        entry = "ENTRY " if computation.is_entry else ""
        name = f"{self._sigil}{computation.name} " if self.options.print_ids else ""
        signature = f"{self._signature(computation)} " if self.options.print_program_shape else ""
        return f"{entry}{name}{signature}{{"

    def tail(self, computation: Computation) -> str:
        """The closing brace and what stands behind it."""
        thread = computation.execution_thread
        if thread == "main" or not self.options.print_ids:
            return "}"
        return f'}}, execution_thread="{thread}"'

    def _signature(self, computation: Computation) -> str:
        parameters = ", ".join(
            f"{self._plain_name(p)}: {format_shape(p.shape, layout=False)}"
            for p in computation.parameters
        )
        return f"({parameters}) -> {format_shape(computation.root.shape, layout=False)}"

    def _block(self, computation: Computation, indent: int) -> str:
        """The body of a computation, in place of its name. Once per computation and depth."""
        found = self._blocks.get((computation, indent))
        if found is None:
            margin = "  " * indent
            head = f"{self._signature(computation)} {{" if self.options.print_program_shape else "{"
            lines = [text for _, text in self.lines(computation, indent + 1)]
            found = "\n".join([f"\n{margin}{head}", *lines, f"{margin}{self.tail(computation)}"])
            self._blocks[computation, indent] = found
        return found

    # -- instructions -----------------------------------------------------------------------

    def source_comment(self, instruction: Instruction) -> str:
        """The comment with the source line, where there is one and it is wanted."""
        if not self.options.inline_source:
            return ""
        from hloopt.ir.sources.source_stacks import stack_of

        stack = stack_of(instruction)
        if stack is None or not stack.user_frame.line:
            return ""
        place = printable(stack.user_frame.text).replace("*/", "*\\/")
        return f"  /*source={place}*/"

    def instruction(self, instruction: Instruction, indent: int = 1) -> str:
        """An instruction from its name to its last attribute."""
        options = self.options
        wrapped = None
        opcode = instruction.opcode.value
        if options.syntax_sugar_async_ops and instruction.opcode in ASYNC:
            wrapped = self._wrapped_operation(instruction)
            if wrapped is not None:
                opcode = f"{wrapped.opcode.value}-{opcode.removeprefix('async-')}"
        shape = f"{self._shape(instruction.shape)} " if options.print_result_shape else ""
        attributes = "".join(
            f", {key}={value}" for key, value in self._attributes(instruction, wrapped, indent)
        )
        return (
            f"{self._name(instruction)} = {shape}{opcode}({self._arguments(instruction)})"
            f"{attributes}"
        )

    def _wrapped_operation(self, instruction: Instruction) -> Instruction | None:
        """The operation that an asynchronous instruction wraps, if it has a short form. Once per
        async-start."""
        from hloopt.ir.async_chains import find_async_start
        from hloopt.text.async_printing import wrapped_operation

        start = find_async_start(instruction)
        if start is None:
            return None
        if start not in self._wrapped:
            readable = self.options.always_readable
            self._wrapped[start] = wrapped_operation(start, readable=readable)
        return self._wrapped[start]

    def _name(self, instruction: Instruction) -> str:
        if self.options.canonicalize_instruction_names:
            return self._names[instruction]
        return f"{self._sigil}{self._plain_name(instruction)}"

    def _plain_name(self, instruction: Instruction) -> str:
        if self.options.print_ids:
            return instruction.name
        return re.sub(r"(?<=.)\.\d+\Z", "", instruction.name)

    def _shape(self, shape: Shape) -> str:
        if self.options.include_layout_in_shapes:
            return shape.text
        return format_shape(shape, layout=False)

    def _arguments(self, instruction: Instruction) -> str:
        if instruction.opcode is Opcode.PARAMETER:
            return instruction.payload
        if instruction.opcode is Opcode.CONSTANT:
            return self._literal(instruction)
        options = self.options
        parts: list[str] = []
        operands = instruction.operands
        if options.compact_operands and len(operands) > _COMPACT:
            operands = operands[:_COMPACT]
        for number, operand in enumerate(operands):
            marks = options.print_operand_index_annotation and number and number % 5 == 0
            words = [self._shape(operand.shape)] if options.print_operand_shape else []
            if options.print_operand_names:
                words.append(self._name(operand))
            parts.append((f"/*index={number}*/" if marks else "") + " ".join(words))
        if len(operands) < len(instruction.operands):
            parts.append(f"...(+{len(instruction.operands) - len(operands)})")
        return ", ".join(parts)

    def _literal(self, constant: Instruction) -> str:
        options = self.options
        if options.keep_text:
            return constant.payload
        from hloopt.ir.literals.literal import ELIDED, canonical_literal

        if not options.print_only_essential_constants:
            limit = None if options.print_large_constants else _LARGE
            text = canonical_literal(constant.payload, constant.shape, limit)
            return _MINUS_ZERO.sub("-0.0", text) if options.always_readable else text
        shape = constant.shape
        if shape.is_tuple:
            return ELIDED
        text = canonical_literal(constant.payload, shape)
        values = set(re.findall(r"\([^()]*\)|[^\s{},]+", re.sub(r"/\*.*?\*/", "", text)))
        for number, same in (("0", _ALL_ZERO), ("1", _ALL_ONE)):
            if values <= same:
                return number
        element = shape.element_type
        is_spelled = element is not None and element.kind in ("signed", "unsigned")
        return text if is_spelled and shape.element_count() <= _LARGEST_ESSENTIAL else ELIDED

    # -- attributes -------------------------------------------------------------------------

    def _attributes(
        self, instruction: Instruction, wrapped: Instruction | None, indent: int
    ) -> Iterator[tuple[str, str]]:
        """Keys and values in printing order."""
        if wrapped is None:
            yield from self._own_attributes(instruction, indent)
            return
        from hloopt.text.async_rules import ALIASING, ATTRIBUTES_OF_BOTH, THREAD

        own = dict(self._own_attributes(instruction, indent))
        thread, called = own.pop(THREAD, None), own.pop("calls", None)
        if instruction.opcode is Opcode.ASYNC_START:
            if thread is not None:
                yield THREAD, thread
            for key, value in self._own_attributes(wrapped, indent):
                if key not in ATTRIBUTES_OF_BOTH:
                    yield key, value
            if called is not None and self.options.print_full_bodies:
                if ALIASING in own:
                    yield ALIASING, own.pop(ALIASING)
                yield "calls", called
        yield from own.items()

    def _own_attributes(self, instruction: Instruction, indent: int) -> Iterator[tuple[str, str]]:
        from hloopt.ir.attributes.opcode_attributes import attribute_order, canonical_value

        options = self.options
        values = instruction.attributes
        if not options.keep_text:
            from hloopt.ir.attributes.explicit import explicit_attributes

            values = explicit_attributes(instruction)
        references = {
            key: self._reference(instruction, key, called, indent)
            for key, called in instruction.called_attributes()
        }
        if instruction.control_predecessors and options.print_control_dependencies:
            names = ", ".join(self._name(p) for p in instruction.control_predecessors)
            references["control-predecessors"] = ("control-predecessors", f"{{{names}}}")
        for key in attribute_order(instruction.opcode, {**values, **references}):
            if key in references:
                yield references[key]
                continue
            if not self._prints(key):
                continue
            value: str | None = values[key]
            if not options.keep_text:
                value = canonical_value(instruction.opcode, key, values[key])
                if key == "literal" and not options.print_large_constants:
                    from hloopt.ir.attributes.shapes import elided_literal

                    value = elided_literal(values[key])
            if value is not None:
                if key == "replica_groups" and options.print_full_replica_group_list:
                    value = _listed_groups(value)
                if key == "sharding" and not options.print_metadata:
                    from hloopt.ir.attributes.values.sharding_text import without_metadata

                    value = without_metadata(value)
                yield key, value

    def _prints(self, key: str) -> bool:
        options = self.options
        if key == "metadata":
            return options.print_metadata
        if key == "backend_config":
            return options.print_backend_config
        if key in ("infeed_config", "outfeed_config"):
            return options.print_infeed_outfeed_config
        if key == "parameter_replication" and not options.print_ids:
            return False
        return options.print_extra_attributes or key in _GENERAL

    def _reference(
        self, instruction: Instruction, key: str, called: tuple[Computation, ...], indent: int
    ) -> tuple[str, str]:
        """The key and value of an attribute that names computations."""
        is_list = key in COMPUTATION_LISTS
        if not self.options.print_full_bodies:
            names = ", ".join(self._sigil + computation.name for computation in called)
            return key, f"{{{names}}}" if is_list else names
        blocks = ",".join(self._block(computation, indent) for computation in called)
        if is_list:
            return key, f"{{{blocks}\n}}"
        if key == "to_apply" and instruction.opcode not in _WITH_APPLIED:
            key = "calls"
        return key, blocks


_MINUS_ZERO = pattern(r"(?<![\w.])-0(?![\w.])")
_ALL_ZERO = frozenset(("0", "false", "(0, 0)"))
_ALL_ONE = frozenset(("1", "true", "(1, 0)"))


def _listed_groups(text: str) -> str:
    from hloopt.ir.attributes.values import format_int_lists, parse_replica_groups

    return format_int_lists(parse_replica_groups(text).lists())
