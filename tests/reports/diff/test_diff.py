"""What `hloopt diff` finds between two modules, and how it shows it."""

from __future__ import annotations

import io
import json
import re
from itertools import pairwise
from pathlib import Path

import pytest
from rich.console import Console

from hloopt.analysis.content import as_classes
from hloopt.files import read_module
from hloopt.ir.module import Module
from hloopt.reports.diff.changes import Difference
from hloopt.reports.diff.comparison import NAMES, diff_modules
from hloopt.reports.diff.findings import ModuleDiff
from hloopt.reports.diff.record import diff_to_json
from hloopt.reports.diff.terminal import render_diff
from hloopt.text import PrintOptions, parse_module, print_module

TESTDATA = Path(__file__).parents[3] / "testdata"

STEP = """HloModule step

%sum (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %s = f32[] add(%x, %y)
}

ENTRY %main (p: f32[64,32], w: f32[32,16]) -> f32[64,16] {
  %p = f32[64,32]{1,0} parameter(0)
  %w = f32[32,16]{1,0} parameter(1)
  %dot.1 = f32[64,16]{1,0} dot(%p, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, \
metadata={op_name="jit(step)/query" stack_frame_id=12}
  %all-reduce.1 = f32[64,16]{1,0} all-reduce(%dot.1), channel_id=1, \
replica_groups={{0,1,2,3},{4,5,6,7}}, use_global_device_ids=true, to_apply=%sum
  %tanh.1 = f32[64,16]{1,0} tanh(%dot.1)
  %negate.1 = f32[64,16]{1,0} negate(%tanh.1)
  ROOT %out = f32[64,16]{1,0} add(%negate.1, %all-reduce.1)
}
"""


def diff_texts(before: str, after: str, *, names: bool = False, ignore: str = "") -> ModuleDiff:
    ignored = as_classes(ignore.split()) | (frozenset() if names else NAMES)
    return diff_modules(parse_module(before), parse_module(after), ignored)


def edit(*changes: tuple[str, str], text: str = STEP) -> str:
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


def changes_of(diff: ModuleDiff) -> list[tuple[str, str, str]]:
    """Kind, name before and name after of every instruction that is on both sides."""
    return [
        (change.kind.value, change.before.name, change.after.name)
        for computation in diff.computations
        for change in computation.changed
    ]


def shown(diff: ModuleDiff, width: int, top: int = 20, **options: bool) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, no_color=True)
    render_diff(diff, console, top=top, **options)
    return out.getvalue()


def read(path: Path) -> Module:
    return read_module(str(path))


# -- what differs ---------------------------------------------------------------------------


def test_a_module_is_identical_to_itself() -> None:
    diff = diff_texts(STEP, STEP)
    assert diff.is_identical
    assert diff.instruction_totals() == dict.fromkeys(Difference, 0)


def test_spelling_is_no_difference() -> None:
    respelled = edit(
        ("lhs_contracting_dims={1}", "lhs_contracting_dims={ 1 }"), ("(%p, %w)", "(p, w)")
    )
    assert diff_texts(STEP, respelled).is_identical


def test_a_reprinted_module_is_identical() -> None:
    module = parse_module(STEP)
    printed = parse_module(print_module(module, PrintOptions.default()))
    assert diff_modules(module, printed).computations == []


def test_an_attribute_makes_an_instruction_changed() -> None:
    diff = diff_texts(STEP, edit(("{{0,1,2,3},{4,5,6,7}}", "{{0,1,2,3,4,5,6,7}}")))
    assert changes_of(diff) == [("changed", "all-reduce.1", "all-reduce.1")]
    [computation] = diff.computations
    assert "{{0,1,2,3},{4,5,6,7}}" in computation.changed[0].before.text
    assert "{{0,1,2,3,4,5,6,7}}" in computation.changed[0].after.text
    assert diff.opcodes == []


def test_a_new_name_is_no_difference_but_counted() -> None:
    diff = diff_texts(STEP, edit(("%negate.1", "%minus"), ("%sum", "%plus")))
    assert diff.is_identical
    assert (diff.renamed.instructions, diff.renamed.computations, diff.renamed.count) == (1, 1, 2)


def test_where_names_count_a_new_name_makes_an_instruction_renamed_but_not_its_users() -> None:
    diff = diff_texts(STEP, edit(("%negate.1", "%minus")), names=True)
    assert changes_of(diff) == [("renamed", "negate.1", "minus")]
    assert diff.computations[0].kind is Difference.RENAMED
    assert not diff.is_identical


