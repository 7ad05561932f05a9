"""The work of one run of a fusion: operations and bytes read.

A kernel walks through the elements of its results and evaluates what they need. Operations that
walk along share evaluations. One that needs other elements, or the same in another shape (a slice,
a broadcast, a bitcast, a reduction) has what it reads evaluated for itself, as often as it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from math import prod
from typing import TypeAlias

from hloopt.ir import Instruction, Opcode
from hloopt.ir.attributes.typed import dimensions_of, fusion_kind_of
from hloopt.ir.opcode import ELEMENTWISE_BINARY, ELEMENTWISE_UNARY
from hloopt.ir.ordering import post_order
from hloopt.ir.shapes.shape import Shape
from hloopt.targets.performance import load_operation_costs

_Walk: TypeAlias = "Instruction | int | None"
"""Along what elements are evaluated: those a reduction or the like needs, or those of results: of
so many elements, or of all results."""

_CHOOSING = frozenset((Opcode.SELECT, Opcode.CLAMP, Opcode.COMPARE))
ELEMENTWISE = (ELEMENTWISE_UNARY - {Opcode.COPY}) | ELEMENTWISE_BINARY | _CHOOSING
"""Opcodes that compute each element from the same element of their operands."""
_ALONG = ELEMENTWISE | {Opcode.COPY}
"""Opcodes that need the element of each operand that they make."""
_WARP = 32
"""Threads that run in step."""
_CHOICE = 6
_DIVERGENT_CHOICE = 400
"""Flops of finding the part of a concatenation that an element is in: XLA:GPU's, as it answers
when asked; the second where threads that run in step are in different parts."""


@dataclass(slots=True)
class FusedWork:
    """In 32-bit flops, and elements."""

    flops: float = 0.0
    reads: dict[Instruction, float] = field(default_factory=dict)
    """The number of elements that are read of each parameter, one counting as often as it is
    read."""


def results_of(fusion: Instruction) -> list[Instruction]:
    """The fused instructions whose values a fusion writes."""
    root = fusion.called[0].root
    return list(dict.fromkeys(root.operands)) if root.opcode is Opcode.TUPLE else [root]


def written(result: Instruction) -> Shape:
    """The bytes written of a result: of an update in place just the update."""
    if result.opcode is Opcode.DYNAMIC_UPDATE_SLICE:
        return result.operands[1].shape
    return result.shape


@cache
def elements(shape: Shape) -> int:
    """Of an array, or the first one of a tuple; 0 of a token."""
    while shape.elements:
        shape = shape.elements[0]
    return shape.element_count() if shape.is_array else 0


def fused_work(fusion: Instruction) -> FusedWork:
    """O(fused instructions and their operands, times what shares them)."""
    walks: dict[Instruction, dict[_Walk, float]] = {}

    def need(value: Instruction, walk: _Walk, count: float) -> None:
        known = walks.setdefault(value, {})
        known[walk] = max(known.get(walk, 0.0), count)

    is_loop = fusion_kind_of(fusion) == "kLoop"
    results = results_of(fusion)
    for result in results:
        count = elements(written(result))
        walk: _Walk = result if result.opcode is Opcode.REDUCE else count
        need(result, None if is_loop else walk, count)
    work = FusedWork()
    in_place = {result for result in results if result.opcode is Opcode.DYNAMIC_UPDATE_SLICE}
    for instruction in reversed(post_order(fusion.called[0])):
        own = walks.get(instruction)
        if own is None:
            continue
        opcode = instruction.opcode
        if opcode is Opcode.PARAMETER:
            work.reads[instruction] = sum(own.values())
        elif opcode in _ALONG:
            if opcode in ELEMENTWISE:
                flops = operation_flops(instruction.opcode, instruction.shape)
                work.flops += sum(own.values()) * flops
            for operand in instruction.operands:
                for along, share in own.items():
                    need(operand, along, share)
        else:
            total = sum(own.values())
            work.flops += _applied_flops(instruction, total)
            for operand, share in _needs(instruction, total, is_root=instruction in in_place):
                # parts of a concatenation are walked through one by one
                need(operand, operand if opcode is Opcode.CONCATENATE else instruction, share)
    return work


def operation_flops(opcode: Opcode, shape: Shape) -> int:
    """The cost of an elementwise operation that makes `shape`, per element."""
    default, others = load_operation_costs()
    costs = others.get(opcode.value)
    return default if costs is None else costs.get(shape.type_name, default)


def _applied_flops(instruction: Instruction, count: float) -> float:
    """The flops of a reducer, and of choosing between parts; 0 for what only moves data."""
    if instruction.opcode is Opcode.CONCATENATE:
        return count * (_CHOICE if _is_even(instruction) else _DIVERGENT_CHOICE)
    if instruction.opcode is not Opcode.REDUCE:
        return 0.0
    steps = (i for i in instruction.called[0].instructions if i.opcode in ELEMENTWISE)
    flops = sum(operation_flops(step.opcode, step.shape) for step in steps)
    return count * _reduction(instruction) * flops


def _is_even(concatenate: Instruction) -> bool:
    """Whether the threads that run together are in the same part all along."""
    (dimension,) = dimensions_of(concatenate)
    return dimension == 0 or all(
        operand.shape.dimensions[dimension] % _WARP == 0 for operand in concatenate.operands
    )


def _reduction(reduce: Instruction) -> float:
    """The number of elements that become one."""
    return elements(reduce.operands[0].shape) / max(elements(reduce.shape), 1)


def _needs(
    instruction: Instruction, count: float, *, is_root: bool
) -> Iterator[tuple[Instruction, float]]:
    """The elements of its operands that an instruction needs to make `count` elements."""
    needs = _NEEDS.get(instruction.opcode)
    if needs is not None:
        yield from zip(instruction.operands, needs(instruction, count), strict=False)
    elif instruction.opcode is Opcode.DYNAMIC_UPDATE_SLICE:
        target, update, *indices = instruction.operands
        if not is_root:
            yield target, count
        yield update, count if is_root else elements(update.shape)
        yield from ((index, 1.0) for index in indices)
    else:
        for operand in instruction.operands:
            yield operand, elements(operand.shape)


def _of_first(instruction: Instruction, count: float) -> Iterator[float]:
    yield count
    yield from (1.0 for _ in instruction.operands[1:])


def _of_reduce(reduce: Instruction, count: float) -> Iterator[float]:
    inputs = len(reduce.operands) // 2
    yield from (count * _reduction(reduce) for _ in range(inputs))
    yield from (1.0 for _ in range(inputs))


def _of_parts(instruction: Instruction, count: float) -> Iterator[float]:
    whole = max(elements(instruction.shape), 1)
    return (count * min(elements(o.shape) / whole, 1.0) for o in instruction.operands)


def _of_gather(gather: Instruction, count: float) -> Iterator[float]:
    yield count
    yield prod(gather.operands[1].shape.dimensions)


_NEEDS: dict[Opcode, Callable[[Instruction, float], Iterator[float]]] = {
    **dict.fromkeys(
        (
            *(Opcode.SLICE, Opcode.DYNAMIC_SLICE, Opcode.BITCAST, Opcode.BROADCAST),
            *(Opcode.RESHAPE, Opcode.TRANSPOSE, Opcode.REVERSE),
        ),
        _of_first,
    ),
    Opcode.REDUCE: _of_reduce,
    **dict.fromkeys((Opcode.CONCATENATE, Opcode.PAD), _of_parts),
    Opcode.GATHER: _of_gather,
}
