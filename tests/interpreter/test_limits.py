"""Bounds on steps, memory and devices: a message instead of a machine that hangs."""

from __future__ import annotations

import numpy as np
import pytest
from tests.interpreter.several_devices import entry, run_on

from hloopt.equivalence import RunSettings
from hloopt.interpreter.errors import RunError
from hloopt.interpreter.limits import Limits
from hloopt.interpreter.machine import devices_of, run_module
from hloopt.ir.attributes.values.replica_groups import MOST_DEVICES
from hloopt.ir.devices.device_counts import device_counts
from hloopt.ir.module import Module
from hloopt.text import parse_module

COUNT = """HloModule count

more {
  x = s32[] parameter(0)
  end = s32[] constant(10)
  ROOT t = pred[] compare(x, end), direction=LT
}

next {
  x = s32[] parameter(0)
  one = s32[] constant(1)
  ROOT y = s32[] add(x, one)
}

ENTRY e {
  p = s32[] parameter(0)
  ROOT w = s32[] while(p), condition=more, body=next
}
"""


def steps_of(text: str, devices: int = 1, steps: int | None = None) -> int:
    """The number of steps a module of one integer takes from 0 on."""
    counted = Limits(steps)
    arguments = [[np.int32(0)]] * devices
    run_module(parse_module(text), arguments, devices=devices_of(devices, 1), limits=counted)
    return counted.done


def test_steps_are_instructions_run_over_all_devices() -> None:
    """The loop itself, 10 times a step of its own and the body, 11 times the condition."""
    assert steps_of(COUNT) == 1 + 10 * (1 + 2) + 11 * 2
    assert steps_of(COUNT, devices=3) == 3 * 53


def test_the_last_step_allowed_is_run_and_no_more() -> None:
    assert steps_of(COUNT, steps=53) == 53
    with pytest.raises(RunError, match="stopped after 52 steps") as caught:
        steps_of(COUNT, steps=52)
    assert caught.value.code == "HLO503"
    assert "--max-steps" in (caught.value.help or "")


def test_an_endless_loop_ends() -> None:
    text = COUNT.replace("direction=LT", "direction=EQ").replace("(x, end)", "(x, x)")
    with pytest.raises(RunError, match="stopped after 1,000 steps"):
        steps_of(text, steps=1000)


def test_an_endless_reducer_ends() -> None:
    module = parse_module(
        """HloModule m
        again { t = f32[] parameter(0)  ROOT n = f32[] negate(t) }
        ever { t = f32[] parameter(0)  ROOT c = pred[] constant(true) }
        stuck { a = f32[] parameter(0)  b = f32[] parameter(1)
          s = f32[] add(a, b)  ROOT w = f32[] while(s), condition=ever, body=again }
        ENTRY e { p = f32[4] parameter(0)  z = f32[] constant(0)
          ROOT r = f32[] reduce(p, z), dimensions={0}, to_apply=stuck }"""
    )
    with pytest.raises(RunError, match="stopped after 100 steps"):
        run_module(module, [[np.ones(4, np.float32)]], limits=Limits(steps=100))


def test_progress_is_told_now_and_then() -> None:
    told: list[int] = []
    limits = Limits(on_steps=told.append)
    text = COUNT.replace("constant(10)", "constant(1000)")
    run_module(parse_module(text), [[np.int32(0)]], limits=limits)
    assert told == [1000, 2000, 3000, 4000, 5000]


CHAIN = entry(
    "p = f32[] parameter(0)",
    "a = f32[1000] broadcast(p), dimensions={}",
    "b = f32[1000] negate(a)",
    "c = f32[1000] negate(b)",
    "ROOT d = f32[1000] negate(c)",
)


@pytest.mark.parametrize(("memory", "fits"), [(8000, True), (7999, False)])
def test_memory_counts_values_until_their_last_use(memory: int, fits: bool) -> None:
    limits = Limits(memory=memory)
    if fits:
        run_module(parse_module(CHAIN), [[np.float32(0)]], limits=limits)
        assert limits.held == 0
    else:
        with pytest.raises(
            RunError, match="values would take 8,000 bytes here, the limit is 7,999"
        ):
            run_module(parse_module(CHAIN), [[np.float32(0)]], limits=limits)


def run_made_up(module: Module, counts: tuple[int, int] = (1, 1)) -> None:
    settings = RunSettings(counts=counts)
    settings.run_made_up(settings.place(module), 0)


@pytest.mark.parametrize(
    "line",
    [
        "ROOT r = f32[4000000000,4000000000] broadcast(p), dimensions={}",
        "ROOT r = s64[4611686018427387904] iota(), iota_dimension=0",
        "ROOT r = f32[4000000000,4000000000] constant(5)",
        "ROOT r = f32[4000000000,4000000000] constant({...})",
        "ROOT r = f32[1000000000000] pad(q, p), padding=0_999999999999",
        'ROOT r = f32[4000000000,4000000000] custom-call(p), custom_call_target="who"',
    ],
)
def test_what_never_fits_is_not_tried(line: str) -> None:
    text = entry("p = f32[] parameter(0)", "q = f32[1] reshape(p)", line)
    module = parse_module(text)
    with pytest.raises(RunError, match="values would take") as caught:
        run_made_up(module)
    assert caught.value.code == "HLO503"


def test_inputs_that_never_fit_are_not_made() -> None:
    text = entry("p = f32[1000000,1000] parameter(0)", "ROOT r = f32[] constant(0)")
    module = parse_module(text)
    with pytest.raises(RunError, match="%p: the inputs would take 12,000,000,000 bytes"):
        run_made_up(module, (3, 1))


@pytest.mark.parametrize("groups", [
    "[1,4611686018427387904]<=[4611686018427387904]",
    "[2147483648,2147483648]<=[2147483648,2147483648]T(1,0)",
])  # fmt: skip
def test_groups_that_are_a_formula_are_not_written_out(groups: str) -> None:
    line = f"ROOT r = f32[] all-reduce(p), to_apply=sum, replica_groups={groups}"
    text = entry("p = f32[] parameter(0)", line)
    replicas, partitions = device_counts(parse_module(text))
    assert (replicas, partitions) == (1 << 62, 1)
    with pytest.raises(RunError, match="4,611,686,018,427,387,904 devices"):
        devices_of(replicas, partitions)
    with pytest.raises(RunError, match="and the program runs on 2"):
        run_on(2, 1, text, [[np.float32(0)]] * 2)


def test_as_many_devices_as_allowed() -> None:
    assert len(devices_of(MOST_DEVICES // 2, 2)) == MOST_DEVICES
    with pytest.raises(RunError, match="65,537 devices, 65,536 is the most"):
        devices_of(MOST_DEVICES + 1, 1)
