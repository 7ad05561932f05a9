"""Texts of a module on its own devices, and on one, two and four where it allows them; prepared as
passes want it."""

from __future__ import annotations

from collections.abc import Iterator

from hloopt.ir import Module, Opcode
from hloopt.ir.devices.device_counts import device_counts
from hloopt.ir.devices.grid import Grid
from hloopt.ir.opcode import COLLECTIVES
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module, print_module
from hloopt.verifier import ANY_TARGET, verify_module
from pass_sweep_lib.cases import Case

_ALL = (Grid(1, 1), Grid(2, 1), Grid(1, 2), Grid(4, 1), Grid(1, 4), Grid(2, 2))
_IN_TURN = (Grid(2, 1), Grid(1, 4))
"""For modules in which each device does the same by itself: one of them."""
_OF_DEVICES = COLLECTIVES | {Opcode.REPLICA_ID, Opcode.PARTITION_ID}


def depends_on_devices(module: Module) -> bool:
    """Whether devices of a module exchange something or tell themselves apart."""
    return any(instruction.opcode in _OF_DEVICES for instruction in module.instructions())


def other_grids(text: str, number: int) -> Iterator[tuple[Grid, str]]:
    """Other numbers of replicas and partitions than a module's own, and its text with them.

    `number` is that of the module: where one grid is enough, it says which.
    """
    module = parse_module(text)
    own = device_counts(module)
    for grid in _ALL if depends_on_devices(module) else (_IN_TURN[number % 2],):
        if grid == own:
            continue
        module = parse_module(text)
        for name, count in zip(("replica_count", "num_partitions"), grid, strict=True):
            module.set_attribute(name, str(count) if count > 1 else None)
        if device_counts(module) == grid and not verify_module(module, ANY_TARGET):
            yield grid, print_module(module)


def prepared(text: str, case: Case) -> str:
    """The text with what a case wants before it: a schedule, computations with one call site."""
    module = parse_module(text)
    wanted = ["hlo-trivial-scheduler"] * (case.needs_schedule and not module.is_scheduled)
    wanted += ["flatten-call-graph"] * case.needs_flat_calls
    changed = [create_pass(name, {}).run(module, PassContext(name)) for name in wanted]
    return print_module(module) if any(changed) else text
