"""The programs of a seed for one pass, and the verdicts on what XLA:GPU and ours make of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar, NamedTuple

from hloopt.analysis.fingerprint import fingerprint
from hloopt.equivalence import Reference, RunSettings
from hloopt.ir import Module, Opcode
from hloopt.ir.attributes.values import parse_ints
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module
from oracle_script import oracle_script
from pass_agreement_lib.chain import PassRun
from pass_agreement_lib.judge import Kind, judge
from pass_agreement_lib.places import TARGET, name_of, pass_at
from pass_answers_lib.dots import (
    MOST_BYTES,
    for_dimension_merger,
    for_merger,
    for_normalizer,
    for_sorter,
)
from pass_answers_lib.elementwise import for_conversions, for_logistic
from pass_answers_lib.placements import for_placements
from pass_answers_lib.quantized import for_quantizer
from sweep_lib.compiled import CompiledPrograms
from sweep_lib.findings import Finding, Problem, Progress

_EQUAL = (Kind.TEXT, Kind.NAMES, Kind.ANNOTATIONS)
CHANGED = "changed by XLA"
EQUAL = "equal"
EXPLAINED = "explained"
LOST = "without an answer"
WRONG = "XLA's result computes something else than the program, ours what the program does"


class Modules(NamedTuple):
    """A program, and what both made of it, without what nothing reads."""

    before: Module
    theirs: Module
    ours: Module


class Cause(NamedTuple):
    """Why results differ that compute the same."""

    text: str
    holds: Callable[[Modules], bool]


class Generated(NamedTuple):
    """The programs that a pass is tried on."""

    program: Callable[[Random], str]
    causes: tuple[Cause, ...] = ()
    flags: tuple[str, ...] = ()
    """XLA's, under which the pass has the options below."""
    options: str = ""
    """Ours; by default those of the place in XLA's pipeline."""


def _dots(module: Module) -> int:
    return sum(1 for _ in module.instructions(Opcode.DOT))


def _are_unsorted(modules: Modules) -> bool:
    """Whether XLA left contracting dimensions unsorted that it rearranged."""
    return any(
        theirs.attributes != ours.attributes and len(_contracting(theirs)) > 2
        for theirs, ours in zip(
            modules.theirs.instructions(Opcode.DOT),
            modules.ours.instructions(Opcode.DOT),
            strict=True,
        )
    )


def _contracting(dot: Any) -> list[int]:
    return list(parse_ints(dot.attributes.get("lhs_contracting_dims", "{}")))


def _has_control(modules: Modules) -> bool:
    return any(each.has_control_dependencies for each in modules.before.instructions())


_MOVES_CONTROL = Cause(
    "XLA leaves a dot with control dependencies beside the new one, ours moves them", _has_control
)
GENERATED = {
    "collective-quantizer": Generated(
        for_quantizer,
        (
            Cause(
                "XLA leaves a collective with control dependencies beside the new one; ours leaves "
                "it alone",
                _has_control,
            ),
        ),
    ),
    "convert-memory-placement-to-internal-annotations": Generated(for_placements),
    "dot-merger": Generated(
        for_merger,
        (
            Cause(
                "ours, as newer XLA, also merges dots whose operands have other dimensions",
                lambda modules: _dots(modules.ours) < _dots(modules.theirs),
            ),
            Cause(
                "XLA merges a third dot with what it made of two, ours, as newer XLA, all at once",
                lambda modules: _dots(modules.ours) == _dots(modules.theirs),
            ),
        ),
        flags=(f"--xla_gpu_dot_merger_threshold_mb={MOST_BYTES >> 20}",),
        options=f"max_size_to_merge={MOST_BYTES}",
    ),
    "dot_dimension_merger": Generated(
        for_dimension_merger,
        (_MOVES_CONTROL,),
    ),
    "dot_dimension_sorter": Generated(
        for_sorter,
        (
            _MOVES_CONTROL,
            Cause(
                "XLA leaves three contracting dimensions unsorted that go round in a cycle",
                _are_unsorted,
            ),
        ),
    ),
    "dot_normalizer": Generated(for_normalizer),
    "logistic-expander": Generated(for_logistic),
    "simplify-fp-conversions": Generated(for_conversions),
}
"""By the pass, as XLA names it."""


