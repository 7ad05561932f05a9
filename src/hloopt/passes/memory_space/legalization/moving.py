"""Moving copies out of a region of host memory."""

from __future__ import annotations

from collections.abc import Sequence

from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.layout import Layout
from hloopt.ir.shapes.shape import Shape
from hloopt.passes.memory_space.legalization.regions import Plan, update_of, way_back
from hloopt.passes.memory_space.legalization.steps import Use, steps
from hloopt.passes.memory_space.places import with_leaf
from hloopt.passes.rewriting.replace import OF_THE_VALUE, hand_value_on, remove_unused


def move_out(plan: Plan) -> None:
    """Give each place its first layout, and let copies follow what brings values to the device.

    O(places, the users and tuple elements of each, and the copies made).
    """
    moving = plan.moving
    changed = [(place, h) for place, h in plan.histories.items() if h.copies]
    uses = [(step, history) for place, history in changed for step in steps(place)]
    for place, history in changed:
        shape = with_leaf(
            place.instruction.shape, place.path, laid_out(place.shape, history.layouts[0])
        )
        place.instruction.set_shape(shape)
    for step, history in uses:
        if step.use is Use.RETURNS:
            _copy_behind(step.user, history.layouts, history.copies)
        elif step.use is Use.SLICES:
            _bring_back(step.user, history.layouts, history.copies)
        elif step.use is Use.WRITES:
            _write_in(step.user, history.layouts[0])
    for copy in moving:
        copy.replace_all_uses_with(copy.operands[0])
        copy.parent.remove(copy)


def swap(copy: Instruction) -> None:
    """Let a copy of what a MoveToHost gives, and nothing else takes, come before it."""
    (call,) = copy.operands
    copy.replace_all_uses_with(call)
    (value,) = call.operands
    shape = copy.shape
    copy.set_operands([value])
    copy.set_shape(laid_out(value.shape, shape.layout))
    call.set_operands([copy])
    call.set_shape(shape)


def laid_out(shape: Shape, layout: Layout) -> Shape:
    """An array in another layout, in the memory where it is."""
    return shape.with_layout(layout._replace(memory_space=shape.layout.memory_space))


def _copy_behind(
    call: Instruction, layouts: Sequence[Layout], copies: Sequence[Instruction]
) -> None:
    """Let a MoveToDevice keep the layout of its operand; copies give the one that it had."""
    shape, users = call.shape, list(call.users)
    is_root = call.is_root
    call.set_shape(laid_out(shape, layouts[0]))
    said = {k: v for k, v in call.attributes.items() if k in ("sharding", "metadata")}
    last = _copied(call, shape, layouts, copies, said)
    for user in users:
        user.exchange_operand(call, last)
    if is_root:
        call.parent.set_root(last)


def _copied(
    value: Instruction,
    shape: Shape,
    layouts: Sequence[Layout],
    copies: Sequence[Instruction],
    said: dict[str, str],
) -> Instruction:
    """Copies of a value one after the other, the last one of which has the shape."""
    for copy, layout in zip(copies, layouts[1:], strict=True):
        here = shape if copy is copies[-1] else laid_out(shape, layout)
        value = value.parent.add(Opcode.COPY, here, [value], name=copy.name, attributes=dict(said))
    return value


def _bring_back(
    piece: Instruction, layouts: Sequence[Layout], copies: Sequence[Instruction]
) -> None:
    """Let the MoveToDevice of a slice follow it directly, and the copies follow that."""
    chain = way_back(piece)
    assert chain is not None
    call, shape, (user,) = chain[-1], piece.shape, piece.users
    space = call.shape.layout.memory_space
    on_device = shape.with_memory_space(space)
    piece.set_shape(laid_out(shape, layouts[0]))
    for link in chain[1:-1]:
        link.set_shape(link.shape.with_memory_space(space))
    new = piece.parent.add_clone(call, [piece])
    for name in ("metadata", "frontend_attributes"):
        new.set_attribute(name, None)
    is_other_rank = piece.shape.rank != call.shape.rank
    if is_other_rank:
        _describe_value(new, piece)
    new.set_shape(laid_out(on_device, layouts[0]))
    user.exchange_operand(piece, _copied(new, on_device, layouts, copies, {}))
    if is_other_rank:
        hand_value_on(call, call.operands[0])
    else:
        call.replace_all_uses_with(call.operands[0])
    call.parent.remove(call)


def _write_in(write: Instruction, layout: Layout) -> None:
    """Let a MoveToHost give the update of a dynamic-update-slice in a layout, and directly."""
    chain = update_of(write)
    assert chain is not None
    call, old = chain[0], chain[-1]
    if call is old and laid_out(old.shape, layout) is old.shape:
        return
    parent, value = write.parent, call.operands[0]
    read = laid_out(value.shape, call.shape.layout)
    if len(chain) > 1 and read is not value.shape:
        value = parent.add(Opcode.COPY, read, [value])
    for link in chain[1:]:
        space = value.shape.layout.memory_space
        value = parent.add_clone(link, [value])
        value.set_shape(link.shape.with_memory_space(space))
    wanted = laid_out(value.shape, layout)
    if wanted is not value.shape:
        value = parent.add(Opcode.COPY, wanted, [value])
    new = parent.add_clone(call, [value])
    new.set_shape(laid_out(old.shape, layout))
    if old.shape.rank != call.shape.rank:
        _describe_value(new, old)
    write.replace_operand(1, new)
    remove_unused(chain[::-1])


def _describe_value(call: Instruction, moved: Instruction) -> None:
    """Give a call that moves a value of another rank now what is said of that value: its sharding
    would not fit."""
    for name in OF_THE_VALUE:
        call.set_attribute(name, moved.attributes.get(name))
