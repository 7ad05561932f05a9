"""The general lane for instructions: everything XLA accepts inside a computation."""

from __future__ import annotations

import re
from collections.abc import Callable

from hloopt.diagnostics import HloError, HloSyntaxError, did_you_mean
from hloopt.ir.async_sugar import ASYNC_SUGAR
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import COMPUTATION_LISTS, REFERENCE_ATTRIBUTES, Instruction
from hloopt.ir.opcode import ASYNC, OPCODES, Opcode
from hloopt.ir.shape_inference import infer_shape
from hloopt.ir.shapes.shape import Shape, agree, format_shape, without_packing
from hloopt.patterns import pattern
from hloopt.text.async_rules import complete_async
from hloopt.text.async_sugar import read_async
from hloopt.text.cursor import IDENTIFIER, Cursor
from hloopt.text.fast_lane import link_called, link_control
from hloopt.text.implied_shapes import IMPLIED_SHAPE, implied_shape
from hloopt.text.reading import Reading
from hloopt.text.unwritten import unwritten_instruction, unwritten_parameter

_OPCODE = pattern(r"[a-z][a-z0-9\-]*")
_CALL_AHEAD = pattern(r"[a-z][a-z0-9\-]*\s*\(")
_ELEMENT = pattern(r"#(\d+)")
_DEFINITION = pattern(rf"%?{IDENTIFIER}\s+=")
_MAXIMUM_NESTING = 200  # instructions written inside each other


