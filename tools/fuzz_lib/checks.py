"""What must hold for any text: an answer or an HloError, and prints that come back."""

from __future__ import annotations

import re
import traceback
from pathlib import Path
from typing import NamedTuple

import hloopt
from hloopt.analysis.calls import callees_first
from hloopt.diagnostics import HloError, PassRefused, render_error
from hloopt.ir import Computation, Module
from hloopt.ir.opcode import ASYNC
from hloopt.memory import analyze_memory
from hloopt.passes.base import PassContext
from hloopt.passes.registry import create_pass, pass_names
from hloopt.reports.module_diff import diff_modules
from hloopt.text import PrintOptions, parse_module, print_module
from hloopt.verifier import verify_module

FULL = PrintOptions.formatted()._replace(keep_order=False)
_FORMS = {"full": FULL, "default": PrintOptions.default(), "kept": PrintOptions.keep()}
_MADE_UP = re.compile(r"\b(async_wrapped|async_param|async_op|call)(\.\d+)*\b")
_LOST_BY_ROUNDING = ("5.9e-39", "1.2e-38")  # the smallest f8e8m0fnu, printed with two digits
_MINUS_ZERO = re.compile(r"(?<![\w.])-0(?![\w.])")
_PACKAGE = str(Path(hloopt.__file__).parent)


_LARGEST_EXPANDED = 20_000  # instructions


class TooSlow(BaseException):
    """Raised in the middle of whatever takes too long; nothing but the fuzzer catches it."""


class Problem(NamedTuple):
    """One broken promise."""

    kind: str
    """Equal for what is the same problem, most likely: what was broken, and where."""
    details: str
    """A traceback, or what differs."""


class _Broken(Exception):
    """A law that does not hold."""


def check(text: str, *, thorough: bool) -> tuple[str, Problem | None]:
    """What became of `text` (refused, invalid, valid), and the first promise that is broken.

    `thorough` runs all passes and analyses as well.
    """
    state = _State()
    try:
        _check(text, state, thorough)
    except _Broken as error:
        return state.outcome, Problem(f"{state.step}: {error.args[0]}", "\n".join(error.args))
    except (Exception, TooSlow) as error:
        return state.outcome, _problem(state.step, error)
    return state.outcome, None


class _State:
    outcome = "refused"
    step = "read"


def _problem(step: str, error: BaseException) -> Problem:
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if frame.filename.startswith(_PACKAGE)] or frames
    # Where a text takes too long is where it happened to be after that time: only the file counts.
    last = ours[-1]
    place = Path(last.filename).name
    if not isinstance(error, (TooSlow, RecursionError, MemoryError)):
        place += f":{last.name}"
    lines = traceback.format_exception(type(error), error, error.__traceback__)
    if len(lines) > 60:
        lines = [*lines[:20], "  …\n", *lines[-30:]]
    return Problem(f"{step}: {type(error).__name__} in {place}", "".join(lines)[:20_000])


def _check(text: str, state: _State, thorough: bool) -> None:
    try:
        module = parse_module(text)
    except HloError as error:
        _check_message(error)
        return
    state.outcome, state.step = "invalid", "verify"
    errors = verify_module(module)
    for problem in errors[:5]:
        render_error(problem)
    for form, options in _FORMS.items():
        state.step = f"print ({form})"
        _check_print(module, options, must_print=not errors)
    if errors:
        return
    state.outcome = "valid"
    if thorough and _expanded_size(module) < _LARGEST_EXPANDED:
        _check_passes(text, state)
        state.step = "memory"
        try:
            analyze_memory(module)
        except HloError as error:
            render_error(error)


def _expanded_size(module: Module) -> int:
    """Instructions after inlining all calls: what passes that copy callees may make of it."""
    sizes: dict[Computation, int] = {}
    for computation in callees_first(module):
        calls = (callee for i in computation.instructions for callee in i.called)
        sizes[computation] = len(computation) + sum(sizes[callee] for callee in calls)
    return sizes[module.entry]


def _check_message(error: HloError) -> None:
    message = render_error(error)
    if error.location is None:
        raise _Broken("an error without a place", message)
    if len(message) > 3000:
        raise _Broken("an endless message", message[:500])


def _check_print(module: Module, options: PrintOptions, *, must_print: bool) -> None:
    """What is printed is read again, verifies, and prints the same."""
    try:
        once = print_module(module, options)
    except HloError:
        if must_print:
            raise
        return
    if not must_print:
        return
    if not options.always_readable and any(i.opcode in ASYNC for i in module.instructions()):
        return  # of some asynchronous operations XLA's print says too little
    try:
        again = parse_module(once)
    except HloError as error:
        raise _Broken("the print is refused", _first_line(error), once) from error
    if errors := verify_module(again):
        raise _Broken("the print is invalid", _first_line(errors[0]), once)
    twice = print_module(again, options)
    # XLA's order of computations follows that of their callers, which a print changes.
    same = twice == once if options.keep_text else _blocks(twice) == _blocks(once)
    if not same:
        raise _Broken("the second print differs", _difference(once, twice))


_FRAMES = re.compile(r"\bstack_frame_id=\d+|^FileNames\n.*?^StackFrames\n[^\n].*?\n\n", re.M | re.S)


def _blocks(text: str) -> list[str]:
    """The parts of a print, without what XLA's print loses too, and names that readers make up."""
    # Stack frames are numbered as they are met, so another order gives other numbers.
    text = _FRAMES.sub("", text)
    text = _MADE_UP.sub(r"\1", text).replace(*_LOST_BY_ROUNDING)
    return sorted(block.strip() for block in _MINUS_ZERO.sub("0", text).split("\n\n"))


def _check_passes(text: str, state: _State) -> None:
    for name in pass_names(plugins=False):
        state.step = name
        module = parse_module(text)
        before = print_module(module, FULL)
        try:
            changed = create_pass(name).run(module, PassContext(name))
        except PassRefused as error:
            render_error(error)
            continue
        state.step = f"verify after {name}"
        if errors := verify_module(module):
            raise _Broken("invalid", _first_line(errors[0]), print_module(module, FULL))
        state.step = f"print after {name}"
        # copy-insertion says so whatever it did, as XLA's does.
        if name != "copy-insertion" and changed != (print_module(module, FULL) != before):
            raise _Broken(f"the pass says changed={changed}")
        for options in _FORMS.values():
            _check_print(module, options, must_print=True)
        state.step = f"diff after {name}"
        diff_modules(parse_module(text), module)


def _first_line(error: HloError) -> str:
    return error.message.splitlines()[0] if error.message else ""


def _difference(once: str, twice: str) -> str:
    import difflib

    lines = difflib.unified_diff(once.splitlines(), twice.splitlines(), lineterm="", n=1)
    return "\n".join(lines)[:5000]


def same_problem(text: str, problem: Problem) -> bool:
    """Whether `text` has this problem."""
    _, found = check(text, thorough=True)
    return found is not None and found.kind == problem.kind
