"""The resources that asynchronous operations occupy while they are under way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

from hloopt.analysis.async_operations import (
    SEND_RECV,
    SEND_RECV_DONE,
    SYNC_COLLECTIVES,
    async_form,
    is_host_transfer,
    is_on_other_thread,
)
from hloopt.ir import Computation, Instruction, Module, Opcode
from hloopt.ir.opcode import ASYNC
from hloopt.ir.ordering import depth_first
from hloopt.scheduling.config import SchedulerConfig
from hloopt.scheduling.resources.hints import Hints, hints_of
from hloopt.scheduling.resources.in_use import OverlapCheck
from hloopt.scheduling.resources.resource import Hazard, Resource, Usage, Uses

_KINDS = {
    Opcode.ALL_TO_ALL: ("kAllToAll", "all_to_all"),
    Opcode.ALL_GATHER: ("kAllGather", "all_gather"),
    Opcode.ALL_REDUCE: ("kAllReduce", "all_reduce"),
    Opcode.COLLECTIVE_PERMUTE: ("kCollectivePermute", "collective_permute"),
    Opcode.COPY: ("kCopy", "copy"),
    Opcode.REDUCE_SCATTER: ("kReduceScatter", "reduce_scatter"),
    Opcode.COLLECTIVE_BROADCAST: ("kCollectiveBroadcast", "collective_broadcast"),
    Opcode.RAGGED_ALL_TO_ALL: ("kRaggedAllToAll", "ragged_all_to_all"),
}
RESOURCE_OF = {opcode: number for number, opcode in enumerate(_KINDS)}
"""The resource of each kind of operation that has one."""
SEND_RECV_RESOURCE, SEND_HOST, RECV_HOST = range(len(_KINDS), len(_KINDS) + 3)
GENERIC_COUNT = len(_KINDS) + 3

_TRACKED_WHEN_SYNC = (*SYNC_COLLECTIVES, Opcode.COPY)


class ResourceTracker:
    """The resources that instructions of a module use: the rules that all targets share."""

    def __init__(self, config: SchedulerConfig) -> None:
        self.config = config
        self.resources = [
            *(
                Resource.of_option(
                    name,
                    config,
                    f"{option}_overlap_limit",
                    Hazard.SHAREABLE if opcode is Opcode.COPY else Hazard.UNSHAREABLE,
                )
                for opcode, (name, option) in _KINDS.items()
            ),
            Resource.of_option("kSendRecv", config, "send_recv_overlap_limit"),
            Resource.of_option("kSendHost", config, "send_recv_host_overlap_limit"),
            Resource.of_option("kRecvHost", config, "send_recv_host_overlap_limit"),
        ]
        top_down = config.top_down_scheduling
        self.at_start = Usage.OCCUPY if top_down else Usage.RELEASE
        self.at_done = Usage.RELEASE if top_down else Usage.OCCUPY
        self._counts: dict[Computation, dict[int, int]] = {}
        self._busy: dict[Module, set[Computation]] = {}
        self._uses: dict[Instruction, Uses] = {}

    # -- what is asynchronous -------------------------------------------------------------------

    def is_start(self, instruction: Instruction) -> bool:
        """Whether it begins an operation whose latency is to be hidden."""
        return self._is_step(instruction, Opcode.ASYNC_START, SEND_RECV)

    def is_done(self, instruction: Instruction) -> bool:
        """Whether it waits for the end of such an operation."""
        return self._is_step(instruction, Opcode.ASYNC_DONE, SEND_RECV_DONE)

    def _is_step(
        self, instruction: Instruction, step: Opcode, transfers: tuple[Opcode, ...]
    ) -> bool:
        if instruction.opcode in transfers:
            return bool(self.config.schedule_send_recvs)
        outer, inner = async_form(instruction)
        if outer is not step:
            return False
        return inner in RESOURCE_OF or (
            instruction.opcode is step and is_on_other_thread(instruction)
        )

    def may_be_asynchronous(self, opcode: Opcode) -> bool:
        """Whether `is_start` or `is_done` can be true of it: a quick no for most."""
        return opcode in _MAY_BE_ASYNCHRONOUS

    @cached_property
    def asynchronous(self) -> frozenset[Opcode]:
        """The opcodes for which `may_be_asynchronous` holds."""
        return frozenset(filter(self.may_be_asynchronous, Opcode))

    # -- what is used ---------------------------------------------------------------------------

    def uses(self, instruction: Instruction) -> Uses:
        """The resources of an instruction, each once per use. O(instructions of a while), once."""
        opcode = instruction.opcode
        if opcode not in _MAY_USE and not (
            self.config.track_sync_op_resource_usage and opcode in _TRACKED_WHEN_SYNC
        ):
            return ()
        found = self._uses.get(instruction)
        if found is None:
            found = (
                self._loop_uses(instruction)
                if opcode is Opcode.WHILE
                else (self.own_uses(instruction))
            )
            self._uses[instruction] = found
        return found

    def own_uses(self, instruction: Instruction) -> Uses:
        """The resources of an instruction that is no while."""
        opcode = instruction.opcode
        if opcode is Opcode.AFTER_ALL:
            return ((SEND_HOST, Usage.NONE),)
        if opcode in SEND_RECV:
            return ((self._transfer(instruction), self.at_start),)
        if opcode in SEND_RECV_DONE:
            return ((self._transfer(instruction), self.at_done),)
        outer, inner = async_form(instruction)
        resource = RESOURCE_OF.get(inner)
        if resource is None:
            return ()
        if outer is Opcode.ASYNC_START:
            return ((resource, self.at_start),)
        if outer is Opcode.ASYNC_DONE:
            return ((resource, self.at_done),)
        if self.config.track_sync_op_resource_usage and outer in _TRACKED_WHEN_SYNC:
            return ((resource, Usage.OCCUPY), (resource, Usage.RELEASE))
        return ()

    def _transfer(self, instruction: Instruction) -> int:
        if not is_host_transfer(instruction):
            return SEND_RECV_RESOURCE
        is_send = instruction.opcode in (Opcode.SEND, Opcode.SEND_DONE)
        return (
            SEND_HOST if is_send or self.config.force_send_recv_to_use_same_resource else RECV_HOST
        )

    def _loop_uses(self, loop: Instruction) -> Uses:
        """The uses of the body of a while, and of whiles in it."""

        def unknown_loops(outer: Instruction) -> Iterable[Instruction]:
            inside = outer.called[0].instructions
            return [i for i in inside if i.opcode is Opcode.WHILE and i not in self._uses]

        for inner in depth_first([loop], unknown_loops):
            found: dict[tuple[int, Usage], None] = {}
            for instruction in inner.called[0].instructions:
                found.update(dict.fromkeys(self.uses(instruction)))
            self._uses[inner] = tuple(found)
        return self._uses[loop]

    def net_uses(self, instruction: Instruction) -> Uses:
        """The uses that last when an instruction is scheduled: a while gives back what it takes."""
        uses = self.uses(instruction)
        if instruction.opcode is not Opcode.WHILE:
            return uses
        taken = {resource for resource, usage in uses if usage is Usage.OCCUPY}
        given = {resource for resource, usage in uses if usage is Usage.RELEASE}
        return tuple(use for use in uses if use[0] not in taken & given)

    # -- how much is needed at once -------------------------------------------------------------

    def needs(self, instruction: Instruction) -> Mapping[int, int]:
        """The part of each resource an instruction takes at the same time. O(its uses)."""
        called = instruction.called
        if not called or instruction.opcode in ASYNC:
            return self._own_needs(instruction)
        if len(called) == 1:
            return self.computation_needs(called[0])
        result: dict[int, int] = {}
        for computation in called:
            _take_largest(result, self.computation_needs(computation))
        return result

    def _own_needs(self, instruction: Instruction) -> dict[int, int]:
        result: dict[int, int] = {}
        for resource, usage in self.uses(instruction):
            if usage is Usage.OCCUPY:
                result[resource] = result.get(resource, 0) + 1
        if instruction.opcode is Opcode.ASYNC_START and self.looks_inside(instruction):
            _take_largest(result, self.computation_needs(instruction.called[0]))
        return result

    def looks_inside(self, start: Instruction) -> bool:
        """Whether what an async-start calls counts beside the start itself."""
        return async_form(start).inner not in SYNC_COLLECTIVES

    def computation_needs(self, computation: Computation) -> Mapping[int, int]:
        """The part of each resource a computation has in use at once, at most."""
        found = self._counts.get(computation)
        if found is None:
            if computation not in self._busy_in(computation.module):
                return {}  # as most bodies of fusions
            for callee in depth_first([computation], self._uncounted_callees):
                self._counts[callee] = self._count(callee)
            found = self._counts[computation]
        return found

    def _busy_in(self, module: Module) -> set[Computation]:
        """The computations with something asynchronous, and all that call them. O(instructions),
        once."""
        found = self._busy.get(module)
        if found is None:
            asynchronous = self.asynchronous
            found = self._busy[module] = {
                computation
                for computation in module.computations.values()
                if not asynchronous.isdisjoint([i.opcode for i in computation.instructions])
            }
            waiting = list(found)
            for callee in waiting:  # grows
                new = {caller.parent for caller in callee.callers} - found
                found |= new
                waiting += new
        return found

    def forget(self, computation: Computation) -> None:
        """Drop what is known of a computation's needs: its order has changed."""
        self._counts.pop(computation, None)

    def _uncounted_callees(self, computation: Computation) -> list[Computation]:
        busy = self._busy_in(computation.module)
        return [
            callee
            for step in self._steps(computation)
            for callee in step.called
            if callee in busy and callee not in self._counts
        ]

    def _steps(self, computation: Computation) -> list[Instruction]:
        """The instructions that may have a part in what a computation needs."""
        asynchronous = self.asynchronous
        return [i for i in computation.instructions if i.called or i.opcode in asynchronous]

    def _count(self, computation: Computation) -> dict[int, int]:
        steps = self._steps(computation)
        running: dict[int, int] = {}
        most: dict[int, int] = {}
        for instruction in reversed(steps):
            if instruction.opcode in self.asynchronous:
                if self.is_done(instruction):
                    for resource, _ in self.uses(instruction):
                        running[resource] = running.get(resource, 0) + 1
                        if most.get(resource, 0) < running[resource]:
                            most[resource] = running[resource]
                elif self.is_start(instruction):
                    for resource, _ in self.uses(instruction):
                        running[resource] = running.get(resource, 0) - 1
            if instruction.called:
                for resource, count in self.needs(instruction).items():
                    total = running.get(resource, 0) + count
                    if most.get(resource, 0) < total:
                        most[resource] = total
        return dict.fromkeys(most, 1) if most and computation.is_fusion else most

    # -- what targets add -----------------------------------------------------------------------

    def hints(self, instruction: Instruction, *, is_start: bool, is_done: bool) -> Hints:
        """The hint on an instruction's place. Raises PassRefused for a malformed one."""
        return hints_of(instruction, is_start=is_start, is_done=is_done)

    def overlap_check(self) -> OverlapCheck | None:
        """The check of whether an instruction may be scheduled; None: enough has to be left for
        it."""
        return None

    def shared_by(self, start: Instruction, done: Instruction) -> tuple[int, ...]:
        """The shareable resources that an operation holds from start to done; none by default,
        as in XLA: only targets know of such."""
        return ()

    def is_valuable(self, instruction: Instruction) -> bool:
        """Whether it is worth hiding the latency of a selective resource."""
        return True


def _take_largest(result: dict[int, int], other: Mapping[int, int]) -> None:
    for resource, count in other.items():
        if result.get(resource, 0) < count:
            result[resource] = count


_MAY_BE_ASYNCHRONOUS = frozenset(
    (
        *(opcode for opcode in Opcode if opcode.value.endswith(("-start", "-done"))),
        *SEND_RECV,
    )
)
_MAY_USE = frozenset((*_MAY_BE_ASYNCHRONOUS, Opcode.AFTER_ALL, Opcode.WHILE))
