"""The agreement on the leaves of an instruction: one agreement, or a tuple of them."""

from __future__ import annotations

from typing import TypeAlias

from hloopt.analysis.replication.agreement import ALL, NONE, Agreement, Lattice
from hloopt.ir.shapes.leaves import element_range, leaf_count
from hloopt.ir.shapes.shape import Shape

Value: TypeAlias = Agreement | tuple[Agreement, ...]
"""Of an array one agreement, of a tuple one for each leaf, in pre-order."""


def spread(agreement: Agreement, shape: Shape) -> Value:
    """The value of `shape` with the same agreement on every leaf."""
    return (agreement,) * leaf_count(shape) if shape.is_tuple else agreement


def leaves_of(value: Value) -> tuple[Agreement, ...]:
    """The agreement on each leaf."""
    return value if isinstance(value, tuple) else (value,)


def fitted(value: Value, shape: Shape) -> Value:
    """`value` where it is one of `shape`; else nothing is known. Malformed modules need it."""
    has_form = (
        len(value) == leaf_count(shape) and shape.is_tuple
        if isinstance(value, tuple)
        else not shape.is_tuple
    )
    return value if has_form else spread(NONE, shape)


def element(value: Value, shape: Shape, index: int) -> Value:
    """Element `index` of a value of a tuple shape. O(leaves of the element)."""
    if not isinstance(value, tuple) or not 0 <= index < len(shape.elements):
        return NONE
    found = value[element_range(shape, index)]
    return found if shape.elements[index].is_tuple else found[0]


def merged(lattice: Lattice, a: Value, b: Value) -> Value:
    """The agreement of a value that depends on two of one shape; `a` itself where that is `a`.
    O(leaves)."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        if a == b:
            return a
        both = tuple(map(lattice.merge, a, b))
        return a if both == a else both
    return lattice.merge(whole(lattice, a), whole(lattice, b))


def whole(lattice: Lattice, value: Value) -> Agreement:
    """The agreement on all leaves together."""
    if not isinstance(value, tuple):
        return value
    agreement = ALL
    for leaf in value:
        agreement = lattice.merge(agreement, leaf)
    return agreement
