"""The resources of XLA:GPU: streams, whatever the kind of operation on them."""

from __future__ import annotations

from hloopt.analysis.async_operations import (
    OWN_DONES,
    SEND_RECV,
    SEND_RECV_DONE,
    SYNC_COLLECTIVES,
    async_form,
)
from hloopt.analysis.gpu_async import (
    is_collectives_group,
    is_custom_collective,
    is_gpu_begin,
    is_gpu_done,
    is_gpu_end,
    is_gpu_start,
    is_memory_bound,
    is_slice_copy,
    is_slice_copy_on_device,
)
from hloopt.ir import Instruction, Opcode
from hloopt.ir.async_chains import async_start_of
from hloopt.ir.attributes.backend_config import backend_config
from hloopt.ir.attributes.frontend_attributes import frontend_attribute
from hloopt.ir.devices.transfers import PIPELINE, STREAM
from hloopt.scheduling.config import SchedulerConfig
from hloopt.scheduling.resources.gpu_streams import StreamOverlap
from hloopt.scheduling.resources.hints import HINT, NO_HINTS, Hints
from hloopt.scheduling.resources.in_use import OverlapCheck
from hloopt.scheduling.resources.resource import Hazard, Resource, Uses
from hloopt.scheduling.resources.tracker import GENERIC_COUNT, ResourceTracker

SEND_0, SEND_1, RECV_0, RECV_1, P2P, COMPUTES, MEMCPY, COLLECTIVES = range(
    GENERIC_COUNT, GENERIC_COUNT + 8
)
_TRANSFERS_IN_FLIGHT = 4
_TRANSFERS = frozenset((*SEND_RECV, *SEND_RECV_DONE))
_EARLIEST = "force_earliest_schedule"
"""The field of a backend_config that asks for the beginning of the program."""


class GpuResourceTracker(ResourceTracker):
    """The operations that XLA:GPU takes to be asynchronous, and the stream of each."""

    def __init__(self, config: SchedulerConfig) -> None:
        super().__init__(config)
        selective = config.enable_selective_resources
        self.resources += [
            Resource("kGpuAsyncStreamSend0", _TRANSFERS_IN_FLIGHT),
            Resource("kGpuAsyncStreamSend1", _TRANSFERS_IN_FLIGHT),
            Resource("kGpuAsyncStreamRecv0", _TRANSFERS_IN_FLIGHT),
            Resource("kGpuAsyncStreamRecv1", _TRANSFERS_IN_FLIGHT),
            Resource("kGpuAsyncStreamCollectivesP2P", _TRANSFERS_IN_FLIGHT),
            Resource.of_option("kGpuAsyncStreamComputes", config, "parallel_async_compute_limit"),
            Resource(
                "kGpuAsyncStreamMemcpy",
                (1 << 31) - 1,
                Hazard.SELECTIVE if selective else Hazard.UNSHAREABLE,
            ),
            Resource.of_option(
                "kGpuAsyncStreamCollectives", config, "parallel_collective_overlap_limit"
            ),
        ]

    def is_start(self, instruction: Instruction) -> bool:
        return is_gpu_start(instruction) and not self._is_in_line(instruction)

    def is_done(self, instruction: Instruction) -> bool:
        return is_gpu_done(instruction) and not self._is_in_line(instruction)

    def _is_in_line(self, step: Instruction) -> bool:
        """Whether a copy of a slice runs like other work, as before it had a stream."""
        return not self.config.separate_memcpy_stream and is_slice_copy_on_device(step)

    def own_uses(self, instruction: Instruction) -> Uses:
        """Those of XLA's canonical starts and dones: synchronous ones and calls on the same thread
        use a stream, too, though they are scheduled like ordinary instructions."""
        if is_gpu_begin(instruction):
            return ((self._stream(instruction), self.at_start),)
        if is_gpu_end(instruction):
            return ((self._stream(instruction), self.at_done),)
        return ()

    def _stream(self, instruction: Instruction) -> int:
        """The resource that a start or a done uses."""
        opcode = instruction.opcode
        start = instruction
        if opcode in (Opcode.ASYNC_DONE, Opcode.ASYNC_START):
            start = async_start_of(instruction)
            if self.config.separate_memcpy_stream and is_slice_copy(start):
                return MEMCPY
        elif opcode in OWN_DONES or opcode in SEND_RECV_DONE:
            start = instruction.operands[0]
        if frontend_attribute(start, STREAM) == "p2p":
            return P2P
        if opcode in SEND_RECV or opcode in SEND_RECV_DONE:
            is_second = frontend_attribute(instruction, PIPELINE) == "1"
            if opcode in (Opcode.SEND, Opcode.SEND_DONE):
                return SEND_1 if is_second else SEND_0
            return RECV_1 if is_second else RECV_0
        if (
            async_form(instruction).inner in SYNC_COLLECTIVES
            or is_collectives_group(start)
            or is_custom_collective(instruction)
        ):
            return COLLECTIVES
        return COMPUTES

    def looks_inside(self, start: Instruction) -> bool:
        return not is_collectives_group(start) and super().looks_inside(start)

    def overlap_check(self) -> OverlapCheck | None:
        if not self.config.enable_collective_multi_streaming:
            return None
        return StreamOverlap(
            COLLECTIVES, self.is_start, self._is_done_of_collective, self.computation_needs
        )

    def _is_done_of_collective(self, instruction: Instruction) -> bool:
        """Whether it is a done on the stream of collectives."""
        uses = self.uses(instruction)
        return bool(uses) and uses[0][0] == COLLECTIVES and self.is_done(instruction)

    def is_valuable(self, instruction: Instruction) -> bool:
        return not (self.config.enable_selective_resources and is_memory_bound(instruction))

    def hints(self, instruction: Instruction, *, is_start: bool, is_done: bool) -> Hints:
        as_read = instruction.attribute_text
        is_transfer = instruction.opcode in _TRANSFERS
        if as_read is not None and not (is_transfer or HINT in as_read or _EARLIEST in as_read):
            return NO_HINTS  # as most: what they have is not split for that
        hints = super().hints(instruction, is_start=is_start, is_done=is_done)
        if is_transfer:
            hints = self._place_transfer(instruction, hints)
        if config := backend_config(instruction):
            hints = hints._replace(force_delay=config.get(_EARLIEST) is True)
        return hints

    def _place_transfer(self, instruction: Instruction, hints: Hints) -> Hints:
        """Let halves of transfers whose other half is in another iteration make room."""
        if self.config.pipeline_parallelism_opt_level == "enable":
            if instruction.opcode in SEND_RECV:
                users = list(instruction.users)
                if len(users) == 1 and users[0].opcode not in SEND_RECV_DONE:
                    hints = hints._replace(force_delay=True)
            elif instruction.operands[0].opcode not in SEND_RECV:
                hints = hints._replace(force_early=True)
        is_pipelined = frontend_attribute(instruction, PIPELINE) is not None
        if self.config.enable_pipelined_p2p and instruction.opcode is Opcode.RECV and is_pipelined:
            hints = hints._replace(force_early=True)
        return hints
