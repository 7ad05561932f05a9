"""What each rule of the verifier refuses, and what beside it is fine."""

from __future__ import annotations

import re

import pytest

from hloopt.text import parse_module
from hloopt.verifier import ANY_TARGET, VerifierOptions, verify_module
from hloopt.verifier.options import option_infos
from hloopt.verifier.rules import (
    COMPUTATION_RULES,
    INSTRUCTION_RULES,
    MODULE_RULES,
    SHAPED_RULES,
    load,
)

CALLEES = """
add { x = f32[] parameter(0)  y = f32[] parameter(1)  ROOT a = f32[] add(x, y) }
half { x = bf16[] parameter(0)  ROOT n = bf16[] negate(x) }
same { x = f32[] parameter(0)  ROOT n = f32[] negate(x) }
whole { x = s32[] parameter(0)  ROOT n = s32[] negate(x) }
always { x = b(f32[8]) parameter(0)  ROOT n = pred[] constant(true) }
neg { v = f32[8] parameter(0)  ROOT n = f32[8] negate(v) }
fused { v = f32[8] parameter(0)  ROOT n = f32[8] negate(v) }
wide { v = f32[8] parameter(0)  c = f32[8] copy(v)  ROOT n = f32[8] negate(c) }
side { v = f32[8] parameter(0)  ROOT n = f32[8] negate(v) }, execution_thread="side"
yes { v = f32[8] parameter(0)  ROOT n = pred[] constant(true) }
shown { v = f32[8] parameter(0), sharding={manual}  ROOT n = pred[] constant(true) }
""" + (
    "write { x = b(f32[8]) parameter(0)  ROOT w = b(f32[8]) custom-call(x), "
    'custom_call_target="w", '
    "output_to_operand_aliasing={{}: (0, {})} }\n"
)
ENTRY = """HloModule m{header}
{callees}
ENTRY e {{
  p = f32[8] parameter(0)
  h = bf16[8] parameter(1)
  k = token[] parameter(2)
  b = pred[] parameter(3)
  {body}
}}
"""


def problems(body: str, header: str = "", options: VerifierOptions | None = None) -> list[str]:
    """What the verifier says about an entry computation with these lines."""
    names = re.findall(r"(?:to_apply|calls|body|condition|computation)=(\w+)", body)
    callees = "".join(
        line for line in CALLEES.splitlines(keepends=True) if line.split(" ")[0] in names
    )
    text = ENTRY.format(body=body, header=f", {header}" if header else "", callees=callees)
    return [error.message for error in verify_module(parse_module(text), options)]


BUFFER = 'c = b(f32[8]) custom-call(), custom_call_target="CreateBuffer"\n'
LAYOUT = VerifierOptions(layout_sensitive=True)
ASSIGNED = VerifierOptions(layout_sensitive=True, instruction_can_change_layout="layout-assignment")
SENDS = VerifierOptions(verify_no_collective_deadlocks=True)


def send(number: int, pairs: str) -> str:
    """A send with its done, between these devices."""
    return (
        f"sent.{number} = (f32[8], u32[], token[]) send(p, k), channel_id=1, "
        f"frontend_attributes={{_xla_send_recv_source_target_pairs={pairs}}}\n"
        f"d{number} = token[] send-done(sent.{number}), channel_id=1\n"
    )


def recv(number: int, pairs: str) -> str:
    """A recv with its done, between these devices."""
    return (
        f"r{number} = (f32[8], u32[], token[]) recv(k), channel_id=1, "
        f"frontend_attributes={{_xla_send_recv_source_target_pairs={pairs}}}\n"
        f"q{number} = (f32[8], token[]) recv-done(r{number}), channel_id=1\n"
    )


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


