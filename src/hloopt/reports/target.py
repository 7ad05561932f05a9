"""Targets as plain data and on the terminal: figures, units and where they are from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from hloopt.diagnostics import counted
from hloopt.reports.console.footnotes import print_footnote
from hloopt.reports.console.units import human_bytes, human_count, human_rate
from hloopt.targets import Target
from hloopt.targets.description import native_type_parts

if TYPE_CHECKING:
    from rich.console import Console

_COMPARED = "bf16"
"""The type whose peak rate a list shows; without one the highest rate there is."""


def target_to_json(target: Target) -> dict[str, Any]:
    """All figures: flops per second, bytes, bytes per second, and as units of a GPU say."""
    return {
        "name": target.name,
        "title": target.title,
        "matrix_flops_per_second": dict(target.matrix),
        "vector_flops_per_second": dict(target.vector),
        "memory_bytes": target.memory_size,
        "memory_bytes_per_second": target.memory_bandwidth,
        "memory_spaces_bytes": dict(target.spaces),
        "memory_spaces_bytes_per_second": dict(target.space_bandwidths),
        "links": [
            {"name": link.name, "bytes_per_second": link.bandwidth, "source": link.source}
            for link in target.links
        ],
        "gpu": None if target.gpu is None else asdict(target.gpu),
        "cuda": None if target.cuda is None else asdict(target.cuda),
        "has_cost_model_sol": target.gpu is not None,
        "native_types": _native_types(target),
        "sources": list(target.sources),
    }


def _native_types(target: Target) -> dict[str, Any] | None:
    if target.native_types is None:
        return None
    types = target.native_types.types
    return {
        "source": target.native_types.source,
        "types": {name: native_type_parts(native) for name, native in types.items()},
    }


def render_targets(targets: Sequence[Target], console: Console) -> None:
    """Print a line of each."""

    from hloopt.reports.console.table import ReportTable

    table = ReportTable(gap=2)
    table.add_column("target", style="bold")
    for name in ("memory", "bandwidth", "peak"):
        table.add_column(name, justify="right")
    table.add_column("times")
    table.add_column("what it is", wraps=True)
    for target in targets:
        table.add_row(
            target.name,
            human_bytes(target.memory_size),
            human_rate(target.memory_bandwidth, "B/s"),
            _peak(target),
            "sol" if target.gpu else "",
            target.title,
        )
    console.print(table)
    notes = (
        f"peak: dense matrix products in {_COMPARED}, in flop/s",
        "times: `schedule` and `cost --latency` have a cost model of these (sol); others need a "
        "--profile or --cost-table",
        "`hloopt targets NAME` shows all figures and where they are from; --target also takes a "
        "file *.yaml",
    )
    for note in notes:
        print_footnote(console, note)


def render_target(target: Target, console: Console) -> None:
    """Print all figures of one, with their sources."""
    from rich.text import Text

    from hloopt.reports.console.table import ReportTable

    console.print(Text.assemble((target.name, "bold"), f": {target.title}"))
    console.print()
    table = ReportTable(heads=False)
    table.add_column("what", style="bold")
    table.add_column("figure", justify="right", stays=True)
    for name, figure in _figures(target):
        table.add_row(name, figure)
    console.print(table)
    console.print()
    for source in _sources(target):
        print_footnote(console, source)


def _figures(target: Target) -> Iterator[tuple[str, str]]:
    for kind, rates in (("matrix", target.matrix), ("vector", target.vector)):
        for name, rate in rates.items():
            yield f"{kind} {name}", human_rate(rate, "flop/s")
    yield "memory", human_bytes(target.memory_size)
    yield "memory bandwidth", human_rate(target.memory_bandwidth, "B/s")
    for name, size in target.spaces.items():
        yield f"memory {name}", human_bytes(size)
    for name, rate in target.space_bandwidths.items():
        yield f"bandwidth {name}", human_rate(rate, "B/s")
    for link in target.links:
        yield f"link {link.name}", human_rate(link.bandwidth, "B/s")
    if target.native_types is not None:
        for name, native in target.native_types.types.items():
            yield f"native {name}", counted(len(native.opcodes | native.applied), "operation")
    if target.cuda is not None:
        yield "compute capability", target.cuda.compute_capability
    gpu = target.gpu
    if gpu is None:
        return
    network = gpu.network
    yield "cores", f"{gpu.cores:,}"
    yield "units of a core, for f32", f"{gpu.units_per_core:,}"
    yield "clock", human_rate(gpu.clock, "Hz")
    yield "level-2 cache", human_bytes(gpu.l2_size)
    yield "tables of measurements", gpu.tables or "none"
    yield "all-reduce in a kernel", "a formula" if gpu.kernel_formula else "as measured of others"
    yield "devices of a node", f"{network.node_size:,}"
    if network.partition_size != network.node_size:
        yield "devices of a partition", f"{network.partition_size:,}"
    yield "NVLink lanes", f"{network.lanes:,}"
    yield "one lane, one way", human_rate(network.lane_bandwidth, "B/s")
    yield "network card", human_rate(network.card_bandwidth, "B/s")
    yield "collective: launch", f"{network.launch:g} us"
    yield "collective: round trip", f"{network.round_trip:g} us"
    yield "collective: chunk", f"{human_bytes(network.chunk_size)} in {network.chunk_time:g} us"
    yield "collective: barrier", f"{network.barrier:g} us"


def _sources(target: Target) -> Iterator[str]:
    yield from target.sources
    if not target.vector:
        yield "vector: no figure is published"
    for link in target.links:
        yield f"link {link.name}: {link.source}"
    if target.gpu is None:
        yield "no cost model `sol`, which needs a section gpu: times of schedules are by `roofline`"
    else:
        yield f"cores, caches and collectives: {target.gpu.source}"
    if target.native_types is None:
        yield "native types: not known, so that passes over precision need `float_support`"
    else:
        yield f"native types: {target.native_types.source}"


def _peak(target: Target) -> str:
    rate = target.matrix_rate(_COMPARED)
    return "" if rate is None else human_count(rate)
