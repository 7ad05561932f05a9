"""One computation while it is rematerialized: its memory, the search, the edits and remarks."""

from __future__ import annotations

from hloopt.diagnostics import counted
from hloopt.ir import Computation
from hloopt.passes.rematerialization.items import Item
from hloopt.passes.rematerialization.recomputation import Recomputation
from hloopt.passes.rematerialization.search import BlockSearch
from hloopt.passes.rematerialization.state import State
from hloopt.passes.rematerialization.transfers import compress, host_offload
from hloopt.passes.rematerialization.ways import Strategy, Way, Ways


class Walk:
    """The walk along the schedule of a computation.

    `limit` is what the computation may use, in bytes; ways are costed by `cost_limit`.
    """

    def __init__(
        self,
        state: State,
        computation: Computation,
        limit: int,
        *,
        cost_limit: int,
        at_peak: bool = False,
    ) -> None:
        self.state = state
        self.computation = computation
        self.limit = limit
        self.tracker = state.tracker(computation)
        self.ways = Ways(state, self.tracker, cost_limit, state.peaks[computation])
        self.search = BlockSearch(self.tracker, self.ways)
        self._recomputation = Recomputation(
            state, self.tracker, self.search, removes_originals=at_peak
        )
        self._unexplained: list[Item] = []
        self._is_edited = False
        smallest = state.options.min_remat_size
        for item in self.tracker.sequence:
            item.is_candidate = sum(buffer.size for buffer in item.defined) >= smallest

    def restart(self) -> None:
        """Go back to the beginning of the schedule."""
        self.tracker.restart()
        self.search.restart()
        self._unexplained = []

    def go_to(self, item: Item) -> None:
        """Let an instruction be the current one. O(operands and slots on the way to it)."""
        tracker = self.tracker
        current = tracker.current
        if current is None:
            current = tracker.sequence.first
            assert current is not None
            tracker.begin(current)
        while current is not item:
            if current < item:
                tracker.end()
                self.search.pass_by(current)
                current = current.after
                assert current is not None
                tracker.begin(current)
            else:
                current = tracker.back()
                assert current is not None
                self.search.forget(current)

    def memory(self, item: Item) -> int:
        """Bytes in use at the current instruction, with the peaks of what it calls."""
        return self.tracker.memory + self.state.callees_memory(item.instruction)

    def end(self, item: Item) -> None:
        self.tracker.end()
        self.search.pass_by(item)
        self._unexplained.append(item)

    def apply(self, way: Way, at: Item) -> bool:
        """Make one edit; False where the run has reached its limit of applications."""
        state, tracker = self.state, self.tracker
        item = way.block[0]
        if not state.context.apply(item.instruction, _what(way, at)):
            return False
        self._is_edited = True
        match way.strategy:
            case Strategy.COMPRESS:
                compress(item, state, tracker)
                state.context.count("values compressed")
            case Strategy.HOST_OFFLOAD:
                host_offload(item, state, tracker)
                state.context.count("values kept in host memory")
            case Strategy.RECOMPUTE:
                self._recomputation.apply(way.block)
                state.context.count("instructions recomputed", len(way.block))
        return True

    def finish(self) -> None:
        """Make the edited list the schedule of the computation."""
        if self._is_edited:
            self.computation.reorder(self.tracker.sequence.instructions())

    # -- remarks ------------------------------------------------------------------------------

    def explain(self, at: Item) -> None:
        """Say why what is alive at the current instruction stays, of each value once."""
        if not self.state.context.wants_remarks:
            return
        for item in self._unexplained:
            if reason := self.why_not(item):
                self.state.context.missed(item.instruction, f"{reason} ({self._excess(at)})")
        self._unexplained = []

    def why_not(self, item: Item) -> str | None:
        """The reason why an instruction with a value that is alive is not recomputed.

        None for what takes no memory now, and for what could be.
        """
        size = sum(buffer.size for buffer in item.defined if buffer.is_alive)
        if size == 0:
            return None
        kept = f"keeps {counted(size, 'byte')}: "
        if item.is_barred:
            return f"{kept}it was made by rematerialization"
        if not item.is_candidate:
            return f"{kept}it is smaller than min_remat_size"
        if reason := self.state.why_not(item.instruction):
            return f"{kept}{reason}"
        if any(buffer.indirect_users for buffer in item.defined):
            return f"{kept}it is read through a tuple or is the state of a loop"
        if any(buffer.is_nested for buffer in item.defined):
            return f"{kept}its result is a tuple in a tuple"
        if self.tracker.is_used_now(item):
            return f"{kept}it is read right here"
        saved = self.ways.saved_by_recomputing(item)
        if saved <= 0:
            return (
                f"{kept}its operands, {counted(size - saved, 'byte')}, would have to stay instead"
            )
        return None

    def _excess(self, at: Item) -> str:
        excess = self.memory(at) - self.limit
        return f"%{at.instruction.name} runs at {counted(excess, 'byte')} above the limit"


def _what(way: Way, at: Item) -> str:
    verb = {
        Strategy.COMPRESS: "kept in a compact layout",
        Strategy.HOST_OFFLOAD: "kept in host memory",
        Strategy.RECOMPUTE: "recomputed",
    }[way.strategy]
    block = counted(len(way.block) - 1, "instruction") if len(way.block) > 1 else ""
    more = f" with the {block} behind it" if block else ""
    saved = counted(way.saved, "byte")
    return f"{verb}{more} for its later users: saves {saved} at %{at.instruction.name}"
