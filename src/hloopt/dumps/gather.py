"""Facts of many files: each content looked at once, in several processes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from hloopt.diagnostics import HloError, Source, counted
from hloopt.dumps.facts import Depth, Facts, facts_of
from hloopt.files.cache import Cache
from hloopt.files.storage import digest_of, size_of
from hloopt.plain_data import from_plain, to_plain
from hloopt.processes import in_processes

if TYPE_CHECKING:
    from hloopt.ir.module import Module

_Result = TypeVar("_Result")
_Task = TypeVar("_Task")


class Problem(NamedTuple):
    """The reason why there are no facts of a file."""

    message: str
    code: str | None
    line: int | None
    is_incomplete: bool
    """Whether the file was still being written, or ends in the middle of a module."""


@dataclass(slots=True)
class Gathered:
    """The answers to all that was asked of files."""

    contents: dict[str, str] = field(default_factory=dict)
    """The digest of the bytes of each file that could be read."""
    facts: dict[tuple[str, Depth], Facts] = field(default_factory=dict)
    """By digest."""
    problems: dict[str, Problem] = field(default_factory=dict)
    """By path."""
    from_cache: int = 0
    """The number of contents of which the cache had the facts."""

    def of(self, path: str, depth: Depth) -> Facts | None:
        """The facts of a file at this depth or a deeper one."""
        content = self.contents.get(path)
        found = (self.facts.get((content, each)) for each in Depth if each >= depth and content)
        return next((facts for facts in found if facts is not None), None)

    def to_json(self) -> dict[str, Any]:
        """All of it as plain data."""
        return {
            "contents": self.contents,
            "facts": [[key, depth.name, to_plain(f)] for (key, depth), f in self.facts.items()],
            "problems": to_plain(self.problems),
        }

    def add(self, data: dict[str, Any]) -> None:
        """Add what `to_json` made. Raises KeyError, TypeError or ValueError for other data."""
        self.contents |= data["contents"]
        for content, depth, facts in data["facts"]:
            self.facts[content, Depth[depth]] = from_plain(Facts, facts)
        self.problems |= from_plain(dict[str, Problem], data["problems"])


class Gatherer:
    """Looks at files, as deep as asked, and remembers what it found.

    A file is read once for its digest and, where no equal one was looked at before, once more.
    Work is done in `jobs` processes; with one job in this one. O(bytes) beside the facts.
    """

    def __init__(
        self,
        jobs: int,
        cache: Cache | None,
        progress: Callable[[str, float], None] | None = None,
        cluster: Callable[..., Iterator[Any]] | None = None,
        target: str | None = None,
    ) -> None:
        """Times are of `target`. `cluster` works in place of processes: it takes work, tasks and
        what makes the result of a task that was lost, and gives the results in order."""
        self.found = Gathered()
        self._jobs = jobs
        self._cache = cache
        self._progress = progress
        self._cluster = cluster
        self._target = target
        self._target_key = "" if target is None else _digest_of_target(target)

    def forget(self, paths: Iterable[str]) -> None:
        """Look at files anew: they are others now."""
        for path in paths:
            self.found.contents.pop(path, None)
            self.found.problems.pop(path, None)

    def contents(self, paths: Iterable[str]) -> Mapping[str, str]:
        """The digests of files; what cannot be read becomes a problem."""
        new = [p for p in dict.fromkeys(paths) if p not in self.found.contents]
        tasks = [path for path in new if path not in self.found.problems]
        for path, (content, problem) in self._map("reading", digest_of_file, tasks, _lost_digest):
            if problem is not None:
                self.found.problems[path] = problem
            else:
                self.found.contents[path] = content
        return self.found.contents

    def facts(self, paths: Iterable[str], depth: Depth) -> Gathered:
        """Facts of files; what cannot be read or breaks the rules of HLO becomes a problem."""
        paths = list(dict.fromkeys(paths))
        contents = self.contents(paths)
        tasks: list[str] = []
        asked: set[str] = set()
        for path in paths:
            content = contents.get(path)
            known = content is None or self.found.of(path, depth) is not None
            if known or path in self.found.problems:
                continue
            assert content is not None
            if content not in asked and not self._from_cache(content, depth):
                asked.add(content)
                tasks.append(path)
        work = partial(examine, depth=depth, target=self._target)
        for path, (content, data) in self._map("examining", work, tasks, _lost_facts):
            self._keep(path, content, depth, data)
        self._spread_problems(paths, depth)
        return self.found

    def elsewhere(
        self,
        work: Callable[[_Task], _Result],
        tasks: Sequence[_Task],
        lost: Callable[[_Task], _Result],
    ) -> Iterator[_Result]:
        """Results of tasks in order, by the cluster or by other processes."""
        if self._cluster is not None:
            return self._cluster(work, tasks, lost)
        return in_processes(work, tasks, self._jobs, lost)

    def _keep(self, path: str, content: str, depth: Depth, data: dict[str, Any] | Problem) -> None:
        if isinstance(data, Problem):
            self.found.problems[path] = data
            return
        self.found.contents[path] = content  # as it was when it was looked at
        self.found.facts[content, depth] = from_plain(Facts, data)
        if self._cache is not None:
            self._cache.put(self._key(content, depth), data)

    def _key(self, content: str, depth: Depth) -> str:
        return f"facts/{depth.name}/{self._target_key}/{content}"

    def _from_cache(self, content: str, depth: Depth) -> bool:
        if self._cache is None:
            return False
        data = self._cache.get(self._key(content, depth))
        if data is None:
            return False
        try:
            self.found.facts[content, depth] = from_plain(Facts, data)
        except (AttributeError, KeyError, TypeError, ValueError):  # not what this version writes
            return False
        self.found.from_cache += 1
        return True

    def _spread_problems(self, paths: Iterable[str], depth: Depth) -> None:
        """A file that is equal to one with a problem has it, too."""
        found = self.found
        by_content = {
            found.contents[p]: why for p, why in found.problems.items() if p in found.contents
        }
        for path in paths:
            content = found.contents.get(path)
            if content in by_content and found.of(path, depth) is None:
                found.problems.setdefault(path, by_content[content])

    def _map(
        self,
        what: str,
        work: Callable[[str], _Result],
        tasks: Sequence[str],
        lost: Callable[[str], _Result],
    ) -> Iterable[tuple[str, _Result]]:
        is_here = self._cluster is None and (self._jobs == 1 or len(tasks) == 1)
        results = map(work, tasks) if is_here else self.elsewhere(work, tasks, lost)
        for number, (path, result) in enumerate(zip(tasks, results, strict=True), 1):
            if self._progress is not None:
                self._progress(f"{what} {counted(len(tasks), 'file')}", number / len(tasks))
            yield path, result


def _digest_of_target(target: str) -> str:
    """The content of a target's file; the name of one of hloopt's own, which change with it."""
    try:
        return digest_of(target)[0]
    except OSError:
        return target


# -- in a worker ----------------------------------------------------------------------------------


def digest_of_file(path: str) -> tuple[str, Problem | None]:
    """The digest of a file's bytes, in pieces of a fixed size. A file that grew is read again."""
    for pause in _PAUSES:
        try:
            content, size = digest_of(path)
            if size_of(path) == size:
                return content, None
        except OSError as error:
            message = f"cannot read {path}: {error.strerror or error}"
            return "", Problem(message, "HLO001", None, False)
        time.sleep(pause)
    return "", Problem(f"{path} grew while it was read", None, None, True)


