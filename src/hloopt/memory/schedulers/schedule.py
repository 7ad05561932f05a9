"""XLA's memory schedulers, for whole modules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from hloopt.analysis.dataflow import Dataflow
from hloopt.analysis.flat_schedule import FlatSchedule
from hloopt.ir import Computation, Instruction, Module, Opcode
from hloopt.ir.ordering import post_order
from hloopt.memory.backends import CPU, Backend
from hloopt.memory.buffers import Buffers
from hloopt.memory.heap_events import trace_heap
from hloopt.memory.live_ranges import LiveRanges
from hloopt.memory.overwrite import Overwriting
from hloopt.memory.replay import replay
from hloopt.memory.schedulers.list_scheduler import list_order
from hloopt.memory.schedulers.walks import bfs_order, dfs_order, own_bytes, trivial_order

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


def schedule_module(
    module: Module, algorithm: Algorithm = Algorithm.DEFAULT, *, backend: Backend = CPU
) -> Schedule:
    """Order the instructions of `module`; the one it may have is not looked at.

    Near-linear in the module. Raises HloVerifyError where shapes do not fit or something depends
    on itself.
    """
    if algorithm in (Algorithm.DEFAULT, Algorithm.LIST, Algorithm.DFS):
        flow = Dataflow.of(module)
        if algorithm is Algorithm.DEFAULT:
            return _best_of(flow, backend)
        return Schedule(_with_flow(flow, algorithm), algorithm)
    order = _WALKS[algorithm]
    orders = {c: order(c) for c in module.computations.values() if not c.is_fusion}
    return Schedule(orders, algorithm)


_WALKS: dict[Algorithm, Callable[[Computation], list[Instruction]]] = {
    Algorithm.POST_ORDER: post_order,
    Algorithm.BFS: bfs_order,
    Algorithm.TRIVIAL: trivial_order,
}


def _with_flow(flow: Dataflow, algorithm: Algorithm) -> ComputationOrders:
    if algorithm is Algorithm.POST_ORDER:
        return flow.scope.orders
    own = own_bytes(flow)
    if algorithm is Algorithm.DFS:
        return {c: dfs_order(c, own) for c in flow.scope.orders}
    return {c: list_order(c, flow, own) for c in flow.scope.orders}


def _best_of(flow: Dataflow, backend: Backend) -> Schedule:
    buffers = Buffers.of(flow)
    best: tuple[int, Schedule] | None = None
    for algorithm in _CANDIDATES:
        schedule = Schedule(_with_flow(flow, algorithm), algorithm)
        needed = minimum_memory(flow, buffers, schedule.orders, backend)
        if best is None or needed < best[0]:
            best = needed, schedule
    assert best is not None
    return best[1]


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
    overwriting = Overwriting(flow, buffers.in_place, backend.fusion_rule)
    trace = trace_heap(values, buffers, ranges, overwriting)
    return replay(trace, trace.size.__getitem__).peak
