"""Programs that were compiled more than once on a host, and what differs between the traces."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import NamedTuple

from hloopt.dumps.facts import Depth, Facts
from hloopt.dumps.folder import Compilation
from hloopt.dumps.gather import Gatherer
from hloopt.dumps.names import Phase


class Change(NamedTuple):
    """A part of the signature that is another one than in the trace before."""

    part: str
    """`parameter 3`, `result 0`, `parameters` (their number), `devices`."""
    before: str
    after: str


@dataclass(slots=True)
class Trace:
    """One more compilation of a program that its host had compiled before."""

    compilation: Compilation
    before: Compilation
    """The trace that it is most like."""
    changes: list[Change] = field(default_factory=list)
    """In the signature; empty where it is the same."""
    is_same: bool = False
    """Whether the whole module is the same, names aside: an executable was not found again."""
    unknown: str = ""
    """Why the signature is not known, where it is not."""


def find_retraces(compilations: Iterable[Compilation], gatherer: Gatherer) -> list[Trace]:
    """Later compilations of one program on one host, each beside the most similar of those before
    it, of the last 32.

    Signatures are those before optimizations. O(traces² · parameters) for each program.
    """
    groups: defaultdict[tuple[str, str, str], list[Compilation]] = defaultdict(list)
    for each in compilations:
        groups[each.run, each.host, each.program].append(each)
    found: list[Trace] = []
    for traces in groups.values():
        known: list[tuple[Compilation, Facts]] = []
        for compilation in traces:
            facts = _first_facts(compilation, gatherer)
            if facts is None:
                continue
            if known and (facts.parameters is None or facts.results is None):
                found.append(Trace(compilation, known[-1][0], unknown=facts.broken_rule))
            elif known:
                found.append(_nearest(compilation, facts, known[-_LOOKED_BACK:]))
            if facts.parameters is not None:
                known.append((compilation, facts))
    return found


_LOOKED_BACK = 32
"""Traces that a later one is compared with."""


def _first_facts(compilation: Compilation, gatherer: Gatherer) -> Facts | None:
    first = compilation.first
    if first is None or first.phase is not Phase.BEGIN:
        return None
    return gatherer.found.of(compilation.hlo(first).path, Depth.FULL)


def _nearest(
    compilation: Compilation, facts: Facts, known: Sequence[tuple[Compilation, Facts]]
) -> Trace:
    def distance(pair: tuple[Compilation, Facts]) -> tuple[int, bool]:
        return len(_changes(pair[1], facts)), pair[1].fingerprint != facts.fingerprint

    before, other = min(reversed(known), key=distance)
    is_same = other.fingerprint == facts.fingerprint
    return Trace(compilation, before, _changes(other, facts), is_same)


def _changes(before: Facts, after: Facts) -> list[Change]:
    found: list[Change] = []
    if before.devices != after.devices:
        found.append(Change("devices", *(_grid(each.devices) for each in (before, after))))
    for part, old, new in (
        ("parameter", before.parameters or (), after.parameters or ()),
        ("result", before.results or (), after.results or ()),
    ):
        for number, (left, right) in enumerate(zip_longest(old, new, fillvalue="")):
            if left != right:
                found.append(Change(f"{part} {number}", left, right))
    return found


def _grid(devices: tuple[int, int]) -> str:
    replicas, partitions = devices
    return f"{replicas}x{partitions}"
