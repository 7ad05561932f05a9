"""Decisions to try next, first those about the collectives that are waited for longest."""

from __future__ import annotations

from collections.abc import Iterator

from hloopt.analysis.cost.sizes import leaf_bytes
from hloopt.diagnostics import counted
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import COLLECTIVES, Opcode
from hloopt.passes.async_ops.host_transfers import is_transfer
from hloopt.passes.overlap.decisions import Decision, Options
from hloopt.passes.overlap.judging import Judged
from hloopt.passes.overlap.options import Family
from hloopt.passes.overlap.sites import comes_from_host, moved

_GATHERING = (Opcode.ALL_GATHER, Opcode.COLLECTIVE_PERMUTE, Opcode.ALL_TO_ALL)
_REDUCING = (Opcode.ALL_REDUCE, Opcode.REDUCE_SCATTER)
_COMBINED = {
    Opcode.ALL_GATHER: "gpu-all-gather-combiner",
    Opcode.ALL_REDUCE: "gpu-all-reduce-combiner",
    Opcode.REDUCE_SCATTER: "gpu-reduce-scatter-combiner",
}
_THRESHOLDS = tuple(mebibytes << 20 for mebibytes in (32, 128, 512, 1 << 20))
_MOST_COMBINED = 256
_ORDERS = "hlo-memory-scheduler"
ALGORITHMS = ("list", "dfs", "post-order", "bfs")
"""The algorithms of the memory scheduler, whose orders the other scheduler begins with."""
_PARTS = ((2, None), (4, None), (2, 1), (4, 1))
"""Numbers of parts of a collective, and how many dots in a row work on them."""


def proposals(judged: Judged, families: tuple[Family, ...]) -> Iterator[tuple[Decision, ...]]:
    """Decisions to make together, from the most promising on. O(instructions)."""
    sites = _sites(judged)
    transfers = _transfers(judged)
    changes = (
        *_on_all(sites),
        *_on_transfers(transfers, judged),
        *_together_in_parts(sites),
        *_on_each(sites, judged),
        *_on_loops(judged.draft.module),
        *_alone_in_parts(sites, judged),
        *(_begun_otherwise(judged) if sites or transfers else ()),
    )
    for decisions in changes:
        wanted = tuple(each for each in decisions if each.family in families)
        if wanted:
            yield wanted


def _sites(judged: Judged) -> list[Instruction]:
    """The collectives, by waiting and then by size."""
    found = [
        instruction
        for instruction in judged.draft.module.instructions()
        if instruction.opcode in COLLECTIVES and not instruction.parent.is_asynchronous
    ]
    return sorted(found, key=lambda i: (-judged.waits.get(i.name, 0.0), -leaf_bytes(i.shape)))


def _transfers(judged: Judged) -> list[Instruction]:
    """The transfers to and from the host in loops, by waiting."""
    found = [
        instruction
        for instruction in judged.draft.module.instructions()
        if is_transfer(instruction) and _loop(instruction) is not None
    ]
    return sorted(found, key=lambda transfer: -_wait(transfer, judged))


def _wait(site: Instruction, judged: Judged) -> float:
    return judged.waits.get(moved(site).name, 0.0)


def _on_transfers(transfers: list[Instruction], judged: Judged) -> Iterator[tuple[Decision, ...]]:
    """Decisions about transfers: all, all in one direction, and those that are waited for."""
    backward = [transfer for transfer in transfers if comes_from_host(transfer)]
    forward = [transfer for transfer in transfers if not comes_from_host(transfer)]
    ways = [_transferred(several) for several in (backward, forward) if several]
    if len(ways) > 1:
        yield tuple(ways)
    for several, way in zip((each for each in (backward, forward) if each), ways, strict=True):
        yield (way,)
        if len(several) > 1:
            for transfer in several:
                if _wait(transfer, judged):
                    yield (_transferred([transfer]),)


def _transferred(transfers: list[Instruction]) -> Decision:
    """The decision to begin transfers a trip before or, to the host, to end them a trip after."""
    names = tuple(moved(transfer).name for transfer in transfers)
    opcodes = tuple(dict.fromkeys(moved(transfer).opcode for transfer in transfers))
    direction = "backward" if comes_from_host(transfers[0]) else "forward"
    options: Options = (
        ("pipelining_direction", direction),
        ("names", names),
        ("should_process", opcodes),
    )
    shown = listed(tuple(transfer.name for transfer in transfers))
    return Decision("pipeline", "collective-pipeliner", options, f"pipeline {shown} {direction}")


def _on_all(sites: list[Instruction]) -> Iterator[tuple[Decision, ...]]:
    """Decisions about all collectives of a kind."""
    in_loops = [site for site in sites if _loop(site) is not None]
    for opcodes, direction in ((_GATHERING, "backward"), (_REDUCING, "forward")):
        names = tuple(site.name for site in in_loops if site.opcode in opcodes)
        if len(names) > 1:
            yield (_pipelined(names, direction),)
    for opcode, pass_name in _COMBINED.items():
        if sum(site.opcode is opcode for site in sites) > 1:
            for threshold in _THRESHOLDS:
                yield (_combined(opcode, pass_name, threshold),)
    apart = tuple(site.name for site in sites if len(site.operands) > 1)
    if len(apart) > 1:
        yield (_separated(apart),)


