"""Expectations about what instructions say of themselves: attributes, shapes, literals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from conformance_lib.attributes import ATTRIBUTE, ATTRIBUTES, attribute_is, read_attribute
from conformance_lib.expectations import More, compare, compare_number, demand_some, expectation
from conformance_lib.forms import (
    ANY,
    BOOL,
    BOUND,
    INT,
    TEXT,
    keys,
    mapping,
    optional_list,
    row,
)
from conformance_lib.literals import constant_value, values_agree
from conformance_lib.patterns import shape_is, show
from conformance_lib.scene import Scene
from conformance_lib.selector_syntax import COMPUTATION, OPCODE, SELECTOR
from conformance_lib.selectors import (
    find_computation,
    find_scope,
    has_opcode,
    select,
    select_one,
)
from hloopt.ir import Instruction, Shape
from hloopt.ir.shapes.shape_parser import scan_shape
from hloopt.ir.sources.source_stacks import stack_of


@expectation("attr", mapping(SELECTOR, ATTRIBUTES))
def attr(scene: Scene, expected: dict[str, dict[str, Any]], more: More) -> Iterator[str]:
    for selector, attributes in expected.items():
        for instruction in select(scene, selector):
            yield from _check_attributes(instruction, attributes)


@expectation("attr_all", mapping(OPCODE, ATTRIBUTES), **{"in": COMPUTATION})
def attr_all(scene: Scene, expected: dict[str, dict[str, Any]], more: More) -> Iterator[str]:
    for opcode, attributes in expected.items():
        found = _all_with(scene, opcode, more.get("in"))
        demand_some(opcode, found)
        for instruction in found:
            yield from _check_attributes(instruction, attributes)


def _all_with(scene: Scene, opcode: str, scope: str | None) -> list[Instruction]:
    computations = find_scope(scene, scope)
    return [i for c in computations for i in c.instructions if has_opcode(i, opcode)]


def _check_attributes(instruction: Instruction, attributes: dict[str, Any]) -> Iterator[str]:
    for key, wanted in attributes.items():
        found = read_attribute(instruction, key)
        if not attribute_is(found, wanted):
            yield f"{show(instruction)}: expected {key} {wanted!r}, found {found!r}"


@expectation("attr_equal", row(SELECTOR, SELECTOR, ATTRIBUTE))
def attr_equal(scene: Scene, expected: list[str], more: More) -> Iterator[str]:
    first, second, key = expected
    found = read_attribute(select_one(scene, first), key)
    yield from compare(f"{key} of {second}", read_attribute(select_one(scene, second), key), found)


@expectation("attr_differ", row(SELECTOR, SELECTOR, ATTRIBUTE))
def attr_differ(scene: Scene, expected: list[str], more: More) -> Iterator[str]:
    first, second, key = expected
    found = read_attribute(select_one(scene, first), key)
    if read_attribute(select_one(scene, second), key) == found:
        yield f"{key} of {first} and {second} are both {found}"


@expectation("shape", mapping(SELECTOR, TEXT))
def shape(scene: Scene, expected: dict[str, str], more: More) -> Iterator[str]:
    for selector, text in expected.items():
        for found in select(scene, selector):
            if not shape_is(found.shape, text):
                yield f"shape of {selector}: expected {text}, found {found.shape.text}"


@expectation("channel_ids_unique", keys({"opcode": OPCODE}, {"in": COMPUTATION}))
def channel_ids_unique(scene: Scene, expected: dict[str, str], more: More) -> Iterator[str]:
    found = _all_with(scene, expected["opcode"], expected.get("in"))
    demand_some(expected["opcode"], found)
    channels = [i.attributes.get("channel_id") for i in found]
    if len(set(channels)) < len(channels):
        yield f"channels of {expected['opcode']} are not unique: {', '.join(map(str, channels))}"


@expectation("shape_all", mapping(OPCODE, TEXT), **{"in": COMPUTATION})
def shape_all(scene: Scene, expected: dict[str, str], more: More) -> Iterator[str]:
    for opcode, text in expected.items():
        instructions = _all_with(scene, opcode, more.get("in"))
        demand_some(opcode, instructions)
        for found in instructions:
            if not shape_is(found.shape, text):
                yield f"shape of %{found.name}: expected {text}, found {found.shape.text}"


@expectation("tuple_size", mapping(SELECTOR, BOUND))
def tuple_size(scene: Scene, expected: dict[str, int | str], more: More) -> Iterator[str]:
    for selector, bound in expected.items():
        for found in select(scene, selector):
            size = len(found.shape.elements)
            yield from compare_number(f"elements of {selector}", size, bound)


@expectation("is_tuple_shape", mapping(SELECTOR, BOOL))
def is_tuple_shape(scene: Scene, expected: dict[str, bool], more: More) -> Iterator[str]:
    for selector, wanted in expected.items():
        for found in select(scene, selector):
            yield from compare(f"{selector} is a tuple", found.shape.is_tuple, wanted)


@expectation("literal", mapping(SELECTOR, ANY))
def literal(scene: Scene, expected: dict[str, Any], more: More) -> Iterator[str]:
    for selector, wanted in expected.items():
        for found in select(scene, selector):
            value = constant_value(found)
            if not values_agree(found, value, wanted):
                yield from compare(f"literal of {selector}", value, wanted)


@expectation("stack_frames", mapping(SELECTOR, optional_list(row(TEXT, TEXT, INT))))
def stack_frames(scene: Scene, expected: dict[str, Any], more: More) -> Iterator[str]:
    for selector, wanted in expected.items():
        for instruction in select(scene, selector):
            stack = stack_of(instruction)
            frames = stack.frames if stack else ()
            found = [[frame.file, frame.function, frame.line] for frame in frames]
            yield from compare(f"stack frames of {selector}", found, wanted)


@expectation("parameter_count", mapping(COMPUTATION, BOUND))
def parameter_count(scene: Scene, expected: dict[str, int | str], more: More) -> Iterator[str]:
    for name, bound in expected.items():
        found = len(find_computation(scene, name).parameters)
        yield from compare_number(f"parameters of {name}", found, bound)


@expectation("parameter_shapes", mapping(COMPUTATION, optional_list(TEXT)))
def parameter_shapes(scene: Scene, expected: dict[str, list[str]], more: More) -> Iterator[str]:
    for name, texts in expected.items():
        found = [parameter.shape for parameter in find_computation(scene, name).parameters]
        yield from _compare_shapes(f"parameters of {name}", found, texts)


@expectation("entry_layout_parameters", optional_list(TEXT))
def entry_layout_parameters(scene: Scene, expected: list[str], more: More) -> Iterator[str]:
    layout = scene.module.attributes.get("entry_computation_layout")
    if layout is None:
        found = [parameter.shape for parameter in scene.module.entry.parameters]
    else:
        found = list(scan_shape(layout, layout.index("("))[0].elements)
    yield from _compare_shapes("parameters in the entry layout", found, expected)


def _compare_shapes(what: str, found: list[Shape], expected: list[str]) -> Iterator[str]:
    texts = [shape.text for shape in found]
    if len(found) != len(expected) or not all(map(shape_is, found, expected)):
        yield f"{what}: expected {expected}, found {texts}"
