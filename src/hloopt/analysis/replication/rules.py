"""The rule of each opcode: the agreement on its result from that on its operands, control flow
aside."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hloopt.analysis.replication.agreement import ALL, NONE, Agreement, Axis, Lattice
from hloopt.analysis.replication.collectives import Collectives
from hloopt.analysis.replication.values import Value, element, fitted, spread, whole
from hloopt.analysis.side_effects import has_own_side_effect
from hloopt.diagnostics import HloError
from hloopt.ir.attributes.values import parse_ints
from hloopt.ir.custom_targets import custom_call_target
from hloopt.ir.instruction import Instruction
from hloopt.ir.literals.literal import canonical_literal
from hloopt.ir.opcode import COLLECTIVES, ELEMENTWISE_BINARY, ELEMENTWISE_UNARY, Opcode
from hloopt.ir.shapes.leaf_annotations import is_replicated, leaf_shardings, parameter_replication
from hloopt.ir.shapes.leaves import leaf_count
from hloopt.ir.shapes.shape import Shape

_OF_OPERANDS = (
    (ELEMENTWISE_UNARY | ELEMENTWISE_BINARY)
    | frozenset(
        (
            *(Opcode.SELECT, Opcode.CLAMP, Opcode.MAP, Opcode.CONCATENATE, Opcode.CONVOLUTION),
            *(Opcode.DOT, Opcode.REDUCE, Opcode.BROADCAST, Opcode.TRANSPOSE, Opcode.RESHAPE),
            *(Opcode.BITCAST, Opcode.REVERSE, Opcode.GATHER, Opcode.SCATTER, Opcode.IOTA),
            *(Opcode.PAD, Opcode.SLICE, Opcode.DYNAMIC_SLICE, Opcode.DYNAMIC_UPDATE_SLICE),
            *(Opcode.REDUCE_WINDOW,),
        )
    )
) - {Opcode.COPY}
"""Opcodes whose result depends on nothing but their operands, by XLA's list."""
_DEVICE_SPECIFIC = COLLECTIVES | {Opcode.RNG, Opcode.RNG_GET_AND_UPDATE_STATE, Opcode.ASYNC_DONE}
"""Opcodes whose results differ between devices even for equal operands."""
_X64_CALLS = frozenset(("X64SplitLow", "X64SplitHigh", "X64Combine"))
_LONGEST_TABLE = 1 << 16

Values = Mapping[Instruction, Value]


