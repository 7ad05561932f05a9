"""The names that XLA gives the files of a dump.

[TIMESTAMP.]module_0014.jit_step.before_optimizations.txt
module_0014.jit_step.0006.spmd-cleanup.after_dce.before_tuple-simplifier.hlo.pb
module_0014.jit_step.sm_9.0a_gpu_after_optimizations-buffer-assignment.txt
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import total_ordering

from hloopt.files import unpacked_name
from hloopt.patterns import pattern


class FileKind(Enum):
    """The content of a file of a dump, by its name."""

    TEXT = "HLO text"
    PROTO = "HLO proto"
    GRAPH = "graph"
    BUFFERS = "buffer assignment"
    MEMORY = "memory report"
    THUNKS = "thunks"
    OPTIONS = "options"
    TUNING = "autotuning"
    MLIR = "MLIR"
    CODE = "code"
    LOG = "log"
    OTHER = "other"


HLO = frozenset((FileKind.TEXT, FileKind.PROTO))


class Phase(Enum):
    """The part of a compilation that a stage is of, in the order of time."""

    BEGIN = 0
    """`before_optimizations`."""
    PASSES = 1
    """Between two passes: numbered."""
    NAMED = 2
    """Another stage with a name of its own, at a place that the name does not tell."""
    END = 3
    """`after_optimizations`."""


@total_ordering
@dataclass(frozen=True, slots=True)
class Stage:
    """A moment at which XLA dumps a module; stages of one module are in the order of time."""

    phase: Phase
    number: int
    """Of a dump between passes; XLA numbers those it writes for a module. 0 for others."""
    pipeline: str
    after: str
    """The pass that has run, or `pipeline-start`; of other phases the name of the stage."""
    before: str
    """The pass that is to run; empty where the dump is made within one."""

    def __lt__(self, other: Stage) -> bool:
        return self._key() < other._key()

    def _key(self) -> tuple[int, int, str]:
        return self.phase.value, self.number, self.after

    @property
    def label(self) -> str:
        """The stage as XLA writes it, without its number."""
        if self.phase is not Phase.PASSES:
            return self.after
        before = f".before_{self.before}" if self.before else ""
        return f"{self.pipeline}.after_{self.after}{before}"

    @property
    def maker(self) -> str:
        """The pass behind which the stage is, with its pipeline: `spmd-cleanup: dce`.

        At the beginning of a pipeline that is what ran before it.
        """
        if self.phase is not Phase.PASSES:
            return self.after
        if self.after == PIPELINE_START:
            return f"{self.pipeline}: before its first pass"
        return f"{self.pipeline}: {self.after}"


PIPELINE_START = "pipeline-start"


@dataclass(frozen=True, slots=True)
class FileName:
    """A name of a file, taken apart."""

    kind: FileKind
    timestamp: str
    id: int
    module: str | None
    """None where only the names of other files tell where that of the module ends."""
    stage: Stage | None
    rest: str
    """All behind the number of the module, with the suffix."""


_FILE = pattern(r"(?:(?P<timestamp>\d{9,})\.)?module_(?P<id>\d+)(?:\.(?P<rest>.*))?")
_PASSES = pattern(
    r"(?:(?P<module>.*)\.)?(?P<number>\d{4,})\.(?P<pipeline>.+?)\."
    r"after_(?P<after>.+?)(?:\.before_(?P<before>.+))?"
)
_NAMED = pattern(
    r"(?:(?P<module>.*?)\.)?"
    r"(?P<stage>(?:sm_\d+\.\d+\w*_gpu_|[a-z0-9]+_gpu_|[a-z0-9]+_)?(?:before|after)_\w+)"
)
_REPORT = pattern(
    r"(?P<stage>.*)-(?:(?P<buffers>buffer-assignment|buffer-assignment-values|live-range)"
    r"|memory-usage-report)"
)
_GRAPH_OF_PART = pattern(r"(?P<stage>.*)\.top_level")
_BEGIN = "before_optimizations"
_END = "after_optimizations"

_SUFFIXES: dict[str, FileKind] = {
    **dict.fromkeys((".hlo.pb", ".hlo.pbtxt"), FileKind.PROTO),
    ".hlo": FileKind.TEXT,
    ".txt": FileKind.TEXT,
    **dict.fromkeys((".dot", ".html", ".svg"), FileKind.GRAPH),
    **dict.fromkeys((".mlir", ".mlirbc"), FileKind.MLIR),
    **dict.fromkeys(
        (".ll", ".ptx", ".o", ".s", ".bc", ".cubin", ".hsaco", ".asm", ".cu", ".obj"),
        FileKind.CODE,
    ),
    ".log": FileKind.LOG,
}
"""Kinds by suffix; of HLO and of files without a suffix the rest of the name has a say."""
_DECISIVE = frozenset(
    suffix
    for suffix, kind in _SUFFIXES.items()
    if kind in (FileKind.MLIR, FileKind.CODE, FileKind.LOG, FileKind.GRAPH)
)
_PARTS: tuple[tuple[str, FileKind], ...] = (
    ("thunk", FileKind.THUNKS),
    ("autotun", FileKind.TUNING),
    ("debug_options", FileKind.OPTIONS),
    ("compile_options", FileKind.OPTIONS),
    ("execution_options", FileKind.OPTIONS),
    ("target_config", FileKind.OPTIONS),
    ("target_arguments", FileKind.OPTIONS),
    ("comp_env", FileKind.OPTIONS),
    ("topology", FileKind.OPTIONS),
    ("flagfile", FileKind.OPTIONS),
    ("config", FileKind.OPTIONS),
    ("priority_fusion", FileKind.LOG),
    ("-buffer-assignment", FileKind.BUFFERS),
    ("-live-range", FileKind.BUFFERS),
    ("-memory-usage-report", FileKind.MEMORY),
)
"""Kinds by what the last part of a name contains, the first that applies."""


def parse_name(name: str) -> FileName | None:
    """Take the name of a file apart, packed or not; None if it does not begin as XLA's do."""
    match = _FILE.fullmatch(unpacked_name(name))
    if match is None:
        return None
    rest = match["rest"] or ""
    body, kind = _kind(rest)
    module, stage = _module_and_stage(body, kind)
    if stage is None and kind in HLO:
        kind = FileKind.OTHER  # a text or proto beside the modules
    return FileName(kind, match["timestamp"] or "", int(match["id"]), module, stage, rest)


