"""The conditions of a compile, from the folder that XLA dumped it to.

    dumped = read_dump("/tmp/dump", "jit_step")
    dumped.keep_accepted(Compiler.named(dumped.target), Path("work"))
    program, flags = Program.read(dumped.module), dumped.texts()

XLA writes flags that have not their defaults (`….debug_options`), for GPUs a description of the
device, and the results of autotuning where there are some.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from hloopt.compilers.compiling import Compiler, Settings, compile_program, read_log
from hloopt.compilers.debug_options import parse_debug_options
from hloopt.compilers.failures import UNKNOWN_FLAGS
from hloopt.compilers.flags import UNKNOWN_FLAG
from hloopt.compilers.programs import Program
from hloopt.diagnostics import HloError, counted
from hloopt.dumps.chain import choose
from hloopt.dumps.folder import Compilation, scan
from hloopt.dumps.names import Phase

RESULTS_FLAG = "xla_gpu_load_autotune_results_from"
_FLAGS, _DESCRIPTION, _RESULTS = (
    *("debug_options", "gpu_target_config.pbtxt"),
    "autotune_results.pbtxt",
)
_CPU = "cpu_after_optimizations"
_RESULT = re.compile(r"^\s*results\s*:?\s*\{", re.M)
_PROBE = "xla_hloopt_asks_what_is_unknown"
"""A flag of no XLA: with it XLA reads all flags, and ends before it compiles."""
_OF_A_DEVICE = ("xla_gpu_autotune_level", "xla_gpu_require_complete_aot_autotune_results")
"""Flags about autotuning on a device, which is not here."""
_OF_A_MACHINE = re.compile(
    r"xla_\w*(?:_path|_dir|_file|_filename|_file_or_directory_path|_from|_to)"
)
"""Names of flags whose values are files and folders."""
_TRIVIAL = "HloModule trivial\n\nENTRY %e () -> f32[] {\n  ROOT %c = f32[] constant(0)\n}\n"


@dataclass(slots=True)
class Dumped:
    """The remains of one compile in a dump."""

    module: str
    """The path of its text before the first pass."""
    target: str | None = None
    """`cpu`, or the path of XLA's description of the device; None where nothing tells."""
    flags: dict[str, str] | None = None
    """Flags that have not their defaults; None where the dump does not tell."""
    left_out: list[str] = field(default_factory=list)
    """Flags that are not for here, each with the reason."""
    results: str | None = None
    """The path of the results of autotuning."""

    def texts(self) -> list[str]:
        """The flags as they are written on command lines."""
        flags = {**(self.flags or {}), **({RESULTS_FLAG: self.results} if self.results else {})}
        return [f"{name}={value}" for name, value in flags.items()]

    def keep_accepted(self, compiler: Compiler, folder: Path) -> None:
        """Leave out the flags that a compiler does not know, or whose values it cannot read."""
        if self.flags:
            self.flags, refused = accepted(self.flags, compiler, folder)
            self.left_out += refused

    def notes(self, *, has_module: bool, has_target: bool) -> Iterator[str]:
        """Sentences about the parts that are taken, and about those that are not there."""
        if has_module:
            yield f"module: {os.path.basename(self.module)}"
        if has_target:
            yield f"target: {os.path.basename(self.target or '')}"
        if self.flags is None:
            yield f"flags: no {_FLAGS} in the dump; XLA's defaults"
        else:
            names = ", ".join(f"{name}={value}" for name, value in self.flags.items())
            yield f"flags: {names or 'none that is not a default'}"
        if self.left_out:
            yield f"flags that were left out: {', '.join(self.left_out)}"
        if self.results is not None:
            yield f"autotuning results: {os.path.basename(self.results)}"
        elif self.target != "cpu":
            yield "autotuning results: none in the dump; kernels may differ"


def read_dump(folder: str, name: str | None) -> Dumped:
    """The conditions of the compile of a module, which needs a name where there are several.

    Raises HloError for a folder without modules, a module that is not there, and one whose text
    before the first pass is not.
    """
    from hloopt.files import read_source

    compilation = _chosen(folder, name)
    first = compilation.first
    if first is None or first.phase is not Phase.BEGIN:
        raise HloError(
            f"{folder}: the dump has no before_optimizations of {compilation.name}",
            help="dump with --xla_dump_hlo_as_text; or give the module as FILE",
        )
    dumped = Dumped(compilation.hlo(first).path)
    dumped.target = _beside(compilation, _DESCRIPTION)
    if dumped.target is None and any(stage.after == _CPU for stage in compilation.stages):
        dumped.target = "cpu"
    path = _beside(compilation, _FLAGS)
    if path is not None:
        flags = parse_debug_options(read_source(path).text)
        dumped.flags, dumped.left_out = _split(flags)
    dumped.results = _results(compilation)
    return dumped


