"""Differences on a terminal, and as JSON."""

from __future__ import annotations

import io
import json
import re

import pytest
from rich.console import Console
from tests.reports.diff.steps import STAGES, STEP, TESTDATA, diff_texts, edit, read, shown

from hloopt.reports.diff.comparison import diff_modules
from hloopt.reports.diff.record import diff_to_json
from hloopt.reports.diff.terminal import render_diff


def test_identical_modules_take_two_lines() -> None:
    assert shown(diff_texts(STEP, STEP), 80) == (
        "step\nidentical: 2 computations, 10 instructions\n"
    )


def test_the_summary_counts_and_lists_opcodes() -> None:
    text = edit(
        ("add(%negate.1", "subtract(%negate.1"), ("%tanh.1", "%t"), ("channel_id=1", "channel_id=2")
    )
    lines = [line.rstrip() for line in shown(diff_texts(STEP, text), 80).splitlines()]
    assert lines == [
        "step",
        "computations  2   ~1",
        "instructions  10  +1  -1  ~1",
        "1 renamed: 1 instruction",
        "",
        "opcode     before   after   change",
        "──────────────────────────────────",
        "add             2       1       -1",
        "subtract        0       1       +1",
        "",
        "computation   before   after   difference",
        "─────────────────────────────────────────",
        "~ %main            7       7   +1  -1  ~1",
        "",
        "change                     times   where",
        "─────────────────────────────────────────────────────────",
        "~ all-reduce: channel_id       1   %all-reduce.1 in %main",
        "- add f32[64,16]               1   %out in %main",
        "+ subtract f32[64,16]          1   %out in %main",
    ]


def test_words_move_to_a_line_of_their_own_where_they_do_not_fit() -> None:
    text = edit(("channel_id=1", "channel_id=2"), ("%tanh.1", "%t"), ("%dot.1", "%d"))
    diff = diff_texts(STEP, text, names=True)
    lines = [line.rstrip() for line in shown(diff, 30).splitlines()]
    assert lines[1:4] == ["computations  2   ~1", "instructions  10  ~1", " " * 14 + "2 names only"]


def test_a_header_attribute_is_shown_as_before_and_after() -> None:
    diff = diff_texts(STEP, edit(("HloModule step", "HloModule step2, num_partitions=8")))
    assert shown(diff, 80).splitlines()[0] == "step → step2"
    assert shown(diff, 80).splitlines()[-1] == "num_partitions: absent → 8"


def test_a_long_header_attribute_keeps_what_differs() -> None:
    layout = ", ".join(f"f32[{number},16]{{1,0}}" for number in range(90))
    before = f"HloModule m, entry_computation_layout={{({layout})->f32[]}}\n"
    after = before.replace("f32[50,16]", "f32[50,99]")
    entry = "\nENTRY %e {\n  ROOT %p = f32[] parameter(0)\n}\n"
    *_, old, new = shown(diff_texts(before + entry, after + entry), 100).splitlines()
    assert old.startswith("entry_computation_layout: {(f32[0,16]")
    assert "f32[50,16]" in old
    assert new.startswith("                        → {(f32[0,16]")
    assert "f32[50,99]" in new
    assert max(len(old), len(new)) <= 100


def test_what_differs_everywhere_loses_its_middle() -> None:
    before = f'HloModule m, frontend_attributes={{a="{"x" * 200}"}}\n'
    entry = "\nENTRY %e {\n  ROOT %p = f32[] parameter(0)\n}\n"
    diff = diff_texts(before + entry, before.replace("x", "y") + entry)
    *_, old, new = shown(diff, 80).splitlines()
    assert re.fullmatch(r'frontend_attributes: \{a="x+…x+"\}', old)
    assert re.fullmatch(r' +→ \{a="y+…y+"\}', new)
    assert (len(old), len(new)) == (80, 80)


def test_computations_left_out_are_counted_by_kind_the_largest_come_first() -> None:
    one = read(TESTDATA / "transformer_unrolled_8dev.before_optimizations.hlo.gz")
    other = read(TESTDATA / "transformer_unrolled_8dev.after_spmd_partitioning.hlo.gz")
    diff = diff_modules(one, other)
    lines = shown(diff, 80, top=4).splitlines()
    assert any(
        re.fullmatch(r"… and \d+ more computations: (\d+ [a-z ]+(, |$))+", line) for line in lines
    )
    removed = [int(line.split()[2]) for line in lines if line.startswith("- %")]
    assert removed
    assert removed == sorted(removed, reverse=True)


