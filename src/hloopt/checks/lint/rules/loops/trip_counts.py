"""Rules about the number of trips that loops make."""

from __future__ import annotations

from collections.abc import Iterator

from hloopt.analysis.inventory.collectives import Collective
from hloopt.analysis.loops.trip_count import loop_trips
from hloopt.checks.doubts import not_partitioned
from hloopt.checks.lint.costs import collectives
from hloopt.checks.lint.loops import reached_loops
from hloopt.checks.lint.model import Finding, RuleOptions, rule
from hloopt.checks.results import Severity
from hloopt.checks.view import View
from hloopt.diagnostics import counted
from hloopt.ir.callers import with_callers
from hloopt.ir.computation import Computation

_MOST_RELATED = 5


@rule("HLL503", "unknown-trip-count", not_partitioned)
def unknown_trip_count(view: View, options: RuleOptions) -> Iterator[Finding]:
    """Loops with collectives that make nobody knows how many trips. O(instructions), and the
    trip counts."""
    inside = _collectives_inside(view)
    for loop in reached_loops(view):
        found = inside.get(loop.called[0])
        if found is None:
            continue
        trips = loop_trips(loop)
        if trips.count is None:
            yield Finding(
                f"the trip count of %{loop.name} is not known, and a trip has "
                f"{counted(len(found), 'collective')}: {trips.reason}",
                loop,
                related=tuple(each.instruction for each in found[:_MOST_RELATED]),
            )


@rule("HLL507", "wrong-trip-count", severity=Severity.ERROR)
def wrong_trip_count(view: View, options: RuleOptions) -> Iterator[Finding]:
    """Loops whose known_trip_count is not what body and condition tell. Costs what trip counts
    do."""
    for loop in reached_loops(view):
        trips = loop_trips(loop)
        if trips.disagrees:
            assert trips.computed is not None  # else they do not disagree
            yield Finding(
                f"the known_trip_count of %{loop.name} is {trips.stated:,}, but its body and "
                f"condition make {counted(trips.computed, 'trip')}",
                loop,
            )


def _collectives_inside(view: View) -> dict[Computation, list[Collective]]:
    """The collectives that a computation and what it calls have, without those that send nothing.

    O(collectives times the depth of calls).
    """
    own: dict[Computation, list[Collective]] = {}
    for each in collectives(view):
        if each.wire:
            own.setdefault(each.instruction.parent, []).append(each)
    found: dict[Computation, list[Collective]] = {}
    for computation, some in own.items():
        for caller in with_callers((computation,)):
            found.setdefault(caller, []).extend(some)
    return found
