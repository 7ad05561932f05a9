"""The memory report as text and as data."""

from __future__ import annotations

import io
import json
import re

import pytest

from hloopt.memory import MemoryReport, analyze_memory
from hloopt.reports.memory import human_bytes, memory_delta, render_memory
from hloopt.reports.memory_json import memory_to_json
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
) -> str:
    from rich.console import Console

    stream = io.StringIO()
    console = Console(
        file=stream,
        width=width,
        color_system="truecolor" if color else None,
        force_terminal=color,
    )
    if isinstance(what, MemoryReport):
        render_memory(what, console, top=top, allocations=allocations)
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
