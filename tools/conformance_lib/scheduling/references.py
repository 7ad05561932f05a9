"""The instruction that a reference in a scheduling record means."""

from __future__ import annotations

from typing import Any

from conformance_lib.errors import RecordError
from conformance_lib.forms import INT, TEXT, Form, keys, row
from conformance_lib.selector_syntax import OPCODE
from hloopt.ir import Computation, Instruction, Module
from hloopt.ir.attributes.values import parse_metadata


def _reference_problem(reference: object) -> str | None:
    """An objection to the words of a reference."""
    if isinstance(reference, str):
        return None
    if not isinstance(reference, dict) or not reference:
        return f"no meaning is known for the reference {reference!r}"
    forms = {**_FORMS[name]} if (name := next(iter(reference))) in _FORMS else _ALL
    reason = keys(forms, what="part of a reference").problem(reference)
    return f"no meaning is known for the reference {reference}: {reason}" if reason else None


REFERENCE = Form(
    _reference_problem, frozenset(("any", "opcode", "op_name", "operand", "root", "at", "user"))
)
_FORMS: dict[str, dict[str, Form]] = {
    "any": {"any": TEXT},
    "opcode": {"opcode": OPCODE, "op_name": TEXT},
    "op_name": {"opcode": OPCODE, "op_name": TEXT},
    "operand": {"operand": row(REFERENCE, INT)},
    "root": {"root": TEXT},
    "at": {"at": INT},
    "user": {"user": row(REFERENCE, OPCODE, INT)},
}
_ALL = {name: form for forms in _FORMS.values() for name, form in forms.items()}


def find_computation(module: Module, name: str | None) -> Computation:
    """The computation an `in` names; ENTRY without one."""
    if name in (None, "entry") and name not in module.computations:
        return module.entry
    found = module.computations.get(str(name))
    if found is None:
        raise RecordError(f"computation %{name} is not in the module")
    return found


def find(module: Module, computation: Computation, reference: Any) -> Instruction:
    """The instruction meant by a name or a description. Raises RecordError."""
    match reference:
        case str():
            found = [i for i in computation.instructions if i.name == reference]
        case {"any": str(name), **rest} if not rest:
            found = [i for i in module.instructions() if i.name == name]
        case {"opcode": str(opcode), "op_name": str(op_name), **rest} if not rest:
            found = [
                i
                for i in computation.instructions
                if i.opcode.value == opcode and _op_name(i) == op_name
            ]
        case {"operand": [inner, int(number)], **rest} if not rest:
            found = find(module, computation, inner).operands[number : number + 1]
        case {"root": str(name), **rest} if not rest:
            found = [find_computation(module, name).root]
        case {"at": int(position), **rest} if not rest:
            order = list(computation.instructions)
            found = order[position:][:1] if -len(order) <= position else []
        case {"user": [inner, str(opcode), int(number)], **rest} if not rest:
            users = find(module, computation, inner).users
            in_order = [i for i in computation.instructions if i in users]
            found = [i for i in in_order if i.opcode.value == opcode][number : number + 1]
        case _:
            raise RecordError(f"no meaning is known for the reference {reference}")
    if not found:
        raise RecordError(f"{reference} is not in %{computation.name}")
    return found[0]


def _op_name(instruction: Instruction) -> str:
    text = instruction.attributes.get("metadata")
    return parse_metadata(text).op_name if text else ""
