"""Rules about copies of the state of loops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from hloopt.checks.doubts import OPTIMIZED, Doubt, bytes_doubt
from hloopt.checks.lint.costs import total, work_bytes, work_seconds
from hloopt.checks.lint.fixes import FIXES
from hloopt.checks.lint.loops import repeated_loops
from hloopt.checks.lint.model import Finding, RuleOptions, rule
from hloopt.checks.results import Impact
from hloopt.checks.view import View
from hloopt.diagnostics import HloError, counted, part_of
from hloopt.ir.clone import clone_module
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape_size import shape_bytes
from hloopt.memory.backends import GPU, backend_of
from hloopt.options import Bytes, Share, option
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.reports.console.units import human_bytes, human_share

_MIB = 1 << 20
_MOST_RELATED = 5


def _copies_missing(view: View) -> Doubt | None:
    """The copies of the state are not those that XLA makes."""
    inserted = view.subject.stage.copies_inserted
    if inserted.holds is True:
        return bytes_doubt(view)
    return Doubt(f"copies may not be inserted yet: {inserted.evidence}", OPTIMIZED)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopCopyOptions(RuleOptions):
    """Options of `loop-copies-state`."""

    size: Bytes = option(_MIB, "the least bytes of an array that counts")
    share: Share = option(
        Share(0.01), "the least share of the module's bytes that is worth a finding"
    )


@rule("HLL505", "loop-copies-state", _copies_missing, options=LoopCopyOptions)
def loop_copies_state(view: View, options: LoopCopyOptions) -> Iterator[Finding]:
    """Loops that copy elements of their state in every trip.

    O(instructions), and where there are some once the pass that removes copies.
    """
    whole = view.subject.costs.module().bytes_accessed
    for loop, trips in repeated_loops(view).items():
        copies = [each for each in _state_copies(loop) if shape_bytes(each.shape) >= options.size]
        moved = sum(work_bytes(view, copy) for copy in copies)
        if not copies or moved < options.share * whole:
            continue
        copies.sort(key=lambda copy: -shape_bytes(copy.shape))
        size = sum(shape_bytes(copy.shape) for copy in copies)
        found = _reason(view, copies)
        costly = found.needless or copies
        yield Finding(
            f"%{loop.name} copies {human_bytes(size)} of its state in each of its "
            f"{counted(trips // view.runs(loop).times, 'trip')}, "
            f"{human_share(moved / whole)} of the bytes of the module{found.text}",
            loop,
            total(Impact(work_seconds(view, c), work_bytes(view, c)) for c in costly),
            found.remedy,
            tuple(copies[:_MOST_RELATED]),
        )


def _state_copies(loop: Instruction) -> list[Instruction]:
    """The copies in a body of what a trip gets, or of what it leaves to the next.

    A copy to another layout or memory is not one of these: copy insertion makes none.
    """
    body = loop.called[0]
    return [
        copy
        for copy in body.instructions
        if copy.opcode is Opcode.COPY
        and copy.shape is copy.operands[0].shape
        and (_is_element(copy.operands[0]) or body.root in copy.users)
    ]


def _is_element(value: Instruction) -> bool:
    """Whether a value of a body is an element of the state, as the trip gets it."""
    while value.opcode is Opcode.BITCAST:
        value = value.operands[0]
    return value.opcode is Opcode.GET_TUPLE_ELEMENT and value.operands[0].opcode is Opcode.PARAMETER


class _Reason(NamedTuple):
    """The reason why copies stand there."""

    text: str = ""
    """The end of a sentence."""
    remedy: str = ""
    needless: Sequence[Instruction] = ()
    """The copies that nobody needs."""


def _reason(view: View, copies: Sequence[Instruction]) -> _Reason:
    kept = view.once("copies that stay", lambda: _copies_that_stay(view))
    if kept is None:
        return _Reason()
    gone = [copy for copy in copies if copy.name not in kept]
    if gone:
        return _Reason(
            f": {part_of(len(gone), len(copies), 'copy', 'copies')} not needed",
            f"Run `hloopt opt --passes {FIXES['HLL505'].passes}`.",
            gone,
        )
    return _Reason(f": %{copies[0].name} stays, for {kept[copies[0].name]}")


def _copies_that_stay(view: View) -> dict[str, str] | None:
    """The copies that the pass that removes them leaves, by name, with its reason.

    None where it refuses the module.
    """
    module, _ = clone_module(view.subject.module)
    alias_info = "gpu" if backend_of(module) is GPU else "default"
    context = PassContext()
    try:
        create_pass("remove-unnecessary-copies", {"alias_info": alias_info}).run(module, context)
    except HloError:
        return None
    return {
        remark.instruction: remark.reason.removeprefix("it stays: ") for remark in context.remarks
    }
