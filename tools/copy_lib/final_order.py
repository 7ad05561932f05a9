"""The recorded schedule of a module, for one that may have other copies."""

from __future__ import annotations

from collections.abc import Hashable

from hloopt.analysis.flat_schedule import Orders
from hloopt.ir import Computation, Instruction, Module, Opcode
from hloopt.ir.ordering import computation_post_order, dependencies, depth_first, post_order

_NO_FACTS = ("metadata", "backend_config", "origin", "frontend_attributes")


class FinalOrder:
    """Finds in a recorded, scheduled module what stands for the instructions of another one.

    Two instructions may stand for each other if they have the same opcode, shape, attributes and
    operands, where a copy counts as what it copies: so more or fewer copies change nothing else.
    Among several the one of the same name does, else the next in order.
    """

    def __init__(self, module: Module, recorded: Module) -> None:
        self.module = module
        self.recorded = recorded
        self._classes: dict[Hashable, int] = {}
        self._class_of: dict[Instruction, int] = {}
        self._of_computation: dict[Computation, int] = {}
        self.unmatched: list[Instruction] = []
        """An instruction without a counterpart: it is put right before its first user."""

    def orders(self) -> Orders:
        """An order for every computation of the module."""
        for module in (self.module, self.recorded):
            for computation in computation_post_order(module):
                self._classify(computation)
        pairs = [(self.module.entry, self.recorded.entry)]
        found: dict[Computation, list[Instruction]] = {}
        for computation, other in pairs:  # grows
            if computation not in found:
                matches = self._match(computation, other)
                found[computation] = self._order(computation, other, matches)
                for caller, match in matches.items():
                    pairs += zip(caller.called, match.called, strict=True)
        for computation in self.module.computations.values():
            found.setdefault(computation, post_order(computation))
        return found

    # -- what is alike ----------------------------------------------------------------------------

    def _classify(self, computation: Computation) -> None:
        for instruction in post_order(computation):
            self._class_of[instruction] = self._number(self._key(instruction))
        root = self._class_of[_real(computation.root)]
        self._of_computation[computation] = self._number(("computation", root))

    def _key(self, instruction: Instruction) -> Hashable:
        attributes = (
            (k, v) for k, v in sorted(instruction.attributes.items()) if k not in _NO_FACTS
        )
        return (
            instruction.opcode,
            instruction.shape,
            instruction.payload,
            tuple(attributes),
            tuple(self._class_of[_real(operand)] for operand in instruction.operands),
            tuple(self._of_computation[callee] for callee in instruction.called),
        )

    def _number(self, key: Hashable) -> int:
        return self._classes.setdefault(key, len(self._classes))

    def _match(
        self, computation: Computation, other: Computation
    ) -> dict[Instruction, Instruction]:
        waiting: dict[int, dict[str, Instruction]] = {}
        for instruction in other.instructions:
            alike = waiting.setdefault(self._class_of[instruction], {})
            alike[instruction.name] = instruction
        matches: dict[Instruction, Instruction] = {}
        for by_name in (True, False):
            for instruction in post_order(computation):
                alike = waiting.get(self._class_of[instruction], {})
                if instruction in matches or not alike:
                    continue
                name = instruction.name if by_name else next(iter(alike))
                if name in alike:
                    matches[instruction] = alike.pop(name)
        return matches

    # -- the order --------------------------------------------------------------------------------

    def _order(
        self, computation: Computation, other: Computation, matches: dict[Instruction, Instruction]
    ) -> list[Instruction]:
        positions = {instruction: n for n, instruction in enumerate(other.instructions)}
        at = {ours: float(positions[theirs]) for ours, theirs in matches.items()}
        for instruction in reversed(post_order(computation)):
            if instruction not in at:
                self.unmatched.append(instruction)
                users = [at[user] for user in instruction.users if user in at]
                at[instruction] = min(users, default=float(len(positions))) - 0.5
        ordered = sorted(post_order(computation), key=at.__getitem__)
        return depth_first(ordered, dependencies)


def _real(instruction: Instruction) -> Instruction:
    """The source of a copy."""
    while instruction.opcode is Opcode.COPY and instruction.shape is instruction.operands[0].shape:
        instruction = instruction.operands[0]
    return instruction
