"""Channel ids: the numbers by which devices recognize a collective or a transfer."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import count

from hloopt.ir.attributes.table import attributes_of
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode

_CHANNEL_ID = "channel_id"


@cache
def opcodes_with_channels() -> frozenset[Opcode]:
    """The opcodes of what can have a channel id."""
    return frozenset(o for o in Opcode if any(a.name == _CHANNEL_ID for a in attributes_of(o)))


def unused_channel_ids(module: Module) -> Iterator[int]:
    """The numbers above those in use when the first is asked for, as XLA gives them out.

    O(instructions) for the first.
    """
    may_have = opcodes_with_channels()
    numbered = [i for i in module.instructions() if i.opcode in may_have]
    used = (int(i.attributes.get(_CHANNEL_ID, 0)) for i in numbered)
    yield from count(max(used, default=0) + 1)
