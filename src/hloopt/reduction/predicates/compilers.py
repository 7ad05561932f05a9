"""The predicate about XLA's compilers: one refuses a module, or dies of it."""

from __future__ import annotations

import shlex
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from hloopt.diagnostics import HloError, Source
from hloopt.reduction.outcomes import (
    NOT_SHOWN,
    Outcome,
    Verdict,
    kinds_of,
    named_in,
    signature_of,
    unknown,
)
from hloopt.text import parse_module


@dataclass(frozen=True)
class CompilerFails:
    """XLA refuses a module, or dies of it, when it compiles for a target."""

    target: str
    flags: tuple[str, ...] = ()
    plugin: str | None = None
    needs_valid: ClassVar[bool] = True
    starts_processes: ClassVar[bool] = True

    def __call__(self, text: str, steps: int | None = None) -> Outcome:
        """Compile a module. What takes too long is ended from outside."""
        from hloopt.compilers.compiling import Compiler, Settings, compile_program
        from hloopt.compilers.failures import CompilerFailure
        from hloopt.compilers.programs import Program

        try:
            module = parse_module(Source("<module>", text))
            compiler = Compiler.named(self.target, self.plugin)
            with tempfile.TemporaryDirectory(prefix="hloopt-xla-") as folder:
                settings = Settings(flags=self.flags)
                compile_program(Program.of(module), compiler, Path(folder), settings)
        except CompilerFailure as failure:
            signature = signature_of(failure.message, kinds_of(module))
            about = named_in(failure.message)
            return Outcome(Verdict.SHOWN, signature, failure.message, about=about)
        except HloError as error:
            return unknown(error.message)
        return NOT_SHOWN

    def narrowed(self, text: str, outcome: Outcome) -> CompilerFails:
        """The same."""
        return self

    def describe(self) -> str:
        """For a message."""
        return f"XLA fails to compile for {self.target}"

    def command(self, path: str) -> str:
        """`hloopt xla compile`."""
        words = ["hloopt", "xla", "compile", path, "--target", self.target]
        for flag in self.flags:
            words += ["--flag", flag]
        return shlex.join([*words, *(["--plugin", self.plugin] if self.plugin else [])])
