"""Special values among the inputs, and operands that cannot be run."""

from __future__ import annotations

import pytest
from tests.equivalence.programs import SUM, P, compare, entry

from hloopt.equivalence import Reference, RunSettings
from hloopt.interpreter.errors import RunError
from hloopt.interpreter.inputs import Inputs
from hloopt.text import parse_module


def test_special_values_count_as_what_is_to_be_preserved_says() -> None:
    zero = "z = f32[] constant(0) c = f32[64]{0} broadcast(z), dimensions={}"
    left = entry(P, zero, "ROOT r = f32[64]{0} multiply(p, c)")
    right = entry(P, zero, "ROOT r = f32[64]{0} copy(c)")
    reference = Reference(left, RunSettings())
    found = reference.compare(right)
    assert found is not None
    assert found.special == "NaN"
    assert found.reason.startswith("on special values alone, output[")
    comparison = reference.examine(right, "finite")
    assert comparison.mismatch is None
    assert comparison.specials == ["NaN", "infinities", "zeros"]
    assert len(comparison.on_specials) == 2
    assert reference.compare(right, "bits") is not None


def test_the_sign_of_zero_is_told_and_counts_among_bits() -> None:
    zero = "z = f32[] constant(0) c = f32[64]{0} broadcast(z), dimensions={}"
    left, right = (
        entry(P, zero, f"ROOT r = f32[64]{{0}} {line}") for line in ("negate(p)", "subtract(c, p)")
    )
    reference = Reference(left, RunSettings())
    comparison = reference.examine(right)
    assert comparison.mismatch is None
    assert any(note.startswith("the signs of zeros: output[") for note in comparison.notes)
    found = reference.compare(right, "bits")
    assert found is not None
    assert "was -0.0, it is 0.0" in found.reason


def test_among_bits_only_sums_of_ours_may_be_rounded_otherwise() -> None:
    narrow = "b = bf16[64]{0} convert(p) c = f32[64]{0} convert(b)"
    left, right = (
        entry(P, narrow, "ROOT r = f32[64]{0} add(c, c)"),
        entry(P, "ROOT r = f32[64]{0} add(p, p)"),
    )
    reference = Reference(left, RunSettings())
    assert reference.compare(right, "rounding") is None
    assert reference.compare(right, "bits") is not None
    dots = [
        entry(
            "p = f32[40,50]{1,0} parameter(0)",
            "q = f32[50,30]{1,0} parameter(1)",
            *lines,
        )
        for lines in (
            ("ROOT d = f32[40,30] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}",),
            (
                "t = f32[50,40] transpose(p), dimensions={1,0}",
                "d = f32[30,40] dot(q, t), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
                "ROOT r = f32[40,30] transpose(d), dimensions={1,0}",
            ),
        )
    ]
    assert Reference(dots[0], RunSettings()).compare(dots[1], "bits") is None


def test_special_values_that_cannot_be_run_are_told() -> None:
    """A scatter index is no trip count, but this one is both: the loop would take too long."""
    loop = """HloModule m
    body { i = s32[] parameter(0) k = s32[] constant(1) ROOT n = s32[] subtract(i, k) }
    more { i = s32[] parameter(0) z = s32[] constant(0)
      ROOT c = pred[] compare(i, z), direction=NE }
    ENTRY e { i = s32[] parameter(0) p = f32[10] parameter(1)
      w = s32[] while(i), condition=more, body=body
      s = f32[1] dynamic-slice(p, i), dynamic_slice_sizes={1}
      ROOT t = (s32[], f32[1]) tuple(w, s) }"""
    module = parse_module(loop)
    comparison = Reference(module, RunSettings(steps=1000)).examine(module)
    assert comparison.mismatch is None
    assert "negative indices" not in comparison.specials
    assert any(note.startswith("inputs with negative indices: ") for note in comparison.notes)


def test_given_inputs_and_those_of_one_kind_hold_nothing_special() -> None:
    assert Reference(SUM, RunSettings(inputs=Inputs("iota"))).examine(SUM).specials == []


def test_what_never_ran_is_named() -> None:
    text = """HloModule m
    up { p = f32[8] parameter(0) ROOT r = f32[8] add(p, p) }
    down { p = f32[8] parameter(0) ROOT r = f32[8] negate(p) }
    body { p = f32[8] parameter(0) ROOT r = f32[8] call(p), to_apply=down }
    never { p = f32[8] parameter(0) ROOT c = pred[] constant(false) }
    ENTRY e { p = f32[8] parameter(0) i = s32[] constant(0)
      choice = f32[8] conditional(i, p, p), branch_computations={up, down}
      ROOT w = f32[8] while(choice), condition=never, body=body }"""
    module = parse_module(text)
    notes = Reference(module, RunSettings()).examine(module).notes
    assert [note.partition(" (<")[0] for note in notes] == [
        "branch 1 (%down) of %choice",
        "the body of loop %w",
    ]


def test_sparse_operands_are_a_message() -> None:
    module = entry(
        "p = f32[1,8]{1,0} parameter(0)",
        "k = (f32[2,1]{1,0}, s32[2,1]{1,0}) parameter(1)",
        "ROOT r = f32[1,1]{1,0} convolution(p, k), dim_labels=bf_io->bf, "
        "sparsity_config={ rhs={sparsity=1x4 dimension=0 stride=1} }",
    )
    with pytest.raises(RunError, match="sparse operands are not supported"):
        compare(module, module)
