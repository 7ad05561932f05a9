"""Each rule that refuses a module says what is wrong in the words of XLA's verifier."""

from __future__ import annotations

import pytest
from tests.verifier.entry_problems import ALIAS, BUFFER, IN_PLACE, OFFSETS, problems


def ragged(sizes: str) -> str:
    vectors = f"v = s32[2] constant({{0, 0}})\nw = {sizes} constant({{...}})\n"
    return f"{vectors}r = f32[8] ragged-all-to-all(p, p, v, w, v, v), replica_groups={{{{0,1}}}}"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        # aliasing
        (
            f"s = ((f32[8]), f32[8]) async-start(p), calls=neg, {ALIAS}{{{{}}: (0, {{}})}}\n"
            "d = f32[8] async-done(s)",
            "Output index should not be empty.",
        ),
        (
            f'c = f32[8] custom-call(p), custom_call_target="f", {ALIAS}{{{{}}: (-1, {{}})}}',
            "Negative operand number in aliasing config.",
        ),
        # asynchronous operations
        (
            "s = ((f32[8], f32[8]), f32[8]) async-start(p), calls=both\nd = f32[8] async-done(s)",
            "The async-start expects 2 operands, found 1",
        ),
        (
            "s = ((f32[8]), f32[8]) async-start(p), calls=neg\n"
            "u = ((f32[8]), f32[8]) async-update(s, p)\nd = f32[8] async-done(u)",
            "The async-update has 1 new operands, but the shape indicates 0 new bound parameters",
        ),
        (
            "s = ((f32[8]), f32[8]) async-start(p), calls=neg\n"
            "u = ((f32[8]), ()) async-update(s)\nd = f32[8] async-done(u)",
            "The async-update expects the shape of the previous async instruction to be a prefix "
            "of its own (((f32[8]), f32[8]) vs ((f32[8]), ()))",
        ),
        (
            "s = ((), f32[8]) async-start(), calls=neg\nd = f32[8] async-done(s)",
            "The async-done expects the operands of the previous async instruction to be fully "
            "bound: 0 of 1 are",
        ),
        (
            "s = ((f32[8]), f32[8]) async-start(h), calls=neg\nd = f32[8] async-done(s)",
            "The async-start expects the shape of operand 0 to match the async shape at index "
            "{0, 0} (bf16[8] vs f32[8])",
        ),
        # buffers
        (
            BUFFER + 'a = (b(f32[8]), b(f32[8])) custom-call(c), custom_call_target="f", '
            f"{ALIAS}{{{{0}}: (0, {{}}), {{1}}: (0, {{}})}}\nz = f32[8] negate(p)",
            "buffer is used in results multiple times: operand 0 ShapeIndex {}",
        ),
        (
            BUFFER + 'a = f32[8] custom-call(c), custom_call_target="f"',
            "buffer is used in operands but not in results: operand 0 ShapeIndex {}",
        ),
        (
            'r = u32[] custom-call(), custom_call_target="GetRngSeed"',
            "GetRngSeed custom call must return U64 type, not u32[]",
        ),
        (
            BUFFER + 'a = f32[8] custom-call(c, p), custom_call_target="Unpin", '
            f"{ALIAS}{{{{}}: (0, {{}})}}",
            "custom-call to Unpin must have one operand",
        ),
        # calls
        (
            "c = f32[8] call(p), to_apply=neg, is_composite=true, "
            'frontend_attributes={composite.name="n", composite.version="x"}',
            "A composite call op must have frontend attributes with a composite.version whose "
            "value is a non-negative integer, not 'x'",
        ),
        (
            "c = f32[8] conditional(b, p), true_computation=neg, false_computation=neg",
            "2 branches need 3 operands, found 2",
        ),
        (
            "f = f32[8] fusion(h), kind=kLoop, calls=fused",
            "Shape mismatch between parameter number 0 and its operand (f32[8]{0} != bf16[8]{0})",
        ),
        (
            "s = (f32[8], u32[], token[]) send(p, k), channel_id=1\n"
            "d = token[] send-done(s), channel_id=2",
            "Expected to have the same channel id as %s",
        ),
        (
            "c = f32[8] conditional(b, p, p), true_computation=both, false_computation=neg",
            "Expected computation both called from c to have 1 parameters, has 2",
        ),
        (
            "f = bf16[8] fusion(p), kind=kLoop, calls=fused",
            "Fused computation shape (f32[8]{0}) is not equal to the fusion shape (bf16[8]{0})",
        ),
        (
            "f = f32[8] fusion(p), kind=kLoop, calls=both",
            "Fused parameter count (2) is greater than the number of operands (1) passed to the "
            "fusion instruction",
        ),
        (
            "f = f32[8] fusion(p), kind=kLoop, calls=fused\n"
            "g = f32[8] fusion(f), kind=kLoop, calls=fused",
            "Instruction of fused computation does not match: %fused belongs to fusion %f",
        ),
        (
            "w = f32[8] while(p), body=neg, condition=shown, sharding={replicated}",
            "Inconsistent while sharding among instructions: %w {replicated}, %v.1 {manual}",
        ),
        (
            'c = f32[8] call(p), to_apply=neg, is_composite=true, frontend_attributes={a="b"}',
            "A composite call op must have frontend attributes with a composite.name",
        ),
        (
            "m = f32[8] map(p), dimensions={0}, to_apply=sum",
            "Expected computation sum called from m to have 1 parameters, has 2",
        ),
        (
            "s = (f32[8], u32[], token[]) send(p, k), channel_id=1\n"
            "d = (f32[8], token[]) recv-done(s), channel_id=1",
            "The operand of a recv-done instruction needs to be recv, found send",
        ),
        # collectives
        (
            "a = f32[16] all-gather(p), dimensions={0}, use_global_device_ids=true",
            "Cannot have use_global_device_ids=true without channel_id",
        ),
        (
            "a = (f32[8], bf16[8]) all-to-all(p, h), replica_groups={{0,1}}",
            "HLO all-to-all has operands with different shapes: the 0th operand shape f32[8]{0}, "
            "but the 1th operand has shape bf16[8]{0}",
        ),
        (
            "a = f32[8] all-reduce(p), to_apply=sum, replica_groups={{0,1},{4}}",
            "Replica 4 is out of range (should be in [0, 3) range) in instruction's replica-groups",
        ),
        (
            "a = f32[24] all-gather(p), dimensions={0}, replica_groups={{0,1}}",
            "shard_count = 3, subgroup_size = 2: dimension 0 grows or shrinks by another factor "
            "than the replica groups have members",
        ),
        (
            "r = f32[8] ragged-all-to-all(p, p), replica_groups={{0,1}}",
            "RaggedAllToAll must have 6 operands, found 2",
        ),
        (ragged("s32[1,1,2]"), "RaggedAllToAll operand 3 must be rank 1 or 2, not s32[1,1,2]"),
        (
            ragged("s32[4]"),
            "RaggedAllToAll has operands with different shapes: operand 2 is s32[2], operand 3 is "
            "s32[4]",
        ),
        (
            "a = f32[8] collective-permute(p), source_target_pairs={{0,1},{0,2}}",
            "Source 0 appears more than once in instruction's source-target pairs: {{0,1},{0,2}}",
        ),
        (
            "a = f32[8] collective-permute(p), source_target_pairs={{-1,0}}",
            "Source -1 in the instruction's source-target pair must be >= 0",
        ),
        (
            f"a = f32[8] collective-permute(p), {IN_PLACE}",
            "an in-place collective-permute has 4 operands",
        ),
        (
            f"{OFFSETS}t = (f32[8]) tuple(p)\n"
            f"a = f32[8] collective-permute(p, t, o, o), {IN_PLACE}",
            "Unmatching input buffers and output buffers.",
        ),
        (
            f"{OFFSETS}t = (f32[8], f32[8]) tuple(p, p)\nu = ((s32[])) tuple(o)\n"
            f"a = (f32[8], f32[8]) collective-permute(t, t, u, u), {IN_PLACE}",
            "Unmatching input buffers and input offset.",
        ),
        (
            f"{OFFSETS}u = (s32[], s32[]) tuple(z, z)\n"
            f"a = f32[8] collective-permute(p, p, o, u), {IN_PLACE}",
            "Unmatching output buffers and output offset.",
        ),
        (
            f"{OFFSETS}u = ((s32[]), (s32[])) tuple(o, o)\n"
            "a = f32[8] collective-permute(p, p, u, u), slice_sizes={{4},{4}}, "
            "source_target_pairs={{0,1},{0,2},{0,3}}",
            "Source 0 appears more than 2 times in instruction's source-target pairs: "
            "{{0,1},{0,2},{0,3}}",
        ),
        # layouts, element types and sizes
        (
            "z = f32[] constant(0)\nr = f32[4] rng(z), distribution=rng_uniform",
            "Expected 2 operands for rng instruction, found 1",
        ),
        (
            "r = f32[8] rng(p, p), distribution=rng_uniform",
            "Expected scalar types for the two operands of Rng instruction",
        ),
        (
            "z = s32[] constant(0)\nr = s32[4] rng(z, z), distribution=rng_normal",
            "Element type not supported. Expected element to be FloatingPointType for RngNormal, "
            "not s32",
        ),
        (
            "z = c64[] constant((0, 0))\nr = c64[4] rng(z, z), distribution=rng_uniform",
            "Element type not supported. Expected element to be of floating point type, integral "
            "type or predicate type for RngUniform, not c64",
        ),
        (
            "i = (s32[4]) iota(), iota_dimension=0",
            "Iota does not support non-array result.",
        ),
        (
            "i = pred[4] iota(), iota_dimension=0",
            "Only support iota of integral, floating point or complex primitive types, got PRED",
        ),
        (
            "i = s32[4] iota(), iota_dimension=-1",
            "The iota dimension cannot go beyond the operation rank or be negative.",
        ),
        (
            "l = f8e4m3fn[4,8] constant({...})\nm = f8e8m0fnu[4,8] constant({...})\n"
            "d = f32[4,4] scaled-dot(l, l, m, m), lhs_contracting_dims={}, "
            "rhs_contracting_dims={}",
            "Scaled dot expects one contracting dimension, operand l has 0",
        ),
        (
            "n = bf16[8] copy(p)",
            "Expected instruction to have shape equal to f32[8], actual shape is bf16[8]",
        ),
        (
            'ROOT c = b(f32[8]) custom-call(), custom_call_target="CreateBuffer"',
            "buffers aren't allowed in this context: b(f32[8]{0}) of the entry computation",
        ),
        # shardings
        (
            "n = f32[8] negate(p), sharding={{replicated}}",
            "Invalid sharding for instruction: Sharding is tuple-shaped but validation shape is "
            "not.",
        ),
        (
            "n = f32[8] negate(p), sharding={devices=[2]1,1}",
            "Invalid sharding for instruction: device 1 is not unique in tile assignment",
        ),
        # structure
        ("x = f32[] parameter(12345678901)", "'12345678901' is not a parameter number"),
    ],
)
def test_what_a_rule_says(body: str, message: str) -> None:
    assert message in problems(body)
