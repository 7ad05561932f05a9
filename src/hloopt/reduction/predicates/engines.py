"""Predicates about what engines make of a module: the interpreter, and XLA under its flags."""

from __future__ import annotations

import shlex
import tempfile
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import ClassVar

from hloopt.diagnostics import HloError, Source
from hloopt.equivalence import Engine
from hloopt.ir.module import Module
from hloopt.reduction.outcomes import NOT_SHOWN, Outcome, Verdict, unknown
from hloopt.text import parse_module
from hloopt.verifier import verify_module


@dataclass(frozen=True)
class DiffersOnXla:
    """Interpreter and XLA:CPU give different results for a module.

    A module that leaves open what `allowed` does not name may differ for a reason of its own: that
    is another failure.
    """

    seeds: int = 3
    allowed: frozenset[str] | None = None
    """The choices that the input leaves to XLA; None allows all: the input itself."""
    needs_valid: ClassVar[bool] = True
    starts_processes: ClassVar[bool] = True  # XLA runs in one

    def __call__(self, text: str, steps: int | None = None) -> Outcome:
        """Run a module by both, on the same random inputs."""
        from hloopt.reduction.predicates.freedoms import freedoms_of
        from hloopt.xla.engine import run_with_xla

        try:
            module = parse_module(Source("<module>", text))
            if problems := verify_module(module):
                return unknown(problems[0].message)
            if self.allowed is not None and (more := freedoms_of(module) - self.allowed):
                return unknown(f"XLA may choose {', '.join(sorted(more))}")
            engines = None, run_with_xla
            reason = _difference(module, engines, ("the interpreter", "XLA"), self.seeds, steps)
        except HloError as error:
            return unknown(error.message)
        if reason is None:
            return NOT_SHOWN
        return Outcome(Verdict.SHOWN, "values differ", reason)

    def narrowed(self, text: str, outcome: Outcome) -> DiffersOnXla:
        """Of modules that leave open no more than the input."""
        from hloopt.reduction.predicates.freedoms import freedoms_of

        return replace(self, allowed=freedoms_of(parse_module(Source("<module>", text))))

    def describe(self) -> str:
        """For a message."""
        return "interpreter and XLA:CPU give different results"

    def command(self, path: str) -> str:
        """`hloopt reduce --check`."""
        return f"hloopt reduce {shlex.quote(path)} --differs-on xla --check"


