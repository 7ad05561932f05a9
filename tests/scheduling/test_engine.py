"""The scheduling of whole modules, its refusals, and notes of why latencies stay exposed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from tests.scheduling.mixed_programs import mixed_program, random_times
from tests.scheduling.programs import GATHER, SUM, fresh_state, names, scheduled

from hloopt.analysis.latency import FixedModel, LatencyModel, TableModel
from hloopt.diagnostics import PassRefused
from hloopt.ir import Computation, Instruction
from hloopt.memory.backends import CPU, GPU
from hloopt.memory.schedulers import fragmentation
from hloopt.scheduling.config import SchedulerConfig
from hloopt.scheduling.engine.explain import Decision, Explainer
from hloopt.scheduling.engine.module_scheduling import ModuleScheduling
from hloopt.scheduling.engine.stalls import Stalls
from hloopt.scheduling.rules.ready_order import ReadyOrder
from hloopt.text import parse_module


def scheduling_of(text: str, times: int | None = None, **options: Any) -> ModuleScheduling:
    module = parse_module(text)
    model: LatencyModel = FixedModel()
    if times is not None:
        model = TableModel(random_times(module, times), model)
    return ModuleScheduling.of(module, SchedulerConfig(**options).resolved(), model)


# -- modules ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limit", "peaks", "limits"),
    [
        (100, [101, 101, 101, 101], [100, 90, 81, 72]),
        (100, [101, 100], [100, 90]),
        (100, [100], [100]),
        (100, [99], [100]),
        (15, [16, 16, 16], [15, 13, 11, 9]),
    ],
)
def test_reruns_aim_at_nine_tenths_of_what_the_one_before_did(
    limit: int, peaks: list[int], limits: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They end where the peak is within the limit that was given."""
    scheduling = scheduling_of(scheduled(GATHER), memory_limit=limit, rerun=3)
    asked: list[int] = []
    plain = ModuleScheduling.schedule

    def noting(self: ModuleScheduling, chosen: Any, memory_limit: int, preferences: Any) -> None:
        asked.append(memory_limit)
        plain(self, chosen, memory_limit, preferences)

    monkeypatch.setattr(ModuleScheduling, "schedule", noting)
    monkeypatch.setattr(ModuleScheduling, "peak", lambda _: peaks[len(asked) - 1])
    scheduling.schedule_by_rules(scheduling.computations(), {})
    assert asked == limits


@pytest.mark.parametrize(("preset", "backend"), [("xla-generic", CPU), ("xla-gpu", GPU)])
def test_fragmentation_counts_in_the_peak_where_asked_for(preset: Any, backend: Any) -> None:
    text = mixed_program(3)
    plain = scheduling_of(text, preset=preset)
    assert plain.peak() == plain.scheduler.life.peak
    found = scheduling_of(text, preset=preset, estimate_fragmentation_size=True)
    extra = fragmentation(found.scheduler.hazards.buffers, backend)
    assert found.peak() == plain.peak() + extra


CALLEES = f"""{SUM}
quiet {{ quiet.x = f32[8] parameter(0) ROOT quiet.y = f32[8] negate(quiet.x) }}
hinted {{ h.x = f32[8] parameter(0)
  ROOT h.y = f32[8] custom-call(h.x), custom_call_target="t", HINT }}
inner {{ i.x = f32[8] parameter(0)
  i.s = f32[8] all-reduce-start(i.x), to_apply=sum
  ROOT i.d = f32[8] all-reduce-done(i.s) }}
outer {{ o.x = f32[8] parameter(0)
  o.c = f32[8] call(o.x), to_apply=inner
  o.s = (f32[8], f32[8], u32[]) copy-start(o.c)
  ROOT o.d = f32[8] copy-done(o.s) }}
dead {{ d.x = f32[8] parameter(0)
  d.s = (f32[8], f32[8], u32[]) copy-start(d.x)
  ROOT d.d = f32[8] copy-done(d.s) }}
"""


