"""Facts that copy insertion needs: the values of a module, and which of them lie in one place."""

from __future__ import annotations

from functools import cached_property

from hloopt.analysis.dataflow import Dataflow, Position, Use, slots_of
from hloopt.analysis.in_place import IN_PLACE, InPlace
from hloopt.ir import Computation, Instruction, Module, Opcode
from hloopt.ir.opcode import CONTROL_FLOW_CALLERS
from hloopt.memory.backends import Backend
from hloopt.memory.buffers import entry_aliases, shared_values
from hloopt.memory.overwrite import Overwriting

_SHARING = IN_PLACE | {Opcode.COPY}


class Facts:
    """Dataflow, buffers and aliasing of a module before copies are inserted.

    Computed at the first access, which many modules never need. Near-linear. Access then raises
    HloVerifyError where shapes, aliases or calls do not fit.
    """

    def __init__(self, module: Module, backend: Backend) -> None:
        self.module = module
        self.backend = backend
        self.version = module.version
        """The module's version that the facts are about."""
        self.in_place = InPlace(through_reshapes=backend.name == "gpu")

    @cached_property
    def flow(self) -> Dataflow:
        """Values, and which instructions hold them."""
        return Dataflow.of(self.module, leave_out=_is_simple_function)

    @cached_property
    def buffers(self) -> dict[int, list[int]]:
        """Per value all that must share its memory, itself among them; others share with none."""
        return shared_values(self.flow, self.in_place)

    @cached_property
    def overwriting(self) -> Overwriting:
        """The rules by which results may be written over operands."""
        return Overwriting(self.flow, self.in_place, self.backend.may_overwrite)

    def follow(self, replaced: dict[int, int]) -> None:
        """Update the facts after copies were replaced by their sources.

        `replaced` maps the value of each such copy to that of its source. O(positions and buffers
        of these).
        """
        gone = self.flow.replace_values(replaced)
        buffers = self.buffers
        for old, new in gone.items():
            one, other = self.buffer_of(new), self.buffer_of(old)
            if one is not other:
                if len(one) < len(other):
                    one, other = other, one
                one += other
                buffers.update(dict.fromkeys(other, one))
                buffers[new] = one
        for values in {id(buffers[new]): buffers[new] for new in gone.values()}.values():
            values[:] = sorted(value for value in values if value not in gone)
        for old in gone:
            del buffers[old]
        self.version = self.module.version

    def buffer_of(self, value: int) -> list[int]:
        """All values that lie where `value` does."""
        return self.buffers.get(value) or [value]

    def value_of(self, instruction: Instruction, slot: int = 0) -> int | None:
        """The one value in a slot; None where several may be there, or none is."""
        held = self.flow.held[instruction][slot]
        return None if held < 0 or held in self.flow.unions else held

    def is_read_only(self, value: int) -> bool:
        """Whether a value lies where nothing may be written: constants, arguments not aliased."""
        flow = self.flow
        definer = flow.definer[value]
        if definer.opcode is Opcode.PARAMETER and definer.parent.is_entry:
            return (definer, flow.slot[value]) not in self._aliased
        return definer.opcode is Opcode.CONSTANT

    @cached_property
    def _aliased(self) -> set[tuple[Instruction, int | None]]:
        parameters = self.module.entry.parameters
        found = ((parameters[a.parameter], a.parameter_index) for a in entry_aliases(self.module))
        return {(parameter, slots_of(parameter.shape).at(index)) for parameter, index in found}

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


def _is_simple_function(computation: Computation) -> bool:
    """Whether a computation is embedded, as a reducer, and no two of its values share memory."""
    callers = computation.callers
    return (
        bool(callers)
        and not any(caller.opcode in CONTROL_FLOW_CALLERS for caller in callers)
        and not any(i.called or i.opcode in _SHARING for i in computation.instructions)
    )
