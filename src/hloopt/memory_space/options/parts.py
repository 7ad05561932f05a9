"""The parts that options of memory space assignment are made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from hloopt.options import Bytes, PassOptions, option


@dataclass(frozen=True, slots=True, kw_only=True)
class PickerOptions(PassOptions):
    """When copies may start."""

    kind: Literal["instruction-count", "cost-analysis"] = option(
        "instruction-count", "whether copies overlap a number of instructions, or their time"
    )
    min_overlap: int = option(2, "instructions that a copy overlaps at least")
    max_overlap: int = option(10, "instructions that it overlaps, or a value stays, at most")
    min_overlap_to_async_copy_ratio: float = option(
        1.0, "least time to overlap, in times of the copy"
    )
    preferred_overlap_to_async_copy_ratio: float = option(
        2.0, "best time to overlap, in times of the copy"
    )
    max_overlap_to_mem_size_async_copy_ratio: float = option(
        10.0, "most time to overlap, in times of a copy of all alternate memory"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SortOptions(PassOptions):
    """The order in which buffers get their places."""

    kind: Literal["size", "memory-boundedness", "names", "opcodes"] = option(
        "size", "largest first, what gains most first, or as listed"
    )
    overrides: str | tuple[Mapping[str, object], ...] = option(
        (), "buffers that come first or last, as msa_sort_order_overrides"
    )
    first: tuple[str | tuple[str, ...], ...] = option(
        (), "names or opcodes in order; those in one list have one rank"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Coloring(PassOptions):
    """A position or a use whose memory space is fixed."""

    position: str | None = option(None, "the instruction whose result it is")
    use: str | None = option(None, "the instruction that reads it")
    operand: int = option(0, "the operand by which `use` reads it")
    index: tuple[int, ...] = option((), "the shape index within the result, or the operand")
    memory_space: int = option(1, "the memory space")


@dataclass(frozen=True, slots=True, kw_only=True)
class Description(PassOptions):
    """Uses or positions of which all that is given holds; names and operand_names: either."""

    opcodes: tuple[str, ...] | None = option(None, "opcodes of the instruction")
    names: tuple[str, ...] | None = option(None, "names of the instruction")
    operand_names: tuple[str, ...] | None = option(None, "names of the operand")
    operand: int | None = option(None, "the number of the operand")
    index: tuple[int, ...] | None = option(None, "the shape index")
    other_threads: bool | None = option(None, "whether another thread runs what it calls")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopedRule(PassOptions):
    """Scoped memory of instructions: rules that match one add up."""

    names: tuple[str, ...] | None = option(None, "names of the instructions")
    opcodes: tuple[str, ...] | None = option(None, "opcodes of the instructions")
    no_operand_in_alternate_memory: bool = option(
        False, "only while no operand is in alternate memory"
    )
    no_output_in_alternate_memory: bool = option(
        False, "only while no result is in alternate memory"
    )
    bytes: Bytes = option(0, "the bytes that each of them uses while it runs")


@dataclass(frozen=True, slots=True, kw_only=True)
class ContiguousRule(PassOptions):
    """Positions that keep their place until the last use."""

    name: str | None = option(None, "the name of the instruction")
    opcode: str | None = option(None, "the opcode of the instruction")
    not_index: tuple[int, ...] | None = option(None, "a shape index that is left out")


@dataclass(frozen=True, slots=True, kw_only=True)
class OpcodeList(PassOptions):
    """Some opcodes."""

    opcodes: tuple[str, ...] = option((), "the opcodes")


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanSize(PassOptions):
    """The piece of an operand that a fusion reads at a time."""

    name: str | None = option(None, "the name of the fusion")
    operand: int | None = option(None, "the number of the operand")
    bytes: Bytes = option(0, "the size of the piece")


@dataclass(frozen=True, slots=True, kw_only=True)
class SlicedPrefetchOptions(PassOptions):
    """Prefetches that are done in slices."""

    max_slices: int = option(0, "slices of one prefetch at most; less than 2: none")
    min_bytes: Bytes = option(0, "bytes of a value at least")
    preferred_slice_size: Bytes = option(
        0, "bytes of a slice where none are proposed; 0: no slices then"
    )
    all_slice_time_permutations_threshold: int = option(
        5, "slices up to which all orders are tried"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopOptimizerOptions(PassOptions):
    """Plans for memory-bound loops that stand unrolled in the schedule."""

    enabled: bool = option(False, "look for such loops")
    desired_copy_ratio: float = option(
        1.0, "part of a prefetch that must be hidden where not all of it can be"
    )
    allow_unsatisfied_fully_pipelined_prefetch: bool = option(
        False, "prefetch also what is hidden less, for as long as an iteration"
    )
    min_num_iterations: float = option(3.0, "iterations of such a loop at least; 3 or more")