class Rules:
    """The rules for one axis. Each instruction costs O(operands + leaves)."""

    def __init__(
        self,
        axis: Axis,
        counts: tuple[int, int],
        lattice: Lattice,
        *,
        partial: bool,
        presume_functions: bool = False,
    ):
        self.axis = axis
        self.lattice = lattice
        self._partial = partial
        self._presume_functions = presume_functions
        self._device_count = counts[0] if axis is Axis.REPLICAS else counts[1]
        self._collectives = Collectives(axis, counts, lattice, partial=partial)

    def value(self, instruction: Instruction, values: Values) -> Value:
        """The agreement of an instruction whose operands are in `values`."""
        opcode = instruction.opcode
        if opcode in _OF_OPERANDS:
            agreement = self._of_operands(instruction, values)
            if opcode is Opcode.DYNAMIC_SLICE and self._partial and agreement is not ALL:
                agreement = self._table_look_up(instruction) or agreement
            return spread(agreement, instruction.shape)
        if self._presume_functions and _may_be_function(instruction):
            return spread(self._of_operands(instruction, values), instruction.shape)
        rule = _RULES.get(opcode)
        return rule(self, instruction, values) if rule else spread(NONE, instruction.shape)

    def entry_parameter(self, parameter: Instruction) -> Value:
        """The agreement that sharding and `parameter_replication` promise of a parameter of the
        entry."""
        count = leaf_count(parameter.shape)
        flags = parameter_replication(parameter)
        if self.axis is Axis.REPLICAS:
            known = flags
        else:
            known = _replicated_leaves(parameter)
            if known and flags:
                known = [a and b for a, b in zip(known, flags, strict=False)]
        if known is None and self._presume_functions:
            known = [_may_be_index(leaf) for leaf in parameter.shape.leaves()]
        return _from_flags(parameter, known or [False] * count)

    def _of_operands(self, instruction: Instruction, values: Values) -> Agreement:
        agreement = ALL
        for operand in instruction.operands:
            value = values[operand]
            if value is not ALL:
                agreement = self.lattice.merge(agreement, whole(self.lattice, value))
        return agreement

    def _table_look_up(self, instruction: Instruction) -> Agreement | None:
        """A table of s32 read at the device's own number, as pipelined programs do."""
        sizes = parse_ints(instruction.attributes.get("dynamic_slice_sizes", "{}"))
        if len(instruction.operands) != 2 or tuple(sizes) != (1,):
            return None
        table, index = instruction.operands
        own_number = Opcode.REPLICA_ID if self.axis is Axis.REPLICAS else Opcode.PARTITION_ID
        if table.opcode is not Opcode.CONSTANT or index.opcode is not own_number:
            return None
        shape = table.shape
        length = shape.element_count()
        if shape.type_name != "s32" or shape.rank != 1:
            return None
        if max(length, self._device_count) > _LONGEST_TABLE:
            return None
        try:
            entries = parse_ints(canonical_literal(table.payload, shape))
        except HloError:
            return None
        if len(entries) != length:
            return None
        groups: dict[int, list[int]] = {}
        for device in range(self._device_count):
            groups.setdefault(entries[min(device, length - 1)], []).append(device)
        return self.lattice.partial([list(groups.values())])

    # -- one opcode each ----------------------------------------------------------------------

    def _constant(self, instruction: Instruction, values: Values) -> Value:
        return spread(ALL, instruction.shape)

    def _replica_id(self, instruction: Instruction, values: Values) -> Value:
        return NONE if self.axis is Axis.REPLICAS else ALL

    def _partition_id(self, instruction: Instruction, values: Values) -> Value:
        return ALL if self.axis is Axis.REPLICAS else NONE

    def _collective(self, instruction: Instruction, values: Values) -> Value:
        operands = self._of_operands(instruction, values)
        return spread(self._collectives.result(instruction, operands), instruction.shape)

    def _custom_call(self, instruction: Instruction, values: Values) -> Value:
        target = custom_call_target(instruction)
        known = target in _X64_CALLS and not has_own_side_effect(instruction)
        agreement = self._of_operands(instruction, values) if known else NONE
        return spread(agreement, instruction.shape)

    def _infeed(self, instruction: Instruction, values: Values) -> Value:
        known = _replicated_leaves(instruction) if self.axis is Axis.PARTITIONS else None
        return _from_flags(instruction, known or [False] * leaf_count(instruction.shape))

    def _tuple(self, instruction: Instruction, values: Values) -> Value:
        leaves: list[Agreement] = []
        for operand in instruction.operands:
            value = values[operand]
            if isinstance(value, tuple):
                leaves += value
            else:
                leaves.append(value)
        return fitted(tuple(leaves), instruction.shape)

    def _get_tuple_element(self, instruction: Instruction, values: Values) -> Value:
        (operand,) = instruction.operands
        found = element(values[operand], operand.shape, instruction.tuple_index)
        return fitted(found, instruction.shape)

    def _hand_on(self, instruction: Instruction, values: Values) -> Value:
        (operand,) = instruction.operands
        return fitted(values[operand], instruction.shape)


def _may_be_function(instruction: Instruction) -> bool:
    """Whether a result may be presumed to depend on the operands alone."""
    opcode = instruction.opcode
    if opcode in _RULES and opcode is not Opcode.CUSTOM_CALL:
        return False
    return opcode not in _DEVICE_SPECIFIC and not has_own_side_effect(instruction)


def _may_be_index(shape: Shape) -> bool:
    """Whether a parameter may be a trip count or index, which is the same on all devices."""
    return shape.is_scalar and (shape.type_name == "pred" or shape.type_name[0] in "su")


def _replicated_leaves(instruction: Instruction) -> list[bool] | None:
    shardings = leaf_shardings(instruction)
    return None if shardings is None else list(map(is_replicated, shardings))


def _from_flags(instruction: Instruction, known: list[bool]) -> Value:
    leaves = tuple(ALL if flag else NONE for flag in known)
    return fitted(leaves if instruction.shape.is_tuple else leaves[0], instruction.shape)


_RULES: dict[Opcode, Callable[[Rules, Instruction, Values], Value]] = {
    Opcode.ALL_GATHER: Rules._collective,
    Opcode.ALL_REDUCE: Rules._collective,
    Opcode.CONSTANT: Rules._constant,
    Opcode.COPY: Rules._hand_on,
    Opcode.CUSTOM_CALL: Rules._custom_call,
    Opcode.GET_TUPLE_ELEMENT: Rules._get_tuple_element,
    Opcode.INFEED: Rules._infeed,
    Opcode.OPT_BARRIER: Rules._hand_on,
    Opcode.PARTITION_ID: Rules._partition_id,
    Opcode.REPLICA_ID: Rules._replica_id,
    Opcode.TUPLE: Rules._tuple,
}
