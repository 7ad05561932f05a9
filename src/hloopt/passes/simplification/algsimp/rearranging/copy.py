"""Rules for copy, bitcast and the custom calls that are about layouts and dynamic sizes."""

from __future__ import annotations

from hloopt.ir.custom_targets import custom_call_target
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import ELEMENTWISE_UNARY, Opcode
from hloopt.passes.rewriting.rules.pattern import op
from hloopt.passes.rewriting.rules.rule import Missed, Result, rule
from hloopt.passes.simplification.algsimp.options import AlgsimpMatch
from hloopt.passes.simplification.algsimp.rearranging.chains import reshape_is_bitcast
from hloopt.passes.simplification.algsimp.shapes import is_bitcast
from hloopt.passes.simplification.algsimp.signatures import is_as_its_operand

_UNARY = tuple(ELEMENTWISE_UNARY - {Opcode.COPY, Opcode.BITCAST_CONVERT})


@rule(op("bitcast", op(_UNARY, op("bitcast", "x").named("inner")).one_use().named("f")))
def bitcast_around_unary(m: AlgsimpMatch) -> Result:
    """bitcast(f(bitcast(x))) → bitcast(f(x)) for an elementwise f with one user and one element
    type."""
    shapes = [m.x.shape, m.inner.shape, m.f.shape, m.root.shape]
    if len({shape.type_name for shape in shapes}) > 1 or any(s.layout.tiles for s in shapes):
        return None
    if m.root.control_predecessors or m.f.has_control_dependencies:
        return Missed("there are control dependencies")
    if m.inner.shape.layout != m.f.shape.layout:
        return Missed(f"%{m.f.name} changes the layout")
    inner = m.build.clone(m.f, [m.x], m.x.shape)
    return m.build.bitcast(inner, m.root.shape)


@rule(op("bitcast", op("bitcast", "x").named("inner")))
def bitcast_of_bitcast(m: AlgsimpMatch) -> Result:
    """bitcast(bitcast(x)) → bitcast(x), or x where that has the shape."""
    if m.root.control_predecessors:
        return Missed("it has control predecessors")
    if m.x.shape is m.root.shape:
        return m.if_compatible(m.x)
    return m.build.bitcast(m.x, m.root.shape)


@rule(op("bitcast", "x"))
def bitcast_to_same_shape(m: AlgsimpMatch) -> Result:
    """A bitcast to the shape of its operand, layout included → operand."""
    return m.if_compatible(m.x) if m.x.shape is m.root.shape else None


@rule(op("copy", op("copy", "x").named("inner")))
def copy_of_copy(m: AlgsimpMatch) -> Result:
    """copy(copy(x)) → copy(x), or x where that has the shape, layout included."""
    if _touches_host(m.x, m.inner, m.root):
        return Missed("one of the copies goes to the host, or comes from there")
    if m.x.shape is m.root.shape and not _keeps_sharding(m):
        return m.if_compatible(m.x)
    if m.layout_sensitive and m.inner.shape.layout.memory_space != m.x.shape.layout.memory_space:
        return Missed("the copies are between memory spaces")
    return m.build.clone(m.root, [m.x])


def _touches_host(*values: Instruction) -> bool:
    return any(value.shape.is_on_host for value in values)


@rule(op("copy", "x"), dynamic=True, signature=is_as_its_operand)
def copy_of_same_shape(m: AlgsimpMatch) -> Result:
    """A copy that changes no layout → operand, unless it is the root of the entry and sharded."""
    if not m.same_shape(m.x, m.root):
        return None
    if _keeps_sharding(m):
        return Missed("it is the root of the entry and has a sharding")
    return m.if_compatible(m.x)


def _keeps_sharding(m: AlgsimpMatch) -> bool:
    root = m.root
    return root.is_root and root.parent.is_entry and "sharding" in root.attributes


@rule(op("copy", op("reshape", "x").one_use().named("reshape")))
def copy_of_reshape(m: AlgsimpMatch) -> Result:
    """copy(reshape(x)) → reshape(x) in the layout of the copy where the copy moves nothing."""
    if not is_bitcast(m.reshape.shape, m.root.shape):
        return None
    return m.build.reshape(m.x, m.root.shape)


@rule(op("copy", "x"), layouts="sensitive")
def copy_to_bitcast(m: AlgsimpMatch) -> Result:
    """A copy, and what is reshaped and copied above it → bitcast of its start where nothing moves,
    in one memory space."""
    best: Instruction | None = None
    current = m.root
    while current.opcode in (Opcode.RESHAPE, Opcode.COPY):
        (current,) = current.operands
        if current.shape.layout.memory_space != m.root.shape.layout.memory_space:
            break
        if current.shape is not m.root.shape and reshape_is_bitcast(
            m.options, current.shape, m.root.shape
        ):
            best = current
    return None if best is None else m.build.bitcast(best, m.root.shape)


_PADDED = op("get-tuple-element", op("custom-call").named("pad"))


@rule(op("custom-call", _PADDED.named("data"), _PADDED.named("size")), dynamic=True)
def slice_to_dynamic_of_pad(m: AlgsimpMatch) -> Result:
    """SliceToDynamic(PadToStatic(x)) → x where it has the same shape."""
    if custom_call_target(m.root) != "SliceToDynamic":
        return None
    if custom_call_target(m.pad) != "PadToStatic" or len(m.pad.operands) != 1:
        return None
    if (m.data.tuple_index, m.size.tuple_index) != (0, 1):
        return None
    (x,) = m.pad.operands
    return m.if_compatible(x) if m.same_shape(x, m.root) else None


@rule(op("custom-call", "x"), layouts="sensitive")
def layout_constraint(m: AlgsimpMatch) -> Result:
    """LayoutConstraint(x) → x where layouts agree, else a copy."""
    if custom_call_target(m.root) != "LayoutConstraint":
        return None
    if m.same_shape(m.x, m.root):
        return m.if_compatible(m.x)
    return m.build.make("copy", m.x, shape=m.root.shape)


BITCAST_RULES = (bitcast_around_unary, bitcast_of_bitcast, bitcast_to_same_shape)
COPY_RULES = (
    copy_of_copy,
    copy_of_same_shape,
    copy_of_reshape,
    copy_to_bitcast,
    slice_to_dynamic_of_pad,
    layout_constraint,
)
