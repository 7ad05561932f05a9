"""Attributes of an instruction as values: one function per attribute that many modules read.

An attribute that is absent is empty or false, as XLA takes it. Each distinct text is parsed once.
All raise HloSyntaxError for a malformed value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hloopt.ir.attributes import values
from hloopt.ir.instruction import Instruction

if TYPE_CHECKING:  # a kind of value is imported when the first of it is parsed
    from hloopt.ir.attributes.values import ConvolutionLabels, PaddingDimension, Slice, Window


def dimensions_of(instruction: Instruction) -> tuple[int, ...]:
    """The `dimensions` of a broadcast, transpose, reduce, concatenate, sort, collective, …"""
    return values.parse_ints(instruction.attributes.get("dimensions", "{}"))


def window_of(instruction: Instruction) -> Window:
    """The `window` of a convolution, reduce-window or select-and-scatter."""
    return values.parse_window(instruction.attributes.get("window", "{}"))


def labels_of(convolution: Instruction) -> ConvolutionLabels:
    """The `dim_labels` of a convolution, which has to have some."""
    return values.parse_dim_labels(convolution.attributes["dim_labels"])


def slices_of(instruction: Instruction) -> tuple[Slice, ...]:
    """Start, limit and stride of each dimension of a slice, which has to have them."""
    return values.parse_slices(instruction.attributes["slice"])


def padding_of(pad: Instruction) -> tuple[PaddingDimension, ...]:
    """Low, high and interior padding of each dimension of a pad, which has to have them."""
    return values.parse_padding(pad.attributes["padding"])


def pairs_of(permute: Instruction) -> tuple[tuple[int, ...], ...]:
    """The `source_target_pairs` of a collective-permute."""
    return values.parse_int_lists(permute.attributes.get("source_target_pairs", "{}"))


def channel_of(instruction: Instruction) -> int | None:
    """The `channel_id` of a collective or a transfer; None without one."""
    text = instruction.attributes.get("channel_id")
    return None if text is None else values.parse_int(text)


def constrains_layout(collective: Instruction) -> bool:
    """Whether layouts of a collective are fixed: `constrain_layout`."""
    return collective.attributes.get("constrain_layout") == "true"


def is_composite(call: Instruction) -> bool:
    """Whether a call stands for an operation of a front end: `is_composite`."""
    return call.attributes.get("is_composite") == "true"


def direction_of(compare: Instruction) -> str:
    """The `direction` of a compare: EQ, NE, LT, LE, GT, GE."""
    return compare.attributes.get("direction", "")


def fusion_kind_of(fusion: Instruction) -> str:
    """The `kind` of a fusion: kLoop, kInput, kOutput, kCustom; empty for other instructions."""
    return fusion.attributes.get("kind", "")


def has_host_transfer(instruction: Instruction) -> bool:
    """Whether a send or recv, or its done, is one with the host."""
    return instruction.attributes.get("is_host_transfer") == "true"
