"""Convolutions in groups that predicates select."""

from __future__ import annotations

from tests.passes.checked_run import run_checked, run_equal

from hloopt.ir import Instruction, Opcode

TEXT = """HloModule m

ENTRY main {
  x = f32[1,5,4]{2,1,0} parameter(0)
  k = f32[2,2,6]{2,1,0} parameter(1)
  d = f32[2,1,8]{2,1,0} parameter(2)
  first = f32[1,4,6]{2,1,0} convolution(x, k), window={size=2}, dim_labels=b0f_0io->b0f, feature_group_count=2
  other = f32[1,4,8]{2,1,0} convolution(x, d), window={size=2}, dim_labels=b0f_0io->b0f, feature_group_count=4
  ROOT r = (f32[1,4,6]{2,1,0}, f32[1,4,8]{2,1,0}) tuple(first, other)
}
"""  # noqa: E501  # HLO has long lines


def _is_first(convolution: Instruction) -> bool:
    return convolution.name == "first"


def test_a_predicate_says_which_convolutions_are_converted() -> None:
    module = run_equal("convolution-group-converter", TEXT, should_expand=_is_first)
    assert [
        "feature_group_count" in c.attributes for c in module.instructions(Opcode.CONVOLUTION)
    ] == [True, False]


def test_nothing_is_converted_where_the_predicate_is_false() -> None:
    run_checked("convolution-group-converter", TEXT, changes=False, should_expand=lambda _: False)


def test_masks_are_made_where_groups_do_not_pay() -> None:
    for pays in (True, False):
        module = run_equal(
            "convolution-group-converter",
            TEXT,
            filter_expansion=False,
            is_cost_viable=lambda _, pays=pays: pays,
        )
        assert any(True for _ in module.instructions(Opcode.SELECT)) is not pays
