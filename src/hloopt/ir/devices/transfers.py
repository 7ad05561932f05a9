"""Transfers between two devices: what frontend attributes say of sends and recvs."""

from __future__ import annotations

from collections.abc import Mapping

PAIRS = "_xla_send_recv_source_target_pairs"
"""Pairs of devices, sender and receiver: `{{0,1},{1,2}}`."""
PIPELINE = "_xla_send_recv_pipeline"
"""`0` or `1`: the transfer is pipelined, on the first stream or on the second."""
STREAM = "_xla_gpu_collective_stream"
"""`p2p`: the operation runs on the stream of XLA:GPU for transfers."""


def has_cycle(target_of: Mapping[int, int]) -> bool:
    """Whether data sent along the pairs can come back to where it started. O(pairs).

    Each device has one target, and is the target of one.
    """
    starts = target_of.keys() - set(target_of.values())
    reached = 0
    for device in starts:
        while device in target_of:
            device = target_of[device]
            reached += 1
    return reached < len(target_of)
