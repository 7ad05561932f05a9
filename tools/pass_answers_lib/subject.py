"""The programs of a seed for one pass, and verdicts on what XLA's and ours make of each."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar, NamedTuple

from hloopt.analysis.fingerprint import fingerprint
from hloopt.equivalence import Reference, RunSettings
from hloopt.ir import Module
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module
from oracle_script import oracle_script
from pass_agreement_lib.chain import PassRun
from pass_agreement_lib.judge import Kind, judge
from pass_agreement_lib.places import TARGET, name_of, pass_at
from pass_answers_lib.causes import Modules
from pass_answers_lib.generated import GENERATED, Generated
from sweep_lib.compiled import CompiledPrograms
from sweep_lib.findings import Finding, Problem, Progress

_EQUAL = (Kind.TEXT, Kind.NAMES, Kind.ANNOTATIONS)
CHANGED = "changed by XLA"
EQUAL = "equal"
EXPLAINED = "explained"
LOST = "without an answer"
DIED = "XLA died"
WRONG = "XLA's result computes something else than the program, ours what the program does"


class CpuAnswer(NamedTuple):
    """The runs of a pass in XLA:CPU on a program, and why they end before the pipeline does."""

    steps: list[PassRun]
    error: str = ""
    is_dead: bool = False
    """Whether XLA's process ended."""


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
        if GENERATED[self.pass_name].is_on_cpu:
            return [self._ask_cpu(self.text(number)) for number in numbers]
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

    def _ask_cpu(self, text: str) -> CpuAnswer:
        driver = oracle_script(self.shared / "oracle", "xla_oracle")
        try:
            found = driver.passes(text, only_changed=False, only=[self.pass_name.partition("@")[0]])
        except driver.OracleError as error:
            return CpuAnswer([], str(error), is_dead=error.kind == "crash")
        steps = [
            PassRun(step["pipeline"], step["pass"], step["before"], step["after"])
            for step in found
            if "pass" in step
        ]
        return CpuAnswer(steps, "\n".join(step["error"] for step in found if "error" in step))

    def examine(self, number: int, known: set[str]) -> Progress:
        """Give ours what XLA's was given, at the first place where it runs."""
        progress = Progress(1)
        answer = self.answer(number)
        name, _, place = self.pass_name.partition("@")
        steps = [step for step in answer.steps if step.name == name][int(place or 1) - 1 :]
        if not steps and isinstance(answer, CpuAnswer) and answer.is_dead:
            progress.outcomes[DIED] += 1
            return progress
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
    if judged.kind in (Kind.EQUIVALENT, Kind.UNKNOWN):
        for cause in generated.all_causes():
            if cause.needs_runs and judged.kind is not Kind.EQUIVALENT:
                continue
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
