"""Tables of work: products of matrices, convolutions, custom calls."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from hloopt.analysis.calls import reachable_from_entry
from hloopt.checks.doubts import Doubt, not_partitioned
from hloopt.checks.expectations.doubts import unknown_runs
from hloopt.checks.expectations.model import Measure, Row, Table, count
from hloopt.checks.expectations.tables.parts import (
    OP_NAME,
    SHAPE,
    key,
    keys_and_instructions,
    of_instruction,
    per_run,
    runs,
)
from hloopt.checks.expectations.units import COUNT
from hloopt.checks.view import View
from hloopt.ir.attributes.values.tokens import compact
from hloopt.ir.custom_targets import custom_call_target
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import CONTRACTIONS, Opcode
from hloopt.query.keys import TYPE
from hloopt.query.kinds import TEXT


def _of(opcodes: Collection[Opcode]) -> Callable[[View], list[Row]]:
    """Rows of the instructions of opcodes that the entry reaches, in fusions too."""

    def rows(view: View) -> list[Row]:
        reached = view.once("reached", lambda: reachable_from_entry(view.subject.module))
        return [
            Row(instruction, instruction)
            for instruction in view.subject.module.instructions()
            if instruction.opcode in opcodes and instruction.parent in reached
        ]

    return rows


def _flops(view: View) -> Callable[[Row], int]:
    return per_run(view, lambda row: view.subject.costs.of(row.instruction).flops)


def _flops_doubt(view: View, rows: Sequence[Row]) -> Doubt | None:
    return not_partitioned(view) or unknown_runs(view, rows)


def _operand_type(number: int) -> Callable[[Instruction], tuple[str, ...]]:
    return lambda product: (product.operands[number].shape.type_name,)


def _products(name: str, doc: str, opcodes: Collection[Opcode], noun: tuple[str, str]) -> Table:
    return Table(
        name, doc, noun, _of(opcodes),
        keys_and_instructions(
            "lhs=f32",
            key("lhs", TYPE, "element type of the left operand, or `float`, `f8` …",
                _operand_type(0)),
            key("rhs", TYPE, "element type of the right operand", _operand_type(1)),
            key("precision", TEXT, "operand_precision, without blanks: `{highest,highest}`",
                lambda product: (compact(product.attributes.get("operand_precision", "")),)),
            key("algorithm", TEXT, "algorithm: `dot_bf16_bf16_f32`",
                lambda product: (product.attributes.get("algorithm", ""),)),
        ),
        (
            count(),
            runs(),
            Measure("flops", "operations on elements, as often as they run", COUNT, _flops,
                    doubt=_flops_doubt),
            SHAPE,
            OP_NAME,
        ),
    )  # fmt: skip


DOTS = _products(
    "dots", "dot, ragged-dot and scaled-dot; not custom calls to libraries",
    CONTRACTIONS - {Opcode.CONVOLUTION}, ("product", "products"),
)  # fmt: skip
CONVOLUTIONS = _products(
    "convolutions", "convolutions; not custom calls to libraries",
    {Opcode.CONVOLUTION}, ("convolution", "convolutions"),
)  # fmt: skip
CUSTOM_CALLS = Table(
    "custom_calls",
    "custom calls that the entry reaches",
    ("custom call", "custom calls"),
    _of({Opcode.CUSTOM_CALL}),
    keys_and_instructions("target=*f8"),
    (
        count(),
        runs(),
        of_instruction("target", "custom_call_target", custom_call_target),
        SHAPE,
        OP_NAME,
    ),
)  # fmt: skip
