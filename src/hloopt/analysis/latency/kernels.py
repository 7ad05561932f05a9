"""The time a fusion takes as one kernel of a GPU: a roofline that knows caches and small grids.

    time = max(compute, memory) + 0.05 * min(compute, memory)

Compute is the flops over the rate of the lanes that have work. Memory is what is written and read:
each parameter once from memory, then as often as it is read again from the nearest cache that
holds it: at 2.5 times the bandwidth of memory from the level-2 cache, at 20 times from level 1. But
reading, or writing, whatever takes longer, is limited to 32 bytes per cycle and block.

`docs/cost_models.md` says where the figures are from, and how near they come to XLA:GPU's.
"""

from __future__ import annotations

from typing import NamedTuple

from hloopt.analysis.cost.sizes import leaf_bytes
from hloopt.analysis.latency.fused_work import (
    elements,
    fused_work,
    operation_flops,
    results_of,
    written,
)
from hloopt.ir import Instruction, Opcode
from hloopt.ir.attributes.typed import dimensions_of
from hloopt.targets import Target
from hloopt.targets.gpu import Gpu

EXPOSED_SHARE = 0.05
"""The part of the shorter of compute and memory time that is not hidden by the longer one."""
FLOPS_PER_CYCLE = 2
BLOCK_SIZE = 128
"""Threads of a block, each of which makes an element."""
_BLOCK_BYTES_PER_CYCLE = 32
TICKS = 4000
"""Per microsecond: XLA keeps times in quarters of a nanosecond."""
_LEVEL_2_SPEED = 2.5
_LEVEL_1_SPEED = 20.0
_LEVEL_1_SIZE = 256 << 10
_LONG_ROW = 1024
_SHORT_ROWS_PER_BLOCK = 8


class KernelTime(NamedTuple):
    """Microseconds of one kernel."""

    compute: float
    memory: float

    @property
    def microseconds(self) -> float:
        time = max(self) + EXPOSED_SHARE * min(self)
        return int(time * TICKS) / TICKS


class KernelTimes:
    """The times of fusions on a GPU."""

    def __init__(self, gpu: Gpu, target: Target) -> None:
        self._gpu = gpu
        self._bandwidth = target.memory_bandwidth / 1e6
        """Bytes per microsecond."""

    def of(self, fusion: Instruction) -> KernelTime:
        """O(fused instructions)."""
        work, results = fused_work(fusion), results_of(fusion)
        blocks, threads = _grid(results)
        size = sum(leaf_bytes(written(result)) for result in results)
        reads = [bytes_read(*read) for read in work.reads.items()]
        writing = size / self._bandwidth
        reading = sum(self._reading(*read) for read in reads)
        ports = blocks * _BLOCK_BYTES_PER_CYCLE * self._gpu.clock / 1e6
        slow_writing = max(writing, size / ports)
        slow_reading = max(reading, sum(count for count, _ in reads) / ports)
        memory = max(slow_reading + writing, reading + slow_writing)
        return KernelTime(work.flops / self._rate(blocks, threads), memory)

    def _rate(self, blocks: int, threads: int) -> float:
        """The flops per microsecond of the lanes that so many blocks of threads keep busy."""
        gpu = self._gpu
        lanes = min(blocks, gpu.cores) * min(threads, gpu.units_per_core)
        # XLA reckons with whole flops per nanosecond, which shows where one lane does all
        return max(1, int(lanes * FLOPS_PER_CYCLE * gpu.clock / 1e9)) * 1e3

    def _reading(self, count: float, size: int) -> float:
        """The microseconds of reading `count` bytes of an array of `size` at full bandwidth."""
        again = max(count - size, 0.0) / self._cache_speed(size)
        return (min(count, size) + again) / self._bandwidth

    def arithmetic(self, collective: Instruction) -> float:
        """The microseconds that an all-reduce or reduce-scatter computes: per element of its
        result one application of its reducer."""
        result = collective.shape
        count = sum(elements(leaf) for leaf in result.leaves())
        flops = count * operation_flops(collective.called[0].root.opcode, result)
        return flops / self._rate(*_grid_of(count))

    def _cache_speed(self, size: int) -> float:
        """The factor by which an array of `size` bytes is read again faster than from memory."""
        if size > self._gpu.l2_size:
            return 1.0
        return _LEVEL_2_SPEED if size > _LEVEL_1_SIZE else _LEVEL_1_SPEED


def bytes_read(parameter: Instruction, count: float) -> tuple[float, int]:
    """The number of bytes `count` elements of a parameter are, and how many it has."""
    size = leaf_bytes(parameter.shape)
    return count * size / max(elements(parameter.shape), 1), size


def _grid(results: list[Instruction]) -> tuple[int, int]:
    """The blocks of a kernel and their threads, by its first reduction, else its first result."""
    hero = next((r for r in results if r.opcode is Opcode.REDUCE), results[0])
    count = max(elements(written(hero)), 1)
    if hero.opcode is not Opcode.REDUCE:
        return _grid_of(count)
    source = hero.operands[0].shape
    reduced = dimensions_of(hero)
    if len(source.dimensions) - 1 not in reduced:  # columns, one per thread
        return -(-count // BLOCK_SIZE), BLOCK_SIZE
    is_long = elements(source) // count >= _LONG_ROW
    return count if is_long else -(-count // _SHORT_ROWS_PER_BLOCK), BLOCK_SIZE


def _grid_of(count: int) -> tuple[int, int]:
    """The blocks of a kernel and their threads, where each thread makes one of `count` elements."""
    return -(-count // BLOCK_SIZE), min(BLOCK_SIZE, count)
