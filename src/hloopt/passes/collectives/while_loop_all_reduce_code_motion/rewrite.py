"""Moving collectives out: loops sum from zero, and what comes after them is reduced once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from hloopt.analysis.replication.groups import scalar_of_broadcast
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape import Shape, array_shape, tuple_shape
from hloopt.ir.tuples import element, make_tuple
from hloopt.passes.collectives.while_loop_all_reduce_code_motion.accumulation import Accumulation
from hloopt.passes.collectives.while_loop_all_reduce_code_motion.loops import SharedBody, is_zero
from hloopt.passes.collectives.while_loop_all_reduce_code_motion.storage import Storage
from hloopt.passes.rewriting.replace import attributes_for_another_value, replace_instruction


def move_out(
    body: SharedBody,
    storages: Sequence[Storage],
    accumulations: Sequence[Accumulation],
    channel_ids: Iterator[int],
) -> None:
    """Let the collectives run after each loop with this body, on what all its trips gave.

    Those that reduce sums get channels of their own, if they had some. O(users of the loops and
    of their states + elements of the states).
    """
    for loop in body.loops:
        users, is_root = list(loop.users), loop.is_root
        old_init = loop.operands[0]
        before = {a.index: element(old_init, a.index) for a in accumulations}
        if before:
            zeros = {a.index: _zeros(loop.parent, _summed_shape(a)) for a in accumulations}
            _start_from(loop, zeros)
        indices = _Indices(loop.parent)
        results = {s.index: _reduce_stored(loop, s, indices) for s in storages}
        for accumulation in accumulations:
            index = accumulation.index
            total = _reduce_sum(element(loop, index), accumulation, channel_ids)
            add = loop.parent.add(Opcode.ADD, total.shape, [before[index], total])
            results[index] = add
        _hand_out(loop, users, results, is_root=is_root)
    _sum_whole([a for a in accumulations if a.collective.opcode is Opcode.REDUCE_SCATTER], body)
    for accumulation in accumulations:
        if accumulation.mask is not None:
            (state,) = body.reads(accumulation.index)
            accumulation.mask.replace_all_uses_with(state)
            body.computation.remove(accumulation.mask)
    moved = [storage.collective for storage in storages]
    moved += [accumulation.collective for accumulation in accumulations]
    for collective in dict.fromkeys(moved):
        collective.replace_all_uses_with(collective.operands[0])
        collective.parent.remove(collective)


# -- before the loop ----------------------------------------------------------------------------


def _summed_shape(accumulation: Accumulation) -> Shape:
    """The shape of the element that holds the sum inside of the loop from now on."""
    collective = accumulation.collective
    if collective.opcode is Opcode.REDUCE_SCATTER:
        return collective.operands[0].shape
    return collective.parent.root.shape.elements[accumulation.index]


def _zeros(parent: Computation, shape: Shape) -> Instruction:
    # A lone scalar in place of an array's values stands for them, with zeros behind it.
    return parent.add(Opcode.CONSTANT, shape, payload="0")


def _start_from(loop: Instruction, values: Mapping[int, Instruction]) -> None:
    """Give elements of the state other initial values, which may have other shapes."""
    init = loop.operands[0]
    operands = [
        values[index] if index in values else element(init, index)
        for index in range(len(init.shape.elements))
    ]
    shape = tuple_shape(operand.shape for operand in operands)
    if init.opcode is Opcode.TUPLE and list(init.users) == [loop] and not init.is_root:
        init.set_operands(operands)
        init.set_shape(shape)
    else:
        loop.set_operands([loop.parent.add(Opcode.TUPLE, shape, operands)])
    if loop.shape is not shape:
        loop.set_shape(shape)


# -- after the loop -----------------------------------------------------------------------------


def _reduce_sum(
    total: Instruction, accumulation: Accumulation, channel_ids: Iterator[int]
) -> Instruction:
    collective = accumulation.collective
    type_name = collective.shape.type_name
    if collective.opcode is Opcode.REDUCE_SCATTER:
        shape = collective.shape
    else:
        shape = total.shape.with_element_type(type_name)
    reduced = _repeat(collective, _converted(total, type_name), shape)
    if "channel_id" in collective.attributes:
        reduced.set_attribute("channel_id", str(next(channel_ids)))
    return _converted(reduced, total.shape.type_name)


def _reduce_stored(loop: Instruction, storage: Storage, indices: _Indices) -> Instruction:
    stored = element(loop, storage.index)
    parent, whole = loop.parent, stored.shape
    type_name = storage.collective.shape.type_name
    part = stored
    is_part = storage.sizes != whole.dimensions
    if is_part:
        ends = zip(storage.offsets, storage.sizes, strict=True)
        slices = ", ".join(f"[{start}:{start + size}]" for start, size in ends)
        shape = array_shape(whole.type_name, storage.sizes, layout=whole.layout)
        part = parent.add(Opcode.SLICE, shape, [stored], attributes={"slice": f"{{{slices}}}"})
    part = _converted(part, type_name)
    reduced = _converted(_repeat(storage.collective, part, part.shape), whole.type_name)
    if not is_part:
        return reduced
    starts = [indices[offset] for offset in storage.offsets]
    return parent.add(Opcode.DYNAMIC_UPDATE_SLICE, whole, [stored, reduced, *starts])


class _Indices(dict[int, Instruction]):
    """Constant indices in a computation: one instruction for each number."""

    def __init__(self, parent: Computation) -> None:
        self._parent = parent

    def __missing__(self, number: int) -> Instruction:
        scalar = array_shape("s64")
        self[number] = self._parent.add(Opcode.CONSTANT, scalar, payload=str(number))
        return self[number]


def _repeat(collective: Instruction, operand: Instruction, shape: Shape) -> Instruction:
    return operand.parent.add(
        collective.opcode,
        shape,
        [operand],
        name=collective.name,
        attributes=attributes_for_another_value(collective),
        called=collective.called,
    )


def _converted(value: Instruction, type_name: str) -> Instruction:
    if value.shape.type_name == type_name:
        return value
    return value.parent.add(Opcode.CONVERT, value.shape.with_element_type(type_name), [value])


def _hand_out(
    loop: Instruction,
    users: Iterable[Instruction],
    results: Mapping[int, Instruction],
    *,
    is_root: bool,
) -> None:
    """Let what used elements of the loop's result use others."""
    others: list[Instruction] = []
    for user in users:
        if user.opcode is not Opcode.GET_TUPLE_ELEMENT:
            others.append(user)
        elif user.tuple_index in results:
            replace_instruction(user, results[user.tuple_index])
    if not others and not is_root:
        return
    elements = [
        results[index] if index in results else element(loop, index)
        for index in range(len(loop.shape.elements))
    ]
    whole = make_tuple(loop.parent, elements)
    for user in others:
        user.exchange_operand(loop, whole)
    if is_root:
        loop.parent.set_root(whole)


