"""Rules about figures that have a limit; without one they do not run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from hloopt.checks.doubts import Doubt, not_partitioned, unknown_trips
from hloopt.checks.expectations.model import Group, Scalar
from hloopt.checks.expectations.scalars import COST, MEMORY, SCHEDULE
from hloopt.checks.expectations.units import BYTES, COUNT, SHARE, Number, Unit
from hloopt.checks.lint.costs import collectives
from hloopt.checks.lint.model import Finding, Rule, RuleOptions, rule
from hloopt.checks.results import NO_IMPACT, Impact, Severity
from hloopt.checks.view import View
from hloopt.ir.instruction import Instruction
from hloopt.options import Bytes, Share, option

_MOST_PLACES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class BytesLimit(RuleOptions):
    """The limit of a size."""

    limit: Bytes | None = option(None, "the most bytes that are fine: 70GiB")


@dataclass(frozen=True, slots=True, kw_only=True)
class CountLimit(RuleOptions):
    """The limit of a count."""

    limit: int | None = option(None, "the most that are fine: 40T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareLimit(RuleOptions):
    """The limit of a share of the makespan."""

    limit: Share | None = option(None, "the largest share of the makespan that is fine: 5%")


def _above(
    words: str,
    figure: Number,
    limit: Number | None,
    unit: Unit,
    impact: Callable[[Number], Impact],
    places: Sequence[Instruction] = (),
) -> Iterator[Finding]:
    """The finding that a figure is above its limit. `impact` is of what it is above by."""
    if limit is None or figure <= limit:
        return
    text = f"{words} {unit.text(figure)}, {unit.text(figure - limit)} above {unit.text(limit)}"
    yield Finding(text, None, impact(figure - limit), related=tuple(places[:_MOST_PLACES]))


def _scalar(group: Group, name: str) -> Scalar:
    scalar = group.scalar(name)
    assert scalar is not None, f"{group.name} has no {name}"
    return scalar


def _limit_of_memory(code: str, name: str, figure: str, words: str) -> Rule:
    """The rule about a figure of memory; what is alive at the peak is related."""
    scalar = _scalar(MEMORY, figure)

    @rule(
        *(code, name, scalar.doubt),
        options=BytesLimit,
        severity=Severity.ERROR,
        compares_with="limit",
    )
    def find(view: View, options: BytesLimit) -> Iterator[Finding]:
        return _above(
            *(words, scalar.read(view), options.limit, BYTES),
            lambda excess: Impact(memory=int(excess)),
            scalar.places(view),
        )

    return find


PEAK_MEMORY = _limit_of_memory("HLL601", "peak-memory", "peak", "the peak of memory is")
TEMPORARIES = _limit_of_memory("HLL602", "temporaries", "temporaries", "temporaries take")
HOST_TEMPORARIES = _limit_of_memory(
    "HLL606", "host-temporaries", "host_temporaries", "temporaries in host memory take"
)
_EXPOSED = _scalar(SCHEDULE, "exposed")
_MAKESPAN = _scalar(SCHEDULE, "makespan")
_FLOPS = _scalar(COST, "flops")


@rule(
    *("HLL603", "exposed-time", _EXPOSED.doubt),
    options=ShareLimit,
    severity=Severity.ERROR,
    compares_with="limit",
)
def exposed_time(view: View, options: ShareLimit) -> Iterator[Finding]:
    """The share of the makespan that the main stream waits, above a limit."""
    makespan = _MAKESPAN.read(view)
    share = _EXPOSED.read(view) / makespan if makespan else 0.0
    return _above(
        *("the part of its time that the program waits is", share, options.limit, SHARE),
        lambda excess: Impact(excess * makespan),
        _EXPOSED.places(view),
    )


@rule(
    *("HLL604", "flops", _FLOPS.doubt),
    options=CountLimit,
    severity=Severity.ERROR,
    compares_with="limit",
)
def flops(view: View, options: CountLimit) -> Iterator[Finding]:
    """The flops of one run above a limit."""
    return _above(
        *("flops of one run are", _FLOPS.read(view), options.limit, COUNT),
        lambda excess: NO_IMPACT,
    )


def _unknown_runs(view: View) -> Doubt | None:
    """Collectives are in loops whose trips are not known."""
    view.subject.costs.module()
    loops = view.subject.costs.unknown_loops
    return unknown_trips(loops) if collectives(view) else None


@rule(
    *("HLL605", "wire-bytes", not_partitioned, _unknown_runs),
    options=BytesLimit,
    severity=Severity.ERROR,
    compares_with="limit",
)
def wire_bytes(view: View, options: BytesLimit) -> Iterator[Finding]:
    """The bytes that one device sends in collectives of one run, above a limit."""
    sent = {c.instruction: c.wire * view.runs(c.instruction).times for c in collectives(view)}
    return _above(
        *("one device sends", sum(sent.values()), options.limit, BYTES),
        lambda excess: Impact(moved=int(excess)),
        sorted(sent, key=lambda instruction: -sent[instruction]),
    )
