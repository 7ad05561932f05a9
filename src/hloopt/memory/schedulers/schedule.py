"""XLA's memory schedulers, for whole modules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from hloopt.analysis.dataflow import Dataflow
from hloopt.analysis.flat_schedule import FlatSchedule
from hloopt.ir import Computation, Instruction, Module, Opcode
from hloopt.ir.ordering import post_order
from hloopt.ir.shapes.shape_size import POINTER_BYTES
from hloopt.memory.backends import CPU, Backend
from hloopt.memory.buffers import Buffers
from hloopt.memory.heap.events import EventKind, HeapTrace, trace_heap
from hloopt.memory.heap.packing import pack
from hloopt.memory.heap.replay import replay
from hloopt.memory.live_ranges import LiveRanges
from hloopt.memory.overwrite import Overwriting
from hloopt.memory.schedulers.list_scheduler import list_order
from hloopt.memory.schedulers.local_buffers import LocalBuffers, buffer_bytes
from hloopt.memory.schedulers.walks import bfs_order, dfs_order, trivial_order
from hloopt.memory.sizes import CPU_SIZES, SizeRule

ComputationOrders = dict[Computation, list[Instruction]]


class Algorithm(StrEnum):
    """The algorithms of memory schedulers."""

    DEFAULT = "default"
    """The best of list, dfs and post-order."""
    LIST = "list"
    DFS = "dfs"
    POST_ORDER = "post-order"
    BFS = "bfs"
    TRIVIAL = "trivial"


_CANDIDATES = (Algorithm.LIST, Algorithm.DFS, Algorithm.POST_ORDER)


@dataclass(frozen=True, slots=True)
class Schedule:
    """An order of each computation that is not the body of a fusion, and who found it."""

    orders: ComputationOrders
    algorithm: Algorithm
    peaks: dict[Algorithm, int] = field(default_factory=dict)
    """The bytes that each algorithm tried would need; empty if only one was."""


def schedule_module(
    module: Module,
    algorithm: Algorithm = Algorithm.DEFAULT,
    *,
    backend: Backend = CPU,
    pointer_size: int = POINTER_BYTES,
) -> Schedule:
    """Order the instructions of `module`; the order it may have is not looked at.

    What the backend makes of an order is part of it. Algorithms that look at sizes take tables of
    tuples to have `pointer_size` bytes per element. Near-linear in the module. Raises
    HloVerifyError where shapes do not fit or something depends on itself.
    """
    sizes = replace(backend.sizes, pointer_bytes=pointer_size)
    if algorithm is Algorithm.DEFAULT:
        return _best_of(Dataflow.of(module), backend, sizes)
    computations = [c for c in module.computations.values() if not c.is_fusion]
    if algorithm in _WALKS:
        found = {c: backend.arrange(_WALKS[algorithm](c)) for c in computations}
    else:
        found = _orders(_local(computations, sizes), algorithm, backend)
    return Schedule(found, algorithm)


_Local = Mapping[Computation, LocalBuffers]


def _local(computations: Iterable[Computation], sizes: SizeRule) -> _Local:
    return {computation: LocalBuffers(computation, sizes) for computation in computations}


def _orders(local: _Local, algorithm: Algorithm, backend: Backend) -> ComputationOrders:
    find = _BY_SIZE[algorithm]
    return {c: backend.arrange(find(c, buffers)) for c, buffers in local.items()}


_BY_SIZE: dict[Algorithm, Callable[[Computation, LocalBuffers], list[Instruction]]] = {
    Algorithm.LIST: list_order,
    Algorithm.DFS: dfs_order,
    Algorithm.POST_ORDER: lambda _, buffers: buffers.order,
}
_WALKS: dict[Algorithm, Callable[[Computation], list[Instruction]]] = {
    Algorithm.POST_ORDER: post_order,
    Algorithm.BFS: bfs_order,
    Algorithm.TRIVIAL: trivial_order,
}


def value_sizes(flow: Dataflow, sizes: SizeRule = CPU_SIZES) -> dict[int, int]:
    """The bytes of values, as `buffer_bytes` counts them."""
    return {value: buffer_bytes(flow.shape(value), sizes) for value in flow.values()}


def _best_of(flow: Dataflow, backend: Backend, sizes: SizeRule) -> Schedule:
    buffers = Buffers.of(flow)
    local = _local(flow.scope.orders, sizes)
    found = {algorithm: _orders(local, algorithm, backend) for algorithm in _CANDIDATES}
    bytes_of = value_sizes(flow, sizes)
    peaks = {a: minimum_memory(buffers, orders, bytes_of, backend) for a, orders in found.items()}
    best = min(_CANDIDATES, key=peaks.__getitem__)  # of equals the first
    return Schedule(found[best], best, peaks)


def minimum_memory(
    buffers: Buffers, orders: ComputationOrders, sizes: dict[int, int], backend: Backend = CPU
) -> int:
    """The most bytes that values need at one time in an order, constants left out, unpacked.

    As in XLA, values that must share count for themselves where they meet: the state of a loop
    twice while it is passed on. What takes over an operand does not.
    """
    trace = _trace(buffers, orders, backend)
    size_of = {b.number: max(map(sizes.__getitem__, b.values)) for b in buffers.all}
    live = peak = 0
    for event in trace.events:
        size = size_of[buffers.of_value[event.value].number]
        live += -size if event.kind is EventKind.FREE else size
        peak = max(peak, live)
    return peak


def fragmentation(buffers: Buffers, backend: Backend = CPU) -> int:
    """The bytes that packing adds to what values need at one time in the module's order."""
    orders = {c: list(c.instructions) for c in buffers.flow.scope.orders}
    trace = _trace(buffers, orders, backend)
    needed = replay(trace, trace.size.__getitem__).peak
    return max(pack(trace, backend.sizes.alignment).size - needed, 0)


def _trace(buffers: Buffers, orders: ComputationOrders, backend: Backend) -> HeapTrace:
    """The history of all values but constants, unpacked."""
    flow = buffers.flow
    ranges = LiveRanges.of(flow, FlatSchedule.of(flow.module, orders), buffers)
    values = {
        value: None
        for value in flow.values()
        if ranges.start[value] >= 0 and flow.definer[value].opcode is not Opcode.CONSTANT
    }
    overwriting = Overwriting(flow, buffers.in_place, backend.may_overwrite)
    return trace_heap(values, buffers, ranges, overwriting)
