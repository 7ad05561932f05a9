"""Corners of the latency-hiding scheduler."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from functools import partial
from pathlib import Path

import pytest
from tests.passes.checked_run import run_checked

from hloopt.analysis.dataflow import Dataflow
from hloopt.analysis.dataflow.dataflow import Use
from hloopt.analysis.latency import FixedModel
from hloopt.analysis.latency.statistics import schedule_statistics
from hloopt.diagnostics import PassRefused, PipelineError
from hloopt.ir import Instruction, Module
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.passes.scheduling.latency_hiding_scheduler import rules
from hloopt.passes.scheduling.latency_hiding_scheduler.config import SchedulerConfig
from hloopt.passes.scheduling.latency_hiding_scheduler.explain import Explainer
from hloopt.passes.scheduling.latency_hiding_scheduler.rules import schedule_done
from hloopt.passes.scheduling.latency_hiding_scheduler.schedule_module import ModuleScheduling
from hloopt.passes.scheduling.latency_hiding_scheduler.state import SchedulingState
from hloopt.text import parse_module

schedule = partial(run_checked, "latency-hiding-scheduler")


def scheduled(body: str, more: str = "") -> str:
    return f"HloModule m, is_scheduled=true\n{more}\nENTRY e {{\n{body}\n}}"


def names(module: Module, computation: str = "e") -> list[str]:
    return [i.name for i in module.computations[computation].instructions]


GATHER = """
  p = f32[8] parameter(0)
  q = f32[16] parameter(1)
  s = (f32[8], f32[16]) all-gather-start(p), replica_groups={}, dimensions={0}
  d = f32[16] all-gather-done(s)
  a = f32[16] negate(q)
  b = f32[16] negate(a)
  ROOT r = f32[16] add(d, b)
"""


def test_work_moves_between_start_and_done() -> None:
    found = names(schedule(scheduled(GATHER)))
    assert found.index("s") < found.index("a") < found.index("b") < found.index("d")


def test_the_order_does_not_depend_on_names_or_hashes() -> None:
    orders = {tuple(names(schedule(scheduled(GATHER)))) for _ in range(3)}
    assert len(orders) == 1


def test_control_dependencies_are_kept() -> None:
    text = scheduled(GATHER.replace("negate(q)", "negate(q), control-predecessors={d}"))
    found = names(schedule(text))
    assert found.index("d") < found.index("a")


def test_readers_come_before_what_overwrites() -> None:
    reducer = "add { x = f32[] parameter(0) y = f32[] parameter(1) ROOT z = f32[] add(x, y) }"
    module = parse_module(
        scheduled(
            """
  p = f32[8] parameter(0)
  a = f32[8] negate(p)
  b = f32[8] sine(a)
  s = f32[8] all-reduce-start(a), replica_groups={}, to_apply=add
  d = f32[8] all-reduce-done(s)
  ROOT r = f32[8] add(b, d)""",
            reducer,
        )
    )
    context = PassContext("latency-hiding-scheduler")
    assert not create_pass("latency-hiding-scheduler").run(module, context)
    found = names(module)
    assert found.index("b") < found.index("s")  # which has a's memory in flux
    [remark] = [r for r in context.remarks if r.instruction == "s"]
    assert remark.reason.endswith(
        "by dependencies all that was left has to come before it, %b because it reads what this "
        "writes over"
    )


def test_a_cost_table_says_what_hides_what(tmp_path: Path) -> None:
    table = tmp_path / "costs.json"
    body = """
  p = f32[8] parameter(0)
  q = f32[16] parameter(1)
  s = (f32[8], f32[16]) all-gather-start(p), replica_groups={}, dimensions={0}
  d = f32[16] all-gather-done(s)
  a = f32[16] negate(q)
  ROOT r = f32[16] add(d, a)
