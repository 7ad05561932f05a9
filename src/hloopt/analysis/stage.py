"""The stage of compilation a module is at, as far as its text tells.

    stage = Stage.of(module)
    stage.partitioned.holds     # True, False, or None where the text does not tell
    stage.partitioned.evidence  # "%Sharding.3 is a custom call to Sharding, which …"

Models of memory and time are for one stage of compilation. Reports ask here whether a module is
at that stage before they give a verdict.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

from hloopt.analysis.call_graph import CallGraph
from hloopt.analysis.in_place import InPlace
from hloopt.diagnostics import HloError
from hloopt.ir import Computation, Instruction, Module, Opcode
from hloopt.ir.attributes.values.sharding_text import canonical_sharding
from hloopt.ir.custom_targets import custom_call_target
from hloopt.ir.devices.device_counts import device_counts
from hloopt.ir.opcode import (
    COLLECTIVES,
    ELEMENTWISE_BINARY,
    ELEMENTWISE_UNARY,
    EMBEDDED_CALLERS,
)


class Fact(NamedTuple):
    """The answer to one question about a module, and what in the text gives it."""

    holds: bool | None
    """None: the text does not tell."""
    evidence: str
    """A clause to follow a colon: "it is scheduled"."""


@dataclass(frozen=True, slots=True)
class Stage:
    """The stage of compilation that a module is at."""

    devices: int
    """Replicas times partitions that run the program: by the header, shardings, collectives."""
    partitioned: Fact
    """Whether shapes are those of one device. False: one program for all devices, by shardings."""
    flat: Fact
    """Whether each computation of control flow has one call site."""
    fused: Fact
    copies_inserted: Fact
    """Whether buffers can be assigned: no buffer has to hold two values at a time."""
    scheduled: Fact
    ordered: Fact
    """Whether the order of execution is known: by a schedule, or because there is one only."""
    memory_spaces: dict[int, Instruction]
    """Each memory space `S(n)` but the default, with the first instruction in it."""
    tiled: Instruction | None
    """The first instruction whose layout has tiles `T(…)`."""

    @classmethod
    def of(cls, module: Module) -> Stage:
        """Look at a module. O(instructions), each distinct shape and sharding once."""
        sharded = _sharded_devices(module)
        grid = device_counts(module)
        is_fused = any(True for _ in module.instructions(Opcode.FUSION))
        spaces, tiled = _layouts(module)
        return cls(
            max(grid.replicas * grid.partitions, sharded),
            _partitioned(module, max(sharded, grid.partitions), is_fused=is_fused),
            _flat(module),
            _fused(module, is_fused=is_fused),
            _copies_inserted(module),
            _scheduled(module),
            _ordered(module),
            spaces,
            tiled,
        )


# -- partitioned ----------------------------------------------------------------------------------

_MARKERS = frozenset(("Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape"))
_MARKER_PREFIX = "xla.sdy."
_MESHES = "xla.sdy.meshes"
_TILE = re.compile(r"devices=\[([\d,]+)\]")
_AXIS = re.compile(r"'[^']*'=(\d+)")


def _partitioned(module: Module, count: int, *, is_fused: bool) -> Fact:
    """Measured on what XLA's partitioner was given and made: see tests/analysis/test_stage.py."""
    if count <= 1:
        return Fact(True, "there is one partition")
    if marker := _partitioner_input(module):
        return Fact(False, marker)
    if made := _partitioner_output(module):
        return Fact(True, made)
    is_late = module.is_scheduled or is_fused
    arguments_differ = False
    for instruction in module.instructions():
        if "sharding" not in instruction.attributes:
            continue
        if instruction.opcode is Opcode.PARAMETER and instruction.parent is module.entry:
            arguments_differ |= "{replicated" not in instruction.attributes["sharding"]
        elif not is_late and instruction.opcode not in _KEEP_SHARDING:
            return Fact(False, f"%{instruction.name} has a sharding and is no argument")
    for instruction in module.instructions():
        if instruction.opcode in COLLECTIVES or instruction.opcode is Opcode.PARTITION_ID:
            return Fact(True, f"%{instruction.name} is what the partitioner makes")
    if is_late:
        stage = "scheduled" if module.is_scheduled else "fused"
        return Fact(True, f"it is {stage}, which comes after the partitioner")
    if arguments_differ:
        return Fact(None, "only arguments have shardings, and nothing else tells")
    return Fact(True, "nothing has a sharding over several devices")


_KEEP_SHARDING = frozenset(
    (
        *(Opcode.INFEED, Opcode.OUTFEED, Opcode.SEND, Opcode.SEND_DONE),
        *(Opcode.RECV, Opcode.RECV_DONE),
    )
)
"""Beside arguments what the partitioner leaves with a sharding."""


def _partitioner_input(module: Module) -> str:
    """A sign that a module was not partitioned, or an empty string."""
    if _MESHES in module.attributes.get("frontend_attributes", ""):
        return f"the header has {_MESHES}, which Shardy has yet to read"
    for call in module.instructions(Opcode.CUSTOM_CALL):
        target = custom_call_target(call)
        if target in _MARKERS or target.startswith(_MARKER_PREFIX):
            return f"%{call.name} is a custom call to {target}, which the partitioner removes"
    return ""


