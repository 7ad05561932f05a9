"""The dimensions of dots by their roles, and making dots with other ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod

from hloopt.ir.attributes.values import format_ints, parse_ints
from hloopt.ir.instruction import Instruction
from hloopt.ir.shapes.shape import Shape, array_shape
from hloopt.passes.rewriting.rules.build import Builder

_DIMENSIONS = ("lhs_batch_dims", "rhs_batch_dims", "lhs_contracting_dims", "rhs_contracting_dims")
_F32_ALGORITHMS = ("dot_f32_f32_f32", "ALG_DOT_F32_F32_F32")


@dataclass(frozen=True, slots=True)
class Side:
    """The dimensions of one operand; `free` are those that are neither batch nor contracting."""

    batch: tuple[int, ...]
    contracting: tuple[int, ...]
    free: tuple[int, ...]

    @classmethod
    def of(cls, rank: int, batch: Iterable[int], contracting: Iterable[int]) -> Side:
        b, c = tuple(batch), tuple(contracting)
        return cls(b, c, tuple(d for d in range(rank) if d not in b and d not in c))


@dataclass(frozen=True, slots=True)
class DotDimensions:
    """The dimensions of both operands. The result has batch, then left free, then right free
    ones."""

    left: Side
    right: Side

    @property
    def sides(self) -> tuple[Side, Side]:
        return self.left, self.right


def dot_dimensions(dot: Instruction) -> DotDimensions:
    """The dimensions of a dot."""
    left, right = dot.operands[:2]
    texts = tuple([dot.attributes.get(name, "{}") for name in _DIMENSIONS])
    return _read_dimensions(left.shape.rank, right.shape.rank, texts)


@lru_cache(maxsize=1024)
def _read_dimensions(left: int, right: int, texts: tuple[str, ...]) -> DotDimensions:
    """The dimensions of a dot of operands of these ranks, from the texts of its attributes."""
    batch, right_batch, contracting, right_contracting = map(parse_ints, texts)
    return DotDimensions(
        Side.of(left, batch, contracting),
        Side.of(right, right_batch, right_contracting),
    )


def result_sizes(a: Shape, b: Shape, dims: DotDimensions) -> tuple[int, ...]:
    return (
        *[a.dimensions[d] for d in dims.left.batch],
        *[a.dimensions[d] for d in dims.left.free],
        *[b.dimensions[d] for d in dims.right.free],
    )


def make_dot(
    build: Builder,
    like: Instruction,
    a: Instruction,
    b: Instruction,
    dims: DotDimensions,
    *,
    swapped: bool = False,
    shape: Shape | None = None,
) -> Instruction:
    """A dot with the element type, algorithm and precisions of `like`, these exchanged if
    `swapped`."""
    attributes: dict[str, str] = {}
    for name, value in zip(
        _DIMENSIONS,
        (dims.left.batch, dims.right.batch, dims.left.contracting, dims.right.contracting),
        strict=True,
    ):
        if value:
            attributes[name] = format_ints(value)
    for name, text in like.attributes.items():
        if name == "operand_precision":
            parts = [part.strip() for part in text.strip("{}").split(",")]
            attributes[name] = f"{{{','.join(reversed(parts) if swapped else parts)}}}"
        elif name == "algorithm" or name in ("metadata", "backend_config"):
            attributes[name] = text
    if shape is None:
        shape = array_shape(like.shape.type_name, result_sizes(a.shape, b.shape, dims))
    return build.make("dot", a, b, shape=shape, attributes=attributes)


def flops(a: Sequence[int], b: Sequence[int], dims: DotDimensions) -> int:
    """Multiplications of a dot of these sizes."""
    return prod(a) * prod(b[d] for d in dims.right.free)


def has_plain_algorithm(dot: Instruction) -> bool:
    """Whether a dot may be computed in f32, or as its type says."""
    text = dot.attributes.get("algorithm")
    return text is None or text in _F32_ALGORITHMS or text == "dot_any_f32_any_f32_any_f32"


def is_sparse(dot: Instruction) -> bool:
    return len(dot.operands) != 2 or "sparsity" in dot.attributes
