"""Custom calls that are known: annotations, block-scaled tensors, XLA:GPU's matrix products."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from hloopt.analysis.cost.contraction import MULTIPLY_ADD
from hloopt.analysis.cost.model import NO_COST, Cost, moving
from hloopt.analysis.cost.sizes import bytes_of_operands, leaf_bytes
from hloopt.ir.custom_targets import (
    BLOCK_SCALED_DOTS,
    DEQUANTIZE,
    IDENTITIES,
    NEW_BUFFERS,
    QUANTIZE,
    custom_call_target,
)
from hloopt.ir.instruction import Instruction
from hloopt.ir.shapes.shape import Shape
from hloopt.patterns import pattern

_MOVES = frozenset(("MoveToHost", "MoveToDevice"))
_ANNOTATIONS = (IDENTITIES | NEW_BUFFERS) - _MOVES
_GEMMS = ("__cublas$gemm", "__cublas$lt$matmul", "__cublas$lt$matmul$f8", "__onednn$matmul")
_CONTRACTING = pattern(r'\\?"lhs_contracting_dimensions\\?":\s*\[([^\]]*)\]')
_NUMBER = pattern(r"\d{1,9}")


def custom_call_cost(call: Instruction) -> Cost | None:
    """Nothing for an annotation, whole operands and results for what moves or multiplies matrices,
    or has to do with block-scaled tensors.

    None for other custom calls.
    """
    target = custom_call_target(call)
    if target in _ANNOTATIONS:
        return NO_COST
    count = _FLOPS.get(target)
    flops = None if count is None else count(call)
    return None if flops is None else opaque_cost(call, flops)


def opaque_cost(call: Instruction, flops: int = 0) -> Cost:
    """Operands read and the result written in whole."""
    return moving(bytes_of_operands(call), leaf_bytes(call.shape), flops=flops)


def _gemm_flops(call: Instruction) -> int | None:
    """A multiply-add per element of the result and of the contracted dimensions, where stated."""
    stated = _CONTRACTING.search(call.attributes.get("backend_config", ""))
    if stated is None:
        return None
    lhs = call.operands[0].shape.dimensions
    contracted = [int(number) for number in _NUMBER.findall(stated[1])]
    if any(dimension >= len(lhs) for dimension in contracted):
        return None
    return MULTIPLY_ADD * _result(call).element_count() * prod(lhs[d] for d in contracted)


def _block_scaled_dot_flops(call: Instruction) -> int | None:
    """Those of a dot over the last dimensions; scales, which are few, are not counted."""
    values = call.operands[0].shape if call.operands else None
    if values is None or not values.dimensions:
        return None
    return MULTIPLY_ADD * _result(call).element_count() * values.dimensions[-1]


def _per_value(call: Instruction) -> int:
    """One for each value that is divided by its scale or multiplied by it."""
    return _result(call).element_count()


def _result(call: Instruction) -> Shape:
    """The result, without what else a call gives."""
    return call.shape.elements[0] if call.shape.elements else call.shape


_FLOPS: dict[str, Callable[[Instruction], int | None]] = {
    **dict.fromkeys(_MOVES, lambda call: 0),
    **dict.fromkeys(_GEMMS, _gemm_flops),
    **dict.fromkeys(BLOCK_SCALED_DOTS, _block_scaled_dot_flops),
    **dict.fromkeys((QUANTIZE, DEQUANTIZE), _per_value),
}
"""The formulas of operations, by target; None of them where a call does not say."""
