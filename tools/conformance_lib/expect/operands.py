"""Expectations about what computes a value and who reads it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from conformance_lib.expect.backend_config import as_json, config_of, field_at
from conformance_lib.expectations import (
    More,
    compare,
    compare_number,
    demand_some,
    expectation,
    within,
)
from conformance_lib.forms import ANY, BOOL, BOUND, INT, TEXT, keys, list_of, mapping, row
from conformance_lib.patterns import show
from conformance_lib.scene import Scene
from conformance_lib.selector_syntax import COMPUTATION, OPCODE, SELECTOR
from conformance_lib.selectors import find_scope, has_opcode, select, select_one
from hloopt.ir import Instruction, Opcode
from hloopt.passes.expanders.scatter_simplifier import is_simplified_scatter
from hloopt.passes.precision.block_scaling.cudnn_fusions import cudnn_supports_scaled_dot
from hloopt.passes.simplification.algsimp.options import AlgsimpOptions
from hloopt.passes.simplification.algsimp.terms import is_non_negative


def _with_opcode(scene: Scene, expected: dict[str, Any]) -> list[Instruction]:
    """The instructions of `in` with `opcode`, at least one."""
    scope = find_scope(scene, expected.get("in"))
    opcode = expected["opcode"]
    found = [i for c in scope for i in c.instructions if has_opcode(i, opcode)]
    demand_some(opcode, found)
    return found


@expectation("operand_opcode_count", mapping(SELECTOR, mapping(OPCODE, BOUND)))
def operand_opcode_count(scene: Scene, expected: dict[str, Any], more: More) -> Iterator[str]:
    for selector, counts in expected.items():
        for instruction in select(scene, selector):
            for opcode, bound in counts.items():
                found = sum(has_opcode(operand, opcode) for operand in instruction.operands)
                yield from compare_number(f"operands {opcode} of {selector}", found, bound)


@expectation("supported", mapping(SELECTOR, BOOL))
def supported(scene: Scene, expected: dict[str, bool], more: More) -> Iterator[str]:
    """Whether cuDNN can compute scaled-dots, which their operands decide."""
    for selector, wanted in expected.items():
        for dot in select(scene, selector):
            yield from compare(f"cuDNN has {selector}", cudnn_supports_scaled_dot(dot), wanted)


@expectation("non_negative", mapping(SELECTOR, BOOL))
def non_negative(scene: Scene, expected: dict[str, bool], more: More) -> Iterator[str]:
    """Whether the algebraic simplifier knows that values are not negative."""
    options = AlgsimpOptions(**{k: v for k, v in scene.options.items() if k != "api"})
    for selector, wanted in expected.items():
        for value in select(scene, selector):
            yield from compare(
                f"{selector} is not negative", is_non_negative(value, options), wanted
            )


@expectation("simplified", mapping(SELECTOR, BOOL))
def simplified(scene: Scene, expected: dict[str, bool], more: More) -> Iterator[str]:
    """Whether scatters are as scatter-simplifier leaves them."""
    for selector, wanted in expected.items():
        for scatter in select(scene, selector):
            yield from compare(f"{selector} is simple", is_simplified_scatter(scatter), wanted)


@expectation("no_unused", keys({"opcode": OPCODE}, {"in": COMPUTATION}))
def no_unused(scene: Scene, expected: dict[str, Any], more: More) -> Iterator[str]:
    for instruction in _with_opcode(scene, expected):
        if not instruction.users:
            yield f"{show(instruction)} has no user"


@expectation("mirrored_expressions", list_of(row(SELECTOR, SELECTOR)))
def mirrored_expressions(scene: Scene, pairs: list[list[str]], more: More) -> Iterator[str]:
    for first, second in pairs:
        a, b = select_one(scene, first), select_one(scene, second)
        yield from _not_mirrored(a, b)


def _not_mirrored(a: Instruction, b: Instruction) -> Iterator[str]:
    waiting = [(a, b)]
    while waiting:
        x, y = waiting.pop()
        if x.opcode is Opcode.PARAMETER and y.opcode is Opcode.PARAMETER:
            if x.parameter_number != y.parameter_number ^ 1:
                yield f"{show(x)} and {show(y)} are not the parameters of one pair"
            continue
        same = (x.opcode, x.shape, x.payload, dict(x.attributes)) == (
            *(y.opcode, y.shape, y.payload),
            dict(y.attributes),
        )
        if not same or len(x.operands) != len(y.operands):
            yield f"{show(x)} and {show(y)} differ"
            return
        waiting += zip(x.operands, y.operands, strict=True)


_FIELD = keys({"opcode": OPCODE, "field": TEXT, "value": ANY}, {"in": COMPUTATION})


def _has_field(instruction: Instruction, expected: dict[str, Any]) -> bool:
    found = field_at(config_of(instruction), expected["field"])
    wanted = expected["value"]
    if isinstance(wanted, str) and wanted[:1] in ("<", ">"):
        return found is not None and within(float(found), wanted)
    return found in (wanted, as_json(wanted))


@expectation("backend_config_field_all", _FIELD)
def backend_config_field_all(scene: Scene, expected: dict[str, Any], more: More) -> Iterator[str]:
    for instruction in _with_opcode(scene, expected):
        if not _has_field(instruction, expected):
            yield f"{show(instruction)} does not have {expected['field']} {expected['value']}"


@expectation("backend_config_field_some", _FIELD)
def backend_config_field_some(scene: Scene, expected: dict[str, Any], more: More) -> Iterator[str]:
    if not any(_has_field(instruction, expected) for instruction in _with_opcode(scene, expected)):
        yield f"no {expected['opcode']} has {expected['field']} {expected['value']}"


_LEAF = re.compile(r"\{[^{}]*\}")
_SHARDING = keys({"in": COMPUTATION, "device": INT}, {"except": list_of(OPCODE)})


@expectation("sharding_unique_device", _SHARDING)
def sharding_unique_device(scene: Scene, expected: dict[str, Any], more: More) -> Iterator[str]:
    spared = expected.get("except", [])
    found = [
        instruction
        for computation in find_scope(scene, expected["in"])
        for instruction in computation.instructions
        if not any(has_opcode(instruction, opcode) for opcode in spared)
    ]
    demand_some("instruction with a sharding to look at", found)
    for instruction in found:
        text = instruction.attributes.get("sharding", "")
        wanted = f"{{maximal device={expected['device']}}}"
        if set(_LEAF.findall(text)) != {wanted}:
            yield f"{show(instruction)} has the sharding {text or 'none'}"


@expectation("original_value_fits_shape", list_of(SELECTOR))
def original_value_fits_shape(scene: Scene, expected: list[str], more: More) -> Iterator[str]:
    for selector in expected:
        for instruction in select(scene, selector):
            text = instruction.attributes.get("origin")
            if text is None:
                yield f"{selector} has no original value"
            else:
                found = _tree(text)
                yield from compare(f"tree of {selector}", found, _shape_tree(instruction))


def _tree(text: str) -> str:
    """The parentheses and leaves of an original value: `((.,.),.)`."""
    kept: list[str] = []
    depth = 0
    for character in text.strip()[1:-1]:
        if character == "{":
            depth += 1
            kept.append(".")
        depth -= character == "}"
        if depth == 0 and character in "(),":
            kept.append(character)
    return "".join(kept)


def _shape_tree(instruction: Instruction) -> str:
    def tree(shape: Any) -> str:
        return f"({','.join(map(tree, shape.elements))})" if shape.is_tuple else "."

    return tree(instruction.shape)
