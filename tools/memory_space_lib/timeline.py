"""The flattened schedule of a module, and numbers for all that its instructions hold."""

from __future__ import annotations

from dataclasses import dataclass, field

from hloopt.ir import Computation, Instruction, Module, Opcode, Shape
from hloopt.ir.shapes.leaves import leaf_count

_CALLERS = (Opcode.CALL, Opcode.WHILE, Opcode.CONDITIONAL)


@dataclass(slots=True)
class Timeline:
    """The order in which a scheduled module runs, called computations before their callers.

    Of a while the condition comes before the body. Fusions and asynchronous computations are not
    entered. Every leaf of every shape is a position, an int; those of an instruction are
    consecutive, from `base[instruction]` on. O(instructions + leaves).
    """

    module: Module
    steps: list[Instruction] = field(default_factory=list)
    time: dict[Instruction, int] = field(default_factory=dict)
    spans: dict[Computation, tuple[int, int]] = field(default_factory=dict)
    """Per computation the time of its first step (or of a callee's), and of its last one."""
    base: dict[Instruction, int] = field(default_factory=dict)
    holders: list[Instruction] = field(default_factory=list)
    """The instruction of each position."""
    shapes: list[Shape] = field(default_factory=list)
    """The shape of each position, which is no tuple."""
    disorder: list[str] = field(default_factory=list)
    """Instructions that run before an operand or a control predecessor, as sentences."""

    @classmethod
    def of(cls, module: Module) -> Timeline:
        """Lay out a module by the order of its text."""
        line = cls(module)
        line._lay_out(module.entry)
        return line

    @property
    def end(self) -> int:
        """The time after the last step, at which the results are still there."""
        return len(self.steps)

    def positions(self, instruction: Instruction) -> range:
        """The positions of a result, in the order of its leaves."""
        first = self.base[instruction]
        return range(first, first + leaf_count(instruction.shape))

    def name(self, position: int) -> str:
        """A position as messages name it: the instruction, and the leaf where there are several."""
        instruction = self.holders[position]
        count = leaf_count(instruction.shape)
        leaf = "" if count == 1 else f"{{leaf {position - self.base[instruction]}}}"
        return f"%{instruction.name}{leaf}"

    def _lay_out(self, computation: Computation) -> None:
        first = len(self.steps)
        for instruction in computation.instructions:
            for callee in callees(instruction):
                if callee not in self.spans:
                    self._lay_out(callee)
            for earlier in (*instruction.operands, *instruction.control_predecessors):
                if earlier not in self.time:
                    self.disorder.append(f"%{instruction.name} runs before %{earlier.name}")
            self.time[instruction] = len(self.steps)
            self.steps.append(instruction)
            self.base[instruction] = len(self.holders)
            leaves = instruction.shape.leaves()
            self.holders += [instruction] * len(leaves)
            self.shapes += leaves
        self.spans[computation] = (first, len(self.steps) - 1)


def callees(instruction: Instruction) -> tuple[Computation, ...]:
    """The computations that a call, a while or a conditional runs, in the order of times."""
    if instruction.opcode not in _CALLERS:
        return ()
    called = instruction.called
    return called[::-1] if instruction.opcode is Opcode.WHILE else called
