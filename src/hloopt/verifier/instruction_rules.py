"""Rules about one instruction: its attributes, and that its shape follows from its operands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hloopt.diagnostics import HloError
from hloopt.ir.attributes.text import split_attributes
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction, without_references
from hloopt.ir.literals.plain_literals import is_plain_scalar
from hloopt.ir.opcode import (
    ASYNC,
    ELEMENTWISE_BINARY,
    ELEMENTWISE_UNARY,
    Opcode,
)
from hloopt.ir.operand_rules import check_operands
from hloopt.ir.shape_inference import check_shape
from hloopt.ir.shapes.layout import default_layout
from hloopt.ir.shapes.shape import Shape
from hloopt.patterns import pattern
from hloopt.verifier.options import Setting
from hloopt.verifier.rules import INSTRUCTION_RULES, SHAPED_RULES, Rule, check, for_opcode

_CHARACTERS = r"[^\"\\]*+(?:\\[nrt'\"\\][^\"\\]*+)*+"
_METADATA = pattern(
    rf'(?:op_type="{_CHARACTERS}" ?)?(?:op_name="{_CHARACTERS}" ?)?'
    rf'(?:source_file="{_CHARACTERS}" ?)?'
    r"(?:source_line=\d{1,9} ?)?(?:source_end_line=\d{1,9} ?)?(?:source_column=\d{1,9} ?)?"
    r"(?:source_end_column=\d{1,9} ?)?(?:stack_frame_id=\d{1,9} ?)?\}"
)
"""Metadata as XLA prints it nearly always, up to the end of the attributes."""
_CHANNEL = pattern(r"\bchannel_id=\d{1,18}(?!\d)")

_NEVER_ABOUT_RULES = frozenset(("metadata", "backend_config", "statistics"))
_KEEPS_SHAPE = (ELEMENTWISE_BINARY | ELEMENTWISE_UNARY) - {
    *(Opcode.COMPARE, Opcode.COMPLEX, Opcode.REAL, Opcode.IMAG, Opcode.IS_FINITE),
    *(Opcode.BITCAST_CONVERT, Opcode.STOCHASTIC_CONVERT, Opcode.REDUCE_PRECISION),
}

KEEPS_PRECISION = frozenset(
    (
        *(Opcode.BROADCAST, Opcode.RESHAPE, Opcode.DYNAMIC_UPDATE_SLICE, Opcode.TUPLE, Opcode.COPY),
        *(Opcode.GET_TUPLE_ELEMENT, Opcode.CALL, Opcode.WHILE, Opcode.CONDITIONAL),
    )
)
"""Opcodes that pass values on as they are, whatever precision others may have."""

_SAME_SHAPE, _PARAMETER, _CONSTANT, _ELEMENT, _ASYNCHRONOUS = range(5)
_KINDS = {
    **dict.fromkeys(_KEEPS_SHAPE, _SAME_SHAPE),
    **dict.fromkeys(ASYNC, _ASYNCHRONOUS),
    Opcode.PARAMETER: _PARAMETER,
    Opcode.CONSTANT: _CONSTANT,
    Opcode.GET_TUPLE_ELEMENT: _ELEMENT,
}
"""Opcodes whose forms are looked at in a way of their own."""

_Form = tuple[object, ...]


class InstructionRules:
    """Checks instructions, each distinct form once in the life of the process.

    The form of an instruction is its opcode, its shape, those of its operands, its attributes but
    for metadata, and the signatures of what it calls: hundreds of equal layers cost as much as
    one. One object serves one run over a module.
    """

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self._known = _KNOWN.get(setting) or _KNOWN.setdefault(setting, _Known(setting))
        self._plain_shapes = self._known.plain_shapes
        self._signatures: dict[Computation, _Form] = {}
        self._metadata: set[str] = set()
        """Texts of metadata found valid, from behind `metadata={` on."""

    def problems(self, computation: Computation) -> Iterator[tuple[Instruction, HloError]]:
        """Each instruction that breaks a rule, with the first one it breaks."""
        forms = self._known.forms
        for instruction in computation.instructions:
            form = self._form(instruction)
            if form is _VALID or form in forms:
                continue
            try:
                self._check(instruction, is_new_form=form is not None)
            except HloError as error:
                yield instruction, error
            else:
                if form is not None:
                    forms.add(form)

    def _form(self, instruction: Instruction) -> _Form | None:
        """The form; `_VALID` where a look suffices; None where there is no key for it."""
        text = instruction.attribute_text
        if text is None:
            return None
        head, has_metadata, metadata = text.partition("metadata={")
        if has_metadata:
            if head and head[-2:] != ", ":
                return None
            if metadata not in self._metadata:  # many instructions come from one place
                if _METADATA.fullmatch(metadata) is None:
                    return None
                self._metadata.add(metadata)
        opcode = instruction.opcode
        kind = _KINDS.get(opcode)
        if kind == _ASYNCHRONOUS:
            return None  # more than shapes decides
        shape = instruction.shape
        operands = instruction.operands
        if kind is None or (shape not in self._plain_shapes and not self._becomes_plain(shape)):
            pass  # what is right for most shapes may be wrong for this one
        elif kind == _SAME_SHAPE:
            for operand in operands:
                if operand.shape is not shape:
                    break
            else:
                if head:
                    return opcode, shape, head, len(operands)
                return opcode, shape.element_type, len(operands)
        elif kind == _PARAMETER:
            if not head:
                return _VALID
        elif kind == _CONSTANT:
            return _constant_form(instruction, head)
        elif kind == _ELEMENT:
            index = head[6:-2] if has_metadata else head[6:]
            elements = operands[0].shape.elements if len(operands) == 1 else ()
            if (
                head[:6] == "index="
                and index.isdecimal()
                and index.isascii()
                and len(index) < 10
                and int(index) < len(elements)
            ):
                return _VALID if elements[int(index)] is shape else None
        if "channel_id=" in head:
            head = _CHANNEL.sub("channel_id", head)
        called = instruction.called
        if called:
            return (
                *(opcode, shape, self._without_names(instruction, head)),
                *[operand.shape for operand in operands],
                *[self._signature(callee) for callee in called],
            )
        return opcode, shape, head, *[operand.shape for operand in operands]

    def _becomes_plain(self, shape: Shape) -> bool:
        """Whether no rule objects to `shape` for its own sake; notes it."""
        plain = self._plain_shapes
        leaves = {shape} if shape.element_type else set(shape.leaves())
        for leaf in leaves:
            if leaf not in plain:
                if not _is_plain(leaf):
                    return False
                plain.add(leaf)
        plain.add(shape)
        return True

    def _without_names(self, instruction: Instruction, head: str) -> str:
        """Attribute text without what differs between equal calls, the callees' names."""
        for callee in instruction.called:
            head = head.replace(f"={callee.name}", "=").replace(f"=%{callee.name}", "=")
        return head

    def _signature(self, computation: Computation) -> _Form:
        """Shapes of the root and of the parameters."""
        signature = self._signatures.get(computation)
        if signature is None:
            shapes = [parameter.shape for parameter in computation.parameters]
            signature = self._signatures[computation] = (computation.root.shape, *shapes)
        return signature

    def _check(self, instruction: Instruction, *, is_new_form: bool) -> None:
        """Raise HloError with the first rule that `instruction` breaks."""
        opcode = instruction.opcode
        attributes = _looked_at(instruction) if is_new_form else instruction.attributes
        called = instruction.called
        references = [name for name, _ in instruction.called_attributes()] if called else []
        if instruction.control_predecessors:
            references.append("control-predecessors")
        if attributes or references or opcode not in _KEEPS_SHAPE:  # these need no attribute
            from hloopt.ir.attributes.opcode_attributes import check_attributes

            check_attributes(opcode, attributes, references)
        check_operands(instruction)
        if opcode is Opcode.CONSTANT:
            from hloopt.ir.literals.literal import check_literal

            check_literal(instruction.payload, instruction.shape)
        form = None
        if not is_new_form and opcode not in ASYNC:
            form = self._form_of_attributes(instruction)
            if form in self._known.forms:
                return
        self._check_rules(instruction, attributes)
        if form is not None:
            self._known.forms.add(form)

    def _form_of_attributes(self, instruction: Instruction) -> _Form:
        """The form of an instruction whose attributes are not one known text."""
        attributes = instruction.attributes.items()
        return (
            *(instruction.opcode, instruction.shape, instruction.payload),
            *[operand.shape for operand in instruction.operands],
            *[self._signature(callee) for callee in instruction.called],
            *[item for item in attributes if item[0] not in _NEVER_ABOUT_RULES],
        )

    def _check_rules(self, instruction: Instruction, attributes: Mapping[str, str]) -> None:
        opcode = instruction.opcode
        operands = [operand.shape for operand in instruction.operands]
        before, after = self._rules(opcode)
        is_odd, is_mixed = self._look_at(instruction.shape, operands)
        check(before, instruction, attributes, self.setting, is_odd, is_mixed)
        if opcode is not Opcode.PARAMETER:
            check_shape(
                opcode,
                instruction.shape,
                operands,
                attributes,
                instruction.called,
                any_precision=self.setting.options.allow_mixed_precision
                and opcode not in KEEPS_PRECISION,
            )
        check(after, instruction, attributes, self.setting, is_odd, is_mixed)

    def _rules(self, opcode: Opcode) -> tuple[list[Rule], list[Rule]]:
        """The rules about an opcode, before and after the shape is checked."""
        rules = self._known.rules.get(opcode)
        if rules is None:
            before, after = (for_opcode(asked, opcode) for asked in self._known.asked)
            rules = self._known.rules[opcode] = before, after
        return rules

    def _look_at(self, result: Shape, operands: list[Shape]) -> tuple[bool, bool]:
        """Whether a rule may object to a shape for its own sake, and whether operands differ in
        type, or are tuples, which may hold several types."""
        plain = self._plain_shapes
        is_odd = result not in plain and not self._becomes_plain(result)
        is_mixed = False
        kind = operands[0].element_type if operands else None
        for shape in operands:
            if shape.element_type is not kind or kind is None:
                is_mixed = True
            if shape not in plain and not self._becomes_plain(shape):
                is_odd = True
        return is_odd, is_mixed


