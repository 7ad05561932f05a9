"""Residuals of loops to host memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hloopt.diagnostics import PassRefused, counted
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape_size import shape_bytes
from hloopt.pass_framework.base import (
    Bytes,
    ModulePass,
    PassContext,
    PassOptions,
    option,
    register,
)
from hloopt.passes.memory_space.residuals.coverage import check_slices
from hloopt.passes.memory_space.residuals.indices import Indices
from hloopt.passes.memory_space.residuals.moving import move_to_host
from hloopt.passes.memory_space.residuals.stacks import NotOffloaded, Stack
from hloopt.passes.memory_space.residuals.walk import is_fill, stack_from
from hloopt.passes.rewriting.selection import selected
from hloopt.passes.simplification.dce import remove_unreachable, unreachable_computations


@register("while-loop-residual-offloader", preserves="bits")
class WhileLoopResidualOffloader(ModulePass):
    """Keep in host memory what a loop stacks up for later loops.

    A training step with scanned layers has a loop that writes a slice of a stack in each trip, by a
    dynamic-update-slice, and a loop for the gradients that reads the slices again. A stack moves to
    memory space 5 where it starts as a broadcast of a scalar, every slice is written by then, and
    what follows only reads slices: its initial value becomes a buffer that nothing sets, as XLA's
    host offloader makes it, and device memory holds the slices in use. It may go through tuples,
    copies, optimization barriers and loops that hand it on.

    Dynamic-slices and dynamic-update-slices outside of fusions stay where they are;
    `host-memory-transfer-asyncifier` lets them run beside other work. A fusion that slices gives
    out the slice or takes it: a fusion for the transfer alone, asynchronous as XLA:GPU has it, does
    the rest. It computes no index any more, fusions that read the same slice share it, and one that
    only sliced is gone.

    A stack stays where a slice is not written or not known before the program runs, where something
    takes more of it than slices, where it is a result, and where a slice is not one piece of
    memory. Run `dce` afterwards: a fusion that made several initial values goes on to make all.
    Refuses scheduled modules that have stacks to move. XLA has no such pass: its offloader moves
    what a program marks. Linear in the module, and in the stacks' users and slices.
    """

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options(PassOptions):
        names: tuple[str, ...] = option((), "names of the initial values of stacks; none: all")
        min_size: Bytes = option(1 << 24, "smaller stacks stay")

    options: Options

    def run(self, module: Module, context: PassContext) -> bool:
        unreachable = unreachable_computations(module)
        moved = 0
        indices = Indices()
        fills = _fills(module, self.options.min_size)
        chosen = selected(fills, self.options.names, "initial value of a stack", context)
        for start, user, operand in (use for fill in chosen for use in _uses(fill)):
            stack = _movable(start, user, operand, context)
            if stack is None:
                continue
            if module.is_scheduled:
                raise PassRefused(
                    "stacks move to host memory before there is a schedule",
                    help="run hlo-descheduler before it",
                )
            if not context.apply(start, _words(stack)):
                break
            move_to_host(stack, indices)
            moved += 1
            context.count("bytes moved to host memory", shape_bytes(start.shape))
        if moved:
            context.count("stacks moved to host memory", moved)
            remove_unreachable(module, unreachable)
        return moved > 0


def movable_stacks(module: Module, min_size: int) -> Iterator[Stack]:
    """The stacks of at least so many bytes that may move to host memory. Linear as the pass is."""
    context = PassContext(wants_remarks=False)
    for start, user, operand in (use for fill in _fills(module, min_size) for use in _uses(fill)):
        stack = _movable(start, user, operand, context)
        if stack is not None:
            yield stack


def _fills(module: Module, min_size: int) -> list[Instruction]:
    """The values of at least so many bytes that may be the initial values of stacks."""
    return [
        instruction
        for computation in module.computations.values()
        if not computation.is_fusion
        for instruction in computation.instructions
        if _may_start(instruction, min_size)
    ]


def _may_start(value: Instruction, min_size: int) -> bool:
    shape = value.shape
    return (
        shape.is_array
        and shape.layout.memory_space == 0
        and shape_bytes(shape) >= min_size
        and is_fill(value)
    )


def _uses(fill: Instruction) -> Iterator[tuple[Instruction, Instruction, int]]:
    """The uses of an initial value; a copy of it is one by itself. They may change meanwhile."""
    for user in list(fill.users):
        number = 0
        while user.opcode is not Opcode.COPY and number < len(user.operands):
            if user.operands[number] is fill:
                yield fill, user, number
            number += 1


def _movable(
    fill: Instruction, user: Instruction, operand: int, context: PassContext
) -> Stack | None:
    try:
        stack = stack_from(fill, user, operand)
        if stack is not None:
            check_slices(stack)
    except NotOffloaded as reason:
        context.missed(fill, f"stays in device memory: {reason}")
        return None
    return stack


def _words(stack: Stack) -> str:
    """A remark on what is moved."""
    moved = f"moved to host memory, {counted(shape_bytes(stack.fill.shape), 'byte')}"
    written: dict[str, int] = {}
    for write in stack.writes:
        if write.loop is not None:
            name = write.loop.name
            written[name] = written.get(name, 0) + shape_bytes(write.piece)
    trips = [f"a trip of %{name} writes {size:,} of them" for name, size in written.items()]
    return "; ".join([moved, *trips])
