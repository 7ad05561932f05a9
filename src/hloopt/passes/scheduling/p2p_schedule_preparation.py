"""Put sends and receives in an order that cannot deadlock, before the scheduler moves things."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations, pairwise

from hloopt.analysis.async_operations import OWN_DONES, SYNC_COLLECTIVES, async_form
from hloopt.analysis.reachability import Reachability
from hloopt.ir.attributes.frontend_attributes import frontend_attribute
from hloopt.ir.attributes.typed import channel_of, has_host_transfer
from hloopt.ir.computation import Computation
from hloopt.ir.devices.transfers import PIPELINE
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import computation_post_order, stable_order
from hloopt.pass_framework.base import ModulePass, PassContext, XlaPass, register

_STEPS = (Opcode.RECV, Opcode.SEND, Opcode.RECV_DONE, Opcode.SEND_DONE)


@register(
    "latency-hiding-scheduler-preparation",
    preserves="bits",
    xla=XlaPass(
        "P2PSchedulePreparation", "xla/service/p2p_schedule_preparation.h", compared="tests"
    ),
)
class P2PSchedulePreparation(ModulePass):
    """Add control dependencies between sends, receives and what else runs collectives.

    The four steps of a channel are chained: recv, send, recv-done, send-done; two channels that
    make up a cycle, streams 0 and 1, are chained together. Other collectives, custom calls and
    calls of such come before or after the whole chain, before it in the body of a pipelined loop.
    Transfers with the host, and channels that lack a step, are left alone. O(instructions +
    chains · collectives of a computation).
    """

    def run(self, module: Module, context: PassContext) -> bool:
        version = module.version
        chains: list[_Chain] = []
        may_chain: dict[Computation, bool] = {}
        """One application per computation: what runs beside a chain is ordered against all."""
        for chain in _chains(module):
            if _can_be_chained(chain):
                if chain.computation not in may_chain:
                    what = "the sends and receives of its computation are chained"
                    may_chain[chain.computation] = context.apply(chain.steps[0], what, remark=False)
                if not may_chain[chain.computation]:
                    continue
                chains.append(chain)
                for before, after in pairwise(chain.steps):
                    after.add_control_predecessor(before)
            else:
                context.missed(chain.steps[0], "the steps of its channel depend on each other")
        busy = _with_collectives(module) if chains else set()
        by_computation: dict[Computation, list[_Chain]] = {}
        for chain in chains:
            by_computation.setdefault(chain.computation, []).append(chain)
        for computation, found in by_computation.items():
            _Separation(computation, found, busy).apply()
            if module.is_scheduled:
                _restore_order(computation)
            for chain in found:
                context.applied(chain.steps[0], "chained with the other steps of its channel")
        context.count("chains of transfers", len(chains))
        return module.version != version


@dataclass(frozen=True, slots=True, eq=False)
class _Chain:
    """The steps of one channel, or of the two of a cycle, in one computation."""

    steps: tuple[Instruction, ...]
    loop: Instruction | None
    """The pipelined while that continues the channel."""
    is_in_pipelined_body: bool

    @property
    def computation(self) -> Computation:
        return self.steps[0].parent


@dataclass(frozen=True, slots=True, eq=False)
class _Channel:
    """A complete channel: its four steps, in the body of a pipelined loop and outside."""

    sites: tuple[tuple[Instruction, ...], ...]
    """The steps in each computation, that of the loop's body last."""
    loop: Instruction | None

    @property
    def stream(self) -> str | None:
        return frontend_attribute(self.sites[0][0], PIPELINE)

    @property
    def computations(self) -> tuple[Computation, ...]:
        return tuple(steps[0].parent for steps in self.sites)


def _chains(module: Module) -> list[_Chain]:
    channels = list(_channels(module))
    first = {c.computations: c for c in channels if c.stream == "0"}
    second = {c.computations: c for c in channels if c.stream == "1"}
    chains: list[_Chain] = []
    for channel in channels:
        other = second.get(channel.computations)
        is_cycle = other is not None and first.get(channel.computations) is channel
        if channel is second.get(channel.computations) and channel.computations in first:
            continue
        for number, steps in enumerate(channel.sites):
            if is_cycle and other is not None:
                steps = _interleaved(steps, other.sites[number])
            is_body = len(channel.sites) == 2 and number == 1
            chains.append(_Chain(steps, None if is_body else channel.loop, is_body))
    return chains


