"""The reason why latency-hiding-scheduler puts instructions where it does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hloopt.cost_models import cost_model_to_json, describe
from hloopt.diagnostics import counted
from hloopt.ir import Instruction, Module
from hloopt.ir.find import find_instructions
from hloopt.ir.schedule import set_schedule
from hloopt.pass_framework.base import PassContext
from hloopt.passes.scheduling.latency_hiding_scheduler.config import SchedulerConfig
from hloopt.passes.scheduling.latency_hiding_scheduler.explain import Decision, Explainer, ReadyNode
from hloopt.passes.scheduling.latency_hiding_scheduler.schedule_module import (
    NOT_SCHEDULED,
    ModuleScheduling,
)
from hloopt.passes.scheduling.latency_hiding_scheduler.times import model_of
from hloopt.reports.console.footnotes import print_footnote
from hloopt.reports.console.units import CycleUnit, middle, more_text, page_width
from hloopt.reports.prepared import PreparedModule
from hloopt.reports.schedule.order import ensure_schedule
from hloopt.reports.schedule.run import ScheduleSettings, cycle_unit
from hloopt.reports.stage_notices import render_notices

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from hloopt.reports.console.table import ReportTable


@dataclass(frozen=True, slots=True)
class Place:
    """The place in its computation where an instruction stands."""

    position: int
    """Counted from 1."""
    count: int
    before: Instruction | None
    """The instruction right before it; None if it is the first."""
    after: Instruction | None

    def is_beside_the_same(self, other: Place) -> bool:
        """Whether its neighbours are those of another place."""
        return self.before is other.before and self.after is other.after


@dataclass(frozen=True, slots=True)
class Explanation:
    """The reason why one instruction is where it is."""

    instruction: Instruction
    own: Place
    """By the order of the module."""
    scheduled: Place
    """By the scheduler."""
    decision: Decision | None
    """None where the scheduler left the computation alone."""


@dataclass(frozen=True, slots=True)
class ScheduleExplanation:
    """The scheduler's decisions about some instructions of a module."""

    module: Module
    notices: tuple[str, ...]
    """The subject of the explanation, where it is not the module as it was given."""
    order: str
    """`schedule`, or who found one for a module without."""
    config: SchedulerConfig
    unit: CycleUnit
    explanations: list[Explanation]
    meanings: dict[str, str]
    """The meanings of the words for rules and obstacles in the decisions."""

    @classmethod
    def of(
        cls, module: Module, settings: ScheduleSettings, names: Sequence[str]
    ) -> ScheduleExplanation:
        """Schedule a module as latency-hiding-scheduler would, and put it back as it was.

        One without a schedule first gets that of XLA's default memory scheduler. Near-linear.
        Raises HloError for an unknown name or a bad choice of a model, PassRefused where
        the scheduler refuses.
        """
        prepared = PreparedModule.of(module)
        module = prepared.module
        instructions = find_instructions(module, names)
        order = ensure_schedule(module)
        config = settings.config_for(module)
        scheduling = ModuleScheduling.of(module, config, model_of(config, module))
        explainer = Explainer(set(instructions).__contains__)
        scheduling.scheduler.explainer = explainer
        orders = scheduling.orders()
        own = [_place(instruction) for instruction in instructions]
        try:
            scheduling.run(PassContext(wants_remarks=False))
            scheduled = [_place(instruction) for instruction in instructions]
        finally:
            set_schedule(module, orders)
        explanations = [
            Explanation(instruction, before, after, explainer.decisions.get(instruction))
            for instruction, before, after in zip(instructions, own, scheduled, strict=True)
        ]
        unit = cycle_unit(scheduling.scheduler.model)
        return cls(
            *(module, prepared.notices, order, config, unit, explanations, explainer.meanings)
        )


def _place(instruction: Instruction) -> Place:
    order = list(instruction.parent.instructions)
    position = order.index(instruction)
    return Place(
        position + 1,
        len(order),
        order[position - 1] if position else None,
        order[position + 1] if position + 1 < len(order) else None,
    )


# -- as data --------------------------------------------------------------------------------------


def explanation_to_json(found: ScheduleExplanation) -> dict[str, Any]:
    """All of it. Times are in `unit`, from where scheduling began."""
    return {
        "module": found.module.name,
        "order": found.order,
        "preset": found.config.preset,
        **cost_model_to_json(found.config.model_choice),
        "top_down": found.config.top_down_scheduling,
        **found.unit.to_json(),
        "explanations": [_one_to_json(explanation) for explanation in found.explanations],
        "meanings": found.meanings,
        "notices": list(found.notices),
    }


def _one_to_json(explanation: Explanation) -> dict[str, Any]:
    own, scheduled = explanation.own, explanation.scheduled
    return {
        "instruction": explanation.instruction.name,
        "computation": explanation.instruction.parent.name,
        "module_place": _place_to_json(own),
        "scheduler_place": _place_to_json(scheduled),
        "same_neighbours": own.is_beside_the_same(scheduled),
        "decision": _decision_to_json(explanation.decision) if explanation.decision else None,
    }


def _place_to_json(place: Place) -> dict[str, Any]:
    return {
        "position": place.position,
        "of": place.count,
        "before": place.before and place.before.name,
        "after": place.after and place.after.name,
    }


