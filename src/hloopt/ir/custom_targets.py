"""Targets of custom calls whose meaning XLA itself fixes."""

from __future__ import annotations

from hloopt.ir.attributes import values as attribute_values
from hloopt.ir.instruction import Instruction

MOVED = "InsertedByPreviousStep"
"""Marks what the collective pipeliner moved forward, and the index of its store; its second
operand is the level."""
SUNK = "SunkByPreviousStep"
"""Marks what the collective pipeliner stacked for an operation that it sank."""
IDENTITIES = frozenset(
    (
        *("Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape"),
        *("xla.sdy.FuncResultSharding", "xla.sdy.PropagationBarrier"),
        *("LayoutConstraint", "SetBound", "ShardBarrierFrom", "ShardBarrierTo"),
        *("MoveToHost", "MoveToDevice", "annotate_device_placement"),
        *("PinToHost", "PinToDevice", "PinToDeviceSram", "Pin", "Unpin", SUNK),
    )
)
"""Those that give their one operand back; those between shard and whole only where both have one
shape."""
TO_PARTS = frozenset(("SPMDFullToShardShape", "xla.sdy.GlobalToLocalShape"))
"""Those whose results are a device's parts of their operands: a manual region begins."""
TO_WHOLE = frozenset(("SPMDShardToFullShape", "xla.sdy.LocalToGlobalShape"))
"""Those that put the parts of all devices together: a manual region ends."""
MANUAL_BOUNDARIES = TO_PARTS | TO_WHOLE
SHARDING_GROUP = "xla.sdy.ShardingGroup"
"""Ties the shardings of values together; has no value."""
NEW_BUFFERS = frozenset(("AllocateBuffer", "CreateBuffer"))
"""Those whose result is read only after it was written."""
QUANTIZE = "__op$quantize"
"""Makes a block-scaled tensor of an array: values and scales."""
DEQUANTIZE = "__op$dequantize"
"""The array that values and scales stand for."""
BLOCK_SCALED_DOT = "__op$block_scaled_dot"
"""The product of two block-scaled tensors, or of one and an array; see `ir.block_scaling`."""
CUDNN_BLOCK_SCALED_DOT = "__cudnn$blockScaledDot"
"""The same with the scales in the order that the tensor cores read them in."""
BLOCK_SCALED_DOTS = frozenset((BLOCK_SCALED_DOT, CUDNN_BLOCK_SCALED_DOT))
BLOCK_SCALING = BLOCK_SCALED_DOTS | {QUANTIZE, DEQUANTIZE}


def custom_call_target(instruction: Instruction) -> str:
    """The target of a custom call; empty for other instructions."""
    text = instruction.attributes.get("custom_call_target")
    return "" if text is None else attribute_values.parse_string(text)
