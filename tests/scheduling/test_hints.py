"""The place that programs ask for, and that XLA:GPU gives transfers of pipelines."""

from __future__ import annotations

from typing import Any

import pytest

from hloopt.ir import Instruction, Module
from hloopt.scheduling.config import SchedulerConfig
from hloopt.scheduling.resources.gpu_tracker import GpuResourceTracker
from hloopt.scheduling.resources.hints import Hints, asks_for_delay, keeps_order
from hloopt.scheduling.resources.tracker import ResourceTracker
from hloopt.text import parse_module

EARLY, NONE = Hints(force_early=True), Hints()


def delayed(priority: int = 0) -> Hints:
    return Hints(force_delay=True, priority=priority)


def attributes(**notes: str) -> str:
    written = ",".join(f'{name}="{value}"' for name, value in notes.items())
    return f", frontend_attributes={{{written}}}" if notes else ""


def module(notes: str, more: str = "") -> Module:
    """An instruction of each kind that hints are told apart for, all with the same notes."""
    return parse_module(f"""HloModule m, is_scheduled=true, replica_count=2
f {{ x = f32[8] parameter(0) ROOT y = f32[8] negate(x) }}, execution_thread="host"
ENTRY e {{
p = f32[8] parameter(0)
call = f32[8] custom-call(p), custom_call_target="t"{notes}
start = ((f32[8]), f32[8]) async-start(p), calls=f, async_execution_thread="host"{notes}
done = f32[8] async-done(start){notes}
gather = (f32[8], f32[16]) all-gather-start(p), dimensions={{0}}{notes}
gathered = f32[16] all-gather-done(gather){notes}
work = f32[8] negate(p){notes}
{more}
ROOT r = f32[8] copy(p)
}}""")


def hints(found: Module, tracker: ResourceTracker) -> dict[str, Hints]:
    """The hints on instructions that have some."""
    result = {
        i.name: tracker.hints(i, is_start=tracker.is_start(i), is_done=tracker.is_done(i))
        for i in found.entry.instructions
    }
    return {name: hint for name, hint in result.items() if hint != NONE}


@pytest.mark.parametrize(
    ("notes", "expected"),
    [
        ({"scheduler_hint": "force_early"}, {"call": EARLY}),
        ({"scheduler_hint": "force_delay"}, dict.fromkeys(("call", "start", "done"), delayed())),
        (
            {"scheduler_hint": "force_delay", "scheduler_delay_priority": "3"},
            dict.fromkeys(("call", "start", "done"), delayed(3)),
        ),
        (
            {"scheduler_hint": "force_delay_async", "scheduler_delay_priority": "-2"},
            {"start": delayed(-2), "gather": delayed(-2), "done": EARLY, "gathered": EARLY},
        ),
        ({"scheduler_hint": "force_other"}, {}),
        ({"scheduler_delay_priority": "3"}, {}),
        ({}, {}),
    ],
)
@pytest.mark.parametrize("tracker", [ResourceTracker, GpuResourceTracker])
def test_what_a_hint_is_for(
    notes: dict[str, str], expected: dict[str, Hints], tracker: type[ResourceTracker]
) -> None:
    config = SchedulerConfig().resolved()
    found = module(attributes(**notes))
    assert hints(found, tracker(config)) == expected


def test_what_alone_makes_its_computation_worth_scheduling() -> None:
    for hint, expected in (("force_delay", {"call", "start", "done"}), ("force_early", set())):
        found = module(attributes(scheduler_hint=hint))
        assert {i.name for i in found.entry.instructions if asks_for_delay(i)} == expected
    assert not any(asks_for_delay(i) for i in module("").entry.instructions)


@pytest.mark.parametrize(("value", "expected"), [("true", True), ("false", False), ("True", False)])
def test_which_groups_keep_their_order(value: str, *, expected: bool) -> None:
    notes = attributes(keep_original_sequence_order_in_group=value)
    assert keeps_order(by_name(module(notes), "work")) == expected
    assert not keeps_order(by_name(module(""), "work"))


def by_name(found: Module, name: str) -> Instruction:
    return next(i for i in found.entry.instructions if i.name == name)


# -- XLA:GPU ---------------------------------------------------------------------------------------

SECOND = attributes(_xla_send_recv_pipeline="1")
PIPELINE = f"""k = token[] after-all()
sent.t = ((f32[8], u32[], token[])) parameter(1)
sent.1 = (f32[8], u32[], token[]) get-tuple-element(sent.t), index=0
whole = (f32[8], u32[], token[]) send(p, k), channel_id=1
whole.d = token[] send-done(whole), channel_id=1
half = (f32[8], u32[], token[]) recv(k), channel_id=2{SECOND}
half.t = ((f32[8], u32[], token[])) tuple(half)
twice = (f32[8], u32[], token[]) recv(k), channel_id=3
twice.d = (f32[8], token[]) recv-done(twice), channel_id=3
twice.t = ((f32[8], u32[], token[])) tuple(twice)
other.d = token[] send-done(sent.1), channel_id=4{SECOND}"""


def gpu(**options: Any) -> GpuResourceTracker:
    return GpuResourceTracker(SchedulerConfig(preset="xla-gpu", **options).resolved())


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, {}),
        (
            {"pipeline_parallelism_opt_level": "enable"},
            {"half": delayed(), "other.d": EARLY},
        ),
        ({"enable_pipelined_p2p": True}, {"half": EARLY}),
        (
            {"pipeline_parallelism_opt_level": "enable", "enable_pipelined_p2p": True},
            {"half": Hints(force_early=True, force_delay=True), "other.d": EARLY},
        ),
    ],
)
def test_halves_of_transfers_make_room_where_asked_for(
    options: dict[str, Any], expected: dict[str, Hints]
) -> None:
    """A half whose other half is in another iteration; one with two users is whole."""
    assert hints(module("", PIPELINE), gpu(**options)) == expected


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ('{"force_earliest_schedule":true}', Hints(force_delay=True)),
        ('{"force_earliest_schedule":false}', NONE),
        ('{"wait_on_operation_queues":[]}', NONE),
    ],
)
def test_a_config_says_what_goes_to_the_beginning(config: str, expected: Hints) -> None:
    more = f"config = f32[8] negate(p), backend_config={config}"
    assert hints(module("", more), gpu()).get("config", NONE) == expected


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ('{"force_earliest_schedule":false}', Hints(priority=2)),
        ('{"force_earliest_schedule":true}', delayed(2)),
        ('{"other":1}', Hints(priority=2)),
    ],
)
def test_a_config_has_the_say_over_a_hint(config: str, expected: Hints) -> None:
    notes = attributes(scheduler_hint="force_delay", scheduler_delay_priority="2")
    more = f'c = f32[8] custom-call(p), custom_call_target="t"{notes}, backend_config={config}'
    assert hints(module("", more), gpu()) == {"c": expected}
