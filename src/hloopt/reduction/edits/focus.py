"""Keep what is near the instructions that a failure is about."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from typing import ClassVar

from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.reduction.edits.edit import Count
from hloopt.reduction.edits.removal import remove_from
from hloopt.reduction.edits.session import EditSession
from hloopt.reduction.edits.substitutes import NotApplicable

_DEPTHS = (1, 2, 4, 8)
_DEPTHS_OF_ONE = (2, 6)
_MOST_SINGLE = 30


class Focus:
    """Keep the neighbourhood of some instructions, and what calls their computations.

    The instructions are those that the outcome of the input names: a guess, which costs little
    where it is wrong, because what it leaves is small.
    """

    what: ClassVar[Count] = Count(
        "time cut down to what the failure names", "times cut down to what the failure names"
    )
    one_by_one: ClassVar[bool] = True

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(dict.fromkeys(names))

    def parts(self, module: Module) -> Sequence[Hashable]:
        """Whether the computation becomes the entry, the steps that are kept, and the names."""
        present = {i.name for i in module.instructions()}
        names = tuple(name for name in self._names if name in present)
        if not names:
            return []
        chosen = [(names, depth) for depth in _DEPTHS]
        if len(names) > 1:
            singles = names[:_MOST_SINGLE]
            chosen += [((name,), depth) for depth in _DEPTHS_OF_ONE for name in singles]
        return [(cuts, *each) for each in chosen for cuts in (True, False)]

    def apply(self, session: EditSession, parts: Collection[Hashable]) -> None:
        """Remove what is further away."""
        cuts, names, depth = _part(parts)
        wanted = {*names}
        found = [i for i in session.module.instructions() if i.name in wanted]
        if cuts:
            parent = found[0].parent
            if parent.is_entry or any(i.parent is not parent for i in found):
                raise NotApplicable
            session.module.entry = parent
            parent.execution_thread = "main"
            session.module.changed()
        kept = near(found, depth)
        if not cuts:
            _keep_callers(kept, found)
        by_parent: dict[Computation, set[Instruction]] = {}
        for instruction in kept:
            by_parent.setdefault(instruction.parent, set()).add(instruction)
        for computation, stay in by_parent.items():
            going = {
                i
                for i in computation.instructions
                if i not in stay and i.opcode is not Opcode.PARAMETER
            }
            remove_from(session, computation, going)


def _part(parts: Collection[Hashable]) -> tuple[bool, tuple[str, ...], int]:
    part = next(iter(parts))
    assert isinstance(part, tuple)
    cuts, names, depth = part
    return cuts, names, depth


def near(instructions: Iterable[Instruction], depth: int) -> dict[Instruction, None]:
    """Instructions with those that they depend on, or that use them, so many steps away.

    O(instructions reached).
    """
    kept = dict.fromkeys(instructions)
    follows: tuple[Callable[[Instruction], Iterable[Instruction]], ...] = (
        lambda i: i.operands,
        lambda i: i.users,
    )
    for follow in follows:
        front = list(kept)
        for _ in range(depth):
            front = [i for each in front for i in follow(each) if i not in kept]
            kept.update(dict.fromkeys(front))
    return kept


def _keep_callers(kept: dict[Instruction, None], found: Iterable[Instruction]) -> None:
    waiting = [i.parent for i in found]
    seen: set[Computation] = set()
    while waiting:
        computation = waiting.pop()
        if computation in seen:
            continue
        seen.add(computation)
        for caller in computation.callers:
            kept[caller] = None
            waiting.append(caller.parent)
