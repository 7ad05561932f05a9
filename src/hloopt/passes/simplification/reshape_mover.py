"""Move reshapes and transposes below the elementwise operations that use them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from hloopt.analysis.side_effects import SideEffects
from hloopt.ir.attributes.typed import dimensions_of
from hloopt.ir.attributes.values import format_ints
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import ELEMENTWISE_BINARY, ELEMENTWISE_UNARY, Opcode
from hloopt.ir.ordering import post_order, stable_order
from hloopt.ir.shapes.shape import Shape
from hloopt.pass_framework.base import (
    ModulePass,
    PassContext,
    PassOptions,
    XlaPass,
    option,
    register,
)
from hloopt.passes.rewriting.replace import forget_value, replace_instruction
from hloopt.passes.simplification.dce import DeadCode, DeadCodeElimination

_ELEMENTWISE = ELEMENTWISE_UNARY | ELEMENTWISE_BINARY | {Opcode.SELECT, Opcode.CLAMP, Opcode.MAP}
_REARRANGING = (Opcode.RESHAPE, Opcode.TRANSPOSE)


@register(
    "reshape-mover",
    preserves="bits",
    xla=XlaPass("ReshapeMover", "xla/hlo/transforms/simplifiers/reshape_mover.h"),
)
class ReshapeMover(ModulePass):
    """Let elementwise operations work on what was there before a reshape or transpose.

    `add(reshape(a), reshape(b))` becomes `reshape(add(a, b))`, so that rearrangements meet and
    other passes can combine them. All operands have to be rearranged alike, or be cheap to
    rearrange the other way: constants, broadcasts of scalars, random numbers. All users of a
    rearrangement have to move it, or none does.

    One run moves each by one operation, so that others can simplify in between: run them together
    to a fixed point. Linear in the size of the module.
    """

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options(PassOptions):
        reshape_of_1d_broadcast_is_cheap: bool = option(
            False,
            "broadcasts are cheap to reshape, too, if at most one dimension of their operand has a "
            "size other than 1, or if the reshape keeps all dimensions of the operand",
        )

    options: Options

    def run(self, module: Module, context: PassContext) -> bool:
        before = module.version
        dead: DeadCode | None = None
        for computation in module.computations.values():
            if computation.is_fusion or not _has_rearrangements(computation):
                continue
            if dead is None:
                dead = DeadCode(SideEffects(module), DeadCodeElimination.Options(), PassContext())
            _Mover(computation, self.options, context, dead).run()
        return module.version != before


def _has_rearrangements(computation: Computation) -> bool:
    return any(i.opcode in _REARRANGING for i in computation.instructions)


class _Mover:
    """Moves what it can within one computation."""

    def __init__(
        self,
        computation: Computation,
        options: ReshapeMover.Options,
        context: PassContext,
        dead: DeadCode,
    ) -> None:
        self.computation = computation
        self.context = context
        self.dead = dead
        self.options = options

    def run(self) -> None:
        moved = False
        for operation, by in self._movable().items():
            if self.context.apply(operation, f"%{by.name} moved below it"):
                self.context.count("operations moved above a rearrangement")
                self._move(operation, by)
                moved = True
        if moved and self.computation.module.is_scheduled:
            self.computation.reorder(stable_order(self.computation))

    # -- what moves -------------------------------------------------------------------------

    def _movable(self) -> dict[Instruction, Instruction]:
        """Operations with the rearrangement that moves below them. O(uses)."""
        found: dict[Instruction, Instruction] = {}
        rearrangements: dict[Instruction, None] = {}
        for operation in post_order(self.computation):
            costly = self._costly_operands(operation)
            if not costly:
                continue
            if reason := self._why_not(operation, costly[0]):
                self.context.missed(operation, reason)
                continue
            found[operation] = costly[0]
            rearrangements.update(dict.fromkeys(costly))
        stay = [r for r in rearrangements if any(user not in found for user in r.users)]
        while stay:
            rearrangement = stay.pop()
            for user in rearrangement.users:
                if found.pop(user, None) is not None:
                    reason = f"%{rearrangement.name} has other users that cannot move it"
                    self.context.missed(user, reason)
                    stay += self._costly_operands(user)
        return found

    def _costly_operands(self, operation: Instruction) -> list[Instruction]:
        """The rearranged operands that are worth moving, each once."""
        if operation.opcode not in _ELEMENTWISE:
            return []
        return [
            operand
            for operand in dict.fromkeys(operation.operands)
            if operand.opcode in _REARRANGING and self._is_costly(operand)
        ]

    def _is_costly(self, rearrangement: Instruction) -> bool:
        (source,) = rearrangement.operands
        if rearrangement.opcode is Opcode.RESHAPE:
            is_same = source.shape is rearrangement.shape
            return not is_same and not self._is_cheap(source, rearrangement.shape, None)
        order = _order(rearrangement)
        is_identity = order == tuple(range(len(order)))
        return not is_identity and not self._is_cheap(source, rearrangement.shape, order)

    def _is_cheap(self, source: Instruction, to: Shape, order: tuple[int, ...] | None) -> bool:
        """Whether `source` is cheap to recompute reshaped to `to`, or transposed to `order`."""
        if source.opcode is Opcode.RNG:
            return len(source.users) == 1
        if source.opcode is not Opcode.BROADCAST:
            return source.opcode is Opcode.CONSTANT
        (operand,) = source.operands
        filled = dimensions_of(source)
        if list(filled) != sorted(filled):
            return False
        if order is None:
            if operand.shape.is_scalar or not self.options.reshape_of_1d_broadcast_is_cheap:
                return operand.shape.is_scalar
            true_rank = sum(size != 1 for size in operand.shape.dimensions)
            return true_rank <= 1 or _keeps(filled, source.shape.dimensions, to.dimensions)
        place = {old: new for new, old in enumerate(order)}
        places = [place[d] for d in filled]
        return places == sorted(places)

    def _why_not(self, operation: Instruction, by: Instruction) -> str | None:
        """The reason why `by` cannot move below `operation`, its users aside; None where it can."""
        if operation.has_control_dependencies:
            return "it has control dependencies"
        shape = operation.shape
        if shape.is_dynamic:
            return "its dimensions are dynamic"
        inverse = _inverse(_order(by)) if by.opcode is Opcode.TRANSPOSE else None
        for operand in operation.operands:
            if operand.shape.dimensions != shape.dimensions:
                return f"%{operand.name} has other dimensions"
            if operand.shape.layout.memory_space != shape.layout.memory_space:
                return f"%{operand.name} is in another memory space"
            if operand.opcode in _REARRANGING:
                if not _are_alike(operand, by):
                    return f"%{operand.name} is not rearranged like %{by.name}"
            elif not self._is_cheap(operand, by.operands[0].shape, inverse):
                return f"%{operand.name} is not rearranged, and not cheap to rearrange"
        return None

    # -- moving -----------------------------------------------------------------------------

    def _move(self, operation: Instruction, by: Instruction) -> None:
        """Move `by` below `operation`."""
        source = by.operands[0].shape
        operands = {
            operand: self._before(operand, by, _like(source, operand.shape))
            for operand in operation.operands
        }
        new = self.computation.add_clone(
            operation, [operands[operand] for operand in operation.operands]
        )
        new.set_shape(_like(source, operation.shape))
        forget_value(new)
        if new.opcode is Opcode.MAP:
            new.set_attribute("dimensions", format_ints(range(source.rank)))
        result = self.computation.add(
            by.opcode, operation.shape, [new], attributes=_rearranging(by)
        )
        replace_instruction(operation, result)
        self.dead.remove_dead(operands)

    def _before(self, operand: Instruction, by: Instruction, shape: Shape) -> Instruction:
        """The operand as it is before `by`: there already, or rearranged the other way."""
        if operand.opcode in _REARRANGING and operand.operands[0].shape is shape:
            return operand.operands[0]
        attributes = {}
        if by.opcode is Opcode.TRANSPOSE:
            attributes["dimensions"] = format_ints(_inverse(_order(by)))
        return self.computation.add(by.opcode, shape, [operand], attributes=attributes)


def _keeps(dimensions: Sequence[int], old: Sequence[int], new: Sequence[int]) -> bool:
    """Whether a reshape from sizes `old` to `new` keeps each of `dimensions`. O(rank²).

    A dimension is kept if the result has one of its size with as many elements before it.
    """
    places: dict[int, list[int]] = {}
    for place, size in enumerate(new):
        places.setdefault(prod(new[:place]), []).append(size)
    return all(old[d] in places.get(prod(old[:d]), ()) for d in dimensions)


def _order(transpose: Instruction) -> tuple[int, ...]:
    return dimensions_of(transpose)


def _inverse(order: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(range(len(order)), key=order.__getitem__))


def _rearranging(by: Instruction) -> dict[str, str]:
    """The attributes of a reshape or transpose that say what it does."""
    return {"dimensions": by.attributes["dimensions"]} if by.opcode is Opcode.TRANSPOSE else {}


def _are_alike(a: Instruction, b: Instruction) -> bool:
    """Whether two rearrangements with equal results make them the same way of equal sizes."""
    return (
        a.opcode is b.opcode
        and a.operands[0].shape.dimensions == b.operands[0].shape.dimensions
        and (a.opcode is Opcode.RESHAPE or _order(a) == _order(b))
    )


def _like(source: Shape, typed: Shape) -> Shape:
    """An array laid out as `source`, with the elements of `typed`."""
    layout = source.layout._replace(element_bits=typed.layout.element_bits)
    return source.with_element_type(typed.type_name).with_layout(layout)
