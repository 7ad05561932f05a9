"""Operands whose bytes are those of a result: operations that write where they read."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hloopt.ir import Instruction, Opcode
from hloopt.ir.shapes.leaves import element_range, index_range, leaf_count
from hloopt.ir.shapes.shape import Shape

Pair = tuple[int, int, int]
"""A leaf of an operand, by operand and leaf, and the leaf of the result that has its place."""
Index = tuple[int, ...]
"""A shape index."""

_ALIASING = re.compile(r"\{([\d,\s]*)\}\s*:\s*\(\s*(\d+)\s*,\s*\{([\d,\s]*)\}")
_PERMUTES_IN_PLACE = 4
"""Operands of a collective-permute that writes into its second one."""


def in_place_pairs(instruction: Instruction) -> Iterator[Pair]:
    """The leaves that an instruction writes in place, by MEMORY.md section 3. O(leaves)."""
    match instruction.opcode:
        case Opcode.DYNAMIC_UPDATE_SLICE | Opcode.SET_DIMENSION_SIZE:
            yield 0, 0, 0
        case Opcode.SCATTER | Opcode.ALL_REDUCE_START:
            for leaf in range(leaf_count(instruction.shape)):
                yield leaf, 0, leaf
        case Opcode.RAGGED_ALL_TO_ALL:
            yield 1, 0, 0
        case Opcode.COLLECTIVE_PERMUTE | Opcode.COLLECTIVE_PERMUTE_START:
            if len(instruction.operands) == _PERMUTES_IN_PLACE:
                count = leaf_count(instruction.operands[1].shape)
                is_start = instruction.opcode is Opcode.COLLECTIVE_PERMUTE_START
                first = element_range(instruction.shape, 1).start if is_start else 0
                yield from ((1, leaf, first + leaf) for leaf in range(count))
        case Opcode.ASYNC_START:
            yield from _wrapped(instruction)
        case Opcode.FUSION:
            yield from _fused(instruction)
    yield from _stated(instruction)


def _stated(instruction: Instruction) -> Iterator[Pair]:
    text = instruction.attribute("output_to_operand_aliasing") or ""
    for output, operand, index in aliases_in(text):
        read = index_range(instruction.operands[operand].shape, index)
        written = index_range(instruction.shape, output)
        for one, other in zip(
            range(read.start, read.stop), range(written.start, written.stop), strict=True
        ):
            yield operand, one, other


def aliases_in(text: str) -> Iterator[tuple[Index, int, Index]]:
    """Of the text of aliases: index of the output, number of the input and index within it."""
    for output, number, index in _ALIASING.findall(text):
        yield _index(output), int(number), _index(index)


def _index(text: str) -> Index:
    return tuple(int(number) for number in text.split(",") if number.strip())


def _wrapped(start: Instruction) -> Iterator[Pair]:
    """Of an async-start whose computation is one operation: its result is element 1."""
    root = start.called[0].root
    first = element_range(start.shape, 1).start
    for operand, leaf, output in in_place_pairs(root):
        parameter = root.operands[operand]
        if parameter.opcode is Opcode.PARAMETER and parameter.parameter_number < len(
            start.operands
        ):
            yield parameter.parameter_number, leaf, first + output


def _fused(fusion: Instruction) -> Iterator[Pair]:
    """Of a fusion: what its body does in place to a parameter."""
    root = fusion.called[0].root
    for output in range(leaf_count(fusion.shape)):
        made, leaf = _source(root, output)
        if made.opcode is Opcode.PARAMETER:
            continue
        for operand, read, written in in_place_pairs(made):
            if written != leaf:
                continue
            found, at = _source(made.operands[operand], read)
            if found.opcode is Opcode.FUSION:  # one that works in place itself
                steps = [pair for pair in in_place_pairs(found) if pair[2] == at]
                if steps:
                    found, at = _source(found.operands[steps[0][0]], steps[0][1])
            if found.opcode is Opcode.PARAMETER:
                yield found.parameter_number, at, output


def _source(instruction: Instruction, leaf: int) -> tuple[Instruction, int]:
    """The instruction that made a leaf, through tuples, get-tuple-elements and bitcasts."""
    while True:
        match instruction.opcode:
            case Opcode.TUPLE:
                number, leaf = _element_of(instruction.shape, leaf)
                instruction = instruction.operands[number]
            case Opcode.GET_TUPLE_ELEMENT:
                operand = instruction.operands[0]
                leaf += element_range(operand.shape, instruction.tuple_index).start
                instruction = operand
            case Opcode.BITCAST:
                instruction = instruction.operands[0]
            case _:
                return instruction, leaf


def _element_of(shape: Shape, leaf: int) -> tuple[int, int]:
    """The element of a tuple that has a leaf, and the number of the leaf within it."""
    for number in range(len(shape.elements)):
        found = element_range(shape, number)
        if leaf < found.stop:
            return number, leaf - found.start
    raise AssertionError("a leaf of the shape")
