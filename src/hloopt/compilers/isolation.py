"""Passes of XLA alone: the others are switched off by name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hloopt.compilers.compiling import Compiler, Settings, compile_program, read_log
from hloopt.compilers.failures import CompilerFailure, CompilerTooSlow
from hloopt.compilers.flags import Flags
from hloopt.compilers.log import last_pass, passes_of
from hloopt.compilers.programs import Program
from hloopt.diagnostics import HloError, did_you_mean
from hloopt.dumps.folder import scan
from hloopt.dumps.logs import in_file_name
from hloopt.dumps.names import Phase

NO_PASS = "HLO021"
"""The code of an error about a pass that XLA does not run, or not alone."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a pass, at one of its places."""

    name: str
    """The pass, as names of files have it; as they have the pipeline, too."""
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
    does not run on the program, or not alone, and CompilerFailure where a whole compile fails
    before it, or the pass does.
    """
    return isolate_together(program, [name], compiler, folder, settings)


def isolate_together(
    program: Program, names: Sequence[str], compiler: Compiler, folder: Path, settings: Settings
) -> list[Run]:
    """As `isolate`, the runs of several passes, one behind the other in XLA's order."""
    parts = pipelines_of(program, compiler, folder / "all", settings, until=names)
    names = [_as_written(name, parts) for name in names]
    for name in names:
        if name not in passes_in(parts):
            raise _no_pass(name, parts, compiler.target)
    found, failure = run_alone(names, parts, program, compiler, folder / "alone", settings)
    reached = {run.name for run in found}
    name = next((each for each in names if in_file_name(each) not in reached), "")
    if not name:
        return found
    if failure is None:
        raise HloError(
            f"XLA does not come to '{name}' with its other passes switched off",
            help=_where_listed(compiler.target),
            code=NO_PASS,
        )
    if last_pass(read_log(folder / "alone")) == name:
        failure.help = "passes that it needs before it are switched off"
        raise failure
    raise HloError(
        f"'{name}' cannot run alone on this program, XLA fails before it: {failure.message}",
        help=_where_listed(compiler.target),
        code=NO_PASS,
    ).noted(failure.note)


def run_alone(
    names: Sequence[str],
    parts: Mapping[str, set[str]],
    program: Program,
    compiler: Compiler,
    folder: Path,
    settings: Settings,
) -> tuple[list[Run], CompilerFailure | None]:
    """The runs of passes of `pipelines_of`, and how the compile failed, which it may behind the
    last of them. Raises CompilerTooSlow."""
    kept = set[str]().union(*(_with_parts(name, parts) for name in names))
    others = [each for each in parts if each not in kept and not parts[each]]
    flags = Flags.of(settings.flags)
    flags.append("xla_disable_hlo_passes", ",".join(_without_spaces(others)))
    around = "|".join(f"^{re.escape(name)}$" for name in names)
    alone = replace(settings, flags=flags.texts(), until_buffers=True, passes=around)
    failure: CompilerFailure | None = None
    try:
        compile_program(program, compiler, folder, alone)
    except CompilerTooSlow:
        raise
    except CompilerFailure as error:
        # What one pass alone leaves can seldom be made code of: that comes behind all passes.
        failure = error
    return _runs(folder / "dumps", [*map(in_file_name, names)]), failure


def pipelines_of(
    program: Program, compiler: Compiler, folder: Path, settings: Settings, until: Sequence[str]
) -> dict[str, set[str]]:
    """The passes and pipelines of a whole compile, as `passes_of` has them; it may fail behind
    the passes `until`. Raises CompilerFailure where it failed before them, or `until` is empty."""
    failure: CompilerFailure | None = None
    try:
        compile_program(program, compiler, folder, replace(settings, until_buffers=True))
    except CompilerFailure as error:
        failure = error
    parts = passes_of(read_log(folder))
    is_enough = bool(until) and all(_as_written(name, parts) in parts for name in until)
    if failure is None or (is_enough and not isinstance(failure, CompilerTooSlow)):
        return parts
    raise failure


def _as_written(name: str, parts: Mapping[str, set[str]]) -> str:
    """The name of a pass or pipeline, which may have blanks, from that in names of files."""
    written = {in_file_name(each): each for each in parts}
    return written.get(in_file_name(name), name)


def passes_in(parts: Mapping[str, set[str]]) -> set[str]:
    """Names of passes, and of pipelines that are passes of others."""
    return set().union(*parts.values())


def _no_pass(name: str, parts: Mapping[str, set[str]], target: str) -> HloError:
    if name in parts:
        message = f"'{name}' is a pipeline of XLA that is no pass of another"
        help = f"name one of its passes: {', '.join(sorted(parts[name]))}"
        return HloError(message, help=help, code=NO_PASS)
    message = f"XLA does not run a pass '{name}' on this program for {target}"
    near = did_you_mean(name, passes_in(parts))
    return HloError(message, help=near or _where_listed(target), code=NO_PASS)


def _where_listed(target: str) -> str:
    return (
        f"`hloopt xla passes FILE --target {target} --all` lists the passes that run on a program, "
        "docs/xla_isolation.md those that run alone"
    )


def _with_parts(name: str, parts: Mapping[str, set[str]]) -> set[str]:
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


def _runs(dumps: Path, names: Sequence[str]) -> list[Run]:
    """The dumps behind passes, each with the one before it of the same pipeline. `names` are those
    in names of files."""
    found: list[Run] = []
    for compilation in scan([str(dumps)]).compilations:
        last: dict[str, str] = {}
        for stage in compilation.chain():
            if stage.phase is Phase.PASSES:
                pipeline = stage.pipeline or ""
                text = Path(compilation.hlo(stage).path).read_text(encoding="utf-8")
                if stage.after in names and pipeline in last:
                    found.append(Run(stage.after, pipeline, last[pipeline], text))
                last[pipeline] = text
    return found
