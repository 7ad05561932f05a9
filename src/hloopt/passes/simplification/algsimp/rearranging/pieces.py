"""Rules for concatenate, pad and reverse."""

from __future__ import annotations

from hloopt.ir.attributes.typed import dimensions_of, padding_of, slices_of
from hloopt.ir.attributes.values import PaddingDimension, Slice, format_ints
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import ELEMENTWISE_BINARY, Opcode
from hloopt.passes.rewriting.rules.build import sized
from hloopt.passes.rewriting.rules.pattern import op
from hloopt.passes.rewriting.rules.rule import Result, rule
from hloopt.passes.simplification.algsimp.options import AlgsimpMatch
from hloopt.passes.simplification.algsimp.rearranging.slices import is_unstrided
from hloopt.passes.simplification.algsimp.shapes import has_zero, only_inserts_ones
from hloopt.passes.simplification.algsimp.signatures import (
    is_as_its_operand,
    may_read,
    may_read_empty,
    may_repeat_ones,
    reads_empty,
    reads_one,
)


@rule(op("concatenate", "x"), dynamic=True)
def concatenate_one(m: AlgsimpMatch) -> Result:
    """A concatenate of one operand → operand."""
    return m.if_compatible(m.x)


@rule(op("concatenate"), signature=may_read_empty)
def concatenate_without_empty(m: AlgsimpMatch) -> Result:
    """Operands without elements are dropped; the first is taken where there is no other."""
    operands = m.root.operands
    full = [operand for operand in operands if not has_zero(operand.shape)]
    if len(full) == len(operands):
        return None
    if len(full) <= 1:
        return m.if_compatible(full[0] if full else operands[0])
    return m.build.clone(m.root, full)


@rule(op("concatenate"), layouts="insensitive", signature=may_read(Opcode.CONCATENATE))
def concatenate_flattened(m: AlgsimpMatch) -> Result:
    """concatenate(concatenate(a, b), c) → concatenate(a, b, c) along one dimension."""
    (dimension,) = dimensions_of(m.root)
    flat: list[Instruction] = []
    for operand in m.root.operands:
        if operand.opcode is Opcode.CONCATENATE and dimensions_of(operand) == (dimension,):
            flat += operand.operands
        else:
            flat.append(operand)
    return m.build.clone(m.root, flat) if len(flat) > len(m.root.operands) else None


@rule(op("concatenate"), layouts="insensitive", signature=may_read(Opcode.SLICE, 2))
def concatenate_slices(m: AlgsimpMatch) -> Result:
    """Neighbouring slices of one value that continue each other → one slice."""
    (dimension,) = dimensions_of(m.root)
    merged: list[tuple[Instruction, list[Slice] | None, Instruction]] = []
    for operand in m.root.operands:
        slices = list(slices_of(operand)) if operand.opcode is Opcode.SLICE else None
        if slices is not None and not is_unstrided(tuple(slices)):
            slices = None
        source = operand.operands[0] if slices is not None else operand
        if slices is not None and merged:
            before, theirs, _ = merged[-1]
            if before is source and theirs is not None and _continues(theirs, slices, dimension):
                theirs[dimension] = Slice(theirs[dimension].start, slices[dimension].limit)
                merged[-1] = (source, theirs, source)
                continue
        merged.append((source, slices, operand))
    if len(merged) == len(m.root.operands):
        return None
    parts = [
        m.build.slice(source, slices) if kept is source and slices is not None else kept
        for source, slices, kept in merged
    ]
    if len(parts) == 1:
        return parts[0]
    return m.build.clone(m.root, parts)


def _continues(before: list[Slice], after: list[Slice], dimension: int) -> bool:
    return before[dimension].limit == after[dimension].start and all(
        d == dimension or a == b for d, (a, b) in enumerate(zip(before, after, strict=True))
    )


@rule(op("concatenate", "a", "b"), layouts="insensitive", signature=may_read(Opcode.BROADCAST))
def concatenate_to_pad(m: AlgsimpMatch) -> Result:
    """concatenate(x, broadcast(scalar)) → pad(x) with the scalar, and mirrored."""
    (dimension,) = dimensions_of(m.root)
    for spread, other, is_low in ((m.a, m.b, True), (m.b, m.a, False)):
        if spread.opcode is not Opcode.BROADCAST:
            continue
        (scalar,) = spread.operands
        if not scalar.shape.is_scalar:
            continue
        if other.shape.element_type is not scalar.shape.element_type:
            continue
        size = spread.shape.dimensions[dimension]
        padding = [PaddingDimension() for _ in m.root.shape.dimensions]
        padding[dimension] = PaddingDimension(size if is_low else 0, 0 if is_low else size)
        return m.build.pad(other, scalar, padding, m.root.shape)
    return None


@rule(op("concatenate"), layouts="insensitive", signature=may_repeat_ones)
def concatenate_of_same(m: AlgsimpMatch) -> Result:
    """concatenate(x, x, …) → broadcast(reshape(x)) where x has size 1 along the dimension."""
    (dimension,) = dimensions_of(m.root)
    x = m.root.operands[0]
    if len(m.root.operands) < 2 or any(o is not x for o in m.root.operands):
        return None
    sizes = x.shape.dimensions
    if sizes[dimension] != 1:
        return None
    small = m.build.reshape(x, (*sizes[:dimension], *sizes[dimension + 1 :]))
    places = [d for d in range(len(sizes)) if d != dimension]
    return m.build.broadcast(small, places, m.root.shape)


# -- pad ------------------------------------------------------------------------------------------


