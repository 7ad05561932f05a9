"""The streams of XLA:GPU that operations occupy."""

from __future__ import annotations

from tests.scheduling.programs import SUM, names, schedule, scheduled

from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
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