class _Known:
    """The errors found in one setting."""

    def __init__(self, setting: Setting) -> None:
        self.forms: set[_Form] = set()
        """Forms found valid."""
        self.plain_shapes: set[Shape] = set()
        """Shapes that no rule objects to for their own sake."""
        self.asked = [
            [rule for rule in rules if rule.is_asked(setting.options)]
            for rules in (INSTRUCTION_RULES, SHAPED_RULES)
        ]
        self.rules: dict[Opcode, tuple[list[Rule], list[Rule]]] = {}
        """The rules about each opcode, before and after the shape is checked."""


_KNOWN: dict[Setting, _Known] = {}
_VALID: _Form = ()
"""Stands for all forms that need no further check."""


def _looked_at(instruction: Instruction) -> Mapping[str, str]:
    """The attributes without metadata, which `InstructionRules._form` has looked at."""
    head, has_metadata, _ = (instruction.attribute_text or "").partition("metadata={")
    if has_metadata:
        head = head.removesuffix(", ")
    return without_references(instruction.opcode, split_attributes(head)) if head else {}


def _constant_form(constant: Instruction, head: str) -> _Form:
    shape = constant.shape
    if is_plain_scalar(constant.payload, shape):
        return (Opcode.CONSTANT, shape, head) if head else _VALID
    return Opcode.CONSTANT, shape, head, constant.payload


def _is_plain(leaf: Shape) -> bool:
    """Whether an array or token is no buffer, has no unbounded dimension, memory space or
    malformed layout."""
    layout, dimensions = leaf.layout, leaf.dimensions
    if leaf.is_buffer or layout.memory_space or (dimensions and min(dimensions) < 0):
        return False
    if layout is default_layout(len(dimensions)) or not leaf.is_array:
        return True
    return sorted(layout.minor_to_major) == list(range(len(dimensions)))
