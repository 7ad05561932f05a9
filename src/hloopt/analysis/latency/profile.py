"""Times that a profiler measured (PGLE), as XLA reads them: text protos, or JSON.

costs { name: "dot.1" cost_us: 100.0 }
latencies { source: "ar-start" target: "ar-done" latency_us: 40.0 }
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hloopt.analysis.async_operations import (
    SEND_RECV,
    SEND_RECV_DONE,
    SYNC_COLLECTIVES,
    async_form,
    is_pair,
    wrapped,
)
from hloopt.analysis.latency.files import LONGEST, is_time, load_json
from hloopt.analysis.latency.model import (
    ORDINARY_EDGE_TIME,
    LatencyModel,
    Origin,
    TableTime,
    Time,
    as_guess,
)
from hloopt.analysis.latency.text_proto import parse_text_proto
from hloopt.diagnostics import HloError
from hloopt.ir import Computation, Instruction, Module, Opcode
from hloopt.ir.attributes.values import parse_frontend_attributes
from hloopt.ir.opcode import ASYNC
from hloopt.patterns import pattern
from hloopt.targets.target import Target

_FINGERPRINT = "fingerprint_before_lhs"
_REMATERIALIZED = pattern(r"(.*)\.remat\d*")
_HELP = 'it has entries such as costs { name: "dot.1" cost_us: 100.0 }, or the same as JSON'


@dataclass(frozen=True, slots=True)
class Profile:
    """Microseconds by the names of instructions."""

    costs: Mapping[str, float] = field(default_factory=dict)
    latencies: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """From a source to its targets."""

    @classmethod
    def parse(cls, text: str, name: str) -> Profile:
        """Read a profile: JSON where it begins with a brace, else a text proto. Raises HloError."""
        entries = _from_json(text, name) if text.lstrip().startswith("{") else None
        if entries is None:
            entries = parse_text_proto(text, name)
        if unknown := entries.keys() - {"costs", "latencies"}:
            raise HloError(f"{name} is not a profile: it has '{min(unknown)}'", help=_HELP)
        costs = {
            _text(entry, "name", name): _number(entry, "cost_us", name)
            for entry in _messages(entries, "costs", name)
        }
        latencies: dict[str, dict[str, float]] = {}
        for entry in _messages(entries, "latencies", name):
            targets = latencies.setdefault(_text(entry, "source", name), {})
            targets[_text(entry, "target", name)] = _number(entry, "latency_us", name)
        return cls(costs, latencies)

    def for_module(self, module: Module) -> Profile:
        """The entries that are about a module, by the names that it has.

        Names may be `fingerprint::name`; those of rematerialized copies `name.remat3` give their
        original the mean of all. Where names are so, XLA drops the latencies; we keep them.
        """
        attributes = parse_frontend_attributes(module.attributes.get("frontend_attributes", "{}"))
        fingerprint = attributes.get(_FINGERPRINT)
        costs: dict[str, float] = {}
        for name, cost in self.costs.items():
            prefix, separator, rest = name.rpartition("::")
            if not separator or prefix == fingerprint:
                costs[rest] = cost
        if any(".remat" in name for name in costs):
            costs = _averaged(costs)
        return Profile(costs, self.latencies)


def _averaged(costs: Mapping[str, float]) -> dict[str, float]:
    groups: dict[str, list[float]] = {}
    for name, cost in costs.items():
        match = _REMATERIALIZED.fullmatch(name)
        groups.setdefault(match[1] if match else name, []).append(cost)
    return {name: sum(group) / len(group) for name, group in groups.items()}


def _from_json(text: str, name: str) -> dict[str, Any]:
    value = load_json(text, name, _HELP)
    assert isinstance(value, dict)
    return value


def _messages(entries: Mapping[str, Any], key: str, name: str) -> Iterable[Mapping[str, Any]]:
    found = entries.get(key, [])
    if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
        raise HloError(f"{name}: '{key}' takes entries in braces", help=_HELP)
    return found


def _text(entry: Mapping[str, Any], key: str, name: str) -> str:
    value = _only(entry, key)
    if not isinstance(value, str):
        raise HloError(f"{name}: an entry without {key}", help=_HELP)
    return value


def _number(entry: Mapping[str, Any], key: str, name: str) -> float:
    value = _only(entry, key)
    try:
        number = value if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = None
    if not is_time(number):
        raise HloError(
            f"{name}: {key} takes a number of microseconds, 0 or more, at most {LONGEST:g}",
            help=_HELP,
        )
    return number


def _only(entry: Mapping[str, Any], key: str) -> Any:
    """A field by its name, or by the name that JSON has for it: `costUs`."""
    first, *rest = key.split("_")
    value = entry.get(key, entry.get(first + "".join(word.capitalize() for word in rest)))
    return value[-1] if isinstance(value, list) and value else value


@dataclass(slots=True)
class ProfileModel(LatencyModel):
    """The times of a profile; another model's for what the profile does not name."""

    profile: Profile
    base: LatencyModel
    schedule_send_recvs: bool = True

    @property
    def cycles_per_microsecond(self) -> float:
        return self.base.cycles_per_microsecond

    @property
    def target(self) -> Target | None:
        return self.base.target

    def node_time(self, instruction: Instruction) -> Time:
        """O(1) beside the other model."""
        if _is_step(instruction):
            return _STEP
        cost = self.profile.costs.get(instruction.name)
        if cost is None:
            return as_guess(self.base.node_time(instruction))
        return Time(cost * self.cycles_per_microsecond, Origin.PROFILE)

    def edge_time(self, source: Instruction, target: Instruction) -> Time:
        """O(1) beside the other model."""
        if source.opcode in SEND_RECV and not self.schedule_send_recvs:
            return ORDINARY_EDGE_TIME
        name = self._known_name(source)
        if name is not None:
            latency = self._latency(name, target)
            if latency is None and is_pair(source, target):
                latency = self.profile.costs.get(name)
            if latency is not None:
                return Time(latency * self.cycles_per_microsecond, Origin.PROFILE)
        base = self.base.edge_time(source, target)
        return as_guess(base) if is_pair(source, target) else base

    def by_table(self, instruction: Instruction) -> TableTime | None:
        """O(1) beside the other model."""
        return self.base.by_table(instruction)

    def whole_time(self, collective: Instruction) -> Time:
        """O(1) beside the other model."""
        for name in _names(collective):
            if name in self.profile.costs:
                cycles = self.profile.costs[name] * self.cycles_per_microsecond
                return Time(cycles, Origin.PROFILE)
        return as_guess(self.base.whole_time(collective))

    def _known_name(self, instruction: Instruction) -> str | None:
        """The name by which the profile knows an instruction; None if it does not."""
        for name in _names(instruction):
            if name in self.profile.costs or name in self.profile.latencies:
                return name
        return None

    def _latency(self, source: str, target: Instruction) -> float | None:
        targets = self.profile.latencies.get(source, {})
        return next((targets[name] for name in _names(target) if name in targets), None)