def _partitioner_output(module: Module) -> str:
    """A sign that a module was partitioned, or an empty string.

    It leaves its shardings to the passes that clean up after it. Before it, programs written per
    device (`shard_map`) have these instructions too, but marked as manual.
    """
    for instruction in module.instructions():
        is_between = (
            instruction.opcode in COLLECTIVES and "channel_id" in instruction.attributes
        ) or instruction.opcode is Opcode.PARTITION_ID
        if is_between and "manual" not in instruction.attributes.get("sharding", ""):
            return f"%{instruction.name} is what the partitioner makes"
    return ""


def _sharded_devices(module: Module) -> int:
    """The most devices that a tiled sharding names; 1 without any."""
    texts = {i.attributes["sharding"] for i in module.instructions() if "sharding" in i.attributes}
    return max(map(_tile_devices, texts), default=1)


def _tile_devices(sharding: str) -> int:
    """Over how many devices a sharding is tiled, replication in subgroups included; else 1."""
    try:
        text = canonical_sharding(sharding)
    except HloError:
        return 1  # the verifier says so
    counts = [prod(map(int, tile.split(","))) for tile in _TILE.findall(text)]
    if "{mesh[" in text and re.search(r"[\[,{ ]\{'", text.partition("]")[2]):
        counts.append(prod(map(int, _AXIS.findall(text.partition("]")[0]))))
    return max(counts, default=1)


# -- the other questions --------------------------------------------------------------------------

_FUSIBLE = (ELEMENTWISE_UNARY | ELEMENTWISE_BINARY) - {Opcode.COPY}
"""Without copies: copy insertion, which comes after fusion, puts one behind the other."""
_LOOPS_AND_BRANCHES = (Opcode.WHILE, Opcode.CONDITIONAL)


def _flat(module: Module) -> Fact:
    try:
        nodes = CallGraph.build(module).nodes
    except HloError as error:
        return Fact(None, error.message)
    for computation, node in nodes.items():
        if reason := node.why_not_flat():
            return Fact(False, f"%{computation.name}: {reason}")
    return Fact(True, "each computation of control flow has one call site")


def _fused(module: Module, *, is_fused: bool) -> Fact:
    """XLA:CPU and XLA:GPU rewrite some products to fusions long before the rest is fused."""
    if is_fused and module.is_scheduled:
        return Fact(True, "it has fusions, and is scheduled")
    for instruction in module.instructions():
        if instruction.opcode in _FUSIBLE and not _is_embedded(instruction.parent):
            for operand in instruction.operands:
                if operand.opcode in _FUSIBLE and len(operand.users) == 1:
                    return Fact(False, f"%{operand.name} could be fused into %{instruction.name}")
    return Fact(True, "it has fusions") if is_fused else Fact(None, "there is nothing to fuse")


def _is_embedded(computation: Computation) -> bool:
    return any(caller.opcode in EMBEDDED_CALLERS for caller in computation.callers)


def _scheduled(module: Module) -> Fact:
    if module.is_scheduled:
        return Fact(True, "the header says is_scheduled=true")
    return Fact(False, "the header does not say is_scheduled=true")


def _ordered(module: Module) -> Fact:
    """Parameters and constants do not count: what they hold is set aside throughout."""
    if module.is_scheduled:
        return Fact(True, "it is scheduled")
    for computation in module.computations.values():
        if _is_embedded(computation):
            continue
        last = None
        for instruction in computation.instructions:
            if instruction.opcode in (Opcode.PARAMETER, Opcode.CONSTANT):
                continue
            before = (*instruction.operands, *instruction.control_predecessors)
            if last is not None and last not in before:
                reason = f"%{last.name} may run before or after %{instruction.name}"
                return Fact(False, f"it is not scheduled, and {reason}")
            last = instruction
    return Fact(True, "its dependencies leave one order")


def _copies_inserted(module: Module) -> Fact:
    """Whether copy insertion has run, or has nothing to do."""
    if module.is_scheduled:
        return Fact(True, "it is scheduled, which comes after copy insertion")
    if reason := _passed_through(module.entry.root):
        return Fact(False, reason)
    in_place = InPlace()
    for instruction in module.instructions():
        if instruction.opcode in _LOOPS_AND_BRANCHES or in_place.pairs(instruction):
            return Fact(None, f"%{instruction.name} may need copies")
    if "input_output_alias" in module.attributes:
        return Fact(None, "aliased arguments may need copies")
    return Fact(True, "nothing in it needs a copy")


def _passed_through(root: Instruction) -> str:
    """The result of the program that is an argument, a constant or given twice, or ""."""
    seen: set[Instruction] = set()
    for result in root.operands if root.opcode is Opcode.TUPLE else [root]:
        if result.opcode in (Opcode.PARAMETER, Opcode.CONSTANT):
            return f"%{result.name} is a result of the program as it is"
        if result in seen:
            return f"%{result.name} is two results of the program"
        seen.add(result)
    return ""


def _layouts(module: Module) -> tuple[dict[int, Instruction], Instruction | None]:
    """The first instruction of each memory space but the default, and the first with tiles."""
    spaces: dict[int, Instruction] = {}
    tiled = None
    seen = set()
    for instruction in module.instructions():
        if instruction.shape in seen:
            continue
        seen.add(instruction.shape)
        for leaf in instruction.shape.leaves():
            if leaf.layout.memory_space:
                spaces.setdefault(leaf.layout.memory_space, instruction)
            if leaf.layout.tiles and tiled is None:
                tiled = instruction
    return spaces, tiled
