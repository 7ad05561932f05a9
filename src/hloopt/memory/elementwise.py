"""The operands that an instruction reads element by element, each at its own place of the
result."""

from __future__ import annotations

from dataclasses import dataclass, field

from hloopt.ir import Computation, Instruction, Opcode
from hloopt.ir.opcode import ELEMENTWISE_BINARY, ELEMENTWISE_UNARY

_ALWAYS = frozenset(
    (
        *(ELEMENTWISE_UNARY | ELEMENTWISE_BINARY) - {Opcode.BITCAST_CONVERT},
        *(Opcode.CLAMP, Opcode.SELECT, Opcode.CONSTANT, Opcode.RNG),
    )
)


@dataclass(slots=True)
class Elementwise:
    """Answers for instructions and for the bodies of fusions, each body looked at once."""

    _parameters: dict[tuple[Computation, bool], frozenset[int]] = field(default_factory=dict)

    def on_operand(self, instruction: Instruction, number: int) -> bool:
        """Whether the result at each place depends on operand `number` at that place alone."""
        opcode = instruction.opcode
        if opcode is Opcode.FUSION:
            return number in self.parameters(instruction.called[0], through_tuples=False)
        if opcode is Opcode.DYNAMIC_UPDATE_SLICE:
            return number == 0
        if opcode is Opcode.BITCAST_CONVERT:
            return _width(instruction) == _width(instruction.operands[0])
        if opcode is Opcode.MAP:
            dimensions = instruction.attributes.get("dimensions", "").strip("{}")
            return dimensions.replace(" ", "") == ",".join(map(str, range(instruction.shape.rank)))
        return opcode in _ALWAYS

    def parameters(self, body: Computation, *, through_tuples: bool) -> frozenset[int]:
        """The parameters from which every path leads through elementwise instructions only.

        With `through_tuples` also through tuples, as in a fusion of several results. O(body) once.
        """
        key = (body, through_tuples)
        found = self._parameters.get(key)
        if found is None:
            found = self._parameters[key] = self._find(body, through_tuples)
        return found

    def _find(self, body: Computation, through_tuples: bool) -> frozenset[int]:
        blocked: set[Instruction] = set()
        for instruction in reversed(list(body.instructions)):
            if instruction in blocked:
                blocked.update(instruction.operands)
            elif not (through_tuples and instruction.opcode is Opcode.TUPLE):
                blocked.update(
                    operand
                    for number, operand in enumerate(instruction.operands)
                    if not self.on_operand(instruction, number)
                )
        return frozenset(p.parameter_number for p in body.parameters if p not in blocked)


def _width(instruction: Instruction) -> int:
    return instruction.shape.element_type.bits if instruction.shape.element_type else 0
