"""Tables of what a program takes and gives: arrays of parameters and results."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from hloopt.checks.expectations.model import Attribute, Combine, Measure, Row, Table, count
from hloopt.checks.expectations.tables.parts import OP_NAME, key, sharding_text
from hloopt.checks.expectations.units import BYTES
from hloopt.checks.expectations.view import View
from hloopt.ir.attributes.values.tokens import compact
from hloopt.ir.instruction import Instruction
from hloopt.ir.shapes.leaf_annotations import leaf_shardings
from hloopt.ir.shapes.shape import Shape
from hloopt.ir.shapes.shape_size import shape_bytes
from hloopt.ir.sources.source_stacks import op_name_of
from hloopt.query.keys import TYPE
from hloopt.query.kinds import NAME, NUMBER, SIZE, TEXT
from hloopt.query.vocabulary import Vocabulary, vocabulary


class _Leaf(NamedTuple):
    """An array of a parameter or of the result."""

    instruction: Instruction
    number: int
    shape: Shape
    sharding: str


def _leaves(instruction: Instruction, number: int) -> Iterator[_Leaf]:
    shapes = list(instruction.shape.leaves())
    shardings = leaf_shardings(instruction) or [""] * len(shapes)
    for offset, (shape, sharding) in enumerate(zip(shapes, shardings, strict=True)):
        yield _Leaf(instruction, number + offset, shape, sharding)


def _parameters(view: View) -> list[Row]:
    found: list[Row] = []
    for parameter in view.subject.module.entry.parameters:
        found += [Row(parameter, leaf) for leaf in _leaves(parameter, len(found))]
    return found


def _results(view: View) -> list[Row]:
    root = view.subject.module.entry.root
    return [Row(root, leaf) for leaf in _leaves(root, 0)]


def _vocabulary(example: str) -> Vocabulary:
    return vocabulary(
        (
            key("name", NAME, "name of the instruction, or its op_name: `params['embed']`",
                lambda leaf: (leaf.instruction.name, op_name_of(leaf.instruction))),
            key("number", NUMBER, "place among all arrays, from 0", lambda leaf: (leaf.number,)),
            key("type", TYPE, "element type, or `float`, `int`, `complex`, `f8`",
                lambda leaf: (leaf.shape.type_name,)),
            key("bytes", SIZE, "bytes of the array", lambda leaf: (shape_bytes(leaf.shape),)),
            key("sharding", TEXT, "sharding, as it is written",
                lambda leaf: (compact(leaf.sharding),)),
        ),
        None,
        example,
    )  # fmt: skip


def _bytes(row: Row) -> int:
    return shape_bytes(row.record.shape)


_MEASURES = (
    count(),
    Measure("bytes", "bytes of the arrays", BYTES, lambda view: _bytes),
    Measure("max_bytes", "bytes of the largest", BYTES, lambda view: _bytes, Combine.MAX),
    Attribute(
        "sharding", "the sharding; `<=[4]` and `0,1,2,3` are equal",
        lambda row: row.record.sharding, sharding_text,
    ),
    Attribute("shape", "shape and layout as XLA prints them", lambda row: row.record.shape.text,
              compact),
    OP_NAME,
)  # fmt: skip
PARAMETERS = Table(
    "parameters", "arrays that the entry takes, tuples taken apart", ("array", "arrays"),
    _parameters, _vocabulary("name=*embed*"), _MEASURES,
)  # fmt: skip
RESULTS = Table(
    "results", "arrays that the entry gives, tuples taken apart", ("array", "arrays"),
    _results, _vocabulary("number=0"), _MEASURES,
)  # fmt: skip
