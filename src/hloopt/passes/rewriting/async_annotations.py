"""Annotations that an asynchronous operation shares with what it wraps."""

from __future__ import annotations

from hloopt.ir.async_chains import async_followers
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import ASYNC

ANNOTATIONS = ("metadata", "frontend_attributes", "backend_config")
"""Attributes of an instruction that say something about its start and its done."""


def share_annotations(start: Instruction) -> None:
    """Let what an async-start wraps have the annotations that a reader of the text gives it."""
    operation = start.called[0].root
    if operation.opcode in ASYNC:
        return  # a reader gives it none
    steps = (start, *async_followers(start))
    for name in ANNOTATIONS:
        stated = [step.attributes[name] for step in steps if name in step.attributes]
        if stated and operation.attributes.get(name) != stated[-1]:
            operation.set_attribute(name, stated[-1])
