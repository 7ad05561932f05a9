"""Notices for readers of figures about the stage a module is at, in a line each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from hloopt.analysis.stage import Fact, Stage
from hloopt.diagnostics import counted

if TYPE_CHECKING:
    from rich.console import Console

_FACTS = ("partitioned", "flat", "fused", "copies_inserted", "scheduled", "ordered")
_PARTITIONED_TEXT = (
    "for those of one device give compiled.as_text(), or the dump after spmd-partitioning"
)


def partition_notices(stage: Stage) -> tuple[str, ...]:
    """A sentence where figures may be of the whole program instead of one device."""
    fact, count = stage.partitioned, stage.devices
    if fact.holds is False:
        return (
            f"not partitioned: figures are of the whole program over {counted(count, 'device')}; "
            + _PARTITIONED_TEXT,
        )
    if fact.holds is None:
        return (
            f"not known whether it is partitioned ({fact.evidence}): if it is not, figures are of "
            f"the whole program over {counted(count, 'device')}; {_PARTITIONED_TEXT}",
        )
    return ()


def cost_notices(stage: Stage, *, estimates_fusion: bool = False) -> tuple[str, ...]:
    """Sentences where bytes and times are not those of what a device runs in the end.

    With `estimates_fusion` times are of kernels that fusion would make.
    """
    if stage.fused.holds is not False:
        return partition_notices(stage)
    figures = "values that fusion keeps out of memory count"
    if estimates_fusion:
        figures = "times before fusion are estimates of what a compiler that fuses loops would run"
    return (
        *partition_notices(stage),
        f"not fused ({stage.fused.evidence}): {figures}; for XLA's own figures give the text after "
        "optimizations",
    )


def partition_doubt(stage: Stage) -> str:
    """The reason why figures are not known to be those of one device, as a clause; else empty."""
    if stage.partitioned.holds is False:
        return f"the module is not partitioned over its {counted(stage.devices, 'device')}"
    if stage.partitioned.holds is None:
        return "it is not known whether the module is partitioned"
    return ""


def why_not_compared(stages: Sequence[Stage]) -> str:
    """The reason why figures of versions of a program cannot be compared, as a clause; else
    empty."""
    known = [stage.partitioned.holds for stage in stages]
    if False not in known or set(known) == {False}:
        return ""
    names = ("the first", "the second") if len(known) == 2 else tuple(map(str, range(len(known))))
    whole = names[known.index(False)]
    part = next(name for name, holds in zip(names, known, strict=True) if holds is not False)
    return f"{whole} is not partitioned, {part} is: figures of one are of all devices"


def render_notices(notices: Iterable[str], console: Console, width: int | None = None) -> None:
    """Print notices, each begun with a mark that can be searched for."""
    from rich.text import Text

    for notice in notices:
        console.print(Text.assemble(("note: ", "yellow"), notice), width=width)


def stage_to_json(stage: Stage) -> dict[str, Any]:
    """The answers, each with its evidence; `value` null where the text does not tell."""
    return {
        "devices": stage.devices,
        **{name: _fact(getattr(stage, name)) for name in _FACTS},
        "memory_spaces": sorted(stage.memory_spaces),
        "tiled_layouts": stage.tiled is not None,
    }


def _fact(fact: Fact) -> dict[str, Any]:
    return {"value": fact.holds, "evidence": fact.evidence}
