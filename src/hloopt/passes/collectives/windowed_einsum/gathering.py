"""All-gathers of what a loop hands around anyway: the loop collects it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from hloopt.analysis.loops.expressions import Expression
from hloopt.analysis.loops.sources import Source
from hloopt.ir.attributes.typed import constrains_layout, dimensions_of, pairs_of
from hloopt.ir.devices.collective_devices import device_groups, devices_of_group
from hloopt.ir.devices.collective_mode import collective_mode
from hloopt.ir.devices.grid import Grid
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import depends_on
from hloopt.ir.tuples import read_element
from hloopt.passes.collectives.windowed_einsum.dequantization import Dequantized
from hloopt.passes.collectives.windowed_einsum.loops import Counter, reads_of
from hloopt.passes.rewriting.loop_elements import pass_through
from hloopt.passes.rewriting.replace import remove_unused
from hloopt.passes.rewriting.rules import Builder

_SCALES = frozenset((Opcode.CONVERT, Opcode.MULTIPLY, Opcode.DIVIDE))
_MOST_VALUES = 1 << 16
_LARGEST_TABLE = 1 << 16


class _Shard(NamedTuple):
    """A shard that a trip has, and where each device finds it in the whole operand."""

    value: Instruction
    offset: Instruction


def gathers_of(operand: Instruction, loop: Instruction) -> dict[Instruction, list[Instruction]]:
    """The all-gathers of an operand of a loop, with the dots that read them and need not run
    before the loop."""
    found: dict[Instruction, list[Instruction]] = {}
    for gathered in operand.users:
        if gathered.opcode is Opcode.ALL_GATHER and len(gathered.operands) == 1:
            dots = [user for user in gathered.users if user.opcode is Opcode.DOT]
            behind = [dot for dot in dots if not depends_on(loop, dot)]
            if behind:
                found[gathered] = behind
    return found


class Collector:
    """Lets a loop collect the shards of its first operand, as an all-gather would."""

    def __init__(self, loop: Instruction, counter: Counter, grid: Grid) -> None:
        self._loop = loop
        self._counter = counter
        self._grid = grid
        self._body = loop.called[0]
        self._numbers = [
            each
            for each in self._body.instructions
            if each.opcode in (Opcode.PARTITION_ID, Opcode.REPLICA_ID)
        ]

    def why_not(self, gathered: Instruction) -> str | None:
        """The reason why the loop cannot collect what an all-gather gives, or None."""
        found = self._shards(gathered)
        return found if isinstance(found, str) else None

    def collect(self, gathered: Instruction) -> int:
        """Let the loop collect what an all-gather gives; the element of the state that has it."""
        shards = self._shards(gathered)
        assert not isinstance(shards, str)
        loop, body = self._loop, self._body
        shape = gathered.shape
        (init,) = loop.operands
        read = shape.with_element_type(shards[0].value.shape.type_name)
        buffer = pass_through(loop, Builder(loop.parent).splat(0, read))
        remove_unused([init])
        (dimension,) = dimensions_of(gathered)
        build = Builder(body)
        whole = buffer
        for value, offset in shards:
            zero = build.scalar(0, offset.shape)
            offsets = [offset if d == dimension else zero for d in range(shape.rank)]
            whole = build.dynamic_update_slice(whole, value, offsets)
        body.root.replace_operand(buffer.tuple_index, whole)
        return buffer.tuple_index

    # -- proof --------------------------------------------------------------------------------

    def _shards(self, gathered: Instruction) -> list[_Shard] | str:
        """The shards of a trip, if those of all trips are the whole that an all-gather gives."""
        if constrains_layout(gathered) or gathered.shape.is_dynamic:
            return "its layout is constrained, or its size dynamic"
        if gathered.has_control_dependencies:
            return "it has control dependencies"
        held = self._held()
        if isinstance(held, str):
            return held
        groups = device_groups(gathered, self._grid)
        if sorted(device for group in groups for device in group) != [*range(len(held[0][1]))]:
            return "its groups have not each device once"
        (dimension,) = dimensions_of(gathered)
        size = gathered.operands[0].shape.dimensions[dimension]
        wanted = {
            device: {member: place * size for place, member in enumerate(group)}
            for group in groups
            for device in group
        }
        per_trip = len(held) // self._counter.trips
        found: list[_Shard] = []
        for value, _ in held[:per_trip]:
            origins = [o for v, o in held if v is value]
            offset = next((c for c in _offsets(value) if self._fits(c, origins, wanted)), None)
            if offset is not None:
                found.append(_Shard(value, offset))
        collected = {shard.value for shard in found}
        for device, places in wanted.items():
            got = {origins[device] for value, origins in held if value in collected}
            if got != {*places}:
                return (
                    f"%{self._loop.name} does not have each shard at a dot, at its place in the "
                    "whole"
                )
        return found

    def _held(self) -> list[tuple[Instruction, list[int]]] | str:
        """The shards of all trips in order, each with the device that it is of, by device."""
        reads = reads_of(self._body.parameters[0], 0)
        if len(reads) != 1:
            return f"not one instruction reads the shard in %{self._body.name}"
        chain = [reads[0]]
        while chain[-1] is not self._body.root.operands[0]:
            permutes = [u for u in chain[-1].users if u.opcode is Opcode.COLLECTIVE_PERMUTE]
            if len(permutes) != 1:
                return f"%{self._loop.name} does not hand its first operand from device to device"
            chain.append(permutes[0])
        devices = self._grid.device_count
        if devices * self._counter.trips * len(chain) > _MOST_VALUES:
            return "there are too many shards to follow"
        origins = [*range(devices)]
        held: list[tuple[Instruction, list[int]]] = []
        for _ in range(self._counter.trips):
            for value, permute in pairwise(chain):
                held.append((value, origins))
                sources = self._sources(permute)
                if len(sources) != devices:
                    return f"%{permute.name} gives some devices nothing"
                origins = [origins[sources[device]] for device in range(devices)]
        return held or f"%{self._loop.name} does not hand its first operand from device to device"

    def _sources(self, permute: Instruction) -> Mapping[int, int]:
        """The device that each device gets a permute's result from."""
        mode = collective_mode(permute)
        pairs = (
            devices
            for pair in pairs_of(permute)
            for devices in devices_of_group(pair, mode, self._grid)
        )
        return {target: source for source, target in pairs}

    def _fits(
        self,
        offset: Instruction,
        origins: Sequence[Sequence[int]],
        wanted: Mapping[int, Mapping[int, int]],
    ) -> bool:
        """Whether a scalar is, on each device in each trip, the place of the shard it has then."""
        counter = self._counter
        inputs = [
            Source(self._body.parameters[0], (counter.element,)),
            *map(Source, self._numbers),
        ]
        expression = Expression.of(offset, inputs, most_elements=_LARGEST_TABLE)
        if expression is None:
            return False
        for trip, held in enumerate(origins):
            value = counter.init + trip * counter.step
            for device, origin in enumerate(held):
                replica, partition = divmod(device, self._grid.partitions)
                given = [
                    partition if number.opcode is Opcode.PARTITION_ID else replica
                    for number in self._numbers
                ]
                if expression.evaluate(value, *given) != wanted[device].get(origin):
                    return False
        return True


def _offsets(shard: Instruction) -> Iterator[Instruction]:
    """The scalars by which the dots of a shard find its place in a whole operand or result."""
    values = [shard]
    while values:
        for user in values.pop().users:
            if user.opcode in _SCALES:
                values.append(user)
            elif user.opcode is Opcode.DOT:
                updates = [u for u in user.users if u.opcode is Opcode.DYNAMIC_UPDATE_SLICE]
                slices = [o for o in user.operands if o.opcode is Opcode.DYNAMIC_SLICE]
                offsets = [o for u in updates for o in u.operands[2:]]
                offsets += [o for s in slices for o in s.operands[1:]]
                yield from (o for o in offsets if o.opcode is not Opcode.CONSTANT)


def read_instead(
    loop: Instruction,
    element: int,
    gathered: Instruction,
    dots: Sequence[Instruction],
    operand: Dequantized | None,
) -> None:
    """Let dots read the whole that a loop collects in place of an all-gather."""
    build = Builder(loop.parent)
    for dot in dots:
        whole = read_element(loop, element)
        if operand is not None:
            spread = operand.spread(build, operand.scale, whole.shape)
            whole = operand.widen(build, whole, spread)
        dot.exchange_operand(gathered, whole)
    remove_unused([gathered])
