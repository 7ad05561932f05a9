"""Targets of custom calls whose meaning XLA itself fixes."""

from __future__ import annotations

IDENTITIES = frozenset(
    (
        *("Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "xla.sdy.FuncResultSharding"),
        *("LayoutConstraint", "SetBound", "ShardBarrierFrom", "ShardBarrierTo"),
        *("MoveToHost", "MoveToDevice", "annotate_device_placement"),
        *("PinToHost", "PinToDevice", "Pin", "Unpin"),
    )
)
"""Those that give their one operand back; those between shard and whole only where both have one
shape."""
NEW_BUFFERS = frozenset(("AllocateBuffer", "CreateBuffer"))
"""Those whose result is read only after it was written."""
