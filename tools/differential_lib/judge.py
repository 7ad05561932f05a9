"""Run a chain of passes on a program, and compare what it computes before and after."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from differential_lib.chains import Step
from hloopt.diagnostics import HloError, PassRefused
from hloopt.equivalence import Mismatch, Reference, RunSettings
from hloopt.interpreter.errors import RunError
from hloopt.ir import Module
from hloopt.ir.devices.device_counts import device_counts
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.preserves import PRESERVES, Preserves
from hloopt.text import parse_module, print_module
from hloopt.verifier import ANY_TARGET, verify_module
from sweep_lib.findings import Problem, TooSlow
from sweep_lib.prints import FULL, Broken, check_print, first_line

_MOST_STEPS = 200_000
_MOST_MEMORY = 1 << 28
_SEEDS = 2


class Verdict:
    """The outcome for one program."""

    def __init__(self) -> None:
        self.outcome = "invalid"
        """"equal", "different", "unchanged", "undecided", "cannot run", "invalid" or "broken"."""
        self.problem: Problem | None = None
        self.passes: Counter[str] = Counter()
        """By pass: "ran NAME", "changed NAME", "refused NAME"."""


def judge(text: str, chain: Sequence[Step], *, named: bool = True) -> Verdict:
    """Run the chain and compare; `named` finds out which pass makes a difference."""
    verdict = Verdict()
    step = "read"
    try:
        module = parse_module(text)
        if errors := verify_module(module, ANY_TARGET):
            verdict.problem = Problem("the program is invalid", render(errors[0]))
            return verdict
        verdict.outcome = "broken"
        changed = False
        for item in chain:
            step = item.name
            changed |= run_pass(item, module, verdict.passes)
        step = "read back"
        again = check_print(module, FULL)
        assert again is not None
        step = "compare"
        verdict.outcome = "unchanged"
        if changed:
            _compare(text, chain, again, verdict, named)
    except Broken as error:
        verdict.problem = Problem(f"{step}: {error.args[0]}", "\n".join(error.args))
    except (Exception, TooSlow) as error:
        verdict.problem = Problem.of(step, error)
    return verdict


def run_pass(item: Step, module: Module, passes: Counter[str]) -> bool:
    """Run one pass and hold it to its laws; whether it changed the module. Raises Broken."""
    before = print_module(module, FULL)
    passes[f"ran {item.name}"] += 1
    try:
        says = create_pass(item.name, item.options).run(module, PassContext(item.name))
    except PassRefused:
        passes[f"refused {item.name}"] += 1
        module.become(parse_module(before))
        return False
    after = print_module(module, FULL)
    if after == before:
        # copy-insertion says that it changed the module whatever it did, as XLA's does.
        if says and item.name != "copy-insertion":
            raise Broken("it says that it changed the module", before)
        return False
    if not says:
        raise Broken("it does not say that it changed the module", before, after)
    passes[f"changed {item.name}"] += 1
    if errors := verify_module(module, ANY_TARGET):
        raise Broken("the module it leaves is invalid", render(errors[0]), after)
    check_print(module, FULL)
    return True


def _compare(
    text: str, chain: Sequence[Step], result: Module, verdict: Verdict, named: bool
) -> None:
    original = parse_module(text)
    settings = RunSettings(
        seeds=_SEEDS, counts=device_counts(original), steps=_MOST_STEPS, memory=_MOST_MEMORY
    )
    reference = Reference(original, settings)
    keeps = _kept(chain)
    try:
        mismatch = reference.compare(result, keeps)
    except RunError as error:
        verdict.outcome = "cannot run"
        verdict.passes[f"cannot run: {_class_of(first_line(error))}"] += 1
        return
    if mismatch is None:
        verdict.outcome = "equal"
    elif not mismatch.is_decided:
        verdict.outcome = "undecided"
    else:
        verdict.outcome = "different"
        name = _culprit(text, chain, reference, keeps) if named else "a pass"
        kind = f"{name}: computes something else ({_kind_of(mismatch)})"
        verdict.problem = Problem(kind, mismatch.reason)


def _kept(chain: Sequence[Step]) -> Preserves:
    """The part of results that all passes of a chain keep; up to rounding at most."""
    declared = [create_pass(item.name, item.options).preserves for item in chain]
    return max(("rounding", *declared), key=PRESERVES.index)


def _culprit(text: str, chain: Sequence[Step], reference: Reference, keeps: Preserves) -> str:
    """The first pass after which the module computes something else."""
    module = parse_module(text)
    for item in chain:
        if not run_pass(item, module, Counter()):
            continue
        mismatch = reference.compare(module, keeps)
        if mismatch is not None and mismatch.is_decided:
            return item.name
    return "what is read back"


def _kind_of(mismatch: Mismatch) -> str:
    """Values that differ are one kind; else the sentence says what is other."""
    return "values" if mismatch.difference is not None else _class_of(mismatch.reason)


def _class_of(message: str) -> str:
    """A message without what is particular to one program."""
    message = re.sub(r"%[\w.\-]+", "%…", message.splitlines()[0] if message else "")
    return re.sub(r"-?\d+", "N", message)[:90]


def render(error: HloError) -> str:
    """An error with its place, as users see it."""
    from hloopt.diagnostics import render_error

    return render_error(error)
