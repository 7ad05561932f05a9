"""An estimate of the kernels that a compiler that fuses loops makes of a module before fusion.

    fusion = LoopFusion(roofline)
    fusion.kernel(instruction)  # None: it is no loop

A kernel computes a value that has to be in memory: one that is a result, that something else than a
loop reads, a reduction, or one that is cheaper to write once than to compute for each reader. A
reduction of rows runs in the kernel that needs it alone if that walks through the same rows. It
reads each value in memory that it needs once, of one that is sliced the slice, and computes all
between; a product reads through conversions and transpositions of its operands and writes what its
result is converted to if that is smaller. Reshapes, bitcasts and copies that nobody needs are other
names of values; constants, broadcasts and iotas have nothing to read but their operands.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from hloopt.analysis.cost.roofline import MATRIX, Bound, Roofline
from hloopt.analysis.cost.sizes import leaf_bytes, leaf_elements
from hloopt.ir import Computation, Instruction, Opcode
from hloopt.ir.attributes.typed import dimensions_of
from hloopt.ir.opcode import ELEMENTWISE_BINARY, ELEMENTWISE_UNARY
from hloopt.ir.ordering import post_order

_NAMES = frozenset((Opcode.RESHAPE, Opcode.BITCAST))
_READ_THROUGH = frozenset(
    (
        *(Opcode.CONVERT, Opcode.TRANSPOSE, Opcode.BROADCAST),
        *(Opcode.SLICE, Opcode.DYNAMIC_SLICE),
    )
)
"""Opcodes that a product does on the way to its operands."""
_SLICES = frozenset((Opcode.SLICE, Opcode.DYNAMIC_SLICE, Opcode.GATHER))
_UPDATE = Opcode.DYNAMIC_UPDATE_SLICE
_ENDS = frozenset((Opcode.REDUCE, Opcode.REDUCE_WINDOW, _UPDATE))
"""Opcodes that end a kernel."""
_LOOPS = frozenset(
    (
        *((ELEMENTWISE_UNARY | ELEMENTWISE_BINARY) - {Opcode.COPY}),
        *(Opcode.SELECT, Opcode.CLAMP, Opcode.COMPARE, Opcode.MAP, Opcode.IOTA, Opcode.BROADCAST),
        *(Opcode.TRANSPOSE, Opcode.REVERSE, Opcode.PAD, Opcode.CONCATENATE),
        *_SLICES,
        *_ENDS,
    )
)
_PASSING_ON = frozenset((Opcode.TUPLE, Opcode.WHILE, Opcode.CONDITIONAL, Opcode.CALL))
_GIVEN = frozenset(
    (
        *(Opcode.PARAMETER, Opcode.CONSTANT, Opcode.GET_TUPLE_ELEMENT),
        *(Opcode.WHILE, Opcode.CONDITIONAL, Opcode.CALL),
    )
)
_WITHOUT_BYTES = frozenset((Opcode.CONSTANT, Opcode.IOTA))
_MOST_SOURCES = 12
"""Values in memory beyond which nobody computes something twice."""


@dataclass(slots=True)
class _Graph:
    """The values of a computation, under the names of those that make them."""

    order: list[Instruction]
    """The instructions of the computation, operands first."""
    names: dict[Instruction, Instruction] = field(default_factory=dict)
    """The maker of the value that an instruction only names, by that instruction."""
    converted: dict[Instruction, int] = field(default_factory=dict)
    """The bytes of a value where they are not those of its shape: a product that is converted."""
    users: dict[Instruction, dict[Instruction, None]] = field(default_factory=dict)

    @classmethod
    def of(cls, computation: Computation) -> _Graph:
        graph = cls(post_order(computation))
        for instruction in graph.order:
            named = graph._named(instruction)
            if named is not None:
                graph.names[instruction] = named
            elif not _is_taken_apart(instruction):
                for operand in instruction.operands:
                    graph.users.setdefault(graph.value(operand), {})[instruction] = None
        return graph

    def value(self, instruction: Instruction) -> Instruction:
        return self.names.get(instruction, instruction)

    def bytes(self, value: Instruction) -> int:
        return self.converted.get(value, leaf_bytes(value.shape))

    def written(self, value: Instruction) -> int:
        """The bytes that computing a value writes: of an update in place just the update."""
        return self.bytes(value.operands[1] if value.opcode is _UPDATE else value)

    def reads(self, value: Instruction) -> Iterator[tuple[Instruction, int]]:
        """The operands of a value, and the bytes of each that it needs."""
        for number, operand in enumerate(value.operands):
            source = self.value(operand)
            if source.opcode is Opcode.CONSTANT or (value.opcode is _UPDATE and not number):
                continue
            size = self.bytes(source)
            is_sliced = value.opcode in _SLICES and not number
            yield source, min(size, leaf_bytes(value.shape)) if is_sliced else size

    def is_result(self, value: Instruction) -> bool:
        """Whether a value is computed for the result of the computation, and nothing else reads it
        but loops."""
        users = self.users.get(value, {})
        others = [user for user in users if user.opcode not in _LOOPS]
        return value.is_root or (
            bool(others) and all(user.opcode is Opcode.TUPLE and user.is_root for user in others)
        )

    def _named(self, instruction: Instruction) -> Instruction | None:
        opcode = instruction.opcode
        if opcode is Opcode.GET_TUPLE_ELEMENT:
            (whole,) = instruction.operands
            index = instruction.tuple_index
            is_apart = whole.opcode is Opcode.TUPLE and index is not None
            return self.value(whole.operands[index]) if is_apart else None
        if opcode in _NAMES:
            return self.value(instruction.operands[0])
        if opcode is Opcode.COPY and not self._is_kept(instruction):
            return self.value(instruction.operands[0])
        if opcode is Opcode.CONVERT:
            product, size = instruction.operands[0], leaf_bytes(instruction.shape)
            is_only_one = product.opcode in MATRIX and len(product.users) == 1
            if is_only_one and size < leaf_bytes(product.shape):
                self.converted[product] = size
                return product
        return None

    def _is_kept(self, copy: Instruction) -> bool:
        """Whether a copy has to be made: of a value that stays in use, for a result or control
        flow, or of another layout."""
        source = copy.operands[0]
        if copy.shape != source.shape:
            return True
        is_passed_on = copy.is_root or any(user.opcode in _PASSING_ON for user in copy.users)
        is_made_for_it = len(source.users) == 1 and self.value(source).opcode not in _GIVEN
        return is_passed_on and not is_made_for_it


def _is_taken_apart(instruction: Instruction) -> bool:
    """Whether an instruction is a tuple of which only elements are read."""
    return (
        instruction.opcode is Opcode.TUPLE
        and not instruction.is_root
        and all(user.opcode is Opcode.GET_TUPLE_ELEMENT for user in instruction.users)
    )


class LoopFusion:
    """The kernels of the computations of a module that is not fused; each is looked at once."""

    def __init__(self, roofline: Roofline) -> None:
        self._roofline = roofline
        self._known: dict[Computation, dict[Instruction, Bound]] = {}

    def kernel(self, instruction: Instruction) -> Bound | None:
        """The bound of the kernel that an instruction ends, or of nothing where another one's
        kernel computes it; None for what is no loop, and stays as it is.

        O(instructions of its computation) the first time, times the kernels they are part of.
        """
        kernels = self._known.get(instruction.parent)
        if kernels is None:
            kernels = self._known[instruction.parent] = self._kernels(instruction.parent)
        return kernels.get(instruction)

    def _kernels(self, computation: Computation) -> dict[Instruction, Bound]:
        graph = _Graph.of(computation)
        shares, more_written = _shares(graph)
        seconds: dict[Instruction, float] = {}
        reads: dict[Instruction, dict[Instruction, float]] = {}
        for value, parts in shares.items():
            compute = self._roofline.compute(value)
            for kernel, share in parts.items():
                seconds[kernel] = seconds.get(kernel, 0.0) + share * compute
                own = reads.setdefault(kernel, {})
                for source, size in graph.reads(value):
                    if kernel not in shares.get(source, ()):
                        read = own.get(source, 0.0) + share * size
                        own[source] = min(read, graph.bytes(source))
        result = dict.fromkeys((*graph.names, *shares), NOTHING)
        for kernel, own in reads.items():
            written = graph.written(kernel) + more_written.get(kernel, 0)
            moved = [(source.shape, size) for source, size in own.items()]
            memory = self._roofline.memory.seconds([*moved, (kernel.shape, written)])
            result[kernel] = Bound(seconds[kernel], memory)
        return result


NOTHING = Bound(0.0, 0.0)


_Shares: TypeAlias = dict[Instruction, dict[Instruction, float]]
"""The kernels that compute a value, by their ends, and the part of it that each needs."""


def _shares(graph: _Graph) -> tuple[_Shares, dict[Instruction, int]]:
    """The kernels of values, and the bytes that kernels write beside the values that end them."""
    sources = _sources(graph)
    shares: _Shares = {}
    written: dict[Instruction, int] = {}
    for value in reversed(graph.order):
        if value in graph.names or not (value.opcode in _LOOPS or value.opcode in MATRIX):
            continue
        wanted = _wanted(value, graph, shares)
        if wanted is None or not _is_cheap(value, len(wanted), graph, sources):
            shares[value] = {value: 1.0}
            continue
        shares[value] = wanted
        if graph.is_result(value):
            (kernel,) = wanted
            written[kernel] = written.get(kernel, 0) + graph.bytes(value)
    return shares, written


def _wanted(value: Instruction, graph: _Graph, shares: _Shares) -> dict[Instruction, float] | None:
    """The kernels that may compute a value they need; None for one that has to be in memory."""
    is_end = value.opcode in _ENDS
    if value.opcode in MATRIX or (is_end and not _is_of_rows(value)):
        return None
    is_result = graph.is_result(value)
    wanted: dict[Instruction, float] = {}
    for user in graph.users.get(value, ()):
        parts = shares.get(user, {} if is_result else None)
        if parts is None or (user.opcode is _UPDATE and graph.value(user.operands[0]) is value):
            return None
        needed = _needed(user, value)
        for kernel, share in parts.items():
            if kernel.opcode in MATRIX and not _is_read_through(value, graph):
                return None
            wanted[kernel] = max(wanted.get(kernel, 0.0), share * needed)
    is_whole = list(wanted.values()) == [1.0]
    if is_result and (is_end or not is_whole):  # one kernel that needs it can write it, too
        return None
    if is_end and not (is_whole and all(_extent(kernel) == _extent(value) for kernel in wanted)):
        return None
    return wanted


def _is_of_rows(end: Instruction) -> bool:
    """Whether an instruction reduces rows, which a kernel that works row by row may do: softmax."""
    if end.opcode is not Opcode.REDUCE:
        return False
    rank = len(end.operands[0].shape.dimensions)
    return rank > 1 and dimensions_of(end) == (rank - 1,)


def _extent(end: Instruction) -> int:
    """The elements that the kernel of an instruction walks through."""
    return leaf_elements((end.operands[0] if end.opcode is Opcode.REDUCE else end).shape)


def _is_read_through(value: Instruction, graph: _Graph) -> bool:
    """Whether a product that needs a value reads that of which it is made.

    Not if that has to be computed, too, unless that is smaller: what is computed then is the value.
    """
    while value.opcode in _READ_THROUGH:
        operand = graph.value(value.operands[0])
        is_in_memory = operand.opcode not in _LOOPS or operand.opcode in _ENDS
        if is_in_memory or graph.bytes(operand) < graph.bytes(value):
            return True
        value = operand
    return False


def _needed(user: Instruction, value: Instruction) -> float:
    """The part of a value that a user needs to compute all of itself."""
    if user.opcode not in _SLICES:
        return 1.0
    return min(1.0, leaf_elements(user.shape) / max(leaf_elements(value.shape), 1))


def _sources(graph: _Graph) -> dict[Instruction, frozenset[Instruction] | None]:
    """The values read to compute one where all is fused that may be; None where there are many."""
    sources: dict[Instruction, frozenset[Instruction] | None] = {}
    for value in graph.order:
        if value in graph.names:
            continue
        if value.opcode in _WITHOUT_BYTES:
            sources[value] = frozenset()
        elif value.opcode not in _LOOPS or value.opcode in _ENDS or value.opcode in _SLICES:
            sources[value] = frozenset((value,))
        else:
            own: set[Instruction] = set()
            is_much = False
            for operand in value.operands:
                read = sources[graph.value(operand)]
                is_much |= read is None
                own |= read or frozenset()
            sources[value] = None if is_much or len(own) > _MOST_SOURCES else frozenset(own)
    return sources


def _is_cheap(
    value: Instruction,
    readers: int,
    graph: _Graph,
    sources: dict[Instruction, frozenset[Instruction] | None],
) -> bool:
    """Whether kernels move fewer bytes if each computes a value than if one writes it."""
    read = sources[value]
    if readers <= 1:
        return True
    if read is None:
        return False
    size, once = graph.bytes(value), sum(map(graph.bytes, read))
    return readers * once <= once + size + readers * size