"""
    table.write_text(json.dumps({"node": {"a": 50}, "latency": {"s": 40}}))
    run = partial(schedule, cost_model="table", cost_table=str(table))
    found = names(run(scheduled(body)))
    assert found.index("s") < found.index("a") < found.index("d")
    table.write_text('{"node": {"a": -1}}')
    with pytest.raises(PipelineError, match="0 or more"):
        run(scheduled(body))
    table.write_text("[]")
    with pytest.raises(PipelineError, match="no cost table"):
        run(scheduled(body))


def test_what_has_no_cost_is_reported(tmp_path: Path) -> None:
    table = tmp_path / "costs.json"
    table.write_text('{"node": {}}')
    context = PassContext("latency-hiding-scheduler")
    options = {"cost_model": "table", "cost_table": str(table)}
    module = parse_module(scheduled(GATHER))
    create_pass("latency-hiding-scheduler", options).run(module, context)
    assert context.statistics["instructions of unknown time"] == 7
    assert any("does not know its time" in remark.reason for remark in context.remarks)


def test_a_file_that_nothing_reads_is_refused(tmp_path: Path) -> None:
    table = tmp_path / "costs.json"
    table.write_text('{"node": {}}')
    with pytest.raises(PipelineError, match="'fixed' does not read the cost_table"):
        schedule(scheduled(GATHER), cost_model="fixed", cost_table=str(table))


def test_a_profile_says_what_hides_what(tmp_path: Path) -> None:
    profile = tmp_path / "pgle.pbtxt"
    profile.write_text('costs { name: "s" cost_us: 40 }')
    context = PassContext("latency-hiding-scheduler")
    options = {"preset": "xla-gpu", "profile": str(profile)}
    module = parse_module(scheduled(GATHER))
    create_pass("latency-hiding-scheduler", options).run(module, context)
    assert context.statistics["instructions of unknown time"] >= 1
    with pytest.raises(PassRefused, match=r"Found \d+ missing instructions") as caught:
        schedule(
            scheduled(GATHER),
            preset="xla-gpu",
            profile=str(profile),
            pgle_accuracy_checker="error",
        )
    assert "the profile does not name %" in str(caught.value.help)


def test_the_speed_of_light_of_a_target() -> None:
    schedule(scheduled(GATHER), preset="xla-gpu", target="h100_sxm")
    with pytest.raises(PipelineError, match="knows too little of the target cpu"):
        schedule(scheduled(GATHER), cost_model="sol", target="cpu")
    with pytest.raises(PipelineError, match="no target 'h10'") as caught:
        schedule(scheduled(GATHER), target="h10")
    assert caught.value.code == "HLO014"


def test_a_delay_priority_has_to_be_a_number() -> None:
    note = ', frontend_attributes={scheduler_hint="force_delay_async",scheduler_delay_priority="x"}'
    body = GATHER.replace("dimensions={0}", "dimensions={0}" + note)
    with pytest.raises(PassRefused, match='scheduler_delay_priority="x" is no integer'):
        schedule(scheduled(body))


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


@pytest.mark.parametrize("seed", range(5))
def test_random_graphs_give_valid_orders(seed: int) -> None:
    numbers = random.Random(seed)
    lines = ["p0 = f32[8] parameter(0)"]
    values = ["p0"]
    for n in range(1, 60):
        a, b = numbers.choice(values), numbers.choice(values)
        if numbers.random() < 0.3:
            pairs = "source_target_pairs={{0,1}}"
            lines.append(f"start{n} = (f32[8], f32[8]) collective-permute-start({a}), {pairs}")
            lines.append(f"v{n} = f32[8] collective-permute-done(start{n})")
        else:
            lines.append(f"v{n} = f32[8] add({a}, {b})")
        values.append(f"v{n}")
    lines.append(f"ROOT t = ({', '.join(['f32[8]'] * 5)}) tuple({', '.join(values[-5:])})")
    for top_down in (False, True):
        for aggressive in (False, True):
            module = parse_module(scheduled("\n".join(lines)))
            options = {
                "top_down_scheduling": top_down,
                "aggressive_scheduling_policies": aggressive,
                "collective_permute_overlap_limit": 30,
            }
            create_pass("latency-hiding-scheduler", options).run(module, PassContext())
            done: set[Instruction] = set()
            for instruction in module.entry.instructions:
                assert done.issuperset(instruction.operands)
                done.add(instruction)


def test_statistics_count_what_dones_wait_for() -> None:
    module = parse_module(scheduled(GATHER))
    config = SchedulerConfig().resolved()
    tracker = ModuleScheduling.of(module, config, FixedModel()).scheduler.tracker
    order = list(module.entry.instructions)
    found = schedule_statistics(order, FixedModel(), tracker.is_start, tracker.is_done)
    assert found.total_wasted == 4999  # the done follows at once, and takes 1
    assert found.total_cycles == 7 + 4999
    assert {str(kind) for kind in found.wasted} == {"all-gather"}


SUM = "sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }"


def test_synchronous_pairs_use_the_stream_of_collectives() -> None:
    """XLA:GPU's answer: the pair %u, %e does not go between %t and %d."""
    fused = "f { x = f32[64] parameter(0) ROOT y = f32[64] sine(x) }"
    body = """
  z = f32[64] parameter(2)
  p = f32[64] parameter(0)
  t = f32[64] all-reduce-start(p), to_apply=sum
  q = f32[64] parameter(1)
  g = f32[64] fusion(z), kind=kLoop, calls=f
  u = f32[64] all-reduce-start(g), to_apply=sum,
    backend_config={"collective_backend_config":{"is_sync":true}}
  e = f32[64] all-reduce-done(u)
  h = f32[64] fusion(e), kind=kLoop, calls=k
  d = f32[64] all-reduce-done(t)
  ROOT r = (f32[64], f32[64]) tuple(d, h)
"""
    more = f"{SUM}\n{fused}\n{fused.replace('f {', 'k {')}"
    found = names(schedule(scheduled(body, more), preset="xla-gpu"))
    assert found == ["z", "g", "u", "e", "p", "t", "h", "d", "r", "q"]


