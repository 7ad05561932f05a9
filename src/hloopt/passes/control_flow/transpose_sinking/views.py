"""Following a transposed array through tuples, loops and bitcasts to the slices of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from hloopt.analysis.dataflow.slots import Index
from hloopt.ir.attributes.typed import fusion_kind_of
from hloopt.ir.attributes.values.numbers import parse_ints
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.leaf_shards import SHARDY
from hloopt.ir.shapes.shape import Shape
from hloopt.passes.memory_space.places import Place, Places, called_elsewhere, handed_on, hands_on

Dimensions = tuple[int, ...]
"""For each dimension of a view the dimension of the array as it was before it was transposed."""
_View = tuple[Place, Dimensions]
_LEAST_RANK = 2


class NotSunk(Exception):
    """The reason why an array is transposed as before: the reason of a remark."""


@dataclass(frozen=True, slots=True)
class Read:
    """A dynamic-slice of a view."""

    slicing: Instruction
    dimensions: Dimensions


def transposed_dimensions(value: Instruction) -> Dimensions | None:
    """The dimensions of a transpose, or of a fusion that is nothing else; None for all others.

    None for arrays with dimensions whose sizes are not known, outside of the memory of the device,
    and for what may be an index of a slice.
    """
    made = value.called[0].root if value.opcode is Opcode.FUSION else value
    if made.opcode is not Opcode.TRANSPOSE or made.shape.rank < _LEAST_RANK:
        return None
    if made is not value and made.operands != made.parent.parameters:
        return None
    source = value.operands[0].shape
    if source.is_dynamic or source.layout.memory_space or value.shape.layout.memory_space:
        return None
    return parse_ints(made.attributes["dimensions"])


@dataclass(slots=True)
class Views:
    """A transposed array, with all that holds it and all that reads it."""

    transpose: Instruction
    """The transpose, or a fusion of nothing else."""
    ways: Places
    places: dict[Place, None] = field(default_factory=dict)
    bitcasts: dict[Instruction, None] = field(default_factory=dict)
    fusions: dict[Instruction, None] = field(default_factory=dict)
    """The fusions that take it."""
    reads: list[Read] = field(default_factory=list)
    loops: dict[Instruction, None] = field(default_factory=dict)
    """The loops that hand it on."""
    _entered: dict[Computation, Index] = field(default_factory=dict)

    @property
    def source(self) -> Instruction:
        """The array before it is transposed."""
        return self.transpose.operands[0]

    def follow(self, dimensions: Dimensions) -> None:
        """Find all that happens to the array. O(places and their users).

        Raises NotSunk where something else happens to it than slicing.
        """
        waiting: list[_View] = [(Place(self.transpose), dimensions)]
        while waiting:
            place, dimensions = waiting.pop()
            self.places[place] = None
            instruction, path = place
            if instruction.is_root and self._entered.get(instruction.parent) != path:
                raise NotSunk(f"%{instruction.parent.name} returns it")
            if instruction.has_control_dependencies and not path:
                raise NotSunk(f"%{instruction.name} has control dependencies")
            if _has_sharding(instruction):
                raise NotSunk(f"%{instruction.name} has a sharding, of its dimensions")
            for user, operand in self.ways.readers(place):
                waiting += self._behind(user, operand, path, dimensions)

    def _behind(
        self, user: Instruction, operand: int, path: Index, dimensions: Dimensions
    ) -> list[_View]:
        """The places behind an instruction that hands an array on; none behind one that slices."""
        following = handed_on(user, operand, path)
        if following is not None:
            return [(following, dimensions)]
        match user.opcode:
            case Opcode.BITCAST:
                self.bitcasts[user] = None
                return [(Place(user), _renumbered(user, dimensions))]
            case Opcode.DYNAMIC_SLICE:
                self.reads.append(_read(user, dimensions))
                return []
            case Opcode.FUSION:
                return [(self._inside(user, operand), dimensions)]
            case Opcode.WHILE if hands_on(user, path):
                return self._through(user, path, dimensions)
        raise NotSunk(f"%{user.name} does more with it than to take slices")

    def _inside(self, fusion: Instruction, operand: int) -> Place:
        """The parameter of a fusion that takes the array."""
        if fusion_kind_of(fusion) == "kCustom":
            raise NotSunk(f"%{fusion.name} is a custom fusion")
        self.fusions[fusion] = None
        return Place(self.ways.parameters(fusion.called[0])[operand])

    def _through(self, loop: Instruction, path: Index, dimensions: Dimensions) -> list[_View]:
        """The places in a loop that hands the array on, and behind it."""
        self.loops[loop] = None
        elsewhere = called_elsewhere(loop)
        if elsewhere is not None:
            raise NotSunk(f"%{elsewhere.name} is called from several places")
        self._entered[loop.called[0]] = path
        inside = [Place(self.ways.parameters(called)[0], path) for called in loop.called]
        return [(place, dimensions) for place in (*inside, Place(loop, path))]


def _has_sharding(instruction: Instruction) -> bool:
    attributes = instruction.attributes
    return "sharding" in attributes or SHARDY in attributes.get("frontend_attributes", "")


def _read(slicing: Instruction, dimensions: Dimensions) -> Read:
    whole = slicing.operands[0].shape
    if slicing.shape.element_count() * 2 > whole.element_count():
        raise NotSunk(f"%{slicing.name} takes more than half of it")
    return Read(slicing, dimensions)


def _renumbered(bitcast: Instruction, dimensions: Dimensions) -> Dimensions:
    """The dimensions of a view behind a bitcast that only numbers them otherwise."""
    before, after = bitcast.operands[0].shape, bitcast.shape
    if _in_memory(before) != _in_memory(after):
        raise NotSunk(f"%{bitcast.name} gives it other dimensions")
    orders = before.layout.minor_to_major, after.layout.minor_to_major
    number_before = {new: old for old, new in zip(*orders, strict=True)}
    return tuple(dimensions[number_before[number]] for number in range(after.rank))


def _in_memory(shape: Shape) -> tuple[str, list[int]]:
    """The type of an array, and its dimensions in the order that they lie in memory."""
    return shape.type_name, [shape.dimensions[n] for n in shape.layout.minor_to_major]
