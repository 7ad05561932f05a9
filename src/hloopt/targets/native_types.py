"""Native types of a device: what it does in a type of low precision, without a wider one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

NATIVE_FOLDER = Path(__file__).with_name("native")


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeType:
    """The operations whose operands and results may be of one type, by opcode.

    On every device values of the type may be moved and passed on; that is not repeated here.
    """

    opcodes: frozenset[str] = frozenset()
    applied: frozenset[str] = frozenset()
    """Of those with one result, the operations that may be if all that they apply may be."""
    widening: frozenset[str] = frozenset()
    """Operations that also give a wider type where all of their operands are of this one."""
    mixing: frozenset[str] = frozenset()
    """Operations in which this type and wider ones may meet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeTypes:
    """The operations of a device by type; a type without an entry is only moved and passed on."""

    types: Mapping[str, NativeType] = field(default_factory=dict)
    source: str


def native_names() -> list[str]:
    """The shipped descriptions of native types, sorted."""
    return sorted(path.stem for path in NATIVE_FOLDER.glob("*.yaml"))
