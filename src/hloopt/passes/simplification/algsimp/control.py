"""Rules for constants, tuples, calls of computations, barriers, sorts and collectives."""

from __future__ import annotations

from hloopt.analysis.side_effects import has_own_side_effect
from hloopt.ir.devices.collective_devices import group_sizes
from hloopt.ir.devices.collective_mode import replica_groups
from hloopt.ir.devices.grid import Grid
from hloopt.ir.instruction import Instruction
from hloopt.ir.literals.literal import ELIDED
from hloopt.ir.opcode import ELEMENTWISE_BINARY, ELEMENTWISE_UNARY, Opcode
from hloopt.ir.reduction_kind import ReductionKind, reduction_kind
from hloopt.ir.shapes.shape import array_shape, tuple_shape
from hloopt.ir.tuples import make_tuple
from hloopt.passes.rewriting.replace import why_not_in_its_place
from hloopt.passes.rewriting.rules.constants import scalar_of, scalar_text, splat_of
from hloopt.passes.rewriting.rules.pattern import broadcast_of_scalar, constant, op, value
from hloopt.passes.rewriting.rules.rule import EDITED, Missed, Result, rule
from hloopt.passes.simplification.algsimp.options import AlgsimpMatch
from hloopt.passes.simplification.algsimp.signatures import (
    is_integer_vector,
    is_several_elements,
    is_tuple,
)
from hloopt.passes.simplification.algsimp.terms import is_float, is_integer, is_pred


@rule(constant(), signature=is_tuple)
def constant_tuple(m: AlgsimpMatch) -> Result:
    """A tuple constant → tuple of constants."""
    shape = m.root.shape
    if ELIDED in m.root.payload or m.root.has_control_dependencies:
        return None
    texts = _elements(m.root)
    parts = [
        m.build.make("constant", shape=part, payload=text)
        for part, text in zip(shape.elements, texts, strict=True)
    ]
    made = make_tuple(m.root.parent, parts)
    m.build.made.append(made)
    return made


def _elements(root: Instruction) -> list[str]:
    from hloopt.ir.attributes.text import scan_literal
    from hloopt.ir.trivia import skip_trivia

    text, texts = root.payload, []
    position = text.index("(") + 1
    for _ in root.shape.elements:
        position = skip_trivia(text, position)
        end = scan_literal(text, position)
        texts.append(text[position:end])
        position = skip_trivia(text, end) + 1
    return texts


@rule(constant(), signature=is_several_elements)
def constant_to_broadcast(m: AlgsimpMatch) -> Result:
    """A constant of several elements that are all equal → broadcast of a scalar constant."""
    shape = m.root.shape
    found = splat_of(m.root)
    if found is None or found != found:
        return None
    plain = array_shape(shape.type_name)
    scalar = m.build.make("constant", shape=plain, payload=scalar_text(found, plain))
    return m.build.broadcast(scalar, (), shape)


@rule(constant(), signature=is_integer_vector)
def constant_to_iota(m: AlgsimpMatch) -> Result:
    """The constant 0, 1, 2, … → iota; k times that → iota·broadcast(k)."""
    shape = m.root.shape
    step = _step(m.root)
    if step is None:
        return None
    iota = m.build.iota(shape, 0)
    if step == 1:
        return iota
    return m.build.make("multiply", iota, m.build.splat(step, shape), shape=shape)


_SHORT = 64


def _step(root: Instruction) -> int | None:
    """k where the elements are 0, k, 2k, …"""
    if ELIDED in root.payload:
        return None
    start = root.payload[:_SHORT].lstrip("{ \n\t")
    if not start.startswith("0"):
        return None
    from hloopt.ir.literals.literal import canonical_literal

    tokens = canonical_literal(root.payload, root.shape).strip("{} ").split(",")
    values = [int(token) for token in tokens]
    step = values[1] - values[0]
    if not step or values[0] or any(v != n * step for n, v in enumerate(values)):
        return None
    return step


@rule(op("get-tuple-element", op("tuple").named("tuple")), dynamic=True)
def element_of_tuple(m: AlgsimpMatch) -> Result:
    """get-tuple-element(tuple(…), i) → element i."""
    element = m.tuple.operands[m.root.tuple_index]
    reason = why_not_in_its_place(m.root, element)
    return m.if_compatible(element) if reason is None else Missed(reason)


_SINGLE = ELEMENTWISE_UNARY | ELEMENTWISE_BINARY | {Opcode.SELECT, Opcode.CLAMP}


@rule(op("map"))
def inline_map(m: AlgsimpMatch) -> Result:
    """A map by a computation that returns a parameter, a scalar constant, or one elementwise
    instruction on parameters → that on whole operands."""
    body = m.root.called[0].root
    operands = m.root.operands
    if body.opcode is Opcode.PARAMETER:
        return m.if_compatible(operands[body.parameter_number])
    if body.opcode is Opcode.CONSTANT:
        copy = m.build.make("constant", shape=body.shape, payload=body.payload)
        return m.build.fill(copy, m.root.shape)
    if body.opcode not in _SINGLE or body.opcode is Opcode.STOCHASTIC_CONVERT:
        return None
    if any(o.opcode is not Opcode.PARAMETER for o in body.operands):
        return Missed("its computation is more than one operation on parameters")
    given = [operands[o.parameter_number] for o in body.operands]
    return m.build.make(body.opcode, *given, shape=m.root.shape, attributes=body.attributes)


