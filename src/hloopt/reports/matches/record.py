"""The report on selected instructions as plain data."""

from __future__ import annotations

from typing import Any

from hloopt.ir.instruction import Instruction
from hloopt.query import values
from hloopt.reports.matches.findings import Matches


def matches_to_json(found: Matches, *, is_listed: bool) -> dict[str, Any]:
    """Counts, and where `is_listed` each instruction; docs/json.md describes the keys."""
    record: dict[str, Any] = {
        "module": found.module,
        "count": len(found.instructions),
        "opcodes": found.opcodes,
        "ambiguous": found.is_ambiguous,
    }
    if is_listed:
        record["instructions"] = [
            instruction_to_json(instruction) for instruction in found.instructions
        ]
    return record


def instruction_to_json(instruction: Instruction) -> dict[str, Any]:
    """The facts that an instruction itself has."""
    return {
        "name": instruction.name,
        "computation": instruction.parent.name,
        "opcode": str(instruction.opcode),
        "shape": instruction.shape.text,
        "bytes": values.size(instruction.shape)[0],
        "op_name": next(iter(values.op_name(instruction)), None),
        "source": next(iter(values.source(instruction)), None),
    }
