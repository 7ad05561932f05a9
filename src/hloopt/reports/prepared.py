"""A module in the form that models of memory and schedules are for: flat, with its copies."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from hloopt.analysis.stage import Stage
from hloopt.diagnostics import counted
from hloopt.ir import Module, Opcode
from hloopt.ir.clone import clone_module
from hloopt.memory.analysis import MemoryAnalysis
from hloopt.memory.backends import Backend, backend_of
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.passes.call_graph.call_inliner import inline_clone
from hloopt.passes.copy_insertion import insert_copies
from hloopt.reports.stage_notices import cost_notices, partition_doubt


@dataclass(frozen=True, slots=True)
class PreparedModule:
    """The module to measure in place of a given one, and the limits of its figures."""

    module: Module
    """The module itself, or a flattened copy with copies inserted."""
    stage: Stage
    """Of the module as it was given."""
    notices: tuple[str, ...]
    """Sentences for people: what figures are of, and what to give for better ones."""
    doubts: tuple[str, ...]
    """Clauses that say why figures allow no verdict; empty where they do."""

    @classmethod
    def of(
        cls, module: Module, *, backend: Backend | None = None, estimates_fusion: bool = False
    ) -> PreparedModule:
        """Flatten the call graph and insert copies as XLA does before it assigns buffers.

        That is done on a copy of the module; one that needs neither, or is scheduled, is taken as
        it is. With `estimates_fusion` figures are of kernels that fusion would make, and calls are
        inlined before. Near-linear. Raises HloError for a module whose calls or shapes make no
        sense.
        """
        stage = Stage.of(module)
        backend = backend or backend_of(module)
        notices = [
            *cost_notices(stage, estimates_fusion=estimates_fusion),
            *_layout_notices(stage, backend),
        ]
        doubts = list(filter(None, (partition_doubt(stage), _layout_doubt(stage, backend))))
        if estimates_fusion and stage.fused.holds is False and not module.is_scheduled:
            module = _with_calls_inlined(module)
        if not stage.ordered.holds:
            doubts.append("the module is not scheduled")
        is_flat = stage.flat.holds is not False
        if is_flat and stage.copies_inserted.holds:
            return cls(module, stage, tuple(notices), tuple(doubts))
        prepared, count = _with_copies(module, backend)
        if is_flat and not count and not _lacks_copies(module, backend):
            return cls(module, stage, tuple(notices), tuple(doubts))
        notices.append(_copies_notice(stage, count))
        doubts.append("copies are not inserted yet" if is_flat else "calls are not flattened yet")
        return cls(prepared, stage, tuple(notices), tuple(doubts))


def _with_calls_inlined(module: Module) -> Module:
    """The module, or a clone without calls if there are any: XLA inlines them before fusion."""
    is_calling = any(True for _ in module.instructions(Opcode.CALL))
    return inline_clone(module).module if is_calling else module


def _with_copies(module: Module, backend: Backend) -> tuple[Module, int]:
    """A flattened copy with copies inserted, and how many these are."""
    prepared, _ = clone_module(module)
    create_pass("flatten-call-graph").run(prepared, PassContext(wants_remarks=False))
    own = _copies(prepared)
    insert_copies(prepared, backend=backend)
    return prepared, (_copies(prepared) - own).total()


def _lacks_copies(module: Module, backend: Backend) -> bool:
    """Whether values are overwritten while needed, whatever copies there are."""
    return MemoryAnalysis.of(module, backend=backend).ranges.conflicts > 0


def _copies(module: Module) -> Counter[tuple[str, str]]:
    """The copies in each computation by shape: insertion replaces those there are by its own."""
    return Counter((i.parent.name, i.shape.text) for i in module.instructions(Opcode.COPY))


def _copies_notice(stage: Stage, count: int) -> str:
    flattened = "flattened and " if stage.flat.holds is False else ""
    copies = counted(count, "copy", "copies") if count else "its copies"
    return (
        f"before copy insertion: figures are of the module {flattened}with {copies} inserted; for "
        "XLA's own give the text after optimizations"
    )


def _layout_notices(stage: Stage, backend: Backend) -> list[str]:
    notices = []
    if unknown := _unknown_spaces(stage, backend):
        names = ", ".join(f"S({space}) (%{stage.memory_spaces[space].name})" for space in unknown)
        notices.append(
            f"memory spaces that are not modelled: {names}; their values share a heap with the rest"
        )
    if stage.tiled is not None and not backend.sizes.pads_tiles:
        notices.append(
            f"layouts have tiles (%{stage.tiled.name}), which are not padded: sizes are too small"
        )
    return notices


def _layout_doubt(stage: Stage, backend: Backend) -> str:
    if _unknown_spaces(stage, backend):
        return "its memory spaces are not modelled"
    if stage.tiled is not None and not backend.sizes.pads_tiles:
        return "the tiles of its layouts are not padded"
    return ""


def _unknown_spaces(stage: Stage, backend: Backend) -> list[int]:
    return sorted(stage.memory_spaces.keys() - backend.spaces.keys())
