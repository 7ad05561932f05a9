"""Estimates of how much of its collectives a module hides."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from tests.properties.collective_modules import collective_module_texts

from hloopt.analysis.overlap.analysis import ComputationOverlap, analyze_overlap
from hloopt.files import read_module
from hloopt.ir import Module
from hloopt.passes.base import PassContext
from hloopt.passes.registry import create_pass
from hloopt.targets import load_target
from hloopt.text import parse_module

H100 = load_target("h100_sxm")
LINK = 450e9  # bytes per second, one direction of NVLink
SIZE = 1 << 24
ARRAY = f"f32[{SIZE}]"
BYTES = 4 * SIZE
NEGATE = 2 * BYTES / H100.memory_bandwidth  # reads and writes
ON_DEVICES = "channel_id=1, use_global_device_ids=true, to_apply=plus"
PLUS = """plus {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
"""


def overlap(text: str) -> ComputationOverlap:
    (found,) = analyze_overlap(parse_module(text), H100)
    return found


@pytest.mark.parametrize(
    ("operation", "sent", "counted"),
    [
        (f"{ARRAY} all-reduce(p), GROUPS, to_apply=plus", 2 * BYTES * 3 / 4, BYTES),
        (f"f32[{4 * SIZE}] all-gather(p), GROUPS, dimensions={{0}}", 3 * BYTES, 4 * BYTES),
        (
            f"f32[{SIZE // 4}] reduce-scatter(p), GROUPS, dimensions={{0}}, to_apply=plus",
            *(BYTES * 3 / 4, BYTES),
        ),
        (f"{ARRAY} all-to-all(p), GROUPS, dimensions={{0}}", BYTES * 3 / 4, BYTES),
        (
            f"{ARRAY} collective-permute(p), channel_id=1, source_target_pairs={{{{0,1}}}}",
            *(BYTES, BYTES),
        ),
        (
            f"{ARRAY} all-reduce(p), channel_id=1, replica_groups={{{{0}},{{1}},{{2}},{{3}}}}, "
            "use_global_device_ids=true, to_apply=plus",
            *(0, BYTES),
        ),
    ],
)
def test_collectives_take_a_ring_over_the_fastest_link(
    operation: str, sent: float, counted: int
) -> None:
    groups = "channel_id=1, replica_groups={{0,1,2,3}}"
    if "all-to-all" not in operation:
        groups += ", use_global_device_ids=true"
    found = overlap(
        f"HloModule m, num_partitions=4\n{PLUS}ENTRY e {{\n  p = {ARRAY} parameter(0)\n"
        f"  ROOT c = {operation.replace('GROUPS', groups)}\n}}\n"
    )
    assert found.collective_seconds == pytest.approx(sent / LINK)
    assert found.byte_count == counted
    assert found.exposed_seconds == pytest.approx(found.collective_seconds)
    assert found.hidden_bytes == (0 if sent else counted)


SCHEDULED = f"""HloModule m, is_scheduled=true, num_partitions=2
{PLUS}
ENTRY e {{
  p = {ARRAY} parameter(0)
  q = {ARRAY} parameter(1)
  start = {ARRAY} all-reduce-start(p), replica_groups={{{{0,1}}}}, {ON_DEVICES}
  n = {ARRAY} negate(q)
  done = {ARRAY} all-reduce-done(start)
  m = {ARRAY} negate(n)
  ROOT t = ({ARRAY}, {ARRAY}) tuple(done, m)
}}
"""


def test_a_schedule_hides_what_computes_between_start_and_done() -> None:
    found = overlap(SCHEDULED)
    seconds = BYTES / LINK
    assert found.compute_seconds == pytest.approx(2 * NEGATE)
    assert found.seconds == pytest.approx(seconds + NEGATE)
    assert found.exposed_seconds == pytest.approx(seconds - NEGATE)
    assert found.hidden_bytes == pytest.approx(BYTES * NEGATE / seconds, rel=1e-6)


def test_a_synchronous_start_hides_nothing() -> None:
    sync = SCHEDULED.replace(
        "to_apply=plus\n",
        'to_apply=plus, backend_config={"collective_backend_config":{"is_sync":true}}\n',
    )
    assert overlap(sync).hidden_bytes == 0


def test_without_a_schedule_the_best_order_found_counts() -> None:
    found = overlap(SCHEDULED.replace("is_scheduled=true, ", ""))
    assert found.exposed_seconds == pytest.approx(BYTES / LINK - 2 * NEGATE)


def test_a_body_is_one_trip_and_knows_what_it_keeps() -> None:
    found = overlap(f"""HloModule m, num_partitions=2
{PLUS}
body {{
  state = (s32[], {ARRAY}) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  x = {ARRAY} get-tuple-element(state), index=1
  y = {ARRAY} all-reduce(x), replica_groups={{{{0,1}}}}, {ON_DEVICES}
  one = s32[] constant(1)
  next = s32[] add(i, one)
  ROOT r = (s32[], {ARRAY}) tuple(next, y)
}}

condition {{
  test = (s32[], {ARRAY}) parameter(0)
  n = s32[] get-tuple-element(test), index=0
  three = s32[] constant(3)
  ROOT more = pred[] compare(n, three), direction=LT
}}

ENTRY e {{
  zero = s32[] constant(0)
  p = {ARRAY} parameter(0)
  initial = (s32[], {ARRAY}) tuple(zero, p)
  ROOT loop = (s32[], {ARRAY}) while(initial), condition=condition, body=body
}}
""")
    assert found.loop is not None
    assert found.loop.name == "loop"
    assert found.runs == (3, True)
    assert found.state_bytes == BYTES + 4
    assert found.exposed_seconds == pytest.approx(BYTES / LINK, rel=1e-3)


def exposed(module: Module) -> float:
    return sum(f.exposed_seconds * f.runs.times for f in analyze_overlap(module, H100))


@given(collective_module_texts("all-reduce", "all-gather", "reduce-scatter", "collective-permute"))
@settings(max_examples=40)
def test_a_run_takes_neither_less_than_one_stream_nor_more_than_both(text: str) -> None:
    module = parse_module(text)
    estimates = analyze_overlap(module, H100)
    create_pass("hlo-trivial-scheduler").run(module, PassContext())
    for found in (*estimates, *analyze_overlap(module, H100)):
        both = found.compute_seconds + found.collective_seconds
        longer = max(found.compute_seconds, found.collective_seconds)
        assert longer <= found.seconds * (1 + 1e-9)
        assert found.seconds <= both * (1 + 1e-9)
        hidden = sum(exposure.hidden_seconds for exposure in found.exposures)
        assert hidden == pytest.approx(both - found.seconds)
        assert 0 <= found.hidden_bytes <= found.byte_count


@pytest.mark.slow
def test_the_estimate_is_at_most_what_xla_for_gpus_exposes(shared: Path) -> None:
    """Its schedules of whole steps wait at least as long, but for one in ten, up to a tenth."""
    files = sorted((shared / "oracle" / "gpu").glob("*/*/after_lhs.hlo.gz"))
    assert files
    worse = []
    for file in files:
        module = read_module(str(file))
        as_scheduled = exposed(module)
        module.set_attribute("is_scheduled", None)
        estimate = exposed(module)
        assert estimate <= 1.1 * as_scheduled + 1e-9, file
        if estimate > as_scheduled * (1 + 1e-6):
            worse.append(file)
    assert len(worse) <= len(files) / 10
