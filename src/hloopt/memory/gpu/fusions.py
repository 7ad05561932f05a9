"""XLA:GPU's own rule for fusions that write their result over an operand."""

from __future__ import annotations

from dataclasses import dataclass

from hloopt.analysis.dataflow import Position, slots_of
from hloopt.ir import Computation, Instruction, Opcode
from hloopt.ir.attributes.typed import fusion_kind_of
from hloopt.ir.shapes.shape import Shape
from hloopt.memory.elementwise import Elementwise


def gpu_fusion_may_overwrite(fusion: Instruction, number: int, result: Position) -> bool | None:
    """Whether the result of `fusion` at a position may be written over operand `number`.

    A fused kernel reads and writes element after element, so one way from the parameter must lead
    to this result, and all of them through instructions that keep each element in its place: to
    a result, or to the reduction where the kernel makes one (a second one is not looked at). Where
    this result is an update, a scatter or a sort, they must lead to no other result and to no
    reduction; a slice of the operand may be read where the same slice of it is updated. None, no
    opinion, of kernels that transpose. O(body).
    """
    body = fusion.called[0]
    is_input = fusion_kind_of(fusion) == "kInput"
    if is_input and _first(body, Opcode.TRANSPOSE):
        return None
    output = _output(body, result.slot)
    if output is None or not _have_equal_elements(
        fusion.operands[number].shape, slots_of(fusion.shape).parts[result.slot]
    ):
        return False
    kernel = _Kernel(output, result.slot, _first(body, Opcode.REDUCE) if is_input else None)
    parameter = next(p for p in body.parameters if p.parameter_number == number)
    return kernel.keeps_elements_of(parameter)


_IN_PLACE = (Opcode.DYNAMIC_UPDATE_SLICE, Opcode.SCATTER, Opcode.SORT)


@dataclass(slots=True)
class _Kernel:
    """A fused kernel, seen from one of its results."""

    output: Instruction
    slot: int
    reduction: Instruction | None

    def keeps_elements_of(self, parameter: Instruction) -> bool:
        updating = self.output
        while updating.opcode is Opcode.BITCAST:
            updating = updating.operands[0]
        is_in_place = updating.opcode in _IN_PLACE
        elementwise = Elementwise()
        reached = {parameter: None}
        waiting = [parameter]
        for instruction in waiting:  # grows
            for user in instruction.users:
                if user is self.reduction or user.opcode is Opcode.TUPLE:
                    if is_in_place and instruction is not self.output:
                        return False
                    continue
                if not (
                    self._ends_in(user, instruction, updating)
                    or _reads_updated_slice(user, updating)
                    or _keeps_place(user, instruction, elementwise)
                ):
                    return False
                if user not in reached:
                    reached[user] = None
                    waiting.append(user)
        return self.output in reached

    def _ends_in(self, user: Instruction, source: Instruction, updating: Instruction) -> bool:
        """Whether `user` is the update or sort at the end, and `source` what it works on."""
        if user is not updating:
            return False
        if user.opcode is Opcode.DYNAMIC_UPDATE_SLICE:
            return source not in user.operands[2:]
        if user.opcode is Opcode.SCATTER:
            return user.operands[0] is source and user.operands.count(source) == 1
        if user.opcode is Opcode.SORT:
            number = self.slot - 1  # none of a fusion of one result: XLA:GPU allows it nothing
            return (
                0 <= number < len(user.operands)
                and user.operands[number] is source
                and user.operands.count(source) == 1
            )
        return False


def _first(body: Computation, opcode: Opcode) -> Instruction | None:
    return next((i for i in body.instructions if i.opcode is opcode), None)


def _output(body: Computation, slot: int) -> Instruction | None:
    """The fused instruction that makes the result at a slot of the root."""
    root = body.root
    if not root.shape.is_tuple or (slot and root.opcode is Opcode.SORT):
        return root
    starts = slots_of(root.shape).element_starts[:-1]
    if root.opcode is not Opcode.TUPLE or slot not in starts:
        return None
    return root.operands[starts.index(slot)]


def _have_equal_elements(source: Shape, result: Shape) -> bool:
    if not (source.is_array and result.is_array and source.element_type and result.element_type):
        return False
    return (
        source.element_count() == result.element_count()
        and source.element_type.bits == result.element_type.bits
    )


def _reads_updated_slice(user: Instruction, updating: Instruction) -> bool:
    """Whether `user` reads the very slice that the kernel then writes."""
    return (
        user.opcode is Opcode.DYNAMIC_SLICE
        and updating.opcode is Opcode.DYNAMIC_UPDATE_SLICE
        and user.operands[0] is updating.operands[0]
        and user.shape is updating.operands[1].shape
        and user.operands[1:] == updating.operands[2:]
    )


def _keeps_place(user: Instruction, source: Instruction, elementwise: Elementwise) -> bool:
    if user.opcode is Opcode.BITCAST:
        return True
    return user.opcode is not Opcode.COPY and all(
        elementwise.on_operand(user, number)
        for number, operand in enumerate(user.operands)
        if operand is source
    )
