"""The results that lie where an operand lies: instructions that work in place.

One table for all who reason about buffers. `in_place_pairs` answers from opcode, annotation and,
for a fusion, from its body.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from hloopt.analysis.dataflow.forwarding import is_in_place_permute
from hloopt.analysis.dataflow.slots import Index, slots_of
from hloopt.analysis.nvshmem import uses_nvshmem
from hloopt.diagnostics import HloVerifyError
from hloopt.ir import Computation, Instruction, Opcode
from hloopt.ir.async_chains import async_start_of, bound_operands
from hloopt.ir.attributes.values import parse_output_to_operand_aliasing


class InPlacePair(NamedTuple):
    """The result at `output` lies where operand number `operand` has `operand_index`."""

    output: Index
    operand: int
    operand_index: Index


_FUSION = Opcode.FUSION  # a member of an enum is slow to look up in a loop


@dataclass(slots=True)
class InPlace:
    """In-place pairs of instructions; the body of each fusion is looked at once."""

    through_reshapes: bool = False
    """Whether a fusion that reshapes what it updates is in place as well: on XLA:GPU."""
    _of_bodies: dict[Computation, list[InPlacePair]] = field(default_factory=dict)

    def pairs(self, instruction: Instruction) -> list[InPlacePair]:
        """The pairs of an instruction. O(operands), for a fusion O(its outputs) once."""
        find = _PAIRS.get(instruction.opcode)
        pairs = [] if find is None else find(instruction)
        if instruction.opcode is _FUSION:
            pairs = pairs + self._pairs_of_body(instruction)
        return pairs

    def _pairs_of_body(self, fusion: Instruction) -> list[InPlacePair]:
        """An output that is, say, a dynamic-update-slice of a parameter is in place."""
        if fusion.called[0].root.opcode not in _MAY_FORWARD:
            return []  # as is most often so: no output is followed
        stack = [fusion]
        while stack:  # the bodies of nested fusions first
            body = stack[-1].called[0]
            nested = [
                i
                for i in body.instructions
                if i.opcode is _FUSION and i.called[0] not in self._of_bodies
            ]
            if nested:
                if len(stack) > len(body.module.computations):
                    raise HloVerifyError(f"computation '%{body.name}' calls itself")
                stack.append(nested[0])
                continue
            self._of_bodies.setdefault(body, self._find_in(body))
            stack.pop()
        return self._of_bodies[fusion.called[0]]

    def _find_in(self, body: Computation) -> list[InPlacePair]:
        pairs: list[InPlacePair] = []
        slots = slots_of(body.root.shape)
        for output, shape in zip(slots.indices, slots.parts, strict=True):
            if shape.is_tuple:
                continue
            origin, index = self._origin(body.root, output)
            if origin.opcode not in _MAY_BE_IN_PLACE:
                continue
            source, index = self._step_in_place(origin, index, required=True)
            if source is not None and source.opcode is Opcode.FUSION:
                source, index = self._step_in_place(source, index, required=False)
            if source is not None and source.opcode is Opcode.PARAMETER:
                pairs.append(InPlacePair(output, source.parameter_number, index))
        return pairs

    def _step_in_place(
        self, instruction: Instruction, index: Index, *, required: bool
    ) -> tuple[Instruction | None, Index]:
        """From a result that is in place to what its operand is; None where it is not."""
        if instruction.opcode is Opcode.FUSION:
            pairs = self._of_bodies[instruction.called[0]]
            if not required:  # at the end of the fusion the annotation does not count
                pairs = _annotated(instruction) + pairs
        else:
            find = _PAIRS.get(instruction.opcode)
            pairs = [] if find is None else find(instruction)
        for output, operand, operand_index in pairs:
            if output == index and operand < len(instruction.operands):
                return self._origin(instruction.operands[operand], operand_index)
        return (None, index) if required else (instruction, index)

    def _origin(self, instruction: Instruction, index: Index) -> tuple[Instruction, Index]:
        """The origin of a result: through tuples, then get-tuple-elements, then bitcasts."""
        while instruction.opcode is Opcode.TUPLE and index:
            instruction, index = instruction.operands[index[0]], index[1:]
        while instruction.opcode is Opcode.GET_TUPLE_ELEMENT:
            instruction, index = instruction.operands[0], (instruction.tuple_index, *index)
        while not index and (
            instruction.opcode is Opcode.BITCAST
            or (self.through_reshapes and instruction.opcode is Opcode.RESHAPE)
        ):
            instruction = instruction.operands[0]
        return instruction, index


# -- by opcode ------------------------------------------------------------------------------------


def _first_operand(instruction: Instruction) -> list[InPlacePair]:
    return [InPlacePair((), 0, ())]


def _second_operand(instruction: Instruction) -> list[InPlacePair]:
    return [InPlacePair((), 1, ())]


def _scatter(instruction: Instruction) -> list[InPlacePair]:
    return _one_to_one(len(instruction.operands) // 2)


def _all_reduce_start(instruction: Instruction) -> list[InPlacePair]:
    return [] if uses_nvshmem(instruction) else _one_to_one(len(instruction.operands))


def _one_to_one(count: int) -> list[InPlacePair]:
    if count == 1:
        return [InPlacePair((), 0, ())]
    return [InPlacePair((i,), i, ()) for i in range(count)]


def _permute(instruction: Instruction) -> list[InPlacePair]:
    if not is_in_place_permute(instruction):
        return []
    written = instruction.operands[1].shape
    start: Index = (1,) if instruction.opcode is Opcode.COLLECTIVE_PERMUTE_START else ()
    elements = [InPlacePair((*start, i), 1, (i,)) for i in range(len(written.elements))]
    return [InPlacePair(start, 1, ()), *elements]


def _annotated(instruction: Instruction) -> list[InPlacePair]:
    text = instruction.attribute("output_to_operand_aliasing")
    if not text:
        return []
    return [
        InPlacePair(alias.output_index, alias.parameter, alias.parameter_index)
        for alias in parse_output_to_operand_aliasing(text)
    ]


def _async_binding(instruction: Instruction) -> list[InPlacePair]:
    """The aliasing that the start states, of the operands that this start or update binds.

    A result that is not there yet has an empty tuple in its place.
    """
    if instruction.opcode is Opcode.ASYNC_START:
        before, chain = 0, 0
    else:
        before, chain = bound_before(instruction), 1
    own = range(before, before + len(instruction.operands) - chain)
    slots = slots_of(instruction.shape)
    pairs: list[InPlacePair] = []
    for output, operand, index in _annotated(async_start_of(instruction)):
        slot = slots.at(output)
        if operand in own and slot is not None and slots.parts[slot].text != "()":
            pairs.append(InPlacePair(output, operand - before + chain, index))
    return pairs


def bound_before(update: Instruction) -> int:
    """The number of operands of the wrapped computation that an asynchronous update finds bound
    already."""
    return len(bound_operands(update.operands[0]))


def _async_done(instruction: Instruction) -> list[InPlacePair]:
    """The aliasing that the start states of its element 1, seen from the done."""
    return [
        InPlacePair(output[1:], 0, (0, operand, *index))
        for output, operand, index in _annotated(async_start_of(instruction))
        if output[:1] == (1,)
    ]


_PAIRS: dict[Opcode, Callable[[Instruction], list[InPlacePair]]] = {
    Opcode.DYNAMIC_UPDATE_SLICE: _first_operand,
    Opcode.SET_DIMENSION_SIZE: _first_operand,
    Opcode.SCATTER: _scatter,
    Opcode.ALL_REDUCE_START: _all_reduce_start,
    Opcode.RAGGED_ALL_TO_ALL: _second_operand,
    Opcode.COLLECTIVE_PERMUTE: _permute,
    Opcode.COLLECTIVE_PERMUTE_START: _permute,
    Opcode.CUSTOM_CALL: _annotated,
    Opcode.FUSION: _annotated,
    Opcode.ASYNC_START: _async_binding,
    Opcode.ASYNC_UPDATE: _async_binding,
    Opcode.ASYNC_DONE: _async_done,
}
IN_PLACE = frozenset(_PAIRS)
"""The opcodes of instructions that may work in place."""
_MAY_BE_IN_PLACE = IN_PLACE | {_FUSION}
_MAY_FORWARD = frozenset(
    (*_PAIRS, Opcode.TUPLE, Opcode.GET_TUPLE_ELEMENT, Opcode.BITCAST, Opcode.RESHAPE)
)
