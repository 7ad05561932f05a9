"""Compile a program with XLA for a target, and keep what the compiler leaves behind.

    compiler = Compiler.named("h100_sxm")
    program = Program.read("step.hlo")
    compiled = compile_program(program, compiler, folder, Settings(passes=".*"))
    compiled.memory["temp"], compiled.dumps

No autotuning is done, which needs a device, and flags are those that are given here: XLA_FLAGS of
the environment is not read. So kernels and times may differ from those of a user's compile.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from hloopt.compilers.child import run_child
from hloopt.compilers.failures import Attempt, explain
from hloopt.compilers.flags import Flags
from hloopt.compilers.gpu_description import (
    check_description,
    describe_gpu,
    without_unknown_field,
)
from hloopt.compilers.plugins import check_jaxlib, find_plugin, library_of, version_of
from hloopt.compilers.programs import Program

FLAGS = "flags.txt"
"""The file of a compile with the flags that XLA got."""
_LOG = "log.txt"
_PER_HOST = 8
REPORTS = "*-memory-usage-report.txt"
"""The name of the report on memory, the last file that is written before code is generated."""
_LOGGED = {"TF_CPP_MIN_LOG_LEVEL": "0", "TF_CPP_VMODULE": "hlo_pass_pipeline=1"}
_MEMORY_SIZE = re.compile(r"\bdevice_memory_size\s*:\s*(\d+)")
_FREE = re.compile(r"TF_(?:CPP|XLA)_\w*|XLA_FLAGS|JAX_\w*|TEST_TMPDIR")
"""Variables of the environment that a compile must not depend on."""


class Compiler(NamedTuple):
    """A compiler, and the device that it compiles for."""

    target: str
    """Its name in reports."""
    plugin: str | None = None
    """The library; None for XLA:CPU of jaxlib."""
    description: str = ""
    """The device, as XLA:GPU is told."""

    @property
    def memory_size(self) -> int:
        """Bytes of memory of the device, for XLA:CPU of this machine; 0 where nobody knows."""
        if self.plugin is None:
            return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        found = _MEMORY_SIZE.search(self.description)
        return int(found[1]) if found else 0

    @classmethod
    def named(cls, target: str, plugin: str | None = None) -> Compiler:
        """The compiler for a target: `cpu`, a name, a description of a target, `FILE.yaml`, or one
        of XLA, `FILE.txtpb`. Raises HloError where it is not installed, or does not know that."""
        from hloopt.files import read_source
        from hloopt.targets import load_target

        if target == "cpu":
            check_jaxlib()
            return cls(target)
        if target.endswith((".txtpb", ".textproto", ".pbtxt")):
            description = read_source(target).text
            check_description(description, target)
            return cls(os.path.basename(target), find_plugin(plugin), description)
        found = load_target(target)
        return cls(found.name, find_plugin(plugin), describe_gpu(found))


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The demands on a compiler beside the program."""

    flags: Sequence[str] = ()
    """XLA's, `xla_NAME=VALUE`."""
    passes: str | None = None
    """A regular expression: dumps are written around passes of such names."""
    seconds: float | None = None
    """The time limit."""
    until_buffers: bool = False
    """Stop before code is generated: all passes have run, and buffers are assigned."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """The remains of a compile."""

    dumps: Path
    """The folder, as of `--xla_dump_to`."""
    log: Path
    memory: Mapping[str, int] | None
    """XLA's CompiledMemoryStats in bytes; None where no code was generated."""
    seconds: float | None
    """The time of the compile, with logging and dumps; None where it was stopped."""
    target: str
    version: str
    """The compiler with its version."""
    memory_size: int
    """Bytes of memory of the device; 0 where nobody knows."""
    left_out: Sequence[str] = ()
    """Fields of the description of the device that this compiler does not know."""