def _interleaved(
    first: tuple[Instruction, ...], second: tuple[Instruction, ...]
) -> tuple[Instruction, ...]:
    """Both channels start, then both receive, then both have sent."""
    starts = (*first[:2], *second[:2])
    return (*starts, first[2], second[2], first[3], second[3])


def _channels(module: Module) -> Iterator[_Channel]:
    found: dict[int, dict[Computation, dict[Opcode, list[Instruction]]]] = {}
    for instruction in module.instructions():
        if instruction.opcode not in _STEPS or has_host_transfer(instruction):
            continue
        if (channel := channel_of(instruction)) is not None:
            site = found.setdefault(channel, {}).setdefault(instruction.parent, {})
            site.setdefault(instruction.opcode, []).append(instruction)
    for sites in found.values():
        if any(len(site.get(step, ())) != 1 for site in sites.values() for step in _STEPS):
            continue
        steps = {c: tuple(site[step][0] for step in _STEPS) for c, site in sites.items()}
        if len(steps) == 1:
            yield _Channel(tuple(steps.values()), None)
        elif len(steps) == 2:
            yield from _pipelined(*steps.values())


def _pipelined(a: tuple[Instruction, ...], b: tuple[Instruction, ...]) -> Iterator[_Channel]:
    if frontend_attribute(a[0], PIPELINE) != frontend_attribute(b[0], PIPELINE):
        return
    for outside, inside in ((a, b), (b, a)):
        for loop in inside[0].parent.callers:
            if loop.opcode is not Opcode.WHILE or loop.called[0] is not inside[0].parent:
                continue
            if loop.parent is outside[0].parent and outside[3] in loop.operands[0].operands:
                yield _Channel((outside, inside), loop)
                return


def _with_collectives(module: Module) -> set[Computation]:
    """The computations that run collectives or custom calls, also in what they call."""
    busy: set[Computation] = set()
    for computation in computation_post_order(module):
        if any(i.opcode in _STEPS or _is_busy(i, busy) for i in computation.instructions):
            busy.add(computation)
    return busy


def _is_busy(instruction: Instruction, busy: set[Computation]) -> bool:
    opcode = instruction.opcode
    if opcode is Opcode.CUSTOM_CALL or opcode in SYNC_COLLECTIVES:
        return True
    if opcode in OWN_DONES or opcode is Opcode.ASYNC_DONE:
        return async_form(instruction).inner in SYNC_COLLECTIVES
    return not busy.isdisjoint(instruction.called) and opcode is not Opcode.ASYNC_START


def _can_be_chained(chain: _Chain) -> bool:
    """Whether no step depends on one that is to come after it."""
    paths = Reachability(chain.computation)
    return not any(paths.reachable(after, before) for before, after in combinations(chain.steps, 2))


def _restore_order(computation: Computation) -> None:
    """Let the schedule follow the new dependencies."""
    order = stable_order(computation)
    if order != list(computation.instructions):
        computation.reorder(order)


class _Separation:
    """Keeps what runs collectives out of the chains of one computation."""

    def __init__(
        self, computation: Computation, chains: list[_Chain], busy: set[Computation]
    ) -> None:
        self.chains = sorted(chains, key=lambda chain: not chain.is_in_pipelined_body)
        members = {step for chain in chains for step in chain.steps}
        self.others = [
            i for i in computation.instructions if i not in members and _is_busy(i, busy)
        ]
        self.paths = Reachability(computation)

    def apply(self) -> None:
        """Add the control dependencies that are not implied already."""
        for chain in self.chains:
            for first, last in self._to_separate(chain):
                if first is chain.loop:
                    continue
                begin, end = chain.steps[0], chain.steps[-1]
                comes_after = not chain.is_in_pipelined_body and self.paths.reachable(begin, first)
                if comes_after:
                    self._order(end, first)
                else:
                    self._order(last, begin)

    def _to_separate(self, chain: _Chain) -> Iterable[tuple[Instruction, Instruction]]:
        """First and last instruction of everything else."""
        yield from ((other, other) for other in self.others)
        for other in self.chains:
            if other is not chain:
                yield other.steps[0], other.steps[-1]

    def _order(self, before: Instruction, after: Instruction) -> None:
        if not self.paths.connected(before, after):
            after.add_control_predecessor(before)
            self.paths.update([after])
