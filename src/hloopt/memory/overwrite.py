"""Whether a result may be written where an operand lies that is needed no more."""

from __future__ import annotations

from collections.abc import Callable

from hloopt.analysis.dataflow import Dataflow, Position, Use, slots_of
from hloopt.analysis.in_place import InPlace
from hloopt.ir import Instruction, Opcode
from hloopt.ir.attributes.typed import fusion_kind_of
from hloopt.memory.elementwise import Elementwise

BackendRule = Callable[[Instruction, int, Position], bool | None]
"""A backend's opinion: an instruction, an operand's number, the position of the result. None where
it has none."""

_UPDATES_FIRST_OPERAND = (
    *(Opcode.DYNAMIC_UPDATE_SLICE, Opcode.SCATTER, Opcode.SET_DIMENSION_SIZE),
)
_ELEMENTWISE_KINDS = ("kLoop", "kInput")
_CONTRACTIONS = (Opcode.DOT, Opcode.CONVOLUTION)


class Overwriting:
    """XLA's rules for results that overwrite operands whose last reader makes them."""

    def __init__(
        self, flow: Dataflow, in_place: InPlace, backend_rule: BackendRule | None = None
    ) -> None:
        self.flow = flow
        self.in_place = in_place
        self.backend_rule = backend_rule
        self.elementwise = Elementwise()

    def may(self, earlier: int, position: Position, later: int) -> bool:
        """Whether value `later` may be written over value `earlier`, held at `position`."""
        user = self.flow.definer[later]
        source = position.instruction
        if user.opcode is Opcode.COPY or source not in user.operands:
            return False
        if source.opcode is Opcode.CONSTANT:
            return False
        source_shape = slots_of(source.shape).parts[position.slot]
        is_same_shape = source_shape is self.flow.shape(later)
        if is_same_shape and self._is_in_place(earlier, later, user):
            return True
        number = user.operands.index(source)
        result = Position(user, self.flow.slot[later])
        return self._by_rule(number, earlier, result, is_same_shape=is_same_shape)

    def may_share(self, use: Use, result: Position) -> bool:
        """Whether what `use` reads may lie where its user has the result, also if that is a copy.

        By the operands and the shapes there are now, whatever values they had.
        """
        user = use.user
        source = user.operands[use.operand]
        if source.opcode is Opcode.CONSTANT:
            return False
        operand_slots, result_slots = slots_of(source.shape), slots_of(user.shape)
        is_same_shape = operand_slots.parts[use.slot] is result_slots.parts[result.slot]
        if is_same_shape and any(
            number == use.operand
            and result_slots.at(output) == result.slot
            and operand_slots.at(index) == use.slot
            for output, number, index in self.in_place.pairs(user)
        ):
            return True
        earlier = self.flow.held[source][use.slot]
        first = user.operands.index(source)
        return self._by_rule(first, earlier, result, is_same_shape=is_same_shape)

    def _by_rule(self, number: int, earlier: int, result: Position, *, is_same_shape: bool) -> bool:
        if self.backend_rule is not None:
            opinion = self.backend_rule(result.instruction, number, result)
            if opinion is not None:
                return opinion
        return is_same_shape and self._by_opcode(number, earlier, result)

    def _is_in_place(self, earlier: int, later: int, user: Instruction) -> bool:
        flow = self.flow
        for output, number, index in self.in_place.pairs(user):
            if (
                number < len(user.operands)
                and flow.at(user, output) == later
                and flow.at(user.operands[number], index) == earlier
            ):
                return True
        return False

    def _by_opcode(self, number: int, earlier: int, result: Position) -> bool:
        user = result.instruction
        opcode = user.opcode
        source = user.operands[number]
        if opcode is Opcode.FUSION:
            return self._fusion(user, number)
        if opcode is Opcode.WHILE or opcode is Opcode.CONDITIONAL:
            return True  # conflicts inside show in the values inside
        if opcode in _UPDATES_FIRST_OPERAND:
            return _is_only(user, source, 0)
        if opcode is Opcode.TRIANGULAR_SOLVE:
            return _is_only(user, source, 1)
        if opcode is Opcode.SORT:
            return self._sort(source, result)
        if opcode is Opcode.CALL:
            return self._call(user, earlier)
        return self.elementwise.on_operand(user, number)

    def _fusion(self, fusion: Instruction, number: int) -> bool:
        kind = fusion_kind_of(fusion)
        body = fusion.called[0]
        if kind in _ELEMENTWISE_KINDS:
            return number in self.elementwise.parameters(body, through_tuples=True)
        root = body.root
        if kind == "kOutput" and root.opcode is Opcode.ADD:
            for this, other in ((0, 1), (1, 0)):
                if root.operands[other].opcode in _CONTRACTIONS:
                    parameter = next(p for p in body.parameters if p.parameter_number == number)
                    return root.operands[this] is parameter and list(parameter.users) == [root]
        return self.elementwise.on_operand(fusion, number)

    def _sort(self, source: Instruction, result: Position) -> bool:
        sort = result.instruction
        if len(source.users) != 1:
            return False
        if len(sort.operands) == 1:
            return True
        if sort.operands.count(source) != 1:
            return False
        return slots_of(sort.shape).indices[result.slot] == (sort.operands.index(source),)

    def _call(self, call: Instruction, earlier: int) -> bool:
        uses = self.flow.uses(earlier)
        root = call.called[0].root
        if len(uses) != 2 or not any(use.user is call for use in uses):
            return False
        return any(
            use.user is root and self.elementwise.on_operand(root, use.operand) for use in uses
        )


def _is_only(user: Instruction, source: Instruction, number: int) -> bool:
    """Whether `source` is operand `number` of `user` and no other."""
    return [i for i, operand in enumerate(user.operands) if operand is source] == [number]
