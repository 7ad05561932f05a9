"""The order in which the compiler that printed a module keeps its computations."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from heapq import heapify, heappop, heappush

from hloopt.ir import Computation, Instruction, Module, Opcode
from hloopt.ir.opcode import CONTROL_FLOW_CALLERS

_NUMBER = re.compile(r"\.(\d+)")
_LAST = 1 << 62
_WRAPPED = "wrapped_"
"""The names of fusions of one instruction begin so: a late pass makes them."""

_Key = tuple[int, int, bool, int]


def kept_order(module: Module) -> list[Computation]:
    """The computations that control flow runs, as XLA:GPU keeps them while it compiles a module.

    Callees stand before callers, and each new call changes the order as little as it can (the
    algorithm of Pearce and Kelly): a computation that calls a new one moves back to where its next
    caller stood, that one to where the one after it stood, and so on. The text tells too little of
    what happened: names say which computations were cloned late, and fusions are taken to be made
    before asynchronous collectives and these before fusions of one instruction. So the order is
    right for most modules, and else settles ties in another way. O(callers of each fusion).
    """
    return _KeptOrder(module).run()


class _KeptOrder:
    def __init__(self, module: Module) -> None:
        self.text = {c: number for number, c in enumerate(module.computations.values())}
        self.kept = dict.fromkeys(c for c in self.text if _is_run(c))
        self.positions: dict[Computation, int] = {}
        self.end = 0
        """The first position behind all."""

    def run(self) -> list[Computation]:
        self._begin()
        self._insert(lambda call: _is_fusion(call) and not call.name.startswith(_WRAPPED))
        self._insert(lambda call: call.opcode is Opcode.ASYNC_START)
        self._insert(lambda call: _is_fusion(call) and call.name.startswith(_WRAPPED))
        return self._sorted(self.positions)

    def _begin(self) -> None:
        """Place what was there before fusions: by clones, numbers and callees."""
        old = dict.fromkeys(c for c in self.kept if not c.is_asynchronous)
        open_callees = {
            c: {callee for i in c.instructions for callee in i.called if callee in old} for c in old
        }
        ready = [self._key(c) for c in old if not open_callees[c]]
        by_text = list(self.text)
        heapify(ready)
        while ready:
            computation = by_text[heappop(ready)[-1]]
            self.positions[computation] = self.end
            self.end += 1
            for caller in self._callers(computation):
                callees = open_callees.get(caller)
                if callees and computation in callees:
                    callees.remove(computation)
                    if not callees:
                        heappush(ready, self._key(caller))

    def _key(self, computation: Computation) -> _Key:
        found = _NUMBER.search(computation.name)
        number = int(found[1]) if found else _LAST
        is_body = any(
            caller.opcode is Opcode.WHILE and caller.called[0] is computation
            for caller in computation.callers
        )
        return computation.name.count(".clone"), number, is_body, self.text[computation]

    def _insert(self, is_made: Callable[[Instruction], bool]) -> None:
        """Let a pass make computations, caller by caller in the present order."""
        for computation in self._sorted(self.positions):
            made = [call for call in computation.instructions if call.called and is_made(call)]
            for call in sorted(made, key=lambda call: self.text[call.called[0]]):
                self._move_behind(computation, call.called[0])

    def _move_behind(self, caller: Computation, callee: Computation) -> None:
        """Make room for a new callee: it stands where its caller stood."""
        moved = {caller: None}
        waiting = [caller]
        for computation in waiting:  # grows
            for other in self._callers(computation):
                if other in self.positions and other not in moved:
                    moved[other] = None
                    waiting.append(other)
        order = self._sorted(moved)
        places = [*(self.positions[computation] for computation in order), self.end]
        self.end += 1
        self.positions.update(zip(order, places[1:], strict=True))
        if callee in self.kept:
            self.positions[callee] = places[0]

    def _callers(self, computation: Computation) -> Iterable[Computation]:
        return dict.fromkeys(i.parent for i in computation.callers if i.parent in self.kept)

    def _sorted(self, computations: Iterable[Computation]) -> list[Computation]:
        return sorted(computations, key=self.positions.__getitem__)


def _is_run(computation: Computation) -> bool:
    return all(caller.opcode in CONTROL_FLOW_CALLERS for caller in computation.callers)


def _is_fusion(call: Instruction) -> bool:
    return call.opcode is Opcode.FUSION
