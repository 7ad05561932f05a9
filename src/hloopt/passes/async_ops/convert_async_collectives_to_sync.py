"""Collectives whose latency nothing hides become synchronous again."""

from __future__ import annotations

from dataclasses import dataclass

from hloopt.analysis.async_operations import OWN_DONES, OWN_STARTS, SYNC_COLLECTIVES, wrapped
from hloopt.ir.attributes.backend_config import (
    DYNAMIC_SLICE_CONFIG,
    is_sync,
    with_collective_flag,
    without_field,
)
from hloopt.ir.attributes.frontend_attributes import frontend_attributes, set_frontend_attributes
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.pass_framework.base import (
    ModulePass,
    PassContext,
    PassOptions,
    XlaPass,
    option,
    register,
)
from hloopt.passes.async_ops.host_transfers import sliced
from hloopt.passes.rewriting.async_annotations import share_annotations

Pair = tuple[Instruction, Instruction]
"""A start and its done."""

_GPU_NO_WORK = (Opcode.PARAMETER, Opcode.CONSTANT, Opcode.BITCAST, Opcode.GET_TUPLE_ELEMENT)


@register(
    "convert-async-collectives-to-sync",
    preserves="bits",
    xla=XlaPass(
        "ConvertAsyncCollectivesToSync",
        "xla/hlo/transforms/collectives/convert_async_collectives_to_sync.h",
    ),
)
class ConvertAsyncCollectivesToSync(ModulePass):
    """Make one synchronous collective of a start and a done with nothing between them.

    Only in scheduled modules. What the options call no work may stand between; other pairs may,
    too. The collective keeps the start's metadata and backend_config and the done's frontend
    attributes, and notes the start's name as `async_collective_name`. Linear in the module's size.
    """

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options(PassOptions):
        nop_opcodes: tuple[Opcode, ...] = option((), "opcodes that do not count as work")

    options: Options

    def run(self, module: Module, context: PassContext) -> bool:
        found = False
        for computation in _scheduled(module):
            pairs: list[Pair] = []
            for start, done in pairs_without_work(computation, self.options.nop_opcodes):
                if reason := why_not_synchronous(start):
                    context.missed(start, reason)
                    continue
                if context.apply(start, "nothing hides its latency"):
                    pairs.append((start, done))
            make_synchronous(computation, pairs)
            context.count("collectives made synchronous", len(pairs))
            found |= bool(pairs)
        return found


@register(
    "gpu-convert-async-collectives-to-sync",
    preserves="bits",
    xla=XlaPass(
        "gpu::GpuConvertAsyncCollectivesToSync",
        "xla/backends/gpu/transforms/collectives/convert_async_collectives_to_sync.h",
    ),
)
class GpuConvertAsyncCollectivesToSync(ModulePass):
    """Mark collective starts with nothing between them and their done as synchronous.

    As XLA:GPU does it: `is_sync` is set in the backend_config of the start, which moves right
    before its done. Parameters, constants, bitcasts and get-tuple-elements are no work.
    """

    def run(self, module: Module, context: PassContext) -> bool:
        before = module.version
        for computation in _scheduled(module):
            pairs = [
                (start, done)
                for start, done in pairs_without_work(computation, _GPU_NO_WORK)
                if not is_sync(start) and context.apply(start, "nothing hides its latency")
            ]
            for start, _ in pairs:
                start.set_attribute("backend_config", with_collective_flag(start, "is_sync"))
                if start.opcode is Opcode.ASYNC_START:
                    share_annotations(start)
            if pairs:
                computation.splice({done: [start] for start, done in pairs})
            context.count("collectives marked synchronous", len(pairs))
        return module.version != before


def _scheduled(module: Module) -> list[Computation]:
    if not module.is_scheduled:
        return []
    return [c for c in module.computations.values() if not c.is_fusion]


def pairs_without_work(computation: Computation, no_work: tuple[Opcode, ...]) -> list[Pair]:
    """The collectives with no work between start and done, in order of the dones. Linear."""
    open_starts: set[Instruction] = set()
    pairs: list[Pair] = []
    for instruction in computation.instructions:
        if is_collective_start(instruction):
            open_starts.add(instruction)
        elif _is_done(instruction):
            start = instruction.operands[0]
            if start in open_starts:
                open_starts.remove(start)
                pairs.append((start, instruction))
            else:
                open_starts.clear()
        elif instruction.opcode not in no_work:
            open_starts.clear()
    return pairs


def is_collective_start(instruction: Instruction) -> bool:
    """Whether an instruction starts a collective, by an opcode of its own or around it."""
    if instruction.opcode is Opcode.ASYNC_START:
        return wrapped(instruction).opcode in SYNC_COLLECTIVES
    return OWN_STARTS.get(instruction.opcode) in SYNC_COLLECTIVES


def _is_done(instruction: Instruction) -> bool:
    return instruction.opcode is Opcode.ASYNC_DONE or instruction.opcode in OWN_DONES


def why_not_synchronous(start: Instruction) -> str | None:
    """The reason why no synchronous collective can do what a start does; None where one can."""
    if start.opcode is not Opcode.ASYNC_START:
        if any(operand.shape.is_tuple for operand in start.operands):
            return "it has tuples as operands, as a collective-permute in place"
        return None
    operation = wrapped(start)
    if operation.operands != operation.parent.parameters:
        return "the collective it wraps does not take its operands one by one, in order"
    return None


def make_synchronous(computation: Computation, pairs: list[Pair]) -> None:
    """Put a synchronous collective in the place of each pair's done.

    O(instructions of the computation + edges of the pairs).
    """
    placed: dict[Instruction, list[Instruction]] = {}
    for start, done in pairs:
        collective = _synchronous(start, done)
        attributes = dict(frontend_attributes(done))
        if is_collective_start(start):
            attributes["async_collective_name"] = start.name
        set_frontend_attributes(collective, attributes)
        placed[done] = [collective]
    if placed:
        computation.splice(placed)
    for start, done in pairs:
        collective = placed[done][0]
        for predecessor in (*start.control_predecessors, *done.control_predecessors):
            if predecessor is not start:
                collective.add_control_predecessor(predecessor)
        for successor in (*start.control_successors, *done.control_successors):
            if successor is not done:
                successor.add_control_predecessor(collective)
        done.replace_all_uses_with(collective)
        for old in (done, start):
            old.drop_control_dependencies()
            computation.remove(old)


def _synchronous(start: Instruction, done: Instruction) -> Instruction:
    computation = start.parent
    kept = {k: v for k, v in start.attributes.items() if k in ("metadata", "backend_config")}
    if "sharding" in done.attributes:
        kept["sharding"] = done.attributes["sharding"]
    if start.opcode is Opcode.ASYNC_START:
        collective = computation.add_clone(sliced(start), start.operands)
        for name, text in kept.items():
            collective.set_attribute(name, text)
        if DYNAMIC_SLICE_CONFIG in collective.attributes.get("backend_config", ""):
            collective.set_attribute(
                "backend_config", without_field(collective, DYNAMIC_SLICE_CONFIG)
            )
        return collective
    opcode = OWN_STARTS[start.opcode]
    return computation.add(
        opcode,
        done.shape,
        start.operands,
        attributes={**start.attributes, **kept},
        called=start.called,
    )
