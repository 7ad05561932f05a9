"""The memory report as text and as data."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable

import pytest
from rich.console import Console

from hloopt.memory import MemoryReport, analyze_memory
from hloopt.memory.limit import MemoryLimit
from hloopt.reports.console.units import human_bytes
from hloopt.reports.memory import comparison as memory_diff
from hloopt.reports.memory.advice import render_advice, render_fit
from hloopt.reports.memory.comparison import PeakChange, compare_memory, peak_change
from hloopt.reports.memory.comparison_terminal import memory_delta, render_memory_change
from hloopt.reports.memory.groups import GROUPINGS, grouped
from hloopt.reports.memory.model import MemoryFindings, exhausted
from hloopt.reports.memory.record import memory_to_json
from hloopt.reports.memory.terminal import render_largest, render_memory
from hloopt.reports.memory.trace import memory_trace
from hloopt.targets import load_target
from hloopt.text import parse_module

TEXT = """HloModule step, is_scheduled=true
ENTRY e {
  a = f32[1024] parameter(0), metadata={op_name="weights"}
  b = f32[2048] concatenate(a, a), dimensions={0}, metadata={op_name="jit(f)/layer_1/concatenate"}
  c = f32[2048] concatenate(a, a), dimensions={0}, metadata={op_name="jit(f)/layer_2/concatenate"}
  d = f32[2048] custom-call(b, c), custom_call_target="f", metadata={op_name="jit(f)/f"}
  ROOT s = f32[1] slice(d), slice={[0:1]}
}
"""


def report(text: str = TEXT) -> MemoryReport:
    return analyze_memory(parse_module(text))


def rendered(
    what: object,
    *,
    width: int = 80,
    color: bool = False,
    top: int = 10,
    allocations: int = 0,
    by: str = "buffer",
    limit: int | None = None,
) -> str:
    stream = io.StringIO()
    console = Console(
        file=stream,
        width=width,
        color_system="truecolor" if color else None,
        force_terminal=color,
    )
    if isinstance(what, MemoryReport):
        render_memory(what, console, top=top, allocations=allocations, by=by, limit=limit)
    else:
        console.print(what)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (1024**2 - 1, "1.0 MiB"),
        (80 * 1024**3, "80.0 GiB"),
        (3 * 1024**5, "3,072.0 TiB"),
        (-2048, "-2.0 KiB"),
    ],
)
def test_sizes_for_people(size: int, text: str) -> None:
    assert human_bytes(size) == text


def test_a_signed_size_shows_growth() -> None:
    assert human_bytes(2048, signed=True) == "+2.0 KiB"


@pytest.mark.parametrize("width", [50, 80, 200])
def test_no_line_is_wider_than_the_console(width: int) -> None:
    assert max(map(len, rendered(report(), width=width).splitlines())) <= width


def test_the_page_names_sizes_peak_and_origins() -> None:
    page = rendered(report())
    assert re.search(r"arguments +4\.0 KiB", page)
    assert "peak at %d (custom-call) in %e" in page
    assert "2 x f32[2048]" in page
    assert "jit(f)/layer_*/concatenate" in page
    assert "rules of XLA:CPU" in page


def test_what_is_not_shown_is_summed_up() -> None:
    assert "and 2 more" in rendered(report(), top=2)


def test_colour_is_left_to_the_console() -> None:
    assert "\x1b" not in rendered(report())
    assert "\x1b" in rendered(report(), color=True)


def test_a_module_without_memory_is_a_page_too() -> None:
    assert "0 B" in rendered(report("HloModule m\nENTRY e { ROOT t = token[] after-all() }\n"))


def test_json_holds_the_report_in_bytes() -> None:
    data = memory_to_json(report())
    assert json.loads(json.dumps(data)) == data
    statistics = data["statistics"]
    assert statistics["argument_size_in_bytes"] == 4096
    assert statistics["output_size_in_bytes"] == 4
    assert statistics["temp_size_in_bytes"] == 24576
    assert statistics["generated_code_size_in_bytes"] is None
    assert statistics["peak_memory_in_bytes"] == data["peak"]
    assert data["peak"] == 4100 + 24576
    assert data["peak_instruction"]["name"] == "d"
    assert data["live_at_peak"][0]["kind"] == "temporary"
    assert data["timeline"] == [[0, 4100], [1, 12292], [2, 20484], [3, 28676], [4, 12292]]
    assert data["positions"] == 5


def test_a_comparison_shows_both_and_the_change() -> None:
    smaller = TEXT.replace("(b, c)", "(b, b)").replace("  c = ", "  // c = ")
    table = rendered(memory_delta(report(), report(smaller)))
    peak = next(line for line in table.splitlines() if line.startswith("peak"))
    assert peak.split() == ["peak", "28.0", "KiB", "20.0", "KiB", "-8.0", "KiB", "(-28.6%)"]
    arguments = next(line for line in table.splitlines() if line.startswith("arguments"))
    assert arguments.split()[-1] == "="
    assert "aliased" not in table


def test_allocations_are_listed_on_request() -> None:
    page = rendered(report(), allocations=1)
    assert re.search(r"24\.0 KiB +3 +temporary", page)
    assert "parameter 0" not in page
    assert "parameter 0" in rendered(report(), allocations=9)


# -- groups ---------------------------------------------------------------------------------------


def test_buffers_come_by_scope() -> None:
    page = rendered(report(), by="scope")
    assert re.search(r"8\.0 KiB .* jit\(f\)/layer_1/concatenate", page)
    (whole,) = (g for g in grouped(report().live_at_peak, "scope", depth=1) if g.count > 1)
    assert (whole.label, whole.count, whole.size, whole.kind) == ("jit(f)", 3, 24576, "temporary")


def test_buffers_come_by_source_line() -> None:
    text = TEXT.replace('concatenate"', 'concatenate" source_file="model.py" source_line=7')
    labels = {g.label: g.count for g in grouped(report(text).live_at_peak, "source")}
    assert labels == {"model.py:7": 4, "(argument) weights": 1}
    assert "model.py:7" in rendered(report(text), by="source")


@pytest.mark.parametrize("by", GROUPINGS)
def test_groups_add_up_to_the_peak(by: str) -> None:
    assert sum(group.size for group in grouped(report().live_at_peak, by)) == report().peak


def test_what_is_beyond_the_limit_is_red() -> None:
    red = "\x1b[31m"
    assert red in rendered(report(), color=True, limit=10_000)
    assert red not in rendered(report(), color=True, limit=100_000)


# -- limit, advice, data --------------------------------------------------------------------------


def findings(limit: int | None, *, wants_advice: bool | None = None) -> MemoryFindings:
    return MemoryFindings.of(
        parse_module(TEXT),
        load_target("h100_sxm"),
        limits=[] if limit is None else [MemoryLimit(limit, "--limit")],
        wants_advice=wants_advice,
    )


def on_console(show: Callable[[Console], object], width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    show(console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_what_does_not_fit_is_said_as_xla_says_it() -> None:
    found = findings(20_000)
    assert found.fit is not None
    assert found.fit.needed == 4100 + 24576
    assert exhausted(found.fit) == (
        "RESOURCE_EXHAUSTED: Ran out of memory in memory space default. Used 28.0 KiB of 19.5 KiB "
        "(--limit). Exceeded capacity by 8.5 KiB."
    )
    fits = findings(4100 + 24576).fit
    assert fits is not None
    assert fits.fits
    assert "fits: 28.0 KiB of 28.0 KiB" in on_console(lambda console: render_fit(fits, console))


def test_advice_comes_where_it_is_needed() -> None:
    assert findings(None).advice is None
    assert findings(10**9).advice is None
    assert findings(20_000).advice is not None
    assert findings(20_000, wants_advice=False).advice is None
    assert findings(None, wants_advice=True).advice is not None


HELP = """HloModule help, is_scheduled=true, num_partitions=8
ENTRY e {
  a = f32[100] parameter(0), sharding={replicated}, metadata={op_name="x"}
  w = f32[100] parameter(1), metadata={op_name="params['w']"}
  b = f32[400] concatenate(a, a, a, a), dimensions={0}, metadata={op_name="jit(f)/one"}
  b2 = f32[400] concatenate(w, a, a, a), dimensions={0}, metadata={op_name="jit(f)/two"}
  c = f32[100] slice(b), slice={[0:100]}
  d = f32[500] concatenate(c, c, c, c, c), dimensions={0}
  e = f32[100] slice(d), slice={[0:100]}
  g = f32[50] slice(b), slice={[0:50]}
  g2 = f32[50] slice(b2), slice={[0:50]}
  h = f32[200] concatenate(e, g, g2), dimensions={0}
  i = f32[100] slice(h), slice={[0:100]}
  ROOT r = f32[100] add(i, w)
}
"""


@pytest.mark.parametrize("width", [60, 80, 200])
def test_advice_fits_the_console(width: int) -> None:
    target, limit = load_target("h100_sxm"), MemoryLimit(2000, "--limit")
    advice = MemoryFindings.of(parse_module(HELP), target, limits=[limit]).advice
    assert advice is not None
    page = on_console(lambda console: render_advice(advice, console, 5), width)
    assert max(map(len, page.splitlines())) <= width
    for title in ("donate: ", "compute again: ", "offload: ", "shard: "):
        assert title in page
    assert "donate: 1 argument to outputs: needs " in page
    assert "compute again: 3 times, 2 of them later only: peak " in " ".join(page.split())
    assert re.search(r"400 B +400 B +0 +\{\} +f32\[100\] +x", page)
    assert re.search(r"1\.6 KiB +0 +0 +3-8 +f32\[400\] +jit\(f\)/two", page)
    assert re.search(r"400 B +350 B +f32\[100\] +x", page)


def test_the_largest_buffers_have_lifetimes_and_places() -> None:
    found = findings(None)
    page = on_console(lambda console: render_largest(found.report, found.placed(), console, 2))
    assert re.search(r"8\.0 KiB +1 +3 +\d+\S* +temporary +f32\[2048\]", page)
    assert "%a" not in page


def keys(data: object) -> object:
    """The shape of plain data: names, and of each list its first element."""
    if isinstance(data, dict):
        return {name: keys(value) for name, value in data.items()}
    if isinstance(data, list):
        return [keys(data[0])] if data else []
    return type(data).__name__


def test_the_json_model_keeps_its_names() -> None:
    found = findings(20_000)
    model = found.model
    assert found.model is model  # made once, for a page and JSON
    assert json.loads(json.dumps(model)) == json.loads(json.dumps(model, default=list))
    assert list(model) == [
        *("module", "backend", "order", "space", "statistics", "allocations"),
        *("peak_instruction", "live_at_peak", "timeline", "spaces", "assumptions", "notices"),
        *("doubts", "stacks", "peak", "throughout", "positions", "instructions", "buffers"),
        *("stage", "fit", "fits", "move_times", "no_verdict", "advice"),
    ]
    assert keys(model["buffers"]) == [
        {
            **{"name": "str", "computation": "str", "opcode": "str", "shape": "str"},
            **{"size": "int", "kind": "str", "op_name": "str", "source": "str"},
            **{"allocation": "int", "offset": "int", "live": ["int"], "in_timeline": "bool"},
            **{"source_basis": "str", "stack": "NoneType"},
        }
    ]
    assert keys(model["fit"]) == {
        **{
            "space": "int",
            "space_name": "str",
            "needed": "int",
            "limit": "int",
            "limit_source": "str",
            "fits": "bool",
        },
        "message": "str",
    }
    assert list(model["advice"]) == [
        *("target", "donations", "donated_need", "donated_peak", "rematerializations"),
        *("rematerialized_peak", "obstacles", "offloads", "offloaded_peak"),
        *("shardings", "sharded_bound"),
    ]
    assert model["instructions"] == ["a", "b", "c", "d", "s"]


def test_the_trace_counts_memory_over_the_positions() -> None:
    model = findings(None).model
    events = memory_trace(model)["traceEvents"]
    counters = [(e["ts"], sum(e["args"].values())) for e in events if e["ph"] == "C"]
    assert counters == [*map(tuple, model["timeline"]), (5, 4100)]
    assert [e["name"] for e in events if e["ph"] == "X"] == model["instructions"]
    (peak,) = (e for e in events if e["ph"] == "i")
    assert (peak["ts"], peak["args"]) == (3, {"bytes": model["peak"]})


# -- what entered and left the peak ---------------------------------------------------------------


def test_what_entered_and_left_the_peak_is_named() -> None:
    smaller = TEXT.replace("(b, c)", "(b, b)").replace("  c = ", "  // c = ")
    change = peak_change(report(), report(smaller))
    assert [buffer.name for buffer in change.left] == ["c"]
    assert change.entered == []
    page = on_console(lambda console: render_memory_change(report(), report(smaller), console))
    assert re.search(r"left +8\.0 KiB +temporary +f32\[2048\]", page)
    back = peak_change(report(smaller), report())
    assert [buffer.name for buffer in back.entered] == ["c"]


def test_renamed_buffers_stay() -> None:
    other = (
        TEXT.replace("layer_1", "layer_3").replace(" b = ", " b.7 = ").replace("(b, c)", "(b.7, c)")
    )
    assert peak_change(report(), report(other)) == PeakChange([], [])
    inlined = (
        TEXT.replace("jit(f)/f", "jit(g)/jit(f)/f")
        .replace(" d = ", " e.1 = ")
        .replace("(d)", "(e.1)")
    )
    assert peak_change(report(), report(inlined)) == PeakChange([], [])


def test_a_comparison_is_left_out_where_it_would_take_long(monkeypatch: pytest.MonkeyPatch) -> None:
    module = parse_module(TEXT)
    assert compare_memory(module, module, wanted=False) == (None, None)
    reports, note = compare_memory(module, module, wanted=None)
    assert reports is not None
    assert reports[0] is reports[1]
    assert note is None
    monkeypatch.setattr(memory_diff, "AUTOMATIC", 4)
    assert compare_memory(module, module, wanted=None) == (
        None,
        "no memory report: 5 instructions, more than 4; --memory makes it",
    )
    assert compare_memory(module, module, wanted=True)[0] is not None
