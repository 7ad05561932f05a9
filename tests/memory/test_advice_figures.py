"""Advice in full: which buffers, in which order, with what figures."""

from __future__ import annotations

import pytest
from tests.memory.modules import module_text

from hloopt.memory.advice import Advice, advise
from hloopt.memory.advice.model import Effect
from hloopt.memory.analysis import MemoryAnalysis
from hloopt.targets import load_target
from hloopt.text import parse_module

SUM = """sum { k0 = f32[] parameter(0)
  k1 = f32[] parameter(1)
  ROOT k2 = f32[] add(k0, k1) }
"""


def advice_for(
    *lines: str,
    before: str = "",
    header: str = "",
    limit: int | None = None,
    target: str | None = None,
) -> Advice:
    text = module_text(*lines, before=before, header=f"is_scheduled=true{header}")
    analysis = MemoryAnalysis.of(parse_module(text))
    device = None if target is None else load_target(target)
    return advise(analysis, analysis.report(), device, limit)


def again(advice: Advice) -> list[tuple[str, int, tuple[int, int], int]]:
    items = advice.rematerializations
    return [(item.buffer.name, item.buffer.size, item.idle, item.flops) for item in items]


def offloaded(advice: Advice) -> list[tuple[str, int, tuple[int, int], int]]:
    return [(o.buffer.name, o.buffer.size, o.idle, o.moved) for o in advice.offloads]


# -- what waits at the peak -----------------------------------------------------------------------

WAITING = (
    "a = f32[10,100] parameter(0)",
    "z = f32[] constant(0)",
    "x = f32[40,100] concatenate(a, a, a, a), dimensions={0}",
    "y = f32[100] reduce(a, z), dimensions={0}, to_apply=sum",
    "c = f32[1,100] slice(x), slice={[0:1], [0:100]}",
    "w = f32[1,100] reshape(y)",
    "v = f32[1,100] reverse(w), dimensions={0}",
    "d = f32[50,1,100] broadcast(c), dimensions={1,2}",
    "e = f32[1,1,100] slice(d), slice={[0:1], [0:1], [0:100]}",
    "f = f32[1,100] reshape(e)",
    "g = f32[41,100] concatenate(x, f), dimensions={0}",
    "h = f32[1,100] slice(g), slice={[0:1], [0:100]}",
    "i = f32[100] reshape(h)",
    "j = f32[200] concatenate(i, y), dimensions={0}",
    "k = f32[1] slice(j), slice={[0:1]}",
)
"""At the peak, `d` at position 7, both `x` and `y` wait, and the argument is read no more."""


def test_the_cheapest_per_byte_is_computed_again_first() -> None:
    advice = advice_for(*WAITING, before=SUM)
    assert again(advice) == [("x", 16000, (4, 10), 0), ("y", 400, (5, 13), 900)]
    assert advice.rematerialized_peak == Effect(40808, 36808)
    assert [item.seconds for item in advice.rematerializations] == [None, None]


def test_what_moves_fewest_bytes_for_its_size_and_wait_is_offloaded_first() -> None:
    advice = advice_for(*WAITING, before=SUM)
    assert offloaded(advice) == [
        ("a", 4000, (3, 15), 4000),  # it does not come back
        ("y", 400, (5, 13), 800),
        ("x", 16000, (4, 10), 32000),
    ]
    assert advice.offloaded_peak == Effect(40808, 32808)
    assert {o.transfer_seconds for o in advice.offloads} == {None}
    assert {o.idle_seconds for o in advice.offloads} == {None}


@pytest.mark.parametrize(
    ("limit", "count"),
    [
        (40888, 3),  # it fits: down by a fifth, as without a limit
        (40887, 1),
        (36888, 1),  # without the argument the peak is 36808
        (36887, 2),
        (36488, 2),
        (36487, 3),
        (1, 3),
    ],
)
def test_advice_ends_where_the_limit_is_kept(limit: int, count: int) -> None:
    """The module needs 40888 bytes, 80 of them beyond the peak."""
    assert len(advice_for(*WAITING, before=SUM, limit=limit).offloads) == count


@pytest.mark.parametrize(("size", "count"), [(15, 1), (14, 2)])
def test_a_fifth_of_the_peak_is_enough_without_a_limit(size: int, count: int) -> None:
    """The peak is 240 bytes and the argument `p`, which waits longest."""
    advice = advice_for(
        f"p = f32[{size}] parameter(0)",
        "d = f32[10] parameter(1)",
        "a = f32[10] parameter(2)",
        "b = f32[30] concatenate(a, a, a), dimensions={0}",
        "c = f32[10] slice(b), slice={[0:10]}",
        "s = f32[10] add(c, d)",
        "q = f32[10] slice(p), slice={[0:10]}",
        "r = f32[10] add(s, q)",
    )
    assert advice.offloaded_peak.before == 240 + 4 * size
    assert [o.buffer.name for o in advice.offloads] == ["p", "d"][:count]


