"""Selectors and names of computations."""

from __future__ import annotations

import pytest
from tests.tools.conformance.harness import ASYNC, LOOP, scene_of

from conformance_lib.errors import RecordError
from conformance_lib.selectors import find_computation, select, select_one
from conformance_lib.source_names import SourceNames
from hloopt.ir import Instruction, Opcode
from hloopt.text import parse_module


@pytest.mark.parametrize(
    ("selector", "computation", "opcode"),
    [
        ("root", "main", "get-tuple-element"),
        ("root(body)", "body", "tuple"),
        ("%t", "main", "tuple"),
        ("%x", "main", "get-tuple-element"),
        ("%body::x", "body", "get-tuple-element"),
        ("%next.body", "body", "add"),
        ("%next.body.op(1)", "body", "constant"),
        ("%loop.body", "body", "tuple"),
        ("%loop.cond.op(0)", "condition", "get-tuple-element"),
        ("%loop.called(1)", "condition", "compare"),
        ("find(constant)", "condition", "constant"),
        ("find(constant@entry)", "main", "constant"),
        ("find(add@body(find(while@entry)))", "body", "add"),
        ("%a.user(0).user(-1)", "main", "while"),
        ("root.op(-1)", "main", "while"),
        ("%root.op(0)", "main", "while"),
    ],
)
def test_selector_leads_to_an_instruction(selector: str, computation: str, opcode: str) -> None:
    found = select_one(scene_of(LOOP), selector)
    assert (found.parent.name, found.opcode.value) == (computation, opcode)


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        ("%nobody", "%nobody is not in the module"),
        ("%p", "'p' is defined several times"),
        ("root.op(1)", r"\.op\(1\) leads nowhere"),
        ("root.body", r"\.body leads nowhere"),
        ("find(tanh)", "there is no tanh in the module"),
        ("find(no-such)", "there is no opcode 'no-such'"),
        ("root(elsewhere)", "computation %elsewhere is not in the module"),
        ("somewhere", "'somewhere' is not the base of a selector"),
        ("root.operand(0)", "is not the base of a selector"),
    ],
)
def test_selector_that_leads_nowhere_is_an_error(selector: str, message: str) -> None:
    with pytest.raises(RecordError, match=message):
        select_one(scene_of(LOOP), selector)


def test_all_selects_each_instruction_with_the_opcode() -> None:
    scene = scene_of(LOOP)
    assert len(select(scene, "all(get-tuple-element)")) == 4
    assert len(select(scene, "all(get-tuple-element@called(%loop,0))")) == 2


def test_async_operations_are_found_by_their_sugar() -> None:
    scene = scene_of(ASYNC)
    assert select_one(scene, "find(add-start)").name == "start.0"
    assert select_one(scene, "%done.0.async").opcode is Opcode.ADD


def test_replaced_instruction_is_found_by_its_name() -> None:
    scene = scene_of("ENTRY e { a = f32[] parameter(0)  ROOT n = f32[] negate(a) }")
    old = scene.module.entry.root
    new = scene.module.entry.add(Opcode.ABS, old.shape, old.operands)
    old.replace_all_uses_with(new)
    old.parent.remove(old)
    with pytest.raises(RecordError, match="%n is not in the module any more"):
        scene.find("n")
    new.name = "n"
    assert scene.find("n") is new


def test_computations_are_found_by_name_and_by_caller() -> None:
    scene = scene_of(LOOP)
    names = ["entry", "body", "body(%loop)", "cond(%loop)", "called(%loop,1)"]
    found = [find_computation(scene, name).name for name in names]
    assert found == ["main", "body", "body", "condition", "condition"]


def test_names_of_instructions_follow_the_text() -> None:
    module = parse_module(LOOP)
    names = SourceNames(module)
    found = names.find("x")
    assert found is not None
    assert isinstance(found.instruction, Instruction)
    assert found.instruction is module.entry.root
    assert names.find("constant") is None
