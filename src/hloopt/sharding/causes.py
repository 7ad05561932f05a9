"""The reason for a collective: its kind, the shardings on both sides, and what would avoid it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from hloopt.ir.attributes.values.numbers import parse_ints
from hloopt.ir.attributes.values.replica_groups import Mesh
from hloopt.ir.attributes.values.sharding_text import bare_sharding
from hloopt.ir.attributes.values.shards import Shards
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import CONTRACTIONS, Opcode
from hloopt.ir.shapes.leaf_annotations import leaf_shardings
from hloopt.ir.shapes.leaf_shards import Told
from hloopt.sharding.axes import axes_text, dimension_axes, in_axes
from hloopt.sharding.candidates import Candidate, Role
from hloopt.sharding.matching import Matching
from hloopt.sharding.roles import EXPANDED, IN_PLACE, SUMMING, SUMS
from hloopt.sharding.shapes import DeviceShapes, Dimensions

_MOST_AXES = 6
"""Collectives of one kind in a row, one for each axis of the mesh."""


class Kind(StrEnum):
    """The reason for a collective."""

    PARTIAL = "partial result"
    """Each device has a term of the sum of a contraction or reduction."""
    RESULT = "result reshard"
    """The instruction is computed with another sharding than its result has to have."""
    OPERAND = "operand reshard"
    """An operand has another sharding than the instruction needs."""
    EXPANDED = "expanded operation"
    """The instruction becomes several, which exchange data: halos, sorts, gathers."""
    WRITTEN = "written by the user"
    UNKNOWN = "unknown"


@dataclass(slots=True)
class Cause:
    """The reason for a collective, as far as the texts tell."""

    kind: Kind
    value: Instruction | None
    """The value of the program that moves."""
    source: str
    """The sharding on the way in; empty where the texts do not tell."""
    target: str
    is_full_remat: bool
    """Whether the whole value is on each device before it is cut again."""
    avoid: str
    """A clause that says what would avoid it; empty where that is not known."""


class Causes:
    """Explains collectives once the instruction that made them is known."""

    def __init__(self, matching: Matching, shapes: DeviceShapes, mesh: Mesh | None) -> None:
        self._matching = matching
        self._shapes = shapes
        self._mesh = mesh

    def of(
        self,
        collective: Instruction,
        anchor: Instruction,
        sources: Sequence[Instruction],
        chosen: Candidate,
    ) -> Cause:
        """The reason for a collective that `chosen` made. O(1): bounded walks."""
        own = chosen.instruction
        kind = _kind(collective, chosen)
        if kind is Kind.WRITTEN:
            return Cause(kind, own, "", "", False, "")
        value = own if kind in (Kind.PARTIAL, Kind.RESULT) else _moved(own, sources)
        source = self._before(kind, value, anchor)
        target = self._behind(kind, own, value, anchor)
        is_remat = self._is_full_remat(value, anchor)
        cut = self._cut_behind(anchor)
        avoid = _avoid(kind, own, value, cut, is_remat=is_remat, shapes=self._shapes)
        return Cause(kind, value, source, target, is_remat, avoid)

    def sharding_text(self, instruction: Instruction, leaf: int = 0) -> str:
        """The sharding of a leaf in axes of the mesh, or as XLA prints it without braces."""
        told = self._shapes.told(instruction)
        if leaf >= len(told):
            return ""
        return self._text(told[leaf], instruction, leaf)

    def _text(self, told: Told, instruction: Instruction, leaf: int) -> str:
        if told is None:
            return "replicated"
        if isinstance(told, Shards) and self._mesh is not None:
            named = in_axes(told, self._mesh)
            if named is not None:
                return named
        texts = leaf_shardings(instruction) or ()
        return bare_sharding(texts[leaf]) if leaf < len(texts) else ""

    def _before(self, kind: Kind, value: Instruction | None, anchor: Instruction) -> str:
        if value is None:
            return ""
        if kind is Kind.PARTIAL:
            return "partial sums"
        if kind is Kind.RESULT:
            made = self._matching.images.get(value, anchor)
            moved = self._parts_text(value, anchor.operands[0].shape.dimensions)
            return moved or self._parts_text(value, made.shape.dimensions)
        return self.sharding_text(value)

    def _behind(
        self, kind: Kind, own: Instruction, value: Instruction | None, anchor: Instruction
    ) -> str:
        if kind is not Kind.OPERAND or own.opcode in IN_PLACE or own.opcode is Opcode.RESHAPE:
            leaf = 0
            if own.opcode is Opcode.TUPLE and value in own.operands:
                number = own.operands.index(value)
                leaf = sum(len(o.shape.leaves()) for o in own.operands[:number])
            return self.sharding_text(own, leaf)
        if value is None:
            return ""
        for user, main in self._users(anchor):
            if main is own:
                return self._parts_text(value, user.shape.dimensions)
        return ""

    def _parts_text(self, value: Instruction, part: Dimensions) -> str:
        """`[{dp}, {}]`, or `2x1 parts`: how a value is cut that has a part on a device.

        Empty where the dimensions do not fit.
        """
        if not value.shape.is_array or len(part) != value.shape.rank or 0 in part:
            return ""
        counts = [-(-n // k) for n, k in zip(value.shape.dimensions, part, strict=True)]
        if all(count == 1 for count in counts):
            return "replicated"
        told = self._shapes.told(value)[0]
        if self._mesh is not None and isinstance(told, Shards):
            axes = dimension_axes(told, self._mesh) or ()
            if all(k in (1, own) for k, own in zip(counts, told.counts, strict=True)) and axes:
                return axes_text(
                    tuple(own if k > 1 else () for k, own in zip(counts, axes, strict=True))
                )
        return "x".join(map(str, counts)) + " parts"

    def _users(self, anchor: Instruction) -> Iterator[tuple[Instruction, Instruction]]:
        """Values behind a collective that instructions of the program read, with these."""
        waiting = [anchor]
        seen = {anchor}
        for value in waiting:  # grows
            for user in value.users:
                main = self._matching.main.get(user)
                if main is not None:
                    yield value, main
                elif user not in seen and len(waiting) < 64:
                    seen.add(user)
                    waiting.append(user)

    def _is_full_remat(self, value: Instruction | None, anchor: Instruction) -> bool:
        """Whether all-gathers make the value whole on a device, which then cuts its part."""
        if value is None or anchor.opcode is not Opcode.ALL_GATHER or not value.shape.is_array:
            return False
        at = anchor
        while at.opcode is Opcode.ALL_GATHER and len(at.users) == 1:
            user = next(iter(at.users))
            if user.opcode is not Opcode.ALL_GATHER:
                break
            at = user
        is_whole = at.shape.dimensions == value.shape.dimensions
        is_cut = self._shapes.leaves(value) != (value.shape.dimensions,)
        return is_whole and is_cut and any(self._cuts(user) for user in at.users)

    def _cut_behind(self, anchor: Instruction) -> Instruction | None:
        """The slice that cuts a device's part out of the result of a collective."""
        at = anchor
        for _ in range(_MOST_AXES):
            user = next(iter(at.users), None)
            if len(at.users) != 1 or user is None or user.opcode is not anchor.opcode:
                break
            at = user
        return next((user for user in at.users if self._cuts(user)), None)

    def _cuts(self, user: Instruction) -> bool:
        return user.opcode is Opcode.DYNAMIC_SLICE and user not in self._matching.main


