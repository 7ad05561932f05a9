"""Channel ids: the numbers by which devices recognize a collective or a transfer."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from hloopt.ir.module import Module


def unused_channel_ids(module: Module) -> Iterator[int]:
    """The numbers above those in use when the first is asked for, as XLA gives them out.

    O(instructions) for the first.
    """
    used = (i.attributes.get("channel_id") for i in module.instructions())
    yield from count(max((int(number) for number in used if number is not None), default=0) + 1)