@rule(
    op("conditional", op("convert", value("p").of_type("pred")), "a", "b"),
    option="enable_conditional_simplification",
)
def conditional_of_pred(m: AlgsimpMatch) -> Result:
    """conditional(convert(pred), b0, b1) → conditional on the pred: true is branch 1."""
    if len(m.root.called) != 2 or not m.p.shape.is_scalar:
        return None
    first, second = m.root.called
    return m.build.make(
        "conditional", m.p, m.b, m.a, shape=m.root.shape, called=(second, first),
        attributes=m.root.attributes,
    )  # fmt: skip


@rule(op("opt-barrier", "x"))
def barrier_without_unused(m: AlgsimpMatch) -> Result:
    """Elements of a tuple behind an opt-barrier that nothing reads are dropped."""
    root = m.root
    if not root.shape.is_tuple or root.is_root or not root.users:
        return None
    if root.has_control_dependencies:
        return Missed("it has control dependencies")
    readers = list(root.users)
    if any(user.opcode is not Opcode.GET_TUPLE_ELEMENT or user.is_root for user in readers):
        return Missed("it is used as a whole")
    used = {user.tuple_index for user in readers if user.users or user.is_root}
    used |= {user.tuple_index for user in readers if user.has_control_dependencies}
    count = len(root.shape.elements)
    kept = [i for i in range(count) if i in used or _is_needed(m.x, i)]
    if len(kept) == count or not kept:
        return None
    build = m.build
    parts = (
        [m.x.operands[i] for i in kept] if m.x.opcode is Opcode.TUPLE else
        [build.make("get-tuple-element", m.x, shape=m.x.shape.elements[i],
                    attributes={"index": str(i)}) for i in kept]
    )  # fmt: skip
    small = build.make("tuple", *parts, shape=tuple_shape(part.shape for part in parts))
    barrier = build.clone(root, [small], small.shape)
    for user in readers:
        if user.tuple_index not in kept:
            continue
        user.set_attribute("index", str(kept.index(user.tuple_index)))
        user.replace_operand(0, barrier)
    m.touched.append(barrier)
    for user in readers:
        if user.operands[0] is root and not user.users:
            user.parent.remove(user)
    return EDITED


def _is_needed(x: Instruction, number: int) -> bool:
    """Whether an element of a tuple is computed whether the barrier has it or not."""
    if x.opcode is not Opcode.TUPLE:
        return False
    part = x.operands[number]
    return part.is_root or has_own_side_effect(part) or any(user is not x for user in part.users)


@rule(op("sort"), dynamic=True)
def sort_of_one(m: AlgsimpMatch) -> Result:
    """A sort along a dimension of size 0 or 1 → its operands."""
    operands = m.root.operands
    sizes = operands[0].shape.dimensions
    text = m.root.attributes.get("dimensions", "{0}").strip("{} ")
    if sizes and sizes[int(text or 0)] > 1:
        return None
    if len(operands) == 1 and not m.root.shape.is_tuple:
        return m.if_compatible(operands[0])
    return m.build.make("tuple", *operands, shape=m.root.shape)


# -- collectives ----------------------------------------------------------------------------------

_SPREAD = broadcast_of_scalar(op("constant").named("c")).named("spread")


@rule(op("all-gather", _SPREAD))
def all_gather_of_broadcast(m: AlgsimpMatch) -> Result:
    """all-gather(broadcast(C)) → broadcast(C)."""
    return m.build.broadcast(m.c, (), m.root.shape) if m.root.shape.is_array else None


@rule(op("all-to-all", _SPREAD))
def all_to_all_of_broadcast(m: AlgsimpMatch) -> Result:
    """all-to-all(broadcast(C)) → broadcast(C), with the array form."""
    if not m.root.shape.is_array:
        return None
    if m.same_shape(m.spread, m.root):
        return m.spread
    return m.build.broadcast(m.c, (), m.root.shape)


@rule(op(("all-reduce", "reduce-scatter"), _SPREAD), floats="rounding")
def all_reduce_of_broadcast(m: AlgsimpMatch) -> Result:
    """all-reduce(broadcast(C)) → broadcast(C) for min and max, of C times the group size for
    sums."""
    if not m.root.shape.is_array:
        return None
    kind = reduction_kind(m.root.called[0])
    if kind in (ReductionKind.MIN, ReductionKind.MAX):
        return m.build.broadcast(m.c, (), m.root.shape)
    if kind is not ReductionKind.SUM or is_pred(m.root):
        return Missed("it is no sum, minimum or maximum")
    size = _group_size(m.root)
    if size is None:
        return Missed("the size of its groups is not known")
    found = scalar_of(m.c)
    if found is None or isinstance(found, complex):
        return Missed(f"%{m.c.name} is not known")
    if not (is_integer(m.root) or is_float(m.root)):
        return None
    return m.build.splat(found * size, m.root.shape)


def _group_size(collective: Instruction) -> int | None:
    """The number of devices of each group; None where groups are not stated or differ."""
    if not replica_groups(collective).group_size:
        return None
    module = collective.parent.module
    sizes = group_sizes(collective, Grid(module.replica_count, module.num_partitions))
    return sizes.pop() if len(sizes) == 1 else None


CONSTANT_RULES = (constant_tuple, constant_to_broadcast, constant_to_iota)
RULES = (
    *CONSTANT_RULES,
    element_of_tuple,
    inline_map,
    conditional_of_pred,
    barrier_without_unused,
    sort_of_one,
    all_gather_of_broadcast,
    all_to_all_of_broadcast,
    all_reduce_of_broadcast,
)
