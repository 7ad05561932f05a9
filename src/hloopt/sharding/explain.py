"""Explain the collectives of a partitioned program by the program for all devices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from hloopt.analysis.cost import CostAnalysis
from hloopt.analysis.cost.runs import Runs, runs_with_parts
from hloopt.analysis.inventory.collectives import Collective, collectives_of
from hloopt.analysis.source_lines import SourceLine, SourceLines
from hloopt.ir.attributes.typed import channel_of
from hloopt.ir.attributes.values.replica_groups import Mesh
from hloopt.ir.computation import Computation
from hloopt.ir.devices.collective_devices import device_groups
from hloopt.ir.devices.device_counts import device_counts
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.leaf_shards import shardy_meshes
from hloopt.sharding.axes import axes_of_groups
from hloopt.sharding.belonging import check_belonging
from hloopt.sharding.candidates import Candidate, Candidates, Role
from hloopt.sharding.causes import Cause, Causes, Kind
from hloopt.sharding.likeness import Likeness
from hloopt.sharding.matching import Matching
from hloopt.sharding.ordering import best_totals
from hloopt.sharding.shapes import DeviceShapes
from hloopt.sharding.warnings import RematWarning, is_about

_CLEAR = 2.0
"""Least lead of the first candidate that is not called ambiguous."""
_LIKELY = 4.0
"""Candidates that are further behind the first one are not listed."""
_UNKNOWN = Cause(Kind.UNKNOWN, None, "", "", False, "")


class Confidence(StrEnum):
    """How sure it is which instruction made a collective."""

    EXACT = "exact"
    """The collective is one of the program, or the partitioner itself told."""
    CLEAR = "clear"
    AMBIGUOUS = "ambiguous"
    """Other candidates are nearly as likely, or there is none."""


@dataclass(slots=True)
class Explanation:
    """The instruction of the program that made a collective, and the reason."""

    collective: Collective
    origin: Instruction | None
    """None where no candidate was found."""
    confidence: Confidence
    candidates: list[Instruction]
    """The likely origins, the first one included; empty where that one is sure."""
    cause: Cause
    axes: tuple[str, ...]
    """The axes of the mesh along which devices exchange data; empty where they are not known."""
    line: SourceLine | None
    runs: Runs
    warning: RematWarning | None
    """The partitioner's own warning of full rematerialization."""

    @property
    def bytes(self) -> int:
        """Bytes that a device sends in all runs."""
        return self.collective.wire * self.runs.times

    @property
    def is_full_remat(self) -> bool:
        return self.cause.is_full_remat or self.warning is not None


def explain(
    before: Module,
    after: Module,
    *,
    mesh: Mesh | None = None,
    warnings: Iterable[RematWarning] = (),
    known: Mapping[Instruction, Instruction] | None = None,
) -> list[Explanation]:
    """The collectives of `after`, which the partitioner made of `before`, the costliest first.

    `mesh` names the axes; without it those in the header of `before` do. `known` has origins that
    the partitioner told (`tags.origins_by_tag`). Raises HloError where the texts do not belong
    together. Near-linear in the instructions of both.
    """
    shapes = DeviceShapes(before.num_partitions)
    check_belonging(before, after, shapes)
    explainer = _Explainer(before, after, shapes, mesh or only_mesh(before), [*warnings])
    return explainer.run(known or {})


def only_mesh(module: Module) -> Mesh | None:
    """The mesh in the header of a module for all of its devices, if there is one such mesh."""
    count = module.num_partitions
    meshes = [mesh for mesh in shardy_meshes(module).values() if mesh.device_count == count]
    return meshes[0] if len(meshes) == 1 else None


