"""Endings of compilers that are failures: the cause first, then XLA's own words."""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence
from typing import NamedTuple

from hloopt.compilers.child import Ending
from hloopt.compilers.flags import UNKNOWN_FLAG, flags_in
from hloopt.compilers.log import last_pass
from hloopt.compilers.plugins import MISSING_COMPILER
from hloopt.compilers.programs import Program
from hloopt.diagnostics import HloError, PassFailure, did_you_mean
from hloopt.patterns import pattern

_FATAL = pattern(r"F\d{4} \S+ +\d+ \S+\] (?P<message>.*)")
UNKNOWN_FLAGS = pattern(r".*Unknown flags? in XLA_FLAGS: (?P<flags>.*)")
"""The line of a log that names the flags which XLA does not know."""
_WRONG_VALUE = pattern(r".*Couldn't interpret value (?P<value>.*) for flag (?P<flag>\w+)")
_UNKNOWN_OPTION = pattern(r".*\bxla: Unknown command line argument '(?P<option>[^']*)'")
_NO_DESCRIPTION = pattern(r".*Error parsing text-format .*GpuTargetConfigProto: (?P<why>.*)")
_STATUS = pattern(r"[A-Z_]+: ")
_MLIR_ERROR = pattern(r"(?P<file>.+?):(?P<line>\d+):(?P<column>\d+): error: (?P<what>.*)")
_CANNOT_PARSE = "Failed to parse using StableHLO"
_LONGEST_NOTE = 1200


class Attempt(NamedTuple):
    """A compile that ended without a result."""

    program: Program
    flags: Sequence[str]
    """XLA's flags that the user gave."""
    seconds: float | None
    """The time limit."""
    library: str
    """The path of the compiler."""


class CompilerFailure(PassFailure):
    """A compiler of XLA refused a program, died, or ran out of time."""

    code = "HLO704"


class CompilerTooSlow(CompilerFailure):
    """It ran out of time."""


class CompilerKilled(CompilerFailure):
    """Its process was killed from outside, whatever the program is."""


def explain(ending: Ending, lines: list[str], attempt: Attempt) -> HloError:
    """The error for an ending without a result, with the lines of the log."""
    answer = ending.answer or {}
    if "unfit" in answer:
        return HloError(answer["unfit"], code=MISSING_COMPILER)
    if wrong := _found(_NO_DESCRIPTION, lines):
        return HloError(f"the description of the GPU cannot be read: {wrong['why']}", code="HLO014")
    if "refused" in answer:
        return _refusal(answer["refused"], lines, attempt.program)
    if ending.is_late:
        return CompilerTooSlow(
            f"XLA did not end within {attempt.seconds:g} s{_last_pass(lines)}",
            help="--timeout SECONDS gives it longer",
        )
    if wrong_flag := _wrong_flag(lines, attempt):
        return wrong_flag
    message = f"XLA {_how_it_died(ending, lines)}{_last_pass(lines)}"
    if ending.exit_code == -signal.SIGKILL:
        help = "it was killed from outside: by the system, if memory ran out"
        return CompilerKilled(message, help=help)
    return CompilerFailure(message)


def _found(wanted: re.Pattern[str], lines: Sequence[str]) -> re.Match[str] | None:
    return next(filter(None, map(wanted.match, lines)), None)


def _wrong_flag(lines: list[str], attempt: Attempt) -> HloError | None:
    """The error where XLA ended because of a flag."""
    help: str | None = None
    if unknown := _found(UNKNOWN_FLAGS, lines):
        flags = unknown["flags"].replace("--", "")
        near = did_you_mean(re.split(r"[=\s]", flags)[0], flags_in(attempt.library))
        message = f"this XLA does not know {flags}"
        help = near or "flags come and go with its versions"
    elif wrong := _found(_WRONG_VALUE, lines):
        message = f"'{wrong['value']}' is no value of {wrong['flag']}"
    elif option := _found(_UNKNOWN_OPTION, lines):
        message = f"xla_backend_extra_options: LLVM has no option '{option['option']}'"
    elif any("Flag parsing failed" in line for line in lines):
        one_of = "one of " if len(attempt.flags) > 1 else ""
        message = f"XLA cannot read the value of {one_of}{', '.join(attempt.flags)}"
    else:
        return None
    return HloError(message, help=help, code=UNKNOWN_FLAG)


def _refusal(message: str, lines: list[str], program: Program) -> HloError:
    """XLA's status is its own words: the first line is the cause, the rest goes behind it."""
    first, _, rest = message.strip().partition("\n")
    first = _STATUS.sub("", first, count=1)
    if _CANNOT_PARSE in rest and (wrong := _MLIR_ERROR.match(first)):
        place = int(wrong["line"]), int(wrong["column"])
        span = program.span_at(*place) if wrong["file"] == "-" else None
        error = HloError(f"XLA cannot read the StableHLO: {wrong['what']}", span=span)
        return error.coded("HLO022").in_file(program.name)
    rest = re.sub(r"\s+", " ", rest)[:_LONGEST_NOTE].strip()
    note = f"{rest}{_last_pass(lines)}" if rest else _last_pass(lines).removeprefix("; ")
    return CompilerFailure(f"XLA refuses the program: {first}").noted(note)


def _how_it_died(ending: Ending, lines: list[str]) -> str:
    fatal = [match["message"] for match in map(_FATAL.match, lines) if match]
    if fatal:
        return f"ended its process: {fatal[-1]}"
    code = -ending.exit_code
    if code in {int(number) for number in signal.valid_signals()}:
        return f"died of {signal.Signals(code).name}"
    words = next((line for line in reversed(lines) if line.strip()), "")
    return f"ended with exit code {ending.exit_code}" + (f": {words}" if words else "")


def _last_pass(lines: list[str]) -> str:
    name = last_pass(lines)
    return "; no pass had begun" if name is None else f"; the last pass that began is {name}"
