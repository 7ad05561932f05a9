"""Modules that are deep or wide are scheduled quickly."""

from __future__ import annotations

from collections import Counter

import pytest
from tests.scheduling.programs import schedule, scheduled

from hloopt.analysis.dataflow import Dataflow
from hloopt.analysis.dataflow.dataflow import Use
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.scheduling.config import SchedulerConfig
from hloopt.scheduling.rules import ready_order
from hloopt.scheduling.rules.chain import chain_of
from hloopt.scheduling.rules.rule import Rule, TargetRules
from hloopt.scheduling.rules.rules import schedule_done
from hloopt.scheduling.state.state import SchedulingState
from hloopt.text import parse_module


def test_computations_may_be_nested_deeply() -> None:
    depth = 3000
    calls = "".join(
        f"fn{n} {{ x{n} = f32[8] parameter(0) "
        f"ROOT call{n} = f32[8] call(x{n}), to_apply=fn{n - 1} }}\n"
        for n in range(1, depth)
    )
    inner = """fn0 {
  x0 = f32[8] parameter(0)
  s = (f32[8], f32[8]) collective-permute-start(x0), source_target_pairs={{0,1}}
  ROOT d = f32[8] collective-permute-done(s)
}
"""
    call = f"p = f32[8] parameter(0) ROOT c = f32[8] call(p), to_apply=fn{depth - 1}"
    schedule(scheduled(call, inner + calls), changes=False)


@pytest.mark.parametrize("minds_memory", [False, True])
def test_tens_of_thousands_of_ready_instructions_are_chosen_from_quickly(
    minds_memory: bool,
) -> None:
    """Choices look at few nodes: an order of 20,000 compares far less than 20,000 each."""
    count = 10_000
    lines = ["p = f32[8] parameter(0)"]
    lines += [f"v{n} = f32[{n % 7 + 1},8] broadcast(p), dimensions={{1}}" for n in range(count)]
    lines += [f"n{n} = f32[{n % 7 + 1},8] negate(v{n})" for n in range(count)]
    lines += [
        "s = (f32[8], f32[8]) collective-permute-start(p), source_target_pairs={{0,1}}",
        "d = f32[8] collective-permute-done(s)",
    ]
    shapes = ", ".join(f"f32[{n % 7 + 1},8]" for n in range(count))
    operands = ", ".join(f"n{n}" for n in range(count))
    lines.append(f"ROOT r = ({shapes}, f32[8]) tuple({operands}, d)")
    module = parse_module(scheduled("\n".join(lines)))
    options: dict[str, object] = {"preset": "xla-gpu"}
    if minds_memory:
        options["memory_limit"] = 1 << 16
    narrowed = 0

    def counting(state: SchedulingState, nodes: list[int]) -> list[int]:
        nonlocal narrowed
        narrowed += len(nodes)
        return schedule_done(state, nodes)

    def chain(config: SchedulerConfig, target_rules: TargetRules) -> list[Rule]:
        return [
            rule._replace(narrow=counting) if rule.narrow is schedule_done else rule
            for rule in chain_of(config, target_rules)
        ]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ready_order, "chain_of", chain)
        create_pass("latency-hiding-scheduler", options).run(module, PassContext())
    assert 0 < narrowed < 60 * count


def nested_loops(depth: int) -> str:
    """Loops within each other, with a collective in each that hands on the state."""
    state = "(s32[], f32[4])"
    computations = [
        f"""b{depth} {{
  ROOT t = {state} parameter(0)
}}"""
    ]
    for level in range(depth, 0, -1):
        computations.append(
            f"""c{level} {{
  t = {state} parameter(0)
  i = s32[] get-tuple-element(t), index=0
  n = s32[] constant(3)
  ROOT goes_on = pred[] compare(i, n), direction=LT
}}
b{level - 1} {{
  t = {state} parameter(0)
  w = {state} while(t), condition=c{level}, body=b{level}
  i = s32[] get-tuple-element(w), index=0
  x = f32[4] get-tuple-element(w), index=1
  s = (f32[4], f32[4]) collective-permute-start(x), source_target_pairs={{{{0,1}}}}
  d = f32[4] collective-permute-done(s)
  ROOT r = {state} tuple(i, d)
}}"""
        )
    entry = f"ENTRY e {{\np = {state} parameter(0)\nROOT r = {state} call(p), to_apply=b0\n}}"
    return "\n".join(("HloModule m, is_scheduled=true", *computations, entry))


def test_each_value_of_a_deep_nest_is_looked_up_a_few_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: Counter[int] = Counter()
    uses = Dataflow.uses

    def counted(flow: Dataflow, value: int) -> list[Use]:
        asked[value] += 1
        return uses(flow, value)

    monkeypatch.setattr(Dataflow, "uses", counted)
    module = parse_module(nested_loops(40))
    create_pass("latency-hiding-scheduler").run(module, PassContext())
    assert 0 < max(asked.values()) <= 5
