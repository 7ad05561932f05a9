"""Fit a target to the measured times of a module."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from hloopt.analysis.calibration.fitting import LEAST_SAMPLES, Fit, fit
from hloopt.analysis.calibration.samples import Kind, Name, Sample, samples_of
from hloopt.analysis.stage import Stage
from hloopt.diagnostics import HloError, counted
from hloopt.ir import Module
from hloopt.targets.target import Link, Target

_FOLDS = 5


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of the target that was fitted; in the target's units, of a launch microseconds."""

    name: Name
    before: float
    after: float
    samples: int
    """Instructions that it bounds."""


@dataclass(frozen=True, slots=True)
class Error:
    """The median error of the times of some instructions, as a share of what was measured."""

    name: Name | None
    """The figure that bounds them; None: all."""
    samples: int
    seconds: float
    """Measured."""
    before: float
    after: float
    held_out: float | None
    """The error by fits to four fifths of all samples, each without the instruction; None where
    there are too few samples to leave any out."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """A target with the figures that a profile shows, and how far its times are off."""

    target: Target
    figures: tuple[Figure, ...]
    errors: tuple[Error, ...]
    """Errors by figure, most time first, and of all in the end."""
    costs: int
    """Costs of the profile above 0."""
    named: int
    """Costs that instructions of the module have."""
    samples: int
    """Costs of instructions whose bytes and flops are known."""


def calibrate(
    module: Module, target: Target, costs: Mapping[str, float], source: str
) -> Calibration:
    """Fit the figures by which the cost model `roofline` reckons to measured times.

    `costs` are microseconds by the names of instructions, and `source` says where they are from.
    A figure that bounds less than three measured instructions stays. Raises HloError for a module
    before fusion, and where no figure can be fitted. O(instructions · log instructions).
    """
    if Stage.of(module).fused.holds is False:
        raise HloError(
            f"{module.name} is not fused: a profile has the times of kernels",
            help="give the text after optimizations, the one that ran",
        )
    costs = {name: cost for name, cost in costs.items() if cost > 0}
    named = {instruction.name for instruction in module.instructions()} & costs.keys()
    samples = list(samples_of(module, target, costs))
    found = fit(samples)
    bounds = _by_bound(found, samples)
    figures = tuple(
        _figure(target, name, found, len(bound))
        for name, bound in bounds.items()
        if len(bound) >= LEAST_SAMPLES
    )
    if not figures:
        raise HloError(
            f"{source} has times of {counted(len(samples), 'instruction')} of {module.name} whose "
            f"bytes or flops are known: no figure bounds {LEAST_SAMPLES} of them",
            help="take a profile of this very module, after optimizations; names tell which "
            "instruction a cost is of",
        )
    if found.launch is not None:
        launched = sum(1 for sample in samples if sample.launch)
        before = next(sample.launch for sample in samples if sample.launch)
        figures += (Figure(Name(Kind.LAUNCH), before * 1e6, found.launch * 1e6, launched),)
    held_out = _held_out(samples)
    groups = sorted(bounds.items(), key=lambda group: -sum(s.measured for s in group[1]))
    errors = [_error(name, group, found, held_out) for name, group in groups]
    return Calibration(
        _calibrated(target, figures, source),
        figures,
        (*errors, _error(None, samples, found, held_out)),
        len(costs),
        len(named),
        len(samples),
    )


def _by_bound(found: Fit, samples: Iterable[Sample]) -> dict[Name, list[Sample]]:
    bounds: dict[Name, list[Sample]] = {}
    for sample in samples:
        bounds.setdefault(found.bound(sample).figure, []).append(sample)
    return bounds


# -- errors ---------------------------------------------------------------------------------------


def _held_out(samples: Sequence[Sample]) -> dict[Sample, float]:
    """The time of each sample by a fit to the others, but a fifth; none where they are few."""
    if len(samples) < _FOLDS * LEAST_SAMPLES:
        return {}
    times: dict[Sample, float] = {}
    for fold in range(_FOLDS):
        found = fit([sample for i, sample in enumerate(samples) if i % _FOLDS != fold])
        times.update((sample, found.time(sample)) for sample in samples[fold::_FOLDS])
    return times


def _error(
    name: Name | None, samples: Sequence[Sample], found: Fit, held_out: Mapping[Sample, float]
) -> Error:
    return Error(
        name,
        len(samples),
        sum(sample.measured for sample in samples),
        median(_off(sample.stated, sample) for sample in samples),
        median(_off(found.time(sample), sample) for sample in samples),
        median(_off(held_out[sample], sample) for sample in samples) if held_out else None,
    )


def _off(time: float, sample: Sample) -> float:
    return abs(time / sample.measured - 1)


# -- the target -----------------------------------------------------------------------------------


def _figure(target: Target, name: Name, found: Fit, samples: int) -> Figure:
    before = _value(target, name)
    return Figure(name, before, before / found.slowdowns.get(name, 1.0), samples)


def _value(target: Target, name: Name) -> float:
    match name.kind:
        case Kind.MEMORY:
            return target.memory_bandwidth
        case Kind.MATRIX:
            return target.matrix[name.of]
        case Kind.VECTOR:
            return target.vector[name.of]
        case Kind.LINK:
            return next(link.bandwidth for link in target.links if link.name == name.of)
    assert target.gpu is not None  # else it has no such figures
    network = target.gpu.network
    return network.lane_bandwidth if name.kind is Kind.NVLINK else network.card_bandwidth


def _calibrated(target: Target, figures: Iterable[Figure], source: str) -> Target:
    """The target with other figures, whose sources say so."""
    after = {figure.name: figure.after for figure in figures}
    note = f"; fitted to {source}"
    matrix, vector = (
        {name: after.get(Name(kind, name), rate) for name, rate in rates.items()}
        for kind, rates in ((Kind.MATRIX, target.matrix), (Kind.VECTOR, target.vector))
    )
    fitted = {name.kind for name in after}
    links = tuple(
        Link(link.name, after[name], link.source + note)
        if (name := Name(Kind.LINK, link.name)) in after
        else link
        for link in target.links
    )
    gpu = target.gpu
    if gpu is not None and fitted & {Kind.NVLINK, Kind.CARD, Kind.LAUNCH}:
        network = replace(
            gpu.network,
            lane_bandwidth=after.get(Name(Kind.NVLINK), gpu.network.lane_bandwidth),
            card_bandwidth=after.get(Name(Kind.CARD), gpu.network.card_bandwidth),
            launch=after.get(Name(Kind.LAUNCH), gpu.network.launch),
        )
        gpu = replace(gpu, network=network, source=gpu.source + note)
    return replace(
        target,
        title=f"{target.title}, calibrated",
        matrix=matrix,
        vector=vector,
        memory_bandwidth=after.get(Name(Kind.MEMORY), target.memory_bandwidth),
        links=links,
        sources=tuple(
            text + note if text.partition(":")[0] in fitted else text for text in target.sources
        ),
        gpu=gpu,
    )
