"""Hooks of a target: its rules, resources and edits of the graph."""

from __future__ import annotations

from typing import Any

import pytest
from tests.scheduling.mixed_programs import mixed_program
from tests.scheduling.programs import GATHER, scheduled

from hloopt.analysis.latency import FixedModel
from hloopt.diagnostics import PassRefused
from hloopt.scheduling.config import SchedulerConfig
from hloopt.scheduling.engine.hooks import NO_HOOKS, TargetHooks
from hloopt.scheduling.engine.module_scheduling import ModuleScheduling
from hloopt.scheduling.graph.graph import ScheduleGraph
from hloopt.scheduling.resources.tracker import ResourceTracker
from hloopt.scheduling.rules.chain import chain_of
from hloopt.scheduling.rules.rule import TargetRules, prefer_largest
from hloopt.scheduling.state.state import SchedulingState
from hloopt.text import parse_module

PRODUCTS = """HloModule m, is_scheduled=true
ENTRY e {
  p = f32[8] parameter(0)
  a = f32[8] negate(p)
  b = f32[8] abs(p)
  c = f32[8] cosine(p)
  s = (f32[8], f32[8]) collective-permute-start(p), source_target_pairs={{0,1}}
  d = f32[8] collective-permute-done(s)
  ROOT t = (f32[8], f32[8], f32[8], f32[8]) tuple(a, b, c, d)
}
"""


def order_by(text: str, hooks: TargetHooks = NO_HOOKS, **options: Any) -> list[str]:
    module = parse_module(text)
    config = SchedulerConfig(**options).resolved()
    scheduling = ModuleScheduling.of(module, config, FixedModel(), hooks)
    scheduling.schedule_by_rules(scheduling.computations(), {})
    return [i.name for c in module.computations.values() for i in c.instructions]


def prefers(name: str) -> TargetHooks:
    """Hooks by which an instruction goes as near to the end as a late rule can put it."""

    def is_it(state: SchedulingState, node: int) -> float:
        return state.graph.instructions[node].name == name

    return TargetHooks(rules=TargetRules(late=(prefer_largest("kMine", is_it),)))


@pytest.mark.parametrize("last", ["a", "b", "c"])
def test_a_late_rule_decides_between_equals(last: str) -> None:
    order = [n for n in order_by(PRODUCTS, prefers(last)) if n in "abc"]
    assert order[-1] == last


@pytest.mark.parametrize("preset", ["xla-generic", "xla-gpu"])
@pytest.mark.parametrize("place", ["early", "late"])
@pytest.mark.parametrize("seed", range(6))
def test_a_rule_without_an_opinion_changes_nothing(seed: int, place: str, preset: str) -> None:
    silent = prefer_largest("kNothing", lambda state, node: 0.0)
    hooks = TargetHooks(rules=TargetRules(**{place: (silent,)}))
    text = mixed_program(seed)
    assert order_by(text, hooks, preset=preset) == order_by(text, preset=preset)


def test_rules_stand_where_xla_asks_a_target() -> None:
    early, late = (prefer_largest(name, lambda state, node: 0.0) for name in ("kEarly", "kLate"))
    config = SchedulerConfig(preset="xla-gpu").resolved()
    chain = [rule.reason for rule in chain_of(config, TargetRules((early,), (late,)))]
    own = [chain.index(name) for name in ("kMemoryPeakOverLimit", "kEarly")]
    assert own == sorted(own)
    assert chain[chain.index("kEarly") + 1] == "kPreferComputeForD2DMemcpyOverlap"
    assert chain[chain.index("kUnlockDone") + 1] == "kLate"
    assert chain[chain.index("kLate") + 1] == "kNotValuableForSelectiveOverlap"


def test_an_edit_of_the_graph_adds_edges_that_count() -> None:
    def after_the_done(graph: ScheduleGraph) -> None:
        number = names_of(graph)
        graph.add_edge(number["d"], number["b"], 1.0)

    order = order_by(PRODUCTS, TargetHooks(edit_graph=after_the_done))
    assert order.index("d") < order.index("b")
    assert order_by(PRODUCTS).index("b") < order_by(PRODUCTS).index("d")


def test_edges_that_make_a_cycle_are_refused() -> None:
    def both_ways(graph: ScheduleGraph) -> None:
        number = names_of(graph)
        graph.add_edge(number["a"], number["b"], 1.0)
        graph.add_edge(number["b"], number["a"], 1.0)

    with pytest.raises(PassRefused) as caught:
        order_by(PRODUCTS, TargetHooks(edit_graph=both_ways))
    assert "'%a' cannot be scheduled: edges that the target's hook added make a cycle" in str(
        caught.value
    )


def test_a_target_says_what_is_asynchronous() -> None:
    class NothingIs(ResourceTracker):
        def may_be_asynchronous(self, opcode: object) -> bool:
            return False

    module = parse_module(scheduled(GATHER))
    config = SchedulerConfig().resolved()
    hooks = TargetHooks(tracker=NothingIs)
    assert ModuleScheduling.of(module, config, FixedModel()).computations()
    assert not ModuleScheduling.of(module, config, FixedModel(), hooks).computations()


def names_of(graph: ScheduleGraph) -> dict[str, int]:
    return {instruction.name: node for node, instruction in enumerate(graph.instructions)}
