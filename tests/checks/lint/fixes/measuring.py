"""Fixes of lint put to modules, and what they save by the models that the rules ask."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import hloopt
from hloopt.analysis.cost.roofline import Roofline
from hloopt.analysis.inventory.collectives import collectives_of
from hloopt.checks.lint.costs import total, work_seconds
from hloopt.checks.lint.fixes import FIXES, Claim
from hloopt.checks.lint.registry import all_rules
from hloopt.checks.lint.run import check_rule
from hloopt.checks.lint.settings import LintSettings
from hloopt.checks.results import Impact, Violation
from hloopt.checks.subject import Subject
from hloopt.checks.view import View
from hloopt.cost_models import CostModelChoice
from hloopt.ir.clone import clone_module
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.targets import load_target

TARGET = "h100_sxm"
LEAST = {"size": 1, "share": 0.0, "flops": 1}
"""Options by which a rule finds what is small, too."""
_OPTIONS: dict[str, dict[str, float]] = {"HLL104": {}, "HLL402": {"size": 64}}
"""Options of rules for which LEAST is no use: a size is the largest, scalars are constants."""
_CARRIED = frozenset((Opcode.TUPLE, Opcode.WHILE, Opcode.CALL, Opcode.CONDITIONAL))
"""Opcodes whose bytes are those of what they call, or pointers to elements of a state."""


class Measured(NamedTuple):
    """A module before and after the fix of a rule, and what the rule finds in each."""

    code: str
    before: View
    after: View
    found: tuple[Violation, ...]
    left: tuple[Violation, ...]

    def saved(self, claim: Claim) -> float:
        """The figure that a claim is about, before less after."""
        figure = _FIGURES.get((self.code, claim)) or _figure(claim, self.code)
        return figure(self.before) - figure(self.after)

    def claimed(self, claim: Claim) -> float:
        """The figure of the costs of the findings that are gone."""
        return _part(claim, impact_of(self.found)) - _part(claim, impact_of(self.left))


def view_of(module: Module) -> View:
    """A view that takes guessed times for known ones."""
    return View.of(Subject("m.hlo", module, CostModelChoice(target=TARGET)), most_guessed=1.0)


def found_in(code: str, view: View) -> tuple[Violation, ...]:
    """All that a rule finds, however small."""
    rule = all_rules()[code]
    fields = rule.options.__dataclass_fields__
    given = _OPTIONS.get(code, {name: LEAST[name] for name in LEAST if name in fields})
    return check_rule(rule, view, LintSettings(options={code: rule.options(**given)})).violations


def impact_of(found: tuple[Violation, ...]) -> Impact:
    """The sum of the costs of findings."""
    return total(each.impact for each in found)


def measure(code: str, module: Module) -> Measured:
    """Put a rule to a module before and after its fix. The module stays as it is."""
    before = view_of(module)
    found = _taken_on(code, found_in(code, before))
    fixed, _ = clone_module(module)
    if code == "HLL401":
        _donate(fixed, found)
    hloopt.opt(fixed, FIXES[code].passes_for(TARGET))
    after = view_of(fixed)
    return Measured(code, before, after, found, _taken_on(code, found_in(code, after)))


def _taken_on(code: str, found: tuple[Violation, ...]) -> tuple[Violation, ...]:
    """The findings that a rule does not say itself that the fix leaves: those of HLL505 have
    advice."""
    return tuple(each for each in found if each.help) if code == "HLL505" else found


def _donate(module: Module, found: tuple[Violation, ...]) -> None:
    """Let a module say of the arguments that findings are about that they are donated."""
    names = {each.location.instruction for each in found}
    numbers = [p.parameter_number for p in module.entry.parameters if p.name in names]
    module.attributes["buffer_donor"] = (
        "{ " + ", ".join(f"({number}, {{}})" for number in numbers) + " }"
    )


# -- figures --------------------------------------------------------------------------------------


def _part(claim: Claim, impact: Impact) -> float:
    match claim:
        case Claim.MOVED:
            return impact.moved
        case Claim.MEMORY | Claim.MOST_MEMORY:
            return impact.memory
    return impact.seconds


def _figure(claim: Claim, code: str) -> Callable[[View], float]:
    match claim:
        case Claim.MOVED:
            return _sent if code.startswith("HLL1") else _accessed
        case Claim.MEMORY | Claim.MOST_MEMORY:
            return lambda view: view.subject.memory.report.peak
        case Claim.BUSY:
            return lambda view: makespan(view) - exposed(view)
    return exposed


def makespan(view: View) -> float:
    """Seconds of a run."""
    return view.schedule.simulation.makespan * (view.schedule.unit.seconds or 0.0)


def exposed(view: View) -> float:
    """Seconds of a run in which the main stream waits."""
    hidings = view.schedule.hidings
    cycles = sum(hiding.operation.exposed * run.runs for run, hiding in hidings)
    return cycles * (view.schedule.unit.seconds or 0.0)


def _sent(view: View) -> float:
    """Bytes that one device sends in collectives."""
    found = collectives_of(view.subject.module)
    return sum(each.wire * view.runs(each.instruction).times for each in found)


def _accessed(view: View, which: Callable[[Instruction], bool] = lambda _: True) -> float:
    """Bytes between memory and processor, without pointers to the elements of tuples."""
    costs = view.subject.costs
    return sum(
        costs.of(each).bytes_accessed * view.runs(each).times
        for each in view.subject.module.instructions()
        if not view.facts.is_in_fusion(each.parent) and each.opcode not in _CARRIED and which(each)
    )


def _products(view: View) -> float:
    """Seconds of dots by the peak rates of the target."""
    roofline = Roofline(view.subject.costs, load_target(TARGET))
    return sum(
        roofline.of(dot).seconds * view.runs(dot).times
        for dot in view.subject.module.instructions(Opcode.DOT)
    )


def _copying(view: View) -> float:
    """Seconds of the copies in loops."""
    copies = filter(_is_copy_of_loop(view), view.subject.module.instructions(Opcode.COPY))
    return sum(work_seconds(view, each) for each in copies)


def _is_copy_of_loop(view: View) -> Callable[[Instruction], bool]:
    return lambda each: each.opcode is Opcode.COPY and view.facts.is_in_loop(each.parent)


_FIGURES: dict[tuple[str, Claim], Callable[[View], float]] = {
    ("HLL301", Claim.BUSY): _products,
    ("HLL505", Claim.BUSY): _copying,
    ("HLL505", Claim.MOVED): lambda view: _accessed(view, _is_copy_of_loop(view)),
}
"""Figures of rules that speak of a part of the module: products, copies in loops."""
