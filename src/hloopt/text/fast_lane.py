"""The fast lane: computations in the form XLA prints, read by one regular expression.

This lane accepts a subset of the grammar of `text.parser` and gives the same result there (a
property test holds the two equal). Whatever it does not recognize it leaves to that parser, by
returning None: it never reports an error itself.

Three things make it fast, and each is why the code below looks as it does:
- `findall` splits a whole computation into rows in C, and the attributes stay text;
- operands are looked up right after `split`, so the lookup is also the check of their syntax;
- attributes, users and the texts of instructions are filled later, when someone asks
  (`ir.instruction`).
"""

from __future__ import annotations

import re

from hloopt.diagnostics import HloSyntaxError
from hloopt.ir.attributes.text import split_attributes
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import (
    COMPUTATION_LISTS,
    NO_INSTRUCTIONS,
    REFERENCE_ATTRIBUTES,
    Instruction,
)
from hloopt.ir.module import Module
from hloopt.ir.opcode import ASYNC, CONTROL_FLOW_CALLERS, EMBEDDED_CALLERS, OPCODES, Opcode
from hloopt.ir.shapes.element_type import ELEMENT_TYPES
from hloopt.ir.shapes.shape import format_shape, without_packing
from hloopt.ir.shapes.shape_parser import SHAPES, split_list
from hloopt.patterns import pattern
from hloopt.text.cursor import IDENTIFIER, RESERVED_NAMES
from hloopt.text.implied_shapes import IMPLIED_SHAPE, implied_shape

_NESTED = r"[^()\n]*(?:\([^()\n]*(?:\([^()\n]*(?:\([^()\n]*\)[^()\n]*)*\)[^()\n]*)*\)[^()\n]*)*"

_HEAD = pattern(rf"(ENTRY )?%?({IDENTIFIER})( \([^\n]*\) -> [^\n]*)? \{{\n")
_END = pattern(r'(?:, execution_thread="([^"\n]*)")?(?= //|\n(?!\s*,)|\n?$)')
"""Behind the closing brace: until 2024 XLA's printer added the computation's name in a comment."""
_ROW = pattern(
    r"^  (ROOT )?%?([A-Za-z_][^ \n]*) = ([^ (\n]+|\(.*?\)) ([^ (\n]+)"
    rf"\(%?([^()\n]*|{_NESTED})\)(?:, (.+))?\n",
    re.M,
)
"""ROOT, name, shape, opcode, what is in parentheses, attributes. Names, shapes and opcodes are
matched loosely: they are checked where they are looked up."""
_CHUNK = 1 << 15
"""Characters that are matched at a time: the rows of a chunk fit into the processor's cache."""
_NAME_CHARACTERS = bytes(
    character for character in range(128) if chr(character).isalnum() or chr(character) in " _.-"
)

_ONLY_REFERENCE = dict.fromkeys(
    EMBEDDED_CALLERS - {Opcode.SELECT_AND_SCATTER, Opcode.CUSTOM_CALL} | {Opcode.CALL}, "to_apply="
) | {Opcode.FUSION: "calls="}
"""The attribute that names the one computation an instruction calls, for most opcodes."""

_FORBIDDEN = RESERVED_NAMES | ELEMENT_TYPES.keys()

_PLAIN, _PAYLOAD, _CALLS, _IMPLIED = range(4)


def _kind(opcode: Opcode) -> int:
    if opcode in (Opcode.PARAMETER, Opcode.CONSTANT):
        return _PAYLOAD
    if opcode in IMPLIED_SHAPE:
        return _IMPLIED
    if opcode in CONTROL_FLOW_CALLERS or opcode in EMBEDDED_CALLERS:
        return _CALLS
    return _PLAIN


_KINDS: dict[str, tuple[Opcode, int]] = {
    name: (opcode, _kind(opcode)) for name, opcode in OPCODES.items()
}
"""Opcodes that this lane reads: opcode and kind by name."""


def _extent(
    module: Module, text: str, start: int
) -> tuple[str | None, str, str | None, str, str, int] | None:
    """The parts of the computation that begins at `start`, None where this lane does not read it.

    They are its `ENTRY`, name, signature, the lines of its body, its thread, and where it ends.
    """
    head = _HEAD.match(text, start)
    if head is None:
        return None
    is_entry, name, signature = head.groups()
    if name in module.computations or name in _FORBIDDEN or (is_entry and module.entry):
        return None
    body_start = head.end()
    brace = text.find("\n}", body_start - 1) + 1
    suffix = _END.match(text, brace + 1)
    if suffix is None:
        return None
    thread = "main" if suffix[1] is None else suffix[1]
    return is_entry, name, signature, text[body_start:brace], thread, suffix.end()