def _together_in_parts(sites: list[Instruction]) -> Iterator[tuple[Decision, ...]]:
    """Decisions to cut the collectives of a kind in a computation."""
    found: dict[tuple[Computation, Opcode], list[str]] = {}
    for site in sites:
        if len(site.operands) == 1:
            found.setdefault((site.parent, site.opcode), []).append(site.name)
    for names in found.values():
        for parts, reach in _PARTS:
            if len(names) > 1 and reach is None:
                yield (_split(tuple(names), parts, reach),)


def _alone_in_parts(sites: list[Instruction], judged: Judged) -> Iterator[tuple[Decision, ...]]:
    """Decisions to cut single collectives that are waited for."""
    for site in sites:
        if len(site.operands) == 1 and judged.waits.get(site.name):
            for parts, reach in _PARTS:
                yield (_split((site.name,), parts, reach),)


def _on_each(sites: list[Instruction], judged: Judged) -> Iterator[tuple[Decision, ...]]:
    for site in sites:
        if not judged.waits.get(site.name):
            return
        yield from _on(site)


def _on(site: Instruction) -> Iterator[tuple[Decision, ...]]:
    names = (site.name,)
    if _loop(site) is not None:
        if site.opcode in _GATHERING:
            yield (_pipelined(names, "backward"),)
            yield (_pipelined(names, "backward", variant=True),)
        else:
            yield (_pipelined(names, "forward"),)
            if site.opcode in _REDUCING:
                yield (_pipelined(names, "forward-sink"),)
    if len(site.operands) > 1:
        yield (_separated(names),)
    if site.opcode is Opcode.ALL_REDUCE:
        yield (_scattered(names),)


def _on_loops(module: Module) -> Iterator[tuple[Decision, ...]]:
    for loop in module.instructions(Opcode.WHILE):
        if any(each.opcode in COLLECTIVES for each in loop.called[0].instructions):
            what = f"make two trips of %{loop.name} in one"
            options = (("loops", (loop.name,)), ("unroll_strategy", "double-buffer"))
            yield (Decision("unroll", "double-buffer-loop-unrolling", options, what),)


def _begun_otherwise(judged: Judged) -> Iterator[tuple[Decision, ...]]:
    """Decisions to begin with another order, where that is not decided yet."""
    if not any(decision.pass_name == _ORDERS for decision in judged.decisions):
        for algorithm in ALGORITHMS:
            yield (begun_with(algorithm, "order"),)


def begun_with(algorithm: str, family: Family) -> Decision:
    """The decision to begin with the order of an algorithm of the memory scheduler."""
    what = f"begin with the order of the memory scheduler {algorithm}"
    return Decision(family, _ORDERS, (("algorithm", algorithm),), what, is_late=True)


def _loop(site: Instruction) -> Instruction | None:
    return next((c for c in site.parent.callers if c.opcode is Opcode.WHILE), None)


def _pipelined(names: tuple[str, ...], direction: str, *, variant: bool = False) -> Decision:
    options: list[tuple[str, object]] = [
        ("pipelining_direction", direction),
        ("names", names),
        ("should_process", tuple(COLLECTIVES)),
    ]
    if variant:
        options.append(("should_allow_loop_variant_parameter_in_chain", True))
    return Decision(
        "pipeline", "collective-pipeliner", tuple(options), f"pipeline {listed(names)} {direction}"
    )


def _combined(opcode: Opcode, pass_name: str, threshold: int) -> Decision:
    options = (
        ("combine_threshold_in_bytes", threshold),
        ("combine_threshold_count", _MOST_COMBINED),
    )
    what = f"combine {opcode}s up to {threshold >> 20:,} MiB"
    return Decision("combine", pass_name, options, what)


def _separated(names: tuple[str, ...]) -> Decision:
    options = (("names", names),)
    return Decision("separate", "collective-uncombiner", options, f"take {listed(names)} apart")


def _scattered(names: tuple[str, ...]) -> Decision:
    what = f"make {listed(names)} a reduce-scatter and an all-gather"
    return Decision("split", "all-reduce-to-reduce-scatter", (("names", names),), what)


def _split(names: tuple[str, ...], parts: int, reach: int | None) -> Decision:
    options = (("names", names), ("parts", parts), ("reach", reach))
    near = "" if reach is None else f" up to {counted(reach, 'dot')} away"
    beside = f"what is beside {'it' if len(names) == 1 else 'them'}{near}"
    what = f"make {counted(parts, 'part')} of {listed(names)} and {beside}"
    return Decision("split", "collective-splitter", options, what)


def listed(names: tuple[str, ...]) -> str:
    """The first three of some names, and how many more there are."""
    shown = ", ".join(f"%{name}" for name in names[:3])
    return f"{shown} and {len(names) - 3:,} more" if len(names) > 3 else shown
