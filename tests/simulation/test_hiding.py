"""The reason why operations are not better hidden."""

from __future__ import annotations

import pytest
from hypothesis import given
from tests.simulation.programs import ADD, programs, run, scheduled, streams

from hloopt.analysis.latency import TableModel
from hloopt.ir import Instruction, Module
from hloopt.ir.ordering import dependencies
from hloopt.simulation import simulate
from hloopt.simulation.hiding import Hiding, MemoryUse, Reason, explain_hiding

FREE = """
  p = f32[1024] parameter(0)
  q = f32[1024] parameter(1)
  w = f32[1024] negate(q)
  a = f32[1024] negate(p)
  s = f32[1024] all-reduce-start(a), replica_groups={}, to_apply=add
  d = f32[1024] all-reduce-done(s)
  b = f32[1024] negate(d)
  ROOT r = f32[1024] add(b, w)
"""


def explained(body: str, node: dict[str, float], latency: dict[str, float]) -> dict[str, Hiding]:
    entry = run(scheduled(body, ADD), node, latency).entry
    return {hiding.operation.start.name: hiding for hiding in explain_hiding(entry)}


def names(hiding: Hiding) -> list[str]:
    return [instruction.name for instruction in hiding.examples]


def test_work_elsewhere_could_run_under_it() -> None:
    found = explained(FREE, {"w": 30, "a": 5, "b": 5}, {"s": 20})["s"]
    assert found.reason is Reason.ORDER
    assert (found.under, found.free, found.taken) == (0, 30, 0)
    assert names(found) == ["w"]


def test_all_work_feeds_it_or_needs_it() -> None:
    found = explained(FREE, {"a": 5, "b": 5}, {"s": 20})["s"]
    assert found.reason is Reason.DEPENDENCY
    assert names(found) == ["a", "b"]


def test_nothing_is_left_to_run() -> None:
    body = FREE.replace("  w = f32[1024] negate(q)\n", "").replace(
        "  d = ", "  w = f32[1024] negate(q)\n  d = "
    )
    found = explained(body, {"w": 8, "a": 5, "b": 5}, {"s": 20})["s"]
    assert found.reason is Reason.NOTHING_LEFT
    assert found.under == 8


def test_nothing_is_left_to_hide() -> None:
    body = FREE.replace("  w = f32[1024] negate(q)\n", "").replace(
        "  d = ", "  w = f32[1024] negate(q)\n  d = "
    )
    assert explained(body, {"w": 20}, {"s": 20})["s"].reason is Reason.HIDDEN


TWO = """
  p = f32[8] parameter(0)
  q = f32[8] parameter(1)
  start1 = f32[8] all-reduce-start(p), replica_groups={}, to_apply=add
  w = f32[8] negate(q)
  d1 = f32[8] all-reduce-done(start1)
  start2 = f32[8] all-reduce-start(q), replica_groups={}, to_apply=add
  d2 = f32[8] all-reduce-done(start2)
  r1 = f32[8] add(d1, d2)
  ROOT r = f32[8] add(r1, w)
"""


def test_the_stream_is_full_while_other_work_runs() -> None:
    found = explained(TWO, {"w": 10}, {"start1": 10, "start2": 6})["start2"]
    assert found.reason is Reason.OVERLAP_LIMIT
    assert (found.taken, found.free) == (10, 0)
    assert names(found) == ["w"]


def test_work_after_an_operation_has_ended_leaves_room_in_the_stream() -> None:
    found = explained(TWO, {"w": 10}, {"start1": 4, "start2": 6})["start2"]
    assert found.reason is Reason.ORDER
    assert (found.taken, found.free) == (4, 6)


def test_an_operation_that_waits_for_its_stream_is_limited_by_it() -> None:
    body = TWO.replace("  w = f32[8] negate(q)\n  d1", "  d1").replace(", w)", ", r1)")
    body = body.replace("  d1 = f32[8] all-reduce-done(start1)\n", "").replace(
        "  d2 =", "  d1 = f32[8] all-reduce-done(start1)\n  d2 ="
    )
    found = explained(body, {}, {"start1": 10, "start2": 6})["start2"]
    assert found.reason is Reason.OVERLAP_LIMIT
    assert found.operation.queued == 10


def test_a_buffer_that_is_to_be_overwritten_is_read_before() -> None:
    module = scheduled(FREE, ADD)
    entry = run(module, {"w": 30, "a": 5, "b": 5}, {"s": 20}).entry
    by_name = {i.name: i for i in module.instructions()}
    (found,) = explain_hiding(entry, hazards=[(by_name["w"], by_name["s"])])
    assert found.reason is Reason.DEPENDENCY


@pytest.mark.parametrize(
    ("limit", "reason"), [(3 * 4096, Reason.ORDER), (2 * 4096 + 1, Reason.MEMORY_LIMIT)]
)
def test_memory_keeps_it_from_being_in_flight_elsewhere(limit: int, reason: Reason) -> None:
    entry = run(scheduled(FREE, ADD), {"w": 30, "a": 5, "b": 5}, {"s": 20}).entry
    usage = [0, 0, 4096, 2 * 4096, 2 * 4096, 2 * 4096, 2 * 4096, 3 * 4096]
    (found,) = explain_hiding(entry, memory=MemoryUse(usage, limit))
    assert found.reason is reason


@given(programs())
def test_what_could_run_under_an_operation_can(program: tuple[Module, TableModel]) -> None:
    """Put between start and done with what stands in the way, it leaves less to wait for."""
    module, model = program
    simulation = simulate(module, model, streams())
    for hiding in explain_hiding(simulation.entry):
        operation = hiding.operation
        if hiding.reason is not Reason.ORDER:
            continue
        order = between(operation.start, operation.done, hiding.examples[0])
        place = {instruction: number for number, instruction in enumerate(order)}
        for instruction in order:
            assert all(place[before] < place[instruction] for before in dependencies(instruction))
        assert place[operation.start] < place[hiding.examples[0]] < place[operation.done]


def between(start: Instruction, done: Instruction, work: Instruction) -> list[Instruction]:
    """The order in which what a start and some work need comes first, then both, then the rest."""
    order = list(start.parent.instructions)
    needed = {start, work}
    for instruction in reversed(order):
        if instruction in needed:
            needed.update(dependencies(instruction))
    needed -= {start, work}
    first = [instruction for instruction in order if instruction in needed]
    rest = [i for i in order if i not in needed and i not in (start, work)]
    assert done in rest
    return [*first, start, work, *rest]


@given(programs())
def test_every_exposed_operation_has_a_reason(program: tuple[Module, TableModel]) -> None:
    simulation = simulate(*program, streams())
    for hiding in explain_hiding(simulation.entry):
        assert (hiding.reason is Reason.HIDDEN) == (hiding.operation.exposed == 0)