def _chosen(folder: str, name: str | None) -> Compilation:
    compilations = scan([folder]).compilations
    if not compilations:
        raise HloError(f"{folder}: no module was dumped there", code="HLO001")
    if name is not None:
        return choose(compilations, name)
    if len(compilations) == 1:
        return compilations[0]
    largest = max(compilations, key=_size)
    raise HloError(
        f"{folder} has {counted(len(compilations), 'module')}",
        help=f"name one: --module {largest.id}.{largest.name} is the largest, `hloopt dumps` "
        "lists all",
    )


def _size(compilation: Compilation) -> int:
    first = compilation.first
    return 0 if first is None else compilation.hlo(first).size


def _beside(compilation: Compilation, name: str) -> str | None:
    """The path of a file that is about the module."""
    for file in compilation.beside:
        if file.name is not None and file.name.rest.endswith(f".{name}"):
            return file.path
    return None


def _split(flags: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """The flags that make sense here, and those that do not, each with the reason."""
    kept: dict[str, str] = {}
    dropped: list[str] = []
    for name, value in flags.items():
        if "dump" in name:
            continue
        if name in _OF_A_DEVICE:
            dropped.append(f"{name}={value} (there is no device)")
        elif _OF_A_MACHINE.fullmatch(name) and not os.path.exists(value):
            dropped.append(f"{name}={value} (there is no such file here)")
        elif re.search(r"\s", value):
            dropped.append(f"{name} (its value has spaces)")
        else:
            kept[name] = value
    return kept, dropped


def _results(compilation: Compilation) -> str | None:
    """XLA writes a file also where it tuned nothing, which has a version alone; it reads files of
    this machine that are not packed."""
    from hloopt.files import read_source

    path = _beside(compilation, _RESULTS)
    if path is None or not path.endswith(_RESULTS) or not os.path.isfile(path):
        return None
    return os.path.abspath(path) if _RESULT.search(read_source(path).text) else None


def accepted(
    flags: Mapping[str, str], compiler: Compiler, folder: Path
) -> tuple[dict[str, str], list[str]]:
    """The flags that a compiler knows, with values that it reads; and the others, with the reason.

    It is asked once, and where it reads one of the values not, again for each half of them.
    `folder` must be empty.
    """
    places = map(folder.joinpath, map(str, count()))
    unknown: list[str] = []

    def ask(some: Sequence[str]) -> list[str]:
        """The flags among these whose values the compiler cannot read."""
        names = _unknown(some, flags, compiler, next(places)) if some else set()
        if names is not None:
            unknown.extend(name for name in some if name in names)
            return []
        if len(some) == 1:
            return list(some)
        middle = len(some) // 2
        return [*ask(some[:middle]), *ask(some[middle:])]

    unread = ask(list(flags))
    reasons = {
        **dict.fromkeys(unknown, "this XLA does not know it"),
        **dict.fromkeys(unread, "this XLA cannot read the value"),
    }
    dropped = [f"{name}={flags[name]} ({why})" for name, why in reasons.items()]
    return {name: flags[name] for name in flags if name not in reasons}, dropped


def _unknown(
    names: Sequence[str], flags: Mapping[str, str], compiler: Compiler, folder: Path
) -> set[str] | None:
    """The names that a compiler does not know; None where it cannot read a value."""
    from hloopt.text import parse_module

    texts = [f"{name}={flags[name]}" for name in names]
    settings = Settings(flags=[*texts, f"{_PROBE}=1"])
    try:
        compile_program(Program.of(parse_module(_TRIVIAL)), compiler, folder, settings)
    except HloError as error:
        if error.code != UNKNOWN_FLAG:
            raise
    found = next(filter(None, map(UNKNOWN_FLAGS.match, read_log(folder))), None)
    if found is None:
        return None
    return {flag.removeprefix("--").partition("=")[0] for flag in found["flags"].split()}