def _kind(collective: Instruction, chosen: Candidate) -> Kind:
    opcode = chosen.instruction.opcode
    is_permute = collective.opcode is Opcode.COLLECTIVE_PERMUTE
    match chosen.role:
        case Role.WRITTEN:
            return Kind.WRITTEN
        case Role.SOURCE:
            if collective.opcode in SUMS and opcode in SUMMING:
                return Kind.PARTIAL
            return Kind.EXPANDED if is_permute and opcode in EXPANDED else Kind.RESULT
        case Role.SINK:
            is_halo = is_permute and opcode in EXPANDED - CONTRACTIONS
            return Kind.EXPANDED if is_halo else Kind.OPERAND
        case Role.BETWEEN:
            return Kind.EXPANDED if opcode in EXPANDED else Kind.OPERAND


def _moved(own: Instruction, sources: Sequence[Instruction]) -> Instruction | None:
    """The operand that moves: one that the collective reads, or of which one is made."""
    for operand in own.operands:
        if operand in sources:
            return operand
    return next(iter(sources), None)


# -- what would avoid it --------------------------------------------------------------------------


def _avoid(
    kind: Kind,
    own: Instruction,
    value: Instruction | None,
    cut: Instruction | None,
    *,
    is_remat: bool,
    shapes: DeviceShapes,
) -> str:
    if kind is Kind.PARTIAL:
        if cut is not None:
            return f"a reduce-scatter: %{cut.name} keeps no more than a part of the sum"
        if own.shape.is_array and not own.shape.rank:
            return ""
        return f"a sharding of %{own.name} cut along these axes: a reduce-scatter then does"
    if value is None:
        return ""
    if is_remat:
        return f"a sharding between the two of %{value.name} that has an axis in common with both"
    if kind is Kind.OPERAND and own.opcode in CONTRACTIONS:
        return _avoid_contracted(own, value, shapes)
    if kind is Kind.OPERAND and own.opcode in IN_PLACE:
        return f"one sharding for %{value.name} and %{own.name}"
    if kind is Kind.RESULT and own.opcode in IN_PLACE:
        return f"one sharding for %{own.name} and its operands"
    if kind is Kind.RESULT:
        return f"the sharding for %{own.name} that it is computed with"
    if own.opcode is Opcode.SORT:
        dimension = own.attributes.get("dimensions", "{}").strip("{}")
        return f"dimension {dimension} of %{value.name} whole on each device: it is sorted along it"
    return ""


def _avoid_contracted(own: Instruction, value: Instruction, shapes: DeviceShapes) -> str:
    side = "lhs" if own.operands[0] is value else "rhs"
    text = own.attributes.get(f"{side}_contracting_dims")
    parts = shapes.leaves(value)
    if text is None or value not in own.operands or len(parts) != 1:
        return ""
    cut = [d for d in parse_ints(text) if parts[0][d] < value.shape.dimensions[d]]
    if not cut:
        return f"a result of %{own.name} that is cut as %{value.name} is"
    other = own.operands[1] if side == "lhs" else own.operands[0]
    return (
        f"%{other.name} cut along the same axes where they are contracted (the result is then "
        f"summed), or another contraction axis: dimension {cut[0]} of %{value.name} is cut"
    )
