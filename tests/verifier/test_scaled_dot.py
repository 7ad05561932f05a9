"""Scales of a scaled-dot: their rank and sizes follow those of the sides."""

from __future__ import annotations

import pytest

from hloopt.text import parse_module
from hloopt.verifier import verify_module

F8, E8 = "f8e4m3fn", "f8e8m0fnu"


def problems(lhs: str, rhs: str, lhs_scale: str, rhs_scale: str, attributes: str = "") -> list[str]:
    """Problems that the verifier finds in a scaled-dot of these shapes, with result f32[4,8]."""
    attributes = attributes or "lhs_contracting_dims={1}, rhs_contracting_dims={1}"
    batch = "2," if "batch" in attributes else ""
    shapes = (lhs, rhs, lhs_scale, rhs_scale)
    lines = "".join(f"  o{n} = {shape} parameter({n})\n" for n, shape in enumerate(shapes))
    dot = f"ROOT d = f32[{batch}4,8] scaled-dot(o0, o1, o2, o3), {attributes}"
    module = parse_module(f"ENTRY e {{\n{lines}  {dot}\n}}")
    return [error.message for error in verify_module(module)]


@pytest.mark.parametrize(
    ("lhs_scale", "rhs_scale"),
    [
        (f"{E8}[4,1]", f"{E8}[8,1]"),
        (f"{E8}[4,4]", f"{E8}[8,2]"),
        (f"{E8}[2,4]", f"{E8}[1,32]"),
        (f"{E8}[4,32]", f"{E8}[8,32]"),
    ],
)
def test_sizes_of_a_scale_divide_those_of_its_side(lhs_scale: str, rhs_scale: str) -> None:
    assert problems(f"{F8}[4,32]", f"{F8}[8,32]", lhs_scale, rhs_scale) == []


@pytest.mark.parametrize(
    ("lhs_scale", "rhs_scale", "message"),
    [
        (f"{E8}[4,3]", f"{E8}[8,1]", "Dimension 1 of operand o0 should be a multiple"),
        (f"{E8}[4,64]", f"{E8}[8,1]", "Dimension 1 of operand o0 should be a multiple"),
        (f"{E8}[4,1]", f"{E8}[8,0]", "Dimension 1 of operand o1 should be a multiple"),
        (f"{E8}[8,1]", f"{E8}[8,1]", "Dimension 0 of operand o0 should be a multiple"),
        (f"{E8}[4]", f"{E8}[8,1]", "Scale operand o2 has a different number of dimensions"),
        (f"{E8}[4,1,1]", f"{E8}[8,1]", "Scale operand o2 has a different number of dimensions"),
        (f"{E8}[4,1]", f"{E8}[]", "Scale operand o3 has a different number of dimensions"),
        (f"{E8}[]", f"{E8}[]", "At least one of the scales should be not a scalar"),
    ],
)
def test_other_scales_are_refused(lhs_scale: str, rhs_scale: str, message: str) -> None:
    (found,) = problems(f"{F8}[4,32]", f"{F8}[8,32]", lhs_scale, rhs_scale)
    assert message in found


def test_a_bf16_side_may_go_without_scales() -> None:
    assert problems("bf16[4,32]", f"{F8}[8,32]", "bf16[]", f"{E8}[8,1]") == []
    assert problems(f"{F8}[4,32]", "bf16[8,32]", f"{E8}[4,1]", "bf16[1]") == []
    (found,) = problems("bf16[4,32]", f"{F8}[8,32]", f"{E8}[]", f"{E8}[8,1]")
    assert "different number of dimensions" in found
    (found,) = problems("bf16[4,32]", "bf16[8,32]", "bf16[]", "bf16[]")
    assert "At least one of the scales" in found


def test_batches_have_scales_of_their_own() -> None:
    batched = (
        "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={2}"
    )
    sides = f"{F8}[2,4,32]", f"{F8}[2,8,32]"
    assert problems(*sides, f"{E8}[2,4,1]", f"{E8}[1,8,1]", batched) == []
    (found,) = problems(*sides, f"{E8}[4,4,1]", f"{E8}[1,8,1]", batched)
    assert "Dimension 0 of operand o0" in found
