"""The reason why the scheduler put an instruction where it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from hloopt.diagnostics import counted
from hloopt.ir import Instruction
from hloopt.scheduling.rules.ready_order import ReadyOrder
from hloopt.scheduling.state.state import SchedulingState

NOT_SCHEDULED = "nothing asynchronous is in its computation, so the order of that stays"
"""The reason why there is no decision about an instruction."""
OBSTACLES = {
    "kAnnotationNotReady": "Waits until its whole scheduling group is ready",
    "kExceedsOverlapLimit": "Needs more of a resource than its overlap limit leaves",
}
"""The obstacles that keep a ready instruction from being chosen, by XLA's word for each."""
_SHOWN = 5
Item = TypeVar("Item")


class ReadyNode(NamedTuple):
    """An instruction that could have been chosen."""

    instruction: Instruction
    ready_time: float
    """The time at which it can run without a stall, in the model's unit, from where scheduling
    began."""
    obstacle: str
    """The reason why it was not among the candidates, in XLA's word; empty if it was."""


class Comparison(NamedTuple):
    """Two candidates, and the rule that decided between them, in XLA's word."""

    better: Instruction
    worse: Instruction
    rule: str


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision by which one instruction was chosen."""

    instruction: Instruction
    step: int
    """The number of those of its computation that were chosen before it: bottom up these come after
    it."""
    now: float
    """The time of the choice, in the model's unit from where scheduling began."""
    ready: tuple[ReadyNode, ...]
    comparisons: tuple[Comparison, ...] = ()
    """In the order XLA makes them: the best so far with the next candidate."""
    group: int | None = None
    """The scheduling group with which it was scheduled."""

    @property
    def decided(self) -> tuple[Comparison, ...]:
        """The comparisons that the instruction won."""
        return tuple(c for c in self.comparisons if c.better is self.instruction)

    def sentence(self, unit: str = "cycles") -> str:
        """The decision as one line, for a remark. `unit`: that of the model of time."""
        return f"step {self.step}, at {self.now:g} {unit}: {self._reason()}"

    def _reason(self) -> str:
        if self.group is not None:
            return f"scheduled with its group {self.group}"
        waiting = [r for r in self.ready if r.obstacle and r.instruction is not self.instruction]
        held = f"; not allowed: {_listed(waiting, _with_obstacle)}" if waiting else ""
        if not self.comparisons:
            candidates = [r.instruction for r in self.ready if not r.obstacle]
            if self.instruction in candidates:
                return f"the only candidate{held}"
            return "takes no time, so it is scheduled as soon as it is ready"
        rules = dict.fromkeys(c.rule for c in self.decided)
        won = [
            f"{_listed([c.worse for c in self.decided if c.rule == rule], _name)} by {rule}"
            for rule in rules
        ]
        before = len(self.comparisons) - len(self.decided)
        indirect = f"; {counted(before, 'comparison')} before, among others" if before else ""
        return (
            f"of {counted(len(self.comparisons) + 1, 'candidate')} better than {', '.join(won)}"
            + (indirect + held)
        )


class Explainer:
    """Notes the decisions about instructions, as they are made."""

    def __init__(self, is_asked: Callable[[Instruction], bool]) -> None:
        self.is_asked = is_asked
        """The instructions to explain."""
        self.decisions: dict[Instruction, Decision] = {}
        """In order of the last scheduling of each."""
        self.meanings: dict[str, str] = dict(OBSTACLES)
        """The meaning of each word for a rule or obstacle that decisions may have."""

    def watch(self, state: SchedulingState, order: ReadyOrder) -> None:
        """Note what is decided while a computation is scheduled: O(ready) per decision asked for,
        nothing if none is. A computation that is scheduled again is explained anew."""
        instructions = state.graph.instructions
        self.meanings.update((rule.reason, rule.meaning) for rule in order.rules)
        asked = {node for node, i in enumerate(instructions) if self.is_asked(i)}
        for node in asked:
            self.decisions.pop(instructions[node], None)
        if not asked:
            return

        def note(node: int) -> None:
            if node in asked:
                self.decisions[instructions[node]] = _decision(state, order, node)

        state.on_chosen.append(note)


def _decision(state: SchedulingState, order: ReadyOrder, node: int) -> Decision:
    """The choice of a node that is about to be made."""
    graph, instructions = state.graph, state.graph.instructions
    candidates = order.candidates()
    free = set(candidates)
    comparisons = []
    if node in free:
        state.memory.look()
        best = candidates[0]
        for other in candidates[1:]:
            better, rule = order.compare(best, other)
            worse = best if better == other else other
            comparisons.append(Comparison(instructions[better], instructions[worse], rule))
            best = better
    return Decision(
        instructions[node],
        step=len(state.sequence),
        now=state.clock.now,
        ready=tuple(
            ReadyNode(
                instructions[other],
                state.clock.ready_time[other],
                state.obstacle(other),
            )
            for other in state.ready.nodes
        ),
        comparisons=tuple(comparisons),
        group=graph.group.get(node),
    )


def _listed(items: Sequence[Item], name: Callable[[Item], str]) -> str:
    """The first few of several, by name."""
    shown = ", ".join(name(item) for item in items[:_SHOWN])
    return shown if len(items) <= _SHOWN else f"{shown} and {len(items) - _SHOWN} more"


def _name(instruction: Instruction) -> str:
    return f"%{instruction.name}"


def _with_obstacle(node: ReadyNode) -> str:
    return f"%{node.instruction.name} ({node.obstacle})"
