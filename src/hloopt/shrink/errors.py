"""Errors for modules that cannot be shrunk."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

from hloopt.diagnostics import HloError
from hloopt.interpreter.errors import RunError, cannot_run
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.verifier import ANY_TARGET, verify_module

_CODE = "HLO507"
_MALFORMED = (
    *(ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError),
    HloError,
)


class explaining:  # noqa: N801  # used as a statement
    """Turns what is raised at a malformed instruction into a RunError (HLO507) with its place."""

    __slots__ = ("_instruction",)

    def __init__(self, instruction: Instruction) -> None:
        self._instruction = instruction

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if isinstance(error, _MALFORMED) and not isinstance(error, RunError):
            raise _cannot_shrink(self._instruction, error) from error


def _cannot_shrink(instruction: Instruction, error: Exception) -> RunError:
    module = instruction.parent.module
    what = error.message if isinstance(error, HloError) else f"{type(error).__name__}: {error}"
    return first_problem(module) or cannot_run(instruction, f"cannot be shrunk: {what}", _CODE)


def first_problem(module: Module) -> RunError | None:
    """The verifier's errors for a module. O(instructions)."""
    for problem in verify_module(module, ANY_TARGET):
        message = f"cannot shrink {module.name}: {problem.message}"
        return RunError(message, span=problem.span, help=problem.help, code=_CODE)
    return None


@contextmanager
def not_too_deep() -> Iterator[None]:
    """Turns the end of Python's stack into a RunError (HLO507)."""
    try:
        yield
    except RecursionError:
        raise RunError("cannot shrink: calls or tuples are nested too deeply", code=_CODE) from None
