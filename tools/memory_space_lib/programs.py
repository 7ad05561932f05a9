"""Modules made ready for memory space assignment, and random ones with random options."""

from __future__ import annotations

from typing import Any

from differential_lib.generate import dice_of, program_text
from hloopt.ir import Module
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module, print_module

PREPARATION = ("flatten-call-graph", "hlo-memory-scheduler", "copy-insertion")
"""Passes that make a call graph flat, give a schedule, and keep values apart that share a place."""
_SIZES = (64, 256, 1024, 1 << 16)
_RATES = {
    "flops_per_second": 1e9,
    "transcendentals_per_second": 1e8,
    "default_mem_bandwidth_bytes_per_second": 1e8,
    "alternate_mem_read_bandwidth_bytes_per_second": 1e10,
    "alternate_mem_write_bandwidth_bytes_per_second": 1e10,
}


def prepare(module: Module) -> None:
    """Give a module what the pass needs, as far as it is missing."""
    for name in PREPARATION:
        if name != "hlo-memory-scheduler" or not module.is_scheduled:
            create_pass(name).run(module, PassContext())


def random_case(seed: int, number: int) -> tuple[str, dict[str, Any]]:
    """The n-th scheduled program of a seed and the options it is assigned with."""
    module = parse_module(program_text(seed, number))
    prepare(module)
    return print_module(module), random_options(seed, number)


def random_options(seed: int, number: int) -> dict[str, Any]:
    """Sizes from far too small to large enough; either picker; every second option now and then."""
    dice = dice_of(seed, number, "memory spaces")
    overlap = dice.choice((1, 2))
    options: dict[str, Any] = {
        "max_size_in_bytes": dice.choice(_SIZES),
        "alignment_in_bytes": dice.choice((1, 8, 32)),
        "prefetch_interval_picker": {
            "kind": "instruction-count",
            "min_overlap": overlap,
            "max_overlap": overlap + dice.choice((2, 8, 40)),
        },
        "sort": {"kind": "size"},
    }
    if dice.random() < 0.5:
        options["cost_model"] = _RATES
        options["sort"] = {"kind": "memory-boundedness"}
        options["prefetch_interval_picker"] = {"kind": "cost-analysis"}
    optional: dict[str, Any] = {
        "max_outstanding_prefetches": dice.choice((0, 1, 3)),
        "max_outstanding_evictions": dice.choice((0, 1, 3)),
        "enable_sync_copy_replacement": True,
        "enable_sync_slice_replacement": True,
        "async_slices_implemented": True,
        "enforce_prefetch_fifo_order": True,
        "max_retries": 3,
        "max_repacks": 5,
        "repacker": "best-fit",
        "enable_cross_program_prefetch": False,
        "enable_while_redundant_eviction_elimination": False,
        "always_spill_to_default_memory": True,
        "inefficient_use_to_copy_ratio": 1.0,
    }
    rare = ("always_spill_to_default_memory", "inefficient_use_to_copy_ratio")
    for name, value in optional.items():
        if dice.random() < (0.1 if name in rare else 0.4):
            options[name] = value
    return options
