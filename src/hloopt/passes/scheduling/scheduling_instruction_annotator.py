"""Note in each instruction's metadata the name under which it was scheduled."""

from __future__ import annotations

from dataclasses import replace

from hloopt.diagnostics import PassRefused
from hloopt.ir.attributes.values.metadata import OpMetadata, format_metadata, parse_metadata
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.pass_framework.base import ModulePass, PassContext, XlaPass, register
from hloopt.passes.rewriting.async_annotations import share_annotations

_NO_METADATA = OpMetadata()


@register(
    "scheduling-instruction-annotator",
    preserves="bits",
    xla=XlaPass(
        "gpu::SchedulingInstructionAnnotator",
        "xla/backends/gpu/transforms/scheduling_instruction_annotator.h",
    ),
)
class SchedulingInstructionAnnotator(ModulePass):
    """Write the name of each instruction into its metadata as `scheduling_name`.

    Profiles and dumps of later passes can then be matched with the schedule. XLA:GPU runs it after
    the latency-hiding scheduler; its verifier can hold later passes to these names. A name that is
    there stays, constants get none: XLA:GPU renames them afterwards. The module needs a schedule.
    Linear.
    """

    def run(self, module: Module, context: PassContext) -> bool:
        if not module.is_scheduled:
            raise PassRefused(
                "it needs a module with a schedule", help="run hlo-memory-scheduler before it"
            )
        before = module.version
        for instruction in module.instructions():
            if instruction.opcode is Opcode.CONSTANT:
                continue
            text = instruction.attributes.get("metadata")
            metadata = parse_metadata(text) if text else _NO_METADATA
            if metadata.scheduling_name:
                continue
            if not context.apply(instruction, "its metadata names it", remark=False):
                break
            named = format_metadata(replace(metadata, scheduling_name=instruction.name))
            assert named is not None
            instruction.set_attribute("metadata", named)
        for start in module.instructions(Opcode.ASYNC_START):
            share_annotations(start)
        return module.version != before
