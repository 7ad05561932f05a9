"""The files below folders of dumps, put in order: runs, hosts, compilations, their stages."""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from hloopt.diagnostics import HloError
from hloopt.dumps.names import HLO, FileKind, FileName, Phase, Stage, kind_of, parse_name
from hloopt.files.storage import exists, files_below, is_folder, is_remote, join
from hloopt.patterns import pattern


@dataclass(frozen=True, slots=True)
class DumpFile:
    """A file of a dump."""

    path: str
    size: int
    kind: FileKind
    name: FileName | None
    """None for a file that does not belong to a module."""


@dataclass(slots=True)
class Compilation:
    """One module that was compiled once, on one host."""

    run: str
    host: str
    group: str
    """The match of `--group` in its folder: only compilations of one group are compared."""
    folder: str
    timestamp: str
    id: int
    """XLA's number of the module in its process, in the order of compilation."""
    name: str
    stages: dict[Stage, list[DumpFile]] = field(default_factory=dict)
    """In the order of time; each stage with its files of HLO."""
    beside: list[DumpFile] = field(default_factory=list)
    """Other files that are about this module."""
    occurrence: int = 1
    """Which module of its name it is on its host, from 1."""

    @property
    def program(self) -> str:
        """The name without the number that some frameworks append: one program, many traces."""
        return program_of(self.name)

    @property
    def is_finished(self) -> bool:
        """Whether the dump of the optimized module is there: what lacks it never got so far."""
        return any(stage.phase is Phase.END for stage in self.stages)

    @property
    def first(self) -> Stage | None:
        return next(iter(self.stages), None)

    @property
    def last(self) -> Stage | None:
        return next(reversed(self.stages), None)

    def hlo(self, stage: Stage) -> DumpFile:
        """The file to read a stage from: text, which has what people wrote, before a proto."""
        return min(self.stages[stage], key=lambda file: (file.kind is not FileKind.TEXT, file.path))

    def chain(self) -> list[Stage]:
        """The stages whose order in time is known."""
        passes = any(stage.phase is Phase.PASSES for stage in self.stages)
        return [s for s in self.stages if not (passes and s.phase is Phase.NAMED)]


_NUMBER_OF_TRACE = re.compile(r"(?:\.\d+)+$")


def program_of(name: str) -> str:
    """`SyncTensorsGraph` of `SyncTensorsGraph.123`; `jit_step` as it is."""
    return _NUMBER_OF_TRACE.sub("", name) or name


@dataclass(slots=True)
class DumpFolders:
    """All that is below the folders which were given."""

    compilations: list[Compilation]
    """By run, host and order of compilation."""
    files: list[DumpFile]
    """All files."""
    problems: list[tuple[str, str]]
    """Folders and files that cannot be listed, each with the reason."""

    def kinds(self) -> Counter[FileKind]:
        """The number of files of each kind. O(files)."""
        return Counter(file.kind for file in self.files)


HOST = (
    r"(?:.*[-_.=])?(?:process|proc|host|worker|rank|node|task|replica|machine|pod|w)[-_.=]?\d{1,6}"
    r"|\d{1,6}"
    r"|(?!(?:run|exp|experiment|job|train|trial|attempt|step|seed|epoch|version|v|\d+)-)"
    r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*-\d{1,4}"
)
"""The name of a folder that holds what one host wrote, unless told otherwise."""


def scan(roots: Sequence[str], *, host: str | None = None, group: str | None = None) -> DumpFolders:
    """The dumps below `roots`, by the names of files alone: none is read. O(files · log).

    `host` is a regular expression for the part of a path that names the host, instead of the last
    folder on it that looks like `HOST`; `group` one for what has to be equal of hosts that are
    compared. Where such an expression has a group, what that matches counts. Raises HloError for a
    root that is no folder.
    """
    listing = _Listing(roots)
    places = _Places(listing.folders(), roots, host, group)
    compilations = [
        compilation
        for folder, files in listing.by_folder.items()
        for compilation in _compilations(folder, files, places)
    ]
    compilations.sort(key=lambda c: (natural(c.run), natural(c.host), c.timestamp, c.id, c.name))
    counts: Counter[tuple[str, str, str]] = Counter()
    for each in compilations:
        key = each.run, each.host, each.program
        counts[key] += 1
        each.occurrence = counts[key]
    return DumpFolders(compilations, listing.files, listing.problems)


def natural(text: str) -> list[tuple[int, str]]:
    """A key by which `process-2` is before `process-10`."""
    return [(int(part) if part.isdecimal() else -1, part) for part in re.split(r"(\d+)", text)]


