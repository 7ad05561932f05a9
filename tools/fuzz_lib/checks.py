"""Promises for any text: an answer or an HloError, and prints that come back."""

from __future__ import annotations

from hloopt.analysis.calls import callees_first
from hloopt.diagnostics import HloError, PassRefused, render_error
from hloopt.ir import Computation, Module
from hloopt.memory import analyze_memory
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import PASSES, create_pass
from hloopt.reports.diff.comparison import diff_modules
from hloopt.text import parse_module, print_module
from hloopt.verifier import verify_module
from sweep_lib.findings import Problem, TooSlow
from sweep_lib.limits import next_step
from sweep_lib.prints import FORMS, FULL, Broken, check_print, first_line

_LARGEST_EXPANDED = 20_000  # instructions
_OPTIONS: dict[str, dict[str, object]] = {
    "memory-search": {"target": "h100_sxm", "iterations": 2, "memory_limit": 64},
    "overlap-search": {"target": "h100_sxm", "iterations": 2},
    "rematerialization": {"memory_limit_bytes": 0, "recompute": True},
}
"""For passes that cannot run without options, or do nothing."""


class State:
    """The last step that a check reached."""

    def __init__(self) -> None:
        self.outcome = "refused"
        """"refused", "invalid" or "valid"."""
        self.step = "read"


def check(text: str, *, thorough: bool) -> tuple[str, Problem | None]:
    """The outcome of `text` (refused, invalid, valid), and the first promise that is broken.

    `thorough` runs all passes and analyses as well.
    """
    state = State()
    try:
        _check(text, state, thorough)
    except Broken as error:
        return state.outcome, Problem(f"{state.step}: {error.args[0]}", "\n".join(error.args))
    except (Exception, TooSlow) as error:
        return state.outcome, Problem.of(state.step, error)
    return state.outcome, None


def _check(text: str, state: State, thorough: bool) -> None:
    try:
        module = parse_module(text)
    except HloError as error:
        check_message(error)
        return
    check_module(module, state)
    if state.outcome == "valid" and thorough and _expanded_size(module) < _LARGEST_EXPANDED:
        _check_passes(text, state)
        state.step = "memory"
        next_step()
        try:
            analyze_memory(module)
        except HloError as error:
            render_error(error)


def check_module(module: Module, state: State) -> None:
    """Verify a module that was read, and print it in all forms. Raises Broken."""
    state.outcome, state.step = "invalid", "verify"
    errors = verify_module(module)
    for problem in errors[:5]:
        render_error(problem)
    for form, options in FORMS.items():
        state.step = f"print ({form})"
        if not errors:
            check_print(module, options)
            continue
        try:
            print_module(module, options)
        except HloError as error:
            render_error(error)
    if not errors:
        state.outcome = "valid"


def _expanded_size(module: Module) -> int:
    """Instructions after inlining all calls: what passes that copy callees may make of it."""
    sizes: dict[Computation, int] = {}
    for computation in callees_first(module):
        calls = (callee for i in computation.instructions for callee in i.called)
        sizes[computation] = len(computation) + sum(sizes[callee] for callee in calls)
    return sizes[module.entry]


def check_message(error: HloError) -> None:
    """Raise Broken unless the message says where, and is short."""
    message = render_error(error)
    if error.location is None:
        raise Broken("an error without a place", message)
    if len(message) > 3000:
        raise Broken("an endless message", message[:500])


def _check_passes(text: str, state: State) -> None:
    for name in sorted(PASSES):
        state.step = name
        next_step()
        module = parse_module(text)
        before = print_module(module, FULL)
        try:
            changed = create_pass(name, _OPTIONS.get(name, {})).run(module, PassContext(name))
        except PassRefused as error:
            render_error(error)
            continue
        state.step = f"verify after {name}"
        if errors := verify_module(module):
            raise Broken("invalid", first_line(errors[0]), print_module(module, FULL))
        state.step = f"print after {name}"
        # copy-insertion says so whatever it did, as XLA's does.
        if name != "copy-insertion" and changed != (print_module(module, FULL) != before):
            raise Broken(f"the pass says changed={changed}")
        for options in FORMS.values():
            check_print(module, options)
        state.step = f"diff after {name}"
        diff_modules(parse_module(text), module)
