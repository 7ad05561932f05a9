"""XLA's memory schedulers, for whole modules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from hloopt.analysis.dataflow import Dataflow
from hloopt.analysis.flat_schedule import FlatSchedule
from hloopt.ir import Computation, Instruction, Module, Opcode
from hloopt.ir.ordering import post_order
from hloopt.ir.shape_size import POINTER_BYTES
from hloopt.memory.backends import CPU, Backend
from hloopt.memory.buffers import Buffers
from hloopt.memory.heap_events import trace_heap
from hloopt.memory.live_ranges import LiveRanges
from hloopt.memory.overwrite import Overwriting
from hloopt.memory.replay import replay
from hloopt.memory.schedulers.list_scheduler import list_order
from hloopt.memory.schedulers.walks import bfs_order, dfs_order, own_bytes, trivial_order
from hloopt.memory.sizes import slot_bytes

ComputationOrders = dict[Computation, list[Instruction]]


class Algorithm(StrEnum):
    """How a memory scheduler orders instructions."""

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

    Algorithms that look at sizes take tables of tuples to have `pointer_size` bytes per element.
    Near-linear in the module. Raises HloVerifyError where shapes do not fit or something depends
    on itself.
    """
    if algorithm in (Algorithm.DEFAULT, Algorithm.LIST, Algorithm.DFS):
        flow = Dataflow.of(module)
        if algorithm is Algorithm.DEFAULT:
            return _best_of(flow, backend, pointer_size)
        return Schedule(_with_flow(flow, algorithm, pointer_size), algorithm)
    order = _WALKS[algorithm]
    orders = {c: order(c) for c in module.computations.values() if not c.is_fusion}
    return Schedule(orders, algorithm)


_WALKS: dict[Algorithm, Callable[[Computation], list[Instruction]]] = {
    Algorithm.POST_ORDER: post_order,
    Algorithm.BFS: bfs_order,
    Algorithm.TRIVIAL: trivial_order,
}


def _with_flow(flow: Dataflow, algorithm: Algorithm, pointer_size: int) -> ComputationOrders:
    if algorithm is Algorithm.POST_ORDER:
        return flow.scope.orders
    sizes = _value_sizes(flow, pointer_size)
    own = own_bytes(flow, sizes)
    if algorithm is Algorithm.DFS:
        return {c: dfs_order(c, own) for c in flow.scope.orders}
    return {c: list_order(c, flow, sizes, own) for c in flow.scope.orders}


def _value_sizes(flow: Dataflow, pointer_size: int) -> dict[int, int]:
    sizes: dict[int, int] = {}
    for value in flow.values():
        shape = flow.definer[value].shape
        size = slot_bytes(shape)[flow.slot[value]]
        if shape.is_tuple and flow.shape(value).is_tuple:
            size = size // POINTER_BYTES * pointer_size
        sizes[value] = size
    return sizes


def _best_of(flow: Dataflow, backend: Backend, pointer_size: int) -> Schedule:
    buffers = Buffers.of(flow)
    found = {a: _with_flow(flow, a, pointer_size) for a in _CANDIDATES}
    peaks = {a: minimum_memory(flow, buffers, orders, backend) for a, orders in found.items()}
    best = min(_CANDIDATES, key=peaks.__getitem__)  # of equals the first
    return Schedule(found[best], best, peaks)


def minimum_memory(
    flow: Dataflow, buffers: Buffers, orders: ComputationOrders, backend: Backend = CPU
) -> int:
    """The most bytes that values need at one time in an order, constants left out, unpacked."""
    ranges = LiveRanges.of(flow, FlatSchedule.of(flow.module, orders), buffers)
    values = {
        value: None
        for value in flow.values()
        if ranges.start[value] >= 0 and flow.definer[value].opcode is not Opcode.CONSTANT
    }
    overwriting = Overwriting(flow, buffers.in_place, backend.may_overwrite)
    trace = trace_heap(values, buffers, ranges, overwriting)
    return replay(trace, trace.size.__getitem__).peak