def test_times_are_the_least_on_the_target() -> None:
    advice = advice_for(*WAITING, before=SUM, target="h100_sxm")
    x, y = advice.rematerializations
    assert (x.seconds or 0) > (y.seconds or 0) > 0
    argument, *_ = advice.offloads
    assert argument.transfer_seconds == pytest.approx(4000 / 64e9)
    assert advice.target == "NVIDIA H100 SXM, 80 GB"


PARTS = (
    "a = f32[100] parameter(0)",
    "m = (f32[400], f32[50]) fusion(a), kind=kLoop, calls=parts",
    "b = f32[400] get-tuple-element(m), index=0",
    "n = f32[50] get-tuple-element(m), index=1",
    "c = f32[100] slice(b), slice={[0:100]}",
    "d = f32[500] concatenate(c, c, c, c, c), dimensions={0}",
    "e = f32[100] slice(d), slice={[0:100]}",
    "g = f32[50] slice(b), slice={[0:50]}",
    "h = f32[200] concatenate(e, g, n), dimensions={0}",
    "r = f32[1] slice(h), slice={[0:1]}",
)
FUSED = """parts { q = f32[100] parameter(0)
  o = f32[400] concatenate(q, q, q, q), dimensions={0}
  p = f32[50] slice(q), slice={[0:50]}
  ROOT s = (f32[400], f32[50]) tuple(o, p) }
"""


def test_to_compute_one_of_several_results_again_takes_room_for_all() -> None:
    advice = advice_for(*PARTS, before=FUSED)
    assert again(advice) == [("m{0}", 1600, (4, 7), 0)]
    # 3000 bytes are left at position 5, and 2804 at 7, where table and other result come back
    assert advice.rematerialized_peak == Effect(4604, 2804 + 200 + 16)


def test_reasons_against_computing_again_come_with_their_bytes_the_most_first() -> None:
    called = """g { x.1 = f32[100] parameter(0)
  x.2 = f32[] constant(0)
  ROOT w.1 = f32[350] pad(x.1, x.2), padding=0_250 }
"""
    advice = advice_for(
        "a = f32[100] parameter(0)",
        "z = f32[] parameter(1)",
        'b = f32[300] custom-call(a), custom_call_target="f"',
        'c = f32[200] custom-call(a), custom_call_target="f"',
        "o = f32[100] reverse(a), dimensions={0}",
        "n = f32[400] concatenate(o, o, o, o), dimensions={0}",
        "y = f32[350] call(a), to_apply=g",
        "s = f32[1] slice(b), slice={[0:1]}",
        "t = f32[1] slice(c), slice={[0:1]}",
        "u = f32[1] slice(n), slice={[0:1]}",
        "v = f32[1] slice(y), slice={[0:1]}",
        "d = f32[2000] pad(s, z), padding=0_1999",
        "e = f32[1] slice(d), slice={[0:1]}",
        "w = f32[1250] concatenate(b, c, n, y), dimensions={0}",
        "x = f32[1] slice(w), slice={[0:1]}",
        "r = f32[5] concatenate(e, t, u, v, x), dimensions={0}",
        before=called,
    )
    assert [(o.reason.split()[-1], o.count, o.size) for o in advice.obstacles] == [
        ("calls", 2, 2000),  # results of … unknown custom calls
        ("again", 1, 1600),  # what they are computed from is gone when they are needed again
        ("theirs", 1, 1400),  # they are needed again in another computation than theirs
    ]


def test_all_operands_must_be_there_when_a_result_is_computed_again() -> None:
    lines = [
        "k = f32[] constant(0)",
        "a = f32[100] parameter(0)",
        "o = f32[100] reverse(a), dimensions={0}",
        "b = f32[400] pad(%s), padding=150_150",
        "c = f32[100] slice(b), slice={[0:100]}",
        "d = f32[1000] pad(c, k), padding=0_900",
        "e = f32[100] slice(d), slice={[0:100]}",
        "f = f32[600] concatenate(e, b, a), dimensions={0}",
        "g = f32[1] slice(f), slice={[0:1]}",
    ]

    def found(operands: str, *, behind: str = "") -> list[tuple[str, int, tuple[int, int], int]]:
        module = [line.replace("%s", operands) for line in lines]
        return again(advice_for(*(line.replace("b, a)", f"b, a{behind})") for line in module)))

    assert found("a, k") == [("b", 1600, (4, 7), 0)]
    assert found("o, k") == []
    # `o` is read for the last time where `b` is
    lines[-2] = lines[-2].replace("f32[600]", "f32[700]")
    lines[-1] = lines[-1].replace("slice(f)", "slice(f)")
    assert found("o, k", behind=", o") == [("b", 1600, (4, 7), 0)]


