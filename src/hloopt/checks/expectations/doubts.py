"""The reasons why rows that an expectation selects allow no verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from hloopt.checks.doubts import OPTIMIZED, TRIPS, Doubt, names_of, not_partitioned
from hloopt.checks.expectations.model import Row
from hloopt.checks.view import View
from hloopt.diagnostics import counted
from hloopt.ir.opcode import COLLECTIVES, Opcode
from hloopt.query.terms import All, Any, Comparison, Term


def unknown_runs(view: View, rows: Sequence[Row]) -> Doubt | None:
    """Rows are in loops whose trips are not known."""
    unknown = [row.instruction for row in rows if not view.runs(row.instruction).is_known]
    if not unknown:
        return None
    where = counted(len(unknown), "row is", "rows are")
    return Doubt(f"{where} in loops of unknown trip counts: {names_of(unknown)}", TRIPS)


def selection_doubt(view: View, term: Term | None) -> Doubt | None:
    """Instructions that a selector asks for are yet to be made by XLA at this stage."""
    comparisons = list(asked(term))
    if any(_asks_for_collectives(comparison) for comparison in comparisons):
        return not_partitioned(view)
    copies = view.subject.stage.copies_inserted
    if copies.holds is not True and any(map(_asks_for(Opcode.COPY), comparisons)):
        return Doubt(f"copies are not inserted yet: {copies.evidence}", OPTIMIZED)
    fused = view.subject.stage.fused
    if fused.holds is False and any(map(_asks_for(Opcode.FUSION), comparisons)):
        return Doubt(f"the module is not fused: {fused.evidence}", OPTIMIZED)
    return None


def asked(term: Term | None) -> Iterator[Comparison]:
    """The comparisons that a selected instruction may hold, those under `not` aside."""
    if isinstance(term, Comparison):
        yield term
    elif isinstance(term, All | Any):
        for part in term.terms:
            yield from asked(part)


def _asks_for_collectives(comparison: Comparison) -> bool:
    if comparison.key.name == "is-collective":
        return True
    return any(_accepts(comparison, opcode) for opcode in COLLECTIVES)


def _asks_for(opcode: Opcode) -> Callable[[Comparison], bool]:
    return lambda comparison: _accepts(comparison, opcode)


def _accepts(comparison: Comparison, opcode: str) -> bool:
    """Whether an opcode is named, by itself or with a star; not where all are fine."""
    accepts = comparison.accepts
    if comparison.key.name != "opcode" or accepts is None:
        return False
    return bool(accepts(opcode)) and not accepts(Opcode.ADD)
