"""Custom calls that are known: annotations, and XLA:GPU's matrix products."""

from __future__ import annotations

from math import prod

from hloopt.analysis.cost.contraction import MULTIPLY_ADD
from hloopt.analysis.cost.model import NO_COST, Cost, moving
from hloopt.analysis.cost.sizes import bytes_of_operands, leaf_bytes
from hloopt.ir.custom_targets import IDENTITIES, NEW_BUFFERS, custom_call_target
from hloopt.ir.instruction import Instruction
from hloopt.patterns import pattern

_MOVES = frozenset(("MoveToHost", "MoveToDevice"))
_ANNOTATIONS = (IDENTITIES | NEW_BUFFERS) - _MOVES
_GEMMS = ("__cublas$gemm", "__cublas$lt$matmul", "__cublas$lt$matmul$f8", "__onednn$matmul")
_CONTRACTING = pattern(r'\\?"lhs_contracting_dimensions\\?":\s*\[([^\]]*)\]')
_NUMBER = pattern(r"\d{1,9}")


def custom_call_cost(call: Instruction) -> Cost | None:
    """Nothing for an annotation, whole operands and results for what moves or multiplies matrices.

    None for other custom calls.
    """
    target = custom_call_target(call)
    if target in _ANNOTATIONS:
        return NO_COST
    flops = 0 if target in _MOVES else _gemm_flops(call) if target in _GEMMS else None
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
    result = call.shape.elements[0] if call.shape.is_tuple else call.shape
    return MULTIPLY_ADD * result.element_count() * prod(lhs[d] for d in contracted)
