"""Devices that wait for each other: rounds of collectives, and data on its way between two.

A collective is identified by its instruction, the group, and how many times a device has reached
it, so that loops match up iteration by iteration. Sends and recvs match in order, per pair of
devices and channel, or list of pairs where a channel has only one of both.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Hashable, Iterator, Mapping
from typing import NamedTuple, Protocol

import numpy as np

from hloopt.interpreter.devices.collectives import (
    DONES,
    STARTS,
    Gathered,
    in_flight,
    is_collective,
    results_of,
)
from hloopt.interpreter.devices.exchange import (
    Parties,
    Peers,
    channels_of,
    parties_of,
    peers_of,
)
from hloopt.interpreter.errors import cannot_run
from hloopt.interpreter.evaluation import Meeting, guarded
from hloopt.interpreter.plan import Plans
from hloopt.interpreter.values import Value, zeros
from hloopt.ir.devices.grid import Grid
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode


class Going(NamedTuple):
    """A device that can go on, with the value of the instruction it stands at."""

    device: int
    value: Value


class Awaited(Protocol):
    """The kinds of rendezvous a device can wait for."""

    def missing(self) -> tuple[int, ...]:
        """The devices that have to come first."""


class Wait(NamedTuple):
    """The instruction at which a device waits."""

    instruction: Instruction
    awaited: Awaited


class _Round:
    """A collective on its way: who is there, and what came of it."""

    def __init__(self, members: tuple[int, ...]) -> None:
        self.members = members
        self.brought: dict[int, tuple[Value, ...]] = {}
        self.results: dict[int, Value] = {}

    def missing(self) -> tuple[int, ...]:
        return tuple(member for member in self.members if member not in self.brought)


class _Recv:
    """A device's recv on its way."""

    def __init__(self, source: int) -> None:
        self.source = source
        self.has_data = False
        self.data: Value = None

    def missing(self) -> tuple[int, ...]:
        return (self.source,)

    def take(self, data: Value) -> None:
        self.has_data, self.data = True, data


class _Letter(NamedTuple):
    """Data that was sent and not yet received."""

    send: Instruction
    data: Value


class _Route(NamedTuple):
    """A channel from one device to another; one of the queues is always empty."""

    sent: deque[_Letter]
    open: deque[_Recv]


