"""Validation after passes that were told which operands the backend rounds."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hloopt.diagnostics import PassFailure
from hloopt.equivalence import RunSettings
from hloopt.ir import Instruction, Module, Opcode
from hloopt.pass_framework.base import ModulePass, PassContext
from hloopt.pass_framework.pipeline import PassStep, Pipeline
from hloopt.pass_framework.registry import create_pass
from hloopt.pass_framework.runner import PipelineRunner, restore
from hloopt.pass_framework.validation import Validator
from hloopt.text import parse_module, print_module

MODULE = """HloModule m
ENTRY e { x = f32[4,8] parameter(0) y = f32[8,4] parameter(1) z = f32[4,8] parameter(2)
  a = f32[4,8] multiply(x, z)
  d = f32[4,4] dot(a, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  s = f32[4,8] add(x, z)
  ROOT r = (f32[4,4], f32[4,8]) tuple(d, s) }"""
LOW_OPERAND = MODULE.replace("a = f32[4,8] multiply(x, z)", "a = bf16[4,8] multiply(x, z)")
"""The product is made in bf16, as its reader rounds it anyway."""
LOW_SUM = MODULE.replace(
    "s = f32[4,8] add(x, z)", "b = bf16[4,8] add(x, z) s = f32[4,8] convert(b)"
)
"""A sum is rounded that goes nowhere but out."""
LOW_OTHER_OPERAND = MODULE.replace(
    "d = f32[4,4] dot(a, y)",
    "n = bf16[8,4] convert(y) w = f32[8,4] convert(n) d = f32[4,4] dot(a, w)",
)
OTHER_VALUE = MODULE.replace(
    "a = f32[4,8] multiply(x, z)",
    """m = bf16[4,8] multiply(x, z) c = f32[] constant(1.001)
  b = f32[4,8] broadcast(c), dimensions={} w = f32[4,8] convert(m) a = f32[4,8] multiply(w, b)""",
)
"""A factor that is less than a rounding to bf16."""


class Rewriting(ModulePass):
    """Makes another module of a module, for a backend that rounds operands of dots, if told so."""

    name = "rewriting"
    preserves = "precision"

    def __init__(self, text: str, *, is_told: bool = True, changes: bool = True) -> None:
        super().__init__()
        self._text = text
        self._changes = changes
        if is_told:
            self.read_type = _bf16_in_dots

    def run(self, module: Module, context: PassContext) -> bool:
        if self._changes:
            restore(module, self._text)
        return self._changes


def _bf16_in_dots(instruction: Instruction, operand: int) -> str | None:
    return "bf16" if instruction.opcode is Opcode.DOT else None


def validate(*passes: ModulePass, text: str = MODULE, each: bool) -> Module:
    """The module that passes leave. Raises PassFailure where it computes something else."""
    module = parse_module(text)
    validator = Validator(RunSettings(), each=each)
    steps = tuple(PassStep(made=made) for made in passes)
    PipelineRunner(validator=validator).run(Pipeline(name="p", steps=steps), module)
    return module


both_ways = pytest.mark.parametrize("each", [True, False])


@both_ways
def test_operands_may_be_rounded_that_the_backend_rounds(each: bool) -> None:
    validate(Rewriting(LOW_OPERAND), each=each)


@both_ways
def test_without_being_told_a_rounding_is_a_difference(each: bool) -> None:
    with pytest.raises(PassFailure, match=r"computes: output\{0\}\[\d,\d\] was"):
        validate(Rewriting(LOW_OPERAND, is_told=False), each=each)


@both_ways
def test_what_does_not_come_of_rounded_operands_keeps_its_precision(each: bool) -> None:
    with pytest.raises(PassFailure, match=r"computes: output\{1\}\[\d,\d\] was"):
        validate(Rewriting(LOW_SUM), each=each)


@both_ways
def test_a_difference_smaller_than_the_rounding_is_found(each: bool) -> None:
    with pytest.raises(PassFailure, match=r"with f32 for all narrower floats, output\{0\}"):
        validate(Rewriting(OTHER_VALUE), each=each)


@both_ways
def test_which_operand_was_rounded_is_not_told_apart(each: bool) -> None:
    """As docs/limits.md says: results may be off by the rounding of one operand, wherever."""
    made = Rewriting(LOW_OTHER_OPERAND)
    made.read_type = lambda instruction, operand: (
        _bf16_in_dots(instruction, operand) if operand == 0 else None
    )
    validate(made, each=each)


@both_ways
def test_passes_after_it_are_compared_with_the_same_rounding(each: bool) -> None:
    validate(Rewriting(LOW_OPERAND), Rewriting(LOW_OPERAND, is_told=False), each=each)


@both_ways
def test_a_pass_that_changed_nothing_allows_no_rounding(each: bool) -> None:
    unchanging = Rewriting(MODULE, changes=False)
    with pytest.raises(PassFailure, match="computes"):
        validate(unchanging, Rewriting(LOW_OPERAND, is_told=False), each=each)


def _in_a_fusion(text: str) -> str:
    return text.replace(
        "ENTRY e {",
        """f { p = f32[4,8] parameter(0) q = f32[8,4] parameter(1)
  ROOT o = f32[4,4] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0} }
ENTRY e {""",
    ).replace(
        "dot(a, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n  s",
        "fusion(a, y), kind=kOutput, calls=f\n  s",
    )


def _same(text: str) -> str:
    return text


@pytest.mark.parametrize("form", [_same, _in_a_fusion])
def test_propagation_declares_what_it_is_told(form: Callable[[str], str]) -> None:
    support = {
        **{"operand": True, "output": True, "mixed": True},
        "operand_effectively_low": {"operands": {"dot": [0]}},
    }
    made = create_pass("bfloat16-propagation", {"float_support": support})
    module = validate(made, text=form(MODULE), each=True)
    assert "a = bf16[4,8]{1,0} multiply(" in print_module(module)


@pytest.mark.parametrize("rule", [None, False])
def test_propagation_declares_nothing_for_a_backend_that_rounds_nothing(rule: object) -> None:
    made = create_pass("bfloat16-propagation", {"float_support": {"operand_effectively_low": rule}})
    assert made.read_type is None
    assert create_pass("bfloat16-propagation").read_type is None