def compile_program(
    program: Program, compiler: Compiler, folder: Path, settings: Settings
) -> Compiled:
    """Compile, with dumps and log in `folder`, which must be empty.

    Fields of a description that this XLA does not know yet are left out. Raises HloError for a flag
    that it does not know, and CompilerFailure where the compiler refuses the program, dies, or runs
    out of time.
    """
    dumps, log, answer = folder / "dumps", folder / _LOG, folder / "answer.json"
    dumps.mkdir(parents=True)
    flags = _flags(program, compiler, dumps, settings)
    (folder / FLAGS).write_text(flags.text(), encoding="utf-8")
    is_enough = _Report(dumps).is_whole if settings.until_buffers else _never
    left_out: list[str] = []
    while True:
        job = _write_job(program, compiler, folder)
        ending = run_child(
            f"hloopt.compilers.{'cpu_child' if compiler.plugin is None else 'plugin_child'}",
            *(job, answer, log, _environment(flags, folder), settings.seconds, is_enough),
        )
        ok = (ending.answer or {}).get("ok")
        version = version_of(compiler.plugin)
        own = compiler.target, version, compiler.memory_size, left_out
        if ok is not None:
            return Compiled(dumps, log, ok["memory"], ok["seconds"], *own)
        if ending.answer is None and not ending.is_late and is_enough():
            return Compiled(dumps, log, None, None, *own)
        lines = read_log(folder)
        fewer = without_unknown_field(compiler.description, "\n".join(lines))
        if fewer is None:
            library = library_of(compiler.plugin)
            attempt = Attempt(program, settings.flags, settings.seconds, library)
            raise explain(ending, lines, attempt)
        compiler = compiler._replace(description=fewer[0])
        left_out.append(fewer[1])


def _flags(program: Program, compiler: Compiler, dumps: Path, settings: Settings) -> Flags:
    flags = Flags.of(settings.flags)
    flags.set("xla_dump_to", str(dumps))
    flags.set("xla_dump_hlo_as_text", "true")
    if settings.passes is not None:
        flags.set("xla_dump_hlo_pass_re", settings.passes)
    if compiler.plugin is not None:
        flags.set_default("xla_gpu_autotune_level", "0")
    if program.is_partitioned and "xla_enable_hlo_passes_only" not in flags:
        flags.append("xla_disable_hlo_passes", "spmd-partitioner")
    return flags


def read_log(folder: Path) -> list[str]:
    """The lines that a compile in a folder logged."""
    return (folder / _LOG).read_text(encoding="utf-8", errors="replace").splitlines()


def _write_job(program: Program, compiler: Compiler, folder: Path) -> Path:
    is_cpu = compiler.plugin is None
    code = program.code_for_jaxlib() if is_cpu else program.code()
    (folder / "program").write_bytes(code)
    (folder / "options").write_bytes(program.compile_options())
    count = program.replicas * program.partitions
    hosts = 1 if count % _PER_HOST else count // _PER_HOST
    topology = f"{hosts}x{count // hosts}x1"
    job = folder / "job.json"
    content = {
        "plugin": compiler.plugin,
        "platform": "gpu",
        "topology": {"target_config": compiler.description, "topology": topology},
        "program": str(folder / "program"),
        "format": program.form,
        "options": str(folder / "options"),
        "replicas": program.replicas,
        "partitions": program.partitions,
        "shardy": program.uses_shardy,
        "answer": str(folder / "answer.json"),
        "parent": os.getpid(),
    }
    job.write_text(json.dumps(content), encoding="utf-8")
    return job


def _environment(flags: Flags, folder: Path) -> dict[str, str]:
    """For a compile that is ended early, XLA's temporary files are in the folder, too."""
    kept = {name: value for name, value in os.environ.items() if not _FREE.fullmatch(name)}
    own = {"TMPDIR": str(folder), "JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags.text()}
    return {**kept, **_LOGGED, **own}


class _Report:
    """The report that is written last: whole once it did not grow between two looks."""

    def __init__(self, dumps: Path) -> None:
        self._dumps = dumps
        self._size = 0

    def is_whole(self) -> bool:
        """Look once more."""
        before = self._size
        self._size = sum(path.stat().st_size for path in self._dumps.glob(REPORTS))
        return self._size == before > 0


def _never() -> bool:
    return False


def check_flags(flags: Sequence[str]) -> None:
    """Raise HloError for a text that is no flag of XLA, whether XLA knows it or not."""
    Flags.of(flags)
