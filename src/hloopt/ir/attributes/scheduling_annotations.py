"""The frontend attribute that puts instructions into scheduling groups."""

from __future__ import annotations

from typing import NamedTuple

from hloopt.diagnostics import PassRefused
from hloopt.ir.attributes.frontend_attributes import (
    frontend_attribute,
    frontend_attributes,
    set_frontend_attributes,
)
from hloopt.ir.instruction import Instruction

GROUP = "_scheduling_group_id"
_NO_GROUP = "noop"


class Annotation(NamedTuple):
    """`group[:iteration]`, each a number or absent; `noop` is neither."""

    group: int | None
    iteration: int | None


def annotation_of(instruction: Instruction) -> Annotation | None:
    """The annotation of an instruction, None without one. Raises PassRefused."""
    text = frontend_attribute(instruction, GROUP)
    if text is None:
        return None
    if text == _NO_GROUP:
        return Annotation(None, None)
    fields = text.split(":")
    try:
        numbers = [int(field) if field else None for field in fields]
    except ValueError:
        numbers = []
    if not 0 < len(numbers) <= 2 or (numbers[0] is not None and numbers[0] < 0):
        raise PassRefused(
            f"'%{instruction.name}': {GROUP}=\"{text}\" is not a scheduling group",
            span=instruction.parent.module.span_of(instruction),
            help='a group is written "3", with the iteration of a loop "3:1"',
        )
    return Annotation(numbers[0], numbers[1] if len(numbers) == 2 else None)


def group_of(instruction: Instruction) -> int | None:
    """The group of an instruction, None without one. Raises PassRefused."""
    as_read = instruction.attribute_text
    if as_read is not None and GROUP not in as_read:
        return None  # as most
    annotation = annotation_of(instruction)
    return None if annotation is None else annotation.group


def set_group(instruction: Instruction, group: int | None) -> None:
    """Put an instruction into a group, or with None into none."""
    attributes = frontend_attributes(instruction)
    if group is None:
        attributes.pop(GROUP, None)
    else:
        attributes[GROUP] = str(group)
    set_frontend_attributes(instruction, attributes)
