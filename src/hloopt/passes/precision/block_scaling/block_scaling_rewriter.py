"""Calls for block-scaled tensors become computations of what a compiler knows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from hloopt.diagnostics import PassRefused
from hloopt.ir.block_scaling import (
    dot_sides,
    why_no_blocks,
    why_no_dequantize,
    why_no_dot,
    why_no_quantize,
)
from hloopt.ir.computation import Computation
from hloopt.ir.custom_targets import BLOCK_SCALED_DOT, DEQUANTIZE, QUANTIZE, custom_call_target
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import post_order, repair_schedule
from hloopt.ir.shapes.shape import Shape
from hloopt.pass_framework.base import (
    ModulePass,
    PassContext,
    PassOptions,
    XlaPass,
    option,
    register,
)
from hloopt.pass_framework.options import OptionError
from hloopt.passes.precision.block_scaling.cudnn import are_supported, expand_dot_for_cudnn
from hloopt.passes.precision.block_scaling.expansions import (
    expand_dequantize,
    expand_dot,
    expand_quantize,
)
from hloopt.passes.rewriting.replace import replace_instruction

_WITH_PRODUCTS = (9, 10)
_WITH_GLOBAL_SCALES = (9, 13)
"""The versions of cuDNN that first had them."""
_Expansion = Callable[[Instruction, Computation], Instruction]


@register(
    "block-scaling-rewriter",
    preserves="rounding",
    xla=XlaPass("BlockScalingRewriter", "xla/backends/gpu/transforms/block_scaling_rewriter.h"),
)
class BlockScalingRewriter(ModulePass):
    """Expand the custom calls that quantize, dequantize and multiply block-scaled tensors.

    Each `__op$quantize`, `__op$dequantize` and `__op$block_scaled_dot` outside of fusions becomes a
    call of a computation of ordinary instructions, named after it; nothing is inlined. A product is
    a dot of both sides, dequantized in the type of the result. With `cudnn_version` of 9.10 or
    newer, a product of mxfp8 (two sides of f8e5m2 excepted) or nvfp4 tensors in default layouts is
    a call of cuDNN instead: sides padded to whole tiles, scales in the order of the tensor cores,
    the global scale given to cuDNN from 9.13 on.

    Block sizes are 32, or 16 for nvfp4, for cuDNN, and any otherwise. They follow from the sizes,
    or are stated in the backend configuration where there are spare scales.

    The pass ends with an error where operands and result of a call do not fit. Calls with dynamic
    dimensions stay (XLA expands them, some into computations of other shapes), and control
    dependencies move to the new call (XLA leaves the old one in place, too).
    Linear in the size of the module.
    """

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options(PassOptions):
        cudnn_version: tuple[int, ...] = option(
            (), "major and minor version of the cuDNN to use, such as `[9, 10]`; none: no cuDNN"
        )

        def __post_init__(self) -> None:
            if len(self.cudnn_version) not in (0, 2):
                raise OptionError(
                    "option 'cudnn_version' takes two numbers, such as [9, 10], or none",
                    "cudnn_version",
                )

    options: Options

    def run(self, module: Module, context: PassContext) -> bool:
        before = module.version
        touched: dict[Computation, None] = {}
        for call in list(module.instructions(Opcode.CUSTOM_CALL)):
            target = custom_call_target(call)
            if target not in _WHY_NOT or call.parent.is_fusion:
                continue
            expand, what = self._expansion(call, target)
            if any(shape.is_dynamic for shape in _arrays(call)):
                context.missed(call, "it has a dynamic dimension")
            elif context.apply(call, what):
                _replace_by_call(call, expand)
                touched[call.parent] = None
        repair_schedule(touched)
        return module.version != before

    def _expansion(self, call: Instruction, target: str) -> tuple[_Expansion, str]:
        """The expansion of a call, and the name of that. Raises PassRefused."""
        if reason := _WHY_NOT[target](call):
            raise _refusal(call, reason)
        if target == QUANTIZE:
            return expand_quantize, "expanded"
        if target == DEQUANTIZE:
            return expand_dequantize, "expanded"
        version = self.options.cudnn_version
        if version >= _WITH_PRODUCTS and are_supported(*dot_sides(call)):
            takes_scale = version >= _WITH_GLOBAL_SCALES
            return partial(expand_dot_for_cudnn, takes_global_scale=takes_scale), "left to cuDNN"
        if reason := next(filter(None, map(why_no_blocks, dot_sides(call))), None):
            raise _refusal(call, reason)
        return expand_dot, "expanded"


_WHY_NOT: dict[str, Callable[[Instruction], str | None]] = {
    QUANTIZE: why_no_quantize,
    DEQUANTIZE: why_no_dequantize,
    BLOCK_SCALED_DOT: why_no_dot,
}


def _refusal(call: Instruction, reason: str) -> PassRefused:
    return PassRefused(f"%{call.name}: {reason}", span=call.parent.module.span_of(call))


def _arrays(call: Instruction) -> list[Shape]:
    return [*call.shape.leaves(), *(operand.shape for operand in call.operands)]


def _replace_by_call(call: Instruction, expand: _Expansion) -> None:
    parent = call.parent
    body = parent.module.add_computation(call.name)
    body.execution_thread = parent.execution_thread
    body.set_root(expand(call, body))
    body.reorder(post_order(body))
    replace_instruction(call, parent.add(Opcode.CALL, call.shape, call.operands, called=(body,)))