@dataclass
class Programs(CompiledPrograms[Any]):
    """Programs of one pass."""

    block: ClassVar[int] = 50
    pass_name: str = ""

    def content(self, number: int) -> bytes:
        return self.text(number).encode()

    def text(self, number: int) -> str:
        """The n-th program of the seed."""
        dice = Random(f"{self.seed}:{number}:{self.pass_name}")
        return GENERATED[self.pass_name].program(dice)

    def ask_block(self, numbers: range) -> list[Any]:
        driver = oracle_script(self.shared / "oracle", "xla_gpu")
        name = self.pass_name
        answers: list[Any] = driver.compile_many(
            [self.text(number) for number in numbers],
            target=TARGET,
            only=[name],
            passes=f"^{name}$",
            until="memory",
            lhs=False,
            flags=GENERATED[name].flags,
            python=self.python,
        )
        return answers

    def examine(self, number: int, known: set[str]) -> Progress:
        """Give ours what XLA's was given, at the first place where it runs."""
        progress = Progress(1)
        answer = self.answer(number)
        steps = [step for step in answer.steps if step.name == self.pass_name]
        if not steps:
            progress.outcomes[LOST] += 1
            progress.findings.append(self._finding(number, LOST, answer.error))
            return progress
        step = steps[0]
        run = PassRun(step.pipeline, step.name, step.before, step.after)
        outcome, details = examine_run(run, GENERATED[self.pass_name])
        progress.outcomes[CHANGED] += run.before != run.after
        progress.outcomes[outcome] += 1
        if outcome not in (EQUAL, EXPLAINED):
            progress.findings.append(self._finding(number, outcome, details))
        elif outcome == EXPLAINED:
            progress.outcomes[f"{EXPLAINED}: {details}"] += 1
        progress.outcomes = +progress.outcomes
        return progress

    def _finding(self, number: int, outcome: str, details: str) -> Finding:
        problem = Problem(f"{outcome}, {self.pass_name}, program {number}", details)
        return Finding(number, problem, self.content(number))


def examine_run(run: PassRun, generated: Generated) -> tuple[str, str]:
    """EQUAL, EXPLAINED with the cause, or another verdict with details on it."""
    passes = pass_at(run.name, run.pipeline, run.before)
    assert passes is not None
    if generated.options:
        passes = f"{name_of(passes)}{{{generated.options}}}"
    judged = judge(run, passes)
    if judged.kind is Kind.NEITHER or judged.kind in _EQUAL:
        return EQUAL, ""
    details = f"{judged.reason}\n// XLA's\n{run.after}\n// ours\n{judged.ours}"
    if not judged.ours:
        return str(judged.kind), details
    modules = Modules(*(without_leftovers(text) for text in (run.before, run.after, judged.ours)))
    if fingerprint(modules.theirs) == fingerprint(modules.ours):
        return EQUAL, ""
    if judged.kind is Kind.EQUIVALENT:
        for cause in generated.causes:
            if cause.holds(modules):
                return EXPLAINED, cause.text
    if judged.kind is Kind.DIFFERENT and _is_wrong_in_xla(modules):
        return EXPLAINED, WRONG
    return str(judged.kind), details


def _is_wrong_in_xla(modules: Modules) -> bool:
    """Whether XLA's result computes something else than the program, and ours the same."""
    reference = Reference(modules.before, RunSettings(seeds=2))
    theirs = reference.compare(modules.theirs)
    return reference.compare(modules.ours) is None and theirs is not None and theirs.is_decided


def without_leftovers(text: str) -> Module:
    """A module without what nothing reads: ours removes what it made dead, XLA leaves it there."""
    module = parse_module(text)
    create_pass("tuple-simplifier").run(module, PassContext())
    options = {"remove_cross_partition_collective_ops": True}
    create_pass("dce", options).run(module, PassContext())
    return module
