"""Rules on aliasing, calls, types, shardings and buffers: each with a wrong and a right program."""

from __future__ import annotations

import pytest
from tests.verifier.problems import problems

BUFFER = 'c = b(f32[8]) custom-call(), custom_call_target="CreateBuffer"\n'


@pytest.mark.parametrize(
    ("wrong", "right", "message"),
    [
        # aliasing
        (
            'c = f32[4] custom-call(p), custom_call_target="f", '
            "output_to_operand_aliasing={{}: (0, {})}",
            'c = f32[8] custom-call(p), custom_call_target="f", '
            "output_to_operand_aliasing={{}: (0, {})}",
            "Different aliasing shapes",
        ),
        (
            'c = f32[8] custom-call(p), custom_call_target="f", '
            "output_to_operand_aliasing={{}: (1, {})}",
            'c = f32[8] custom-call(p), custom_call_target="f", output_to_operand_aliasing={}',
            "Operand number 1 in aliasing config is out of bounds",
        ),
        (
            'c = f32[8] custom-call(p), custom_call_target="f", '
            "output_to_operand_aliasing={{1}: (0, {})}",
            'c = (f32[8], f32[8]) custom-call(p), custom_call_target="f", '
            "output_to_operand_aliasing={{1}: (0, {})}",
            "Invalid aliasing output shape index {1}",
        ),
        # calls
        (
            "w = f32[8] while(p), body=side, condition=yes",
            "w = f32[8] while(p), body=neg, condition=yes",
            "expects parent computation thread name",
        ),
        (
            "c = f32[8] call(p), to_apply=neg, is_composite=true",
            "c = f32[8] call(p), to_apply=neg, is_composite=true, "
            'frontend_attributes={composite.name="n"}',
            "must have frontend attributes",
        ),
        (
            "c = f32[8] conditional(b, p, h), true_computation=neg, false_computation=neg",
            "c = f32[8] conditional(b, p, p), true_computation=neg, false_computation=neg",
            "operand 2 shape does not match parameter of branch %neg",
        ),
        (
            "f = bf16[8] fusion(p), kind=kLoop, calls=fused",
            "f = f32[8] fusion(p), kind=kLoop, calls=fused",
            "Fused computation shape",
        ),
        (
            "f = f32[8] fusion(p), kind=kLoop, calls=fused\n"
            "g = f32[8] fusion(f), kind=kLoop, calls=fused",
            "f = f32[8] fusion(p), kind=kLoop, calls=fused\n"
            "g = f32[8] fusion(f), kind=kLoop, calls=neg",
            "%fused belongs to fusion %f",
        ),
        # element types and sizes
        ("a = f32[8] add(p, h)", "a = f32[8] add(p, p)", "different precisions"),
        (
            "z = f32[] constant(0)\nr = s32[4] rng(z, z), distribution=rng_uniform",
            "z = f32[] constant(0)\nr = f32[4] rng(z, z), distribution=rng_uniform",
            "compatible element types",
        ),
        (
            "i = pred[4] iota(), iota_dimension=0",
            "i = s32[4] iota(), iota_dimension=0",
            "got PRED",
        ),
        (
            "c = pred[8] compare(p, p), direction=LT, type=SIGNED",
            "c = pred[8] compare(p, p), direction=LT, type=TOTALORDER",
            "Expected comparison type FLOAT or TOTALORDER",
        ),
        (
            'u = f32[?] custom-call(), custom_call_target="f"',
            'u = f32[<=8] custom-call(), custom_call_target="f"',
            "Unbounded dynamism is disabled",
        ),
        (
            "m = f32[8] map(h), dimensions={0}, to_apply=same",
            "m = bf16[8] map(h), dimensions={0}, to_apply=half",
            "Shape mismatch between to_apply computation parameter and operand 0",
        ),
        (
            "m = s32[8] map(p), dimensions={0}, to_apply=whole",
            "m = f32[8] map(p), dimensions={0}, to_apply=same",
            "Shape mismatch between to_apply computation parameter and operand 0",
        ),
        (
            "z = f32[] constant(1)\nm = f32[8] map(p, h), dimensions={0}, to_apply=add",
            "z = f32[] constant(1)\nm = f32[8] map(p, p), dimensions={0}, to_apply=add",
            "Seen floating point types of different precisions",
        ),
        # shardings, origins
        (
            "n = f32[8] negate(p), sharding={maximal device=-1}",
            "n = f32[8] negate(p), sharding={maximal device=7}",
            "device -1 is negative",
        ),
        (
            "n = f32[8] negate(p), sharding={maximal_mesh[device_id=-2]}",
            "n = f32[8] negate(p), sharding={maximal_mesh[device_id=2]}",
            "device -2 is negative",
        ),
        (
            "n = f32[8] negate(p), sharding={devices=[2]0,-1}",
            "n = f32[8] negate(p), sharding={devices=[2]0,1}",
            "device -1 is negative",
        ),
        (
            "t = (f32[8], (f32[8])) tuple(p, (f32[8]) tuple(p)), "
            "sharding={{replicated},{maximal device=-3}}",
            "t = (f32[8], (f32[8])) tuple(p, (f32[8]) tuple(p)), "
            "sharding={{replicated},{maximal device=3}}",
            "device -3 is negative",
        ),
        (
            "n = f32[8] negate(p), sharding={devices=[2,2]0,1,2,3}",
            "n = f32[8] negate(p), sharding={devices=[2,2]0,1,2,3 last_tile_dim_replicate}",
            "is different than the input rank",
        ),
        (
            "n = f32[8] negate(p), sharding={devices=[2]1,1}",
            "n = f32[8] negate(p), sharding={devices=[2]1,0}",
            "device 1 is not unique",
        ),
        (
            "t = (f32[8], f32[8]) tuple(p, p), sharding={{replicated},{replicated},{manual}}",
            "t = (f32[8], f32[8]) tuple(p, p), sharding={{replicated},{manual}}",
            "3 shardings for 2 leaves",
        ),
        (
            "w = f32[8] while(p), body=neg, condition=shown, sharding={replicated}",
            "w = f32[8] while(p), body=neg, condition=yes, sharding={replicated}",
            "Inconsistent while sharding",
        ),
        (
            'n = f32[8] negate(p), origin={({"v"})}',
            'n = f32[8] negate(p), origin={{"v"}}',
            "Mismatched tuple structure",
        ),
        # buffers
        (
            'a = b(f32[8]) custom-call(p), custom_call_target="f"\nz = f32[8] negate(p)',
            'a = b(f32[8]) custom-call(), custom_call_target="CreateBuffer"\nz = f32[8] negate(p)',
            "buffer is used in results but not in operands: {}",
        ),
        (
            BUFFER + 'a = (b(f32[8]), (s32[], b(f32[8]))) custom-call(c), custom_call_target="f", '
            "output_to_operand_aliasing={{0}: (0, {})}\nz = f32[8] negate(p)",
            BUFFER + 'a = (b(f32[8]), (s32[], f32[8])) custom-call(c), custom_call_target="f", '
            "output_to_operand_aliasing={{0}: (0, {})}\nz = f32[8] negate(p)",
            "buffer is used in results but not in operands: {1,1}",
        ),
        (
            'a = b(f32[8]) custom-call(p), custom_call_target="CreateBuffer"\nz = f32[8] negate(p)',
            'a = b(f32[8]) custom-call(), custom_call_target="CreateBuffer"\nz = f32[8] negate(p)',
            "CreateBuffer can't have an operand",
        ),
        (
            'a = f32[8] custom-call(), custom_call_target="CreateBuffer"',
            'a = f32[8] custom-call(), custom_call_target="CreateAnything"',
            "CreateBuffer must have one buffer result",
        ),
        (
            'a = f32[8] custom-call(p), custom_call_target="Pin", '
            "output_to_operand_aliasing={{}: (0, {})}",
            'a = b(f32[8]) custom-call(p), custom_call_target="Pin", '
            "output_to_operand_aliasing={{}: (0, {})}\nz = f32[8] negate(p)",
            "custom-call to Pin must have one buffer result",
        ),
        (
            'a = f32[8] custom-call(p), custom_call_target="Unpin", '
            "output_to_operand_aliasing={{}: (0, {})}",
            BUFFER + 'a = f32[8] custom-call(c), custom_call_target="Unpin", '
            "output_to_operand_aliasing={{}: (0, {})}",
            "custom-call to Unpin must have one buffer operand",
        ),
        (
            BUFFER + "a = b(f32[8]) copy(c)\nz = f32[8] negate(p)",
            BUFFER + "a = (b(f32[8])) tuple(c)\nz = f32[8] negate(p)",
            "Seen buffers while buffers aren't allowed in this context",
        ),
        (
            BUFFER + "a = b(f32[8]) fusion(c), kind=kLoop, calls=write\nz = f32[8] negate(p)",
            BUFFER + "a = b(f32[8]) while(c), body=write, condition=always\nz = f32[8] negate(p)",
            "Seen buffers while buffers aren't allowed in this context",
        ),
        (
            'a = b(f32[8]) custom-call(p), custom_call_target="Pin"\nz = f32[8] negate(p)',
            'a = b(f32[8]) custom-call(p), custom_call_target="Pin", '
            "output_to_operand_aliasing={{}: (0, {})}\nz = f32[8] negate(p)",
            "must have one output-to-operand aliasing",
        ),
        (
            'r = u64[] custom-call(p), custom_call_target="GetRngSeed"',
            'r = u64[] custom-call(), custom_call_target="GetRngSeed"',
            "must have 0 operands",
        ),
    ],
)
def test_a_rule_refuses_one_and_accepts_the_other(wrong: str, right: str, message: str) -> None:
    found = problems(wrong)
    assert any(message in problem for problem in found), found
    assert problems(right) == []
