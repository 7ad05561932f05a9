"""Let transfers between host and device run beside other work."""

from __future__ import annotations

from dataclasses import dataclass

from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape import tuple_shape
from hloopt.pass_framework.base import (
    ModulePass,
    PassContext,
    PassOptions,
    XlaPass,
    option,
    register,
)
from hloopt.passes.async_ops.async_pairs import (
    CONTEXT,
    AsyncPair,
    done_of,
    replace_by_pairs,
    wrap,
    wrap_fused,
)
from hloopt.passes.async_ops.host_transfers import is_transfer

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

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options(PassOptions):
        fused: bool = option(
            False,
            "wrap each slice in a fusion of its own, as fusion-wrapper does behind this pass: "
            "XLA:GPU runs no other ones beside other work",
        )

    options: Options

    def run(self, module: Module, context: PassContext) -> bool:
        before = module.version
        for computation in list(module.computations.values()):
            if computation.is_fusion or computation.is_asynchronous:
                continue
            pairs: dict[Instruction, AsyncPair] = {}
            for instruction in list(computation.instructions):
                if not is_transfer(instruction):
                    continue
                if not context.apply(instruction, "split into a start and a done", remark=False):
                    break
                pair = pairs[instruction] = _split(instruction, fused=self.options.fused)
                context.applied(instruction, f"split, begins with %{pair.start.name}")
                context.count("transfers made asynchronous")
            replace_by_pairs(computation, pairs)
        return module.version != before


def _split(transfer: Instruction, *, fused: bool) -> AsyncPair:
    if transfer.opcode is not Opcode.COPY:
        if fused:
            return wrap_fused(transfer)
        return wrap(transfer, context=(CONTEXT,), on_start=_ON_START)
    start = transfer.parent.add(
        Opcode.COPY_START,
        tuple_shape([transfer.shape, transfer.operands[0].shape, CONTEXT]),
        transfer.operands,
        attributes={k: v for k, v in transfer.attributes.items() if k in _ON_START},
    )
    return AsyncPair(start, done_of(transfer, start, Opcode.COPY_DONE))
