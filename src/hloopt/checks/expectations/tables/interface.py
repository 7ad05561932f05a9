"""Tables of what a program takes and gives: arrays of parameters and results."""

from __future__ import annotations

from collections.abc import Iterable

from hloopt.analysis.inventory.arrays import arrays_of
from hloopt.checks.expectations.model import Attribute, Combine, Measure, Row, Table, count
from hloopt.checks.expectations.tables.parts import OP_NAME, key, sharding_text
from hloopt.checks.expectations.units import BYTES
from hloopt.checks.view import View
from hloopt.ir.attributes.values.tokens import compact
from hloopt.ir.instruction import Instruction
from hloopt.ir.sources.source_stacks import op_name_of
from hloopt.query.keys import TYPE
from hloopt.query.kinds import NAME, NUMBER, SIZE, TEXT
from hloopt.query.vocabulary import Vocabulary, vocabulary


def _parameters(view: View) -> list[Row]:
    return _rows(view.subject.module.entry.parameters)


def _results(view: View) -> list[Row]:
    return _rows([view.subject.module.entry.root])


def _rows(instructions: Iterable[Instruction]) -> list[Row]:
    return [Row(array.instruction, array) for array in arrays_of(instructions)]


def _vocabulary(example: str) -> Vocabulary:
    return vocabulary(
        (
            key("name", NAME, "name of the instruction, or its op_name: `params['embed']`",
                lambda array: (array.instruction.name, op_name_of(array.instruction))),
            key("number", NUMBER, "place among all arrays, from 0", lambda array: (array.number,)),
            key("type", TYPE, "element type, or `float`, `int`, `complex`, `f8`",
                lambda array: (array.shape.type_name,)),
            key("bytes", SIZE, "bytes of the array", lambda array: (array.size,)),
            key("sharding", TEXT, "sharding, as it is written",
                lambda array: (compact(array.sharding),)),
        ),
        None,
        example,
    )  # fmt: skip


def _bytes(row: Row) -> int:
    size: int = row.record.size
    return size


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
