"""The instructions that an option of a pass names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from hloopt.diagnostics import did_you_mean
from hloopt.ir.instruction import Instruction
from hloopt.pass_framework.base import PassContext


def selected(
    candidates: Iterable[Instruction], names: Sequence[str], what: str, context: PassContext
) -> Iterator[Instruction]:
    """Yield the candidates that `names` has, all of them where it is empty.

    A name, with or without `%`, that no candidate has becomes a note that calls it no `what`, so
    that a misspelt one is not taken for one that could not be changed. O(candidates + names).
    """
    if not names:
        yield from candidates
        return
    by_name = {candidate.name: candidate for candidate in candidates}
    wanted = dict.fromkeys(name.removeprefix("%") for name in names)
    for name in wanted:
        if name not in by_name:
            help = did_you_mean(name, by_name)
            context.note(f"no {what} has the name %{name}" + (f"; {help}" if help else ""))
    for name, candidate in by_name.items():
        if name in wanted:
            yield candidate
