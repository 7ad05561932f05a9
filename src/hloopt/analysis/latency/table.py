"""Times from a table: measured, or of another model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from hloopt.analysis.async_operations import OWN_DONES, SEND_RECV_DONE, SYNC_COLLECTIVES
from hloopt.analysis.latency.files import LONGEST, is_time, load_json
from hloopt.analysis.latency.model import LatencyModel, Origin, TableTime, Time, as_guess
from hloopt.diagnostics import HloError
from hloopt.ir import Instruction, Opcode
from hloopt.targets.target import Target

_HELP = 'it looks like {"node": {NAME: MICROSECONDS, …}, "latency": {START: MICROSECONDS, …}}'


@dataclass(frozen=True, slots=True)
class CostTable:
    """Microseconds by the names of instructions."""

    node: Mapping[str, float]
    latency: Mapping[str, float]
    """From an operation's start to its done, by the name of the start."""

    @classmethod
    def parse(cls, text: str, name: str) -> CostTable:
        """Read `{"node": {"dot.1": 50, …}, "latency": {"all-reduce-start": 225.5, …}}`.

        Raises HloError.
        """
        value = load_json(text, name, _HELP)
        if not isinstance(value, dict) or value.keys() - {"node", "latency"}:
            raise HloError(f"{name} is not a cost table", help=_HELP)
        return cls(_numbers(value, "node", name), _numbers(value, "latency", name))


def _numbers(value: dict[str, object], key: str, name: str) -> dict[str, float]:
    entries = value.get(key, {})
    if isinstance(entries, dict) and all(is_time(number) for number in entries.values()):
        return {entry: float(number) for entry, number in entries.items()}
    raise HloError(
        f"{name}: '{key}' takes microseconds by name, 0 or more, at most {LONGEST:g}",
        help=_HELP,
    )


@lru_cache(maxsize=1 << 14)
def _measured(cycles: float) -> Time:
    return Time(cycles, Origin.TABLE)  # slow to make, and asked for again and again


@dataclass(slots=True)
class TableModel(LatencyModel):
    """The times of a table; another model's for what the table does not name."""

    table: CostTable
    base: LatencyModel

    @property
    def cycles_per_microsecond(self) -> float:
        return self.base.cycles_per_microsecond

    @property
    def target(self) -> Target | None:
        return self.base.target

    def node_time(self, instruction: Instruction) -> Time:
        """O(1) beside the other model."""
        cycles = self.table.node.get(instruction.name)
        if cycles is None:
            return as_guess(self.base.node_time(instruction))
        return _measured(cycles)

    def node_cost(self, instruction: Instruction) -> float:
        """O(1) beside the other model."""
        cycles = self.table.node.get(instruction.name)
        return self.base.node_cost(instruction) if cycles is None else cycles

    def edge_time(self, source: Instruction, target: Instruction) -> Time:
        """O(1) beside the other model."""
        if target.opcode in _DONES and target.operands[0] is source:
            cycles = self.table.latency.get(source.name)
            if cycles is None:
                return as_guess(self.base.edge_time(source, target))
            return Time(cycles, Origin.TABLE)
        return self.base.edge_time(source, target)

    def latency(self, source: Instruction, target: Instruction) -> float:
        """O(1) beside the other model."""
        if target.opcode in _DONES and target.operands[0] is source:
            return self.edge_time(source, target).cycles
        return self.base.latency(source, target)

    def by_table(self, instruction: Instruction) -> TableTime | None:
        """O(1) beside the other model."""
        return self.base.by_table(instruction)

    def whole_time(self, collective: Instruction) -> Time:
        """O(1) beside the other model."""
        is_split = collective.opcode not in SYNC_COLLECTIVES
        known = self.table.latency if is_split else self.table.node
        cycles = known.get(collective.name)
        if cycles is None:
            return as_guess(self.base.whole_time(collective))
        return Time(cycles, Origin.TABLE)


_DONES = frozenset((Opcode.ASYNC_DONE, *OWN_DONES, *SEND_RECV_DONE))
