"""Differences between two modules, and which instruction became which."""

from __future__ import annotations

import re

from tests.reports.diff.steps import STEP, changes_of, diff_texts, edit

from hloopt.reports.diff.changes import Difference
from hloopt.reports.diff.comparison import diff_modules
from hloopt.text import PrintOptions, parse_module, print_module


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