@pytest.mark.parametrize(
    ("hint", "chosen"),
    [("force_delay", "hinted inner outer e"), ("force_early", "inner outer e")],
)
def test_what_is_scheduled_has_operations_or_a_hint_callees_first(hint: str, chosen: str) -> None:
    body = """p = f32[8] parameter(0)
  q = f32[8] call(p), to_apply=quiet
  h = f32[8] call(p), to_apply=hinted
  o = f32[8] call(p), to_apply=outer
  s = (f32[8], f32[8], u32[]) copy-start(p)
  d = f32[8] copy-done(s)
  ROOT r = (f32[8], f32[8], f32[8], f32[8]) tuple(q, h, o, d)"""
    callees = CALLEES.replace("HINT", f'frontend_attributes={{scheduler_hint="{hint}"}}')
    scheduling = scheduling_of(scheduled(body, callees))
    assert [c.name for c in scheduling.computations()] == chosen.split()
    orders = {c.name: [i.name for i in order] for c, order in scheduling.orders().items()}
    assert orders["inner"] == ["i.x", "i.s", "i.d"]
    assert orders.keys() == {"sum", "quiet", "hinted", "inner", "outer", "dead", "e"}


def test_what_runs_in_fusions_only_has_no_values() -> None:
    callees = """both { both.a = f32[] parameter(0) both.b = f32[] parameter(1)
  ROOT both.c = f32[] add(both.a, both.b) }
inside { inside.a = f32[] parameter(0) inside.b = f32[] parameter(1)
  ROOT inside.c = f32[] add(inside.a, inside.b) }
fused { fused.p = f32[8] parameter(0)
  fused.z = f32[] constant(0)
  fused.r = f32[] reduce(fused.p, fused.z), dimensions={0}, to_apply=inside
  fused.s = f32[] reduce(fused.p, fused.z), dimensions={0}, to_apply=both
  ROOT fused.t = f32[] add(fused.r, fused.s) }
"""
    body = """p = f32[8] parameter(0)
  f = f32[] fusion(p), kind=kLoop, calls=fused
  ROOT r = f32[] reduce(p, f), dimensions={0}, to_apply=both"""
    scheduling = scheduling_of(scheduled(body, callees))
    covered = scheduling.scheduler.hazards.flow.scope.orders
    assert {computation.name for computation in covered} == {"both", "e"}


@pytest.mark.parametrize("seed", range(4))
def test_with_a_preference_for_each_place_an_order_is_repeated(seed: int) -> None:
    text = re.sub(r'scheduler_hint="\w+"', 'other="1"', mixed_program(seed))
    wide = {f"{kind}_overlap_limit": 30 for kind in ("collective_permute", "copy", "all_gather")}
    wide |= {f"{kind}_overlap_limit": 30 for kind in ("all_reduce", "all_to_all", "send_recv")}
    scheduling = scheduling_of(text, seed, **wide)
    before = scheduling.orders()
    places = {i: float(n) for order in before.values() for n, i in enumerate(order)}
    scheduling.schedule_by_rules(scheduling.computations(), places)
    assert scheduling.orders() == before
    plain = scheduling_of(text, seed, **wide)
    plain.schedule_by_rules(plain.computations(), {})
    assert names(plain.module, "main") != names(scheduling.module, "main")


# -- refusals --------------------------------------------------------------------------------------

GATHERS = """p = f32[8] parameter(0)
  a = (f32[8], f32[16]) all-gather-start(p), dimensions={0}
  b = (f32[8], f32[16]) all-gather-start(p), dimensions={0}
  c = (f32[8], f32[16]) all-gather-start(p), dimensions={0}
  a.d = f32[16] all-gather-done(a), control-predecessors={b, c}
  b.d = f32[16] all-gather-done(b), control-predecessors={a, c}
  c.d = f32[16] all-gather-done(c), control-predecessors={a, b}
  ROOT r = (f32[16], f32[16], f32[16]) tuple(a.d, b.d, c.d)"""


