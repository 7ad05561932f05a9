"""Whether what a module remembers of itself is what a look at all of it finds."""

from __future__ import annotations

from collections import Counter

from hloopt.ir import Computation, Instruction, Module
from hloopt.ir.instruction import REFERENCE_ATTRIBUTES


def assert_consistent(module: Module) -> None:
    """Compare users, callers, control edges, parents and names with those worked out anew."""
    computations = list(module.computations.values())
    assert module.entry in computations
    callers: dict[Computation, Counter[Instruction]] = {c: Counter() for c in computations}
    names: Counter[str] = Counter()
    for name, computation in module.computations.items():
        assert computation.name == name
        assert computation.module is module
        assert computation.root in computation
        assert name in module.computation_names.used
        for instruction in computation.instructions:
            names[instruction.name] += 1
            assert instruction.name in module.instruction_names.used
            assert instruction.parent is computation
            assert REFERENCE_ATTRIBUTES.isdisjoint(instruction.attributes), instruction
            for callee in instruction.called:
                callers[callee][instruction] += 1
        _assert_edges(computation)
    assert {name for name, count in names.items() if count > 1} == set()
    for computation, expected in callers.items():
        assert computation.callers == dict(expected), f"callers of {computation}"


def _assert_edges(computation: Computation) -> None:
    users: dict[Instruction, set[Instruction]] = {i: set() for i in computation.instructions}
    successors: dict[Instruction, set[Instruction]] = {i: set() for i in users}
    for instruction in users:
        for operand in instruction.operands:
            users[operand].add(instruction)
        for predecessor in instruction.control_predecessors:
            successors[predecessor].add(instruction)
    for instruction in users:
        predecessors = instruction.control_predecessors
        assert set(instruction.users) == users[instruction], f"users of {instruction}"
        assert set(instruction.control_successors) == successors[instruction], instruction
        assert len(set(predecessors)) == len(predecessors), instruction
        assert len(instruction.control_successors) == len(successors[instruction]), instruction
