"""The parameters and results of two modules, and the first of them that differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

from hloopt.equivalence.entry_shards import parameter_shards, result_shards
from hloopt.equivalence.placement import Placement
from hloopt.interpreter.errors import RunError
from hloopt.ir.attributes.values.shards import Shards, whole
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.shapes.leaf_shards import Told
from hloopt.ir.shapes.shape import Shape, format_shape

_LONGEST_SHAPE = 60
"""Characters of a shape in a message."""


class Signature(NamedTuple):
    """The arrays that a module takes or gives at one place."""

    module: Module
    instruction: Instruction
    """A parameter, or the root."""

    @property
    def leaves(self) -> list[tuple[tuple[int, ...], Shape]]:
        return [(i, s) for i, s in self.instruction.shape.subshapes() if not s.is_tuple]

    def text(self, shape: Shape) -> str:
        """A shape, and where the text has it: `f32[2,3] (step.hlo:12)`."""
        shown = format_shape(shape, layout=False)
        if len(shown) > _LONGEST_SHAPE:
            shown = shown[: _LONGEST_SHAPE - 1] + "…"
        return f"{shown}{place_text(self.module, self.instruction)}"


def place_text(module: Module, instruction: Instruction) -> str:
    """` (step.hlo:12)`, or nothing where there is no text.

    The instruction may be that of a copy of the module.
    """
    if instruction.parent.module is not module:
        computation = module.computations.get(instruction.parent.name)
        names = () if computation is None else computation.instructions
        original = next((i for i in names if i.name == instruction.name), None)
        if original is None:
            return ""
        instruction = original
    span = module.span_of(instruction)
    return f" ({span.source.name}:{span.location[0]})" if span is not None else ""


def first_other(left: Module, right: Module) -> str:
    """The first difference of parameters or results as a sentence; empty where there is none.

    Layouts and dynamic sizes are no difference. O(parameters and their arrays).
    """
    roots = Signature(left, left.entry.root), Signature(right, right.entry.root)
    return first_other_parameter(left, right) or _other(*roots, "")


def first_other_parameter(left: Module, right: Module) -> str:
    """The same, of parameters alone."""
    pairs = zip_longest(left.entry.parameters, right.entry.parameters)
    count = len(left.entry.parameters), len(right.entry.parameters)
    for number, (before, after) in enumerate(pairs):
        if before is None or after is None:
            module, extra = (right, after) if before is None else (left, before)
            assert extra is not None
            return _counts(count, number, Signature(module, extra).text(extra.shape))
        what = _other(Signature(left, before), Signature(right, after), f"parameter {number}")
        if what:
            return (
                f"{count[0]} parameters before, {count[1]} after: {what}"
                if _differ(count)
                else what
            )
    return ""


def may_be_cut(left: Module, right: Module) -> bool:
    """Whether the arrays of one module may be parts of those of the other, by their sizes."""
    pairs = [*zip(left.entry.parameters, right.entry.parameters, strict=False)]
    if len(left.entry.parameters) != len(right.entry.parameters):
        return False
    signs = set()
    for mine, other in (*pairs, (left.entry.root, right.entry.root)):
        ours, theirs = mine.shape.leaves(), other.shape.leaves()
        if [(s.element_type, s.rank) for s in ours] != [(s.element_type, s.rank) for s in theirs]:
            return False
        signs |= {
            a < b
            for x, y in zip(ours, theirs, strict=True)
            for a, b in zip(x.dimensions, y.dimensions, strict=True)
            if a != b
        }
    return len(signs) == 1


def _differ(count: tuple[int, int]) -> bool:
    return count[0] != count[1]


def _counts(count: tuple[int, int], number: int, extra: str) -> str:
    where = "before" if count[0] > count[1] else "after"
    return (
        f"{count[0]} parameters before, {count[1]} after: parameter {number} is there {where} "
        f"only, {extra}"
    )


def _other(before: Signature, after: Signature, what: str) -> str:
    """The difference of a parameter, or of the result where `what` is empty."""
    if same_values(before.instruction.shape, after.instruction.shape):
        return ""
    ours, theirs = before.leaves, after.leaves
    if [i for i, _ in ours] == [i for i, _ in theirs] and ours:
        for (index, mine), (_, other) in zip(ours, theirs, strict=True):
            if not same_values(mine, other):
                name = f"{what or 'output'}{leaf_text(index)}"
                return f"{name} was {before.text(mine)}, it is {after.text(other)}"
    shapes = before.instruction.shape, after.instruction.shape
    return f"{what or 'the result'} was {before.text(shapes[0])}, it is {after.text(shapes[1])}"


def leaf_text(index: Sequence[int]) -> str:
    """A tuple index as messages show it: `{2}{0}`."""
    return "".join(f"{{{number}}}" for number in index)


def same_values(a: Shape, b: Shape) -> bool:
    """Whether two shapes have the same values: layouts and dynamic dimensions may differ."""
    ours, theirs = a.subshapes(), b.subshapes()
    return len(ours) == len(theirs) and all(
        i == j
        and x.is_tuple == y.is_tuple
        and x.element_type == y.element_type
        and x.dimensions == y.dimensions
        for (i, x), (j, y) in zip(ours, theirs, strict=True)
    )


# -- a program for all devices and a partitioned one ----------------------------------------------


class Cut(NamedTuple):
    """The sharding by which a partitioned program takes and gives the arrays of one for all
    devices."""

    parameters: list[Shards | None]
    """By array; None for tokens."""
    results: list[Shards | None]
    """By array, without tokens; None where the text does not tell: the values have to."""


def cut_of(everything: Placement, partitioned: Placement) -> Cut | str:
    """The sharding that turns the one into the other, or their difference as a sentence.

    Raises RunError where neither text says how a parameter is cut.
    """
    left, right = everything.module, partitioned.module
    count = len(left.entry.parameters), len(right.entry.parameters)
    if _differ(count):
        return first_other(left, right)
    partitions = partitioned.grid.partitions
    parameters: list[Shards | None] = []
    for number, (before, after) in enumerate(
        zip(left.entry.parameters, right.entry.parameters, strict=True)
    ):
        known = parameter_shards(before, partitions), parameter_shards(after, partitions)
        pair = Signature(left, before), Signature(right, after)
        for found in _cuts(pair, known, f"parameter {number}", partitions):
            if isinstance(found, _Unknown):
                raise RunError(
                    f"{found.text}, and neither module says how it is cut",
                    help="texts that XLA dumps after spmd-partitioning have the sharding={…} "
                    "of parameters",
                    code="HLO508",
                )
            if isinstance(found, str):
                return found
            parameters.append(found)
    results: list[Shards | None] = []
    roots = Signature(left, left.entry.root), Signature(right, right.entry.root)
    known = result_shards(left, partitions), result_shards(right, partitions)
    leaves = left.entry.root.shape.leaves()
    for number, found in enumerate(_cuts(roots, known, "", partitions)):
        if isinstance(found, str):
            return found
        if not leaves[number].is_token:
            results.append(None if isinstance(found, _Unknown) else found)
    return Cut(parameters, results)


class _Unknown(NamedTuple):
    """An array that is cut nobody says how."""

    text: str


def _cuts(
    pair: tuple[Signature, Signature],
    known: tuple[list[Told], list[Told]],
    what: str,
    partitions: int,
) -> Iterator[Shards | str | _Unknown | None]:
    """For each array of a parameter or the result, its parts; a text where it is other."""
    before, after = pair
    ours, theirs = before.leaves, after.leaves
    if [i for i, _ in ours] != [i for i, _ in theirs]:
        yield _other(before, after, what)
        return
    name = what or "output"
    for (index, mine), (_, other), from_left, from_right in zip(ours, theirs, *known, strict=True):
        if mine.element_type != other.element_type or mine.rank != other.rank:
            yield f"{name}{leaf_text(index)} was {before.text(mine)}, it is {after.text(other)}"
            return
        if mine.is_token:
            yield None
            continue
        text = (
            f"{name}{leaf_text(index)} is {before.text(mine)} over all devices, "
            f"{after.text(other)} on each"
        )
        told = [shards for shards in (from_right, from_left) if isinstance(shards, Shards)]
        fitting = (s for s in told if s.part(mine.dimensions) == other.dimensions)
        shards = next(fitting, told[0] if told else None)
        if shards is not None and mine.dimensions == other.dimensions and not what:
            # A tuple without a sharding of its own may gather what its operands have parts of.
            fits = shards.part(mine.dimensions) == other.dimensions
            shards = shards if fits else whole(mine.rank, partitions)
        if shards is None and (why := from_right or from_left):
            raise RunError(f"{text}: {why}", code="HLO508")
        if shards is None and mine.dimensions == other.dimensions:
            yield whole(mine.rank, partitions)
        elif shards is None:
            yield _Unknown(text) if _may_be_part(mine, other, partitions) else text
        elif shards.part(mine.dimensions) == other.dimensions:
            yield shards
        else:
            parts = ",".join(map(str, shards.part(mine.dimensions)))
            yield f"{text}, where its sharding makes it {mine.type_name}[{parts}]"


def _may_be_part(everything: Shape, part: Shape, partitions: int) -> bool:
    counts = part_counts(everything.dimensions, part.dimensions)
    return counts is not None and partitions % _product(counts) == 0


def part_counts(dimensions: Sequence[int], part: Sequence[int]) -> tuple[int, ...] | None:
    """The number of parts that each dimension is cut into; None where that is not possible."""
    counts = []
    for size, length in zip(dimensions, part, strict=True):
        count = -(-size // length) if length else int(not size)
        if not count or -(-size // count) != length:
            return None
        counts.append(count)
    return tuple(counts)


def _product(numbers: Sequence[int]) -> int:
    result = 1
    for number in numbers:
        result *= number
    return result
