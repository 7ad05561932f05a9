"""The difference of two modules as JSON."""

from __future__ import annotations

from dataclasses import asdict

from hloopt.reports.diff.changes import Difference, InstructionLine
from hloopt.reports.diff.findings import ComputationDiff, ModuleDiff
from hloopt.reports.diff.groups import ChangeGroup


def diff_to_json(diff: ModuleDiff) -> dict[str, object]:
    """`diff` as JSON values, nothing shortened. O(size of the difference)."""
    totals = diff.instruction_totals()
    return {
        "identical": diff.is_identical,
        "ignored": list(diff.ignored),
        "renamed": asdict(diff.renamed),
        "before": {
            "module": diff.before,
            "computations": diff.computations_before,
            "instructions": diff.instructions_before,
        },
        "after": {
            "module": diff.after,
            "computations": diff.computations_after,
            "instructions": diff.instructions_after,
        },
        "totals": {
            "computations": {kind.value: len(diff.computations_of(kind)) for kind in Difference},
            "instructions": {
                **{kind.value: number for kind, number in totals.items()},
                "moved": diff.count_moved(),
            },
        },
        "header": [asdict(change) for change in diff.attributes],
        "stack_frames": asdict(diff.stack_frames) if diff.stack_frames is not None else None,
        "opcodes": [
            {
                "opcode": change.opcode,
                "before": change.before,
                "after": change.after,
                "change": change.change,
            }
            for change in diff.opcodes
        ],
        "computations": [_computation_to_json(computation) for computation in diff.computations],
        "groups": [_group_to_json(group) for group in diff.groups],
    }


def _computation_to_json(computation: ComputationDiff) -> dict[str, object]:
    return {
        "kind": computation.kind.value,
        "before": computation.before,
        "after": computation.after,
        "same_as": computation.same_as,
        "instructions_before": computation.size_before,
        "instructions_after": computation.size_after,
        "added": [_line_to_json(line) for line in computation.added],
        "removed": [_line_to_json(line) for line in computation.removed],
        "replaced": [{"before": before, "after": after} for before, after in computation.replaced],
        "changed": [
            {
                "kind": change.kind.value,
                "what": list(change.what),
                "before": _line_to_json(change.before),
                "after": _line_to_json(change.after),
            }
            for change in computation.changed
        ],
        "moved": computation.moved,
        "groups": computation.groups,
    }


def _group_to_json(group: ChangeGroup) -> dict[str, object]:
    return {
        "kind": group.kind.value,
        "opcode": group.opcode,
        "what": list(group.what),
        "count": group.count,
        "before": None if group.before is None else _line_to_json(group.before),
        "after": None if group.after is None else _line_to_json(group.after),
        "places": [asdict(place) for place in group.places],
    }


def _line_to_json(line: InstructionLine) -> dict[str, str]:
    return {"name": line.name, "opcode": line.opcode, "text": line.text}
