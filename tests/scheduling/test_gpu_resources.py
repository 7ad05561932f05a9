"""The streams of XLA:GPU that operations occupy."""

from __future__ import annotations

from tests.scheduling.programs import SUM, copies_of_slices, fresh_state, names, schedule, scheduled

from hloopt.analysis.latency import FixedModel
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.scheduling.config import SchedulerConfig
from hloopt.scheduling.engine.module_scheduling import ModuleScheduling
from hloopt.text import parse_module


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


def test_copies_of_slices_on_the_device_are_other_work_where_they_have_no_stream() -> None:
    """In jaxlib 0.10.2 only copies from and to the host are asynchronous."""

    def is_scheduled(where: str, *, separate: bool) -> bool:
        text = copies_of_slices("ROOT r = f32[4] add(done0, done1)").replace("{0:S(5)}", where)
        module = parse_module(text)
        config = SchedulerConfig(preset="xla-gpu", separate_memcpy_stream=separate).resolved()
        scheduling = ModuleScheduling.of(module, config, FixedModel())
        return scheduling.computations() == [module.entry]

    assert is_scheduled("", separate=True)
    assert not is_scheduled("", separate=False)
    assert is_scheduled("{0:S(5)}", separate=False)


def test_copies_of_slices_count_as_computations_where_they_have_no_stream() -> None:
    text = copies_of_slices("ROOT r = f32[4] add(done0, done1)")

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


def test_work_that_is_not_valuable_does_not_hide_what_a_selective_resource_does() -> None:
    module = parse_module(
        copies_of_slices(
            """
  v = f32[4] parameter(2)
  x = f32[4] negate(v)
  y = f32[4,4] broadcast(x), dimensions={1}
  z = f32[4,4] dot(y, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = (f32[4], f32[4], f32[4,4]) tuple(done0, done1, z)"""
        )
    )
    config = SchedulerConfig(preset="xla-gpu", enable_selective_resources=True).resolved()
    scheduling = ModuleScheduling.of(module, config, FixedModel())
    state = fresh_state(scheduling, module.entry)
    number = {i.name: node for i, node in state.graph.number.items()}
    state.begin()
    for name in ("r", "done0"):
        state.take(number[name])
    start = number["start0"]
    assert state.selective is not None
    assert state.selective.releasers == [start]
    ready = state.clock.ready_time[start]
    state.take(number["z"])
    assert state.clock.ready_time[start] == ready
    for name in ("y", "x"):
        state.take(number[name])
    assert state.clock.ready_time[start] == ready + state.graph.cost[number["x"]]
    state.take(start)
    assert not state.selective.releasers
