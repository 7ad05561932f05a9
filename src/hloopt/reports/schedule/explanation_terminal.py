"""The reasons for places in a schedule, for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from hloopt.cost_models import describe
from hloopt.diagnostics import counted
from hloopt.ir import Instruction
from hloopt.reports.console.footnotes import print_footnote
from hloopt.reports.console.units import middle, more_text, page_width
from hloopt.reports.schedule.explanation import Explanation, Place, ScheduleExplanation
from hloopt.reports.stage_notices import render_notices
from hloopt.scheduling.engine.explain import NOT_SCHEDULED, Decision, ReadyNode

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from hloopt.reports.console.table import ReportTable


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
