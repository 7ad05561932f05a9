"""Computations that run within others: a flat call graph, seen from below."""

from __future__ import annotations

from hloopt.ir import Computation, Instruction, Module, Opcode


class CallTree:
    """Computations, each below the one whose instruction calls it.

    One that several instructions call, as reducers may be, stands alone; of asynchronous starts
    the first one counts. O(calls).
    """

    def __init__(self, module: Module) -> None:
        self._caller: dict[Computation, Instruction | None] = {}
        self._depth: dict[Computation, int] = {}
        for computation in module.computations.values():
            self._caller[computation] = _only_caller(computation)
        for computation in module.computations.values():
            self._find_depth(computation)

    def _find_depth(self, computation: Computation) -> None:
        path: list[Computation] = []
        above: Computation | None = computation
        while above is not None and above not in self._depth:
            path.append(above)
            caller = self._caller[above]
            above = None if caller is None else caller.parent
        depth = -1 if above is None else self._depth[above]
        for below in reversed(path):
            depth += 1
            self._depth[below] = depth

    def caller(self, computation: Computation) -> Instruction | None:
        """The instruction that runs a computation."""
        return self._caller[computation]

    def is_within(self, instruction: Instruction, computation: Computation) -> bool:
        """Whether an instruction runs in a computation or in one that this runs. O(depth)."""
        return self.runs_within(instruction.parent, computation)

    def runs_within(self, inside: Computation, computation: Computation) -> bool:
        """Whether a computation is another one, or run by it, directly or not. O(depth)."""
        depth = self._depth[computation]
        while self._depth[inside] > depth:
            caller = self._caller[inside]
            assert caller is not None, f"{inside} has a depth, so a caller"
            inside = caller.parent
        return inside is computation

    def meeting(
        self, a: Instruction, b: Instruction
    ) -> tuple[Instruction, Instruction, Computation | None, Computation | None] | None:
        """The instructions of one computation in which `a` and `b` run, and through which of the
        computations these call: None where it is the instruction itself.

        None as a whole where nothing runs both. O(depth).
        """
        inside: list[Computation | None] = [None, None]
        found = [a, b]
        while found[0].parent is not found[1].parent:
            depths = [self._depth[instruction.parent] for instruction in found]
            deeper = 0 if depths[0] > depths[1] else 1
            steps = (0, 1) if depths[0] == depths[1] else (deeper,)
            for i in steps:
                caller = self._caller[found[i].parent]
                if caller is None:
                    return None
                inside[i] = found[i].parent
                found[i] = caller
        return found[0], found[1], inside[0], inside[1]


def _only_caller(computation: Computation) -> Instruction | None:
    callers = computation.callers
    if not callers:
        return None
    first = next(iter(callers))
    is_only = len(callers) == 1 and callers[first] == 1
    return first if is_only or first.opcode is Opcode.ASYNC_START else None
