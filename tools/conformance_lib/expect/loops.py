"""Expectations that the tables of passes on loops have, about graphs and results."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from conformance_lib.errors import RecordError
from conformance_lib.expectations import More, compare, demand_some, expectation
from conformance_lib.forms import (
    ANY,
    INT,
    NUMBER,
    TEXT,
    either,
    keys,
    list_of,
    mapping,
    only,
    optional_list,
    row,
)
from conformance_lib.patterns import PATTERN, mismatch, show
from conformance_lib.scene import Scene
from conformance_lib.selector_syntax import NAME, OPCODE, SELECTOR
from conformance_lib.selectors import has_opcode, select, select_one
from hloopt.analysis.reachability import Reachability
from hloopt.equivalence import Reference, RunSettings
from hloopt.ir import Instruction
from hloopt.ir.shapes.shape_parser import scan_shape
from hloopt.passes.collectives.collective_pipeliner.options import is_marked
from hloopt.text import parse_module

_PREDICATES = {"is_pipelineable_op": is_marked}
_PREDICATE = keys(
    {
        "name": only(*_PREDICATES),
        "opcodes": list_of(OPCODE),
        "true": optional_list(NAME),
        "false": optional_list(NAME),
    }
)
_CONSTRAINT = keys({"dimensions": optional_list(INT), "minor_to_major": optional_list(INT)})
_RUNS = keys(
    {"reference": either(only("input"), keys({"options": ANY}), keys({"hlo": TEXT}))},
    {"abs_error": NUMBER, "rel_error": NUMBER},
)


@expectation("user_opcodes", mapping(SELECTOR, optional_list(OPCODE)))
def user_opcodes(scene: Scene, expected: dict[str, list[str]], more: More) -> Iterator[str]:
    for selector, wanted in expected.items():
        for found in select(scene, selector):
            opcodes = sorted(user.opcode.value for user in found.users)
            yield from compare(f"users of {selector}", opcodes, sorted(wanted))


@expectation("some_user_of_user", mapping(SELECTOR, OPCODE))
def some_user_of_user(scene: Scene, expected: dict[str, str], more: More) -> Iterator[str]:
    for selector, opcode in expected.items():
        for found in select(scene, selector):
            if not any(has_opcode(i, opcode) for user in found.users for i in user.users):
                yield f"no user of a user of {selector} is {opcode}"


@expectation(
    "operand_chain", keys({"from": SELECTOR, "opcodes": list_of(OPCODE), "last_pattern": PATTERN})
)
def operand_chain(scene: Scene, expected: dict[str, Any], more: More) -> Iterator[str]:
    current = select_one(scene, expected["from"])
    for opcode in expected["opcodes"]:
        nearest = _nearest(current, opcode)
        if nearest is None:
            yield f"{show(current)} is not computed from any {opcode}"
            return
        current = nearest
    reason = mismatch(scene, expected["last_pattern"], current)
    if reason is not None:
        yield f"{show(current)} does not match {expected['last_pattern']}: {reason}"


def _nearest(instruction: Instruction, opcode: str) -> Instruction | None:
    """The nearest instruction with an opcode among those that `instruction` is computed from."""
    seen = dict.fromkeys(instruction.operands)
    waiting = list(seen)
    for value in waiting:
        if has_opcode(value, opcode):
            return value
        new = [operand for operand in value.operands if operand not in seen]
        seen.update(dict.fromkeys(new))
        waiting += new
    return None


@expectation("not_reachable_in_each_nonentry_computation", row(OPCODE, OPCODE))
def not_reachable(scene: Scene, expected: list[str], more: More) -> Iterator[str]:
    pairs = 0
    for computation in scene.module.computations.values():
        if computation.is_entry:
            continue
        sides = [[i for i in computation.instructions if has_opcode(i, o)] for o in expected]
        paths = Reachability(computation)
        for a in sides[0]:
            for b in sides[1]:
                pairs += 1
                if paths.connected(a, b):
                    yield f"{show(a)} and {show(b)} depend on each other"
    demand_some(f"{expected[0]} beside a {expected[1]}", range(pairs))


@expectation("dimensions", mapping(SELECTOR, optional_list(either(INT, only("*", "...")))))
def dimensions(scene: Scene, expected: dict[str, list[Any]], more: More) -> Iterator[str]:
    """Sizes, where "*" is any, and "..." at the end any others."""
    for selector, wanted in expected.items():
        for found in select(scene, selector):
            sizes = list(found.shape.dimensions)
            if wanted[-1:] == ["..."]:
                wanted = wanted[:-1]
                sizes = sizes[: len(wanted)]
            pairs = zip(sizes, wanted, strict=False)
            if len(sizes) != len(wanted) or any(w not in ("*", s) for s, w in pairs):
                yield f"{show(found)} has the sizes {sizes}, expected {wanted}"


@expectation(
    "custom_call_operand_layout_constraints", mapping(SELECTOR, optional_list(_CONSTRAINT))
)
def layout_constraints(
    scene: Scene, expected: dict[str, list[dict[str, list[int]]]], more: More
) -> Iterator[str]:
    for selector, wanted in expected.items():
        for found in select(scene, selector):
            text = found.attributes.get("operand_layout_constraints", "{}")
            shapes = scan_shape(f"({text[1:-1]})", 0)[0].elements
            given = [
                {
                    "dimensions": list(shape.dimensions),
                    "minor_to_major": list(shape.layout.minor_to_major),
                }
                for shape in shapes
            ]
            yield from compare(f"layout constraints of {selector}", given, wanted)


@expectation("predicate", _PREDICATE)
def predicate(scene: Scene, expected: dict[str, Any], more: More) -> Iterator[str]:
    holds = _PREDICATES[expected["name"]]
    demand_some("instruction in the predicate", expected["true"] + expected["false"])
    for answer in (True, False):
        for name in expected["true" if answer else "false"]:
            found = scene.find(name)
            is_so = found.opcode.value in expected["opcodes"] and holds(found)
            yield from compare(f"{expected['name']} of %{name}", is_so, answer)


@expectation("runs_equal", _RUNS)
def runs_equal(scene: Scene, expected: dict[str, Any], more: More) -> Iterator[str]:
    """Ours is compared more strictly than with the errors that tables allow."""
    if scene.reference is None:
        raise RecordError("there is nothing to compare the result with")
    reference = expected["reference"]
    if isinstance(reference, dict) and "hlo" in reference:
        module = parse_module(reference["hlo"])
    else:
        module = scene.reference(None if reference == "input" else reference["options"])
    found = Reference(module, RunSettings()).compare(scene.module)
    if found is not None:
        yield f"it computes something else: {found.reason}"
