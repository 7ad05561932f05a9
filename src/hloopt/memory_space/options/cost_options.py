"""The rates of the two memories, or times as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from hloopt.diagnostics import HloError
from hloopt.options import PassOptions, option


@dataclass(frozen=True, slots=True, kw_only=True)
class CostOptions(PassOptions):
    """The option `cost_model` of memory space assignment. Rates are per second; 0: no limit.

    The `fixed_seconds_*` are for experiments: they replace what the rates say.
    """

    flops_per_second: float = option(0.0, "floating-point operations; 0: no limit")
    transcendentals_per_second: float = option(
        0.0, "exponentials, logarithms and the like; 0: no limit"
    )
    bytes_per_second: float = option(0.0, "of default memory, where it has no rate of its own")
    flops_min_latency_seconds: float = option(
        0.0, "the least time that any instruction computes for"
    )
    default_mem_bandwidth_bytes_per_second: float = option(0.0, "of default memory; 0: no limit")
    alternate_mem_read_bandwidth_bytes_per_second: float = option(
        0.0, "of alternate memory; 0: no limit"
    )
    alternate_mem_write_bandwidth_bytes_per_second: float = option(
        0.0, "of alternate memory; 0: no limit"
    )
    async_copy_bandwidth_scaling_factor: float = option(
        1.0, "part of the bandwidth of default memory that asynchronous copies get"
    )
    pipeline_overhead_window_size_in_bytes: float = option(
        0.0, "pieces in which instructions stream default memory; 0: no overhead"
    )
    while_execution_count: int = option(5, "trips that every loop is taken to make")
    is_benefit_scaled_by_size: bool = option(
        True, "whether the gain of a buffer is divided by the square root of its size"
    )
    fixed_seconds_per_instruction: float | None = option(
        None, "of any instruction, in place of what the rates say"
    )
    fixed_seconds_per_instruction_in_alternate_memory: float | None = option(
        None, "of one with anything in alternate memory"
    )
    fixed_seconds_with_operand_in_alternate_memory: float | None = option(
        None, "of one with an operand in alternate memory"
    )
    fixed_seconds_with_only_outputs_in_alternate_memory: float | None = option(
        None, "of one with nothing but results there"
    )
    fixed_seconds_for_opcode: Mapping[str, float] | None = option(
        None, "by opcode, of instructions with nothing in alternate memory"
    )
    fixed_seconds_per_copy: float | None = option(
        None, "of an asynchronous copy, whatever its size"
    )

    @property
    def default_rate(self) -> float:
        """Bytes per second of default memory."""
        return self.default_mem_bandwidth_bytes_per_second or self.bytes_per_second

    def __post_init__(self) -> None:
        """Raise HloError for a rate or a time below 0."""
        for each in fields(self):
            value = getattr(self, each.name)
            for number in value.values() if isinstance(value, Mapping) else (value,):
                if number is not None and number < 0:
                    raise HloError(
                        f"the cost model has {each.name} {number}",
                        help="rates and times are 0 or more",
                    )
