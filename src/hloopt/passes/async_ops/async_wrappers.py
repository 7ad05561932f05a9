"""Work that programs put on other streams, or on the host, becomes asynchronous."""

from __future__ import annotations

from hloopt.analysis.gpu_async import COLLECTIVES_GROUP, STREAM_ANNOTATION
from hloopt.ir.attributes.backend_config import backend_config, with_gpu_fields
from hloopt.ir.attributes.frontend_attributes import frontend_attribute
from hloopt.ir.clone import clone_to_change
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.pass_framework.base import ModulePass, PassContext, XlaPass, register
from hloopt.passes.async_ops.async_pairs import (
    CONTEXT,
    AsyncPair,
    done_of,
    replace_by_pairs,
    start_of,
    wrap,
)


class _AsyncWrapper(ModulePass):
    """Replaces what `is_wanted` by what `split` makes of it."""

    def is_wanted(self, instruction: Instruction) -> bool:
        raise NotImplementedError

    def split(self, instruction: Instruction) -> AsyncPair:
        raise NotImplementedError

    def run(self, module: Module, context: PassContext) -> bool:
        before = module.version
        for computation in list(module.computations.values()):
            if computation.is_fusion or computation.is_asynchronous:
                continue
            pairs: dict[Instruction, AsyncPair] = {}
            for instruction in list(computation.instructions):
                if not self.is_wanted(instruction):
                    continue
                if not context.apply(instruction, "runs asynchronously", remark=False):
                    break
                pair = pairs[instruction] = self.split(instruction)
                context.applied(instruction, f"runs from %{pair.start.name} on")
                context.count("instructions made asynchronous")
            replace_by_pairs(computation, pairs)
        return module.version != before


@register(
    "async-stream-attribute-wrapper",
    preserves="bits",
    xla=XlaPass(
        "gpu::StreamAttributeAsyncWrapper",
        "xla/backends/gpu/transforms/stream_attribute_async_wrapper.h",
    ),
)
class AsyncStreamAttributeWrapper(_AsyncWrapper):
    """Let instructions with an `operation_queue_id` other than 0 run on the thread "parallel".

    Each becomes an async-start around itself, and an async-done. Linear in the module's size.
    """

    def is_wanted(self, instruction: Instruction) -> bool:
        text = instruction.attributes.get("backend_config", "")
        if "operation_queue_id" not in text or instruction.opcode is Opcode.PARAMETER:
            return False
        if instruction.opcode.endswith(("-start", "-update", "-done")):
            return False
        return backend_config(instruction).get("operation_queue_id", "0") not in ("", "0")

    def split(self, instruction: Instruction) -> AsyncPair:
        pair = wrap(instruction, thread="parallel", on_start=("metadata", "backend_config"))
        _do_not_hurry(pair.done)
        return pair


@register(
    "explicit-stream-annotation-async-wrapper",
    preserves="bits",
    xla=XlaPass(
        "gpu::ExplicitStreamAnnotationAsyncWrapper",
        "xla/backends/gpu/transforms/explicit_stream_annotation_async_wrapper.h",
    ),
)
class ExplicitStreamAnnotationAsyncWrapper(_AsyncWrapper):
    """Let calls with `_xla_stream_annotation` run on the stream it names.

    Each becomes an async-start around the call, and an async-done, both with the annotation.
    Linear in the module's size.
    """

    def is_wanted(self, instruction: Instruction) -> bool:
        return (
            instruction.opcode is Opcode.CALL
            and frontend_attribute(instruction, STREAM_ANNOTATION) is not None
        )

    def split(self, instruction: Instruction) -> AsyncPair:
        pair = wrap(instruction)
        _do_not_hurry(pair.done)
        return pair


@register(
    "explicit-collectives-group-async-wrapper",
    preserves="bits",
    xla=XlaPass(
        "gpu::ExplicitCollectivesGroupAsyncWrapper",
        "xla/backends/gpu/transforms/explicit_collectives_group_async_wrapper.h",
    ),
)
class ExplicitCollectivesGroupAsyncWrapper(_AsyncWrapper):
    """Let the collectives of a call with `_collectives_group` run as one operation.

    The call becomes an async-start of a copy of what it calls, and an async-done, both with the
    annotation. Linear in the size of the module and of what is copied.
    """

    def is_wanted(self, instruction: Instruction) -> bool:
        return (
            instruction.opcode is Opcode.CALL
            and frontend_attribute(instruction, COLLECTIVES_GROUP) is not None
        )

    def split(self, instruction: Instruction) -> AsyncPair:
        body = clone_to_change(instruction.called[0])
        start = start_of(instruction, body, on_start=("frontend_attributes",))
        return AsyncPair(start, done_of(instruction, start, Opcode.ASYNC_DONE))


@register(
    "host-compute-asyncifier",
    preserves="bits",
    xla=XlaPass(
        "HostComputeAsyncifier",
        "xla/core/host_offloading/host_compute_asyncifier.h",
        compared="nothing",
    ),
)
class HostComputeAsyncifier(_AsyncWrapper):
    """Let calls whose backend_config has the `device_type` of the host run there.

    Each becomes an async-start around the call on the thread "host", and an async-done. Linear in
    the module's size.
    """

    def is_wanted(self, instruction: Instruction) -> bool:
        return (
            instruction.opcode is Opcode.CALL
            and "DEVICE_TYPE_HOST" in instruction.attributes.get("backend_config", "")
            and backend_config(instruction).get("device_type") == "DEVICE_TYPE_HOST"
        )

    def split(self, instruction: Instruction) -> AsyncPair:
        return wrap(instruction, thread="host", context=(CONTEXT,))


def _do_not_hurry(done: Instruction) -> None:
    """A wish to run early is that of the start."""
    done.set_attribute("backend_config", with_gpu_fields(done, force_earliest_schedule=False))
