"""The orders that the latency-hiding scheduler makes."""

from __future__ import annotations

import random

import pytest
from tests.scheduling.programs import GATHER, SUM, names, schedule, scheduled

from hloopt.diagnostics import PassRefused
from hloopt.ir import Instruction
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module


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


def test_a_delay_priority_has_to_be_a_number() -> None:
    note = ', frontend_attributes={scheduler_hint="force_delay_async",scheduler_delay_priority="x"}'
    body = GATHER.replace("dimensions={0}", "dimensions={0}" + note)
    with pytest.raises(PassRefused, match='scheduler_delay_priority="x" is no integer'):
        schedule(scheduled(body))


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


def test_what_nothing_calls_is_left_as_it_is() -> None:
    dead = f"{SUM}\ndead {{ x = f32[] parameter(0) s = f32[] all-reduce-start(x), to_apply=sum "
    dead += "ROOT d = f32[] all-reduce-done(s) }"
    module = schedule(scheduled(GATHER, dead))
    assert names(module, "dead") == ["x", "s.1", "d"]
