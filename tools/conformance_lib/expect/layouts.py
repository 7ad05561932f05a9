"""Expectations about shapes in detail: layouts, memory spaces, element types, sizes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from conformance_lib.errors import RecordError
from conformance_lib.expect.numbers import DIMENSION
from conformance_lib.expectations import (
    More,
    compare,
    compare_number,
    demand_some,
    expectation,
)
from conformance_lib.forms import (
    BOOL,
    BOUND,
    INT,
    TEXT,
    keys,
    list_of,
    mapping,
    only,
    optional_list,
    row,
    words,
)
from conformance_lib.patterns import show
from conformance_lib.scene import Scene
from conformance_lib.selector_syntax import COMPUTATION, LEAF_SELECTOR, OPCODE, SELECTOR
from conformance_lib.selectors import (
    find_computation,
    find_scope,
    has_opcode,
    select,
    select_one,
    select_shapes,
)
from hloopt.ir import Instruction, Opcode, Shape
from hloopt.ir.attributes.values import parse_ints
from hloopt.ir.shapes.element_type import ELEMENT_TYPES
from hloopt.ir.shapes.entry_layout import parse_entry_layout

_TYPE = words("element type", (*ELEMENT_TYPES, "tuple"))


@expectation("layout", mapping(SELECTOR, TEXT))
def layout(scene: Scene, expected: dict[str, str], more: More) -> Iterator[str]:
    for selector, text in expected.items():
        for found in select(scene, selector):
            yield from compare(f"layout of {selector}", found.shape.layout.text, text)


@expectation("layout_equal", list_of(row(SELECTOR, SELECTOR)))
def layout_equal(scene: Scene, pairs: list[list[str]], more: More) -> Iterator[str]:
    for first, second in pairs:
        a, b = (select_one(scene, selector).shape.layout for selector in (first, second))
        yield from compare(f"layout of {second}", b.text, a.text)


@expectation("layout_tiles", mapping(SELECTOR, INT))
def layout_tiles(scene: Scene, expected: dict[str, int], more: More) -> Iterator[str]:
    for selector, number in expected.items():
        for found in select(scene, selector):
            yield from compare(f"tiles of {selector}", len(found.shape.layout.tiles), number)


@expectation("element_sizes_fit", only(True))
def element_sizes_fit(scene: Scene, expected: bool, more: More) -> Iterator[str]:
    for instruction in scene.module.instructions():
        for leaf in instruction.shape.leaves():
            kind = leaf.element_type
            bits = kind.bits if kind is not None else 0
            if leaf.layout.element_bits not in (0, bits if 0 < bits < 8 else 0):
                yield f"{show(instruction)} has the layout {leaf.layout.text}"


@expectation("element_type", mapping(LEAF_SELECTOR, _TYPE))
def element_type(scene: Scene, expected: dict[str, str], more: More) -> Iterator[str]:
    for selector, name in expected.items():
        for _, shape in select_shapes(scene, selector):
            yield from compare(f"element type of {selector}", shape.type_name, name)


@expectation("outputs_bf16", mapping(SELECTOR, BOOL))
def outputs_bf16(scene: Scene, expected: dict[str, bool], more: More) -> Iterator[str]:
    """The result is bf16, or all that reads it is one convert to bf16."""
    for selector, wanted in expected.items():
        for found in select(scene, selector):
            users = list(found.users)
            is_rounded = (
                len(users) == 1
                and users[0].opcode is Opcode.CONVERT
                and users[0].shape.type_name == "bf16"
            )
            is_so = found.shape.type_name == "bf16" or is_rounded
            yield from compare(f"{selector} gives bf16", is_so, wanted)


@expectation("memory_space", mapping(LEAF_SELECTOR, INT))
def memory_space(scene: Scene, expected: dict[str, int], more: More) -> Iterator[str]:
    for selector, number in expected.items():
        for _, shape in select_shapes(scene, selector):
            found = shape.layout.memory_space
            yield from compare(f"memory space of {selector}", found, number)


@expectation("memory_space_count", keys({"of": list_of(SELECTOR), "memory_space": INT, "n": BOUND}))
def memory_space_count(scene: Scene, expected: dict[str, Any], more: More) -> Iterator[str]:
    found = [select_one(scene, selector).shape for selector in expected["of"]]
    number = sum(shape.layout.memory_space == expected["memory_space"] for shape in found)
    what = f"results in memory space {expected['memory_space']}"
    yield from compare_number(what, number, expected["n"])


@expectation(
    "memory_space_done_count",
    keys({"opcodes": list_of(OPCODE), "memory_space": INT, "n": BOUND}),
    **{"in": COMPUTATION},
)
def memory_space_done_count(scene: Scene, expected: dict[str, Any], more: More) -> Iterator[str]:
    found = sum(
        any(has_opcode(i, opcode) for opcode in expected["opcodes"])
        and i.shape.layout.memory_space == expected["memory_space"]
        for computation in find_scope(scene, more.get("in"))
        for i in computation.instructions
    )
    what = f"{expected['opcodes']} in memory space {expected['memory_space']}"
    yield from compare_number(what, found, expected["n"])


@expectation("entry_layout_memory_space", mapping(TEXT, INT))
def entry_layout_memory_space(scene: Scene, expected: dict[str, int], more: More) -> Iterator[str]:
    text = scene.module.attributes.get("entry_computation_layout")
    entry = scene.module.entry
    shapes = [p.shape for p in entry.parameters] if text is None else parse_entry_layout(text)[0]
    for place, number in expected.items():
        word, _, digits = place.partition(" ")
        if word != "parameter" or not digits.isdecimal() or int(digits) >= len(shapes):
            raise RecordError(f"'{place}' is not a parameter of the entry layout")
        found = shapes[int(digits)].layout.memory_space
        yield from compare(f"memory space of {place} in the entry layout", found, number)


@expectation("rank", mapping(SELECTOR, INT))
def rank(scene: Scene, expected: dict[str, int], more: More) -> Iterator[str]:
    for selector, number in expected.items():
        for found in select(scene, selector):
            yield from compare(f"rank of {selector}", found.shape.rank, number)


@expectation("shape_dynamic", mapping(SELECTOR, mapping(DIMENSION, BOOL)))
def shape_dynamic(scene: Scene, expected: dict[str, Any], more: More) -> Iterator[str]:
    for selector, dimensions in expected.items():
        for found in select(scene, selector):
            for number, wanted in dimensions.items():
                if int(number) >= found.shape.rank:
                    raise RecordError(f"{selector} has no dimension {number}")
                is_so = found.shape.dynamic[int(number)]
                yield from compare(f"dimension {number} of {selector} is dynamic", is_so, wanted)


@expectation("tuple_element_dimensions", mapping(SELECTOR, mapping(DIMENSION, optional_list(INT))))
def tuple_element_dimensions(scene: Scene, expected: dict[str, Any], more: More) -> Iterator[str]:
    for selector, elements in expected.items():
        for number, sizes in elements.items():
            for _, shape in select_shapes(scene, f"{selector}{{{number}}}"):
                what = f"sizes of element {number} of {selector}"
                yield from compare(what, list(shape.dimensions), sizes)


@expectation("tuple_size_difference", row(SELECTOR, SELECTOR, INT))
def tuple_size_difference(scene: Scene, expected: list[Any], more: More) -> Iterator[str]:
    first, second, wanted = expected
    sizes = [len(select_one(scene, selector).shape.elements) for selector in (first, second)]
    yield from compare(f"elements of {first} minus {second}", sizes[0] - sizes[1], wanted)


def _all(scene: Scene, opcode: Opcode, scope: str | None) -> list[Instruction]:
    found = [i for c in find_scope(scene, scope) for i in c.instructions if i.opcode is opcode]
    demand_some(opcode.value, found)
    return found


def _places(shape: Shape) -> list[tuple[int, int]]:
    """The sizes and strides in memory of an array's dimensions, most major first; neighbours that
    lie densely count as one, so that equal lists put each element into the same place."""
    strides: dict[int, int] = {}
    stride = 1
    for dimension in shape.layout.minor_to_major:
        strides[dimension] = stride
        stride *= shape.dimensions[dimension]
    found: list[tuple[int, int]] = []
    for dimension, size in enumerate(shape.dimensions):
        if size == 1:
            continue
        if found and found[-1][1] == strides[dimension] * size:
            size *= found.pop()[0]
        found.append((size, strides[dimension]))
    return found


@expectation("reshapes_are_bitcasts", only(True), **{"in": COMPUTATION})
def reshapes_are_bitcasts(scene: Scene, expected: bool, more: More) -> Iterator[str]:
    """Every reshape, or bitcast that one became, keeps the bytes in place."""
    scope = find_scope(scene, more.get("in"))
    kinds = (Opcode.RESHAPE, Opcode.BITCAST)
    found = [i for c in scope for i in c.instructions if i.opcode in kinds]
    demand_some("reshape", found)
    for reshape in found:
        before, after = map(_places, (reshape.operands[0].shape, reshape.shape))
        if before != after:
            yield f"{show(reshape)} moves data"


@expectation("transposes_keep_last_dimension", only(True), **{"in": COMPUTATION})
def transposes_keep_last_dimension(scene: Scene, expected: bool, more: More) -> Iterator[str]:
    for transpose in _all(scene, Opcode.TRANSPOSE, more.get("in")):
        permutation = parse_ints(transpose.attributes.get("dimensions", "{}"))
        if permutation and permutation[-1] != len(permutation) - 1:
            yield f"{show(transpose)} moves the last dimension"


@expectation("no_alternate_memory", list_of(SELECTOR))
def no_alternate_memory(scene: Scene, expected: list[str], more: More) -> Iterator[str]:
    for selector in expected:
        for found in select(scene, selector):
            yield from _outside_default(found)


@expectation("no_alternate_memory_in", list_of(COMPUTATION))
def no_alternate_memory_in(scene: Scene, expected: list[str], more: More) -> Iterator[str]:
    for name in expected:
        for found in find_computation(scene, name).instructions:
            yield from _outside_default(found)


def _outside_default(instruction: Instruction) -> Iterator[str]:
    for place in (instruction, *instruction.operands):
        if any(leaf.layout.memory_space for leaf in place.shape.leaves()):
            yield f"{show(place)} has the shape {place.shape.text}"
