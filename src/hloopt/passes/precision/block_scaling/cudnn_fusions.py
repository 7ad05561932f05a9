"""Scaled-dots in fusions that cuDNN computes, which reads their scales tile by tile."""

from __future__ import annotations

from hloopt.diagnostics import HloVerifyError
from hloopt.ir.attributes.values import parse_ints
from hloopt.ir.block_scaling import Side
from hloopt.ir.clone import own_computations
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import post_order, repair_schedule
from hloopt.ir.shapes.shape import tuple_shape
from hloopt.ir.tuples import element
from hloopt.passes.precision.block_scaling.cudnn import are_supported, padded_side, swizzled
from hloopt.passes.precision.block_scaling.expansions import parameters_like
from hloopt.passes.precision.block_scaling.steps import slice_to


def cudnn_supports_scaled_dot(dot: Instruction) -> bool:
    """Whether cuDNN can compute a scaled-dot of a computation that becomes a fusion of its own.

    Operands and scales are the first parameters of the computation, in order, and nothing else uses
    them; both sides are contracted over their last dimension, the only one with blocks, and a third
    one is their batch.
    """
    for number, operand in enumerate(dot.operands):
        if operand.opcode is not Opcode.PARAMETER or operand.parameter_number != number:
            return False
        if len(operand.users) != 1:
            return False
    lhs, rhs, lhs_scale, rhs_scale = (operand.shape for operand in dot.operands)
    if any(v.dimensions[:-1] != s.dimensions[:-1] for v, s in ((lhs, lhs_scale), (rhs, rhs_scale))):
        return False
    last, batch = (lhs.rank - 1,), (0,) if lhs.rank == 3 else ()
    for side in ("lhs", "rhs"):
        contracted, batched = (
            parse_ints(dot.attributes.get(f"{side}_{kind}_dims", "{}"))
            for kind in ("contracting", "batch")
        )
        if (contracted, batched) != (last, batch):
            return False
    return are_supported(Side(lhs, lhs_scale, None), Side(rhs, rhs_scale, None))


def cudnn_add_scale_swizzle(fusion: Instruction) -> None:
    """Give a fusion of a scaled-dot, for cuDNN, its scales in the order of the tensor cores.

    For each side a new computation, called before the fusion, pads the scales to whole tiles and
    swizzles them. In the fusion, scales of more rows than there are values are sliced. A fused
    computation that something else calls as well is copied first. Raises HloVerifyError, with
    nothing changed, where the fusion has no scaled-dot that cuDNN can compute. O(fused
    instructions).
    """
    dot = next((i for i in fusion.called[0].instructions if i.opcode is Opcode.SCALED_DOT), None)
    if dot is None or not cudnn_supports_scaled_dot(dot):
        raise HloVerifyError(
            f"%{fusion.name} has no scaled-dot that cuDNN can compute",
            span=fusion.parent.module.span_of(fusion),
        )
    if sum(fusion.called[0].callers.values()) > 1:
        own_computations(fusion)
    _swizzle_operands(fusion)
    _take_operands(fusion)
    repair_schedule([fusion.parent])


def _swizzle_operands(fusion: Instruction) -> None:
    """Let the fusion read values and scales from calls that swizzle the scales of each side."""
    lhs, rhs, lhs_scale, rhs_scale, *others = fusion.operands
    calls = [_call_of_swizzle(*side) for side in ((lhs, lhs_scale), (rhs, rhs_scale))]
    values, scales = ([element(call, index) for call in calls] for index in (0, 1))
    fusion.set_operands([*values, *scales, *others])
    fusion.parent.move_to_end(fusion)  # what it calls is printed after what it reads


def _call_of_swizzle(values: Instruction, scales: Instruction) -> Instruction:
    body = values.parent.module.add_computation(f"{scales.name}_swizzle")
    body.execution_thread = values.parent.execution_thread
    given, given_scales = parameters_like(body, (values, scales), ("values", "scales"))
    side = Side(values.shape, scales.shape, None)
    _, padded = padded_side(side, given, given_scales, pads_values=False)
    found = swizzled(padded, is_bitcast=True)
    shape = tuple_shape((given.shape, found.shape))
    body.set_root(body.add(Opcode.TUPLE, shape, [given, found]))
    body.reorder(post_order(body))
    return values.parent.add(Opcode.CALL, shape, [values, scales], called=(body,))


def _take_operands(fusion: Instruction) -> None:
    """Give the parameters of the fusion the shapes of its operands."""
    body: Computation = fusion.called[0]
    for parameter, operand in zip(body.parameters, fusion.operands, strict=True):
        if parameter.shape is not operand.shape:
            parameter.set_shape(operand.shape)
    dot = next(i for i in body.instructions if i.opcode is Opcode.SCALED_DOT)
    lhs, rhs, lhs_scale, rhs_scale = dot.operands
    scales = _as_many_rows(lhs_scale, lhs), _as_many_rows(rhs_scale, rhs)
    dot.set_operands([lhs, rhs, *scales])
    body.reorder(post_order(body))


def _as_many_rows(scale: Instruction, values: Instruction) -> Instruction:
    """The scale without the rows that values do not have."""
    rows = values.shape.dimensions[:-1]
    if scale.shape.dimensions[:-1] == rows:
        return scale
    return slice_to(scale, (*rows, scale.shape.dimensions[-1]))
