"""Equality of instructions, and of computations: they compute the same."""

from __future__ import annotations

from collections.abc import Callable

from hloopt.ir.attributes.opcode_attributes import canonical_value
from hloopt.ir.attributes.values import parse_frontend_attributes
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.literals.literal import ELIDED, canonical_literal
from hloopt.ir.opcode import COMMUTATIVE, Opcode
from hloopt.ir.ordering import depth_first, post_order, stable_order
from hloopt.ir.shapes.shape import Shape, without_layout

DEBUGGING = frozenset(("metadata", "origin", "statistics"))
"""Attributes that say where an instruction comes from, not what it does."""
ANNOTATIONS = DEBUGGING | {"frontend_attributes"}
_SHARDING_PREFIX = "xla.sdy."

Key = tuple[object, ...]


class Equality:
    """Keys by which equal things are recognized: equal keys mean equal instructions.

    `is_layout_sensitive` makes layouts part of the shapes; attributes in `ignored` do not count,
    but frontend attributes that shard do. Computations may be of several modules. Called ones are
    compared only when all else is equal; `forget` one that changed.
    """

    def __init__(self, *, is_layout_sensitive: bool, ignored: frozenset[str] = ANNOTATIONS) -> None:
        self.is_layout_sensitive = is_layout_sensitive
        self.ignored = ignored
        self._classes: dict[Computation, int] = {}
        self._bodies: dict[Key, int] = {}
        self._attribute_keys: dict[tuple[Opcode, str], Key] = {}

    def same_callees(self, a: Instruction, b: Instruction) -> bool:
        """Whether two instructions call computations that compute the same, names aside.

        O(instructions of computations not seen before).
        """
        return a.called == b.called or (
            len(a.called) == len(b.called)
            and all(
                self.class_of(x) == self.class_of(y)
                for x, y in zip(a.called, b.called, strict=True)
            )
        )

    def forget(self, computation: Computation) -> None:
        """Compare the computation, and what calls it, anew from now on."""
        if computation in self._classes:
            self._classes.clear()

    def class_of(self, computation: Computation) -> int:
        """The number of the computation's class: the same for all that compute the same.

        O(instructions of computations not seen before).
        """
        classes = self._classes
        if computation not in classes:

            def new_callees(caller: Computation) -> list[Computation]:
                return [c for i in caller.instructions for c in i.called if c not in classes]

            for callee in depth_first([computation], new_callees):
                body = self.body(callee, classes.__getitem__)
                classes[callee] = self._bodies.setdefault(body, len(self._bodies))
        return classes[computation]

    def body(self, computation: Computation, callee_key: Callable[[Computation], object]) -> Key:
        """A key of all a computation does, names aside. The order counts where it is a schedule.

        `callee_key` gives the keys of called computations. O(instructions + edges).
        """
        is_scheduled = computation.module.is_scheduled
        positions: dict[Instruction, int] = {}
        body: list[object] = [computation.execution_thread]
        for position, instruction in enumerate(
            stable_order(computation) if is_scheduled else post_order(computation)
        ):
            positions[instruction] = position
            opcode = instruction.opcode
            payload: object = instruction.payload
            if opcode is Opcode.CONSTANT:
                payload = self.constant(instruction)
            references: object = None
            if instruction.called or instruction.control_predecessors:
                references = (
                    tuple(map(callee_key, instruction.called)),
                    tuple(positions[p] for p in instruction.control_predecessors),
                )
            body += (
                *(opcode, self.shape(instruction.shape), self._attributes(instruction)),
                *(payload, references),
                tuple([positions[operand] for operand in instruction.operands]),
            )
        body.append(positions[computation.root])
        return tuple(body)

    def shape(self, shape: Shape) -> Shape:
        return shape if self.is_layout_sensitive else without_layout(shape)

    def constant(self, constant: Instruction) -> Key:
        """A key of a constant's type and value; elided values are equal to nothing else."""
        value = canonical_literal(constant.payload, constant.shape)
        if ELIDED in value:
            return (self.shape(constant.shape), constant)
        return (self.shape(constant.shape), value)

    def operation(self, instruction: Instruction) -> Key:
        """A key of all there is to an instruction but its operands, payload and callees."""
        return instruction.opcode, self.shape(instruction.shape), self._attributes(instruction)

    def operands(self, instruction: Instruction, stand_in: dict[Instruction, Instruction]) -> Key:
        """A key of the operands; `stand_in` names instructions that count as others."""
        numbers = [id(stand_in.get(operand, operand)) for operand in instruction.operands]
        if instruction.opcode in COMMUTATIVE:
            numbers.sort()
        return tuple(numbers)

    def _attributes(self, instruction: Instruction) -> Key:
        text = instruction.attribute_text
        if text is None or instruction.called or instruction.control_predecessors:
            return self._attributes_key(instruction)
        head = text
        if "metadata" in self.ignored:
            head, found, tail = text.partition("metadata={")
            if found and tail.find("}") != len(tail) - 1:
                return self._attributes_key(instruction)
        key = self._attribute_keys.get((instruction.opcode, head))
        if key is None:
            key = self._attributes_key(instruction)
            self._attribute_keys[instruction.opcode, head] = key
        return key

    def _attributes_key(self, instruction: Instruction) -> Key:
        opcode = instruction.opcode
        items: list[tuple[str, str | None]] = [
            (name, canonical_value(opcode, name, text))
            for name, text in instruction.attributes.items()
            if name not in self.ignored
        ]
        frontend = instruction.attributes.get("frontend_attributes")
        if frontend is not None and "frontend_attributes" in self.ignored:
            items += [
                item
                for item in parse_frontend_attributes(frontend).items()
                if item[0].startswith(_SHARDING_PREFIX)
            ]
        return tuple(sorted(item for item in items if item[1] is not None))


def outline(computation: Computation) -> Key:
    """A key that equal computations have in common and most others do not. O(1)."""
    root = computation.root
    return computation.execution_thread, len(computation), root.opcode, root.shape
