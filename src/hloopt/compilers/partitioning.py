"""XLA's partitioner, that of jaxlib for CPUs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hloopt.compilers.compiling import Compiler, Settings, compile_program
from hloopt.compilers.failures import CompilerFailure, CompilerTooSlow
from hloopt.compilers.isolation import isolate
from hloopt.compilers.programs import Program
from hloopt.diagnostics import HloError
from hloopt.ir.clone import clone_module
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.tuples import is_parameter_element

PARTITIONER = "spmd-partitioning"
"""The name of the pass, which runs behind the propagation of shardings."""


def with_whole_states(program: Module) -> Module:
    """A copy of a program in which each trip of a loop copies what it hands on, if there are such.

    jaxlib makes StableHLO of HLO, and takes what a loop only hands on out of its state, but not out
    of its sharding: XLA refuses what is left. O(instructions).
    """
    copy, _ = clone_module(program)
    for loop in copy.instructions(Opcode.WHILE):
        root = loop.called[0].root
        if root.opcode is not Opcode.TUPLE or "sharding" not in loop.attributes:
            continue
        for index, value in enumerate(root.operands):
            if is_parameter_element(value) and value.tuple_index == index:
                kept = value.parent.add(Opcode.COPY, value.shape, [value])
                kept.set_attribute("sharding", value.attributes.get("sharding"))
                root.replace_operand(index, kept)
        loop.called[0].move_to_end(root)
    return copy


def partition_alone(program: Module, folder: Path) -> Module:
    """The program for one device that the partitioner makes of propagated shardings.

    No other pass runs. Two compiles, with dumps in `folder`, which must be empty. Raises HloError
    and CompilerFailure.
    """
    from hloopt.text import parse_module

    compiler = Compiler.named("cpu")
    whole = with_whole_states(program)
    runs = isolate(Program.of(whole), PARTITIONER, compiler, folder, Settings())
    return parse_module(runs[0].after)


def partition(program: Module, folder: Path) -> Module:
    """The program for one device that the partitioner makes, before later passes change it.

    Shardings are propagated first, by Shardy where the program names its meshes. One compile, with
    dumps in `folder`, which must be empty. Raises HloError and CompilerFailure.
    """
    from hloopt.files import load

    compiler = Compiler.named("cpu")
    prepared = replace(Program.of(with_whole_states(program)), is_partitioned=False)
    settings = Settings(passes=f"^{PARTITIONER}$", until_buffers=True)
    failure: CompilerFailure | None = None
    try:
        compile_program(prepared, compiler, folder, settings)
    except CompilerTooSlow:
        raise
    except CompilerFailure as error:
        failure = error  # which may have come behind the partitioner
    found = sorted((folder / "dumps").glob(f"*.after_{PARTITIONER}.*.txt"))
    if found:
        return load(str(found[-1]))
    raise failure or HloError(
        f"XLA does not come to {PARTITIONER} with {program.name}",
        help="give the module before all passes: XLA_FLAGS=--xla_dump_to=DIR",
    )
