"""Speed of light: times of a GPU and its network as XLA:GPU's SoL estimator tells them."""

from __future__ import annotations

from dataclasses import dataclass

from hloopt.analysis.async_operations import (
    OWN_DONES,
    OWN_STARTS,
    SEND_RECV,
    SEND_RECV_DONE,
    SYNC_COLLECTIVES,
    async_form,
    is_pair,
    wrapped,
)
from hloopt.analysis.latency.collective_tables import CollectiveTable
from hloopt.analysis.latency.collectives import CollectiveTimes
from hloopt.analysis.latency.fixed import GpuFixedModel
from hloopt.analysis.latency.kernels import KernelTimes
from hloopt.analysis.latency.matmul_tables import MatmulTable
from hloopt.analysis.latency.matmuls import MatmulTimes, matmul_of
from hloopt.analysis.latency.model import (
    ORDINARY_EDGE_TIME,
    LatencyModel,
    Origin,
    TableTime,
    TargetModel,
    Time,
    as_guess,
    stated_latency,
)
from hloopt.diagnostics import HloError
from hloopt.ir import Instruction, Module, Opcode
from hloopt.ir.attributes.backend_config import is_sync
from hloopt.ir.attributes.typed import fusion_kind_of
from hloopt.targets import Target, load_target, target_names

