"""Layouts of arrays in memory; those with an order of dimensions alone are interned."""

from __future__ import annotations

from typing import NamedTuple

HOST_MEMORY_SPACE = 5
"""The memory space `S(5)` of a layout."""
TPU_MEMORY_SPACES = {1: "VMEM", 2: "SMEM"}
"""The memory spaces `S(n)` of a TPU beside its main memory and the host's, by number."""


class Layout(NamedTuple):
    """The layout of an array in memory; a field at its default is not printed.

    `minor_to_major` lists dimensions from the fastest varying one; `memory_space` is `S(n)`;
    `element_bits` is `E(n)`, 0 where elements take whole bytes.
    """

    minor_to_major: tuple[int, ...] = ()
    tiles: tuple[str, ...] = ()
    tail_padding: int = 1
    index_type: str = ""
    pointer_type: str = ""
    element_bits: int = 0
    memory_space: int = 0
    splits: str = ""
    dynamic_metadata_bytes: int = 0

    @property
    def text(self) -> str:
        """The layout as XLA prints it, braces included; empty for a scalar's default."""
        parts = ["T" + tile if i == 0 else tile for i, tile in enumerate(self.tiles)]
        if self.tail_padding != 1:
            parts.append(f"L({self.tail_padding})")
        if self.index_type:
            parts.append(f"#({self.index_type})")
        if self.pointer_type:
            parts.append(f"*({self.pointer_type})")
        if self.element_bits:
            parts.append(f"E({self.element_bits})")
        if self.memory_space:
            parts.append(f"S({self.memory_space})")
        if self.splits:
            parts.append(f"SC{self.splits}")
        if self.dynamic_metadata_bytes:
            parts.append(f"M({self.dynamic_metadata_bytes})")
        order = ",".join(map(str, self.minor_to_major))
        if parts:
            return f"{{{order}:{''.join(parts)}}}"
        return f"{{{order}}}" if order else ""


_LAYOUTS: dict[tuple[int, ...], Layout] = {}
_DEFAULT_LAYOUTS: dict[int, Layout] = {}


def layout_in_order(minor_to_major: tuple[int, ...]) -> Layout:
    """The interned layout that has an order of dimensions and nothing else."""
    layout = _LAYOUTS.get(minor_to_major)
    if layout is None:
        layout = _LAYOUTS[minor_to_major] = Layout(minor_to_major)
    return layout


def default_layout(rank: int) -> Layout:
    """The descending layout: the last dimension varies fastest."""
    layout = _DEFAULT_LAYOUTS.get(rank)
    if layout is None:
        layout = layout_in_order(tuple(range(rank - 1, -1, -1)))
        _DEFAULT_LAYOUTS[rank] = layout
    return layout