# -- in the loop --------------------------------------------------------------------------------


def _sum_whole(accumulations: Sequence[Accumulation], body: SharedBody) -> None:
    """Let a loop sum what reduce-scatters would have cut into shards."""
    if not accumulations:
        return
    wide: dict[int, Shape] = {}
    for accumulation in accumulations:
        shape = wide[accumulation.index] = _summed_shape(accumulation)
        for step in accumulation.selects:
            _choose_whole(step, shape)
        reads = body.reads(accumulation.index)
        for value in (*reads, *accumulation.selects, accumulation.addition):
            value.set_shape(shape)
    conditions = dict.fromkeys(loop.called[1] for loop in body.loops)
    states = [condition.parameters[0] for condition in conditions]
    for value in (body.state, body.root, *states):
        elements = enumerate(value.shape.elements)
        value.set_shape(tuple_shape(wide.get(index, shape) for index, shape in elements))


def _choose_whole(select: Instruction, shape: Shape) -> None:
    """Let a select choose between values of another shape, one of them zero."""
    predicate, *sides = select.operands
    scalar = scalar_of_broadcast(predicate)
    assert scalar is not None
    parent = select.parent
    if not predicate.shape.is_scalar:
        wide = shape.with_element_type("pred")
        predicate = parent.add(Opcode.BROADCAST, wide, [scalar], attributes={"dimensions": "{}"})
    zero = _zeros(parent, shape)
    select.set_operands([predicate, *(zero if is_zero(side) else side for side in sides)])
