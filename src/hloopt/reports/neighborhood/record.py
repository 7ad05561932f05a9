"""The report on an instruction and what is around it as plain data."""

from __future__ import annotations

from typing import Any

from hloopt.reports.console.units import CycleUnit
from hloopt.reports.matches.record import instruction_to_json
from hloopt.reports.neighborhood.details import Details, ModuleDetails
from hloopt.reports.neighborhood.findings import Neighbor, Neighborhood
from hloopt.reports.neighborhood.region import Region


def neighborhood_to_json(
    found: Neighborhood, details: ModuleDetails, unit: CycleUnit | None
) -> dict[str, Any]:
    """The instruction and both trees; docs/json.md describes the keys."""
    record: dict[str, Any] = {
        "module": details.module.name,
        **({} if unit is None else unit.to_json()),
        "instruction": details_to_json(details.of(found.instruction)),
    }
    for key, tree in (("operands", found.operands), ("users", found.users)):
        record[key] = None if tree is None else _below(tree, details)
    return record


def region_to_json(
    region: Region, details: ModuleDetails, unit: CycleUnit | None
) -> dict[str, Any]:
    """All instructions of a region, and what is around it."""
    parts = (("reads", region.reads), ("gives", region.gives), ("inside", region.instructions))
    return {
        "module": details.module.name,
        **({} if unit is None else unit.to_json()),
        **{
            key: [details_to_json(details.of(each)) for each in instructions]
            for key, instructions in parts
        },
    }


def details_to_json(details: Details) -> dict[str, Any]:
    """The details of one instruction."""
    instruction, runs, time = details.instruction, details.runs, details.time
    return {
        **instruction_to_json(instruction),
        "position": details.position,
        "runs": None if runs is None else runs.times,
        "runs_known": runs is not None and runs.is_known,
        "time": None if time is None else time.cycles,
        "origin": None if time is None else time.origin.value,
        "alive_at_peak": details.is_alive_at_peak,
        "calls": [computation.name for computation in instruction.called],
    }


def _below(tree: Neighbor, details: ModuleDetails) -> list[dict[str, Any]]:
    return [
        {
            **details_to_json(details.of(node.instruction)),
            "shown_above": node.is_above,
            "more": node.left_out,
            "is_end": node.is_end,
            "below": _below(node, details),
        }
        for node in tree.below
    ]
