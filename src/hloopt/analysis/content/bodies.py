"""Value numbering of instructions and computations by content, across modules."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from hloopt.analysis.content.content import Content
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import stable_computation_order, stable_order


@dataclass(slots=True)
class Bodies:
    """Value numbers by content, names and order aside; equal numbers mean equal content.

    `labels` number an instruction by opcode, shape, attributes, payload and callees, `values` also
    by the values of its operands, `computations` by thread, root and the values within. Numbers of
    all modules added can be compared.
    """

    content: Content
    labels: dict[Instruction, int] = field(default_factory=dict)
    values: dict[Instruction, int] = field(default_factory=dict)
    computations: dict[Computation, int] = field(default_factory=dict)
    _numbers: dict[Hashable, int] = field(default_factory=dict)

    def add(self, module: Module) -> None:
        """Number all instructions and computations of a module. O(instructions + edges)."""
        for computation in stable_computation_order(module):  # callees first
            self._add(computation)

    def whole(self, module: Module) -> int:
        """Number a module as a whole: header, computations, and the order of a schedule.

        O(instructions + edges).
        """
        self.add(module)
        order = [
            tuple([self.values[instruction] for instruction in computation.instructions])
            for computation in module.computations.values()
            if module.is_scheduled
        ]
        bodies = sorted(self.computations[each] for each in module.computations.values())
        header = tuple(sorted(self.content.header(module).items()))
        entry = self.computations[module.entry]
        return self.number(("module", header, entry, tuple(bodies), tuple(sorted(order))))

    def number(self, key: Hashable) -> int:
        """The number of a key; equal keys get equal numbers."""
        return self._numbers.setdefault(key, len(self._numbers))

    def _shape(self, instruction: Instruction) -> Hashable:
        """The shape as part of a label: none of a `tuple`, whose operands imply it; of a
        get-tuple-element also the number of elements to choose from."""
        if instruction.opcode is Opcode.TUPLE:
            return None
        shape = self.content.shape(instruction.shape)
        if instruction.opcode is Opcode.GET_TUPLE_ELEMENT:
            return shape, len(instruction.operands[0].shape.elements)
        return shape

    def _add(self, computation: Computation) -> None:
        content, labels, values = self.content, self.labels, self.values
        counts_control = "control" not in content.ignored
        mine: list[int] = []
        for instruction in stable_order(computation):
            opcode = instruction.opcode
            label = labels[instruction] = self.number(
                (
                    opcode,
                    self._shape(instruction),
                    content.attributes(instruction),
                    content.payload(instruction),
                    tuple([self.computations[called] for called in instruction.called]),
                )
            )
            key: Hashable = (label, *[values[operand] for operand in instruction.operands])
            if counts_control and instruction.control_predecessors:
                before = sorted(values[each] for each in instruction.control_predecessors)
                key = (key, tuple(before))
            values[instruction] = self.number(key)
            mine.append(values[instruction])
        mine.sort()
        self.computations[computation] = self.number(
            ("body", computation.execution_thread, values[computation.root], tuple(mine))
        )
