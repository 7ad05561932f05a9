"""Making one dot of several that share an operand, and the results of each of its parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from math import prod

from hloopt.ir.attributes.values import Slice, format_ints
from hloopt.ir.instruction import Instruction
from hloopt.ir.shapes.shape import array_shape
from hloopt.passes.dots.dimension_factors import (
    REARRANGING,
    Factor,
    View,
    after,
    parts_of,
    rearranged,
    whole,
)
from hloopt.passes.dots.shared_operands import Sharer, precisions_of
from hloopt.passes.rewriting.replace import remove_unused, replace_instruction
from hloopt.passes.rewriting.rules import Builder

_KEPT = ("algorithm", "backend_config")


class MergedDot:
    """One dot of a shared source and the concatenation of the other operands."""

    def __init__(self, sharers: Sequence[Sharer]) -> None:
        self.sharers = sharers
        first = sharers[0]
        self.build = Builder(first.dot.parent)
        self._is_left = 2 * sum(not s.number for s in sharers) > len(sharers)
        self._groups = _joined(first)
        """The dimensions of the new shared operand: dimensions of the source with their role."""
        side = first.sides[1]
        rank = first.other.shape.rank
        self._is_contracting_last = bool(rank) and rank - 1 in side.contracting

    def replace(self) -> list[Part]:
        """Replace the dots by slices of the merged one."""
        others = [self._other(sharer) for sharer in self.sharers]
        dot = self._dot(self._shared(), others)
        parts = []
        start = 0
        for sharer, other in zip(self.sharers, others, strict=True):
            size = other.shape.dimensions[self._place_of_free]
            parts.append(self._replace_one(sharer, dot, start, size))
            start += size
        return parts

    # -- operands -----------------------------------------------------------------------------

    def _shared(self) -> Instruction:
        source = self.sharers[0].source
        sizes = tuple(
            [prod(source.shape.dimensions[d] for d in dimensions) for _, dimensions in self._groups]
        )
        if sizes == source.shape.dimensions:
            return source
        return self.build.reshape(source, sizes)

    def _places(self, role: str) -> list[int]:
        """The dimensions of the new shared operand with a role."""
        return [n for n, (own, _) in enumerate(self._groups) if own == role]

    def _factors(self, sharer: Sharer, role: str) -> View:
        """The factors of the new shared operand's dimensions with a role."""
        return [
            [factor for d in dimensions for factor in sharer.view[d]]
            for own, dimensions in self._groups
            if own == role
        ]

    def _other(self, sharer: Sharer) -> Instruction:
        """The other operand of a dot as [batch, free, contracting], or the last two exchanged."""
        shared, side = sharer.sides
        own = dict(
            zip(shared.batch + shared.contracting, side.batch + side.contracting, strict=True)
        )
        sizes = sharer.other.shape.dimensions

        def translated(view: View) -> View:
            return [
                [factor._replace(dimension=own[factor.dimension]) for factor in f] for f in view
            ]

        batch = translated(self._factors(sharer, "batch"))
        contracting = translated(self._factors(sharer, "contracting"))
        free = [[Factor(d, 1, sizes[d]) for d in side.free if sizes[d] != 1]]
        rest = [*free, *contracting] if self._is_contracting_last else [*contracting, *free]
        target = [*batch, *rest]
        shape = array_shape(
            sharer.other.shape.type_name, tuple([prod(f.size for f in dim) for dim in target])
        )
        return rearranged(self.build, sharer.other, whole(sizes), target, shape)

    @property
    def _place_of_free(self) -> int:
        """The dimension of the other operands along which they are concatenated."""
        batch, contracting = len(self._places("batch")), len(self._places("contracting"))
        return batch if self._is_contracting_last else batch + contracting

    # -- the dot ------------------------------------------------------------------------------

    def _dot(self, shared: Instruction, others: list[Instruction]) -> Instruction:
        build, first = self.build, self.sharers[0]
        concatenated = build.concatenate(others, self._place_of_free)
        batch, contracting = self._places("batch"), self._places("contracting")
        count = len(batch)
        start = count + 1 if self._is_contracting_last else count
        roles = {
            "batch": (batch, range(count)),
            "contracting": (contracting, range(start, start + len(contracting))),
        }
        operands = (shared, concatenated) if self._is_left else (concatenated, shared)
        attributes = {}
        for role, lists in roles.items():
            for name, numbers in zip(
                ("lhs", "rhs"), lists if self._is_left else lists[::-1], strict=True
            ):
                if numbers:
                    attributes[f"{name}_{role}_dims"] = format_ints(numbers)
        attributes |= self._annotations(first)
        frees = [shared.shape.dimensions[n] for n in self._places("free")]
        joined = concatenated.shape.dimensions[self._place_of_free]
        rest = [*frees, joined] if self._is_left else [joined, *frees]
        sizes = [*[shared.shape.dimensions[n] for n in batch], *rest]
        shape = array_shape(first.dot.shape.type_name, tuple(sizes))
        return build.make("dot", *operands, shape=shape, attributes=attributes)

    def _annotations(self, first: Sharer) -> dict[str, str]:
        """Precisions, algorithm and backend config of the first dot; the first op_name."""
        found = {n: first.dot.attributes[n] for n in _KEPT if n in first.dot.attributes}
        if "operand_precision" in first.dot.attributes:
            precisions = precisions_of(first.dot)
            if self._is_left != (first.number == 0):
                precisions = precisions[::-1]
            found["operand_precision"] = f"{{{','.join(precisions)}}}"
        for sharer in self.sharers:
            metadata = sharer.dot.attributes.get("metadata", "")
            if "op_name=" in metadata and 'op_name=""' not in metadata:
                found["metadata"] = metadata
                break
        return found

    # -- results ------------------------------------------------------------------------------

    def _replace_one(self, sharer: Sharer, dot: Instruction, start: int, size: int) -> Part:
        old, place = sharer.dot, len(self._places("batch"))
        if self._is_left:
            place += len(self._places("free"))
        slices = [Slice(0, extent, 1) for extent in dot.shape.dimensions]
        slices[place] = Slice(start, start + size, 1)
        piece = self.build.slice(dot, slices)
        source, target = self._views(sharer)
        result = rearranged(self.build, piece, source, target, old.shape)
        result.set_shape(old.shape)
        operands = [*old.operands]
        replace_instruction(old, result)
        return Part(operands, piece, result, source, target)

    def _views(self, sharer: Sharer) -> tuple[View, View]:
        """The dimensions of a slice of the merged dot, and of the dot that it stands for."""
        shared, side = sharer.sides
        sizes, rank = (
            sharer.other.shape.dimensions,
            len(sharer.dot.operands[sharer.number].shape.dimensions),
        )
        others: View = [[Factor(rank + d, 1, sizes[d])] if sizes[d] != 1 else [] for d in side.free]
        joined = [factor for factors in others for factor in factors]
        free = self._factors(sharer, "free")
        rest = [*free, joined] if self._is_left else [joined, *free]
        parts = parts_of(sharer.view)
        batch = [parts.get(d, []) for d in shared.batch]
        shared_free = [parts.get(d, []) for d in shared.free]
        source = [*self._factors(sharer, "batch"), *rest]
        if sharer.number:
            return source, [*batch, *others, *shared_free]
        return source, [*batch, *shared_free, *others]