def read_computation(module: Module, text: str, start: int) -> tuple[Computation, int] | None:
    """The computation that begins at `start`, added to `module`, and where it ends.

    None where this lane does not recognize it (or where it is wrong); `module` is then as it was.
    """
    extent = _extent(module, text, start)
    if extent is None:
        return None
    is_entry, name, signature, body, thread, end = extent
    count = body.count("\n")
    computation = Computation(module, name)
    scope: dict[str, Instruction] = {}
    callers: list[Instruction] = []
    roots: list[Instruction] = []
    separator = ", %" if "%" in body[: body.find(" = ")] else ", "
    try:
        position = 0
        while position < len(body):
            chunk_end = body.find("\n", position + _CHUNK) + 1 or len(body)
            rows = _ROW.findall(body, position, chunk_end)
            _read_rows(rows, separator, computation, scope, callers, roots)
            position = chunk_end
        names = " ".join(scope)
        if (
            not scope
            or len(scope) != count
            or len(roots) > 1
            or names.encode().translate(None, _NAME_CHARACTERS)
            or " __" in names
            or names.startswith("__")
            or not scope.keys().isdisjoint(_FORBIDDEN)
        ):
            return None
        root = roots[0] if roots else scope[next(reversed(scope))]
        if signature and not _fits(signature, root):
            return None
        if body.count(" =") != count:
            _check_attributes(scope)
        if "control-predecessors=" in body:
            _link_control(scope)
        if "parameter(%" in body or "constant(%" in body:
            return None
        _link_called(callers, module)
    except (KeyError, HloSyntaxError):
        for caller in callers:
            for called in caller.called:
                called.remove_caller(caller)
        return None
    computation.root = root
    computation.adopt(scope.values())
    computation.signature = signature
    computation.source_range = (start, end)
    computation.is_pristine = True
    computation.execution_thread = thread
    module.computations[name] = computation
    if is_entry:
        module.entry = computation
    module.instruction_names.note(scope.keys(), names)
    return computation, end


def _check_attributes(scope: dict[str, Instruction]) -> None:
    """Raise HloSyntaxError where a second instruction follows in the same line."""
    for instruction in scope.values():
        text = instruction.attribute_text
        if text and " =" in text:
            split_attributes(text)


def _fits(signature: str, root: Instruction) -> bool:
    """Whether a signature gives the root's shape, as XLA prints it. Its parameters are free."""
    return signature.endswith(f" -> {format_shape(root.shape, layout=False)}")


def _read_rows(
    rows: list[tuple[str, ...]],
    separator: str,
    computation: Computation,
    scope: dict[str, Instruction],
    callers: list[Instruction],
    roots: list[Instruction],
) -> None:
    """Add an instruction for each row to `scope`; to `callers` if it may call, to `roots` if ROOT.

    `separator` is what stands between names of operands in most rows.
    Raises KeyError for an unknown opcode, an undefined operand or an operand in another form, and
    for a shape that the parser replaces.
    """
    kinds = _KINDS
    shapes = SHAPES
    find = scope.__getitem__
    for is_root, name, shape, opcode, operands, attributes in rows:
        instruction = Instruction()
        instruction.parent = computation
        instruction.name = name
        instruction.shape = shapes[shape]
        instruction.called = ()
        instruction.control_predecessors = NO_INSTRUCTIONS
        instruction.control_successors = NO_INSTRUCTIONS
        instruction.attribute_text = attributes
        instruction.opcode, kind = kinds[opcode]
        if kind == _PAYLOAD:
            if opcode == "parameter" and (
                not (operands.isdecimal() and operands.isascii())
                or (operands[0] == "0" and operands != "0")  # XLA prints no leading zeros
            ):
                raise KeyError(operands)
            if opcode == "constant" and "E(" in shape:
                instruction.shape = without_packing(instruction.shape)
            instruction.operands = []
            instruction.payload = operands
        elif not operands:
            instruction.operands = []
        else:
            try:
                instruction.operands = list(map(find, operands.split(separator)))
            except KeyError:
                instruction.operands = _find_operands(operands, scope)
        if kind == _CALLS:
            callers.append(instruction)
        elif kind == _IMPLIED and (
            implied_shape(instruction, instruction.shape) is not instruction.shape
            or "calls=" in attributes
        ):
            raise KeyError(shape)
        if is_root:
            roots.append(instruction)
        scope[name] = instruction


