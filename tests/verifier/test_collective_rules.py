"""Rules on collectives and asynchronous operations: each with a wrong and a right program."""

from __future__ import annotations

import pytest
from tests.verifier.problems import problems


@pytest.mark.parametrize(
    ("wrong", "right", "message"),
    [
        # collectives
        (
            "a = f32[8] all-reduce(p), to_apply=add, replica_groups={{0,1},{1,2}}",
            "a = f32[8] all-reduce(p), to_apply=add, replica_groups={{0,1},{3,2}}",
            "Replica 1 is repeated",
        ),
        (
            "a = f32[8] all-reduce(p), to_apply=add, replica_groups={{0,1},{4}}",
            "a = f32[8] all-reduce(p), to_apply=add, replica_groups={{0,1},{2}}",
            "Replica 4 is out of range",
        ),
        (
            "a = f32[8] all-reduce(p), to_apply=add, replica_groups={{0},{}}",
            "a = f32[8] all-reduce(p), to_apply=add, replica_groups={}",
            "empty replica group",
        ),
        (
            "a = f32[8] all-reduce(p), to_apply=add, channel_id=1, use_global_device_ids=true",
            "a = f32[8] all-reduce(p), to_apply=add, channel_id=1",
            "must be specified in flattened-id mode",
        ),
        (
            "a = f32[8] all-reduce(p), to_apply=add, use_global_device_ids=true",
            "a = f32[8] all-reduce(p), to_apply=add",
            "without channel_id",
        ),
        (
            "a = f32[16] all-gather(p), dimensions={0}, replica_groups={{0,1},{2}}",
            "a = f32[16] all-gather(p), dimensions={0}, replica_groups={{0,1},{2,3}}",
            "uniform size",
        ),
        (
            "a = f32[24] all-gather(p), dimensions={0}, replica_groups={{0,1}}",
            "a = f32[16] all-gather(p), dimensions={0}, replica_groups={{0,1}}",
            "shard_count = 3, subgroup_size = 2",
        ),
        (
            "a = f32[16] all-gather(p, p), dimensions={0}",
            "a = (f32[16], f32[16]) all-gather(p, p), dimensions={0}",
            "2 operands need a tuple of as many results",
        ),
        (
            "t = (f32[8]) tuple(p)\na = f32[16] all-gather(t), dimensions={0}",
            "a = f32[16] all-gather(p), dimensions={0}",
            "an array with a dimension 0 is needed",
        ),
        (
            "s = f32[16] all-gather-start(p), dimensions={0}\nd = f32[16] all-gather-done(s)",
            "s = (f32[8], f32[16]) all-gather-start(p), dimensions={0}\n"
            "d = f32[16] all-gather-done(s)",
            "is a tuple of operands and results",
        ),
        (
            "a = f32[8] reduce-scatter(p), dimensions={0}, to_apply=add, replica_groups={{0,1}}",
            "a = f32[4] reduce-scatter(p), dimensions={0}, to_apply=add, replica_groups={{0,1}}",
            "shard_count = 1, subgroup_size = 2",
        ),
        (
            "a = (f32[8], f32[8]) all-to-all(p, p), replica_groups={{0,1,2}}",
            "a = (f32[8], f32[8]) all-to-all(p, p), replica_groups={{0,1}}",
            "an all-to-all of 2 operands for groups of 3",
        ),
        (
            "a = f32[8] all-to-all(p), dimensions={0}, replica_groups={{0,1,2}}",
            "a = f32[8] all-to-all(p), dimensions={0}, replica_groups={{0,1}}",
            "must be dividable by split_count 3",
        ),
        (
            "a = f32[8] collective-permute(p), source_target_pairs={{0,1},{0,2}}",
            "a = f32[8] collective-permute(p), source_target_pairs={{0,1},{1,2}}",
            "Source 0 appears more than once",
        ),
        (
            "a = f32[8] collective-permute(p), source_target_pairs={{0,1},{2,1}}",
            "a = f32[8] collective-permute(p), source_target_pairs={}",
            "Target 1 appears more than once",
        ),
        (
            "x = f32[8] all-reduce(p), to_apply=add\n"
            "y = f32[8] all-reduce(p), to_apply=add, constrain_layout=true",
            "x = f32[8] all-reduce(p), to_apply=add, constrain_layout=true\n"
            "y = f32[8] all-reduce(p), to_apply=add, constrain_layout=true",
            "mix of layout constrained and unconstrained",
        ),
        # asynchronous operations
        (
            "s = ((f32[8]), f32[8]) async-start(p), calls=wide\nd = f32[8] async-done(s)",
            "s = ((f32[8]), f32[8]) async-start(p), calls=neg\nd = f32[8] async-done(s)",
            "expected to contain only the root and parameter",
        ),
        (
            "s = ((f32[8]), f32[8]) async-start(p), calls=neg",
            "s = ((f32[8]), f32[8]) async-start(p), calls=neg\nd = f32[8] async-done(s)",
            "requires one consumer, found 0",
        ),
        (
            "s = ((f32[8]), f32[8]) async-start(h), calls=neg\nd = f32[8] async-done(s)",
            "s = ((f32[8]), f32[8]) async-start(p), calls=neg\nd = f32[8] async-done(s)",
            "expects the shape of operand 0 to match",
        ),
        (
            "s = ((f32[8]), bf16[8]) async-start(p), calls=neg\nd = f32[8] async-done(s)",
            "s = ((f32[8]), f32[8]) async-start(p), calls=neg\nd = f32[8] async-done(s)",
            "shape at index {1}",
        ),
        (
            "s = ((bf16[8]), f32[8]) async-start(p), calls=neg\nd = f32[8] async-done(s)",
            "s = ((f32[8]), f32[8]) async-start(p), calls=neg\nd = f32[8] async-done(s)",
            "shape at index {0}",
        ),
        (
            "s = ((f32[8]), f32[8]) async-start(p), calls=neg\nd = f32[4] async-done(s)",
            "s = ((f32[8]), f32[8]) async-start(p), calls=neg\nd = f32[8] async-done(s)",
            "expects its shape to match the async computation result",
        ),
        (
            "s = f32[8] all-reduce-start(p), to_apply=add\nn = f32[8] negate(s)",
            "s = f32[8] all-reduce-start(p), to_apply=add\nn = f32[8] all-reduce-done(s)",
            "needs to be one of (all-reduce-done), found negate",
        ),
        (
            "s = (f32[8], f32[8], u32[]) tuple(p, p, p)\nd = f32[8] copy-done(s)",
            "s = (f32[8], f32[8], u32[]) copy-start(p)\nd = f32[8] copy-done(s)",
            "needs to be copy-start, found tuple",
        ),
        # send and recv
        (
            "s = (f32[8], u32[], token[]) send(p, k), channel_id=1, is_host_transfer=true\n"
            "d = token[] send-done(s), channel_id=1",
            "s = (f32[8], u32[], token[]) send(p, k), channel_id=1, is_host_transfer=true\n"
            "d = token[] send-done(s), channel_id=1, is_host_transfer=true",
            "same is-host-transfer property as %s",
        ),
    ],
)
def test_a_rule_refuses_one_and_accepts_the_other(wrong: str, right: str, message: str) -> None:
    found = problems(wrong)
    assert any(message in problem for problem in found), found
    assert problems(right) == []
