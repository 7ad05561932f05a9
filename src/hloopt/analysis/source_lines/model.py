"""The origin of an instruction in the program, and what tells it."""

from __future__ import annotations

from enum import StrEnum

from hloopt.ir.sources.stacks import Frame, Stack


class Basis(StrEnum):
    """The source of an instruction's line."""

    METADATA = "metadata"
    """Its own metadata."""
    CALLEE = "callee"
    """The root of the computation it runs."""
    CALLER = "caller"
    """The instruction that calls its computation."""
    OPERAND = "operand"
    """Its operands."""
    USER = "user"
    """Its users."""
    ARGUMENT = "argument"
    """None: it is an argument of the program, or moves one."""
    MISSING = "missing"
    """None: its metadata refers to a stack frame that the module does not have."""
    NONE = "none"
    """None: nothing tells it."""


class SourceLine:
    """The origin of an instruction in the program, compared by identity."""

    __slots__ = ("argument", "basis", "is_callers", "stack")

    def __init__(
        self,
        basis: Basis,
        stack: Stack | None = None,
        *,
        argument: str = "",
        is_callers: bool = False,
    ) -> None:
        self.basis = basis
        self.stack = stack
        """None of arguments, and where nothing tells."""
        self.argument = argument
        """The name of the argument, where it is one."""
        self.is_callers = is_callers
        """Whether another caller of the computation would give another line."""

    @property
    def frame(self) -> Frame | None:
        """The user's line: the innermost that is not in a library, if there is one."""
        return self.stack.user_frame if self.stack else None

    @property
    def label(self) -> str:
        """`model.py:12`, `(argument) params['w']`, or nothing."""
        if self.stack is not None:
            return self.stack.user_frame.text
        return f"(argument) {self.argument}" if self.argument else ""


NOWHERE = SourceLine(Basis.NONE)
LOST = SourceLine(Basis.MISSING)