_STEP = Time(1.0, Origin.CONSTANT)


def _names(instruction: Instruction) -> list[str]:
    """The names a profile may have: its own; of a generic start or done that of the operation."""
    if instruction.opcode in (Opcode.ASYNC_START, Opcode.ASYNC_DONE):
        return [instruction.name, wrapped(instruction).name]
    return [instruction.name]


def _is_step(instruction: Instruction) -> bool:
    """Whether an instruction begins or ends a collective, a send or a recv."""
    if instruction.opcode in (*SEND_RECV, *SEND_RECV_DONE):
        return True
    outer, inner = async_form(instruction)
    return outer in ASYNC and inner in SYNC_COLLECTIVES


def missing_nodes(model: LatencyModel, computation: Computation) -> list[Instruction]:
    """The instructions of a computation whose times a profile should name and does not.

    Loops and copies need not be named. `model` is one with a profile. O(instructions).
    """
    return [
        instruction
        for instruction in computation.instructions
        if instruction.opcode not in (Opcode.WHILE, Opcode.COPY)
        and model.node_time(instruction).origin is Origin.GUESS
    ]


def missing_edges(model: LatencyModel, computation: Computation) -> list[Instruction]:
    """The starts in a computation whose times until they are done a profile does not name."""
    return [
        instruction
        for instruction in computation.instructions
        if any(
            model.edge_time(instruction, user).origin is Origin.GUESS for user in instruction.users
        )
    ]


def missing_in_module(model: LatencyModel, module: Module) -> list[Instruction]:
    """The instructions of the entry, and of bodies and conditions of loops, that the profile
    lacks."""
    loops = (i for i in module.instructions() if i.opcode is Opcode.WHILE)
    looked_at = dict.fromkeys((module.entry, *(callee for i in loops for callee in i.called)))
    return [
        instruction
        for computation in looked_at
        for find in (missing_nodes, missing_edges)
        for instruction in find(model, computation)
    ]