def test_what_exists_from_the_start_is_written_and_goes_out() -> None:
    advice = advice_for(
        "i = f32[400] iota(), iota_dimension=0",
        "a = f32[100] parameter(0)",
        "k = f32[] constant(0)",
        "d = f32[1000] pad(a, k), padding=0_900",
        "e = f32[100] slice(d), slice={[0:100]}",
        "f = f32[500] concatenate(e, i), dimensions={0}",
        "g = f32[1] slice(f), slice={[0:1]}",
    )
    assert ("i", 1600, (0, 5), 3200) in offloaded(advice)
    assert [(r.buffer.name, r.idle, r.is_later) for r in advice.rematerializations] == [
        ("i", (0, 5), True)
    ]


NOT_AGAIN = {
    "collective": "all-gather(a), dimensions={0}",
    "call": "call(a), to_apply=four",
    "random": "rng(z, z), distribution=rng_uniform",
    "unknown": 'custom-call(a), custom_call_target="f"',
    "passed on": "copy-done(t)",
}


@pytest.mark.parametrize("made_by", NOT_AGAIN)
def test_what_cannot_be_done_twice_is_not_computed_again(made_by: str) -> None:
    lines = (
        "a = f32[100] parameter(0)",
        "z = f32[] parameter(1)",
        "q = f32[400] parameter(2)",
        "t = (f32[400], f32[400], u32[]) copy-start(q)",
        "b = f32[400] concatenate(a, a, a, a), dimensions={0}",
        "c = f32[100] slice(b), slice={[0:100]}",
        "d = f32[1000] pad(c, z), padding=0_900",
        "e = f32[100] slice(d), slice={[0:100]}",
        "g = f32[500] concatenate(e, b), dimensions={0}",
        "h = f32[1] slice(g), slice={[0:1]}",
    )
    four = """four { x = f32[100] parameter(0)
  ROOT y = f32[400] concatenate(x, x, x, x), dimensions={0} }
"""
    plain = [line for line in lines if not line.startswith("t =")]
    assert again(advice_for(*plain, before=four)) == [("b", 1600, (4, 7), 0)]
    changed = [line.replace("concatenate(a, a, a, a), dimensions={0}", "%") for line in lines]
    advice = advice_for(
        *(line.replace("%", NOT_AGAIN[made_by]) for line in changed),
        before=four,
        header=", num_partitions=4",
    )
    assert again(advice) == []
    assert sum(obstacle.size for obstacle in advice.obstacles) >= 1600


@pytest.mark.parametrize(("before", "after"), [("b", "e"), ("z", "b")])
def test_control_dependencies_forbid_to_compute_again(before: str, after: str) -> None:
    lines = [
        "a = f32[100] parameter(0)",
        "z = f32[] parameter(1)",
        "b = f32[400] concatenate(a, a, a, a), dimensions={0}",
        "c = f32[100] slice(b), slice={[0:100]}",
        "d = f32[1000] pad(c, z), padding=0_900",
        "e = f32[100] slice(d), slice={[0:100]}",
        "g = f32[500] concatenate(e, b), dimensions={0}",
        "h = f32[1] slice(g), slice={[0:1]}",
    ]
    assert again(advice_for(*lines)) == [("b", 1600, (3, 6), 0)]
    lines = [
        f"{line}, control-predecessors={{{before}}}" if line.startswith(f"{after} =") else line
        for line in lines
    ]
    assert again(advice_for(*lines)) == []


# -- sharding -------------------------------------------------------------------------------------

REPLICATED = (
    "p = f32[101] parameter(0), sharding={replicated}",
    "q = (f32[1000], f32[201]) parameter(1), sharding={{devices=[2]<=[2]}, {replicated}}",
    "x = f32[1000] get-tuple-element(q), index=0",
    "y = f32[201] get-tuple-element(q), index=1",
    "z = f32[302] concatenate(p, y), dimensions={0}",
    "r = f32[1302] concatenate(z, x), dimensions={0}",
)


def sharded(advice: Advice) -> list[tuple[str, int, int]]:
    return [(s.buffer.name, s.saved, s.devices) for s in advice.shardings]


def test_each_device_keeps_its_part_rounded_up() -> None:
    two = advice_for(*REPLICATED, header=", num_partitions=2")
    assert sharded(two) == [("z", 604, 2), ("q{1}", 402, 2), ("p", 202, 2)]
    assert two.sharded_bound == 604 + 402 + 202
    three = [line.replace("[2]<=[2]", "[3]<=[3]") for line in REPLICATED]
    advice = advice_for(*three, header=", num_partitions=3")
    assert sharded(advice) == [("z", 805, 3), ("q{1}", 536, 3), ("p", 269, 3)]


def test_replicas_are_compared_where_there_is_one_partition() -> None:
    lines = (
        "a = f32[100] iota(), iota_dimension=0",
        "i = u32[] replica-id()",
        "f = f32[] convert(i)",
        "b = f32[100] broadcast(f), dimensions={}",
        "c = f32[200] concatenate(a, b), dimensions={0}",
        "d = f32[1] slice(c), slice={[0:1]}",
    )
    assert sharded(advice_for(*lines, header=", replica_count=2")) == [("a", 200, 2)]
    assert sharded(advice_for(*lines)) == []