_ASYNC_STEP = Time(1.0, Origin.CONSTANT)
"""The time to launch an asynchronous collective, or to wait for its end, without the collective."""
_UNKNOWN_SHARE = 0.01
"""Of the fixed constants: what stands in for the times of instructions without a model."""
_KERNELS = ("kLoop", "kInput")
_MODELLED = frozenset(
    (
        *(Opcode.ALL_REDUCE, Opcode.ALL_REDUCE_START, Opcode.REDUCE_SCATTER, Opcode.ALL_GATHER),
        *(Opcode.ALL_GATHER_START, Opcode.ALL_TO_ALL, Opcode.COLLECTIVE_PERMUTE),
        Opcode.COLLECTIVE_PERMUTE_START,
    )
)
"""Collectives whose times are known."""
_COLLECTIVE_STEPS = frozenset((*OWN_STARTS, *OWN_DONES, *SEND_RECV, *SEND_RECV_DONE)) - {
    Opcode.COPY_START,
    Opcode.COPY_DONE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurements:
    """The tables of measured throughputs that are not those of the target, and their use."""

    collectives: CollectiveTable | None = None
    """The table of a user; None: that of XLA for the GPU, if any."""
    matmuls: MatmulTable | None = None
    """The table of a user; None: that of XLA for the GPU, if any."""
    smooth: bool = False
    """Whether times from tables are made monotone in size, which XLA's are not."""


class SpeedOfLightModel(TargetModel):
    """Times in microseconds.

    Matrix products and collectives within a node take what was measured, collectives between
    nodes what formulas say, loop and input fusions what a roofline says. For all else a hundredth
    of XLA's fixed constants stands in: such times are guesses.

    Raises HloError for a target without the figures it needs.
    """

    def __init__(
        self,
        target: Target,
        base: LatencyModel | None = None,
        *,
        schedule_send_recvs: bool = True,
        measurements: Measurements | None = None,
    ) -> None:
        gpu = target.gpu
        if gpu is None:
            raise HloError(
                f"cost model 'sol' knows too little of the target {target.name}",
                help=f"leave out cost_model, or say roofline; sol knows "
                f"{', '.join(known_targets())}, and targets with a section gpu: "
                "docs/cost_models.md",
            )
        self._base = GpuFixedModel() if base is None else base
        super().__init__(target)
        self._schedule_send_recvs = schedule_send_recvs
        self._kernels = KernelTimes(gpu, target)
        tables = Measurements() if measurements is None else measurements
        self._matmuls = MatmulTimes(target, tables.matmuls, smooth=tables.smooth)
        self._collectives = CollectiveTimes(
            *(gpu, target.memory_bandwidth, self._kernels.arithmetic, tables.collectives),
            smooth=tables.smooth,
        )

    def _node_time(self, instruction: Instruction) -> Time:
        """O(fused instructions)."""
        stated = stated_latency(instruction, self.cycles_per_microsecond)
        if stated is not None:
            return Time(stated, Origin.STATED)
        if self._is_sync_kernel(instruction):
            time = self.collective_time(instruction)
            if time is not None:
                return time
        if _is_collective_step(instruction):
            return _ASYNC_STEP
        matmul = matmul_of(instruction)
        time = None if matmul is None else self._matmuls.of(matmul)
        if time is not None:
            return time
        if instruction.opcode is Opcode.FUSION and fusion_kind_of(instruction) in _KERNELS:
            return Time(self._kernels.of(instruction).microseconds, Origin.ROOFLINE)
        base = self._base.node_time(instruction)
        if base.origin is not Origin.CONSTANT:
            return base
        return Time(base.cycles * _UNKNOWN_SHARE, Origin.GUESS)

    def edge_time(self, source: Instruction, target: Instruction) -> Time:
        """O(1) but for the first collective of a kind, which takes O(devices)."""
        opcode = source.opcode
        if opcode in SEND_RECV and not self._schedule_send_recvs:
            return ORDINARY_EDGE_TIME
        if self._is_sync_kernel(source):
            return ORDINARY_EDGE_TIME
        is_operation = is_pair(source, target)
        if is_operation or opcode in _MODELLED:
            time = self.collective_time(source)
            if time is not None:
                return time
        base = self._base.edge_time(source, target)
        return Time(base.cycles, Origin.GUESS) if is_operation else base

    def whole_time(self, collective: Instruction) -> Time:
        """O(1) but for the first collective of a kind, which takes O(devices)."""
        stated = stated_latency(collective, self.cycles_per_microsecond)
        if stated is not None:
            return Time(stated, Origin.STATED)
        time = self.collective_time(collective)
        return as_guess(self._base.whole_time(collective)) if time is None else time

    def by_table(self, instruction: Instruction) -> TableTime | None:
        """The measured part of `node_time` of products, of `collective_time` of collectives."""
        inner = wrapped(instruction) if instruction.opcode is Opcode.ASYNC_START else instruction
        if inner.opcode in _MODELLED:
            return self._collectives.by_table(inner)
        matmul = matmul_of(instruction)
        return None if matmul is None else self._matmuls.by_table(matmul)

    def collective_time(self, start: Instruction) -> Time | None:
        """From start to end of a collective, or of what an async-start wraps; None if unknown."""
        inner = wrapped(start) if start.opcode is Opcode.ASYNC_START else start
        return self._collectives.of(inner) if inner.opcode in _MODELLED else None

    def _is_sync_kernel(self, instruction: Instruction) -> bool:
        """Whether an instruction is an all-reduce-start that is one kernel, done when it ends."""
        if instruction.opcode is not Opcode.ALL_REDUCE_START:
            return False
        return self._collectives.is_one_kernel(instruction) and is_sync(instruction)


def unsupported_by_xla(module: Module) -> str | None:
    """The reason why XLA:GPU would schedule a module with fixed constants instead; None if it would
    not.

    O(instructions).
    """
    for instruction in module.instructions():
        opcode = instruction.opcode
        if opcode in _COLLECTIVES and opcode not in _MODELLED:
            return f"it has a {opcode.value}, %{instruction.name}"
        if _HOST in instruction.attributes.get("backend_config", ""):
            return f"%{instruction.name} runs on the host"
    return None


_COLLECTIVES = frozenset((*SYNC_COLLECTIVES, *OWN_STARTS)) - {Opcode.COPY_START}
_HOST = '"DEVICE_TYPE_HOST"'


def known_targets() -> list[str]:
    """The targets of the package that have what the model needs."""
    return [name for name in target_names() if load_target(name).gpu is not None]


def _is_collective_step(instruction: Instruction) -> bool:
    """Whether an instruction begins or ends an asynchronous collective, a send or a recv."""
    opcode = instruction.opcode
    if opcode in _COLLECTIVE_STEPS:
        return True
    if opcode in (Opcode.ASYNC_START, Opcode.ASYNC_DONE):
        return async_form(instruction).inner in SYNC_COLLECTIVES
    return False