class _Explainer:
    def __init__(
        self,
        before: Module,
        after: Module,
        shapes: DeviceShapes,
        mesh: Mesh | None,
        warnings: list[RematWarning],
    ) -> None:
        likeness = Likeness(shapes)
        self._matching = Matching.of(before, after, likeness)
        self._collectives = collectives_of(after)
        self._candidates = Candidates(
            *(self._matching, likeness, shapes), tells_visited=_tells_visited(self._collectives)
        )
        self._causes = Causes(self._matching, shapes, mesh)
        self._mesh = mesh
        self._warnings = warnings
        self._partitions = shapes.partitions
        self._known: Mapping[Instruction, Instruction] = {}
        self._lines = SourceLines(before)
        self._runs = runs_with_parts(after, CostAnalysis(after))
        self._grid = device_counts(after)

    def run(self, known: Mapping[Instruction, Instruction]) -> list[Explanation]:
        self._known = known
        found = self._collectives
        places: dict[Computation | None, list[Collective]] = {}
        for collective in found:
            anchor = self._candidates.anchor(collective.instruction)
            places.setdefault(None if anchor is None else anchor.parent, []).append(collective)
        explained = {
            collective: explanation
            for members in places.values()
            for collective, explanation in self._explain(members)
        }
        return sorted((explained[c] for c in found), key=lambda e: -e.bytes)

    def _explain(self, members: list[Collective]) -> list[tuple[Collective, Explanation]]:
        """The collectives of one computation, which the partitioner numbered as it made them."""
        members.sort(key=lambda c: channel_of(c.instruction) or 0)
        candidates = [self._weighed(c.instruction) for c in members]
        order = self._matching.order
        totals = best_totals([[(order[c.instruction], c.score) for c in row] for row in candidates])
        return [
            (collective, self._explanation(collective, row, own))
            for collective, row, own in zip(members, candidates, totals, strict=True)
        ]

    def _weighed(self, collective: Instruction) -> list[Candidate]:
        """The candidates of a collective; the one that is known alone, if there is one."""
        found = self._candidates.of(collective)
        origin = self._known.get(collective)
        if origin is None:
            return found
        own = next((c for c in found if c.instruction is origin), None)
        return [own or Candidate(origin, Role.BETWEEN, 0.0)]

    def _explanation(
        self, collective: Collective, candidates: Sequence[Candidate], totals: Sequence[float]
    ) -> Explanation:
        instruction = collective.instruction
        ranked = sorted(zip(totals, candidates, strict=True), key=lambda pair: -pair[0])
        cause, confidence, origin, line = _UNKNOWN, Confidence.AMBIGUOUS, None, None
        if ranked:
            best, chosen = ranked[0]
            origin = chosen.instruction
            line = self._lines.of(origin)
            anchor = self._candidates.anchor(instruction) or instruction
            sources = self._candidates.sources(anchor)
            cause = self._causes.of(instruction, anchor, sources, chosen)
            confidence = _confidence([total for total, _ in ranked], chosen)
            if instruction in self._known:
                confidence = Confidence.EXACT
        others = [c.instruction for total, c in ranked if total > best - _LIKELY] if ranked else []
        return Explanation(
            *(collective, origin, confidence),
            others if confidence is Confidence.AMBIGUOUS else [],
            *(cause, self._axes(instruction), line),
            self._runs.get(instruction.parent, Runs(0, True)),
            self._warning(collective, cause, origin),
        )

    def _axes(self, collective: Instruction) -> tuple[str, ...]:
        if self._mesh is None:
            return ()
        return axes_of_groups(device_groups(collective, self._grid), self._mesh)

    def _warning(
        self, collective: Collective, cause: Cause, origin: Instruction | None
    ) -> RematWarning | None:
        values = [value for value in (cause.value, origin) if value is not None]
        if collective.kind is not Opcode.ALL_GATHER or cause.kind is Kind.WRITTEN:
            return None
        for warning in self._warnings:
            if any(is_about(warning, value, self._partitions) for value in values):
                return warning
        return None


def _tells_visited(collectives: Iterable[Collective]) -> bool:
    """Whether collectives have the metadata of what was visited: newer partitioners mark them, and
    give them that of the operand."""
    return not any(
        "is_spmd_generated" in c.instruction.attributes.get("frontend_attributes", "")
        for c in collectives
    )


def _confidence(totals: Sequence[float], chosen: Candidate) -> Confidence:
    if chosen.role is Role.WRITTEN:
        return Confidence.EXACT
    if chosen.score < 0:
        return Confidence.AMBIGUOUS
    is_clear = len(totals) == 1 or totals[0] - totals[1] >= _CLEAR
    return Confidence.CLEAR if is_clear else Confidence.AMBIGUOUS
