"""Hosts that should have compiled the same: where they did not, and from which pass on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import NamedTuple

from hloopt.dumps.difference import FirstDifference, first_difference, no_difference
from hloopt.dumps.facts import Depth, Facts
from hloopt.dumps.folder import Compilation, natural
from hloopt.dumps.gather import Gatherer
from hloopt.dumps.names import Phase, Stage


@dataclass(slots=True)
class Divergence:
    """Hosts with different modules at one stage, where they had the same until then."""

    run: str
    group: str
    program: str
    occurrence: int
    hosts: list[list[str]]
    """Most hosts, and those that differ from them."""
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


def compare_hosts(compilations: Sequence[Compilation], gatherer: Gatherer) -> HostFindings:
    """Compare what the hosts of each run compiled, stage by stage.

    Modules are compared that have one program, occurrence, run and group. Files with equal bytes
    are not read as HLO; of others fingerprints are compared. O(files).
    """
    sets = _comparable(compilations)
    several = [each for each in sets if len(each) > 1]
    gatherer.contents(c.hlo(s).path for each in several for c in each for s in c.stages)
    divergences = [found for each in several for found in _diverging(each, gatherer)]
    _add_first_differences(divergences, gatherer)
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


class _Place(NamedTuple):
    """The first stage at which two hosts differ, with the file of each; empty where one has none:
    XLA dumps a module where a pass changed it."""

    stage: Stage
    files: tuple[str, str]


def _diverging(each: Sequence[Compilation], gatherer: Gatherer) -> list[Divergence]:
    """Where hosts went other ways than most: those that end in another module, or have not ended
    and are elsewhere."""
    groups = _by_end(each, gatherer)
    unfinished = [compilation for compilation in each if not compilation.is_finished]
    if not groups:
        groups = [[max(unfinished, key=lambda c: len(c.stages))]] if unfinished else []
    if not groups:
        return []
    most = groups[0]
    reference = _fullest(most)
    others = [*groups[1:], *([c] for c in unfinished if c is not reference)]
    places: dict[_Place, list[list[Compilation]]] = {}
    for other in others:
        one = _fullest(other)
        place = _first_place(reference, one, gatherer)
        if place is None and reference.is_finished and one.is_finished:
            place = _ends(reference, one)
        if place is not None:
            places.setdefault(place, []).append(other)
        elif not reference.is_finished:
            most = [*most, *other]
    return [_divergence(place, most, found) for place, found in places.items()]


def _by_end(each: Sequence[Compilation], gatherer: Gatherer) -> list[list[Compilation]]:
    """Finished compilations that end in one module together, the most first; those whose end cannot
    be read are left out."""
    ends = {c.host: c.hlo(c.last).path for c in each if c.is_finished and c.last is not None}
    contents = gatherer.contents(ends.values())
    if len(set(map(contents.get, ends.values()))) > 1:
        gatherer.facts(ends.values(), Depth.PRINT)
    groups: defaultdict[str, list[Compilation]] = defaultdict(list)
    for compilation in each:
        path = ends.get(compilation.host)
        if path is not None and path in contents:
            facts = gatherer.found.of(path, Depth.PRINT)
            if facts is not None:
                groups[facts.fingerprint].append(compilation)
    return sorted(groups.values(), key=lambda group: -len(group))


def _ends(a: Compilation, b: Compilation) -> _Place:
    """The last stages of two compilations, of which no stage before tells where they parted."""
    assert a.last is not None
    assert b.last is not None
    return _Place(a.last, (a.hlo(a.last).path, b.hlo(b.last).path))


def _fullest(group: Sequence[Compilation]) -> Compilation:
    return max(group, key=lambda compilation: len(compilation.stages))


def _first_place(a: Compilation, b: Compilation, gatherer: Gatherer) -> _Place | None:
    """The first stage at which the modules of two hosts differ.

    Stages are aligned by the passes around them. At a stage that one host lacks it has the module
    of its stage before. Files that cannot be read tell nothing. O(stages²) at worst.
    """
    both = a, b
    with_passes = all(map(_has_passes, both))  # else these were not asked for everywhere
    lists = _stages(a, with_passes=with_passes), _stages(b, with_passes=with_passes)
    paths = [[c.hlo(stage).path for stage in own] for c, own in zip(both, lists, strict=True)]
    keys = [[(s.phase, s.pipeline, s.after, s.before) for s in own] for own in lists]
    matcher = SequenceMatcher(None, keys[0], keys[1], autojunk=False)
    prints = _Prints(gatherer, paths)
    for tag, *ranges in matcher.get_opcodes():
        spans = ranges[:2], ranges[2:]
        if tag == "equal":
            for i, j in zip(range(*spans[0]), range(*spans[1]), strict=True):
                if prints.differ(paths[0][i], paths[1][j]):
                    return _Place(lists[0][i], (paths[0][i], paths[1][j]))
            continue
        if any(
            span[0] == len(own) and not c.is_finished
            for span, own, c in zip(spans, lists, both, strict=True)
        ):  # one of them got no farther
            return None
        if place := _between(lists, paths, spans, prints):
            return place
    return None


def _stages(compilation: Compilation, *, with_passes: bool) -> list[Stage]:
    stages = compilation.chain()
    return [s for s in stages if with_passes or s.phase is not Phase.PASSES]


def _has_passes(compilation: Compilation) -> bool:
    return any(stage.phase is Phase.PASSES for stage in compilation.stages)


def _between(
    lists: tuple[list[Stage], list[Stage]],
    paths: Sequence[Sequence[str]],
    spans: tuple[Sequence[int], Sequence[int]],
    prints: _Prints,
) -> _Place | None:
    """The first change among stages that one host lacks, if the hosts differ behind them.

    Where both have changes that the other lacks, the file of each is that of its first one.
    """
    changes: list[Stage] = []
    files = ["", ""]
    behind: list[str] = []
    for side, (begin, end) in enumerate(spans):
        own = paths[side]
        if end:
            behind.append(own[end - 1])
        for number in range(max(begin, 1), end):
            if prints.differ(own[number - 1], own[number]):
                changes.append(lists[side][number])
                files[side] = own[number]
                break
    if len(behind) == 2 and changes and prints.differ(*behind):
        return _Place(min(changes), (files[0], files[1]))
    return None


class _Prints:
    """Fingerprints of files, asked for some at a time: each costs as much as reading a module."""

    def __init__(self, gatherer: Gatherer, paths: Sequence[Sequence[str]]) -> None:
        self._gatherer = gatherer
        self._following = [p for pair in zip_longest(*paths) for p in pair if p is not None]
        self._contents = gatherer.contents(self._following)
        self._place = {path: number for number, path in enumerate(self._following)}

    def differ(self, a: str, b: str) -> bool:
        """Whether two files hold different modules; not where one of them cannot be read."""
        contents = self._contents
        if a not in contents or b not in contents or contents[a] == contents[b]:
            return False
        prints = self._of(a), self._of(b)
        return None not in prints and prints[0] != prints[1]

    def _of(self, path: str) -> str | None:
        found = self._gatherer.found
        if found.of(path, Depth.PRINT) is None and path not in found.problems:
            begin = self._place[path]
            self._gatherer.facts(self._following[begin : begin + _AT_A_TIME], Depth.PRINT)
        facts = found.of(path, Depth.PRINT)
        return None if facts is None else facts.fingerprint


_AT_A_TIME = 16


def _divergence(
    place: _Place, most: Sequence[Compilation], others: Sequence[Sequence[Compilation]]
) -> Divergence:
    one, stage = most[0], place.stage
    lists = [list(most), [compilation for other in others for compilation in other]]
    return Divergence(
        *(one.run, one.group, one.program, one.occurrence),
        [sorted((compilation.host for compilation in each), key=natural) for each in lists],
        stage.label,
        stage.maker,
        stage.phase is Phase.BEGIN,
        list(place.files),
    )


def _add_first_differences(divergences: Sequence[Divergence], gatherer: Gatherer) -> None:
    wanted = [each for each in divergences if len(list(filter(None, each.files))) > 1]
    pairs = [(files[0], files[1]) for e in wanted if (files := list(filter(None, e.files)))]
    results = gatherer.elsewhere(first_difference, pairs, no_difference)
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