class InstructionParser:
    """Reads the instructions of one computation from the module's cursor.

    `read_inline` reads a computation that is written in place of a name.
    """

    def __init__(
        self,
        reading: Reading,
        computation: Computation,
        read_inline: Callable[[Reading], Computation],
    ) -> None:
        self.reading = reading
        self.cursor: Cursor = reading.cursor
        self._read_inline = read_inline
        self.computation = computation
        self.scope: dict[str, Instruction] = {}
        self.root: Instruction | None = None
        self.is_verbatim = True
        """Whether the text of each instruction can be printed as it stands."""
        self._nesting = 0
        self._control_edges: dict[Instruction, list[Instruction]] = {}
        self._invents_parameters = False

    @property
    def is_empty(self) -> bool:
        return not self.scope

    def parse(self) -> None:
        """One instruction: `[ROOT] name = [shape] opcode(operands) [, attribute]…`."""
        cursor = self.cursor
        root_start = cursor.position
        is_root = cursor.accept_word("ROOT")
        start = cursor.position
        name = cursor.name("an instruction name")
        if cursor.looking_at("=") and not cursor.text.startswith("%", start):
            raise cursor.error(
                f"expected white space between the name '{name}' and '='",
                help=f"write '{name} = …'",
            )
        if name in self.scope:
            raise cursor.error(f"instruction '%{name}' is defined twice", start, code="HLO103")
        if name.startswith("__") and not name.startswith("__xla_"):
            raise cursor.error(
                f"the name '{name}' is reserved: it begins with '__'", start, code="HLO112"
            )
        cursor.skip()
        cursor.expect("=")
        instruction = self._operation(name, start)
        if is_root:
            if self.root is not None:
                raise cursor.error("a second ROOT in the computation", root_start, code="HLO113")
            self.root = instruction
        self.reading.note_place(root_start, cursor.position, instruction)

    def parse_single(self) -> None:
        """A text that is one instruction; operands not defined become parameters."""
        cursor = self.cursor
        self._invents_parameters = True
        self.is_verbatim = False
        name = None
        start = cursor.position
        if _DEFINITION.match(cursor.text, start):
            name = cursor.name("an instruction name")
            cursor.skip()
            cursor.expect("=")
        self.root = self._operation(name or "_", start)

    def finish(self, *, is_pristine: bool) -> None:
        """Give the computation what was read."""
        computation = self.computation
        link_control(self._control_edges)
        computation.adopt(self.scope.values())
        computation.root = self.root or next(reversed(self.scope.values()))
        computation.is_pristine = is_pristine and self.is_verbatim
        if not self.is_verbatim:
            for instruction in self.scope.values():
                instruction.text = None
        computation.module.instruction_names.note(self.scope.keys(), " ".join(self.scope))

    # -- one operation ----------------------------------------------------------------------

    def _operation(self, name: str | None, start: int) -> Instruction:
        cursor = self.cursor
        cursor.skip()
        shape = cursor.shape() if cursor.shape_ahead() else None
        cursor.skip()
        opcode_start = cursor.position
        match = _OPCODE.match(cursor.text, opcode_start)
        if match is None:
            raise cursor.error(f"expected an opcode, found {cursor.found()}")
        cursor.position = match.end()
        text = match[0]
        if text not in OPCODES and text not in ASYNC_SUGAR:
            raise cursor.error(
                f"unknown opcode '{text}'",
                opcode_start,
                help=did_you_mean(text, OPCODES),
                code="HLO101",
            )
        cursor.skip()
        instruction = Instruction()
        instruction.parent = self.computation
        self._arguments(instruction, text, shape)
        instruction.name = name = name or self._free_name(f"{text}.anon")
        references = self._attributes(instruction)
        instruction.opcode = OPCODES.get(text) or ASYNC_SUGAR[text][0]
        if instruction.opcode in ASYNC:
            self._asynchronous(instruction, text, shape, references, opcode_start)
        else:
            try:
                link_called(instruction, references)
            except HloSyntaxError as error:
                raise cursor.error(error.message, opcode_start) from None
            if instruction.opcode in IMPLIED_SHAPE:
                shape = implied_shape(instruction, shape)
            elif shape and instruction.opcode is Opcode.CONSTANT:
                shape = without_packing(shape)  # XLA takes the shape of the literal
            instruction.shape = shape or self._infer(instruction, opcode_start)
        instruction.text = cursor.text[start : cursor.position]
        self.scope[name] = instruction
        return instruction

    def _asynchronous(
        self,
        instruction: Instruction,
        text: str,
        shape: Shape | None,
        references: dict[str, list[Computation]],
        opcode_start: int,
    ) -> None:
        """Complete an instruction of the opcode `text`, asynchronous or short for one that is."""
        if shape is None:
            raise self.cursor.error(f"cannot infer the shape of {text}: write it", opcode_start)
        instruction.shape = shape
        try:
            if text in ASYNC_SUGAR:
                read_async(self.reading, instruction, ASYNC_SUGAR[text][1], references)
            elif instruction.opcode is Opcode.ASYNC_START:
                link_called(instruction, references)
            complete_async(instruction, references.get("calls", ()))
        except HloSyntaxError as error:
            raise self.cursor.error(error.message, opcode_start, help=error.help) from None

    def _infer(self, instruction: Instruction, opcode_start: int) -> Shape:
        try:
            return infer_shape(
                instruction.opcode,
                [operand.shape for operand in instruction.operands],
                instruction.attributes,
                instruction.called,
            )
        except HloError as error:
            raise self.cursor.error(
                error.message, opcode_start, help=error.help, code=error.code
            ) from None

    def _arguments(self, instruction: Instruction, opcode: str, shape: Shape | None) -> None:
        cursor = self.cursor
        cursor.expect("(")
        instruction.operands = []
        if opcode == "parameter":
            instruction.payload = str(cursor.integer())
            cursor.skip()
            self._close()
        elif opcode == "constant":
            if shape is None:
                raise cursor.error("a constant needs a shape before 'constant'", code="HLO111")
            instruction.payload = cursor.literal()
            cursor.skip()
            self._close()
        else:
            self._skip_commas()
            while not cursor.looking_at(")"):
                instruction.operands.append(self._operand())
                cursor.skip()
                if not self._skip_commas():
                    break
            self._close()

    def _skip_commas(self) -> bool:
        """Move over commas, of which XLA takes any number between operands."""
        start = self.cursor.position
        while self.cursor.accept(","):
            pass
        return self.cursor.position > start

    def _close(self) -> None:
        cursor = self.cursor
        if not cursor.looking_at(")"):
            raise cursor.error(f"expected ',' or ')' after an operand, found {cursor.found()}")
        cursor.position += 1

    # -- operands ---------------------------------------------------------------------------

    def _operand(self) -> Instruction:
        cursor = self.cursor
        start = cursor.position
        shape = cursor.shape() if cursor.shape_ahead() else None
        cursor.skip()
        if _CALL_AHEAD.match(cursor.text, cursor.position):
            return self._nested(start)
        if cursor.looking_at(",") or cursor.looking_at(")"):
            if self._invents_parameters:
                return self._invent_parameter(f"_{len(self.scope)}", shape, start)
            if shape:
                self._skip_commas()  # XLA reads `shape, name` as one operand
        name_start = cursor.position
        name = cursor.name("an operand")
        operand = self.scope.get(name)
        if operand is None:
            if self._invents_parameters:
                return self._invent_parameter(name, shape, start)
            raise cursor.error(
                f"unknown operand '%{name}' in computation '%{self.computation.name}'",
                name_start,
                cursor.position,
                help=self._defined_later(name) or did_you_mean(name, self.scope, prefix="%"),
                code="HLO102",
            )
        while element := _ELEMENT.match(cursor.text, cursor.position):
            cursor.position = element.end()
            operand = self._element(operand, element[1])
        if shape is not None and not agree(shape, operand.shape):
            raise cursor.error(
                f"the operand is stated to be {format_shape(shape, layout=False)[:100]}, "
                f"%{name} is {format_shape(operand.shape, layout=False)[:100]}",
                start,
            )
        return operand

    def _defined_later(self, name: str) -> str | None:
        later = re.compile(rf"%?\b{re.escape(name)}\s+=[^\n}}]*").search(
            self.cursor.text, self.cursor.position
        )
        if later is None:
            return None
        line, _ = self.cursor.source.location(later.start())
        return f"'%{name}' is defined at line {line}: an operand stands before its users"

    def _nested(self, start: int) -> Instruction:
        cursor = self.cursor
        self._nesting += 1
        if self._nesting > _MAXIMUM_NESTING:
            raise cursor.error(
                f"instructions are nested more than {_MAXIMUM_NESTING} deep", start, code="HLO116"
            )
        cursor.position = start
        instruction = self._operation(None, start)
        self._nesting -= 1
        self.is_verbatim = False
        return instruction

    def _free_name(self, name: str) -> str:
        if name not in self.scope:
            return name
        number = 1
        while f"{name}.{number}" in self.scope:
            number += 1
        return f"{name}.{number}"

    def _element(self, operand: Instruction, index: str) -> Instruction:
        """`operand#index`: a get-tuple-element made at its first use and shared later."""
        name = f"{operand.name}_{index}"
        found = self.scope.get(name)
        if found is not None:
            return found
        element = unwritten_instruction(
            self.computation, name, Opcode.GET_TUPLE_ELEMENT, [operand], {"index": index}
        )
        element.shape = self._infer(element, self.cursor.position)
        self.scope[name] = element
        self.is_verbatim = False
        return element

    def _invent_parameter(self, name: str, shape: Shape | None, start: int) -> Instruction:
        if shape is None:
            raise self.cursor.error(
                f"operand '%{name}' of a single instruction needs a shape", start, code="HLO111"
            )
        number = sum(i.opcode is Opcode.PARAMETER for i in self.scope.values())
        parameter = unwritten_parameter(self.computation, name, number, shape)
        self.scope[name] = parameter
        return parameter

    # -- attributes -------------------------------------------------------------------------

    def _attributes(self, instruction: Instruction) -> dict[str, list[Computation]]:
        """Read the attributes of `instruction`; returns the computations they name, by attribute.

        A nested instruction has none: what follows it belongs to the one around it.
        """
        cursor = self.cursor
        attributes: dict[str, str] = {}
        references: dict[str, list[Computation]] = {}
        given: set[str] = set()
        end = cursor.position
        cursor.skip()
        while not self._nesting and cursor.accept(","):
            start = cursor.position
            key = cursor.attribute_name()
            if key in given:
                raise cursor.error(f"attribute '{key}' is given twice", start, code="HLO107")
            given.add(key)
            if key == "control-predecessors":
                self._control_edges[instruction] = self._control_predecessors()
            elif key in REFERENCE_ATTRIBUTES:
                references[key] = self._references(key)
            else:
                attributes[key] = cursor.value(key)
            end = cursor.position
            cursor.skip()
        cursor.position = end
        instruction.attributes = attributes
        return references

    def _control_predecessors(self) -> list[Instruction]:
        cursor = self.cursor
        cursor.expect("{")
        found = []
        while True:
            start = cursor.position
            name = cursor.name("a control predecessor")
            if name not in self.scope:
                raise cursor.error(
                    f"unknown control predecessor '%{name}'",
                    start,
                    cursor.position,
                    help=self._defined_later(name) or did_you_mean(name, self.scope, prefix="%"),
                    code="HLO102",
                )
            found.append(self.scope[name])
            cursor.skip()
            if not cursor.accept(","):
                break
        if not cursor.looking_at("}"):
            raise cursor.error("expected ',' or '}' after a control predecessor")
        cursor.position += 1
        return found

    def _references(self, key: str) -> list[Computation]:
        cursor = self.cursor
        if key not in COMPUTATION_LISTS:
            return [self._inline() if cursor.looking_at("{") else self._reference()]
        cursor.expect("{")
        found = []
        while not cursor.looking_at("}"):
            found.append(self._inline() if cursor.looking_at("{") else self._reference())
            cursor.skip()
            if not cursor.accept(","):
                break
        if not cursor.looking_at("}"):
            raise cursor.error(f"expected ',' or '}}' in the computations of '{key}'")
        cursor.position += 1
        return found

    def _reference(self) -> Computation:
        start = self.cursor.position
        name = self.cursor.name("a computation name")
        return self.reading.find_computation(name, start)

    def _inline(self) -> Computation:
        self.is_verbatim = False
        return self._read_inline(self.reading)