def test_operations_that_have_to_overlap_more_than_they_may_are_refused() -> None:
    with pytest.raises(PassRefused) as caught:
        order_of(GATHERS, all_gather_overlap_limit=1)
    assert caught.value.message == (
        "FindAndExtractBestNodeAvailable failed to find a node to schedule, skipped nodes: "
        "a.d: Skipped due to kExceedsOverlapLimit.; b.d: Skipped due to kExceedsOverlapLimit.; "
    )
    assert caught.value.help == (
        "%a.d needs 1 more of kAllGather than is left of 1: "
        "give the pass all_gather_overlap_limit=2"
    )
    with pytest.raises(PassRefused) as caught:
        order_of(GATHERS, all_gather_overlap_limit=2)
    assert "left of 2: give the pass all_gather_overlap_limit=3" in str(caught.value.help)
    assert set(order_of(GATHERS, all_gather_overlap_limit=3)[1:4]) == {"a", "b", "c"}


def order_of(body: str, **options: Any) -> list[str]:
    scheduling = scheduling_of(scheduled(body), **options)
    return [i.name for i in scheduling.scheduler.order(scheduling.module.entry)]


@pytest.mark.parametrize("is_start_in_it", [False, True])
def test_top_down_a_start_stands_in_a_group_for_its_done(is_start_in_it: bool) -> None:
    note = ', frontend_attributes={_scheduling_group_id="1"}'
    callee = """inner {
  q = f32[8] parameter(0)
  ROOT n = f32[8] custom-call(q), custom_call_target="f"
}"""
    body = f"""p = f32[8] parameter(0)
  s = ((f32[8]), f32[8], u32[]) async-start(p), calls=inner{note if is_start_in_it else ""}
  x = f32[8] negate(p)
  y = f32[8] exponential(x){note}
  d = f32[8] async-done(s){note}
  z = f32[8] sine(x)
  ROOT r = (f32[8], f32[8], f32[8]) tuple(d, y, z)"""
    scheduling = scheduling_of(scheduled(body, callee), top_down_scheduling=True)
    order = [i.name for i in scheduling.scheduler.order(scheduling.module.entry)]
    assert order == ["p", "x", "y", "s", *(("d", "z") if is_start_in_it else ("z", "d")), "r"]


def test_a_group_is_refused_with_all_that_it_lacks() -> None:
    note = 'frontend_attributes={_scheduling_group_id="7"}'
    body = f"""p = f32[8] parameter(0)
  a = (f32[8], f32[16]) all-gather-start(p), dimensions={{0}}, {note}
  b = (f32[8], f32[8], u32[]) copy-start(p), {note}
  a.d = f32[16] all-gather-done(a), {note}
  b.d = f32[8] copy-done(b), {note}
  ROOT r = (f32[16], f32[8]) tuple(a.d, b.d)"""
    with pytest.raises(PassRefused) as caught:
        order_of(body, all_gather_overlap_limit=0, copy_overlap_limit=0)
    assert caught.value.message == (
        "There is a scheduling group which exceeds the overlap limits. Annotation id: 7. "
        "It needs 1 kAllGather resources, but the limit is 0. "
        "It needs 1 kCopy resources, but the limit is 0. "
    )
    with pytest.raises(PassRefused) as caught:
        order_of(body, copy_overlap_limit=0)
    assert "kAllGather" not in caught.value.message


# -- notes -----------------------------------------------------------------------------------------

CONFIGS: tuple[dict[str, Any], ...] = (
    {"schedule_send_recvs": True},
    {"preset": "xla-gpu", "parallel_collective_overlap_limit": 2},
    {"memory_limit": 200, "depth_based_memory_pressure_reduction": True},
    {"top_down_scheduling": True},
    {"resource_sharing": True},  # then all ready nodes are compared
)
_MEMORY = {
    *("kNoIncreaseMemoryOverLimit", "kDepthOverLimit"),
    *("kDecreaseMemoryOverLimit", "kMemoryPeakOverLimit"),
}


def explained(
    seed: int, options: dict[str, Any]
) -> Iterator[tuple[ModuleScheduling, Computation, list[Decision], dict[Instruction, str]]]:
    """Each computation with the decisions about it and the reasons for exposed latencies."""
    text = mixed_program(seed, grouped=seed % 2 == 0)
    scheduling = scheduling_of(text, seed, **options)
    scheduler = scheduling.scheduler
    for computation in scheduling.computations():
        explainer = scheduler.explainer = Explainer(lambda _: True)
        stalls = scheduler.stalls = Stalls()
        computation.reorder(scheduler.order(computation))
        scheduler.tracker.forget(computation)
        yield scheduling, computation, [*explainer.decisions.values()], stalls.reasons