@rule(op("pad", "x", "value"), signature=reads_empty)
def pad_of_empty(m: AlgsimpMatch) -> Result:
    """A pad of a value without elements → broadcast of the padding value."""
    return m.build.fill(m.value, m.root.shape)


@rule(op("pad", "x", "value"), signature=reads_one)
def pad_interior_of_one(m: AlgsimpMatch) -> Result:
    """Interior padding of dimensions of size 1 → 0."""
    padding = padding_of(m.root)
    sizes = m.x.shape.dimensions
    plain = [
        PaddingDimension(p.low, p.high) if p.interior and size == 1 else p
        for p, size in zip(padding, sizes, strict=True)
    ]
    if plain == list(padding):
        return None
    return m.build.pad(m.x, m.value, plain, m.root.shape)


@rule(op("pad", "x", "value"), signature=is_as_its_operand)
def pad_with_nothing(m: AlgsimpMatch) -> Result:
    """A pad without padding → operand."""
    if any(p != PaddingDimension() for p in padding_of(m.root)):
        return None
    return m.if_compatible(m.x)


@rule(op("pad", op("broadcast", "x").one_use().named("spread"), "value"))
def pad_of_broadcast(m: AlgsimpMatch) -> Result:
    """pad(broadcast(x)) → broadcast(pad(broadcast(x))) on the padded dimensions only."""
    padding = padding_of(m.root)
    padded = [d for d, p in enumerate(padding) if p != PaddingDimension()]
    places = dimensions_of(m.spread)
    if not set(places) <= set(padded) or len(padded) == len(padding):
        return None
    sizes = m.spread.shape.dimensions
    shape = sized(m.x.shape, [sizes[d] for d in padded])
    inner = m.build.broadcast(m.x, [padded.index(d) for d in places], shape)
    small = m.build.pad(inner, m.value, [padding[d] for d in padded])
    return m.build.broadcast(small, padded, m.root.shape)


@rule(op("pad", "x", "value"), option="enable_negative_padding_replacement")
def pad_with_negative(m: AlgsimpMatch) -> Result:
    """A pad with negative edges → slice of a pad with 0 there."""
    padding = padding_of(m.root)
    if all(p.low >= 0 and p.high >= 0 for p in padding):
        return None
    plain = [PaddingDimension(max(0, p.low), max(0, p.high), p.interior) for p in padding]
    padded = m.x
    if any(p != PaddingDimension() for p in plain):
        padded = m.build.pad(m.x, m.value, plain)
    slices = [
        Slice(max(0, -p.low), size + min(0, p.high))
        for p, size in zip(padding, padded.shape.dimensions, strict=True)
    ]
    if any(s.limit < s.start for s in slices):
        return None
    return m.build.slice(padded, slices, m.root.shape)


# -- reverse --------------------------------------------------------------------------------------


@rule(op("reverse", "x"))
def reverse_of_ones(m: AlgsimpMatch) -> Result:
    """A reverse of dimensions of size 1 alone → operand."""
    if any(m.x.shape.dimensions[d] != 1 for d in dimensions_of(m.root)):
        return None
    return m.if_compatible(m.x)


@rule(op("reverse", op("reverse", "x").named("inner")), layouts="insensitive")
def reverse_of_reverse(m: AlgsimpMatch) -> Result:
    """reverse(reverse(x)) → reverse(x) of the dimensions in one of them; x where there is none."""
    left = sorted(set(dimensions_of(m.root)) ^ set(dimensions_of(m.inner)))
    if not left:
        return m.if_compatible(m.x)
    return m.build.make(
        "reverse", m.x, shape=m.root.shape, attributes={"dimensions": format_ints(left)}
    )


_BINARY = tuple(ELEMENTWISE_BINARY - {Opcode.COMPARE, Opcode.STOCHASTIC_CONVERT})


@rule(op("reverse", op(_BINARY, "a", "b").named("f")), layouts="insensitive")
def reverse_of_binary(m: AlgsimpMatch) -> Result:
    """reverse(f(x, broadcast(scalar))) → f(reverse(x), broadcast(scalar)), and mirrored."""
    for number, (spread, other) in enumerate(((m.a, m.b), (m.b, m.a))):
        if spread.opcode is not Opcode.BROADCAST or not spread.operands[0].shape.is_scalar:
            continue
        turned = m.build.make(
            "reverse", other, shape=other.shape, attributes=dict(m.root.attributes)
        )
        operands = [turned, spread] if number else [spread, turned]
        return m.build.clone(m.f, operands, m.root.shape)
    return None


@rule(op("reverse", op("reshape", "x").named("reshape")), layouts="insensitive")
def reverse_of_reshape(m: AlgsimpMatch) -> Result:
    """reverse(reshape(x)) → reshape(reverse(x)) where the reshape only adds dimensions of size
    1."""
    before, after = m.x.shape.dimensions, m.reshape.shape.dimensions
    kept = only_inserts_ones(before, after)
    if kept is None or len(before) >= len(after):
        return None
    place = {new: old for old, new in kept.items()}
    turned = sorted(place[d] for d in dimensions_of(m.root) if d in place)
    return m.build.reshape(m.build.reverse(m.x, turned), m.root.shape)


CONCATENATE_RULES = (
    concatenate_one,
    concatenate_without_empty,
    concatenate_flattened,
    concatenate_slices,
    concatenate_to_pad,
    concatenate_of_same,
)
PAD_RULES = (
    pad_of_empty,
    pad_interior_of_one,
    pad_with_nothing,
    pad_of_broadcast,
    pad_with_negative,
)
REVERSE_RULES = (reverse_of_ones, reverse_of_reverse, reverse_of_binary, reverse_of_reshape)