def test_calls_on_the_same_thread_use_a_stream_for_a_while() -> None:
    """XLA:GPU's answer: three operations on two streams, each as long as a collective."""
    more = """
f { x = f32[64] parameter(0) ROOT o = f32[64] sine(x) }
c1 { x = f32[64] parameter(0) ROOT o = f32[64] call(x), to_apply=f }
c2 { x = f32[64] parameter(0) ROOT o = f32[64] call(x), to_apply=f }
c3 { x = f32[64] parameter(0) ROOT o = f32[64] call(x), to_apply=f }
"""
    body = """
  z = f32[64] parameter(2)
  start2 = ((f32[64]), f32[64]) async-start(z), calls=c2
  y = f32[64] parameter(1)
  start1 = ((f32[64]), f32[64]) async-start(y), calls=c1
  w = f32[64] parameter(3)
  start3 = ((f32[64]), f32[64]) async-start(w), calls=c3
  p = f32[64] parameter(0)
  cs = (f32[64]{0:S(5)}, f32[64], u32[]) copy-start(p)
  cd = f32[64]{0:S(5)} copy-done(cs)
  m = f32[64] multiply(y, z)
  d3 = f32[64] async-done(start3)
  d2 = f32[64] async-done(start2)
  d1 = f32[64] async-done(start1)
  ROOT g = (f32[64]{0:S(5)}, f32[64], f32[64], f32[64], f32[64]) tuple(cd, d1, d2, d3, m)
"""
    found = names(schedule(scheduled(body, more), preset="xla-gpu"))
    expected = [
        "w",
        "start3",
        "z",
        "start2",
        "d3",
        "y",
        "start1",
        "d2",
        "p",
        "cs",
        "m",
        "d1",
        "cd",
        "g",
    ]
    assert found == expected


def test_what_nothing_calls_is_left_as_it_is() -> None:
    dead = f"{SUM}\ndead {{ x = f32[] parameter(0) s = f32[] all-reduce-start(x), to_apply=sum "
    dead += "ROOT d = f32[] all-reduce-done(s) }"
    module = schedule(scheduled(GATHER, dead))
    assert names(module, "dead") == ["x", "s.1", "d"]