def _joined(sharer: Sharer) -> list[tuple[str, list[int]]]:
    """The source's dimensions without those of size 1, neighbouring contracting ones together."""
    kept = [(role, d) for d, role in enumerate(sharer.categories) if role != "one"]
    result: list[tuple[str, list[int]]] = []
    for role, run in groupby(kept, key=lambda pair: pair[0]):
        dimensions = [d for _, d in run]
        joined = [dimensions] if role == "contracting" else [[d] for d in dimensions]
        result += [(role, group) for group in joined]
    return result


@dataclass(frozen=True, slots=True)
class Part:
    """The result of one of the dots: a slice of the merged one, and what is made of that."""

    operands: list[Instruction]
    """Those of the old dot."""
    piece: Instruction
    result: Instruction
    source: View
    target: View
    """The dimensions of both."""

    def shorten_chains(self) -> None:
        """Make what transposes and reshapes make of the result of the slice, in fewer steps."""
        build, length = Builder(self.piece.parent), _distance(self.result, self.piece)
        for user in list(self.result.users):
            chain, view = _chain(user, self.target)
            if not chain:
                continue
            end = chain[-1]
            new = rearranged(build, self.piece, self.source, view, end.shape)
            steps = _distance(new, self.piece)
            if steps < length + len(chain):
                if new is not self.piece:
                    new.set_shape(end.shape)
                elif new.shape is not end.shape:
                    new = build.clone(new, new.operands, end.shape)
                replace_instruction(end, new)
                remove_unused(chain[-2::-1])
            else:
                remove_unused(build.made[-steps:][::-1])


def _chain(user: Instruction, view: View) -> tuple[list[Instruction], View]:
    """The transposes and reshapes from a user on that have one user each, and their view."""
    chain: list[Instruction] = []
    while user.opcode in REARRANGING and not user.has_control_dependencies:
        further = after(view, user)
        if further is None:
            break
        chain.append(user)
        view = further
        if user.is_root or len(user.users) != 1:
            break
        (user,) = user.users
    return chain, view


def _distance(new: Instruction, part: Instruction) -> int:
    count = 0
    while new is not part:
        new = new.operands[0]
        count += 1
    return count
