"""Kinds of differences from XLA:CPU, recognized from the module and its run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from agreement_lib.origins import never_ends, origins
from agreement_lib.traits import TRAITS
from hloopt.diagnostics import HloError
from hloopt.interpreter.effects import RunRecord
from hloopt.interpreter.evaluation import Device
from hloopt.interpreter.limits import Limits
from hloopt.interpreter.machine import run_module
from hloopt.interpreter.rounding_noise import RoundingNoise
from hloopt.interpreter.values import Value, arrays_of
from hloopt.ir import Instruction, Module, Opcode
from hloopt.ir.custom_targets import MANUAL_BOUNDARIES, custom_call_target
from hloopt.ir.devices.collective_devices import device_groups
from hloopt.ir.devices.device_counts import device_counts
from hloopt.verifier import ANY_TARGET, verify_module

ROUNDING = "rounding: a unit in the last place of each operation moves the output as far"
INVALID = "the module is invalid"
MADE_UP = "values that are made up, such as random numbers or unknown custom calls"
MORE_DEVICES = "shapes of a collective ask for more devices than the module is for"
MANUAL = "a manual region, whose ends the SPMD partitioner takes away"
ENDLESS = "an endless loop, which XLA removes because its result is unused or never changes"

_NOISE_SEEDS = (1, 2, 3)
_NOISE_FACTOR = 8
"""Noise is drawn at random; what XLA rounds otherwise may all go in one direction."""


class Difference(NamedTuple):
    """An output on one device that is not what XLA made."""

    device: int
    output: int
    """Which array of the root, in the order of its leaves."""
    ours: Any
    theirs: Any


class Rerun(NamedTuple):
    """A function that runs the module again on the inputs that differ."""

    module: Module
    arguments: Sequence[Sequence[Value]]
    devices: Sequence[Device]
    steps: int
    memory: int

    def run(self, **options: Any) -> list[Value]:
        return run_module(
            self.module,
            self.arguments,
            devices=self.devices,
            limits=Limits(steps=self.steps, memory=self.memory),
            stand_ins=True,
            **options,
        )


def reason_of_difference(rerun: Rerun, difference: Difference) -> str:
    """The kind of a difference; empty where it is none of those that are known."""
    if verify_module(rerun.module, ANY_TARGET):
        return INVALID
    sources = origins(rerun.module, difference.output)
    seen = _Seen(sources)
    record = RunRecord()
    try:
        rerun.run(observer=seen, record=record)
    except HloError:
        return ""
    if _lost_nan(difference):
        traits = [trait for trait in TRAITS if trait.only_nan]
    else:
        traits = [trait for trait in TRAITS if not trait.only_nan]
    for trait in traits:
        if trait.reason in seen.found:
            return trait.reason
    if any(instruction in sources for instruction in record.made_up.values()):
        return MADE_UP
    return ROUNDING if _may_be_rounding(rerun, difference) else ""


def reason_of_failure(module: Module, *, is_limit: bool) -> str:
    """The kind of a run that fails here alone; empty where it is none of those that are known."""
    if verify_module(module, ANY_TARGET):
        return INVALID
    if _is_for_more_devices(module):
        return MORE_DEVICES
    if any(custom_call_target(i) in MANUAL_BOUNDARIES for i in module.instructions()):
        return MANUAL
    if is_limit:
        used = {i for output in range(_outputs(module)) for i in origins(module, output)}
        for loop in module.instructions(Opcode.WHILE):
            if never_ends(loop) or loop not in used:
                return ENDLESS
    return ""


def _outputs(module: Module) -> int:
    return sum(not leaf.is_token for leaf in module.entry.root.shape.leaves())


def _is_for_more_devices(module: Module) -> bool:
    """Whether a collective's shapes ask for larger groups than the devices of the module give."""
    grid = device_counts(module)
    for instruction in module.instructions():
        if instruction.opcode not in (Opcode.REDUCE_SCATTER, Opcode.ALL_GATHER):
            continue
        counts = [
            next(iter(shape.leaves())).element_count()
            for shape in (instruction.operands[0].shape, instruction.shape)
        ]
        try:
            groups = device_groups(instruction, grid)
        except HloError:
            continue
        largest = max((len(group) for group in groups), default=0)
        if largest and min(counts) and max(counts) > min(counts) * largest:
            return True
    return False


class _Seen:
    """An observer that notes which traits hold for what an output depends on."""

    def __init__(self, sources: set[Instruction]) -> None:
        self.found: set[str] = set()
        self._sources = sources
        self._values: dict[tuple[Device, Instruction], Value] = {}

    def __call__(self, device: Device, instruction: Instruction, value: Value) -> None:
        self._values[device, instruction] = value
        if instruction not in self._sources:
            return
        for trait in TRAITS:
            if instruction.opcode in trait.opcodes and trait.reason not in self.found:
                keys = [(device, operand) for operand in instruction.operands]
                if all(key in self._values for key in keys) and trait.holds(
                    instruction, [self._values[key] for key in keys]
                ):
                    self.found.add(trait.reason)


def _lost_nan(difference: Difference) -> bool:
    """Whether something is NaN here and not there."""
    ours, theirs = (np.asarray(a) for a in difference[2:])
    if ours.dtype.kind in "iub" or ours.shape != theirs.shape:
        return False
    nan = [np.isnan(a.astype(np.complex128)) for a in (ours, theirs)]
    return bool((nan[0] & ~nan[1]).any())


def _may_be_rounding(rerun: Rerun, difference: Difference) -> bool:
    """Whether noise in the last place of each operation moves the output as far as XLA's is off."""
    ours, theirs = (np.asarray(a) for a in difference[2:])
    if ours.dtype.kind in "iub" or ours.shape != theirs.shape:
        return False
    off = _largest_gap(ours, theirs)
    moved = 0.0
    for seed in _NOISE_SEEDS:
        noisy = rerun.run(noise=RoundingNoise(seed))
        array = tuple(arrays_of(noisy[difference.device]))[difference.output]
        moved = max(moved, _largest_gap(ours, np.asarray(array)))
    return off <= _NOISE_FACTOR * moved


def _largest_gap(a: Any, b: Any) -> float:
    """The largest distance of two elements; infinite where one alone is not finite."""
    left, right = a.astype(np.complex128), b.astype(np.complex128)
    with np.errstate(all="ignore"):
        gaps = np.abs(left - right)
    same = (left == right) | (np.isnan(left) & np.isnan(right))
    gaps = np.where(same, 0.0, np.where(np.isfinite(gaps), gaps, np.inf))
    return float(gaps.max(initial=0.0))