def test_copies_of_slices_count_as_computations_where_they_have_no_stream() -> None:
    sliced = "dynamic-slice(array, index), dynamic_slice_sizes={4}"
    config = 'backend_config={"dynamic_slice_config":{"byte_offset":"0","byte_stride":"0"}}'
    more = body = ""
    for n in range(2):
        more += f"""
slice{n} {{
  array = f32[8]{{0:S(5)}} parameter(0)
  index = s32[] parameter(1)
  ROOT s{n}.root = f32[4] {sliced}, {config}
}}
wrapper{n} {{
  w.array = f32[8]{{0:S(5)}} parameter(0)
  w.index = s32[] parameter(1)
  ROOT f{n} = f32[4] fusion(w.array, w.index), kind=kLoop, calls=slice{n}
}}"""
        body += f"""
  start{n} = ((f32[8]{{0:S(5)}}, s32[]), f32[4], u32[]) async-start(a, i), calls=wrapper{n}
  done{n} = f32[4] async-done(start{n})"""
    text = scheduled(
        f"a = f32[8]{{0:S(5)}} parameter(0) i = s32[] parameter(1) {body}\n"
        "ROOT r = f32[4] add(done0, done1)",
        more,
    )

    def overlap(*, separate: bool) -> bool:
        module = parse_module(text)
        options = {
            "preset": "xla-gpu",
            "parallel_async_compute_limit": 1,
            "separate_memcpy_stream": separate,
        }
        create_pass("latency-hiding-scheduler", options).run(module, PassContext())
        order = names(module)
        starts = [order.index(f"start{n}") for n in range(2)]
        return max(starts) < min(order.index(f"done{n}") for n in range(2))

    assert overlap(separate=True)
    assert not overlap(separate=False)


def test_explanations_say_what_was_ready_and_which_rule_decided() -> None:
    module = parse_module(scheduled(GATHER))
    config = SchedulerConfig().resolved()
    scheduling = ModuleScheduling.of(module, config, FixedModel())
    explainer = scheduling.scheduler.explainer = Explainer(lambda i: i.name in ("d", "b"))
    scheduling.run(PassContext())
    first, second = explainer.decisions.values()
    assert first.instruction.name == "d"
    assert {node.instruction.name for node in first.ready} == {"d", "b"}
    assert [(c.better.name, c.worse.name, c.rule) for c in first.comparisons] == [
        ("d", "b", "kScheduleDone")
    ]
    assert first.step == 1
    assert second.sentence() == "step 2, at 2 cycles: of 2 candidates better than %s by kLessStall"
    assert explainer.decisions[first.instruction] is first


def test_exposed_latency_has_a_reason() -> None:
    def remarks(body: str, **options: object) -> dict[str, str]:
        context = PassContext("latency-hiding-scheduler")
        create_pass("latency-hiding-scheduler", options).run(parse_module(scheduled(body)), context)
        return {remark.instruction: f"{remark.kind}: {remark.reason}" for remark in context.remarks}

    assert remarks(GATHER)["s"].startswith("missed: 4,996 of 5,000 cycles are exposed: by depend")
    second = (
        GATHER.replace("ROOT r = f32[16] add(d, b)", "")
        + """
  s.2 = (f32[8], f32[16]) all-gather-start(p), replica_groups={}, dimensions={0}
  d.2 = f32[16] all-gather-done(s.2)
  ROOT r = (f32[16], f32[16], f32[16]) tuple(d, d.2, b)"""
    )
    assert "the overlap limit of kAllGather (1) holds %d back" in remarks(second)["s.2"]
    light = remarks(GATHER, target="h100_sxm")["s"]
    assert re.match(r"missed: [\d.]+ of [\d.]+ us are exposed: by", light)
    copied = """p = f32[8] parameter(0) s = (f32[8], f32[8], u32[]) copy-start(p)
      ROOT d = f32[8] copy-done(s)"""
    assert "5,000 cycles" in remarks(copied)["s"]
    guessed = remarks(copied, target="h100_sxm")["s"]
    assert "us, a guess, are" in guessed
    assert "5,000" not in guessed


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

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rules, "schedule_done", counting)
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
