"""Errors with the instruction they are about, and where that stands."""

from __future__ import annotations

import re
from collections.abc import Iterable

from hloopt.diagnostics import HloError, HloVerifyError, Span
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module


class InstructionError(HloVerifyError):
    """A broken rule, with the instruction that breaks it."""

    def __init__(
        self,
        instruction: Instruction,
        message: str,
        *,
        span: Span | None = None,
        help: str | None = None,
        code: str | None = None,
    ) -> None:
        place = instruction.parent.module.place_of(instruction)
        super().__init__(f"{place}: {message}", span=span, help=help, code=code)
        self.instruction = instruction

    def __reduce__(self) -> tuple[object, ...]:  # without the module
        return _rebuild, (self.message, self.span, self.help, self.code)


def _rebuild(message: str, span: Span | None, help: str | None, code: str | None) -> HloVerifyError:
    return HloVerifyError(message, span=span, help=help, code=code)


def broken(instruction: Instruction, message: str, code: str | None = None) -> InstructionError:
    """The error that `instruction` breaks a rule, in the words of `message`."""
    return InstructionError(instruction, message, span=_span(instruction), code=code)


def placed(error: HloError, instruction: Instruction) -> HloVerifyError:
    """`error` with the instruction's name and place."""
    span = error.span or _span(instruction)
    return InstructionError(instruction, error.message, span=span, help=error.help, code=error.code)


def _span(instruction: Instruction) -> Span | None:
    """The place of `instruction`; one that an `X-start` stands for is where that is."""
    parent = instruction.parent
    if parent.is_sugar and parent.callers:
        instruction = next(iter(parent.callers))
    return instruction.parent.module.span_of(instruction)


def show_index(index: Iterable[int]) -> str:
    """A shape index as messages show it: `{0,1}`."""
    return "{" + ",".join(map(str, index)) + "}"


def header_span(module: Module, name: str) -> Span | None:
    """The span of the attribute `name` in the module's header."""
    if module.source is None:
        return None
    match = re.search(rf"\b{name}\b", module.source.text)
    return Span(module.source, match.start(), match.end()) if match else None
