"""The partitioner's warnings of involuntary full rematerialization, in logs of XLA."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from hloopt.ir.attributes.values.shards import shards_of
from hloopt.ir.instruction import Instruction
from hloopt.ir.shapes.shape import array_shape, format_shape
from hloopt.ir.sources.source_stacks import op_name_of
from hloopt.patterns import pattern

_WARNING = pattern(
    r"Involuntary full rematerialization\. The compiler (?:cannot go|was not able to go) from "
    r"sharding (\{.*?\}) to (\{.*?\}) (?:efficiently|without doing a full rematerialization)"
    r".*?HLO operation:? %?([\w.\-]+) = (.*)"
)
_SHAPE = pattern(r"\w+\[[\d,<=]*\]")
_OP_NAME = pattern(r'op_name="((?:[^"\\]|\\.)*)"')


class RematWarning(NamedTuple):
    """A value that the partitioner replicates to go from one sharding to another."""

    source: str
    """The sharding from which the partitioner goes."""
    target: str
    name: str
    """The name of the value while the partitioner ran, which may be that of a copy."""
    shape: str
    op_name: str


def read_remat_warnings(lines: Iterable[str]) -> list[RematWarning]:
    """The warnings of a log, each once, in its order. Linear."""
    found: dict[RematWarning, None] = {}
    for match in filter(None, map(_WARNING.search, lines)):
        shape, name = _SHAPE.search(match[4]), _OP_NAME.search(match[4])
        found[
            RematWarning(
                match[1], match[2], match[3], shape[0] if shape else "", name[1] if name else ""
            )
        ] = None
    return list(found)


def is_about(warning: RematWarning, value: Instruction, partitions: int) -> bool:
    """Whether a warning is about the value of an instruction of the program.

    It quotes the op_name and what a device has of the value before it is resharded.
    """
    if warning.op_name != op_name_of(value) or not value.shape.is_array:
        return False
    shards = shards_of(warning.source, value.shape.rank, partitions)
    if isinstance(shards, str):
        return False
    part = array_shape(value.shape.type_name, shards.part(value.shape.dimensions))
    return warning.shape == format_shape(part, layout=False)