def _find_operands(operands: str, scope: dict[str, Instruction]) -> list[Instruction]:
    """Operands without sigils, with index comments, or with shapes that repeat what is known."""
    if "[" not in operands:
        names = split_list(operands)
        return [scope[name.removeprefix("%")] for name in names]
    shape, *rest = operands.split(" %")
    found: list[Instruction] = []
    for piece in rest:
        name, _, shape_of_next = piece.partition(", ")
        operand = scope[name]
        if operand.shape is not SHAPES[shape]:
            raise KeyError(shape)
        found.append(operand)
        shape = shape_of_next
        if shape.startswith("/*index="):
            shape = shape.partition("*/")[2]
    if shape:
        raise KeyError(shape)
    return found


def _link_control(scope: dict[str, Instruction]) -> None:
    above: dict[str, Instruction] = {}  # a control predecessor stands above, as operands do
    edges: dict[Instruction, list[Instruction]] = {}
    for own_name, instruction in scope.items():
        text = instruction.attribute_text or ""
        if "control-predecessors=" in text:
            names = split_attributes(text).get("control-predecessors")
            edges[instruction] = [
                above[name.strip().removeprefix("%")]
                for name in (names.strip("{}").split(",") if names else ())
            ]
        above[own_name] = instruction
    link_control(edges)


def link_control(predecessors: dict[Instruction, list[Instruction]]) -> None:
    """Set the control edges that stand in a computation's text. O(edges)."""
    successors: dict[Instruction, list[Instruction]] = {}
    for successor, found in predecessors.items():
        successor.control_predecessors = dict.fromkeys(found)
        for predecessor in successor.control_predecessors:
            successors.setdefault(predecessor, []).append(successor)
    for predecessor, after in successors.items():
        predecessor.control_successors = dict.fromkeys(after)


def _link_called(callers: list[Instruction], module: Module) -> None:
    find = module.computations.get
    for caller in callers:
        text = caller.attribute_text or ""
        if caller.opcode in ASYNC:
            _link_async(caller, split_attributes(text), module)
            continue
        key = _ONLY_REFERENCE.get(caller.opcode)
        if key:
            before, _, after = text.partition(key)
            called = find(after.partition(",")[0].removeprefix("%"))
            if called and '"' not in before and (not before or before.endswith(", ")):
                caller.called = (called,)
                called.add_caller(caller)
                continue
        references: dict[str, list[Computation]] = {}
        for name, value in split_attributes(text).items():
            if name in REFERENCE_ATTRIBUTES and name != "control-predecessors":
                is_list = value[0] == "{"
                if is_list != (name in COMPUTATION_LISTS):
                    raise KeyError(name)
                names = value[1:-1].split(",") if is_list else [value]
                references[name] = [module.computations[n.strip().removeprefix("%")] for n in names]
        if references or caller.opcode is not Opcode.CUSTOM_CALL:
            link_called(caller, references)


def _link_async(caller: Instruction, attributes: dict[str, str], module: Module) -> None:
    from hloopt.text.async_rules import complete_async

    calls = []
    if "calls" in attributes:
        calls.append(module.computations[attributes["calls"].removeprefix("%")])
    if caller.opcode is Opcode.ASYNC_START:  # what the others call is what their start calls
        link_called(caller, {"calls": calls})
    complete_async(caller, calls)


def _wanted_references(caller: Instruction) -> dict[str, None]:
    """The attributes that name computations, for opcodes with more than one of them.

    In the order of `Instruction.called`.
    """
    match caller.opcode:
        case Opcode.WHILE:
            return dict.fromkeys(("body", "condition"))
        case Opcode.SELECT_AND_SCATTER:
            return dict.fromkeys(("select", "scatter"))
        case Opcode.CONDITIONAL if caller.operands:
            if caller.operands[0].shape.type_name == "pred":
                return dict.fromkeys(("true_computation", "false_computation"))
            return dict.fromkeys(("branch_computations",))
        case _:
            return {}


def link_called(caller: Instruction, references: dict[str, list[Computation]]) -> None:
    """Set the called computations that stand in the text, by attribute.

    Raises HloSyntaxError where an attribute is missing or not the one of the opcode's kind.
    """
    wanted = _wanted_references(caller)
    if wanted and references.keys() != wanted.keys():
        names = " and ".join(f"'{name}'" for name in wanted)
        raise HloSyntaxError(f"{caller.opcode} needs the attribute {names} here")
    caller.called = tuple(c for key in wanted or references for c in references[key])
    for computation in caller.called:
        computation.add_caller(caller)
