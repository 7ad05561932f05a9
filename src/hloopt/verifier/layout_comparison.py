"""Comparison of the layouts of two shapes."""

from __future__ import annotations

from hloopt.diagnostics import HloVerifyError
from hloopt.ir.shapes.shape import Shape


def same_layouts(a: Shape, b: Shape) -> bool:
    """Whether arrays of two compatible shapes have the same layouts."""
    return a is b or all(x.layout == y.layout for x, y in zip(a.leaves(), b.leaves(), strict=False))


def same_order(a: Shape, b: Shape) -> bool:
    """Whether arrays of two compatible shapes have the same order of dimensions."""
    return all(
        x.layout.minor_to_major == y.layout.minor_to_major
        for x, y in zip(a.leaves(), b.leaves(), strict=False)
    )


def same_but_space(a: Shape, b: Shape) -> bool:
    """Whether two arrays have the same layout, memory space and splits aside."""
    bare = [shape.layout._replace(memory_space=0, splits="") for shape in (a, b)]
    return bare[0] == bare[1]


def expect(inferred: Shape, actual: Shape, is_right: bool) -> None:
    """Raise HloVerifyError with the message of `expected` unless `is_right`."""
    if not is_right:
        raise HloVerifyError(expected(inferred, actual))


def expected(inferred: Shape, actual: Shape) -> str:
    """The message that a shape is not the one that was inferred."""
    return (
        f"Expected instruction to have shape equal to {inferred.text}, actual shape is "
        f"{actual.text}"
    )