@dataclass(frozen=True)
class FlagsDiffer:
    """A module computes something else where XLA compiles it under other flags.

    XLA:CPU runs what it makes. What XLA:GPU makes is run by the interpreter, for which it must know
    all calls in it.
    """

    first: tuple[str, ...]
    second: tuple[str, ...]
    target: str = "cpu"
    plugin: str | None = None
    seeds: int = 3
    allowed: frozenset[str] | None = None
    """As that of `DiffersOnXla`, for XLA:CPU."""
    needs_valid: ClassVar[bool] = True
    starts_processes: ClassVar[bool] = True

    def __call__(self, text: str, steps: int | None = None) -> Outcome:
        """Compile a module under both, and run what that makes on the same random inputs."""
        from hloopt.reduction.predicates.freedoms import freedoms_of

        try:
            module = parse_module(Source("<module>", text))
            if problems := verify_module(module):
                return unknown(problems[0].message)
            if self.target != "cpu":
                return self._on_interpreter(module, steps)
            if self.allowed is not None and (more := freedoms_of(module) - self.allowed):
                return unknown(f"XLA may choose {', '.join(sorted(more))}")
            reason = self._on_cpu(module, steps)
        except HloError as error:
            return unknown(error.message)
        return NOT_SHOWN if reason is None else Outcome(Verdict.SHOWN, "values differ", reason)

    def _on_cpu(self, module: Module, steps: int | None) -> str | None:
        from hloopt.compilers.flags import Flags
        from hloopt.xla.engine import run_with_xla

        texts = [Flags.of(flags).text() for flags in (self.first, self.second)]
        engines = tuple(partial(run_with_xla, flags=text) for text in texts)
        names = tuple(f"XLA under {text or 'its defaults'}" for text in texts)
        return _difference(module, engines, names, self.seeds, steps)

    def _on_interpreter(self, module: Module, steps: int | None) -> Outcome:
        from hloopt.equivalence import Reference, RunSettings

        settings = RunSettings(self.seeds, specials=False, steps=steps, stand_ins=False)
        first, second = (self._optimized(module, flags) for flags in (self.first, self.second))
        not_compared = f"what XLA made for {self.target} cannot be compared: "
        try:
            mismatch = Reference(first, settings).compare(second, "precision")
        except HloError as error:
            return unknown(f"{not_compared}{error.message}")
        if mismatch is None:
            return NOT_SHOWN
        if not mismatch.is_decided:
            return unknown(f"{not_compared}{mismatch.reason}")
        return Outcome(Verdict.SHOWN, "values differ", mismatch.reason)

    def _optimized(self, module: Module, flags: tuple[str, ...]) -> Module:
        """The module behind the last pass of XLA."""
        from hloopt.compilers.compiling import Compiler, Settings, compile_program
        from hloopt.compilers.flags import with_large_constants
        from hloopt.compilers.programs import Program
        from hloopt.compilers.stages import files_of
        from hloopt.files import load

        settings = Settings(flags=with_large_constants(flags), until_buffers=True)
        with tempfile.TemporaryDirectory(prefix="hloopt-xla-") as folder:
            compiler = Compiler.named(self.target, self.plugin)
            compiled = compile_program(Program.of(module), compiler, Path(folder), settings)
            return load(str(files_of("hlo", compiled.dumps)[0]))

    def narrowed(self, text: str, outcome: Outcome) -> FlagsDiffer:
        """Of modules that leave open no more than the input."""
        from hloopt.reduction.predicates.freedoms import freedoms_of

        return replace(self, allowed=freedoms_of(parse_module(Source("<module>", text))))

    def describe(self) -> str:
        """For a message."""
        return f"XLA's results for {self.target} differ under the flags {self._quoted()}"

    def command(self, path: str) -> str:
        """`hloopt reduce --check`."""
        target = "" if self.target == "cpu" else f" --target {shlex.quote(self.target)}"
        plugin = "" if self.plugin is None else f" --plugin {shlex.quote(self.plugin)}"
        return (
            f"hloopt reduce {shlex.quote(path)} --xla-flags-differ {self._quoted()}"
            f"{target}{plugin} --check"
        )

    def _quoted(self) -> str:
        """Both as the option takes them."""
        return " ".join(shlex.quote(shlex.join(flags)) for flags in (self.first, self.second))


def _difference(
    module: Module,
    engines: tuple[Engine | None, ...],
    names: tuple[str, ...],
    seeds: int,
    steps: int | None,
) -> str | None:
    """The first difference between two engines; None is the interpreter. Raises RunError where
    either cannot run the module."""
    from hloopt.equivalence import RunSettings
    from hloopt.equivalence.agreement import first_difference
    from hloopt.equivalence.roles import roles_of
    from hloopt.interpreter.exactness import only_moves_data

    runs = [RunSettings(seeds=seeds, steps=steps, engine=engine) for engine in engines]
    settings = runs[0]
    placement = settings.place(module)
    plans = placement.plans(roles_of(placement.program))
    is_exact = only_moves_data(module)
    for seed in range(seeds):
        arguments = settings.arguments(placement, seed, plans)
        results = [run.run(placement, arguments, host=run.host(seed)) for run in runs]
        for device, values in enumerate(zip(*results, strict=True)):
            found = first_difference(*values, exact=is_exact)
            if found is not None:
                place = f"{{{','.join(map(str, found.leaf))}}}"
                return (
                    f"output {place} on device {device} (seed {seed}): {names[0]} gives "
                    f"{found.left}, {names[1]} {found.right}"
                )
    return None
