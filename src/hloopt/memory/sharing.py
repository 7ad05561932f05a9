"""Which results an instruction writes over its operands, by its opcode or its annotation."""

from __future__ import annotations

from dataclasses import dataclass, field

from hloopt.ir import Computation, Instruction, Opcode
from hloopt.ir.attribute_values import parse_output_to_operand_aliasing
from hloopt.ir.opcode import ELEMENTWISE_BINARY, ELEMENTWISE_UNARY

Index = tuple[int, ...]
Pair = tuple[Index, int, Index]
"""A result's shape index, an operand's number, and the index in that operand."""

_ELEMENTWISE = ELEMENTWISE_UNARY | ELEMENTWISE_BINARY | {Opcode.CLAMP, Opcode.SELECT}
_ANNOTATED = (Opcode.CUSTOM_CALL, Opcode.FUSION, Opcode.ASYNC_START)
_OPERAND_0 = (Opcode.DYNAMIC_UPDATE_SLICE, Opcode.SET_DIMENSION_SIZE)
_IN_PLACE_PERMUTE_OPERANDS = 4


def in_place_pairs(instruction: Instruction) -> list[Pair]:
    """The results that must lie where an operand lies, apart from what a fusion's body says."""
    opcode = instruction.opcode
    if opcode in _OPERAND_0:
        return [((), 0, ())]
    if opcode is Opcode.SCATTER:
        return _one_to_one(len(instruction.operands) // 2)
    if opcode is Opcode.ALL_REDUCE_START:
        return _one_to_one(len(instruction.operands))
    if opcode is Opcode.RAGGED_ALL_TO_ALL:
        return [((), 1, ())]
    if len(instruction.operands) == _IN_PLACE_PERMUTE_OPERANDS:
        if opcode is Opcode.COLLECTIVE_PERMUTE:
            return [((), 1, ())]
        if opcode is Opcode.COLLECTIVE_PERMUTE_START:
            return [((1,), 1, ())]
    if opcode in _ANNOTATED:
        text = instruction.attributes.get("output_to_operand_aliasing")
        if text:
            return [
                (alias.output_index, alias.parameter, alias.parameter_index)
                for alias in parse_output_to_operand_aliasing(text)
            ]
    return []


def _one_to_one(count: int) -> list[Pair]:
    return [((), 0, ())] if count == 1 else [((i,), i, ()) for i in range(count)]


@dataclass(slots=True)
class FusionSharing:
    """What the bodies of fusions say about sharing; each body is looked at once. O(body)."""

    _pairs: dict[Computation, list[Pair]] = field(default_factory=dict)
    _elementwise: dict[Computation, frozenset[int]] = field(default_factory=dict)

    def pairs(self, fusion: Instruction) -> list[Pair]:
        """In-place pairs: a result that is a dynamic-update-slice or the like of a parameter.

        What a fusion nested in the body does in place is not followed.
        """
        body = fusion.called[0]
        pairs = self._pairs.get(body)
        if pairs is None:
            pairs = self._pairs[body] = _pairs_of_body(body)
        return pairs

    def overwritable(self, fusion: Instruction) -> frozenset[int]:
        """The operands of a loop fusion that it only reads element by element."""
        if fusion.attributes.get("kind") not in ("kLoop", "kInput"):
            return frozenset()
        body = fusion.called[0]
        numbers = self._elementwise.get(body)
        if numbers is None:
            numbers = self._elementwise[body] = _elementwise_parameters(body)
        return numbers


def _pairs_of_body(body: Computation) -> list[Pair]:
    pairs: list[Pair] = []
    for output, shape in body.root.shape.subshapes():
        if shape.is_tuple:
            continue
        instruction, index = _trace(body.root, output)
        if instruction.opcode is Opcode.FUSION:
            continue
        for result, operand, operand_index in in_place_pairs(instruction):
            if result == index:
                source, source_index = _trace(instruction.operands[operand], operand_index)
                if source.opcode is Opcode.PARAMETER:
                    pairs.append((output, source.parameter_number, source_index))
    return pairs


def _trace(instruction: Instruction, index: Index) -> tuple[Instruction, Index]:
    """Where a result comes from, through tuples, get-tuple-elements and bitcasts."""
    while True:
        if instruction.opcode is Opcode.TUPLE and index:
            instruction, index = instruction.operands[index[0]], index[1:]
        elif instruction.opcode is Opcode.GET_TUPLE_ELEMENT:
            instruction, index = instruction.operands[0], (instruction.tuple_index, *index)
        elif instruction.opcode is Opcode.BITCAST and not index:
            instruction = instruction.operands[0]
        else:
            return instruction, index


def _elementwise_parameters(body: Computation) -> frozenset[int]:
    """Parameters all of whose uses, to the root, are elementwise."""
    blocked: set[Instruction] = set()
    for instruction in reversed(list(body.instructions)):
        transparent = instruction.opcode is Opcode.TUPLE or (
            instruction.opcode in _ELEMENTWISE and instruction not in blocked
        )
        if not transparent or instruction in blocked:
            blocked.update(instruction.operands)
    return frozenset(p.parameter_number for p in body.parameters if p not in blocked)


def may_overwrite(instruction: Instruction, operand: int, fusions: FusionSharing) -> bool:
    """Whether a result of `instruction` may lie where an operand that ends there lies.

    True where each element is read before its place is written, and shapes are equal. Copies
    never overwrite.
    """
    source = instruction.operands[operand]
    opcode = instruction.opcode
    if opcode is Opcode.COPY or source.opcode is Opcode.CONSTANT:
        return False
    if opcode is Opcode.SORT:
        return (
            len(source.users) == 1
            and len(instruction.operands) == 1
            and source.shape is instruction.shape
        )
    if opcode is Opcode.FUSION:
        shapes = (instruction.shape, *instruction.shape.elements)
        return source.shape in shapes and operand in fusions.overwritable(instruction)
    return opcode in _ELEMENTWISE and source.shape is instruction.shape
