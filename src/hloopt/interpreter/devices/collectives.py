"""Results of collectives: the values of all participants from the operands of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from hloopt.diagnostics import counted
from hloopt.interpreter.devices.exchange import Incoming
from hloopt.interpreter.errors import cannot_run
from hloopt.interpreter.plan import Plans
from hloopt.interpreter.scalar_calls import apply_to_arrays
from hloopt.interpreter.values import Array, Value, zeros
from hloopt.ir.attributes.typed import dimensions_of
from hloopt.ir.attributes.values import parse_int_lists
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape import Shape, format_shape

STARTS = {
    Opcode.ALL_REDUCE_START: Opcode.ALL_REDUCE_DONE,
    Opcode.ALL_GATHER_START: Opcode.ALL_GATHER_DONE,
    Opcode.COLLECTIVE_PERMUTE_START: Opcode.COLLECTIVE_PERMUTE_DONE,
}
DONES = {done: start for start, done in STARTS.items()}


class Gathered(NamedTuple):
    """A collective of which all participants are there. Lists are by rank in the group."""

    instruction: Instruction
    members: tuple[int, ...]
    """The numbers of the devices."""
    brought: Sequence[tuple[Value, ...]]
    """The operands of each."""
    incoming: Mapping[int, Sequence[Incoming]]
    plans: Plans


def results_of(gathered: Gathered) -> list[Value]:
    """The result on each participant; of a start, the result of its done. Raises RunError."""
    return _COLLECTIVES[gathered.instruction.opcode](gathered)


def is_collective(opcode: Opcode) -> bool:
    """Whether `results_of` knows an opcode: dones are not among them."""
    return opcode in _COLLECTIVES


def result_shape(instruction: Instruction) -> Shape:
    """The shape of what `results_of` gives."""
    if instruction.opcode in STARTS and instruction.opcode is not Opcode.ALL_REDUCE_START:
        return instruction.shape.elements[1]
    return instruction.shape


def in_flight(instruction: Instruction, operands: Sequence[Value]) -> Value:
    """The value of a start: zeros where the result is going to be."""
    if instruction.opcode is Opcode.ALL_REDUCE_START:
        return zeros(instruction.shape)
    is_in_place = "slice_sizes" in instruction.attributes
    first = operands[0] if is_in_place or len(operands) == 1 else tuple(operands)
    return first, *(zeros(element) for element in instruction.shape.elements[1:])


def _shaped(instruction: Instruction, results: Sequence[Value]) -> Value:
    """A result per operand, as the value of the instruction. A permute may have tuples."""
    is_one_tuple = len(results) == 1 and isinstance(results[0], tuple)
    if result_shape(instruction).is_tuple and not is_one_tuple:
        return tuple(results)
    return results[0]


def _by_operand(gathered: Gathered) -> list[Sequence[Array]]:
    """The arrays that the participants bring for each operand."""
    return list(zip(*gathered.brought, strict=True))


def _dimension(instruction: Instruction) -> int:
    return dimensions_of(instruction)[0]


# -- reductions -----------------------------------------------------------------------------------


def _all_reduce(gathered: Gathered) -> list[Value]:
    return [_shaped(gathered.instruction, _totals(gathered))] * len(gathered.members)


def _reduce_scatter(gathered: Gathered) -> list[Value]:
    dimension = _dimension(gathered.instruction)
    parts = [_split(gathered, total, dimension) for total in _totals(gathered)]
    _check_sizes(gathered.instruction, [split[0] for split in parts], len(gathered.members))
    return [_shaped(gathered.instruction, own) for own in zip(*parts, strict=True)]


def _totals(gathered: Gathered) -> list[Array]:
    """Each operand reduced over the participants, in the order of their ranks."""
    computation = gathered.instruction.called[0]
    wide = _widened(computation)
    totals = []
    for operand, (total, *rest) in zip(
        gathered.instruction.operands, _by_operand(gathered), strict=True
    ):
        dtype = total.dtype
        if wide is not None and _is_narrow(operand.shape):
            total = total.astype(np.float32)
            for array in rest:
                total = wide(total, array.astype(np.float32))
        else:
            for array in rest:
                total = apply_to_arrays(gathered.plans, computation, (total, array))
        totals.append(total.astype(dtype, copy=False))
    return totals


def _widened(computation: Computation) -> Callable[[Array, Array], Array] | None:
    """The operation of NumPy for a sum or product: on narrow floats, XLA:CPU does it in f32."""
    root = computation.root
    if set(root.operands) != set(computation.parameters):
        return None
    return {Opcode.ADD: np.add, Opcode.MULTIPLY: np.multiply}.get(root.opcode)


def _is_narrow(shape: Shape) -> bool:
    """Whether an element has fewer bits than f16, or less precision."""
    element = shape.element_type
    assert element is not None
    return element.is_floating and element.bits <= 16 and element.name != "f16"


def _check_sizes(instruction: Instruction, arrays: Sequence[Array], count: int) -> None:
    """The shape says how many devices take part. Raises RunError if it is another number."""
    shape = result_shape(instruction)
    for stated, array in zip(shape.elements or (shape,), arrays, strict=True):
        if array.shape != stated.dimensions and not any(stated.dynamic):
            sizes = ",".join(map(str, array.shape))
            raise cannot_run(
                instruction,
                f"its shape is {format_shape(stated, layout=False)}, but with {count} in a group "
                f"it comes to {stated.type_name}[{sizes}]",
            )


def _split(gathered: Gathered, array: Array, dimension: int) -> list[Array]:
    """Equal parts of an array along a dimension, one for each participant."""
    count, size = len(gathered.members), array.shape[dimension]
    if size % count:
        raise cannot_run(
            gathered.instruction,
            f"dimension {dimension} has {size} elements, which are no {count} equal parts",
        )
    return np.split(array, count, dimension)


# -- values handed on -----------------------------------------------------------------------------


def _all_gather(gathered: Gathered) -> list[Value]:
    dimension = _dimension(gathered.instruction)
    whole = [np.concatenate(arrays, dimension) for arrays in _by_operand(gathered)]
    _check_sizes(gathered.instruction, whole, len(gathered.members))
    return [_shaped(gathered.instruction, whole)] * len(gathered.members)


def _all_to_all(gathered: Gathered) -> list[Value]:
    instruction = gathered.instruction
    if "dimensions" not in instruction.attributes:  # operand i is for rank i
        if len(gathered.brought[0]) != len(gathered.members):
            raise cannot_run(
                instruction,
                f"{counted(len(gathered.brought[0]), 'operand')} for groups of "
                f"{len(gathered.members)}",
            )
        return [_shaped(instruction, received) for received in _by_operand(gathered)]
    dimension = _dimension(instruction)
    received = [
        [
            np.concatenate(parts, dimension)
            for parts in zip(*(_split(gathered, a, dimension) for a in arrays), strict=True)
        ]
        for arrays in _by_operand(gathered)
    ]
    return [_shaped(instruction, own) for own in zip(*received, strict=True)]


def _ragged_all_to_all(gathered: Gathered) -> list[Value]:
    """Rows `offset : offset + size` of each input, written where the sender says.

    Offsets and sizes are one per receiver, or equally many for each.
    """
    outputs = [np.array(operands[1]) for operands in gathered.brought]
    for sender, operands in enumerate(gathered.brought):
        rows = operands[0]
        starts, sizes, targets, _ = (array.reshape(-1).tolist() for array in operands[2:])
        per_receiver, rest = divmod(len(starts), len(outputs))
        if rest:
            raise cannot_run(
                gathered.instruction,
                f"{counted(len(starts), 'offset')} for groups of {len(outputs)}",
            )
        for number, (start, size, target) in enumerate(zip(starts, sizes, targets, strict=True)):
            output = outputs[number // per_receiver]
            fits = min(start, size, target) >= 0
            if not fits or start + size > len(rows) or target + size > len(output):
                raise cannot_run(
                    gathered.instruction,
                    f"device {gathered.members[sender]} sends rows {start} to {start + size} of "
                    f"{len(rows)} to rows {target} to {target + size} of {len(output)}",
                )
            output[target : target + size] = rows[start : start + size]
    return list(outputs)


def _collective_broadcast(gathered: Gathered) -> list[Value]:
    instruction = gathered.instruction
    if instruction.attributes.get("has_dynamic_root") == "true":
        raise cannot_run(instruction, "a root that is an operand is not supported", "HLO501")
    return [_shaped(instruction, gathered.brought[0])] * len(gathered.members)


# -- permutes -------------------------------------------------------------------------------------


def _collective_permute(gathered: Gathered) -> list[Value]:
    if "slice_sizes" in gathered.instruction.attributes:
        return _permute_in_place(gathered)
    brought = dict(zip(gathered.members, gathered.brought, strict=True))
    return [
        _permuted(gathered.instruction, brought, gathered.incoming.get(device, ()), device)
        for device in gathered.members
    ]


def _permuted(
    instruction: Instruction,
    brought: Mapping[int, Sequence[Value]],
    incoming: Sequence[Incoming],
    device: int,
) -> Value:
    """The result on one device; zeros if no device sends to it."""
    if len(incoming) > 1:
        raise cannot_run(instruction, f"device {device} is the target of {len(incoming)} others")
    if incoming:
        return _shaped(instruction, brought[incoming[0].source])
    return _shaped(instruction, [_zeros_like(operand) for operand in brought[device]])


def _zeros_like(value: Value) -> Value:
    if isinstance(value, tuple):
        return tuple(map(_zeros_like, value))
    return None if value is None else np.zeros_like(value)


def _permute_in_place(gathered: Gathered) -> list[Value]:
    """Slices of inputs written into outputs, at offsets that each device has its own of.

    Operands are input, output, input offsets and output offsets, tuples where there are several
    buffers. With several slices per buffer, the first of as many equal parts of the list of pairs
    is about the first slice, and so on.
    """
    attributes = gathered.instruction.attributes
    sizes = parse_int_lists(attributes["slice_sizes"])
    pair_count = len(parse_int_lists(attributes["source_target_pairs"]))
    brought = {
        device: _slices(*operands)
        for device, operands in zip(gathered.members, gathered.brought, strict=True)
    }
    results = []
    for device, buffers in brought.items():
        written = [np.array(buffer.output) for buffer in buffers]
        slice_count = len(sizes) // len(buffers)
        for source, pair in gathered.incoming.get(device, ()):
            turn = pair * slice_count // pair_count
            for number, (own, other) in enumerate(zip(buffers, brought[source], strict=True)):
                size = sizes[number * slice_count + turn]
                target = _window(gathered, own.output, own.output_offsets[turn], size)
                read = _window(gathered, other.input, other.input_offsets[turn], size)
                written[number][target] = other.input[read]
        results.append(_shaped(gathered.instruction, written))
    return results


class _Buffer(NamedTuple):
    """One buffer of an in-place permute, with the offsets of each of its slices."""

    input: Array
    output: Array
    input_offsets: Sequence[Sequence[int]]
    output_offsets: Sequence[Sequence[int]]


def _slices(
    inputs: Value, outputs: Value, input_offsets: Value, output_offsets: Value
) -> list[_Buffer]:
    if not isinstance(inputs, tuple):
        return [_Buffer(inputs, outputs, _offsets(input_offsets), _offsets(output_offsets))]
    return [
        _Buffer(i, o, _offsets(starts), _offsets(targets))
        for i, o, starts, targets in zip(
            inputs, outputs, input_offsets, output_offsets, strict=True
        )
    ]


def _offsets(offsets: Value) -> list[list[int]]:
    """The offsets of each slice: a tuple of scalars, or a tuple of such tuples."""
    lists = offsets if all(isinstance(one, tuple) for one in offsets) else (offsets,)
    return [[int(offset) for offset in one] for one in lists]


def _window(
    gathered: Gathered, array: Array, offsets: Sequence[int], sizes: Sequence[int]
) -> tuple[slice, ...]:
    """A part of an array; dimensions without a size are there as a whole."""
    for offset, size, limit in zip(offsets, sizes, array.shape, strict=False):
        if not 0 <= offset <= offset + size <= limit:
            raise cannot_run(
                gathered.instruction,
                f"a slice {offset}:{offset + size} of {counted(limit, 'element')}",
            )
    return tuple(slice(o, o + size) for o, size in zip(offsets, sizes, strict=False))


_COLLECTIVES: dict[Opcode, Callable[[Gathered], list[Value]]] = {
    Opcode.ALL_REDUCE: _all_reduce,
    Opcode.ALL_REDUCE_START: _all_reduce,
    Opcode.REDUCE_SCATTER: _reduce_scatter,
    Opcode.ALL_GATHER: _all_gather,
    Opcode.ALL_GATHER_START: _all_gather,
    Opcode.ALL_TO_ALL: _all_to_all,
    Opcode.RAGGED_ALL_TO_ALL: _ragged_all_to_all,
    Opcode.COLLECTIVE_BROADCAST: _collective_broadcast,
    Opcode.COLLECTIVE_PERMUTE: _collective_permute,
    Opcode.COLLECTIVE_PERMUTE_START: _collective_permute,
}
