"""One of XLA's passes alone: the others are switched off by name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hloopt.compilers.compiling import Compiler, Settings, compile_program
from hloopt.compilers.failures import CompilerFailure, CompilerTooSlow
from hloopt.compilers.flags import Flags
from hloopt.compilers.log import passes_of
from hloopt.compilers.programs import Program
from hloopt.diagnostics import HloError, did_you_mean
from hloopt.dumps.folder import scan
from hloopt.dumps.names import Phase


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a pass, at one of its places."""

    pipeline: str
    before: str
    """HLO text."""
    after: str

    @property
    def is_changed(self) -> bool:
        return self.before != self.after


def isolate(
    program: Program, name: str, compiler: Compiler, folder: Path, settings: Settings
) -> list[Run]:
    """The runs of a pass of XLA on a program, which no other pass has changed before the first.

    A pass that the compiler has at several places runs at each, with the options it has there. A
    pipeline that is a pass runs whole. Two compiles. Raises HloError for a pass that this compiler
    does not run on the program, and CompilerFailure where the compiler fails before it.
    """
    parts = _parts(name, program, compiler, folder / "all", settings)
    kept = _with_parts(name, parts)
    others = [each for each in parts if each not in kept and not parts[each]]
    flags = Flags.of(settings.flags)
    flags.append("xla_disable_hlo_passes", ",".join(_without_spaces(others)))
    alone = replace(
        settings, flags=flags.texts(), until_buffers=True, passes=f"^{re.escape(name)}$"
    )
    failure: CompilerFailure | None = None
    try:
        compile_program(program, compiler, folder / "alone", alone)
    except CompilerTooSlow:
        raise
    except CompilerFailure as error:
        # What one pass alone leaves can seldom be made code of: that comes behind all passes.
        failure = error
    if found := _runs(folder / "alone" / "dumps", name):
        return found
    raise failure or HloError(
        f"XLA writes no dumps around '{name}'",
        help="it is a pipeline that is no pass of another: name one of its passes",
        code="HLO021",
    )


def _parts(
    name: str, program: Program, compiler: Compiler, folder: Path, settings: Settings
) -> dict[str, set[str]]:
    """The passes of a whole compile, which has that of the name; it may fail behind them.

    Raises HloError where it has not, and CompilerFailure where it failed before.
    """
    failure: CompilerFailure | None = None
    try:
        compile_program(program, compiler, folder, replace(settings, until_buffers=True))
    except CompilerFailure as error:
        failure = error
    log = (folder / "log.txt").read_text(encoding="utf-8", errors="replace")
    parts = passes_of(log.splitlines())
    if name in parts and not isinstance(failure, CompilerTooSlow):
        return parts
    if failure is not None:
        raise failure
    hint = did_you_mean(name, parts) or "`hloopt xla passes --all` lists those that run"
    raise HloError(
        f"XLA does not run a pass '{name}' on this program for {compiler.target}",
        help=hint,
        code="HLO021",
    )


def _with_parts(name: str, parts: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = [name]
    while waiting:
        if (each := waiting.pop()) not in found:
            found.add(each)
            waiting += parts.get(each, ())
    return found


def _without_spaces(names: Sequence[str]) -> list[str]:
    """Names that a flag can have: those of pipelines may have spaces, and are none of passes."""
    return [name for name in names if not re.search(r"[\s,]", name)]


def _runs(dumps: Path, name: str) -> list[Run]:
    """The dumps behind the pass, each with the one before it of the same pipeline."""
    found: list[Run] = []
    for compilation in scan([str(dumps)]).compilations:
        last: dict[str, str] = {}
        for stage in compilation.chain():
            if stage.phase is Phase.PASSES:
                pipeline = stage.pipeline or ""
                text = Path(compilation.hlo(stage).path).read_text(encoding="utf-8")
                if stage.after == name and pipeline in last:
                    found.append(Run(pipeline, last[pipeline], text))
                last[pipeline] = text
    return found
