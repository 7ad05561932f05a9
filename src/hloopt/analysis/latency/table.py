"""Times from a table: measured, or of another model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from hloopt.analysis.async_operations import SEND_RECV_DONE, async_form
from hloopt.analysis.latency.model import LatencyModel
from hloopt.diagnostics import HloError
from hloopt.ir import Instruction, Opcode


@dataclass(frozen=True, slots=True)
class CostTable:
    """Cycles by the names of instructions."""

    node: Mapping[str, float]
    latency: Mapping[str, float]
    """From an operation's start to its done, by the name of the start."""

    @classmethod
    def parse(cls, text: str, name: str) -> CostTable:
        """Read `{"node": {"dot.1": 50, …}, "latency": {"all-reduce-start": 225.5, …}}`.

        Raises HloError.
        """
        try:
            value = json.loads(text)
        except ValueError as error:
            raise HloError(f"{name} is no JSON: {error}") from None
        if not isinstance(value, dict) or value.keys() - {"node", "latency"}:
            raise HloError(
                f"{name} is no cost table",
                help='it looks like {"node": {NAME: CYCLES, …}, "latency": {START: CYCLES, …}}',
            )
        return cls(_numbers(value, "node", name), _numbers(value, "latency", name))


def _numbers(value: dict[str, object], key: str, name: str) -> dict[str, float]:
    entries = value.get(key, {})
    if isinstance(entries, dict) and all(
        isinstance(number, int | float) and number >= 0 for number in entries.values()
    ):
        return {entry: float(number) for entry, number in entries.items()}
    raise HloError(f"{name}: '{key}' takes numbers of cycles, 0 or more, by name")


@dataclass(slots=True)
class TableModel:
    """The times of a table; another model's for what the table does not name."""

    table: CostTable
    base: LatencyModel
    missing: dict[Instruction, None] = field(default_factory=dict)
    """Instructions whose cost was asked for and is not in the table."""

    @property
    def cycles_per_microsecond(self) -> float:
        return self.base.cycles_per_microsecond

    def node_cost(self, instruction: Instruction) -> float:
        """O(1)."""
        cost = self.table.node.get(instruction.name)
        if cost is not None:
            return cost
        self.missing[instruction] = None
        return self.base.node_cost(instruction)

    def latency(self, source: Instruction, target: Instruction) -> float:
        """O(1)."""
        latency = self.table.latency.get(source.name)
        if latency is not None and _is_done(target) and target.operands[0] is source:
            return latency
        return self.base.latency(source, target)


def _is_done(instruction: Instruction) -> bool:
    return (
        instruction.opcode in SEND_RECV_DONE or async_form(instruction).outer is Opcode.ASYNC_DONE
    )
