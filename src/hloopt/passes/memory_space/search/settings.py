"""Settings of the rules that a search varies, within what the options allow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import Any

from hloopt.memory_space.options.options import MemorySpaceOptions

Settings = Mapping[str, Any]
"""Values by the name of an option; those of the picker have its prefix."""

_PICKER = "prefetch_interval_picker."
_VALUES: Mapping[str, tuple[float, ...]] = {
    f"{_PICKER}preferred_overlap_to_async_copy_ratio": (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0),
    f"{_PICKER}min_overlap_to_async_copy_ratio": (0.0, 1.0, 2.0, 4.0, 8.0),
    f"{_PICKER}max_overlap_to_mem_size_async_copy_ratio": (2.0, 5.0, 10.0, 30.0, 100.0, 1000.0),
    f"{_PICKER}min_overlap": (1, 2, 4, 8),
    f"{_PICKER}max_overlap": (5, 10, 20, 50, 200),
    "max_outstanding_prefetches": (0, 1, 2, 4, 8, 16, 32),
    "max_outstanding_evictions": (0, 1, 2, 4, 8, 16, 32),
    "inefficient_use_to_copy_ratio": (0.0, 1.0, 2.0, 3.0, 5.0, 10.0),
}
_LIMITS = ("max_outstanding_prefetches", "max_outstanding_evictions")
_BY_COUNT = (f"{_PICKER}min_overlap", f"{_PICKER}max_overlap")

NO_CHANGE: Settings = {}
EFFICIENT: Settings = {"inefficient_use_to_copy_ratio": 2.0}
"""Give up what is copied for too little."""
WITHOUT_COPIES: Settings = dict.fromkeys(_LIMITS, 0)
EARLY: Settings = {
    f"{_PICKER}preferred_overlap_to_async_copy_ratio": 16.0,
    f"{_PICKER}max_overlap_to_mem_size_async_copy_ratio": 1000.0,
    "inefficient_use_to_copy_ratio": 2.0,
}
"""Prefetch long before the use: instructions take less time than without alternate memory."""
EARLY_FEW: Settings = {
    f"{_PICKER}preferred_overlap_to_async_copy_ratio": 16.0,
    f"{_PICKER}min_overlap_to_async_copy_ratio": 4.0,
    f"{_PICKER}max_overlap_to_mem_size_async_copy_ratio": 1000.0,
    "max_outstanding_prefetches": 2,
}


def with_settings(options: MemorySpaceOptions, settings: Settings) -> MemorySpaceOptions:
    """Options with these values; none of a limit on copies is above that of the options."""
    own = {name: value for name, value in settings.items() if not name.startswith(_PICKER)}
    for name in _LIMITS:
        most = getattr(options, name)
        if name in own and most >= 0:
            own[name] = min(own[name], most)
    picker = replace(
        options.prefetch_interval_picker,
        **{
            name.removeprefix(_PICKER): value
            for name, value in settings.items()
            if name.startswith(_PICKER)
        },
    )
    return replace(options, prefetch_interval_picker=picker, **own)


def varied(options: MemorySpaceOptions, settings: Settings, random: Random) -> Settings:
    """Settings of which one or two are others."""
    by_count = options.prefetch_interval_picker.kind == "instruction-count"
    names = [
        name for name in _VALUES if not name.startswith(_PICKER) or (name in _BY_COUNT) == by_count
    ]
    if options.cost_model is None:
        names.remove("inefficient_use_to_copy_ratio")
    changed = dict(settings)
    for name in random.sample(names, random.choice((1, 1, 2))):
        changed[name] = random.choice([v for v in _VALUES[name] if v != changed.get(name)])
    return changed