class Meetings:
    """All that is going on between the devices of a run."""

    def __init__(self, grid: Grid, plans: Plans) -> None:
        self.waiting: dict[int, Wait] = {}
        """The devices that stand still."""
        self._grid = grid
        self._plans = plans
        self._parties: dict[Instruction, Parties] = {}
        self._peers: dict[Instruction, Peers] = {}
        self._reached: Counter[tuple[Instruction, int]] = Counter()
        self._rounds: dict[tuple[Instruction, int, int], _Round] = {}
        """By instruction, first device of the group, and how many times it was reached."""
        self._started: dict[tuple[Instruction, int], _Round] = {}
        self._routes: defaultdict[tuple[Hashable, int, int], _Route]
        self._routes = defaultdict(lambda: _Route(deque(), deque()))
        self._channels: Mapping[Instruction, Hashable] | None = None
        self._tickets: Counter[int] = Counter()
        self._recvs: dict[tuple[int, int], _Recv] = {}

    def meet(self, device: int, meeting: Meeting) -> Iterator[Going]:
        """A device reaches an instruction: who can go on now.

        It waits if it is not among these. Raises RunError. O(1) and the size of the data.
        """
        opcode = meeting.instruction.opcode
        match opcode:
            case Opcode.SEND | Opcode.SEND_DONE | Opcode.RECV | Opcode.RECV_DONE:
                yield from self._transfer(device, meeting)
            case _ if is_collective(opcode):
                yield from self._gather(device, meeting)
            case _ if opcode in DONES:
                yield from self._finish(device, meeting)
            case _:
                raise cannot_run(meeting.instruction, f"{opcode} is not supported", "HLO501")

    def unreceived(self) -> Iterator[tuple[int, int, Instruction]]:
        """Data that was sent and not received: source, target and instruction."""
        for (_, source, target), route in self._routes.items():
            yield from ((source, target, letter.send) for letter in route.sent)

    # -- collectives ----------------------------------------------------------------------------

    def _gather(self, device: int, meeting: Meeting) -> Iterator[Going]:
        instruction, operands = meeting
        parties = self._parties.get(instruction)
        if parties is None:
            parties = self._parties[instruction] = parties_of(instruction, self._grid)
        group = parties.group_of.get(device)
        if group is None:
            yield Going(device, _alone(device, instruction))
            return
        self._reached[instruction, device] += 1
        key = instruction, group[0], self._reached[instruction, device]
        current = self._rounds.get(key)
        if current is None:
            current = self._rounds[key] = _Round(group)
        current.brought[device] = operands
        if instruction.opcode in STARTS:
            self._started[instruction, device] = current
            yield Going(device, guarded(instruction, in_flight, instruction, operands))
        else:
            self.waiting[device] = Wait(instruction, current)
        if len(current.brought) == len(group):
            del self._rounds[key]
            brought = [current.brought[member] for member in group]
            gathered = Gathered(instruction, group, brought, parties.incoming, self._plans)
            results = guarded(instruction, results_of, gathered)
            current.results = dict(zip(group, results, strict=True))
            yield from self._wake(current)

    def _wake(self, finished: _Round) -> Iterator[Going]:
        for member in finished.members:
            wait = self.waiting.get(member)
            if wait is not None and wait.awaited is finished:
                del self.waiting[member]
                yield Going(member, finished.results[member])

    def _finish(self, device: int, meeting: Meeting) -> Iterator[Going]:
        done = meeting.instruction
        start = done.operands[0]
        started = self._started.pop((start, device), None)
        if started is None:
            raise cannot_run(
                done, f"its operand is no {DONES[done.opcode]} that is still open", "HLO501"
            )
        if started.results:
            yield Going(device, started.results[device])
        else:
            self.waiting[device] = Wait(done, started)

    # -- send and recv --------------------------------------------------------------------------

    def _transfer(self, device: int, meeting: Meeting) -> Iterator[Going]:
        instruction, operands = meeting
        match instruction.opcode:
            case Opcode.SEND:
                yield from self._send(device, instruction, operands[0])
            case Opcode.RECV:
                yield Going(device, self._recv(device, instruction))
            case Opcode.SEND_DONE:
                yield Going(device, None)
            case _:
                yield from self._receive(device, instruction, operands[0])

    def _channel(self, transfer: Instruction) -> Hashable:
        if self._channels is None:
            self._channels = channels_of(transfer.parent.module)
        return self._channels[transfer]

    def _peers_of(self, transfer: Instruction) -> Peers:
        peers = self._peers.get(transfer)
        if peers is None:
            peers = self._peers[transfer] = peers_of(transfer, self._grid)
        return peers

    def _send(self, device: int, send: Instruction, data: Value) -> Iterator[Going]:
        yield Going(device, (data, np.zeros((), np.uint32), None))
        target = self._peers_of(send).target_of.get(device)
        if target is None:
            return
        route = self._routes[self._channel(send), device, target]
        if not route.open:
            route.sent.append(_Letter(send, data))
            return
        recv = route.open.popleft()
        recv.take(data)
        wait = self.waiting.get(target)
        if wait is not None and wait.awaited is recv:
            del self.waiting[target]
            yield Going(target, (data, None))

    def _recv(self, device: int, recv: Instruction) -> Value:
        """Zeros for the data; the context is the number of the recv on this device."""
        self._tickets[device] += 1
        ticket = self._tickets[device]
        nothing = zeros(recv.shape.elements[0])
        source = self._peers_of(recv).source_of.get(device)
        entry = self._recvs[device, ticket] = _Recv(device if source is None else source)
        if source is None:
            entry.take(nothing)
        else:
            route = self._routes[self._channel(recv), source, device]
            if route.sent:
                entry.take(route.sent.popleft().data)
            else:
                route.open.append(entry)
        return nothing, np.array(ticket, np.uint32), None

    def _receive(self, device: int, done: Instruction, started: Value) -> Iterator[Going]:
        entry = self._recvs.pop((device, int(started[1])), None)
        if entry is None:
            raise cannot_run(done, "its operand is not what a recv gave", "HLO501")
        if entry.has_data:
            yield Going(device, (entry.data, None))
        else:
            self.waiting[device] = Wait(done, entry)


def _alone(device: int, instruction: Instruction) -> Value:
    """The result on a device that no group names."""
    if instruction.opcode is Opcode.COLLECTIVE_BROADCAST:
        return zeros(instruction.shape)
    raise cannot_run(instruction, f"none of its replica groups has device {device}")