def test_metadata_alone_is_told_apart() -> None:
    diff = diff_texts(STEP, edit(("jit(step)/query", "jit(step)/key")))
    assert changes_of(diff) == [("metadata", "dot.1", "dot.1")]


def test_another_operand_is_a_change_and_not_a_renaming() -> None:
    diff = diff_texts(STEP, edit(("negate(%tanh.1)", "negate(%dot.1)")))
    assert changes_of(diff) == [("changed", "negate.1", "negate.1")]


def test_another_root_is_a_change() -> None:
    text = edit(("  ROOT %out", "  %out"), ("  %negate.1 =", "  ROOT %negate.1 ="))
    diff = diff_texts(STEP, text)
    assert changes_of(diff) == [("changed", "negate.1", "negate.1"), ("changed", "out", "out")]
    assert diff.computations[0].changed[0].after.text.startswith("ROOT %negate.1")


def test_a_large_constant_is_compared_whole() -> None:
    text = "HloModule m\n\nENTRY %e {{\n  ROOT %c = s32[12]{{0}} constant({{{}}})\n}}\n"
    before = text.format(", ".join(map(str, range(12))))
    diff = diff_texts(before, before.replace("7", "70"))
    assert changes_of(diff) == [("changed", "c", "c")]
    assert "70" in diff.computations[0].changed[0].after.text


def test_added_and_removed_instructions_count_by_opcode() -> None:
    text = edit(
        ("negate(%tanh.1)", "negate(%exp.1)"),
        ("%tanh.1 = f32[64,16]{1,0} tanh(%dot.1)", "%exp.1 = f32[64,16]{1,0} exponential(%dot.1)"),
    )
    diff = diff_texts(STEP, text)
    [computation] = diff.computations
    assert [line.name for line in computation.removed] == ["tanh.1"]
    assert [line.name for line in computation.added] == ["exp.1"]
    assert [(o.opcode, o.before, o.after, o.change) for o in diff.opcodes] == [
        ("exponential", 0, 1, 1),
        ("tanh", 1, 0, -1),
    ]


def test_the_name_stays_with_what_a_pass_edited_not_with_the_clone_of_the_original() -> None:
    text = edit(
        ("  %negate.1 = ", "  %tanh.1.clone = f32[64,16]{1,0} tanh(%dot.1)\n  %negate.1 = "),
        ("%tanh.1 = f32[64,16]{1,0} tanh(%dot.1)", "%tanh.1 = f32[64,16]{1,0} tanh(%all-reduce.1)"),
    )
    diff = diff_texts(STEP, text)
    assert ("changed", "tanh.1", "tanh.1") in changes_of(diff)
    assert [line.name for line in diff.computations[0].added] == ["tanh.1.clone"]


def test_a_renamed_computation_is_found_by_structure() -> None:
    diff = diff_texts(STEP, edit(("%sum", "%region_0.7")), names=True)
    assert [(c.before, c.after, c.kind) for c in diff.computations] == [
        ("sum", "region_0.7", Difference.RENAMED)
    ]
    assert diff_texts(STEP, edit(("%sum", "%region_0.7"))).is_identical


def test_a_renamed_and_changed_computation_is_found_through_its_caller() -> None:
    diff = diff_texts(STEP, edit(("%sum", "%largest"), ("f32[] add(", "f32[] maximum(")))
    [computation] = diff.computations
    assert (computation.before, computation.after) == ("sum", "largest")
    assert computation.replaced == [("s", "s")]


def test_added_and_removed_computations_bring_all_their_instructions() -> None:
    text = re.sub(
        r"%sum.*?\n}\n", "", edit((", to_apply=%sum", ""), ("all-reduce(", "copy(")), flags=re.S
    )
    text = re.sub(r"copy\(%dot.1\)[^\n]*", "copy(%dot.1)", text)
    diff = diff_texts(STEP, text)
    [removed] = diff.computations_of(Difference.REMOVED)
    assert (removed.before, removed.after, removed.size_before) == ("sum", None, 3)
    assert [line.name for line in removed.removed] == ["x", "y", "s"]
    [added] = diff_texts(text, STEP).computations_of(Difference.ADDED)
    assert (added.after, len(added.added)) == ("sum", 3)


