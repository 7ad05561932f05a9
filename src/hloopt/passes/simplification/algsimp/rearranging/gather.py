"""Rules for gather."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hloopt.ir.attributes.typed import padding_of
from hloopt.ir.attributes.values import (
    PaddingDimension,
    Slice,
    format_ints,
    parse_int,
    parse_ints,
)
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.passes.rewriting.rules.constants import integer_range
from hloopt.passes.rewriting.rules.pattern import op
from hloopt.passes.rewriting.rules.rule import Result, rule
from hloopt.passes.simplification.algsimp.options import AlgsimpMatch
from hloopt.passes.simplification.algsimp.shapes import has_zero, is_effective_scalar, unmodified

_GATHER = op("gather", "x", "indices")


@dataclass(frozen=True, slots=True)
class GatherDimensions:
    """The dimension numbers of a gather."""

    offset: tuple[int, ...]
    collapsed: tuple[int, ...]
    indexed: tuple[int, ...]
    batching: tuple[int, ...]
    index_batching: tuple[int, ...]
    vector: int
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, gather: Instruction) -> GatherDimensions:
        attributes = gather.attributes
        return cls(
            *(_ints(attributes, "offset_dims"), _ints(attributes, "collapsed_slice_dims")),
            *(_ints(attributes, "start_index_map"), _ints(attributes, "operand_batching_dims")),
            _ints(attributes, "start_indices_batching_dims"),
            parse_int(attributes.get("index_vector_dim", "0")),
            _ints(attributes, "slice_sizes"),
        )

    def place_of(self, dimension: int) -> int | None:
        """The dimension of the result that a window dimension of the operand becomes."""
        if dimension in self.collapsed or dimension in self.batching:
            return None
        window = [
            d for d in range(len(self.sizes)) if d not in self.collapsed and d not in self.batching
        ]
        return self.offset[window.index(dimension)]

    def place_of_index(self, dimension: int, rank: int) -> int:
        """The dimension of the result, of this rank, that one of the indices becomes."""
        batch = [d for d in range(rank) if d not in self.offset]
        return batch[dimension - (dimension > self.vector)]


def _ints(attributes: Mapping[str, str], name: str) -> tuple[int, ...]:
    return parse_ints(attributes.get(name, "{}"))


@rule(_GATHER)
def gather_of_empty(m: AlgsimpMatch) -> Result:
    """A gather from an operand without elements → broadcast of 0."""
    return m.build.splat(0, m.root.shape) if has_zero(m.x.shape) else None


@rule(_GATHER)
def gather_of_scalar(m: AlgsimpMatch) -> Result:
    """A gather from one element → broadcast of it: offsets are clamped."""
    if not is_effective_scalar(m.x.shape):
        return None
    x = m.build.reshape(m.x, ()) if m.x.shape.dimensions else m.x
    return m.build.fill(x, m.root.shape)


@rule(_GATHER)
def gather_to_selects(m: AlgsimpMatch) -> Result:
    """A gather from at most very_small_gather_size elements → chain of select(indices ≥ i, element
    i, …)."""
    dims, indices = GatherDimensions.of(m.root), m.indices.shape
    count = m.x.shape.element_count()
    if m.x.shape.rank != 1 or count > m.options.very_small_gather_size:
        return None
    if dims.vector != indices.rank or dims.collapsed != (0,) or dims.sizes != (1,):
        return None
    kind = indices.element_type
    if kind is None or not kind.is_integral or integer_range(kind)[1] < count - 1:
        return None
    build, shape = m.build, m.root.shape

    def element(number: int) -> Instruction:
        part = build.slice(m.x, [Slice(number, number + 1)])
        return build.fill(build.reshape(part, ()), shape)

    result = element(0)
    for number in range(count):  # as XLA: the first one chooses between element 0 and itself
        least = build.splat(number, indices)
        chosen = build.compare("GE", m.indices, least)
        result = build.make("select", chosen, element(number), result, shape=shape)
    return result


@rule(op("gather", op("pad", "x", "value").named("pad"), "indices"))
def gather_of_pad(m: AlgsimpMatch) -> Result:
    """gather(pad(x), i) → pad(gather(x, i)) where the padded dimensions are passed through whole,
    or are batching dimensions that are padded alike in the indices."""
    dims, padding = GatherDimensions.of(m.root), padding_of(m.pad)
    if any(p.low < 0 or p.high < 0 for p in padding):
        return None
    rank = m.root.shape.rank
    indices, index_padding = m.indices, [PaddingDimension()] * m.indices.shape.rank
    if indices.opcode is Opcode.PAD:
        index_padding = list(padding_of(indices))
    outer = [PaddingDimension()] * rank
    sizes, batched = list(dims.sizes), []
    for d, p in enumerate(padding):
        if p == PaddingDimension():
            continue
        if d in dims.batching:
            other = dims.index_batching[dims.batching.index(d)]
            if index_padding[other] != p:
                return None
            batched.append(other)
            outer[dims.place_of_index(other, rank)] = p
            continue
        place = dims.place_of(d)
        if place is None or sizes[d] != m.pad.shape.dimensions[d]:
            return None
        outer[place] = p
        sizes[d] = m.x.shape.dimensions[d]
    if all(p == PaddingDimension() for p in outer):
        return None
    if batched:
        padded = [d for d, p in enumerate(index_padding) if p != PaddingDimension()]
        if sorted(batched) != padded:
            return None
        indices = indices.operands[0]
    return _padded_gather(m, m.x, indices, sizes, outer)


@rule(op("gather", op("reshape", op("pad", "x", "value").named("pad")).named("reshape"),
         "indices"))  # fmt: skip
def gather_of_reshaped_pad(m: AlgsimpMatch) -> Result:
    """gather(reshape(pad(x)), i) → pad(gather(reshape(x), i)) where the reshape leaves padded
    dimensions as they are, and the gather passes them through whole."""
    dims, padding = GatherDimensions.of(m.root), padding_of(m.pad)
    if any(p.low < 0 or p.high < 0 for p in padding):
        return None
    kept = unmodified(m.pad.shape.dimensions, m.reshape.shape.dimensions)
    outer = [PaddingDimension()] * m.root.shape.rank
    sizes, whole = list(dims.sizes), list(m.reshape.shape.dimensions)
    for d, p in enumerate(padding):
        if p == PaddingDimension():
            continue
        if d not in kept:
            return None
        own = kept[d]
        place = dims.place_of(own)
        if place is None or sizes[own] != whole[own]:
            return None
        outer[place] = p
        sizes[own] = whole[own] = m.x.shape.dimensions[d]
    if all(p == PaddingDimension() for p in outer):
        return None
    return _padded_gather(m, m.build.reshape(m.x, whole), m.indices, sizes, outer)


def _padded_gather(
    m: AlgsimpMatch,
    x: Instruction,
    indices: Instruction,
    sizes: list[int],
    outer: list[PaddingDimension],
) -> Instruction:
    from hloopt.ir.shape_inference import infer_shape

    attributes = {**m.root.attributes, "slice_sizes": format_ints(sizes)}
    shape = infer_shape(Opcode.GATHER, [x.shape, indices.shape], attributes)
    inner = m.build.clone(m.root, [x, indices], shape)
    inner.set_attribute("slice_sizes", format_ints(sizes))
    return m.build.pad(inner, m.value, outer, m.root.shape)


RULES = (
    gather_of_empty,
    gather_of_scalar,
    gather_to_selects,
    gather_of_pad,
    gather_of_reshaped_pad,
)
