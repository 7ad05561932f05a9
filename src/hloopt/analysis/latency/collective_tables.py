"""Measured throughputs of collectives: XLA's tables, and files of users."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from hloopt.analysis.latency.smoothing import SmoothCurve
from hloopt.ir import Opcode

Groups = tuple[tuple[int, ...], ...]


class Exchange(NamedTuple):
    """A collective within a node, as tables are asked for it; or one that was measured."""

    opcode: Opcode
    size: int
    """Bytes: the result, of a reduce-scatter or permute the operands."""
    devices: int
    """Devices of one group; 0 for a permute, which has its kind."""
    permute: str = ""
    """The kind of a permute."""
    element_type: str = ""
    groups: Groups | None = None
    """The groups by which exactly such a collective may have been measured; None where XLA does
    not look for one."""


class CollectiveTable(ABC):
    """Throughputs of collectives within a node."""

    @abstractmethod
    def throughput(self, exchange: Exchange) -> int | None:
        """Bytes per second as XLA looks them up; None where none like it was measured."""

    @abstractmethod
    def curve(self, exchange: Exchange) -> SmoothCurve | None:
        """Monotone times by bytes of what was measured like it; None where nothing was."""


class XlaTable(CollectiveTable):
    """A table of XLA: the nearest measured size, then the nearest number of devices at that size.

    Of two as near the larger one counts.
    """

    def __init__(self, rates: Mapping[str, Mapping[str, Mapping[int, int]]]) -> None:
        """`rates` by opcode, by devices of a group or kind of permute, by bytes."""
        self._permutes = rates.get(Opcode.COLLECTIVE_PERMUTE.value, {})
        self._groups = {
            opcode: {int(devices): by_size for devices, by_size in groups.items()}
            for opcode, groups in rates.items()
            if opcode != Opcode.COLLECTIVE_PERMUTE.value
        }
        self._sizes: dict[str, list[int]] = {}
        self._curves: dict[tuple[str, str | int], SmoothCurve] = {}

    def throughput(self, exchange: Exchange) -> int | None:
        """O(log measured sizes + numbers of devices) but for the first of an opcode."""
        if exchange.opcode is Opcode.COLLECTIVE_PERMUTE:
            by_size = self._permutes.get(exchange.permute)
            return None if by_size is None else by_size[nearest(exchange.size, list(by_size))]
        groups = self._groups.get(exchange.opcode.value)
        if groups is None:
            return None
        size = nearest(exchange.size, self._all_sizes(exchange.opcode.value))
        measured = sorted(devices for devices, by_size in groups.items() if size in by_size)
        return groups[nearest(exchange.devices, measured)][size]

    def curve(self, exchange: Exchange) -> SmoothCurve | None:
        """The curve of the nearest number of devices. O(1) but for the first of its kind."""
        opcode = exchange.opcode.value
        by_size: Mapping[int, int] | None
        if exchange.opcode is Opcode.COLLECTIVE_PERMUTE:
            row: str | int = exchange.permute
            by_size = self._permutes.get(exchange.permute)
        else:
            groups = self._groups.get(opcode)
            row = 0 if groups is None else nearest(exchange.devices, sorted(groups))
            by_size = None if groups is None else groups[int(row)]
        if by_size is None:
            return None
        if (opcode, row) not in self._curves:
            self._curves[opcode, row] = _curve_of(by_size)
        return self._curves[opcode, row]

    def _all_sizes(self, opcode: str) -> list[int]:
        """The measured sizes of an opcode, with any number of devices, ascending."""
        if opcode not in self._sizes:
            groups = self._groups[opcode].values()
            self._sizes[opcode] = sorted({size for by_size in groups for size in by_size})
        return self._sizes[opcode]


class UserTable(CollectiveTable):
    """Measurements of a user, looked up as XLA looks up those of a file.

    An all-reduce or reduce-scatter that is no start of its own kind takes those of the same groups
    and element type, if there are any, by the nearest size. All others take, of what was measured
    of their opcode, that at the least squared distance in bytes and devices, whatever its type and
    groups. Of two as near the first in the file counts.
    """

    def __init__(self, measured: Iterable[tuple[Exchange, int]]) -> None:
        """`measured` with bytes per second, in the order of the file."""
        self._rows: dict[object, list[tuple[Exchange, int]]] = {}
        for exchange, rate in measured:
            for key in (_row_key(exchange), _exact_key(exchange)):
                self._rows.setdefault(key, []).append((exchange, rate))
        self._curves: dict[object, SmoothCurve] = {}

    def throughput(self, exchange: Exchange) -> int | None:
        """O(measurements of its opcode)."""
        _, row = self._row(exchange)
        if not row:
            return None
        return min(row, key=lambda measured: _squared_distance(measured[0], exchange))[1]

    def curve(self, exchange: Exchange) -> SmoothCurve | None:
        """The curve of the nearest number of devices. O(measurements of its opcode)."""
        key, row = self._row(exchange)
        if not row:
            return None
        devices = nearest(exchange.devices, sorted({measured.devices for measured, _ in row}))
        if (key, devices) not in self._curves:
            by_size: dict[int, int] = {}
            for measured, rate in row:
                if measured.devices == devices:
                    by_size.setdefault(measured.size, rate)
            self._curves[key, devices] = _curve_of(by_size)
        return self._curves[key, devices]

    def _row(self, exchange: Exchange) -> tuple[object, Sequence[tuple[Exchange, int]]]:
        """The measurements that count for an exchange, and what names them."""
        if exchange.groups is not None:
            exact = _exact_key(exchange)
            if exact in self._rows:
                return exact, self._rows[exact]
        key = _row_key(exchange)
        return key, self._rows.get(key, ())


def _row_key(exchange: Exchange) -> tuple[object, ...]:
    return exchange.opcode, exchange.permute


def _exact_key(exchange: Exchange) -> tuple[object, ...]:
    return exchange.opcode, exchange.groups, exchange.element_type


def _squared_distance(one: Exchange, other: Exchange) -> int:
    return (one.size - other.size) ** 2 + (one.devices - other.devices) ** 2


def _curve_of(by_size: Mapping[int, int]) -> SmoothCurve:
    return SmoothCurve({size: size / rate * 1e6 for size, rate in by_size.items()})


def nearest(number: int, known: Sequence[int]) -> int:
    """The nearest of known numbers in ascending order, the larger one of two as near."""
    above = bisect_left(known, number)
    if above == 0:
        return known[0]
    if above == len(known):
        return known[-1]
    below = known[above - 1]
    return below if number - below < known[above] - number else known[above]


def permute_kind(pairs: Collection[Sequence[int]]) -> str:
    """The kind of collective-permute that pairs of (source, target) make.

    `one-way`: no device both sends and receives; `two-way`: some do; `mutual`: those that one
    device sends to send to it.
    """
    known = {(source, target) for source, target in pairs}
    if {source for source, _ in known}.isdisjoint(target for _, target in known):
        return "one-way"
    return "mutual" if all((target, source) in known for source, target in known) else "two-way"
