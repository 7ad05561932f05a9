"""Facts about a module that selectors ask for, each found out once and only if it is asked for."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from hloopt.ir.computation import Computation
from hloopt.ir.devices.collective_devices import group_sizes
from hloopt.ir.devices.device_counts import device_counts
from hloopt.ir.devices.grid import Grid
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import ASYNC, COLLECTIVES, Opcode

_MEETINGS = frozenset(
    (*(o for o in COLLECTIVES if not o.endswith("-done")), Opcode.SEND, Opcode.RECV)
)


class ModuleFacts:
    """The facts of a module as it is: make new ones when it has changed."""

    def __init__(self, module: Module) -> None:
        self.module = module

    def is_in_loop(self, computation: Computation) -> bool:
        """Whether a loop's body is, or calls, a computation. O(calls) once."""
        return computation in self._in_loops

    def is_in_fusion(self, computation: Computation) -> bool:
        """Whether a fusion calls a computation, directly or not. O(calls) once."""
        return computation in self._in_fusions

    def is_in_async(self, computation: Computation) -> bool:
        """Whether an async-start calls a computation, directly or not. O(calls) once."""
        return computation in self._in_asyncs

    def group_sizes(self, instruction: Instruction) -> frozenset[int]:
        """The numbers of devices that meet in a collective, send or recv; empty for others.

        O(instructions) once.
        """
        if instruction.opcode not in _MEETINGS:
            return frozenset()
        return frozenset(group_sizes(instruction, self._grid))

    @cached_property
    def _grid(self) -> Grid:
        return device_counts(self.module)

    @cached_property
    def _in_loops(self) -> set[Computation]:
        return self._called_from(
            computation
            for computation, caller in self._calls
            if caller.opcode is Opcode.WHILE and caller.called[0] is computation
        )

    @cached_property
    def _in_fusions(self) -> set[Computation]:
        return self._called_from(c for c, caller in self._calls if caller.opcode is Opcode.FUSION)

    @cached_property
    def _in_asyncs(self) -> set[Computation]:
        return self._called_from(c for c, caller in self._calls if caller.opcode in ASYNC)

    @cached_property
    def _calls(self) -> list[tuple[Computation, Instruction]]:
        """Every called computation with each instruction that calls it."""
        return [(c, caller) for c in self.module.computations.values() for caller in c.callers]

    @cached_property
    def _callees(self) -> dict[Computation, list[Computation]]:
        found: dict[Computation, list[Computation]] = {}
        for computation, caller in self._calls:
            found.setdefault(caller.parent, []).append(computation)
        return found

    def _called_from(self, computations: Iterable[Computation]) -> set[Computation]:
        """Some computations and all that they call, directly or not."""
        found = set(computations)
        waiting = list(found)
        while waiting:
            for callee in self._callees.get(waiting.pop(), ()):
                if callee not in found:
                    found.add(callee)
                    waiting.append(callee)
        return found
