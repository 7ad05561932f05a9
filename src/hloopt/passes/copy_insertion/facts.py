"""What copy insertion asks of a module: its values, and which of them lie in one place."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from hloopt.analysis.dataflow import Dataflow, Position, Use
from hloopt.analysis.in_place import InPlace
from hloopt.ir import Instruction, Module
from hloopt.memory.backends import Backend
from hloopt.memory.buffers import entry_aliases, read_only_values, shared_values
from hloopt.memory.overwrite import Overwriting


@dataclass
class Facts:
    """The values of a module as it was, whatever copies it gets afterwards."""

    flow: Dataflow
    in_place: InPlace
    buffers: dict[int, list[int]]
    """Of each value that must share memory all that lie there, by number; others lie alone."""
    overwriting: Overwriting
    version: int
    """That of the module the facts are about."""

    @classmethod
    def of(cls, module: Module, backend: Backend) -> Facts:
        """Near-linear. Raises HloVerifyError where shapes, aliases or calls do not fit."""
        flow = Dataflow.of(module)
        in_place = InPlace(through_reshapes=backend.name == "gpu")
        return cls(
            flow=flow,
            in_place=in_place,
            buffers=shared_values(flow, in_place),
            overwriting=Overwriting(flow, in_place, backend.may_overwrite),
            version=module.version,
        )

    def buffer_of(self, value: int) -> list[int]:
        """All values that lie where `value` does."""
        return self.buffers.get(value) or [value]

    def value_of(self, instruction: Instruction, slot: int = 0) -> int | None:
        """The one value in a slot; None where several may be there, or none is."""
        held = self.flow.held[instruction][slot]
        return None if held < 0 or held in self.flow.unions else held

    def is_read_only(self, value: int) -> bool:
        """Whether a value lies where nothing may be written: constants, arguments not aliased."""
        return value in self._read_only

    @cached_property
    def _read_only(self) -> set[int]:
        return read_only_values(self.flow, entry_aliases(self.flow.module))

    def may_share(self, use: Use, value: int) -> bool:
        """Whether the user may have `value`, which it defines, where the operand lies."""
        position = Position(self.flow.definer[value], self.flow.slot[value])
        return self.overwriting.may_share(use, position)

    def merges(self, conditional: Instruction) -> list[int]:
        """The slots in which values of several branches may be."""
        phis, definer = self.flow.phis, self.flow.definer
        return [
            slot
            for slot, value in enumerate(self.flow.held[conditional])
            if value in phis and definer[value] is conditional
        ]
