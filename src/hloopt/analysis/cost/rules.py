"""The costs of each opcode: one table.

A rule is given the instruction and a way to ask what a called computation costs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from hloopt.analysis.cost import applied, contraction, data_movement
from hloopt.analysis.cost.applied import Callees
from hloopt.analysis.cost.model import NO_COST, Cost, moving
from hloopt.analysis.cost.sizes import bytes_of_operands, leaf_bytes, leaf_elements
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import ELEMENTWISE_BINARY, ELEMENTWISE_UNARY, Opcode


class Rule(NamedTuple):
    """The rule for the cost of an opcode; `attributes` are those that the cost depends on."""

    cost: Callable[[Instruction, Callees], Cost]
    attributes: tuple[str, ...] = ()


def _reads_and_writes_all(instruction: Instruction, callees: Callees) -> Cost:
    """No arithmetic, each operand read and the result written in whole."""
    return moving(bytes_of_operands(instruction), leaf_bytes(instruction.shape))


def _elementwise(instruction: Instruction, callees: Callees) -> Cost:
    return _whole(instruction, flops=leaf_elements(instruction.shape))


def _transcendental(instruction: Instruction, callees: Callees) -> Cost:
    return _whole(instruction, transcendentals=leaf_elements(instruction.shape))


def _whole(instruction: Instruction, *, flops: int = 0, transcendentals: int = 0) -> Cost:
    return moving(
        *(bytes_of_operands(instruction), leaf_bytes(instruction.shape)),
        flops=flops,
        transcendentals=transcendentals,
    )


def _free(instruction: Instruction, callees: Callees) -> Cost:
    return NO_COST


def _with_flops(count: Callable[[Instruction], int], *attributes: str) -> Rule:
    """Flops by a formula; operands read and the result written in whole."""
    return Rule(lambda instruction, _: _whole(instruction, flops=count(instruction)), attributes)


def _moving(count: Callable[[Instruction], Cost], *attributes: str) -> Rule:
    return Rule(lambda instruction, _: count(instruction), attributes)


DEFAULT = Rule(_reads_and_writes_all)
_TRANSCENDENTAL = frozenset(
    (
        *(Opcode.ACOS, Opcode.ACOSH, Opcode.ASIN, Opcode.ASINH, Opcode.ATAN2, Opcode.ATANH),
        *(Opcode.CBRT, Opcode.COSH, Opcode.COSINE, Opcode.ERF, Opcode.EXPONENTIAL),
        *(Opcode.EXPONENTIAL_MINUS_ONE, Opcode.LOG, Opcode.LOG_PLUS_ONE, Opcode.LOGISTIC),
        *(Opcode.POWER, Opcode.RSQRT, Opcode.SINE, Opcode.SINH, Opcode.SQRT, Opcode.TAN),
        *(Opcode.TANH, Opcode.RNG, Opcode.RNG_BIT_GENERATOR),
    )
)
_ELEMENTWISE = (
    ELEMENTWISE_UNARY | ELEMENTWISE_BINARY | {Opcode.SELECT, Opcode.CLAMP}
) - _TRANSCENDENTAL
_FREE = (
    *(Opcode.PARAMETER, Opcode.CONSTANT, Opcode.GET_TUPLE_ELEMENT, Opcode.BITCAST),
    *(Opcode.ADD_DEPENDENCY, Opcode.DOMAIN, Opcode.AFTER_ALL),
)

RULES: dict[Opcode, Rule] = {
    **dict.fromkeys(_ELEMENTWISE, Rule(_elementwise)),
    **dict.fromkeys(_TRANSCENDENTAL, Rule(_transcendental)),
    **dict.fromkeys(_FREE, Rule(_free)),
    Opcode.COPY: DEFAULT,
    # contraction
    Opcode.DOT: _with_flops(contraction.dot_flops, "lhs_contracting_dims"),
    Opcode.SCALED_DOT: _with_flops(contraction.dot_flops, "lhs_contracting_dims"),
    Opcode.RAGGED_DOT: _with_flops(contraction.dot_flops, "lhs_contracting_dims"),
    Opcode.CONVOLUTION: _with_flops(
        contraction.convolution_flops, "window", "dim_labels", "feature_group_count"
    ),
    Opcode.FFT: _with_flops(contraction.fft_flops, "fft_length"),
    Opcode.CHOLESKY: _moving(contraction.cholesky_cost),
    Opcode.TRIANGULAR_SOLVE: _moving(contraction.triangular_solve_cost),
    # what touches a part of an operand
    Opcode.SLICE: _moving(data_movement.slice_cost),
    Opcode.DYNAMIC_SLICE: _moving(data_movement.slice_cost),
    Opcode.DYNAMIC_UPDATE_SLICE: _moving(data_movement.update_cost),
    Opcode.GATHER: _moving(data_movement.gather_cost),
    Opcode.TRANSPOSE: _moving(data_movement.transpose_cost, "dimensions"),
    Opcode.TUPLE: _moving(data_movement.tuple_cost),
    Opcode.OUTFEED: _moving(data_movement.outfeed_cost),
    # what applies a computation to elements
    Opcode.MAP: Rule(applied.map_cost),
    Opcode.REDUCE: Rule(applied.reduce_cost),
    Opcode.REDUCE_WINDOW: Rule(applied.reduce_window_cost, ("window",)),
    Opcode.SELECT_AND_SCATTER: Rule(applied.select_and_scatter_cost, ("window",)),
    Opcode.SCATTER: Rule(applied.scatter_cost),
    Opcode.SORT: _with_flops(applied.sort_flops),
    Opcode.ALL_REDUCE: Rule(_elementwise),
    Opcode.ALL_REDUCE_START: Rule(_elementwise),
    # what runs a computation
    Opcode.CALL: Rule(applied.call_cost),
    Opcode.ASYNC_START: Rule(applied.call_cost),
}
"""The rules by opcode; `DEFAULT` is for all others. Fusions, loops, scans, conditionals and custom
calls have none: `CostAnalysis` knows what they depend on."""
