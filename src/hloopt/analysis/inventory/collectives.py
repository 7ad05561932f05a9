"""The collectives of a module: each once, whether synchronous, split, wrapped or fused.

Two sizes of a collective are told apart, both in bytes of one device and one run:

* payload: the larger of what it takes and what it leaves, as `hloopt schedule` has it;
* wire: what the device sends to others by the usual algorithms in groups of n: of the payload
  2(n-1)/n for an all-reduce (a ring), (n-1)/n for an all-gather, a reduce-scatter, an all-to-all
  and a broadcast, all of it for a permute that has a pair of two devices; nothing where n is 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from hloopt.analysis.async_operations import OWN_STARTS, SYNC_COLLECTIVES
from hloopt.analysis.calls import reachable_from_entry
from hloopt.analysis.cost.sizes import leaf_bytes
from hloopt.ir.attributes.typed import pairs_of
from hloopt.ir.computation import Computation
from hloopt.ir.devices.collective_devices import device_groups, group_sizes
from hloopt.ir.devices.collective_mode import replica_groups
from hloopt.ir.devices.device_counts import device_counts
from hloopt.ir.devices.grid import Grid
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import PERMUTING, Opcode
from hloopt.ir.shapes.shape import Shape


class Form(Enum):
    """The way in which a collective is written."""

    SYNC = "sync"
    PAIR = "start/done"
    """A start and a done with opcodes of their own."""
    WRAPPED = "async"
    """In a computation that an async-start runs."""
    FUSED = "fusion"
    """In a fused computation."""


@dataclass(frozen=True, slots=True, eq=False)
class Collective:
    """A collective operation, counted once."""

    instruction: Instruction
    """The operation itself; of a pair its start."""
    kind: Opcode
    form: Form
    types: tuple[str, ...]
    """Element types of the data, each once, in the order of the operands."""
    group_sizes: frozenset[int]
    """Numbers of devices that meet; empty for pairs that connect none."""
    axes: tuple[str, ...]
    """The axes of the mesh along which devices meet, where replica groups are written so."""
    payload: int
    wire: int

    @property
    def group_size(self) -> int:
        """The number of devices that meet; of groups of several sizes the largest."""
        return max(self.group_sizes, default=0)


def collectives_of(module: Module) -> list[Collective]:
    """The collectives of what the entry reaches, in the order of the text. O(instructions)."""
    reached = reachable_from_entry(module)
    grid = device_counts(module)
    return [
        _collective(instruction, grid)
        for computation in module.computations.values()
        if computation in reached
        for instruction in computation.instructions
        if kind_of(instruction) in SYNC_COLLECTIVES
    ]


def results_of(collective: Collective) -> list[Instruction]:
    """The instructions whose values are what a collective leaves: itself, or its dones.

    O(users and callers).
    """
    if collective.form is Form.PAIR:
        return list(collective.instruction.users)
    if collective.form is Form.WRAPPED and collective.instruction.is_root:
        callers = collective.instruction.parent.callers
        return [done for start in callers if start.opcode is Opcode.ASYNC_START
                for done in _ends(start)]  # fmt: skip
    return [collective.instruction]


def _ends(start: Instruction) -> list[Instruction]:
    """The dones of an async-start, behind its updates."""
    found: list[Instruction] = []
    waiting = list(start.users)
    while waiting:
        user = waiting.pop()
        if user.opcode is Opcode.ASYNC_UPDATE:
            waiting += user.users
        elif user.opcode is Opcode.ASYNC_DONE:
            found.append(user)
    return found


def group_count(collective: Instruction, grid: Grid) -> int:
    """The number of groups of devices that meet apart. O(groups that are listed, or pairs)."""
    size = max(group_sizes(collective, grid), default=0)
    groups = replica_groups(collective) if collective.opcode not in PERMUTING else None
    if groups is None or groups.explicit:
        return len(device_groups(collective, grid))
    return grid.device_count // size if size else 0


def kind_of(instruction: Instruction) -> Opcode:
    """The opcode of a collective that is not split; of other instructions their own."""
    return OWN_STARTS.get(instruction.opcode, instruction.opcode)


def _collective(instruction: Instruction, grid: Grid) -> Collective:
    kind = kind_of(instruction)
    taken = [operand.shape for operand in instruction.operands]
    payload = max(sum(map(leaf_bytes, taken)), leaf_bytes(_result(instruction)))
    sizes = frozenset(group_sizes(instruction, grid))
    types = dict.fromkeys(leaf.type_name for shape in taken for leaf in shape.leaves())
    return Collective(
        *(instruction, kind, _form(instruction), tuple(types), sizes),
        *(_axes(instruction), payload),
        _wire(instruction, kind, payload, max(sizes, default=0)),
    )


def _axes(collective: Instruction) -> tuple[str, ...]:
    """The axes that replica groups name: `data`, or `data:(1)2` for a part of one."""
    if "mesh" not in collective.attributes.get("replica_groups", ""):
        return ()
    return tuple(axis.text.replace("'", "") for axis in replica_groups(collective).mesh_axes)


def _result(collective: Instruction) -> Shape:
    """The shape of what a collective leaves; the shape of some starts holds more."""
    if collective.opcode in (Opcode.ALL_GATHER_START, Opcode.COLLECTIVE_PERMUTE_START):
        return collective.shape.elements[1]
    return collective.shape


def _form(instruction: Instruction) -> Form:
    if instruction.opcode in OWN_STARTS:
        return Form.PAIR
    callers = _caller_opcodes(instruction.parent)
    if Opcode.ASYNC_START in callers:
        return Form.WRAPPED
    if Opcode.FUSION not in callers:
        return Form.SYNC
    outer = {o for c in instruction.parent.callers for o in _caller_opcodes(c.parent)}
    return Form.WRAPPED if Opcode.ASYNC_START in outer else Form.FUSED


def _caller_opcodes(computation: Computation) -> set[Opcode]:
    return {caller.opcode for caller in computation.callers}


def _wire(instruction: Instruction, kind: Opcode, payload: int, devices: int) -> int:
    if kind is Opcode.COLLECTIVE_PERMUTE:
        return payload if any(a != b for a, b in pairs_of(instruction)) else 0
    if devices <= 1:
        return 0
    rounds = 2 if kind is Opcode.ALL_REDUCE else 1
    return rounds * payload * (devices - 1) // devices
