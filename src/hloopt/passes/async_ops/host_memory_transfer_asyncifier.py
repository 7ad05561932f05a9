"""Let transfers between host and device run beside other work."""

from __future__ import annotations

from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.layout import HOST_MEMORY_SPACE
from hloopt.ir.shapes.shape import Shape, tuple_shape
from hloopt.pass_framework.base import ModulePass, PassContext, XlaPass, register
from hloopt.passes.async_ops.async_pairs import CONTEXT, AsyncPair, done_of, replace_by_pairs, wrap

_ON_START = ("metadata", "backend_config")


@register(
    "host-memory-transfer-asyncifier",
    preserves="bits",
    xla=XlaPass(
        "HostMemoryTransferAsyncifier",
        "xla/hlo/transforms/simplifiers/host_memory_transfer_asyncifier.h",
    ),
)
class HostMemoryTransferAsyncifier(ModulePass):
    """Split copies between host and device into a start and a done.

    A copy from one memory to the other becomes a copy-start and a copy-done; a dynamic-slice of an
    array on the host, and a dynamic-update-slice of one by a piece on the device, become an
    async-start and an async-done. What stays within one memory, or slices on the device, is left
    alone. Linear in the module's size.
    """

    def run(self, module: Module, context: PassContext) -> bool:
        before = module.version
        for computation in list(module.computations.values()):
            if computation.is_fusion or computation.is_asynchronous:
                continue
            pairs: dict[Instruction, AsyncPair] = {}
            for instruction in list(computation.instructions):
                if not _is_transfer(instruction):
                    continue
                if not context.apply(instruction, "split into a start and a done", remark=False):
                    break
                pair = pairs[instruction] = _split(instruction)
                context.applied(instruction, f"split, begins with %{pair.start.name}")
                context.count("transfers made asynchronous")
            replace_by_pairs(computation, pairs)
        return module.version != before


def _is_transfer(instruction: Instruction) -> bool:
    match instruction.opcode:
        case Opcode.COPY:
            source, target = instruction.operands[0].shape, instruction.shape
            is_across = _is_on_host(source) is not _is_on_host(target)
            return source.is_array and is_across
        case Opcode.DYNAMIC_SLICE:
            return _is_on_host(instruction.operands[0].shape) and not _is_on_host(instruction.shape)
        case Opcode.DYNAMIC_UPDATE_SLICE:
            return _is_on_host(instruction.shape) and not _is_on_host(instruction.operands[1].shape)
    return False


def _is_on_host(shape: Shape) -> bool:
    return shape.is_array and shape.layout.memory_space == HOST_MEMORY_SPACE


def _split(transfer: Instruction) -> AsyncPair:
    if transfer.opcode is not Opcode.COPY:
        return wrap(transfer, context=(CONTEXT,), on_start=_ON_START)
    start = transfer.parent.add(
        Opcode.COPY_START,
        tuple_shape([transfer.shape, transfer.operands[0].shape, CONTEXT]),
        transfer.operands,
        attributes={k: v for k, v in transfer.attributes.items() if k in _ON_START},
    )
    return AsyncPair(start, done_of(transfer, start, Opcode.COPY_DONE))
