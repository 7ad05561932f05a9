"""One of XLA's passes alone: the others are switched off by name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hloopt.compilers.compiling import Compiler, Settings, compile_program
from hloopt.compilers.failures import CompilerFailure
from hloopt.compilers.programs import Program
from hloopt.diagnostics import HloError, did_you_mean
from hloopt.dumps.folder import scan
from hloopt.dumps.names import Phase
from hloopt.patterns import pattern

_BEGUN = pattern(r".*hlo_pass_pipeline\.cc:\d+\] +HLO pass (?P<name>\S.*?)\s*$")
_RUNNING = pattern(r".*hlo_pass_pipeline\.cc:\d+\] +Running HLO pass pipeline on .*?: (?P<name>.+)")


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
    first = Settings(flags=settings.flags, seconds=settings.seconds, until_buffers=True)
    log = _log(program, compiler, folder / "all", first)
    parts = _parts(log)
    if name not in parts:
        hint = did_you_mean(name, parts) or "`hloopt xla passes --all` lists those that run"
        raise HloError(
            f"XLA does not run a pass '{name}' on this program for {compiler.target}",
            help=hint,
            code="HLO021",
        )
    kept = _with_parts(name, parts)
    others = [each for each in parts if each not in kept and not parts[each]]
    flags = [*settings.flags, f"xla_disable_hlo_passes={','.join(_without_spaces(others))}"]
    alone = Settings(
        flags=flags,
        seconds=settings.seconds,
        until_buffers=True,
        passes=f"^{re.escape(name)}$",
    )
    where = folder / "alone"
    try:
        compile_program(program, compiler, where, alone)
    except CompilerFailure:
        # What one pass alone leaves can seldom be made code of: that comes behind all passes.
        if not (found := _runs(where / "dumps", name)):
            raise
        return found
    return _runs(where / "dumps", name)


def _log(program: Program, compiler: Compiler, folder: Path, settings: Settings) -> list[str]:
    """The log of a compile, which may fail behind the passes."""
    try:
        compile_program(program, compiler, folder, settings)
    except CompilerFailure:
        if not (folder / "log.txt").exists():
            raise
    text = (folder / "log.txt").read_text(encoding="utf-8", errors="replace")
    return text.splitlines()


def _parts(log: Sequence[str]) -> dict[str, set[str]]:
    """The passes that ran, each with its own if it is a pipeline; pipelines of none, too."""
    parts: dict[str, set[str]] = {}
    pipeline = ""
    for line in log:
        if match := _RUNNING.match(line):
            pipeline = match["name"]
            parts.setdefault(pipeline, set())
        elif match := _BEGUN.match(line):
            parts.setdefault(match["name"], set())
            parts.setdefault(pipeline, set()).add(match["name"])
    return parts


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