@pytest.mark.parametrize("options", CONFIGS, ids=str)
@pytest.mark.parametrize("seed", [0, 1, 2, 5])
def test_what_closes_an_operation_too_early_has_a_reason(
    seed: int, options: dict[str, Any]
) -> None:
    for scheduling, _, decisions, reasons in explained(seed, options):
        tracker = scheduling.scheduler.tracker
        top_down = bool(options.get("top_down_scheduling"))
        closes = tracker.is_done if top_down else tracker.is_start
        early = {}
        for decision in decisions:
            own = [r for r in decision.ready if r.instruction is decision.instruction]
            if closes(decision.instruction) and own and own[0].ready_time > decision.now:
                early[decision.instruction] = decision
        assert reasons.keys() == early.keys()
        for instruction, reason in reasons.items():
            assert_reason(reason, early[instruction], top_down=top_down)


def assert_reason(reason: str, decision: Decision, *, top_down: bool) -> None:
    if decision.group is not None:
        assert reason == f"it is scheduled with its group {decision.group}"
        return
    time = {r.instruction.name: r.ready_time for r in decision.ready}
    own = time[decision.instruction.name]
    free = {r.instruction.name for r in decision.ready if not r.obstacle}
    blocked = {r.instruction.name for r in decision.ready if r.obstacle == "kExceedsOverlapLimit"}
    if any(time[name] < own for name in free):
        found = re.fullmatch(r"(.+) decided against %(\S+) \((\w+)\)", reason)
        assert found is not None
        what, other, rule = found.groups()
        assert other in free
        assert time[other] < own
        assert what == ("the memory limit" if rule in _MEMORY else "another rule")
    elif blocked:
        found = re.fullmatch(r"the overlap limit of (\w+) \((\d+)\) holds %(\S+) back", reason)
        assert found is not None
        assert found[3] in blocked
    else:
        side = "after" if top_down else "before"
        start = f"by dependencies all that was left has to come {side} it"
        overwrites = r", %\S+ because it reads what this writes over"
        assert re.fullmatch(f"{start}({overwrites})?", reason)


@pytest.mark.parametrize("options", CONFIGS, ids=str)
@pytest.mark.parametrize("seed", [1, 3])
def test_blocked_are_some_of_those_that_lack_a_resource(seed: int, options: dict[str, Any]) -> None:
    for scheduling, computation, decisions, _ in explained(seed, options):
        state = fresh_state(scheduling, computation)
        order = ReadyOrder(state)
        state.begin()
        for decision in decisions:
            instructions = state.graph.instructions
            lacking = {
                node for node in state.ready.nodes if state.obstacle(node) == "kExceedsOverlapLimit"
            }
            found = order.blocked()
            assert {*found} <= lacking
            assert bool(found) == bool(lacking)
            assert {*order.leaders()} <= {*order.candidates()}
            number = {i.name: n for n, i in enumerate(instructions)}
            state.take(number[decision.instruction.name])


@pytest.mark.parametrize("seed", range(4))
def test_without_peers_every_choice_between_several_counts_once(seed: int) -> None:
    scheduling = scheduling_of(mixed_program(seed), seed, resource_sharing=True)
    explainer = scheduling.scheduler.explainer = Explainer(lambda _: True)
    scheduling.schedule_by_rules(scheduling.computations(), {})
    several = [d for d in explainer.decisions.values() if d.comparisons]
    assert scheduling.scheduler.decisions.total() == len(several)


def test_a_decision_won_is_one_over_each_worse_candidate_in_turn() -> None:
    for _, _, decisions, _ in explained(1, {}):
        for decision in decisions:
            won = [c for c in decision.comparisons if c.better is decision.instruction]
            assert decision.decided == tuple(won)
            if decision.comparisons:
                assert decision.comparisons[-1] in won
