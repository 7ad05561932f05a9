"""One answer about folders of dumps: modules, traces, hosts, and what cannot be read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from hloopt.dumps.facts import Depth, Facts
from hloopt.dumps.folder import Compilation, DumpFolders, natural
from hloopt.dumps.gather import Gatherer, Problem
from hloopt.dumps.hosts import HostFindings, compare_hosts
from hloopt.dumps.names import Stage
from hloopt.dumps.retraces import Trace, find_retraces
from hloopt.plain_data import to_plain


@dataclass(slots=True)
class ModuleRow:
    """A module that was compiled once on each of some hosts."""

    compilations: list[Compilation]
    """By host; all alike where hosts agree. The first stands for all."""
    before: Facts | None
    """At the first stage; None where that cannot be read."""
    after: Facts | None
    """At the last stage, if the compilation finished."""
    variants: int
    """The number of different modules at the last stage, over the hosts."""
    text_bytes: int
    """Of the file of the last stage."""

    @property
    def one(self) -> Compilation:
        return self.compilations[0]

    @property
    def hosts(self) -> list[str]:
        return [compilation.host for compilation in self.compilations]


@dataclass(slots=True)
class Summary:
    """All that there is to say of folders of dumps."""

    roots: Sequence[str]
    folders: DumpFolders
    rows: list[ModuleRow]
    """The largest first."""
    retraces: list[Trace]
    hosts: HostFindings
    problems: dict[str, Problem]
    """By path."""

    @property
    def host_names(self) -> list[str]:
        """The hosts there are, in order; one without a name where folders name none."""
        names = {(each.run, each.host) for each in self.folders.compilations}
        return sorted({host for _, host in names}, key=natural)

    @property
    def run_names(self) -> list[str]:
        return sorted({each.run for each in self.folders.compilations}, key=natural)

    @property
    def has_findings(self) -> bool:
        """Whether hosts differ, or a compilation never finished."""
        return bool(self.hosts.divergences or self.hosts.mismatches or self.hosts.leftovers)


def summarize(roots: Sequence[str], folders: DumpFolders, gatherer: Gatherer) -> Summary:
    """Look at first and last stages of all modules, and where hosts differ at those between.

    Near-linear in the bytes of the files, of which those with equal bytes count once.
    """
    compilations = folders.compilations
    paths = [path for each in compilations for path in _ends(each)]
    found = gatherer.facts(paths, Depth.FULL)
    hosts = compare_hosts(compilations, gatherer)
    problems = {
        **{path: Problem(why, "HLO001", None, False) for path, why in folders.problems},
        **found.problems,
    }
    return Summary(
        roots, folders, _rows(compilations, gatherer), find_retraces(compilations, gatherer),
        hosts, dict(sorted(problems.items())),
    )  # fmt: skip


def hlo_paths(folders: DumpFolders) -> list[str]:
    """The files that a summary is of: one for each stage, in order."""
    return [each.hlo(stage).path for each in folders.compilations for stage in each.stages]


def look_at_part(folders: DumpFolders, paths: Iterable[str], gatherer: Gatherer) -> None:
    """Look at some of `hlo_paths` as a summary of all would."""
    own = list(paths)
    gatherer.contents(own)
    ends = {path for each in folders.compilations for path in _ends(each)}
    gatherer.facts((path for path in own if path in ends), Depth.FULL)


def _ends(compilation: Compilation) -> Iterable[str]:
    stages: list[Stage | None] = [compilation.first, compilation.last]
    return (compilation.hlo(stage).path for stage in stages if stage is not None)


def _rows(compilations: Iterable[Compilation], gatherer: Gatherer) -> list[ModuleRow]:
    sets: defaultdict[tuple[str, str, str, int], list[Compilation]] = defaultdict(list)
    for each in compilations:
        if each.stages:
            sets[each.run, each.group, each.program, each.occurrence].append(each)
    rows = [_row(each, gatherer) for each in sets.values()]
    return sorted(rows, key=_size, reverse=True)


def _size(row: ModuleRow) -> tuple[int, int]:
    facts = row.after or row.before
    return 0 if facts is None else facts.instructions, row.text_bytes


def _row(each: Sequence[Compilation], gatherer: Gatherer) -> ModuleRow:
    finished = next((c for c in each if c.is_finished), each[0])
    first, last = finished.first, finished.last
    assert first is not None
    assert last is not None
    ends = {
        facts.fingerprint
        for c in each
        if c.is_finished and c.last and (facts := _facts(c, c.last, gatherer))
    }
    return ModuleRow(
        [finished, *(c for c in each if c is not finished)],
        _facts(finished, first, gatherer),
        _facts(finished, last, gatherer) if finished.is_finished else None,
        len(ends),
        finished.hlo(last).size,
    )


def _facts(compilation: Compilation, stage: Stage, gatherer: Gatherer) -> Facts | None:
    return gatherer.found.of(compilation.hlo(stage).path, Depth.FULL)


# -- plain data -----------------------------------------------------------------------------------


def summary_to_json(summary: Summary) -> dict[str, Any]:
    """A summary as plain data."""
    folders, hosts = summary.folders, summary.hosts
    return {
        "folders": list(summary.roots),
        "files": {
            "count": len(folders.files),
            "bytes": sum(file.size for file in folders.files),
            "kinds": {kind.value: count for kind, count in sorted(
                folders.kinds().items(), key=lambda item: -item[1])},
        },
        "runs": summary.run_names,
        "hosts": summary.host_names,
        "modules": [_row_to_json(row) for row in summary.rows],
        "retraces": [_trace_to_json(trace) for trace in summary.retraces],
        "compared": hosts.compared,
        "divergences": to_plain(hosts.divergences),
        "mismatches": [
            {**each._asdict(), "entries": [{"entry": e, "hosts": h} for e, h in each.entries]}
            for each in hosts.mismatches
        ],
        "leftovers": [
            {**_name(each.compilation), "last": each.last, "finished_on": each.others}
            for each in hosts.leftovers
        ],
        "problems": [
            {"file": path, **problem._asdict()} for path, problem in summary.problems.items()
        ],
    }  # fmt: skip


def _name(compilation: Compilation) -> dict[str, Any]:
    return {
        "module": compilation.name,
        "id": compilation.id,
        "occurrence": compilation.occurrence,
        "run": compilation.run,
        "host": compilation.host,
    }


def _row_to_json(row: ModuleRow) -> dict[str, Any]:
    one = row.one
    return {
        **_name(one),
        "program": one.program,
        "group": one.group,
        "hosts": row.hosts,
        "variants": row.variants,
        "finished": one.is_finished,
        "stages": [stage.label for stage in one.stages],
        "files": sum(map(len, one.stages.values())) + len(one.beside),
        "text_bytes": row.text_bytes,
        "before": to_plain(row.before),
        "after": to_plain(row.after),
    }


def _trace_to_json(trace: Trace) -> dict[str, Any]:
    return {
        **_name(trace.compilation),
        "nearest": _name(trace.before),
        "same_module": trace.is_same,
        "unknown": trace.unknown,
        "changes": [change._asdict() for change in trace.changes],
    }
