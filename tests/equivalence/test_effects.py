"""What programs do to the outside world is compared: what, how often, with what, in which order."""

from __future__ import annotations

import pytest

from hloopt.equivalence import Mismatch, Reference, RunSettings, effects
from hloopt.text import parse_module

CALLS = """HloModule m
one { p = f32[8] parameter(0) t = token[] parameter(1)
  ROOT r = token[] custom-call(p, t), custom_call_target="one", custom_call_has_side_effect=true }
two { p = f32[8] parameter(0) t = token[] parameter(1)
  ROOT r = token[] custom-call(p, t), custom_call_target="two", custom_call_has_side_effect=true }
ENTRY e {
  p = f32[8] parameter(0)
  t = token[] after-all()
  a = token[] call(p, t), to_apply=one
  b = token[] call(p, a), to_apply=two
  ROOT r = f32[8] copy(p)
}"""
SWAPPED = CALLS.replace("call(p, t), to_apply=one", "call(p, t), to_apply=two").replace(
    "call(p, a), to_apply=two", "call(p, a), to_apply=one"
)
LOOP = """HloModule m
body { s = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0 x = f32[8] get-tuple-element(s), index=1
  k = s32[] constant(1) n = s32[] add(i, k) t = token[] after-all()
  a = token[] custom-call(x, t), custom_call_target="one", custom_call_has_side_effect=true
  b = token[] custom-call(x, t), custom_call_target="two", custom_call_has_side_effect=true
  y = f32[8] add(x, x) ROOT r = (s32[], f32[8]) tuple(n, y) }
more { s = (s32[], f32[8]) parameter(0) i = s32[] get-tuple-element(s), index=0
  k = s32[] constant(3) ROOT c = pred[] compare(i, k), direction=LT }
ENTRY e { p = f32[8] parameter(0) z = s32[] constant(0) t = (s32[], f32[8]) tuple(z, p)
  w = (s32[], f32[8]) while(t), condition=more, body=body
  ROOT r = f32[8] get-tuple-element(w), index=1 }"""
ASYNC = """HloModule m
tell { p = f32[8] parameter(0) t = token[] after-all() o = token[] outfeed(p, t)
  ROOT r = f32[8] negate(p) }
ENTRY e { p = f32[8] parameter(0)
  s = ((f32[8]), f32[8], s32[]) async-start(p), calls=tell
  ROOT d = f32[8] async-done(s), calls=tell }"""
HOST = "channel_id=3, is_host_transfer=true"
TWO_WAYS = f"""HloModule m
ENTRY e {{ p = f32[8] parameter(0) t = token[] after-all()
  s = (f32[8], u32[], token[]) send(p, t), {HOST}
  sd = token[] send-done(s), {HOST}
  c = (f32[8], u32[], token[]) recv(sd), {HOST}
  cd = (f32[8], token[]) recv-done(c), {HOST}
  x = f32[8] get-tuple-element(cd), index=0
  ROOT r = f32[8] add(p, x) }}"""


def compare(before: str, after: str, partitions: int = 1) -> Mismatch | None:
    settings = RunSettings(seeds=1, counts=(1, partitions))
    return Reference(parse_module(before), settings).compare(parse_module(after))


@pytest.mark.parametrize("text", [CALLS, LOOP, ASYNC, TWO_WAYS])
@pytest.mark.parametrize("partitions", [1, 2])
def test_a_program_does_what_it_does(text: str, partitions: int) -> None:
    assert compare(text, text, partitions) is None


def test_order_is_compared_through_calls() -> None:
    found = compare(CALLS, SWAPPED)
    assert found is not None
    assert 'custom call "two" %r' in found.reason
    assert "it runs before" in found.reason


def test_calls_that_nothing_orders_may_be_swapped() -> None:
    before = CALLS.replace("call(p, a)", "call(p, t)")
    assert compare(before, SWAPPED) is None


def test_trips_of_a_loop_are_in_order_what_a_trip_does_need_not_be() -> None:
    """Unordered within a trip; but what the last trip does is behind the first."""
    first = LOOP.index("  a = token")
    lines = LOOP[first:].split("\n")[:2]
    turned = LOOP.replace("\n".join(lines), "\n".join(reversed(lines)))
    assert compare(LOOP, turned) is None
    found = compare(LOOP, LOOP.replace("constant(3)", "constant(2)"))
    assert found is not None
    assert "ran 3 times, it runs 2 times" in found.reason


def test_what_one_trip_does_stays_behind_what_the_one_before_did() -> None:
    """As two loops, each with one of the calls, the program does the same in another order."""
    only_one, only_two = (
        "\n".join(line for line in LOOP.split("\n") if f'"{other}"' not in line)
        for other in ("two", "one")
    )
    second = only_two[only_two.index("body") : only_two.index("more")].replace("body", "again")
    twice = only_one.replace("ENTRY", f"{second}ENTRY").replace(
        "ROOT r = f32[8] get-tuple-element(w), index=1 }",
        "v = (s32[], f32[8]) while(t), condition=more, body=again, control-predecessors={w}\n"
        "  ROOT r = f32[8] get-tuple-element(w), index=1 }",
    )
    found = compare(LOOP, twice)
    assert found is not None
    assert "it runs before" in found.reason


def test_data_of_calls_in_no_order_is_paired_by_what_it_is() -> None:
    text = """HloModule m ENTRY e { p = f32[8] parameter(0) q = f32[8] parameter(1)
      a = () custom-call(%s), custom_call_target="log", custom_call_has_side_effect=true
      b = () custom-call(%s), custom_call_target="log", custom_call_has_side_effect=true%s
      ROOT r = f32[8] copy(p) }"""
    assert compare(text % ("p", "q", ""), text % ("q", "p", "")) is None
    order = ", control-predecessors={a}"
    found = compare(text % ("p", "q", order), text % ("q", "p", order))
    assert found is not None
    other = compare(text % ("p", "q", ""), text % ("p", "p", ""))
    assert other is not None
    assert "log" in other.reason


@pytest.mark.parametrize(
    ("text", "old", "new", "said"),
    [
        (ASYNC, "  o =", "  // o =", ""),
        (ASYNC, "outfeed(p, t)", "outfeed(r0, t)", "outfeed %o"),
        (TWO_WAYS, "send(p, t)", "send(m, t)", "send to the host %s"),
        (TWO_WAYS, "add(p, x)", "subtract(p, x)", "output[0]"),
    ],
)
def test_each_kind_of_effect_is_compared(text: str, old: str, new: str, said: str) -> None:
    if "//" in new:
        changed = text.replace("o = token[] outfeed(p, t)\n", "\n")
        said = "ran once, it runs never"
    else:
        extra = "r0 = f32[8] abs(p) " if "r0" in new else "m = f32[8] abs(p) "
        changed = text.replace("t = token[] after-all()", extra + "t = token[] after-all()")
        changed = changed.replace(old, new)
    found = compare(text, changed)
    assert found is not None
    assert said in found.reason


def test_an_infeed_that_nothing_reads_is_still_taken() -> None:
    text = """HloModule m
    ENTRY e { p = f32[8] parameter(0) t = token[] after-all() %s ROOT r = f32[8] copy(p) }"""
    found = compare(text % "i = (f32[8], token[]) infeed(t)", text % "")
    assert found is not None
    assert found.reason.startswith("infeed %i ")
    assert "ran once, it runs never" in found.reason


def test_effects_in_one_order_are_not_compared_pair_by_pair(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(effects, "_must_follow")
    many = LOOP.replace("constant(3)", "constant(50)").replace("add(x, x)", "negate(x)")
    assert compare(many, many) is None
