"""Settings of runs: of one module, or of two that are compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from hloopt.diagnostics import counted
from hloopt.equivalence.placement import Placement, place
from hloopt.equivalence.roles import roles_of
from hloopt.equivalence.room import bytes_held
from hloopt.interpreter.array_plans import ArrayPlan
from hloopt.interpreter.effects import RunRecord
from hloopt.interpreter.errors import cannot_run
from hloopt.interpreter.evaluation import Device, Observer
from hloopt.interpreter.host import Host
from hloopt.interpreter.inputs import Inputs
from hloopt.interpreter.limits import MORE_MEMORY, Deadline, Limits
from hloopt.interpreter.machine import run_module
from hloopt.interpreter.rounding_noise import RoundingNoise
from hloopt.interpreter.values import Value, bytes_of
from hloopt.ir.module import Module
from hloopt.ir.shapes.shape import Shape

Engine: TypeAlias = Callable[[Module, Sequence[Sequence[Value]], Sequence[Device]], list[Value]]
"""Runs a module on arguments by device, and gives the value of the entry's root by device."""


MOST_STEPS = 100_000_000
"""The place to stop, unless somebody says otherwise: minutes."""
MOST_MEMORY = 8 << 30


class Tolerance(NamedTuple):
    """The distance that floats may have: `absolute` plus `relative` times what the first module
    gave."""

    relative: float = 0.0
    absolute: float = 0.0


class RunSettings(NamedTuple):
    """Settings of runs of modules that are compared."""

    seeds: int = 3
    """On how many inputs, of the seeds 0, 1, 2, …; on one where all inputs are given."""
    specials: bool = True
    """Whether modules also run on inputs with special values."""
    inputs: Inputs = Inputs()
    counts: tuple[int, int] | None = None
    """Replicas and partitions; None for as many as the module is for."""
    steps: int | None = MOST_STEPS
    memory: int | None = MOST_MEMORY
    """Bytes that values may take at one time."""
    deadline: Deadline | None = None
    """For all runs together."""
    on_steps: Callable[[int], None] | None = None
    engine: Engine | None = None
    """None for the interpreter."""
    stand_ins: bool = True
    """Whether to make up what nobody knows: see `machine.run_module`."""
    is_global: bool = False
    """Whether the first module computes for all devices and the second one is partitioned, as
    somebody says who knows; else the texts tell."""
    tolerance: Tolerance | None = None
    """None: by type, and by what rounding may do."""

    def place(self, module: Module) -> Placement:
        """The devices that a module runs on. Raises RunError."""
        return place(module, self.counts)

    def arguments(
        self,
        placement: Placement,
        seed: int,
        plans: Sequence[ArrayPlan | None],
        beside: int = 0,
    ) -> list[list[Value]]:
        """Values for the entry's parameters, by device, `beside` bytes that are taken already.
        Raises RunError."""
        devices = placement.devices
        self._check_size(placement.module, len(devices), beside)
        return self.inputs.by_device(placement.module.entry, devices, seed, plans)

    def run_made_up(
        self, placement: Placement, seed: int, observer: Observer | None = None
    ) -> list[Value]:
        """The same as `run`, on inputs for one module alone. Raises RunError."""
        plans = placement.plans(roles_of(placement.program))
        arguments = self.arguments(placement, seed, plans)
        return self.run(placement, arguments, observer, host=self.host(seed))

    def host(self, seed: int) -> Host:
        """The host that feeds a program which runs on the inputs of a seed."""
        return Host(self.inputs, seed)

    def run(
        self,
        placement: Placement,
        arguments: Sequence[Sequence[Value]],
        observer: Observer | None = None,
        record: RunRecord | None = None,
        *,
        host: Host,
        beside: int = 0,
    ) -> list[Value]:
        """The value of the entry's root on each device. Raises RunError.

        Memory is for the arguments and `beside` bytes of other runs as well. `observer` is told the
        values of all instructions, and `record` filled, where the engine is the interpreter.
        """
        if self.engine is not None:
            return self.engine(placement.program, arguments, placement.devices)
        beside += bytes_held(map(tuple, arguments))
        return self.interpret(
            placement, arguments, host, observer=observer, record=record, beside=beside
        )

    def interpret(
        self,
        placement: Placement,
        arguments: Sequence[Sequence[Value]],
        host: Host,
        *,
        observer: Observer | None = None,
        record: RunRecord | None = None,
        noise: RoundingNoise | None = None,
        beside: int = 0,
    ) -> list[Value]:
        """The same by the interpreter, whatever the engine; with `noise` in what is rounded."""
        return run_module(
            placement.program,
            arguments,
            devices=placement.devices,
            limits=Limits(self.steps, self.memory, self.on_steps, self.deadline, beside),
            observer=observer,
            stand_ins=self.stand_ins,
            noise=noise,
            record=record,
            feed=host.feed,
        )

    def _check_size(self, module: Module, device_count: int, beside: int) -> None:
        """Raise RunError before arguments are made that do not fit."""
        sizes = {parameter: bytes_of(parameter.shape) for parameter in module.entry.parameters}
        total = sum(sizes.values()) * device_count + beside
        others = f", {beside:,} of these for values of other runs" if beside else ""
        if self.memory is not None and total > self.memory:
            raise cannot_run(
                max(sizes, key=sizes.__getitem__),
                f"the inputs would take {counted(total, 'byte')}{others}, "
                f"the limit is {self.memory:,}",
                "HLO503",
                MORE_MEMORY,
            )
        if self.memory is None or self.inputs.given:
            return
        made = {p: max(map(_elements, p.shape.leaves()), default=0) * _MAKING for p in sizes}
        largest = max(made, key=made.__getitem__, default=None)
        if largest is not None and total + made[largest] > self.memory:
            raise cannot_run(
                largest,
                f"the inputs would take {counted(total + made[largest], 'byte')} while they are "
                f"made{others}, the limit is {self.memory:,}",
                "HLO503",
                MORE_MEMORY,
            )


_MAKING = 16
"""Bytes that it takes to make an element, beside its own."""


def _elements(leaf: Shape) -> int:
    return leaf.element_count() if leaf.is_array and not leaf.is_unbounded_dynamic else 0
