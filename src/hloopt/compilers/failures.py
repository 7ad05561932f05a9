"""Endings of compilers that are failures: the cause first, then XLA's own words."""

from __future__ import annotations

import re
import signal

from hloopt.compilers.child import Ending
from hloopt.compilers.flags import UNKNOWN_FLAG
from hloopt.compilers.log import last_pass
from hloopt.compilers.plugins import MISSING_COMPILER
from hloopt.diagnostics import HloError, PassFailure
from hloopt.patterns import pattern

_FATAL = pattern(r"F\d{4} \S+ +\d+ \S+\] (?P<message>.*)")
_UNKNOWN_FLAG = pattern(r".*Unknown flags? in XLA_FLAGS: (?P<flags>.*)")
_WRONG_VALUE = pattern(r".*Couldn't interpret value (?P<value>.*) for flag (?P<flag>\w+)")
_NO_DESCRIPTION = pattern(r".*Error parsing text-format .*GpuTargetConfigProto: (?P<why>.*)")
_STATUS = pattern(r"[A-Z_]+: ")
_LONGEST_NOTE = 1200


class CompilerFailure(PassFailure):
    """A compiler of XLA refused a program, died, or ran out of time."""

    code = "HLO704"


class CompilerTooSlow(CompilerFailure):
    """It ran out of time."""


def explain(ending: Ending, lines: list[str], seconds: float | None) -> HloError:
    """The error for an ending without a result, with the lines of the log."""
    answer = ending.answer or {}
    if "unfit" in answer:
        return HloError(answer["unfit"], code=MISSING_COMPILER)
    if wrong := next(filter(None, map(_NO_DESCRIPTION.match, lines)), None):
        return HloError(f"the description of the GPU cannot be read: {wrong['why']}", code="HLO014")
    if "refused" in answer:
        return _refusal(answer["refused"])
    if ending.is_late:
        return CompilerTooSlow(
            f"XLA did not end within {seconds:g} s{_last_pass(lines)}",
            help="--timeout SECONDS gives it longer",
        )
    if unknown := next(filter(None, map(_UNKNOWN_FLAG.match, lines)), None):
        return HloError(
            f"this XLA does not know {unknown['flags'].replace('--', '')}",
            help="flags come and go with its versions",
            code=UNKNOWN_FLAG,
        )
    if wrong := next(filter(None, map(_WRONG_VALUE.match, lines)), None):
        return HloError(f"'{wrong['value']}' is no value of {wrong['flag']}", code=UNKNOWN_FLAG)
    if any("Flag parsing failed" in line for line in lines):
        return HloError("XLA cannot read the value of a flag", code=UNKNOWN_FLAG)
    return CompilerFailure(f"XLA {_how_it_died(ending, lines)}{_last_pass(lines)}")


def _refusal(message: str) -> CompilerFailure:
    """XLA's status is its own words: the first line is the cause, the rest goes behind it."""
    first, _, rest = message.strip().partition("\n")
    error = CompilerFailure(f"XLA refuses the program: {_STATUS.sub('', first, count=1)}")
    rest = re.sub(r"\s+", " ", rest)[:_LONGEST_NOTE].strip()
    return error.noted(rest or None)


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
