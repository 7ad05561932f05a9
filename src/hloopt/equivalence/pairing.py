"""Two modules on their devices: which inputs and outputs of theirs belong together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod

from hloopt.equivalence.measures import Pair, arrays_with_paths, errors_of
from hloopt.equivalence.placement import Placement, place
from hloopt.equivalence.roles import roles_of
from hloopt.equivalence.signature import (
    Cut,
    cut_of,
    first_other,
    first_other_parameter,
    leaf_text,
    part_counts,
)
from hloopt.interpreter.array_plans import ArrayPlan
from hloopt.interpreter.errors import RunError
from hloopt.interpreter.parts import covered
from hloopt.interpreter.values import Array, Value, type_text
from hloopt.ir.attributes.values.shards import Place, Shards
from hloopt.ir.devices.grid import Grid
from hloopt.ir.module import Module


class Pairing:
    """The devices and inputs that two modules run on, and the outputs that are compared."""

    def __init__(self, left: Placement, right: Placement, cut: Cut | None) -> None:
        self.left = left
        self.right = right
        self._cut = cut
        """The sharding by which the partitioned one of the two takes and gives the arrays of the
        other."""
        self.recognized: list[str] = []
        """The outputs whose parts are told by nothing but their values."""
        self._results = list(cut.results) if cut else []
        self.left_plans, self.right_plans = _plans(left, right, cut)

    @property
    def is_cut(self) -> bool:
        """Whether one module computes for all devices, and the other one is partitioned."""
        return self._cut is not None

    def pairs(self, left: Sequence[Value], right: Sequence[Value]) -> Iterator[Pair]:
        """The arrays to compare in the results of both, which are by device."""
        if self._cut is None:
            for number, (mine, other) in self._devices(left, right):
                yield from matching(number, mine, other)
            return
        everything, partitioned = (left, right) if self.left.is_whole else (right, left)
        for pair in self._parts(everything, partitioned):
            yield pair if self.left.is_whole else pair._replace(left=pair.right, right=pair.left)

    def _devices(
        self, left: Sequence[Value], right: Sequence[Value]
    ) -> Iterator[tuple[int, tuple[Value, Value]]]:
        """Pairs of devices that have to have the same, by number."""
        if not self.left.is_whole:
            yield from enumerate(zip(left, right, strict=True))
            return
        for replica in range(self.left.grid.replicas):
            mine = left[replica * self.left.grid.partitions]
            yield replica, (mine, right[replica * self.right.grid.partitions])

    def _parts(self, everything: Sequence[Value], partitioned: Sequence[Value]) -> Iterator[Pair]:
        """Whole arrays cut up, each beside the part of a device."""
        wholes = [list(arrays_with_paths(value)) for value in everything]
        parts = [list(arrays_with_paths(value)) for value in partitioned]
        rows = len(wholes) // self.right.grid.replicas
        partitions = len(parts) // self.right.grid.replicas
        for number, (path, _) in enumerate(wholes[0]):
            name = f"output{leaf_text(path)}"
            for device, own in enumerate(parts):
                replica, partition = divmod(device, partitions)
                row = wholes[replica * rows + (partition if rows > 1 else 0)]
                if self._results[number] is None:
                    found = [part[number][1] for part in parts[:partitions]]
                    self._results[number] = _recognize(row[number][1], found)
                    self.recognized.append(name)
                shards = self._results[number]
                assert shards is not None
                inside = covered(row[number][1].shape, shards, partition)
                if inside is not None:
                    piece = row[number][1][inside]
                    cropped = own[number][1][tuple(slice(n) for n in piece.shape)]
                    offset = tuple(i.start for i in inside)
                    type = type_text(row[number][1])
                    yield Pair(path, name, type, device, piece, cropped, offset)


def _plans(
    left: Placement, right: Placement, cut: Cut | None
) -> tuple[list[ArrayPlan | None], list[ArrayPlan | None]]:
    """The plans by which the arrays of the parameters of both are made, so that they are the
    same."""
    roles = roles_of(left.program)
    ours, theirs = left.plans(roles), right.plans(roles)
    if cut is not None:
        everything = ours if left.is_whole else theirs
        parts = [
            plan and plan._replace(shards=shards or plan.shards)
            for plan, shards in zip(everything, cut.parameters, strict=True)
        ]
        ours, theirs = (everything, parts) if left.is_whole else (parts, everything)
    elif not left.is_whole:  # parts of whole arrays where either says so
        ours = theirs = [
            mine if mine is None or _is_told(mine.shards) else other
            for mine, other in zip(ours, theirs, strict=True)
        ]
    agreeing = [_in_the_same_groups(*both) for both in zip(ours, theirs, strict=True)]
    return [mine for mine, _ in agreeing], [other for _, other in agreeing]


def _is_told(shards: Shards) -> bool:
    """Whether some devices are said to have parts of the same array."""
    return len(set(shards.groups)) < len(shards.groups)


def _in_the_same_groups(
    mine: ArrayPlan | None, other: ArrayPlan | None
) -> tuple[ArrayPlan | None, ArrayPlan | None]:
    """One array for all devices where two modules say otherwise about who has the same one."""
    if mine is None or other is None or mine.shards.groups == other.shards.groups:
        return mine, other
    return mine.on_one_array(), other.on_one_array()


def matching(device: int, left: Value, right: Value) -> Iterator[Pair]:
    """The arrays of two values of one structure."""
    for (path, a), (_, b) in zip(arrays_with_paths(left), arrays_with_paths(right), strict=True):
        offset = (0,) * a.ndim
        yield Pair(path, f"output{leaf_text(path)}", type_text(a), device, a, b, offset)


def _recognize(everything: Array, parts: Sequence[Array]) -> Shards:
    """The part of an array that each device has, each as often as the others: by the smallest
    errors."""
    counts = part_counts(everything.shape, parts[0].shape)
    assert counts is not None
    places = list(product(*map(range, counts)))
    room = dict.fromkeys(places, len(parts) // prod(counts))
    costs: list[list[tuple[float, Place]]] = []
    for part in parts:
        own = []
        for number in places:
            inside = covered(everything.shape, Shards(counts, (number,), (0,)), 0)
            assert inside is not None
            piece = everything[inside]
            cropped = part[tuple(slice(n) for n in piece.shape)]
            own.append((errors_of(piece, cropped).largest, number))
        costs.append(sorted(own))
    found: dict[int, Place] = {}
    for device in sorted(range(len(parts)), key=lambda d: costs[d][0][0] - costs[d][-1][0]):
        found[device] = next(number for _, number in costs[device] if room[number])
        room[found[device]] -= 1
    return Shards(counts, tuple(found[d] for d in range(len(parts))), (0,) * len(parts))


def pair_up(
    left: Placement, right: Placement, counts: tuple[int, int] | None = None
) -> Pairing | str:
    """Bring two modules together, or say what is other about what they take and give.

    A program that computes for all devices and a partitioned one belong together where the arrays
    of the one are cut into those of the other. One with a schedule seems to be partitioned; where
    it has the arrays that the other's shardings would cut, it computes for all devices, too. Raises
    RunError where the text does not tell how.
    """
    other = first_other(left.module, right.module)
    kinds = left.is_whole, right.is_whole
    if not other and kinds.count(True) != 1:
        return _alike(left, right)
    if other and kinds in ((True, True), (False, False)):
        return other
    reason = other
    for is_left in (True, False):
        whole, partitioned = (left, right) if is_left else (right, left)
        if whole.is_whole is False or partitioned.is_whole is True:
            continue
        if whole.is_whole is None:
            whole = place(whole.module, counts, is_whole=True)
        found = cut_of(whole, partitioned)
        if isinstance(found, Cut):
            replicas = max(whole.grid.replicas, partitioned.grid.replicas)
            whole = whole._replace(grid=Grid(replicas, whole.grid.partitions))
            partitioned = partitioned._replace(grid=Grid(replicas, partitioned.grid.partitions))
            pair = (whole, partitioned) if is_left else (partitioned, whole)
            return Pairing(*pair, found)
        reason = reason if True not in kinds else found
    if not other:  # shardings would cut arrays that are equal: neither is partitioned
        sides = (
            side if side.is_whole else place(side.module, counts, is_whole=True, is_sure=True)
            for side in (left, right)
        )
        return _alike(*sides)
    return reason


def pair_up_global(
    left: Module, right: Module, counts: tuple[int, int] | None = None
) -> Pairing | str:
    """Bring a program for all devices and a partitioned one together, as somebody says they are.

    Raises RunError where the second one is for one partition, and where no text tells how a
    parameter is cut.
    """
    whole = place(left, counts, is_whole=True, is_sure=True)
    partitioned = place(right, counts, is_whole=False, is_sure=True)
    if partitioned.grid.partitions < 2:
        raise RunError(
            "the second module is for one partition: there is nothing that devices have parts of",
            help="--devices 1x8 says how many there are",
            code="HLO508",
        )
    found = cut_of(whole, partitioned)
    if isinstance(found, str):
        return found
    replicas = max(whole.grid.replicas, partitioned.grid.replicas)
    return Pairing(
        whole._replace(grid=Grid(replicas, whole.grid.partitions)),
        partitioned._replace(grid=Grid(replicas, partitioned.grid.partitions)),
        found,
    )


def pair_up_inputs(left: Placement, right: Placement) -> Pairing:
    """Bring two modules together that take the same, whatever they give. Raises RunError where
    they do not take the same."""
    other = first_other_parameter(left.module, right.module)
    if other or (left.is_whole or False) != (right.is_whole or False):
        reason = other or "one module computes for all devices, the other one is partitioned"
        raise RunError(f"the modules cannot run on the same inputs: {reason}", code="HLO508")
    return _alike(left, right)


def _alike(left: Placement, right: Placement) -> Pairing:
    """Two programs for all devices, or two for single ones, on as many as either is for."""
    if left.is_whole:
        replicas = max(left.grid.replicas, right.grid.replicas)
        grids = Grid(replicas, left.grid.partitions), Grid(replicas, right.grid.partitions)
    else:
        grid = max(left.grid, right.grid, key=lambda grid: grid.device_count)
        grids = grid, grid
    return Pairing(left._replace(grid=grids[0]), right._replace(grid=grids[1]), None)
