"""The programs of a seed, and what XLA:GPU's pipeliners and ours make of each."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, ClassVar

from hloopt.analysis.fingerprint import LEFT_OUT, fingerprint
from hloopt.compilers.comparing import Compared, Verdict, compare_with
from hloopt.compilers.isolation import Run
from hloopt.diagnostics import HloError
from hloopt.equivalence import Reference, RunSettings
from hloopt.ir import Module, Opcode
from hloopt.pass_framework.library import find_pipeline
from hloopt.pass_framework.pipeline_text import parse_passes
from hloopt.text import parse_module, print_module
from oracle_script import oracle_script
from pipeliner_fuzz_lib.programs import program
from sweep_lib.compiled import CompiledPrograms
from sweep_lib.findings import Finding, Problem, Progress

FORWARD, BACKWARD = "collective-pipeliner-forward", "collective-pipeliner-backward"
FLAGS = tuple(
    f"--xla_gpu_enable_pipelined_{kind}=true"
    for kind in ("all_reduce", "all_gather", "reduce_scatter")
)
_OURS = (
    (FORWARD, "forward", "all-reduce"),
    (BACKWARD, "backward", "all-gather"),
    (FORWARD, "forward", "reduce-scatter"),
)
"""The instances in the order in which XLA:GPU runs them under these flags, and our options."""
_SETTINGS = RunSettings(seeds=2)
CHANNELS = "equal up to names and channels"
WRONG = "wrong in XLA alone"
_CHANNELS = LEFT_OUT | {"channels"}
"""XLA gives new channels to all that it copies, which backward is the whole body."""


@dataclass
class Programs(CompiledPrograms[Any]):
    """Loops that both pipeliners get."""

    block: ClassVar[int] = 50

    def content(self, number: int) -> bytes:
        return program(self.seed, number).encode()

    def ask_block(self, numbers: range) -> list[Any]:
        driver = oracle_script(self.shared / "oracle", "xla_gpu")
        texts = [program(self.seed, number) for number in numbers]
        answers: list[Any] = driver.compile_many(
            texts,
            target="h100_sxm",
            flags=FLAGS,
            only=(FORWARD, BACKWARD),
            passes="collective-pipeliner",
            python=self.python,
        )
        return answers

    def examine(self, number: int, known: set[str]) -> Progress:
        """Give ours what each of XLA's instances was given."""
        progress = Progress(1)
        steps = [step for step in self.answer(number).steps if step.name in (FORWARD, BACKWARD)]
        if [step.name for step in steps] != [name for name, _, _ in _OURS]:
            progress.outcomes["lost"] += 1
            return progress
        progress.outcomes["programs"] += 1
        is_equal, loops = True, 0
        for step, (_, direction, opcode) in zip(steps, _OURS, strict=True):
            run = Run(step.name, step.pipeline, step.before, step.after)
            found = _examined(run, direction, opcode)
            progress.outcomes += found.outcomes
            loops += found.loops
            if found.problem:
                is_equal = False
                problem = Problem(f"{found.problem}, program {number}", found.details)
                progress.findings.append(Finding(number, problem, step.before.encode()))
        progress.outcomes["equal"] += is_equal
        progress.outcomes["pipelined"] += bool(loops)
        progress.outcomes["loops"] += loops
        return progress


@dataclass
class _Examined:
    outcomes: Counter[str]
    loops: int = 0
    """Loops that XLA pipelines."""
    problem: str = ""
    details: str = ""


def _examined(run: Run, direction: str, opcode: str) -> _Examined:
    passes = (
        f"collective-pipeliner{{pipelining_direction={direction},should_process=[{opcode}],"
        "unique_channel_id=true,trip_analysis=xla}"
    )
    try:
        found = compare_with(run, parse_passes(passes, find_pipeline), _SETTINGS)
    except HloError as error:
        return _Examined(Counter({"refused": 1}), problem="refused", details=error.message)
    before = parse_module(run.before)
    theirs, ours = _pipelined(before, found.theirs), _pipelined(before, found.ours)
    result = _Examined(Counter(), len(theirs))
    if run.is_changed or found.is_changed:
        result.outcomes = Counter({"runs": 1, str(found.verdict): 1})
        ours_and_theirs = (fingerprint(m, ignored=_CHANNELS) for m in (found.ours, found.theirs))
        result.outcomes[CHANNELS] += len({*ours_and_theirs}) == 1
    if theirs != ours:
        result.problem = "other loops"
        result.details = f"XLA: {sorted(theirs)}, ours: {sorted(ours)}"
    elif found.verdict is Verdict.DIFFERENT and _is_wrong_in_xla(before, found):
        result.outcomes[WRONG] += 1
    elif found.verdict in (Verdict.DIFFERENT, Verdict.UNKNOWN):
        result.problem = str(found.verdict)
        result.details = f"{found.reason}\n{print_module(found.ours)}"
    return result


def _is_wrong_in_xla(before: Module, found: Compared) -> bool:
    """Whether XLA's result computes something else than the program, and ours the same."""
    reference = Reference(before, _SETTINGS)
    theirs = reference.compare(found.theirs)
    return reference.compare(found.ours) is None and theirs is not None and theirs.is_decided


def _pipelined(before: Module, after: Module) -> Counter[str]:
    """The loops that are not what they were, by the shape of the state they had.

    A loop that is pipelined has a larger state, or one trip less: its collectives have left.
    """
    return _loops(before) - _loops(after)


def _loops(module: Module) -> Counter[str]:
    """The loops by their states, operations, and trips."""
    return Counter(
        " ".join(
            [
                loop.shape.text,
                *sorted(each.opcode.value for each in loop.called[0].instructions),
                *(
                    each.payload
                    for each in loop.called[1].instructions
                    if each.opcode is Opcode.CONSTANT
                ),
            ]
        )
        for loop in module.instructions(Opcode.WHILE)
    )
