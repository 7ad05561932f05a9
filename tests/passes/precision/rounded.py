"""Running passes between two float types, and comparing exactly what the program computes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from tests.properties.consistency import assert_consistent

from hloopt.equivalence import Reference, RunSettings
from hloopt.equivalence.settings import Tolerance
from hloopt.ir import Module, Opcode
from hloopt.ir.ordering import repair_schedule
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import PrintOptions, parse_module, print_module
from hloopt.verifier import ANY_TARGET, verify_module

MATRIX_UNIT: Mapping[str, object] = {
    "operand": True,
    "output": True,
    "mixed": True,
    "operand_effectively_low": {"opcodes": ["dot"]},
}
"""A backend that can do everything in bf16, and rounds what it multiplies."""


def run_rounded(
    name: str,
    text: str,
    support: Mapping[str, object] = MATRIX_UNIT,
    *,
    changes: bool = True,
    reads: Sequence[Opcode] = (Opcode.DOT,),
) -> Module:
    """What a pass makes of a valid module: valid, consistent, and with equal results.

    Operands of `reads` are rounded to bf16 before both programs are run, as the backend does it.
    """
    module = parse_module(text)
    assert verify_module(module, ANY_TARGET) == []
    before = print_module(module)
    context = PassContext(name)
    assert create_pass(name, {"float_support": support}).run(module, context) == changes
    assert (print_module(module) != before) == changes
    assert_consistent(module)
    assert verify_module(module, ANY_TARGET) == []
    assert_same_results(text, module, reads)
    return module


def assert_same_results(text: str, module: Module, reads: Sequence[Opcode]) -> None:
    """A module gives what the text gives, where `reads` round what they read.

    Floats are equal but for signs of zeros. Raises RunError where one of them cannot be run.
    """
    settings = RunSettings(seeds=2, tolerance=Tolerance())
    reference = Reference(_rounding(parse_module(text), reads), settings)
    result = _rounding(parse_module(print_module(module)), reads)
    found = reference.examine(result, "rounding").mismatch
    assert found is None, found.reason


def reasons(name: str, text: str, support: Mapping[str, object] = MATRIX_UNIT) -> list[str]:
    """The remarks on what a pass missed."""
    context = PassContext(name)
    create_pass(name, {"float_support": support}).run(parse_module(text), context)
    return [
        f"{remark.instruction}: {remark.reason}"
        for remark in context.remarks
        if remark.kind == "missed"
    ]


def types(module: Module, *names: str) -> list[str]:
    """The shapes of instructions, without layouts and dimensions: `bf16`, `(f32, bf16)`."""
    by_name = {i.name: i for i in module.instructions()}
    return [_bare(by_name[name].shape.text) for name in names]


def line(module: Module, name: str) -> str:
    """An instruction written anew, without layouts."""
    short = PrintOptions(print_percent=False, include_layout_in_shapes=False)
    text = print_module(module, short)
    return next(
        found.strip().removeprefix("ROOT ").removeprefix(f"{name} = ")
        for found in text.splitlines()
        if found.strip().removeprefix("ROOT ").startswith(f"{name} = ")
    )


def _bare(text: str) -> str:
    return re.sub(r"\[[^\]]*\](\{[^}]*\})?", "", text)


def _rounding(module: Module, reads: Sequence[Opcode]) -> Module:
    for computation in module.computations.values():
        for reader in [i for i in computation.instructions if i.opcode in reads]:
            for number, operand in enumerate(reader.operands):
                if operand.shape.type_name == "f32":
                    rounded = computation.add(
                        Opcode.REDUCE_PRECISION,
                        operand.shape,
                        [operand],
                        attributes={"exponent_bits": "8", "mantissa_bits": "7"},
                    )
                    reader.replace_operand(number, rounded)
    repair_schedule(module.computations.values())
    return module
