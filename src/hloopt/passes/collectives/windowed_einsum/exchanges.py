"""All-to-alls beside a dot, taken apart with it along the contracting dimension."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from hloopt.diagnostics import counted
from hloopt.ir.attributes.backend_config import with_gpu_fields
from hloopt.ir.attributes.typed import constrains_layout, dimensions_of
from hloopt.ir.attributes.values import Slice, format_ints
from hloopt.ir.attributes.values.numbers import parse_ints
from hloopt.ir.computation import Computation
from hloopt.ir.devices.collective_devices import group_sizes
from hloopt.ir.devices.collective_mode import replica_groups
from hloopt.ir.devices.grid import Grid
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import post_order
from hloopt.passes.collectives.shards import with_dimension
from hloopt.passes.rewriting.replace import forget_value, remove_unused, replace_instruction
from hloopt.passes.rewriting.rules import Builder

_MOVES = frozenset((Opcode.RESHAPE, Opcode.TRANSPOSE, Opcode.COPY))


@dataclass(frozen=True, slots=True)
class ExchangedDot:
    """A dot and the all-to-all of its left operand, or of its result."""

    dot: Instruction
    exchange: Instruction
    moves: Sequence[Instruction]
    """The moves of elements between the two, in the order of the data."""
    is_before: bool
    """Whether the all-to-all comes before the dot."""


def exchanged_dots(computation: Computation) -> Iterator[ExchangedDot]:
    """The dots of a computation beside an all-to-all, with nothing else that reads what is between.

    O(instructions).
    """
    for dot in post_order(computation):
        if dot.opcode is not Opcode.DOT:
            continue
        moves: list[Instruction] = []
        value = dot.operands[0]
        while value.opcode in _MOVES and _has_one_user(value):
            moves.insert(0, value)
            value = value.operands[0]
        if value.opcode is Opcode.ALL_TO_ALL and _has_one_user(value):
            yield ExchangedDot(dot, value, moves, is_before=True)
            continue
        moves, value = [], dot
        while _has_one_user(value):
            (user,) = value.users
            if user.opcode is Opcode.ALL_TO_ALL:
                yield ExchangedDot(dot, user, moves, is_before=False)
                break
            if user.opcode not in _MOVES:
                break
            moves.append(user)
            value = user


def _has_one_user(value: Instruction) -> bool:
    return len(value.users) == 1 and not value.is_root


def why_not(pair: ExchangedDot, grid: Grid) -> str | None:
    """The reason why a dot and an all-to-all must stay whole, or None."""
    dot, exchange = pair.dot, pair.exchange
    if not exchange.shape.is_array or constrains_layout(exchange):
        return "it exchanges a tuple, or its layout is constrained"
    for step in (dot, exchange, *pair.moves):
        if step.shape.is_dynamic or step.has_control_dependencies:
            return f"%{step.name} has a dynamic size or control dependencies"
    sizes = group_sizes(exchange, grid)
    if not replica_groups(exchange).named_count or len(sizes) != 1 or sizes == {1}:
        return "it names no groups of one size, two devices or more"
    contracted = [_contracted(dot, side) for side in (0, 1)]
    if any(len(each) != 1 for each in contracted):
        return f"%{dot.name} contracts {counted(len(contracted[0]), 'dimension')}, not one"
    (count,) = sizes
    (side,) = contracted[0]
    size = dot.operands[0].shape.dimensions[side]
    if size % count:
        return f"{size} cannot be contracted in {counted(count, 'part')}"
    dimension = _dimension_at_dot(pair)
    if dimension is None:
        return f"%{pair.moves[0].name} or another tears the dimension that it exchanges"
    if pair.is_before and dimension == side:
        return f"it exchanges the dimension that %{dot.name} contracts"
    return None


def _contracted(dot: Instruction, side: int) -> tuple[int, ...]:
    name = "rhs_contracting_dims" if side else "lhs_contracting_dims"
    return parse_ints(dot.attributes.get(name, "{}"))


def _dimension_at_dot(pair: ExchangedDot) -> int | None:
    """The dimension that is exchanged as the dot has it; None where moves tear it."""
    found: int | None
    (found,) = dimensions_of(pair.exchange)
    steps = pair.moves if pair.is_before else reversed(pair.moves)
    for step in steps:
        if found is not None:
            found = _moved(step, found, forward=pair.is_before)
    return found


def _moved(step: Instruction, dimension: int, *, forward: bool) -> int | None:
    """The dimension of what a move gives that one of its operand becomes, or the other way."""
    if step.opcode is Opcode.COPY:
        return dimension
    if step.opcode is Opcode.TRANSPOSE:
        order = dimensions_of(step)
        return order.index(dimension) if forward else order[dimension]
    shapes = (step.operands[0].shape.dimensions, step.shape.dimensions)
    old, new = shapes if forward else reversed(shapes)
    before = prod(old[:dimension])
    return next(
        (d for d, size in enumerate(new) if size == old[dimension] and prod(new[:d]) == before),
        None,
    )


def split(pair: ExchangedDot, grid: Grid, channels: Iterator[int]) -> None:
    """Exchange and contract in as many parts as a group has devices, and add up what they give.

    O(devices of a group + moves).
    """
    build = Builder(pair.dot.parent)
    (count,) = group_sizes(pair.exchange, grid)
    if pair.moves:
        next(channels)  # of the all-to-all that XLA puts beside the dot before it splits both
    dot = pair.dot
    left, right = dot.operands
    if pair.is_before:
        left = pair.exchange.operands[0]
        for move in pair.moves:
            left = build.clone(move, [left])
    parts = [_part(pair, build, left, right, (n, count), next(channels)) for n in range(count)]
    total = build.splat(0, dot.shape)
    for part in parts:
        total = build.add(part, total)
    if not pair.is_before:
        for move in pair.moves:
            total = build.clone(move, [total])
    replace_instruction(dot if pair.is_before else pair.exchange, total)
    old = [pair.exchange, *pair.moves]
    remove_unused([*reversed(old)] if pair.is_before else [*reversed(pair.moves), dot])


def _part(
    pair: ExchangedDot,
    build: Builder,
    left: Instruction,
    right: Instruction,
    place: tuple[int, int],
    channel: int,
) -> Instruction:
    """One part of the sum: a part of what is contracted, exchanged before or behind the dot."""
    dot = pair.dot
    operands = [
        _sliced(build, value, _contracted(dot, side)[0], place)
        for side, value in enumerate((left, right))
    ]
    if pair.is_before:
        operands[0] = _exchanged(pair, build, operands[0], channel)
    part = build.clone(dot, operands)
    part.set_attribute("backend_config", with_gpu_fields(dot, operation_queue_id=str(channel)))
    return part if pair.is_before else _exchanged(pair, build, part, channel)


def _sliced(
    build: Builder, value: Instruction, dimension: int, place: tuple[int, int]
) -> Instruction:
    number, count = place
    size = value.shape.dimensions[dimension] // count
    limits = [Slice(0, limit, 1) for limit in value.shape.dimensions]
    limits[dimension] = Slice(number * size, (number + 1) * size, 1)
    return build.slice(value, limits, with_dimension(value.shape, dimension, size))


def _exchanged(pair: ExchangedDot, build: Builder, value: Instruction, channel: int) -> Instruction:
    made = build.clone(pair.exchange, [value], value.shape)
    dimension = _dimension_at_dot(pair)
    assert dimension is not None
    made.set_attribute("dimensions", format_ints((dimension,)))
    if "channel_id" in made.attributes:
        made.set_attribute("channel_id", str(channel))
    forget_value(made)
    return made
