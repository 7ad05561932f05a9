"""Whether modules compute the same: they are run on the same inputs, and the outputs compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from hloopt.diagnostics import counted
from hloopt.interpreter.comparison import Difference, first_difference
from hloopt.interpreter.errors import RunError, cannot_run
from hloopt.interpreter.evaluation import Device, Observer
from hloopt.interpreter.inputs import Inputs
from hloopt.interpreter.limits import MORE_MEMORY, Limits
from hloopt.interpreter.machine import devices_of, run_module
from hloopt.interpreter.values import Value, bytes_of
from hloopt.ir.device_counts import device_counts
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.shape import Shape

Engine: TypeAlias = Callable[[Module, Sequence[Sequence[Value]], Sequence[Device]], list[Value]]
"""Runs a module on arguments by device, and gives the value of the entry's root by device."""


MOST_STEPS = 100_000_000
"""Where to stop, unless somebody says otherwise: minutes."""
MOST_MEMORY = 8 << 30


class RunSettings(NamedTuple):
    """How to run modules that are compared."""

    seeds: int = 3
    """On how many inputs, of the seeds 0, 1, 2, …"""
    inputs: Inputs = Inputs()
    counts: tuple[int, int] | None = None
    """Replicas and partitions; None for as many as the module is for."""
    steps: int | None = MOST_STEPS
    memory: int | None = MOST_MEMORY
    """Bytes that values may take at one time."""
    on_steps: Callable[[int], None] | None = None
    engine: Engine | None = None
    """None for the interpreter."""
    stand_ins: bool = True
    """Whether to make up what nobody knows: see `machine.run_module`."""

    def devices(self, module: Module) -> list[Device]:
        return devices_of(*(self.counts or device_counts(module)))

    def run(
        self,
        module: Module,
        devices: Sequence[Device],
        seed: int,
        observer: Observer | None = None,
    ) -> list[Value]:
        """The value of the entry's root on each device. Raises RunError.

        `observer` is told the values of all instructions, where the engine is the interpreter.
        """
        self._check_size(module, len(devices))
        arguments = [self.inputs.arguments(module.entry, device, seed) for device in devices]
        if self.engine is not None:
            return self.engine(module, arguments, devices)
        limits = Limits(self.steps, self.memory, self.on_steps)
        return run_module(
            module,
            arguments,
            devices=devices,
            limits=limits,
            observer=observer,
            stand_ins=self.stand_ins,
        )

    def _check_size(self, module: Module, device_count: int) -> None:
        """Raise RunError before arguments are made that do not fit."""
        sizes = {parameter: bytes_of(parameter.shape) for parameter in module.entry.parameters}
        total = sum(sizes.values()) * device_count
        if self.memory is not None and total > self.memory:
            raise cannot_run(
                max(sizes, key=sizes.__getitem__),
                f"the inputs would take {counted(total, 'byte')}, the limit is {self.memory:,}",
                "HLO503",
                MORE_MEMORY,
            )


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Two modules that do not compute the same, and the first place where it shows."""

    reason: str
    """In a sentence, the values included."""
    seed: int | None = None
    """None where the modules cannot be compared: their inputs or outputs have other shapes."""
    device: int | None = None
    difference: Difference | None = None


class Reference:
    """What a module computes, to compare others with. Keeps its outputs for every seed.

    Running it raises RunError; what is compared with it may fail, which is a mismatch.
    """

    def __init__(self, module: Module, settings: RunSettings) -> None:
        self.settings = settings
        self.devices = settings.devices(module)
        self._parameters = [parameter.shape for parameter in module.entry.parameters]
        self._result = module.entry.root.shape
        self._only_moves = only_moves_data(module)
        self._outputs = [settings.run(module, self.devices, seed) for seed in range(settings.seeds)]

    @property
    def output_count(self) -> int:
        return sum(leaf.is_array for leaf in self._result.leaves())

    def compare(self, module: Module) -> Mismatch | None:
        """The first place where `module` computes something else; None where there is none."""
        reason = self._other_signature(module)
        if reason:
            return Mismatch(reason)
        exact = self._only_moves and only_moves_data(module)
        for seed, expected in enumerate(self._outputs):
            try:
                found = self.settings.run(module, self.devices, seed)
            except RunError as error:
                return Mismatch(f"it cannot be run: {error.message}", seed)
            for device, left, right in zip(self.devices, expected, found, strict=True):
                difference = first_difference(left, right, exact=exact)
                if difference is not None:
                    where = f" on device {device.number}" if len(self.devices) > 1 else ""
                    return Mismatch(
                        f"{_describe(difference)}{where} (seed {seed})",
                        seed,
                        device.number,
                        difference,
                    )
        return None

    def _other_signature(self, module: Module) -> str:
        parameters = module.entry.parameters
        if len(parameters) != len(self._parameters):
            return f"{counted(len(self._parameters), 'parameter')} before, {len(parameters)} after"
        for parameter, shape in zip(parameters, self._parameters, strict=True):
            if not _same_values(parameter.shape, shape):
                number = parameter.parameter_number
                return f"parameter {number} was {shape.text}, it is {parameter.shape.text}"
        root = module.entry.root.shape
        if not _same_values(root, self._result):
            return f"the result was {self._result.text}, it is {root.text}"
        return ""


def _same_values(a: Shape, b: Shape) -> bool:
    """Whether two shapes have the same values: layouts and dynamic dimensions may differ."""
    ours, theirs = a.subshapes(), b.subshapes()
    return len(ours) == len(theirs) and all(
        i == j
        and x.is_tuple == y.is_tuple
        and x.element_type == y.element_type
        and x.dimensions == y.dimensions
        for (i, x), (j, y) in zip(ours, theirs, strict=True)
    )


def _describe(difference: Difference) -> str:
    output = "".join(f"{{{index}}}" for index in difference.leaf)
    if difference.index is None:
        return f"output{output} was {difference.left}, it is {difference.right}"
    place = f"{output}[{','.join(map(str, difference.index))}]" if difference.index else output
    return (
        f"output{place} was {difference.left}, it is {difference.right}; "
        f"{difference.count} of {difference.total} elements differ"
    )


_MOVES = frozenset(
    (
        *(Opcode.PARAMETER, Opcode.CONSTANT, Opcode.TUPLE, Opcode.GET_TUPLE_ELEMENT, Opcode.COPY),
        *(Opcode.BITCAST, Opcode.BROADCAST, Opcode.CONCATENATE, Opcode.DYNAMIC_RESHAPE),
        *(Opcode.DYNAMIC_SLICE, Opcode.DYNAMIC_UPDATE_SLICE, Opcode.GATHER, Opcode.PAD),
        *(Opcode.RESHAPE, Opcode.REVERSE, Opcode.SELECT, Opcode.SLICE, Opcode.TRANSPOSE),
        *(Opcode.ALL_GATHER, Opcode.ALL_TO_ALL, Opcode.COLLECTIVE_PERMUTE, Opcode.COPY_START),
        *(Opcode.COPY_DONE, Opcode.ALL_GATHER_START, Opcode.ALL_GATHER_DONE, Opcode.IOTA),
        *(Opcode.COLLECTIVE_PERMUTE_START, Opcode.COLLECTIVE_PERMUTE_DONE, Opcode.CLAMP),
        *(Opcode.COLLECTIVE_BROADCAST, Opcode.RAGGED_ALL_TO_ALL, Opcode.BITCAST_CONVERT),
        *(Opcode.OPT_BARRIER, Opcode.CALL, Opcode.WHILE, Opcode.CONDITIONAL, Opcode.FUSION),
        *(Opcode.ASYNC_START, Opcode.ASYNC_UPDATE, Opcode.ASYNC_DONE, Opcode.AFTER_ALL),
        *(Opcode.SORT, Opcode.MAXIMUM, Opcode.MINIMUM, Opcode.SEND, Opcode.SEND_DONE),
        *(Opcode.RECV, Opcode.RECV_DONE, Opcode.NEGATE, Opcode.ABS),
    )
)
"""Opcodes that give every float they take on as it is, or rounded in no way."""


def only_moves_data(module: Module) -> bool:
    """Whether no float of a module is ever rounded: its outputs can be compared bit by bit."""
    return all(
        instruction.opcode in _MOVES or not _has_floats(instruction)
        for instruction in module.instructions()
    )


def _has_floats(instruction: Instruction) -> bool:
    return any(
        leaf.element_type is not None and leaf.element_type.kind in ("float", "complex")
        for leaf in instruction.shape.leaves()
    )
