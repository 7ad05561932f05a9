"""Fusions whose operands change places."""

from __future__ import annotations

from itertools import permutations

import pytest
from tests.properties.consistency import assert_consistent

from hloopt.diagnostics import HloVerifyError
from hloopt.equivalence import Reference, RunSettings
from hloopt.ir import Instruction, Module
from hloopt.passes.rewriting.fusion_operands import permute_fusion_operands
from hloopt.text import parse_module, print_module
from hloopt.verifier import verify_module

TEXT = """HloModule m
fused {
  x = f32[4]{0} parameter(0)
  y = f32[4]{0} parameter(1)
  z = f32[] parameter(2)
  wide = f32[4]{0} broadcast(z), dimensions={}
  difference = f32[4]{0} subtract(x, y)
  ROOT scaled = f32[4]{0} multiply(difference, wide)
}
ENTRY e {
  a = f32[4]{0} parameter(0)
  b = f32[4]{0} parameter(1)
  c = f32[] parameter(2)
  ROOT f = f32[4]{0} fusion(a, b, c), kind=kLoop,
    output_to_operand_aliasing={{}: (1, {})}, calls=fused
}
"""


def fusion_of(module: Module, name: str = "f") -> Instruction:
    return next(i for i in module.instructions() if i.name == name)


def operands_of(fusion: Instruction) -> str:
    return " ".join(operand.name for operand in fusion.operands)


@pytest.mark.parametrize("permutation", list(permutations(range(3))))
def test_operands_and_parameters_move_together(permutation: tuple[int, ...]) -> None:
    module = parse_module(TEXT)
    fusion = fusion_of(module)
    permute_fusion_operands(fusion, permutation)
    assert [fusion.operands[permutation[i]].name for i in range(3)] == ["a", "b", "c"]
    inside = {p.name: p.parameter_number for p in fusion.called[0].parameters}
    assert inside == dict(zip("xyz", permutation, strict=True))
    aliasing = fusion.attributes["output_to_operand_aliasing"]
    assert aliasing == f"{{{{}}: ({permutation[1]}, {{}})}}"
    assert verify_module(module) == []
    assert_consistent(module)
    assert Reference(parse_module(TEXT), RunSettings()).compare(module) is None


def test_the_order_there_is_changes_nothing() -> None:
    module = parse_module(TEXT)
    permute_fusion_operands(fusion_of(module), (0, 1, 2))
    assert module.is_pristine


def test_a_fusion_that_shares_no_buffer_goes_on_sharing_none() -> None:
    start, _, end = TEXT.partition(",\n    output_to_operand_aliasing={{}: (1, {})}")
    module = parse_module(start + end)
    permute_fusion_operands(fusion_of(module), (2, 1, 0))
    assert operands_of(fusion_of(module)) == "c b a"
    assert "output_to_operand_aliasing" not in fusion_of(module).attributes


def test_a_value_that_is_an_operand_twice_stays_one_twice() -> None:
    module = parse_module(TEXT.replace("fusion(a, b, c)", "fusion(a, a, c)"))
    permute_fusion_operands(fusion_of(module), (2, 1, 0))
    assert operands_of(fusion_of(module)) == "c a a"
    assert_consistent(module)


def test_another_fusion_of_the_same_computation_keeps_it() -> None:
    text = TEXT.replace(
        "ROOT f = ", "g = f32[4]{0} fusion(b, a, c), kind=kLoop, calls=fused\n  ROOT f = "
    )
    module = parse_module(text)
    permute_fusion_operands(fusion_of(module), (1, 2, 0))
    assert operands_of(fusion_of(module)) == "c a b"
    assert operands_of(fusion_of(module, "g")) == "b a c"
    assert [p.name for p in fusion_of(module, "g").called[0].parameters] == ["x", "y", "z"]
    assert verify_module(module) == []
    assert_consistent(module)


@pytest.mark.parametrize(
    "permutation", [(), (0, 1), (0, 1, 2, 3), (0, 0, 1), (1, 2, 3), (-1, 0, 1)]
)
def test_what_is_no_permutation_is_an_error(permutation: tuple[int, ...]) -> None:
    module = parse_module(TEXT)
    before = print_module(module)
    refused = "is not a permutation of the 3 operands of %f"
    with pytest.raises(HloVerifyError, match=refused) as error:
        permute_fusion_operands(fusion_of(module), permutation)
    assert error.value.location == (14, 8)
    assert print_module(module) == before


def test_only_fusions_have_fused_operands() -> None:
    module = parse_module(TEXT)
    with pytest.raises(HloVerifyError, match="%a is not a fusion but parameter"):
        permute_fusion_operands(fusion_of(module, "a"), ())
