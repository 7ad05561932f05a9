"""Expectations about instructions, their attributes and their control dependencies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from conformance_lib.attributes import ATTRIBUTE
from conformance_lib.expectations import compare
from conformance_lib.forms import (
    ANY,
    BOOL,
    INT,
    TEXT,
    optional_list,
    row,
)
from conformance_lib.scheduling.expectations import View, check
from conformance_lib.scheduling.references import REFERENCE
from conformance_lib.selector_syntax import OPCODE
from hloopt.analysis.async_operations import wrapped
from hloopt.ir.attributes.backend_config import backend_config, is_sync
from hloopt.ir.attributes.frontend_attributes import frontend_attribute


@check("instruction_count", INT)
def _instruction_count(view: View, expected: int) -> Iterator[str]:
    yield from compare("instructions", len(view.outcome.module.entry), expected)


@check("opcode_of", row(REFERENCE, OPCODE))
def _opcode_of(view: View, expected: list[Any]) -> Iterator[str]:
    yield from compare("opcode", view.find(expected[0]).opcode.value, expected[1])


@check("wrapped_opcode", row(REFERENCE, OPCODE))
def _wrapped_opcode(view: View, expected: list[Any]) -> Iterator[str]:
    yield from compare("wraps", wrapped(view.find(expected[0])).opcode.value, expected[1])


@check("operand_count", row(REFERENCE, INT))
def _operand_count(view: View, expected: list[Any]) -> Iterator[str]:
    yield from compare("operands", len(view.find(expected[0]).operands), expected[1])


@check("operand_names", row(REFERENCE, optional_list(TEXT)))
def _operand_names(view: View, expected: list[Any]) -> Iterator[str]:
    names = [operand.name for operand in view.find(expected[0]).operands]
    yield from compare("operands", names, expected[1])


@check("user_count", row(REFERENCE, INT))
def _user_count(view: View, expected: list[Any]) -> Iterator[str]:
    yield from compare("users", len(view.find(expected[0]).users), expected[1])


@check("attr_equals", row(REFERENCE, ATTRIBUTE, TEXT))
def _attr_equals(view: View, expected: list[Any]) -> Iterator[str]:
    text = view.find(expected[0]).attributes.get(expected[1], "").replace(" ", "")
    yield from compare(expected[1], text, expected[2].replace(" ", ""))


@check("frontend_attribute_equals", row(REFERENCE, TEXT, TEXT))
def _frontend_equals(view: View, expected: list[Any]) -> Iterator[str]:
    found = frontend_attribute(view.find(expected[0]), expected[1])
    yield from compare(expected[1], found, expected[2])


@check("frontend_attribute_present", row(REFERENCE, TEXT))
def _frontend_present(view: View, expected: list[Any]) -> Iterator[str]:
    if frontend_attribute(view.find(expected[0]), expected[1]) is None:
        yield "it is absent"


@check("frontend_attribute_absent", row(REFERENCE, TEXT))
def _frontend_absent(view: View, expected: list[Any]) -> Iterator[str]:
    found = frontend_attribute(view.find(expected[0]), expected[1])
    yield from compare(expected[1], found, None)


@check("is_sync", row(REFERENCE, BOOL))
def _is_sync(view: View, expected: list[Any]) -> Iterator[str]:
    yield from compare("is_sync", is_sync(view.find(expected[0])), expected[1])


@check("backend_config_equals", row(REFERENCE, TEXT, ANY))
def _backend_config_equals(view: View, expected: list[Any]) -> Iterator[str]:
    found: Any = backend_config(view.find(expected[0]))
    for key in expected[1].split("."):
        found = found.get(key) if isinstance(found, Mapping) else None
    yield from compare(expected[1], found, expected[2])


@check("has_control_dep", row(REFERENCE, REFERENCE))
def _has_control_dep(view: View, pair: list[Any]) -> Iterator[str]:
    first, second = map(view.find, pair)
    if first not in second.control_predecessors:
        yield "there is none"


@check("not_has_control_dep", row(REFERENCE, REFERENCE))
def _not_has_control_dep(view: View, pair: list[Any]) -> Iterator[str]:
    first, second = map(view.find, pair)
    if first in second.control_predecessors:
        yield "there is one"


@check("control_predecessors", row(REFERENCE, optional_list(REFERENCE)))
def _control_predecessors(view: View, expected: list[Any]) -> Iterator[str]:
    found = list(view.find(expected[0]).control_predecessors)
    if found != [view.find(one) for one in expected[1]]:
        yield f"they are {[i.name for i in found]}"


@check("control_successors", row(REFERENCE, optional_list(REFERENCE)))
def _control_successors(view: View, expected: list[Any]) -> Iterator[str]:
    found = list(view.find(expected[0]).control_successors)
    if found != [view.find(one) for one in expected[1]]:
        yield f"they are {[i.name for i in found]}"


@check("control_predecessor_at", row(REFERENCE, INT, REFERENCE))
def _control_predecessor_at(view: View, expected: list[Any]) -> Iterator[str]:
    found = list(view.find(expected[0]).control_predecessors)
    if len(found) <= expected[1] or found[expected[1]] is not view.find(expected[2]):
        yield f"they are {[i.name for i in found]}"


@check("control_predecessor_count", row(REFERENCE, REFERENCE, INT))
def _control_predecessor_count(view: View, expected: list[Any]) -> Iterator[str]:
    found = list(view.find(expected[0]).control_predecessors).count(view.find(expected[1]))
    yield from compare("number", found, expected[2])