@pytest.mark.parametrize(
    ("body", "header", "message"),
    [
        (
            "a = f32[8] all-reduce(p), to_apply=add, replica_groups={{0,1}}",
            "replica_count=4",
            "In cross_replica mode, replica groups should contain 4 replicas, but found 2",
        ),
        (
            "a = f32[8] all-reduce(p), to_apply=add, replica_groups={{0,1}}, channel_id=1, "
            "use_global_device_ids=true",
            "replica_count=2, num_partitions=2",
            "In flattened_id mode, replica groups should contain 4 flattened IDs",
        ),
        (
            "a = f32[8] collective-permute(p), source_target_pairs={{0,2}}",
            "replica_count=2",
            "Target 2 in the instruction's source-target pair must be < 2",
        ),
        (
            "n = f32[8] negate(p), sharding={maximal device=2}",
            "num_partitions=2",
            "device 2 >= num_devices (2)",
        ),
        ("n = f32[8] negate(p)", "input_output_alias={ {}: (9, {}) }", "no parameter 9"),
        ("n = f32[8] negate(p)", "input_output_alias={ {0}: (0, {}) }", "no such array"),
        ("n = f32[8] negate(p)", "buffer_donor={ (2, {}) }", "parameter 2 has no array"),
        (
            "n = f32[8] negate(p)",
            "input_output_alias={ {}: (0, {}) }, buffer_donor={ (0, {}) }",
            "is registered as a buffer donor. However",
        ),
        (
            "n = f32[8] negate(p)",
            "entry_computation_layout={(f32[8], bf16[8], token[], pred[])->f32[4]}",
            "should be compatible to one specified",
        ),
        ("n = f32[8] negate(p)", "entry_computation_layout={()->f32[8]}", "has 0 parameters"),
    ],
)
def test_rules_know_the_header(body: str, header: str, message: str) -> None:
    found = problems(body, header)
    assert any(message in problem for problem in found), found
    assert problems(body) == []


@pytest.mark.parametrize(
    ("options", "body", "header", "message"),
    [
        (LAYOUT, "t = (f32[8]{0:S(1)}) tuple(p)\nc = f32[4,2]{0,1} constant({...})\n"
         "u = (f32[4,2]{1,0}) tuple(c)", "", "Expected instruction to have shape equal to"),
        (ASSIGNED, "x = f32[4,2]{0,1} constant({...})\nn = f32[4,2]{1,0} negate(x)", "",
         "Instruction shouldn't change layouts"),
        (VerifierOptions(layout_sensitive=True, verify_reshape_is_bitcast=True),
         "x = f32[4,2]{0,1} constant({...})\nr = f32[8]{0} reshape(x)", "",
         "Reshape should be a physical bitcast"),
        (VerifierOptions(verify_broadcast_dimensions_order=True),
         "x = f32[4,2] constant({...})\nr = f32[2,4] broadcast(x), dimensions={1,0}", "",
         "Broadcast dimensions should be ordered"),
        (VerifierOptions(verify_no_host_memory_space=True),
         "c = f32[8]{0:S(5)} copy(p)", "", "host memory space"),
        (VerifierOptions(verify_instruction_name_unchanged=True),
         'n = f32[8] negate(p), metadata={scheduling_name="other"}', "",
         "Was 'other' in scheduling, is 'n'"),
        (VerifierOptions(verify_call_nested_computation_thread_name=True),
         "c = f32[8] call(p), to_apply=side", "", "thread does not match (side vs main)"),
        (SENDS, send(0, "{{0,1}}") + send(1, "{{0,1}}"), "is_scheduled=true",
         "Expected recv to match send %sent.0"),
        (SENDS, send(0, "{{0,1}}") + recv(0, "{{0,2}}"), "is_scheduled=true",
         "the same source-target pairs"),
        (SENDS, send(0, "{{0,1},{1,0}}") + recv(0, "{{0,1},{1,0}}"), "is_scheduled=true",
         "non-cyclical"),
    ],
)  # fmt: skip
def test_some_rules_are_options(
    options: VerifierOptions, body: str, header: str, message: str
) -> None:
    found = problems(body, header, options)
    assert any(message in problem for problem in found), found
    assert problems(body, header) == []


