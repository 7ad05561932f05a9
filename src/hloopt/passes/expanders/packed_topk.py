"""The largest bf16 values by one sort of numbers that hold value and index."""

from __future__ import annotations

from hloopt.ir.attributes.values import Slice
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape import array_shape
from hloopt.passes.rewriting.rules import Builder, Match

_LOW = 0xFFFF
_HIGH = -(1 << 16)
_WITHOUT_SIGN = (1 << 31) - 1


def is_packable(topk: Instruction) -> bool:
    """Whether value and index of each element fit into 32 bits, which are ordered as wanted."""
    shape = topk.operands[0].shape
    is_largest = topk.attributes.get("largest", "true") == "true"
    return shape.type_name == "bf16" and is_largest and shape.dimensions[-1] <= _LOW


def packed_topk(match: Match) -> Instruction:
    """(values, indices) of the first k keys, sorted in descending order.

    The high half of a key is the value, of which negative ones have their other bits inverted, so
    that integers are ordered as values are; the low half is 65535 - index, so that the first of
    equal values comes first.
    """
    build, x, root = match.build, match.x, match.root
    last = x.shape.rank - 1
    integers = x.shape.with_element_type("s32")
    bits = build.make("bitcast-convert", build.convert(x, "f32"), shape=integers)
    low = build.splat(_LOW, integers)
    index = build.subtract(low, build.iota(integers, last))
    value = build.binary("and", _ordered(build, bits), build.splat(_HIGH, integers))
    sort = build.make(
        "sort", build.binary("or", value, index), shape=integers, called=(_descending(root),),
        attributes={"dimensions": f"{{{last}}}"},
    )  # fmt: skip
    shape, indices = root.shape.elements
    keys = build.slice(sort, [Slice(0, size, 1) for size in shape.dimensions], indices)
    ordered = build.binary("and", keys, build.splat(_HIGH, indices))
    exact = _ordered(build, ordered)
    found = build.make(
        "bitcast-convert", build.binary("and", exact, build.splat(_HIGH, indices)),
        shape=indices.with_element_type("f32"),
    )  # fmt: skip
    all_ones = build.splat(_LOW, indices)
    position = build.subtract(all_ones, build.binary("and", keys, all_ones))
    return build.make("tuple", build.convert(found, "bf16"), position)


def _ordered(build: Builder, bits: Instruction) -> Instruction:
    """Bits of floats as integers in the order of the floats, and back."""
    zero = build.splat(0, bits.shape)
    inverted = build.binary("xor", bits, build.splat(_WITHOUT_SIGN, bits.shape))
    return build.select(build.compare("LT", bits, zero), inverted, bits)


def _descending(topk: Instruction) -> Computation:
    made = topk.parent.module.add_computation("compare-keys")
    integer = array_shape("s32")
    keys = [made.add(Opcode.PARAMETER, integer, payload=str(n)) for n in range(2)]
    attributes = {"direction": "GT"}
    made.set_root(made.add(Opcode.COMPARE, array_shape("pred"), keys, attributes=attributes))
    return made
