"""The steps of a program: products, collectives, custom calls, loops and branches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

from hloopt.analysis.calls import callees_first
from hloopt.analysis.cost import CostAnalysis
from hloopt.analysis.inventory.collectives import Collective, collectives_of, group_count
from hloopt.analysis.latency.model import LatencyModel
from hloopt.analysis.loops.trip_count import trip_count
from hloopt.analysis.stage import Stage
from hloopt.diagnostics import counted
from hloopt.ir.attributes.values import parse_ints
from hloopt.ir.computation import Computation
from hloopt.ir.custom_targets import IDENTITIES, NEW_BUFFERS, custom_call_target
from hloopt.ir.devices.device_counts import device_counts
from hloopt.ir.devices.grid import Grid
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import CONTRACTIONS, Opcode
from hloopt.ir.shapes.shape import format_shape
from hloopt.ir.sources.source_stacks import op_name_of
from hloopt.reports.console.units import human_bytes, some
from hloopt.reports.skeleton.outline import arranged, shared_scope
from hloopt.reports.skeleton.plot import Amounts, Kind, Step
from hloopt.reports.stage_notices import cost_notices
from hloopt.reports.work_kinds import WorkKind, work_kind

_HEAVY = frozenset(
    (
        *(Opcode.GATHER, Opcode.SCATTER, Opcode.SORT, Opcode.TOPK, Opcode.FFT),
        *(Opcode.CHOLESKY, Opcode.TRIANGULAR_SOLVE, Opcode.SEND, Opcode.RECV),
        *(Opcode.INFEED, Opcode.OUTFEED, Opcode.RNG_BIT_GENERATOR, Opcode.REDUCE_WINDOW),
    )
)
"""Opcodes that have a line of their own beside products, collectives and custom calls."""
_QUIET = IDENTITIES | NEW_BUFFERS
_DEEPEST = 64
"""Loops and branches inside of one another that are shown; what is below them only counts."""


@dataclass(frozen=True, slots=True)
class Skeleton:
    """The plot of a module on one device."""

    module: Module
    steps: tuple[Step, ...]
    total: Amounts
    """Of all of the module, also of what has no line of its own."""
    devices: Grid
    notices: tuple[str, ...]
    """The subject of the figures, where that is not one device."""
    notes: tuple[str, ...]
    """The assumptions behind the figures, one sentence each."""


def find_skeleton(module: Module, times: LatencyModel | None) -> Skeleton:
    """The plot of a verified module. Near-linear in the instructions."""
    plotter = _Plotter(module, times)
    for computation in callees_first(module):
        plotter.look(computation)
    return Skeleton(
        module,
        plotter.steps[module.entry],
        plotter.totals[module.entry],
        plotter.grid,
        cost_notices(Stage.of(module)),
        plotter.notes(),
    )


class _Plotter:
    def __init__(self, module: Module, times: LatencyModel | None) -> None:
        self.costs = CostAnalysis(module)
        self.times = times
        self.grid = device_counts(module)
        self.collectives = {each.instruction: each for each in collectives_of(module)}
        self.flat: dict[Computation, list[Step]] = {}
        """The steps of each computation, one behind the other."""
        self.steps: dict[Computation, tuple[Step, ...]] = {}
        """The same by scopes, with repetitions folded."""
        self.totals: dict[Computation, Amounts] = {}
        self.depths: dict[Computation, int] = {}
        """Loops and branches inside of one another in its steps."""
        self.unknown: dict[Instruction, None] = {}
        """Loops whose trips are not known."""
        self.is_cut = False

    def look(self, computation: Computation) -> None:
        """Find the steps of a computation, after those of what it calls."""
        steps: list[Step] = []
        total = Amounts()
        for instruction in computation.instructions:
            amounts = self._amounts(instruction)
            total += amounts
            steps += self._steps_of(instruction, amounts)
        level = 0 if computation.is_entry else len(shared_scope(steps))
        self.flat[computation], self.totals[computation] = steps, total
        self.steps[computation] = arranged(steps, level)
        self.depths[computation] = max(map(self._depth, computation.instructions), default=0)

    def _depth(self, instruction: Instruction) -> int:
        inside = max((self.depths[each] for each in instruction.called), default=0)
        if instruction.opcode not in (Opcode.WHILE, Opcode.CONDITIONAL):
            return inside
        return 1 if inside >= _DEEPEST else inside + 1

    def _below(self, computation: Computation) -> tuple[Step, ...]:
        """The steps of a body or branch, none where they are too deep."""
        if self.depths[computation] < _DEEPEST:
            return self.steps[computation]
        self.is_cut = True
        return ()

    def _amounts(self, instruction: Instruction) -> Amounts:
        opcode = instruction.opcode
        if opcode is Opcode.WHILE:
            trips = self._trips(instruction)[0]
            body, condition = (self.totals[each] for each in instruction.called)
            return body.times(trips) + condition.times(trips + 1)
        if opcode is Opcode.CONDITIONAL:
            return max((self.totals[each] for each in instruction.called), key=_work)
        if opcode in (Opcode.CALL, Opcode.ASYNC_START) and instruction.called:
            return self.totals[instruction.called[0]]
        cost = self.costs.of(instruction)
        seconds = 0.0
        if self.times is not None:
            time = (
                self.times.whole_time(instruction)
                if instruction in self.collectives
                else self.times.node_time(instruction)
            )
            seconds = time.cycles / self.times.cycles_per_microsecond * 1e-6
        return Amounts(cost.flops, cost.bytes_accessed, seconds)

    def notes(self) -> tuple[str, ...]:
        """Sentences on what the figures assume."""
        found = []
        if self.unknown:
            loops = some([f"%{loop.name}" for loop in self.unknown])
            found.append(f"loops whose trip count is not known take one trip: {loops}")
        if self.is_cut:
            found.append(
                f"what is inside of more than {_DEEPEST} loops and branches counts, "
                "but has no line of its own"
            )
        return tuple(found)

    def _trips(self, loop: Instruction) -> tuple[int, bool]:
        trips = trip_count(loop)
        if trips is None:
            self.unknown[loop] = None
            return 1, False
        return trips, True

    def _steps_of(self, instruction: Instruction, amounts: Amounts) -> Iterator[Step]:
        opcode = instruction.opcode
        if opcode is Opcode.WHILE:
            trips, is_known = self._trips(instruction)
            body, condition = map(self._below, instruction.called)
            below = (*condition, *body)
            yield self._step(instruction, Kind.LOOP, "", amounts, below, trips, is_known)
        elif opcode is Opcode.CONDITIONAL:
            branches = tuple(
                self._step(
                    each.root, Kind.BRANCH, str(number), self.totals[each], self._below(each)
                )
                for number, each in enumerate(instruction.called)
            )
            yield self._step(instruction, Kind.CONDITIONAL, "", amounts, branches)
        elif opcode is Opcode.FUSION:
            inside = self.flat[instruction.called[0]]
            if len(inside) == 1:
                yield replace(inside[0], amounts=amounts, name=instruction.name)
            else:
                yield from inside
        elif opcode in (Opcode.CALL, Opcode.ASYNC_START):
            for called in instruction.called[:1]:
                yield from self.flat[called]
        else:
            yield from self._operation(instruction, amounts)

    def _operation(self, instruction: Instruction, amounts: Amounts) -> Iterator[Step]:
        collective = self.collectives.get(instruction)
        if collective is not None:
            text = self._collective_text(collective)
            yield self._step(instruction, Kind.COLLECTIVE, text, amounts)
        elif instruction.opcode in CONTRACTIONS:
            yield self._step(instruction, Kind.PRODUCT, _product_text(instruction), amounts)
        elif instruction.opcode is Opcode.CUSTOM_CALL:
            target = custom_call_target(instruction)
            if target not in _QUIET:
                yield self._step(instruction, Kind.CUSTOM_CALL, target, amounts)
        elif instruction.opcode in _HEAVY:
            text = f"{instruction.opcode} {_sizes(instruction)}"
            is_transfer = work_kind(instruction) is WorkKind.COLLECTIVE
            kind = Kind.TRANSFER if is_transfer else Kind.OTHER
            yield self._step(instruction, kind, text, amounts)

    def _step(
        self,
        instruction: Instruction,
        kind: Kind,
        text: str,
        amounts: Amounts,
        below: tuple[Step, ...] = (),
        count: int = 1,
        is_counted: bool = True,
    ) -> Step:
        place = op_name_of(instruction)
        return Step(kind, text, place, instruction.name, amounts, count, is_counted, below)

    def _collective_text(self, collective: Collective) -> str:
        groups, size = group_count(collective.instruction, self.grid), collective.group_size
        types = "+".join(collective.types)
        axes = f" over {','.join(collective.axes)}" if collective.axes else ""
        return (
            f"{collective.kind} {types} {human_bytes(collective.payload)}, "
            f"{groups} x {counted(size, 'device')}{axes}"
        )


def _work(amounts: Amounts) -> tuple[float, float]:
    return amounts.seconds, amounts.bytes


def _product_text(product: Instruction) -> str:
    """`dot bf16 8 x (2048x4096 . 4096x11008)`: batches, rows, contracted, columns."""
    lhs, rhs = product.operands[0].shape, product.operands[1].shape
    if product.opcode is not Opcode.DOT:
        return f"{product.opcode} {_sizes(product.operands[0])} · {_sizes(product.operands[1])}"
    batch = [lhs.dimensions[d] for d in _ints(product, "lhs_batch_dims")]
    inner = [lhs.dimensions[d] for d in _ints(product, "lhs_contracting_dims")]
    batches, depth = prod(batch), prod(inner)
    rows = lhs.element_count() // max(1, batches * depth)
    columns = rhs.element_count() // max(1, batches * depth)
    size = f"{rows}x{depth} · {depth}x{columns}"
    types = lhs.type_name if lhs.type_name == rhs.type_name else f"{lhs.type_name}·{rhs.type_name}"
    return f"dot {types} {f'{batches} x ({size})' if batches > 1 else size}"


def _ints(instruction: Instruction, name: str) -> tuple[int, ...]:
    return parse_ints(instruction.attributes.get(name, "{}"))


def _sizes(instruction: Instruction) -> str:
    """The largest array of the result, without its layout."""
    arrays = [leaf for leaf in instruction.shape.leaves() if leaf.is_array]
    if not arrays:
        return ""
    return format_shape(max(arrays, key=lambda leaf: leaf.element_count()), layout=False)
