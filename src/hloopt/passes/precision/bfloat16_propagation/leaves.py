"""The arrays of a module that can change their type, and the values they hold."""

from __future__ import annotations

from hloopt.analysis.dataflow import NOTHING, Dataflow, Position, slots_of
from hloopt.ir import Computation, Instruction, Module
from hloopt.ir.shapes.shape import Shape
from hloopt.passes.precision.float_support import FloatSupport


class _HighSlots(dict[Shape, tuple[int, ...]]):
    """The slots of shapes that are arrays of a type; each is found when it is asked for."""

    def __init__(self, type_name: str) -> None:
        self.type_name = type_name

    def __missing__(self, shape: Shape) -> tuple[int, ...]:
        parts = slots_of(shape).parts
        found = self[shape] = tuple(
            slot
            for slot, part in enumerate(parts)
            if part.type_name == self.type_name and not part.is_buffer
        )
        return found


class Leaves:
    """The leaves of results, and which of them are to become low.

    A leaf is an array in a result, given by instruction and slot. It may hold several values: what
    a while gives is what it got, or what its body made of that. Only leaves of type `high` change.
    """

    def __init__(self, module: Module, support: FloatSupport) -> None:
        """Analyze a module. Near-linear in its leaves; raises as `Dataflow.of` does."""
        self.module = module
        self.support = support
        self.flow = Dataflow.of(module, in_fusions=True)
        self.low: dict[Instruction, set[int]] = {}
        """The slots of leaves that are to become low, of instructions with some."""
        self.slots = _HighSlots(support.high)
        """The slots of a shape that are arrays of type high, by shape."""
        self._expanded: dict[int, tuple[int, ...]] = {}
        self._parameters: dict[Computation, list[Instruction]] = {}
        self._phis_with: dict[int, list[int]] = {}
        for phi in self.flow.phis:
            if self.flow.shape(phi).type_name == support.high:
                for value in self._expand(phi):
                    self._phis_with.setdefault(value, []).append(phi)

    def parameters(self, computation: Computation) -> list[Instruction]:
        """The parameters of a computation by number. O(instructions) the first time."""
        found = self._parameters.get(computation)
        if found is None:
            found = self._parameters[computation] = computation.parameters
        return found

    # -- types ----------------------------------------------------------------------------------

    def is_low(self, instruction: Instruction, slot: int) -> bool:
        """Whether a part of a result is, or is to become, an array of type low."""
        return slot in self.low.get(instruction, ()) or self.was_low(instruction, slot)

    def was_low(self, instruction: Instruction, slot: int) -> bool:
        """Whether a part of a result is an array of type low in the module as it is."""
        shape = instruction.shape
        if slot == 0:
            return shape.type_name == self.support.low
        parts = slots_of(shape).parts
        return slot < len(parts) and parts[slot].type_name == self.support.low

    def lower(self, instruction: Instruction, slot: int) -> None:
        """Let a leaf of type high become low."""
        self.low.setdefault(instruction, set()).add(slot)

    def restore(self, instruction: Instruction, slot: int) -> None:
        """Let a leaf keep its type."""
        slots = self.low.get(instruction)
        if slots is not None:
            slots.discard(slot)
            if not slots:
                del self.low[instruction]

    # -- values ---------------------------------------------------------------------------------

    def values(self, instruction: Instruction, slot: int) -> tuple[int, ...]:
        """The values that a part of a result may hold, as results define them."""
        held = self.flow.held[instruction][slot]
        if held in self.flow.merged:
            return self._expand(held)
        return () if held == NOTHING else (held,)

    def definition(self, value: int) -> Position:
        """The leaf that defines a value."""
        return Position(self.flow.definer[value], self.flow.slot[value])

    def positions(self, value: int) -> list[Position]:
        """All leaves that may hold a value, its definition first. O(result)."""
        found = self.flow.positions(value)
        for phi in self._phis_with.get(value, ()):
            found += self.flow.positions(phi)
        return found

    def _expand(self, held: int) -> tuple[int, ...]:
        """The values that one stands for which merges others. O(what it merges) once."""
        found = self._expanded.get(held)
        if found is None:
            merged = self.flow.merged
            seen = {held: None}
            waiting = [held]
            for value in waiting:  # grows
                new = [source for source in merged.get(value, ()) if source not in seen]
                seen.update(dict.fromkeys(new))
                waiting += new
            found = self._expanded[held] = tuple(v for v in seen if v not in merged)
        return found