def _decision_to_json(decision: Decision) -> dict[str, Any]:
    return {
        "step": decision.step,
        "now": decision.now,
        "group": decision.group,
        "ready": [
            {
                "instruction": node.instruction.name,
                "ready_time": node.ready_time,
                "obstacle": node.obstacle or None,
            }
            for node in decision.ready
        ],
        "comparisons": [
            {"better": c.better.name, "worse": c.worse.name, "rule": c.rule}
            for c in decision.comparisons
        ],
    }


# -- as a terminal page ---------------------------------------------------------------------------


def render_explanation(found: ScheduleExplanation, console: Console, *, top: int = 10) -> None:
    """Print of each instruction where it is, and the choice that put it there.

    `top` is how many of those that were ready are shown.
    """
    from rich.text import Text

    width = page_width(console)
    title = Text.assemble(
        "What latency-hiding-scheduler does with ",
        (found.module.name, "bold"),
        f", preset {found.config.preset}, by {describe(found.config.model_choice)}; order of the "
        f"module: {found.order}",
    )
    console.print(title, width=width)
    render_notices(found.notices, console, width)
    for explanation in found.explanations:
        console.print()
        console.print(_title(explanation.instruction, width), width=width)
        for line in _lines(found, explanation):
            console.print(Text(line), width=width)
        decision = explanation.decision
        if decision is not None and len(decision.ready) > 1:
            console.print()
            console.print(_ready_table(found, decision, top, width), width=width)
            if len(decision.ready) > top:
                console.print(Text(more_text(len(decision.ready) - top, width), style="dim"))
    words = list(_words(found.explanations))
    if words:
        console.print()
    for word in words:
        print_footnote(console, f"{word}: {_lowered(found.meanings[word])}", width=width)


def _title(instruction: Instruction, width: int) -> Text:
    from rich.text import Text

    kind = f" ({instruction.opcode.value}) in "
    room = (width - len(kind)) // 2
    return Text.assemble(
        (middle(f"%{instruction.name}", room), "bold"),
        kind,
        middle(f"%{instruction.parent.name}", room),
    )


def _lines(found: ScheduleExplanation, explanation: Explanation) -> Iterator[str]:
    own, scheduled, decision = explanation.own, explanation.scheduled, explanation.decision
    if decision is None:
        yield f"not scheduled: {NOT_SCHEDULED}"
        return
    yield f"scheduler: {_in_words(scheduled)}"
    if own == scheduled:
        yield "module: the same place"
    else:
        agreement = "; the same neighbours" if own.is_beside_the_same(scheduled) else ""
        yield f"module: {_in_words(own)}{agreement}"
    behind = "before" if found.config.top_down_scheduling else "after"
    end = "beginning" if found.config.top_down_scheduling else "end"
    chosen = "nothing" if not decision.step else f"{decision.step:,}"
    yield (
        f"chosen: with {chosen} {behind} it, {found.unit.label(decision.now)} from the {end}; "
        f"{_choice(decision)}"
    )


def _in_words(place: Place) -> str:
    sides = [
        f"{side} %{neighbour.name}"
        for side, neighbour in (("after", place.before), ("before", place.after))
        if neighbour is not None
    ]
    beside = f", {' and '.join(sides)}" if sides else ""
    return f"number {place.position:,} of {place.count:,}{beside}"


def _choice(decision: Decision) -> str:
    if decision.group is not None:
        return f"with its scheduling group {decision.group}"
    candidates = [node for node in decision.ready if not node.obstacle]
    if decision.comparisons:
        return f"the best of {counted(len(candidates), 'candidate')}"
    if any(node.instruction is decision.instruction for node in candidates):
        return "the only candidate"
    return "it takes no time, so it goes where it is ready"


def _ready_table(
    found: ScheduleExplanation, decision: Decision, top: int, width: int
) -> ReportTable:
    """The nodes ready at the step: the chosen one, those that lost, those not allowed."""
    from rich.text import Text

    from hloopt.reports.console.table import ReportTable

    lost = {comparison.worse: comparison for comparison in decision.comparisons}
    table = ReportTable()
    table.add_column("ready then", cut=middle)
    table.add_column("no stall from", justify="right")
    table.add_column("what became of it", wraps=True)
    room = width // 3
    chosen = decision.instruction
    beaten = {comparison.worse for comparison in decision.decided}

    def rank(node: ReadyNode) -> tuple[bool, bool, bool]:
        """The rows worth seeing first: the chosen one, those that lost to it, other candidates."""
        instruction = node.instruction
        return instruction is not chosen, instruction not in beaten, bool(node.obstacle)

    for node in sorted(decision.ready, key=rank)[:top]:
        name = Text(f"%{node.instruction.name}")
        if node.instruction is chosen:
            name.stylize("bold")
            fate = "chosen"
        elif node.obstacle:
            fate = f"not allowed: {node.obstacle}"
        elif node.instruction in lost:
            comparison = lost[node.instruction]
            fate = f"lost to {middle(f'%{comparison.better.name}', room)} by {comparison.rule}"
        else:
            fate = "waited"
        table.add_row(name, found.unit.text(node.ready_time), fate)
    return table


def _words(explanations: Iterable[Explanation]) -> Iterable[str]:
    """The words for rules and obstacles in the decisions, each once."""
    words: dict[str, None] = {}
    for explanation in explanations:
        if explanation.decision is not None:
            words.update((node.obstacle, None) for node in explanation.decision.ready)
            words.update((c.rule, None) for c in explanation.decision.comparisons)
    words.pop("", None)
    return words


def _lowered(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]