def test_names_numbered_anew_are_names_only() -> None:
    renumbered = re.sub(
        r"%([a-z][a-z\-]*)(?:\.(\d+))?\b", lambda m: f"%{m[1]}.{int(m[2] or 0) + 4}", STEP
    )
    assert diff_texts(STEP, renumbered).is_identical
    diff = diff_texts(STEP, renumbered, names=True)
    assert {kind for kind, _, _ in changes_of(diff)} == {"renamed"}
    totals = diff.instruction_totals()
    assert (totals[Difference.ADDED], totals[Difference.REMOVED]) == (0, 0)


def test_numbers_that_shift_by_one_pair_by_structure() -> None:
    body = [f"  %add.{i + 1} = f32[{i + 2}]{{0}} add(%p.{i}, %p.{i})" for i in range(6)]
    parameters = [f"  %p.{i} = f32[{i + 2}]{{0}} parameter({i})" for i in range(6)]
    before = "\n".join(("HloModule m\n", "ENTRY %e {", *parameters, *body, "}\n"))
    shifted = re.sub(r"%add\.(\d+)", lambda m: f"%add.{int(m[1]) + 1}", before)
    shifted = re.sub(r"%p\.(\d+)", lambda m: f"%p.{int(m[1]) + 1}", shifted)
    diff = diff_texts(before, shifted, names=True)
    assert ("renamed", "add.1", "add.2") in changes_of(diff)
    assert {kind for kind, _, _ in changes_of(diff)} == {"renamed"}


def test_where_no_name_is_kept_structure_counts_for_more_than_order() -> None:
    before = """HloModule m

ENTRY %e {
  %p.1 = f32[4]{0} parameter(0)
  %exp.1 = f32[4]{0} exponential(%p.1)
  %negate.1 = f32[4]{0} negate(%exp.1)
  ROOT %tanh.1 = f32[4]{0} tanh(%negate.1)
}
"""
    after = """HloModule m

ENTRY %e {
  %p.5 = f32[4]{0} parameter(0)
  %negate.5 = f32[4]{0} negate(%p.5)
  %exp.5 = f32[4]{0} exponential(%p.5)
  %negate.6 = f32[4]{0} negate(%exp.5)
  %tanh.5 = f32[4]{0} tanh(%negate.6)
  ROOT %add.5 = f32[4]{0} add(%tanh.5, %negate.5)
}
"""
    diff = diff_texts(before, after, names=True)
    assert ("renamed", "negate.1", "negate.6") in changes_of(diff)
    assert [line.name for line in diff.computations[0].added] == ["negate.5", "add.5"]


def test_computations_that_swapped_names_pair_by_structure() -> None:
    text = """HloModule m

%r1 (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %s = f32[] add(%x, %y)
}

%r2 (u: f32[], v: f32[]) -> f32[] {
  %u = f32[] parameter(0)
  %v = f32[] parameter(1)
  ROOT %t = f32[] maximum(%u, %v)
}

ENTRY %e {
  %p = f32[4]{0} parameter(0)
  %a = f32[4]{0} all-reduce(%p), replica_groups={}, to_apply=%r1
  ROOT %b = f32[4]{0} all-reduce(%a), replica_groups={}, to_apply=%r2
}
"""
    swapped = re.sub(r"%r([12])", lambda m: f"%r{3 - int(m[1])}", text)
    diff = diff_texts(text, swapped, names=True)
    pairs = {(c.before, c.after, c.kind) for c in diff.computations}
    assert pairs == {("r1", "r2", Difference.RENAMED), ("r2", "r1", Difference.RENAMED)}


def moved_tanh(text: str) -> str:
    lines = text.splitlines(keepends=True)
    [tanh] = [line for line in lines if "%tanh.1 =" in line]
    lines.remove(tanh)
    position = next(i for i, line in enumerate(lines) if "%all-reduce.1 =" in line)
    return "".join((*lines[:position], tanh, *lines[position:]))


def test_order_counts_in_a_scheduled_module() -> None:
    scheduled = edit(("HloModule step", "HloModule step, is_scheduled=true"))
    diff = diff_texts(scheduled, moved_tanh(scheduled))
    assert diff.count_moved() == 1
    assert not diff.is_identical


def test_order_does_not_count_in_an_unscheduled_module() -> None:
    assert diff_texts(STEP, moved_tanh(STEP)).is_identical


