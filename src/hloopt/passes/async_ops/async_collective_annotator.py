"""Say of each asynchronous collective whether it stays asynchronous."""

from __future__ import annotations

from dataclasses import dataclass

from hloopt.analysis.async_operations import SYNC_COLLECTIVES, async_form
from hloopt.ir.attributes.backend_config import with_collective_flag
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
from hloopt.passes.rewriting.async_annotations import share_annotations


@register(
    "async-collective-annotator",
    preserves="bits",
    xla=XlaPass(
        "gpu::AsyncCollectiveAnnotator",
        "xla/backends/gpu/transforms/collectives/async_collective_annotator.h",
    ),
)
class AsyncCollectiveAnnotator(ModulePass):
    """Write `is_sync` into the backend_config of every collective start, as XLA:GPU does.

    It is true of what `disable_async_collectives` names: the scheduler keeps such a start next to
    its done. Sends, receives, copies and starts around something else are left alone. Linear.
    """

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options(PassOptions):
        disable_async_collectives: tuple[Opcode, ...] = option(
            (), "collectives that are not to run beside other work"
        )

    options: Options

    def run(self, module: Module, context: PassContext) -> bool:
        before = module.version
        for instruction in module.instructions():
            if not instruction.opcode.endswith("-start"):
                continue
            outer, inner = async_form(instruction)
            if outer is not Opcode.ASYNC_START or inner not in SYNC_COLLECTIVES:
                continue
            is_sync = inner in self.options.disable_async_collectives
            text = with_collective_flag(instruction, "is_sync", value=is_sync)
            if instruction.attributes.get("backend_config") != text:
                if not context.apply(instruction, "synchronous" if is_sync else "asynchronous"):
                    break
                instruction.set_attribute("backend_config", text)
                if instruction.opcode is Opcode.ASYNC_START:
                    share_annotations(instruction)
            context.count("collectives kept synchronous", is_sync)
        return module.version != before