def test_of_a_removed_computation_a_few_instructions_are_shown() -> None:
    only_entry = "HloModule m\n\nENTRY %e {\n  ROOT %p = f32[] parameter(0)\n}\n"
    extra = "\n%f {\n  %x.0 = f32[] parameter(0)\n" + "".join(
        f"  %x.{i} = f32[] negate(%x.{i - 1})\n" for i in range(1, 9)
    )
    with_more = only_entry.replace("\nENTRY", extra.replace("%x.8", "ROOT %x.8") + "}\n\nENTRY")
    out = shown(diff_texts(with_more, only_entry), 80, text=True)
    assert out.endswith(
        "- %f  removed\n"
        "- %x.0 = f32[] parameter(0)\n"
        "- %x.1 = f32[] negate(%x.0)\n"
        "- %x.2 = f32[] negate(%x.1)\n"
        "- %x.3 = f32[] negate(%x.2)\n"
        "… and 5 more instructions\n"
    )


def test_texts_are_shown_on_request() -> None:
    diff = diff_texts(STEP, edit(("negate(%tanh.1)", "negate(%dot.1)")))
    assert "- %negate.1" not in shown(diff, 80)
    out = shown(diff, 80, text=True)
    assert "- %negate.1 = f32[64,16]{1,0} negate(%tanh.1)" in out
    assert "+ %negate.1 = f32[64,16]{1,0} negate(%dot.1)" in out


def test_two_columns_need_a_wide_console() -> None:
    diff = diff_texts(STEP, edit(("negate(%tanh.1)", "negate(%dot.1)")))
    wide = shown(diff, 140, side_by_side=True)
    assert re.search(r"negate\(%tanh\.1\) +│ %negate\.1 = f32\[64,16\]\{1,0\} negate\(%dot", wide)
    assert "+ %negate.1" in shown(diff, 80, side_by_side=True)


@pytest.mark.parametrize("width", [80, 140])
def test_no_line_is_wider_than_the_console(width: int) -> None:
    one, other = (read(TESTDATA / f"transformer_scan_8dev.{stage}.hlo") for stage in STAGES[:2])
    out = shown(diff_modules(one, other), width, side_by_side=True)
    assert max(map(len, out.splitlines())) <= width


def test_a_long_text_keeps_its_start_and_what_differs() -> None:
    diff = diff_texts(STEP, edit(("{{0,1,2,3},{4,5,6,7}}", "{{0,1,2,3,4,5,6,7}}")))
    out = " ".join(shown(diff, 80, text=True).split())
    assert "- %all-reduce.1 = f32[64,16]{1,0} all-reduce(%dot.1), …" in out
    assert "{{0,1,2,3},{4,5,6,7}}" in out
    assert "{{0,1,2,3,4,5,6,7}}" in out


def test_differing_parts_are_coloured_and_names_are_not_markup() -> None:
    diff = diff_texts(STEP, edit(("negate(%tanh.1)", "negate(%dot.1)")))
    out = io.StringIO()
    render_diff(
        diff, Console(file=out, width=80, force_terminal=True, color_system="standard"), text=True
    )
    assert "\x1b[1;31mtanh.1\x1b[0m" in out.getvalue()
    assert "\x1b[1;32mdot.1\x1b[0m" in out.getvalue()


def test_the_limit_says_what_it_leaves_out() -> None:
    text = edit(("channel_id=1", "channel_id=2"), ("negate(%tanh.1)", "negate(%dot.1)"))
    diff = diff_texts(STEP, text)
    assert "… and 1 more instruction" in shown(diff, 80, top=1, text=True)
    assert "more" not in shown(diff, 80, top=2, text=True)


def test_json_has_everything_whole() -> None:
    diff = diff_texts(STEP, edit(("{{0,1,2,3},{4,5,6,7}}", "{{0,1,2,3,4,5,6,7}}")))
    report = json.loads(json.dumps(diff_to_json(diff)))
    assert report["identical"] is False
    assert report["before"] == {"module": "step", "computations": 2, "instructions": 10}
    assert report["totals"]["instructions"]["changed"] == 1
    [change] = report["computations"][0]["changed"]
    assert change["kind"] == "changed"
    assert change["after"]["text"].endswith("use_global_device_ids=true, to_apply=%sum")