def test_a_map_may_mix_precisions_where_that_is_allowed() -> None:
    body = "m = f32[8] map(h), dimensions={0}, to_apply=same"
    assert problems(body)
    assert problems(body, options=VerifierOptions(allow_mixed_precision=True)) == []
    body = "m = s32[8] map(p), dimensions={0}, to_apply=whole"
    assert problems(body, options=ANY_TARGET)


def test_replica_groups_need_not_fit_the_module() -> None:
    body = "a = f32[8] all-reduce(p), to_apply=add, replica_groups={{0,1}}"
    assert problems(body, "replica_count=4")
    lenient = VerifierOptions(check_replica_groups=False)
    assert problems(body, "replica_count=4", lenient) == []


def test_what_passes_leave_behind_is_allowed_between_them() -> None:
    body = "f = f32[8] fusion(p, p), kind=kLoop, calls=wide"
    text = CALLEES.replace("ROOT n = f32[8] negate(c) }", "ROOT n = f32[8] negate(v) }")
    module = parse_module(ENTRY.format(body=body, header="", callees=text))
    assert [e.message for e in verify_module(module)] == [
        "%c: Non-root instruction in fusion %f must have users"
    ]
    assert verify_module(module, ANY_TARGET) == []


def test_mixed_precision_and_unbounded_sizes_are_fine_for_any_target() -> None:
    body = 'a = f32[8] add(p, h)\nu = f32[?] custom-call(), custom_call_target="f"'
    assert len(problems(body)) == 2
    assert problems(body, options=ANY_TARGET) == []


@pytest.mark.parametrize("second", ["Unpin", "read"])
def test_a_buffer_is_written_once(second: str) -> None:
    alias = "output_to_operand_aliasing={{}: (0, {})}"
    body = f"""a = b(f32[8]) custom-call(p), custom_call_target="Pin", {alias}
  x = b(f32[8]) custom-call(a), custom_call_target="write", {alias}
  y = {"f32[8]" if second == "Unpin" else "b(f32[8])"} custom-call(SOURCE),
    custom_call_target="{second}", {alias}
  z = f32[8] negate(p)"""
    assert problems(body.replace("SOURCE", "x")) == []
    (message,) = problems(body.replace("SOURCE", "a"))
    assert message == "%a: an HLO buffer value has more than one writers (or unpins): %x, %y"


def test_a_wrong_operation_behind_sugar_is_placed_at_its_start() -> None:
    text = ENTRY.format(
        body='s = ((f32[8]), f32[8]) custom-call-start(p), custom_call_target="f",'
        " output_to_operand_aliasing={{}: (3, {})}\n  d = f32[8] custom-call-done(s)",
        header="",
        callees="",
    )
    (error,) = verify_module(parse_module(text))
    assert "Operand number 3" in error.message
    assert error.location is not None
    assert text.splitlines()[error.location[0] - 1].lstrip().startswith("s = ")


def test_a_problem_of_the_header_is_placed_there() -> None:
    text = ENTRY.format(
        body="n = f32[8] negate(p)", header=", input_output_alias={ {}: (9, {}) }", callees=""
    )
    (error,) = verify_module(parse_module(text))
    assert error.location == (1, 14)


def test_a_verdict_depends_on_the_setting() -> None:
    """Verdicts are remembered per setting: one must not leak into another."""
    body = "n = f32[8] negate(p), sharding={devices=[4]0,1,2,3}"
    for _ in range(2):
        assert problems(body) == []
        assert problems(body, "num_partitions=2")
        assert problems(body, "num_partitions=4") == []


def test_every_rule_says_what_it_checks_and_options_have_help() -> None:
    for rule in (*INSTRUCTION_RULES, *SHAPED_RULES, *COMPUTATION_RULES, *MODULE_RULES):
        assert load(rule.function).__doc__
        for option in filter(None, (rule.option, rule.unless)):
            assert option in VerifierOptions._fields
    assert [info.name for info in option_infos()] == list(VerifierOptions._fields)
    assert all(info.doc for info in option_infos())
