"""Write scatters as loops over their indices."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Literal

from hloopt.diagnostics import PassRefused, counted
from hloopt.ir.attributes.values import format_ints
from hloopt.ir.clone import clone_to_change
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape import Shape, array_shape
from hloopt.pass_framework.base import PassOptions, XlaPass, option, register
from hloopt.passes.expanders.index_loops import (
    MOST_TRIPS,
    BatchPositions,
    constant_vector,
    counted_loop,
    holding,
    index_vector,
    moved_in_place,
    operand_index,
    row,
    row_start,
    scalars,
    vector_of,
    vector_rows,
)
from hloopt.passes.expanders.indices import index_sizes, ints, resized, vector_dimension
from hloopt.passes.rewriting.rules import Builder, Match, Missed, Result, RulePass, op, rule

_SIMPLE, _INDETERMINISTIC = "eliminate_simple_scatters", "eliminate_indeterministic_scatters"


@rule(op("scatter"), moves_control=True)
def expand(match: Match) -> Result:
    """scatter(x, i, u) -> a loop of dynamic-update-slices of x."""
    root = match.root
    scatter = _Scatter(root)
    if reason := _why_not(scatter, match.options.mode):
        return Missed(reason)
    if set(ints(root, "input_batching_dims")) & set(scatter.indexed):
        return Missed("a batching dimension of it has an index as well")
    if not scatter.updates[0].shape.element_count():
        results = scatter.operands
    elif scatter.count > MOST_TRIPS:
        raise PassRefused(
            f"more than {MOST_TRIPS} scatter indices are not supported: "
            f"%{root.name} has {scatter.count}",
            span=root.parent.module.span_of(root),
        )
    else:
        results = scatter.loop(match.build)
    return results[0] if len(results) == 1 else match.build.make("tuple", *results)


def _why_not(scatter: _Scatter, mode: str) -> str | None:
    """The reason why the mode leaves a scatter, or None."""
    if mode == _SIMPLE and scatter.count != 1:
        return f"it has {counted(scatter.count, 'index', 'indices')}, and the mode is {mode}"
    if mode == _INDETERMINISTIC and scatter.count != 1 and not _depends_on_order(scatter.root):
        return f"the order of its updates does not matter, and the mode is {mode}"
    return None


def _depends_on_order(scatter: Instruction) -> bool:
    """Whether another order of the updates may give another result."""
    if scatter.attributes.get("unique_indices") == "true" or len(scatter.called) != 1:
        return False
    root = scatter.called[0].root
    kind = root.shape.element_type
    return not (
        root.opcode in _IN_ANY_ORDER
        and kind is not None
        and kind.kind not in ("float", "complex")
        and {o.opcode for o in root.operands} == {Opcode.PARAMETER}
        and len({*root.operands}) == 2
    )


_IN_ANY_ORDER = frozenset(
    (
        *(Opcode.ADD, Opcode.MULTIPLY, Opcode.MAXIMUM, Opcode.MINIMUM),
        *(Opcode.AND, Opcode.OR, Opcode.XOR),
    )
)


class _Scatter:
    """A scatter, its operands by their roles, and the loop that does the same."""

    def __init__(self, root: Instruction) -> None:
        self.root = root
        number = len(root.operands) // 2
        self.operands, self.updates = root.operands[:number], root.operands[number + 1 :]
        self.indices = root.operands[number]
        self.vector = vector_dimension(root)
        self.indexed = ints(root, "scatter_dims_to_operand_dims")
        self.count = prod(index_sizes(self.indices.shape, self.vector))
        batching = ints(root, "input_batching_dims")
        self._of_indices = ints(root, "scatter_indices_batching_dims")
        self._positions = BatchPositions(
            self.indices.shape, self.vector, batching, self._of_indices
        )
        self._inserted = {*ints(root, "inserted_window_dims"), *batching}
        self._sizes = self._window_sizes()
        """The sizes of a window with a 1 for each inserted dimension."""

    def _window_sizes(self) -> tuple[int, ...]:
        update = self.updates[0].shape.dimensions
        sizes = [update[d] for d in ints(self.root, "update_window_dims")]
        for d in sorted(self._inserted):
            sizes.insert(d, 1)
        return tuple(sizes)

    def loop(self, build: Builder) -> list[Instruction]:
        """The operands after all updates, one in each trip."""
        operands, shape = self.operands, self.operands[0].shape
        sizes = self.indices.shape.dimensions
        largest = max((*shape.dimensions, *[sizes[d] for d in self._of_indices]), default=0)
        rows = self._rows(build, holding(build, self.indices, largest))
        updates = [self._update_rows(build, update) for update in self.updates]
        combiners = self._combiners()

        def step(
            body: Builder, counter: Instruction, state: list[Instruction]
        ) -> list[Instruction]:
            before, indices, changes = (
                state[: len(operands)], state[len(operands)], state[len(operands) + 1 :],
            )  # fmt: skip
            after = self._step(body, counter, before, indices, changes, combiners)
            return [*after, indices, *changes]

        state = [*operands, rows, *updates]
        return counted_loop(build, self.count, state, step, self.root)[: len(operands)]

    def _rows(self, build: Builder, indices: Instruction) -> Instruction:
        """The indices as [N, vector], or as [N] where the vector comes last and has one index."""
        shape, vector = indices.shape, self.vector
        if vector == shape.rank or shape.dimensions[vector:] == (1,):
            return build.reshape(indices, resized(shape, (self.count,)))
        return vector_rows(build, indices, vector, self.count)

    def _update_rows(self, build: Builder, update: Instruction) -> Instruction:
        """An update as [N, window]."""
        windows = ints(self.root, "update_window_dims")
        outer = [d for d in range(update.shape.rank) if d not in windows]
        sizes = [update.shape.dimensions[d] for d in windows]
        moved = moved_in_place(build, update, [*outer, *windows])
        return build.reshape(moved, resized(update.shape, (self.count, *sizes)))

    def _combiners(self) -> list[Computation]:
        """The computation of each result, of all of the scatter's values."""
        (computation,) = self.root.called
        if len(self.operands) == 1:
            return [computation]
        made = []
        for number in range(len(self.operands)):
            copy = clone_to_change(computation)
            build = Builder(copy)
            element = build.make(
                "get-tuple-element", copy.root,
                shape=copy.root.shape.elements[number], attributes={"index": str(number)},
            )  # fmt: skip
            copy.set_root(element)
            made.append(copy)
        return made

    # -- one trip -----------------------------------------------------------------------------

    def _step(
        self,
        build: Builder,
        counter: Instruction,
        operands: list[Instruction],
        indices: Instruction,
        updates: list[Instruction],
        combiners: list[Computation],
    ) -> list[Instruction]:
        """The operands with the update of one index; as they are where that is out of bounds."""
        shape, sizes = operands[0].shape, self._sizes
        found = self._positions.make(build, counter, indices.shape.type_name)
        trip = vector_of(build, counter)
        vector = index_vector(build, trip, indices)
        where = operand_index(build, vector, self.indexed, found, shape.rank)
        start = row_start(build, trip, updates[0].shape.rank)
        windows = [build.reshape(row(build, start, update), sizes) for update in updates]
        inside = build.broadcast(
            self._is_inside(build, where, shape), (), array_shape("pred", sizes)
        )
        old = [build.dynamic_slice(x, scalars(build, where), sizes) for x in operands]
        after = []
        for operand, value, combiner in zip(operands, old, combiners, strict=True):
            new = build.select(inside, self._combined(build, combiner, old, windows), value)
            after.append(build.dynamic_update_slice(operand, new, scalars(build, where)))
        return after

    def _combined(
        self,
        build: Builder,
        combiner: Computation,
        old: list[Instruction],
        windows: list[Instruction],
    ) -> Instruction:
        """A computation of the old values and of the updates, elementwise."""
        shape = array_shape(combiner.root.shape.type_name, self._sizes)
        return build.make(
            "map", *old, *windows, shape=shape, called=(combiner,),
            attributes={"dimensions": format_ints(range(shape.rank))},
        )  # fmt: skip

    def _is_inside(self, build: Builder, where: Instruction, shape: Shape) -> Instruction:
        """Whether the window at an index is inside the operand."""
        kind = where.shape.type_name
        zeros = build.fill(build.scalar(0, where.shape), where.shape)
        pairs = zip(shape.dimensions, self._sizes, strict=True)
        last = constant_vector(build, [extent - size for extent, size in pairs], kind)
        is_inside = build.binary(
            "and", build.compare("LE", zeros, where), build.compare("GE", last, where)
        )
        true = build.scalar(True, array_shape("pred"))
        reducer = build.scalar_computation("and", "pred")
        return build.reduce(is_inside, true, (0,), reducer)


@register(
    "scatter-expander",
    preserves="bits",
    xla=XlaPass("ScatterExpander", "xla/service/scatter_expander.h"),
)
class ScatterExpander(RulePass):
    """Write scatters as while loops that update one window of the operand in each trip.

    A trip slices the window at one index, combines it with its update by a map of the scatter's
    computation, and writes it back: what it was where a part of the window is out of bounds. By
    default only scatters of one index are rewritten; of several the result may depend on the order
    unless indices are unique or the computation is one of integers in any order. Indices of a type
    that does not hold the sizes of the operand are converted. Linear in the number of instructions.
    Refuses more than 2147483647 indices.
    """

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options(PassOptions):
        mode: Literal[
            "eliminate_simple_scatters",
            "eliminate_all_scatters",
            "eliminate_indeterministic_scatters",
        ] = option(
            "eliminate_simple_scatters",
            "scatters of one index, all, or those of which the result may depend on an order",
        )

    options: Options
    rules = (expand,)
    max_sweeps = 1