def kind_of(name: str) -> FileKind:
    """The kind of a file whose name has no module: `tpu_comp_env.txt`, `00.input_module.mlir`."""
    kind = _kind(unpacked_name(name))[1]
    return FileKind.OTHER if kind in HLO else kind


def _kind(rest: str) -> tuple[str, FileKind]:
    """A name without its suffix, and the kind of the file."""
    suffix = next((suffix for suffix in _SUFFIXES if rest.endswith(suffix)), "")
    kind = _SUFFIXES.get(suffix, FileKind.OTHER)
    body = rest.removesuffix(suffix)
    if suffix in _DECISIVE or (suffix and _stage_in(body)):
        return body, kind
    if not suffix:
        body = body.removesuffix(".pb").removesuffix(".pbtxt")
    last = body.rpartition(".")[2]
    return body, next((kind for part, kind in _PARTS if part in last), kind)


def _module_and_stage(body: str, kind: FileKind) -> tuple[str | None, Stage | None]:
    if kind in (FileKind.BUFFERS, FileKind.MEMORY) and (report := _REPORT.fullmatch(body)):
        body = report["stage"]
    elif kind is FileKind.GRAPH and (part := _GRAPH_OF_PART.fullmatch(body)):
        body = part["stage"]
    elif kind not in (*HLO, FileKind.GRAPH):
        return None, None
    found = _stage_in(body)
    return (None, None) if found is None else found


def _stage_in(body: str) -> tuple[str, Stage] | None:
    """The module and the stage that a name without its suffix has."""
    if match := _PASSES.fullmatch(body):
        after, before = match["after"], match["before"] or ""
        return match["module"] or "", Stage(
            Phase.PASSES, int(match["number"]), match["pipeline"], after, before
        )
    match = _NAMED.fullmatch(body)
    if match is None:
        return None
    name = match["stage"]
    phase = Phase.NAMED
    if name == _BEGIN:
        phase = Phase.BEGIN
    elif name == _END or name.endswith(f"_{_END}"):
        phase = Phase.END
    return match["module"] or "", Stage(phase, 0, "", name, "")