class _Listing:
    """The files below roots, by the folder that XLA was told to dump to."""

    def __init__(self, roots: Sequence[str]) -> None:
        self.files: list[DumpFile] = []
        self.problems: list[tuple[str, str]] = []
        self.by_folder: defaultdict[str, list[DumpFile]] = defaultdict(list)
        for root in {_absolute(root): root for root in roots}.values():  # each once
            if (why := _why_no_folder(root)) is not None:
                raise HloError(
                    f"cannot list {root}: {why}",
                    help="give folders that XLA dumped to: XLA_FLAGS=--xla_dump_to=DIR",
                    code="HLO001",
                )
            self._list(root)

    def folders(self) -> list[str]:
        """The folders that hold dumps of modules."""
        return [
            folder
            for folder, files in self.by_folder.items()
            if any(file.name is not None for file in files)
        ]

    def _list(self, root: str) -> None:
        for folder, name, size in files_below(root, lambda *why: self.problems.append(why)):
            own = parse_name(name)
            file = DumpFile(join(folder, name), size, own.kind if own else kind_of(name), own)
            self.files.append(file)
            self.by_folder[_dump_folder(folder, root)].append(file)


def _why_no_folder(path: str) -> str | None:
    """The reason why a path is no folder; None for a folder."""
    try:
        if is_folder(path):
            return None
        return "it is a file" if exists(path) else "No such file or directory"
    except OSError as error:
        return error.strerror or str(error)


_PART_OF_DUMP = pattern(r"(?:\d{9,}\.)?module_\d+(?:\..*)?|shardy")


def _dump_folder(folder: str, root: str) -> str:
    """The folder above those that XLA makes for single modules: `module_0014.jit_step/`."""
    while folder != root and _PART_OF_DUMP.fullmatch(folder.rpartition("/")[2]):
        folder = folder.rpartition("/")[0]
    return folder


class _Places:
    """The run, the host and the group of each folder of dumps, by its path below all roots."""

    def __init__(
        self, folders: Sequence[str], roots: Sequence[str], host: str | None, group: str | None
    ) -> None:
        self._host = None if host is None else _compiled(host, "--host")
        self._group = None if group is None else _compiled(group, "--group")
        self._top = _common(list(map(_parts, roots)))
        self.of = {folder: self._place(folder) for folder in folders}

    def _place(self, folder: str) -> tuple[str, str, str]:
        parts = _parts(folder)[self._top :]
        path = "/".join(parts)
        group = _found(self._group, path) or ""
        if self._host is not None:
            match = self._host.search(path)
            if match is None:
                return "/".join(parts), "", group
            rest = path[: match.start()] + path[match.end() :]
            return rest.strip("/"), _chosen(match), group
        for place in range(len(parts) - 1, -1, -1):
            if _HOST.fullmatch(parts[place]):
                return "/".join((*parts[:place], *parts[place + 1 :])), parts[place], group
        return "/".join(parts), "", group


def _parts(path: str) -> list[str]:
    """A path, taken apart; a local one whole."""
    return _absolute(path).split("/")


def _absolute(path: str) -> str:
    return (path if is_remote(path) else os.path.abspath(path)).rstrip("/")


def _common(paths: Sequence[Sequence[str]]) -> int:
    """The number of parts that all paths begin with."""
    count = 0
    for parts in zip(*paths, strict=False):
        if len(set(parts)) > 1:
            break
        count += 1
    return count


_HOST = re.compile(HOST, re.ASCII | re.IGNORECASE)


def _found(expression: re.Pattern[str] | None, path: str) -> str | None:
    match = None if expression is None else expression.search(path)
    return None if match is None else _chosen(match)


def _chosen(match: re.Match[str]) -> str:
    """The first group of an expression that matched; all of it where none did."""
    return next((text for text in match.groups() if text is not None), match[0])


def _compiled(text: str, option: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise HloError(f"{option}: '{text}' is no regular expression: {error}") from None


def _compilations(folder: str, files: Iterable[DumpFile], places: _Places) -> Iterator[Compilation]:
    """The modules whose HLO is in a folder; each file goes to one of them."""
    found: dict[tuple[str, int], dict[str, Compilation]] = {}
    rest: list[tuple[DumpFile, FileName]] = []
    stages: dict[int, list[tuple[Stage, DumpFile]]] = defaultdict(list)
    for file in files:
        own = file.name
        if own is None:
            continue
        if own.module is None or own.stage is None:
            rest.append((file, own))
            continue
        names = found.setdefault((own.timestamp, own.id), {})
        if own.module not in names:
            run, host, group = places.of[folder]
            names[own.module] = Compilation(
                run, host, group, folder, own.timestamp, own.id, own.module
            )
        compilation = names[own.module]
        if file.kind in HLO:
            stages[id(compilation)].append((own.stage, file))
        else:
            compilation.beside.append(file)
    for file, own in rest:
        if owner := _owner(found.get((own.timestamp, own.id), {}), own):
            owner.beside.append(file)
    for names in found.values():
        for compilation in names.values():
            for stage, file in sorted(stages[id(compilation)], key=lambda pair: pair[0]):
                compilation.stages.setdefault(stage, []).append(file)
            if compilation.stages:
                yield compilation


def _owner(names: dict[str, Compilation], own: FileName) -> Compilation | None:
    """The module whose name a file begins with: the longest, for names may begin alike."""
    fitting = [name for name in names if f"{own.rest}.".startswith(f"{name}.") or not name]
    return names[max(fitting, key=len)] if fitting else None
