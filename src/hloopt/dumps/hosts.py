"""Hosts that should have compiled the same: where they did not, and from which pass on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import NamedTuple

from hloopt.dumps.difference import FirstDifference, first_difference, no_difference
from hloopt.dumps.facts import Depth, Facts
from hloopt.dumps.folder import Compilation, natural
from hloopt.dumps.gather import Gatherer
from hloopt.dumps.names import Phase, Stage
from hloopt.processes import in_processes


@dataclass(slots=True)
class Divergence:
    """Hosts with different modules at one stage, where they had the same until then."""

    run: str
    group: str
    program: str
    occurrence: int
    hosts: list[list[str]]
    """Hosts that agree with each other, the most first."""
    stage: str
    maker: str
    """The pass behind which they differ first."""
    is_input: bool
    """Whether they differ before any pass."""
    files: list[str]
    """A file at that stage for each list of hosts; empty where XLA wrote none for them, which it
    does where a pass changed nothing."""
    first: FirstDifference | None = None
    """Between the first two files."""


class Mismatch(NamedTuple):
    """The first place at which sequences of hosts differ: of collectives, or of programs."""

    run: str
    group: str
    program: str
    """Whose collectives differ; empty for programs with collectives, in the order in which they
    were compiled."""
    occurrence: int
    position: int
    """From 1."""
    entries: list[tuple[str, list[str]]]
    """The entries there, each with its hosts, that of most first; empty where a sequence ended."""


class Leftover(NamedTuple):
    """A compilation that never finished."""

    compilation: Compilation
    last: str
    """The stage of its last dump."""
    others: list[str]
    """Hosts that finished the same."""


@dataclass(slots=True)
class HostFindings:
    """The outcome of a comparison of hosts."""

    compared: int
    """The number of modules that several hosts compiled."""
    divergences: list[Divergence]
    mismatches: list[Mismatch]
    leftovers: list[Leftover]


def compare_hosts(
    compilations: Sequence[Compilation], gatherer: Gatherer, jobs: int
) -> HostFindings:
    """Compare what the hosts of each run compiled, stage by stage.

    Modules are compared that have one program, occurrence, run and group. Files with equal bytes
    are not read as HLO; of others fingerprints are compared. O(files).
    """
    sets = _comparable(compilations)
    several = [each for each in sets if len(each) > 1]
    gatherer.contents(c.hlo(s).path for each in several for c in each for s in c.stages)
    divergences = [found for each in several if (found := _diverging(each, gatherer))]
    _add_first_differences(divergences, jobs)
    return HostFindings(
        len(several),
        divergences,
        [*_sequence_mismatches(several, gatherer), *_order_mismatches(compilations, gatherer)],
        list(_leftovers(sets)),
    )


def _comparable(compilations: Iterable[Compilation]) -> list[list[Compilation]]:
    found: defaultdict[tuple[str, str, str, int], list[Compilation]] = defaultdict(list)
    for each in compilations:
        if each.stages:
            found[each.run, each.group, each.program, each.occurrence].append(each)
    return list(found.values())


def _leftovers(sets: Iterable[Sequence[Compilation]]) -> Iterator[Leftover]:
    for each in sets:
        finished = [c.host for c in each if c.is_finished]
        for compilation in each:
            if not compilation.is_finished and compilation.last is not None:
                yield Leftover(compilation, compilation.last.label, finished)


# -- stages ---------------------------------------------------------------------------------------

_Moment = tuple[int, str, str, str, int]
"""A stage on all hosts: phase, pipeline, pass before and behind it, and which time that is so."""


def _moments(compilation: Compilation) -> dict[_Moment, Stage]:
    """The numbers of stages differ where a pass changed something on one host only."""
    counts: defaultdict[tuple[int, str, str, str], int] = defaultdict(int)
    found: dict[_Moment, Stage] = {}
    for stage in compilation.stages:
        key = stage.phase.value, stage.pipeline, stage.after, stage.before
        counts[key] += 1
        found[*key, counts[key]] = stage
    return found


def _diverging(each: Sequence[Compilation], gatherer: Gatherer) -> Divergence | None:
    """The first stage at which hosts differ; None where they end in the same module."""
    moments = [_moments(compilation) for compilation in each]
    if _ends_alike(each, gatherer):
        return None
    for moment in _in_order(moments):
        present = [
            (compilation, own[moment])
            for compilation, own in zip(each, moments, strict=True)
            if moment in own
        ]
        missing = [
            compilation
            for compilation, own in zip(each, moments, strict=True)
            if moment not in own and _got_beyond(compilation, moment, own, moments)
        ]
        groups = _groups(present, gatherer)
        if len(groups) > 1 or (missing and moment[0] == Phase.PASSES.value):
            return _divergence(each, present[0][1], groups, missing)
    return None


def _in_order(moments: Sequence[Mapping[_Moment, Stage]]) -> list[_Moment]:
    """The stages of all hosts in the order of time, by the least number that any host has."""
    least: dict[_Moment, Stage] = {}
    for own in moments:
        for moment, stage in own.items():
            if moment not in least or stage < least[moment]:
                least[moment] = stage
    return sorted(least, key=lambda moment: (least[moment], moment))


def _got_beyond(
    compilation: Compilation,
    moment: _Moment,
    own: Mapping[_Moment, Stage],
    all_moments: Sequence[Mapping[_Moment, Stage]],
) -> bool:
    """Whether a host that lacks a stage went on behind it: it is finished, or has later stages."""
    if compilation.is_finished:
        return any(stage.phase is Phase.PASSES for stage in own.values())
    number = min(each[moment].number for each in all_moments if moment in each)
    return any(s.phase is Phase.PASSES and s.number > number for s in own.values())


def _ends_alike(each: Sequence[Compilation], gatherer: Gatherer) -> bool:
    ends = [c.last for c in each if c.is_finished]
    if len(ends) < len(each):
        return False
    return len(_groups([(c, c.last) for c in each if c.last is not None], gatherer)) == 1


def _groups(
    present: Sequence[tuple[Compilation, Stage]], gatherer: Gatherer
) -> list[list[tuple[Compilation, str]]]:
    """Hosts with one module together, with their files; files that cannot be read are left out."""
    paths = [(compilation, compilation.hlo(stage).path) for compilation, stage in present]
    contents = gatherer.contents(path for _, path in paths)
    known = [(compilation, path) for compilation, path in paths if path in contents]
    if len({contents[path] for _, path in known}) == 1:
        return [known]
    found = gatherer.facts((path for _, path in known), Depth.PRINT)
    groups: defaultdict[str, list[tuple[Compilation, str]]] = defaultdict(list)
    for compilation, path in known:
        facts = found.of(path, Depth.PRINT)
        if facts is not None:
            groups[facts.fingerprint].append((compilation, path))
    return sorted(groups.values(), key=lambda group: -len(group))


def _divergence(
    each: Sequence[Compilation],
    stage: Stage,
    groups: Sequence[Sequence[tuple[Compilation, str]]],
    missing: Sequence[Compilation],
) -> Divergence:
    lists = [([c.host for c, _ in group], group[0][1]) for group in groups]
    if missing:
        lists.append(([compilation.host for compilation in missing], ""))
    lists.sort(key=lambda pair: -len(pair[0]))
    one = each[0]
    return Divergence(
        *(one.run, one.group, one.program, one.occurrence),
        [sorted(hosts, key=natural) for hosts, _ in lists],
        stage.label,
        stage.maker,
        stage.phase is Phase.BEGIN,
        [path for _, path in lists],
    )


def _add_first_differences(divergences: Sequence[Divergence], jobs: int) -> None:
    wanted = [each for each in divergences if len(list(filter(None, each.files))) > 1]
    pairs = [(files[0], files[1]) for e in wanted if (files := list(filter(None, e.files)))]
    results = in_processes(first_difference, pairs, jobs, no_difference)
    for divergence, first in zip(wanted, results, strict=True):
        divergence.first = first


# -- sequences ------------------------------------------------------------------------------------


def _sequence_mismatches(
    sets: Iterable[Sequence[Compilation]], gatherer: Gatherer
) -> Iterator[Mismatch]:
    """Optimized programs of which hosts run collectives in other orders: they would hang."""
    for each in sets:
        sequences: dict[str, tuple[str, ...]] = {}
        for compilation in each:
            facts = _end_facts(compilation, gatherer)
            if facts is not None and facts.sequence is not None:
                sequences[compilation.host] = facts.sequence
        one = each[0]
        if found := _first_mismatch(sequences):
            yield Mismatch(one.run, one.group, one.program, one.occurrence, *found)


def _order_mismatches(
    compilations: Iterable[Compilation], gatherer: Gatherer
) -> Iterator[Mismatch]:
    """Hosts that compiled their programs with collectives in another order than others.

    A program counts if it has collectives on any host: a compilation may not have finished.
    """
    waiting: set[tuple[str, str, str]] = set()
    for each in compilations:
        facts = _end_facts(each, gatherer)
        if facts is not None and facts.collectives:
            waiting.add((each.run, each.group, each.program))
    orders: defaultdict[tuple[str, str], dict[str, list[str]]] = defaultdict(dict)
    for each in compilations:
        own = orders[each.run, each.group].setdefault(each.host, [])
        if (each.run, each.group, each.program) in waiting:
            own.append(each.program)
    for (run, group), hosts in orders.items():
        if found := _first_mismatch(hosts):
            yield Mismatch(run, group, "", 1, *found)


def _end_facts(compilation: Compilation, gatherer: Gatherer) -> Facts | None:
    last = compilation.last
    if last is None or not compilation.is_finished:
        return None
    return gatherer.found.of(compilation.hlo(last).path, Depth.FULL)


def _first_mismatch(
    sequences: Mapping[str, Sequence[str]],
) -> tuple[int, list[tuple[str, list[str]]]] | None:
    """The first position, from 1, at which not all have the same, and who has what there."""
    if len({tuple(sequence) for sequence in sequences.values()}) < 2:
        return None
    for position, entries in enumerate(zip_longest(*sequences.values(), fillvalue=""), 1):
        if len(set(entries)) > 1:
            hosts: defaultdict[str, list[str]] = defaultdict(list)
            for host, entry in zip(sequences, entries, strict=True):
                hosts[entry].append(host)
            return position, sorted(hosts.items(), key=lambda item: -len(item[1]))
    return None
