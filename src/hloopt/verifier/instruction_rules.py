"""Rules about one instruction: its attributes, and that its shape follows from its operands."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hloopt.diagnostics import HloError, HloVerifyError
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import (
    ASYNC,
    CONTROL_FLOW_CALLERS,
    ELEMENTWISE_BINARY,
    ELEMENTWISE_UNARY,
    EMBEDDED_CALLERS,
    Opcode,
)
from hloopt.ir.operand_rules import check_operands
from hloopt.ir.shape import Shape
from hloopt.ir.shape_inference import check_shape
from hloopt.patterns import pattern
from hloopt.verifier.options import Setting
from hloopt.verifier.rules import INSTRUCTION_RULES, SHAPED_RULES, Rule, check, for_opcode

_METADATA = pattern(
    r'(?:op_type="[^"\\]*" ?)?(?:op_name="[^"\\]*" ?)?(?:source_file="[^"\\]*" ?)?'
    r"(?:source_line=\d{1,9} ?)?(?:source_end_line=\d{1,9} ?)?(?:source_column=\d{1,9} ?)?"
    r"(?:source_end_column=\d{1,9} ?)?(?:stack_frame_id=\d{1,9} ?)?\}"
)
"""Metadata as XLA prints it nearly always, up to the end of the attributes."""
_CHANNEL = pattern(r"\bchannel_id=\d{1,18}(?!\d)")

_NEVER_ABOUT_RULES = frozenset(("metadata", "backend_config", "statistics"))
_MUST_CALL = (CONTROL_FLOW_CALLERS | EMBEDDED_CALLERS) - {
    *(Opcode.ASYNC_UPDATE, Opcode.ASYNC_DONE, Opcode.CUSTOM_CALL, Opcode.TOPK)
}
_KEEPS_SHAPE = (ELEMENTWISE_BINARY | ELEMENTWISE_UNARY) - {
    *(Opcode.COMPARE, Opcode.COMPLEX, Opcode.REAL, Opcode.IMAG, Opcode.IS_FINITE),
    *(Opcode.BITCAST_CONVERT, Opcode.STOCHASTIC_CONVERT, Opcode.REDUCE_PRECISION),
}

_KEEPS_PRECISION = frozenset(
    (
        *(Opcode.BROADCAST, Opcode.RESHAPE, Opcode.DYNAMIC_UPDATE_SLICE, Opcode.TUPLE, Opcode.COPY),
        *(Opcode.GET_TUPLE_ELEMENT, Opcode.CALL, Opcode.WHILE, Opcode.CONDITIONAL),
    )
)
"""Opcodes that pass values on as they are, whatever precision others may have."""

_Form = tuple[object, ...]


class InstructionRules:
    """Checks instructions, each distinct form once in the life of the process.

    The form of an instruction is its opcode, its shape, those of its operands, its attributes but
    for metadata, and the signatures of what it calls: hundreds of equal layers cost as much as
    one. One object serves one run over a module.
    """

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self._known = _KNOWN.setdefault(setting, _Known())
        self._plain_shapes = self._known.plain_shapes
        self._signatures: dict[Computation, _Form] = {}
        self._has_plain_reshapes = not setting.options.verify_reshape_is_bitcast

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
        if has_metadata and (_METADATA.fullmatch(metadata) is None or (head and head[-2:] != ", ")):
            return None
        opcode = instruction.opcode
        if opcode in ASYNC:
            return None  # more than shapes decides
        shape = instruction.shape
        operands = instruction.operands
        if shape not in self._plain_shapes and not self._becomes_plain(shape):
            pass  # what is right for most shapes may be wrong for this one
        elif opcode in _KEEPS_SHAPE:
            for operand in operands:
                if operand.shape is not shape:
                    break
            else:
                if head:
                    return opcode, shape, head, len(operands)
                return opcode, shape.element_type, len(operands)
        elif opcode is Opcode.GET_TUPLE_ELEMENT:
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
        elif opcode is Opcode.PARAMETER:
            if not head:
                return _VALID
        elif opcode is Opcode.CONSTANT:
            return _constant_form(instruction, head)
        elif (
            opcode is Opcode.RESHAPE
            and not head
            and self._has_plain_reshapes
            and _is_plain_reshape(shape, operands)
        ):
            return _VALID
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
        is_plain = _is_plain(shape)
        if is_plain:
            self._plain_shapes.add(shape)
        return is_plain

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
        attributes = instruction.attributes
        if is_new_form and "metadata={" in (instruction.attribute_text or ""):  # looked at
            attributes = {k: v for k, v in attributes.items() if k != "metadata"}
        called = instruction.called
        references = [name for name, _ in instruction.called_attributes()] if called else []
        if instruction.control_predecessors:
            references.append("control-predecessors")
        if attributes or references or opcode not in _KEEPS_SHAPE:  # these need no attribute
            from hloopt.ir.opcode_attributes import check_attributes

            check_attributes(opcode, attributes, references)
        check_operands(instruction)
        if opcode is Opcode.CONSTANT:
            from hloopt.ir.literal import check_literal

            check_literal(instruction.payload, instruction.shape)
        form = None
        if not is_new_form and opcode not in ASYNC:
            form = self._form_of_attributes(instruction)
            if form in self._known.forms:
                return
        self._check_rules(instruction)
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

    def _check_rules(self, instruction: Instruction) -> None:
        opcode = instruction.opcode
        if opcode in _MUST_CALL and not instruction.called:
            raise HloVerifyError(f"{opcode} calls no computation")
        rules = self._known.rules.get(opcode)
        if rules is None:
            options = self.setting.options
            rules = self._known.rules[opcode] = (
                for_opcode(INSTRUCTION_RULES, opcode, options),
                for_opcode(SHAPED_RULES, opcode, options),
            )
        before, after = rules
        check(before, instruction, self.setting)
        if opcode is not Opcode.PARAMETER:
            check_shape(
                opcode,
                instruction.shape,
                [operand.shape for operand in instruction.operands],
                instruction.attributes,
                instruction.called,
                any_precision=self.setting.options.allow_mixed_precision
                and opcode not in _KEEPS_PRECISION,
            )
        check(after, instruction, self.setting)


class _Known:
    """What was found in one setting."""

    def __init__(self) -> None:
        self.forms: set[_Form] = set()
        """Forms found valid."""
        self.plain_shapes: set[Shape] = set()
        """Shapes that no rule objects to for their own sake."""
        self.rules: dict[Opcode, tuple[list[Rule], list[Rule]]] = {}
        """The rules about each opcode, before and after the shape is checked."""


_KNOWN: dict[Setting, _Known] = {}
_VALID: _Form = ()
"""Stands for all forms that need no further check."""
_SMALL_NUMBERS = {
    **dict.fromkeys(("f64", "f32", "bf16", "f16"), re.compile(r"-?\d{1,4}(?:\.\d{1,9})?", re.A)),
    **dict.fromkeys(("s64", "s32", "s16"), re.compile(r"-?\d{1,4}", re.A)),
}
"""Scalars that are in range at a look, by element type."""


def _constant_form(constant: Instruction, head: str) -> _Form:
    shape = constant.shape
    numbers = None if shape.dimensions else _SMALL_NUMBERS.get(shape.type_name)
    if numbers is not None and numbers.fullmatch(constant.payload):
        return (Opcode.CONSTANT, shape, head) if head else _VALID
    return Opcode.CONSTANT, shape, head, constant.payload


def _is_plain_reshape(shape: Shape, operands: list[Instruction]) -> bool:
    operand = operands[0].shape if len(operands) == 1 else None
    return (
        operand is not None
        and shape.is_array
        and operand.element_type is shape.element_type
        and operand.element_count() == shape.element_count()
        and not (shape.is_dynamic or operand.is_dynamic or shape.is_buffer or operand.is_buffer)
    )


def _is_plain(shape: Shape) -> bool:
    """Whether `shape` has no buffers, unbounded dimensions, memory spaces or malformed layouts."""
    return not any(
        leaf.is_buffer
        or leaf.layout.memory_space
        or min(leaf.dimensions, default=0) < 0
        or (leaf.is_array and sorted(leaf.layout.minor_to_major) != list(range(leaf.rank)))
        for leaf in shape.leaves()
    )
