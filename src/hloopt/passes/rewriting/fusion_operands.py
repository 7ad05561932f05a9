"""Putting the operands of a fusion in another order."""

from __future__ import annotations

from collections.abc import Sequence

from hloopt.diagnostics import HloVerifyError, counted
from hloopt.ir.clone import own_computations
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode


def permute_fusion_operands(fusion: Instruction, permutation: Sequence[int]) -> None:
    """Move operand `i`, and parameter `i` of the fused computation, to `permutation[i]`.

    What is inside goes on to use the same values. A computation that something else calls as well
    is copied first. Raises HloVerifyError, with nothing changed, where `fusion` is another
    instruction or `permutation` has not each operand's number once. O(fused instructions).
    """
    span = fusion.parent.module.span_of(fusion)
    if fusion.opcode is not Opcode.FUSION:
        raise HloVerifyError(f"%{fusion.name} is not a fusion but {fusion.opcode}", span=span)
    count = len(fusion.operands)
    if sorted(permutation) != list(range(count)):
        raise HloVerifyError(
            f"{list(permutation)} is not a permutation of the {counted(count, 'operand')} of "
            f"%{fusion.name}",
            span=span,
        )
    if list(permutation) == list(range(count)):
        return
    if sum(fusion.called[0].callers.values()) > 1:
        own_computations(fusion)
    operands = list(fusion.operands)
    for parameter in fusion.called[0].parameters:
        old = parameter.parameter_number
        new = permutation[old]
        operands[new] = fusion.operands[old]
        parameter.set_payload(str(new))
    fusion.set_operands(operands)
    _permute_aliases(fusion, permutation)


def _permute_aliases(fusion: Instruction, permutation: Sequence[int]) -> None:
    """Let the outputs that share a buffer with an operand share it with the same one."""
    from hloopt.ir.attributes.formats import format_operand_aliasing
    from hloopt.ir.attributes.values import parse_output_to_operand_aliasing

    text = fusion.attributes.get("output_to_operand_aliasing")
    if text is not None:
        moved = [
            alias._replace(parameter=permutation[alias.parameter])
            for alias in parse_output_to_operand_aliasing(text)
        ]
        fusion.set_attribute("output_to_operand_aliasing", format_operand_aliasing(moved))
