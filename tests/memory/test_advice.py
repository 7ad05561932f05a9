"""What would help: each suggestion is carried out, and the memory counted again."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.memory.carry_out import compute_again
from tests.memory.modules import LOOP_CONDITION, module_text

from hloopt.files import read_module
from hloopt.memory.advice import Advice, advise
from hloopt.memory.advice.model import Effect
from hloopt.memory.analysis import MemoryAnalysis, analyze_memory
from hloopt.memory.limit import needed_bytes
from hloopt.targets import load_target
from hloopt.text import parse_module, print_module

TESTDATA = Path(__file__).resolve().parents[2] / "testdata"


def advice_for(text: str, limit: int | None = None, target: str | None = "h100_sxm") -> Advice:
    analysis = MemoryAnalysis.of(parse_module(text))
    device = None if target is None else load_target(target)
    return advise(analysis, analysis.report(), device, limit)


def peak_of(text: str) -> int:
    return analyze_memory(parse_module(text)).peak


# -- donation -------------------------------------------------------------------------------------

STEP = (
    "p = f32[100] parameter(0)",
    "g = f32[100] parameter(1)",
    "m = f32[100] multiply(g, g)",
    "n = f32[100] subtract(p, m)",
    "t = (f32[100]) tuple(n)",
)


def donated(lines: tuple[str, ...], *aliases: str) -> str:
    return module_text(
        *lines, header=f"is_scheduled=true, input_output_alias={{ {', '.join(aliases)} }}"
    )


def test_an_argument_that_an_output_can_overwrite_is_donated() -> None:
    advice = advice_for(module_text(*STEP))
    (donation,) = advice.donations
    assert donation.output == (0,)
    assert donation.size == donation.saved == 400
    after = analyze_memory(
        parse_module(donated(STEP, f"{{0}}: ({donation.argument.number}, {{}})"))
    )
    before = analyze_memory(parse_module(module_text(*STEP)))
    assert advice.donated_need == Effect(
        needed_bytes(before.statistics), needed_bytes(after.statistics)
    )
    assert advice.donated_peak == Effect(before.peak, after.peak)


def test_an_argument_that_is_aliased_is_not_donated_again() -> None:
    assert not advice_for(donated(STEP, "{0}: (0, {})")).donations


def test_an_argument_that_is_a_donor_already_is_left_to_xla() -> None:
    header = "is_scheduled=true, buffer_donor={ (0, {}), (1, {}) }"
    assert not advice_for(module_text(*STEP, header=header)).donations


def test_an_argument_that_is_read_later_is_not_donated() -> None:
    lines = (
        "p = f32[100] parameter(0)",
        "n = f32[100] reverse(p), dimensions={0}",
        "s = f32[50] slice(p), slice={[0:50]}",
        "t = (f32[100], f32[50]) tuple(n, s)",
    )
    assert not advice_for(module_text(*lines)).donations


def test_an_operation_that_cannot_overwrite_its_operand_does_not_take_it() -> None:
    lines = ("p = f32[100] parameter(0)", "n = f32[100] reverse(p), dimensions={0}")
    assert not advice_for(module_text(*lines)).donations


def test_another_shape_or_layout_does_not_fit() -> None:
    lines = ("p = f32[4,8]{1,0} parameter(0)", "n = f32[4,8]{0,1} copy(p)")
    assert not advice_for(module_text(*lines)).donations


def test_each_output_takes_one_argument() -> None:
    lines = (
        "a = f32[100] parameter(0)",
        "b = f32[100] parameter(1)",
        "m = f32[100] add(a, b)",
        "n = f32[100] negate(b)",
        "t = (f32[100], f32[100]) tuple(m, n)",
    )
    donations = advice_for(module_text(*lines)).donations
    assert [(d.argument.number, d.output) for d in donations] == [(0, (0,)), (1, (1,))]


# -- computing again ------------------------------------------------------------------------------

KEPT = (
    "a = f32[100] parameter(0)",
    "b = f32[400] concatenate(a, a, a, a), dimensions={0}",
    "c = f32[100] slice(b), slice={[0:100]}",
    "d = f32[500] concatenate(c, c, c, c, c), dimensions={0}",
    "e = f32[100] slice(d), slice={[0:100]}",
    "g = f32[50] slice(b), slice={[0:50]}",
    "h = f32[150] concatenate(e, g), dimensions={0}",
    "r = f32[1] slice(h), slice={[0:1]}",
)


def again(lines: tuple[str, ...], advice: Advice) -> str:
    """The module with what is suggested computed a second time, before it is needed again."""
    added: dict[int, list[tuple[int, str]]] = {}
    for item in advice.rematerializations:
        name, after = item.buffer.name, item.idle[1]
        number = next(k for k, line in enumerate(lines) if line.startswith(f"{name} ="))
        added.setdefault(after, []).append((number, name))
    result: list[str] = []
    newest: dict[str, str] = {}
    for position, line in enumerate(lines):
        for number, name in sorted(added.get(position, ())):
            head, _, rest = lines[number].partition(" = ")
            assert head == name
            result.append(f"{name}.at{position} = {_with_newest(rest, newest)}")
            newest[name] = f"{name}.at{position}"
        head, _, rest = line.partition(" = ")
        result.append(f"{head} = {_with_newest(rest, newest)}")
    return module_text(*result)


def _with_newest(text: str, newest: dict[str, str]) -> str:
    return re.sub(r"\b[a-z]\d*\b(?=[,)])", lambda m: newest.get(m[0], m[0]), text)


def test_a_buffer_that_waits_is_computed_again() -> None:
    advice = advice_for(module_text(*KEPT))
    (item,) = advice.rematerializations
    assert (item.buffer.name, item.buffer.size, item.idle, item.flops) == ("b", 1600, (2, 5), 0)
    assert (item.seconds or 0) > 0
    assert advice.rematerialized_peak == Effect(4404, 2804)
    assert peak_of(again(KEPT, advice)) == 2804


def test_a_buffer_whose_operands_are_gone_is_not_computed_again() -> None:
    lines = list(KEPT)
    lines[1:2] = [
        "o = f32[100] reverse(a), dimensions={0}",
        "b = f32[400] concatenate(o, o, o, o), dimensions={0}",
    ]
    advice = advice_for(module_text(*lines))
    assert not advice.rematerializations
    (obstacle,) = advice.obstacles
    assert (obstacle.count, obstacle.size) == (1, 1600)
    assert "is gone" in obstacle.reason


def test_side_effects_are_not_repeated() -> None:
    effect = 'custom-call(a), custom_call_target="f", custom_call_has_side_effect=true'
    lines = [line.replace("concatenate(a, a, a, a), dimensions={0}", effect) for line in KEPT]
    advice = advice_for(module_text(*lines))
    assert not advice.rematerializations
    assert "side effects" in advice.obstacles[0].reason


BODY = """
body { p = (s32[], f32[100]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  a = f32[100] get-tuple-element(p), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  b = f32[100,100] dot(a, a), lhs_contracting_dims={}, rhs_contracting_dims={}
  c = f32[1,100] slice(b), slice={[0:1], [0:100]}
  d = f32[300,1,100] broadcast(c), dimensions={1,2}
  e = f32[2,1,100] slice(d), slice={[0:2], [0:1], [0:100]}
  f = f32[200] reshape(e)
  g = f32[1,100] slice(b), slice={[1:2], [0:100]}
  h = f32[100] reshape(g)
  k = f32[300] concatenate(f, h), dimensions={0}
  y = f32[100] slice(k), slice={[0:100]}
  z = f32[100] add(a, y)
  ROOT t = (s32[], f32[100]) tuple(j, z) }
"""


def test_the_runs_of_a_loop_count() -> None:
    lines = (
        "k = s32[] constant(0)",
        "a = f32[100] parameter(0)",
        "y = f32[100] copy(a)",
        "t = (s32[], f32[100]) tuple(k, y)",
        "l = (s32[], f32[100]) while(t), condition=cond, body=body, "
        'backend_config={"known_trip_count":{"n":"3"}}',
    )
    advice = advice_for(module_text(*lines, before=LOOP_CONDITION + BODY))
    (item,) = advice.rematerializations
    assert (item.buffer.name, item.flops) == ("b", 3 * 2 * 100 * 100)


@st.composite
def chains(draw: st.DrawFn) -> tuple[str, ...]:
    """Scheduled programs of operations that never overwrite operands, with long lifetimes."""
    lines = ["x0 = s8[8] parameter(0)"]
    sizes = [8]
    for number in range(1, draw(st.integers(3, 14))):
        one, other = (draw(st.integers(0, number - 1)) for _ in range(2))
        if draw(st.booleans()):
            sizes.append(sizes[one] + sizes[other])
            lines.append(
                f"x{number} = s8[{sizes[-1]}] concatenate(x{one}, x{other}), dimensions={{0}}"
            )
        else:
            sizes.append(max(1, sizes[one] // 2))
            lines.append(f"x{number} = s8[{sizes[-1]}] slice(x{one}), slice={{[0:{sizes[-1]}]}}")
    number = len(lines)
    lines.append(f"x{number} = s8[1] slice(x{number - 1}), slice={{[0:1]}}")
    return tuple(lines)


@given(chains(), st.integers(1, 99))
def test_the_peak_counted_again_is_that_of_the_changed_module(
    lines: tuple[str, ...], percent: int
) -> None:
    before = peak_of(module_text(*lines))
    advice = advice_for(module_text(*lines), before * percent // 100)
    assume(advice.rematerializations)
    assert advice.rematerialized_peak.before == before
    assert advice.rematerialized_peak.after < before
    assert peak_of(again(lines, advice)) == advice.rematerialized_peak.after


def test_what_nothing_reads_before_is_computed_later_for_nothing() -> None:
    lines = (
        "a = f32[100] parameter(0)",
        "b = f32[100,100] dot(a, a), lhs_contracting_dims={}, rhs_contracting_dims={}",
        "c = f32[400] concatenate(a, a, a, a), dimensions={0}",
        "d = f32[100] slice(c), slice={[0:100]}",
        "e = f32[1,100] slice(b), slice={[0:1], [0:100]}",
        "f = f32[100] reshape(e)",
        "g = f32[300] concatenate(d, f, a), dimensions={0}",
        "h = f32[1] slice(g), slice={[0:1]}",
    )
    (item,) = advice_for(module_text(*lines)).rematerializations
    assert (item.buffer.name, item.is_later, item.flops, item.seconds) == ("b", True, 0, 0.0)


@pytest.mark.parametrize(
    "path", sorted(TESTDATA.glob("*.after_optimizations.hlo*")), ids=lambda path: path.name
)
@pytest.mark.parametrize("percent", [80, 60])
def test_the_peak_counted_again_is_that_of_the_changed_real_module(
    path: Path, percent: int
) -> None:
    module = read_module(str(path))
    analysis = MemoryAnalysis.of(module)
    report = analysis.report()
    advice = advise(analysis, report, load_target("h100_sxm"), report.peak * percent // 100)
    compute_again(module, advice.rematerializations)
    after = analyze_memory(parse_module(print_module(module)))
    assert after.peak == (
        advice.rematerialized_peak.after if advice.rematerializations else report.peak
    )


# -- host memory ----------------------------------------------------------------------------------


def test_what_waits_is_offloaded_over_the_link() -> None:
    advice = advice_for(module_text(*KEPT))
    item = next(o for o in advice.offloads if o.buffer.name == "b")
    assert (item.buffer.name, item.idle, item.moved) == ("b", (2, 5), 3200)
    assert item.transfer_seconds == pytest.approx(3200 / 64e9)  # half of both directions together
    assert (item.idle_seconds or 0) > 0
    assert advice.offloaded_peak.after < advice.offloaded_peak.before


def test_what_is_on_the_host_already_stays_there() -> None:
    lines = [
        re.sub(r"f32\[400\] concatenate\((.*)\), d", r"f32[400]{0:S(5)} concatenate(\1), d", line)
        for line in KEPT
    ]
    assert "b" not in {o.buffer.name for o in advice_for(module_text(*lines)).offloads}


def test_a_target_without_such_a_link_has_no_transfer_time() -> None:
    advice = advice_for(module_text(*KEPT), target="tpu_v5e")
    assert advice.offloads[0].transfer_seconds is None


def test_an_argument_that_is_needed_late_comes_late() -> None:
    lines = (
        "p = f32[1000] parameter(0)",
        "a = f32[100] parameter(1)",
        "b = f32[800] concatenate(a, a, a, a, a, a, a, a), dimensions={0}",
        "k = f32[] constant(0)",
        "c = f32[100] slice(b), slice={[0:100]}",
        "d = f32[1000] pad(c, k), padding=0_900",
        "e = f32[1000] add(d, p)",
    )
    item = next(o for o in advice_for(module_text(*lines)).offloads if o.buffer.name == "p")
    assert item.moved == 4000
    assert item.idle[0] == -1


# -- sharding -------------------------------------------------------------------------------------


def test_what_is_the_same_on_all_devices_could_be_sharded() -> None:
    lines = (
        "p = f32[1000] parameter(0), sharding={replicated}",
        "q = f32[1000] parameter(1), sharding={devices=[8]<=[8]}",
        "r = f32[1000] add(p, q)",
    )
    advice = advice_for(module_text(*lines, header="is_scheduled=true, num_partitions=8"))
    (item,) = advice.shardings
    assert (item.buffer.name, item.saved, item.devices) == ("p", 3500, 8)
    assert advice.sharded_bound == 3500
    assert not advice_for(module_text(*lines)).shardings  # one device
    permute = "s = f32[1000] collective-permute(r), channel_id=1, source_target_pairs={{0,7}}"
    (item,) = advice_for(module_text(*lines, permute)).shardings  # the header leaves the count out
    assert (item.buffer.name, item.devices) == ("p", 8)


def test_a_module_without_memory_needs_no_advice() -> None:
    advice = advice_for(module_text("t = token[] after-all()"))
    assert [*advice.donations, *advice.rematerializations, *advice.offloads] == []


def test_advice_goes_as_far_as_the_limit_asks() -> None:
    text = module_text(*KEPT)
    needed = needed_bytes(analyze_memory(parse_module(text)).statistics)
    assert advice_for(text, needed - 4).offloaded_peak.saved >= 4
    assert len(advice_for(text, needed - 4).offloads) < len(advice_for(text, 1).offloads)
