"""Which blocks of its operands a fusion needs for blocks of its results."""

from __future__ import annotations

from collections.abc import Mapping

from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.passes.collectives.collective_splitter.dimensions import Needed, needed, result_of

Cut = int | tuple[int, ...]
"""The dimension along which a value is cut; for a tuple that of each element."""


class _Disagreement(Exception):
    """A value is needed whole and in blocks, or in different blocks."""


class FusedCut:
    """The dimension along which each value in a fused computation is cut."""

    def __init__(self, computation: Computation, parts: int) -> None:
        self.computation = computation
        self.parts = parts
        self.of: dict[Instruction, int] = {}
        self._whole: set[Instruction] = set()
        self._waiting: list[Instruction] = []

    @property
    def operands(self) -> Needed:
        return tuple(self.of.get(each) for each in self.computation.parameters)

    @property
    def result(self) -> Cut:
        root = self.computation.root
        if root.opcode is Opcode.TUPLE:
            return tuple(self.of[operand] for operand in root.operands)
        return (self.of[root],) * len(root.shape.elements) if root.shape.is_tuple else self.of[root]

    def spread(self, known: Mapping[Instruction, int]) -> bool:
        """Cut all that has to be cut with some values; whether each part can be computed alone.

        O(fused instructions and their uses), times the dimensions of each.
        """
        try:
            for value, dimension in known.items():
                self._cut(value, dimension)
            while self._waiting:
                for user in self._waiting.pop().users:
                    self._use(user)
        except _Disagreement:
            return False
        root = self.computation.root
        results = root.operands if root.opcode is Opcode.TUPLE else [root]
        return all(value in self.of for value in results)

    def _cut(self, value: Instruction, dimension: int) -> None:
        """Cut a value, and what it is computed of."""
        stack = [(value, dimension)]
        while stack:
            value, dimension = stack.pop()
            if self.of.get(value, dimension) != dimension or value in self._whole:
                raise _Disagreement
            if value in self.of:
                continue
            self.of[value] = dimension
            self._waiting.append(value)
            if value.opcode is Opcode.PARAMETER:
                continue
            wanted = needed(value, dimension, self.parts)
            if wanted is None:
                raise _Disagreement
            for operand, cut in zip(value.operands, wanted, strict=True):
                if cut is not None:
                    stack.append((operand, cut))
                elif operand in self.of:
                    raise _Disagreement
                else:
                    self._whole.add(operand)

    def _use(self, user: Instruction) -> None:
        """Cut a value one of whose operands is cut."""
        if user in self.of or user.opcode is Opcode.TUPLE:
            return
        cut = cut_by_operands(user, self.of, self.parts)
        if cut is None:
            raise _Disagreement
        self._cut(user, cut)


def cut_by_operands(user: Instruction, cut: Mapping[Instruction, Cut], parts: int) -> int | None:
    """The dimension along which an operation cuts its result if some of its operands are cut.

    O(operands) for each dimension.
    """
    for dimension in range(result_of(user).rank):
        wanted = needed(user, dimension, parts)
        if wanted is not None and all(
            cut.get(operand, each) == each
            for operand, each in zip(user.operands, wanted, strict=True)
        ):
            return dimension
    return None