def test_header_attributes_are_compared() -> None:
    diff = diff_texts(STEP, edit(("HloModule step", "HloModule step2, num_partitions=8")))
    assert [(a.name, a.before, a.after) for a in diff.attributes] == [("num_partitions", None, "8")]
    assert not diff.is_identical
    assert diff.renamed.module


def test_the_name_of_the_module_is_one_of_the_names() -> None:
    text = edit(("HloModule step", "HloModule step2"))
    assert diff_texts(STEP, text).is_identical
    [change] = diff_texts(STEP, text, names=True).attributes
    assert (change.name, change.before, change.after) == ("name", "step", "step2")


FRAMES = """HloModule m

FileNames
1 "step.py"

FunctionNames
1 "step"

FileLocations
1 {file_name_id=1 function_name_id=1 line=3 end_line=3 column=4 end_column=9}

StackFrames
1 {file_location_id=1 parent_frame_id=1}

ENTRY %e {
  ROOT %p = f32[4]{0} parameter(0)
}
"""


@pytest.mark.parametrize(
    ("old", "new", "line", "tables"),
    [
        (
            "1 {file_location_id=1 parent_frame_id=1}",
            "1 {file_location_id=1 parent_frame_id=1}\n2 {file_location_id=1 parent_frame_id=2}",
            "stack frames: 1 → 2",
            ["StackFrames"],
        ),
        (
            "parent_frame_id=1}",
            "parent_frame_id=2}",
            "stack frames: 1, not the same",
            ["StackFrames"],
        ),
        ("line=3", "line=5", "stack frames: 1; FileLocations differ", ["FileLocations"]),
    ],
)
def test_stack_frames_take_one_line(old: str, new: str, line: str, tables: list[str]) -> None:
    diff = diff_texts(FRAMES, edit((old, new), text=FRAMES))
    assert shown(diff, 80).splitlines()[-1] == line
    assert not diff.is_identical
    frames = json.loads(json.dumps(diff_to_json(diff)))["stack_frames"]
    assert frames == {"before": 1, "after": 1 + ("→" in line), "tables": tables}


def test_spaces_between_stack_frames_do_not_count() -> None:
    respelled = edit(("\n1 ", " 1   "), text=FRAMES)
    assert diff_texts(FRAMES, respelled).is_identical
    assert diff_to_json(diff_texts(FRAMES, FRAMES))["stack_frames"] is None


def test_a_changed_module_can_be_compared_with_its_source() -> None:
    after = parse_module(STEP)
    instruction = next(i for i in after.instructions() if i.name == "negate.1")
    instruction.take_name("minus")
    diff = diff_modules(parse_module(STEP), after, frozenset())
    assert changes_of(diff) == [("renamed", "negate.1", "minus")]


# -- real modules ---------------------------------------------------------------------------

PROGRAMS = ["branches", "fori_loop", "mlp_psum_8dev", "ring_matmul_8dev", "transformer_scan_8dev"]
STAGES = ["before_optimizations", "after_spmd_partitioning", "after_optimizations"]


@pytest.mark.parametrize("program", PROGRAMS)
def test_differences_account_for_every_instruction(program: str) -> None:
    paths = [p for stage in STAGES for p in sorted(TESTDATA.glob(f"{program}.{stage}.hlo*"))]
    assert len(paths) >= 2
    for path in paths:
        assert diff_modules(read(path), read(path)).is_identical
    for one, other in pairwise(map(read, paths)):
        diff = diff_modules(one, other)
        totals = diff.instruction_totals()
        grown = totals[Difference.ADDED] - totals[Difference.REMOVED]
        assert grown == other.instruction_count() - one.instruction_count()
        assert sum(opcode.change for opcode in diff.opcodes) == grown
        for computation in diff.computations:
            change = len(computation.added) - len(computation.removed)
            assert change == computation.size_after - computation.size_before


def test_the_other_way_round_swaps_added_and_removed() -> None:
    one, other = (read(TESTDATA / f"mlp_psum_8dev.{stage}.hlo") for stage in STAGES[:2])
    there, back = diff_modules(one, other), diff_modules(other, one)
    assert {o.opcode: o.change for o in there.opcodes} == {
        o.opcode: -o.change for o in back.opcodes
    }


# -- how it is shown ------------------------------------------------------------------------


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