_PAUSES = (0.02, 0.1, 0.3)
"""Seconds to wait for the writer of a file."""


def examine(
    path: str, depth: Depth, target: str | None = None
) -> tuple[str, dict[str, Any] | Problem]:
    """The digest and the facts of a file; those of one that is cut short are asked for again."""
    for pause in _PAUSES:
        content, problem = digest_of_file(path)
        if problem is not None:
            return content, problem
        found = _examine(path, depth, target)
        if not (isinstance(found, Problem) and found.is_incomplete):
            return content, found
        time.sleep(pause)
        if digest_of_file(path)[0] == content:
            return content, found
    return content, found


def _examine(path: str, depth: Depth, target: str | None) -> dict[str, Any] | Problem:
    from hloopt.collector import collector_paused
    from hloopt.reports.console.units import human_bytes

    try:
        if (size := size_of(path)) > LARGEST:
            limit = human_bytes(LARGEST)
            message = f"{path} has {human_bytes(size)}, in a folder at most {limit} are looked at"
            return Problem(message, None, None, False)
        with collector_paused():
            module = _read(path)
            if module is None:
                return Problem(f"{path} ends in the middle of a module", None, None, True)
            found: dict[str, Any] = to_plain(facts_of(module, depth, target))
            return found
    except HloError as error:
        line = error.location[0] if error.location else None
        return Problem(error.message, error.code, line, False)
    except OSError as error:
        return Problem(f"cannot read {path}: {error.strerror or error}", "HLO001", None, False)
    except (RecursionError, MemoryError) as error:
        return Problem(f"{path}: {type(error).__name__}", None, None, False)


def _read(path: str) -> Module | None:
    """The module in a file; None if its text is cut short. Raises HloError."""
    from hloopt.files import read_text_or_module
    from hloopt.text import parse_module

    found = read_text_or_module(path)
    if isinstance(found, Source):
        return None if _is_cut_short(found.text) else parse_module(found)
    return found


LARGEST = 1 << 30
"""Bytes of the largest file that is read as HLO: several at once would take all memory."""
_BEGINNING = "HloModule"
_TAIL = 64


def _is_cut_short(text: str) -> bool:
    """Whether a text begins as a dump does and does not end as one: XLA writes the entry last."""
    beginning = text.lstrip()[: len(_BEGINNING)]
    if not _BEGINNING.startswith(beginning):
        return False
    return not text[-_TAIL:].rstrip().endswith("}") or "\nENTRY " not in text


def _lost_digest(path: str) -> tuple[str, Problem | None]:
    return "", Problem(f"{path}: the process that read it was ended", None, None, False)


def _lost_facts(path: str) -> tuple[str, dict[str, Any] | Problem]:
    return "", Problem(f"{path}: the process that looked at it was ended", None, None, False)
