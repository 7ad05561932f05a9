"""The whole words of rules that other tests know by a part of them."""

from __future__ import annotations

import pytest
from tests.verifier.entry_problems import ALIAS, BUFFER, PAIRS, problems

from hloopt.verifier import VerifierOptions

START = "s = ((f32[8]), f32[8]) async-start(p), calls=neg\n"
HOST = "channel_id=1, is_host_transfer=true"
SCALED = "d = f32[4,4] scaled-dot(l, l, m, m), lhs_contracting_dims={1}, rhs_contracting_dims={1}"
SCALES = "l = f8e4m3fn[4,8] constant({...})\nm = f8e8m0fnu[%s] constant({...})\n"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        # aliasing
        (
            f'c = f32[8] custom-call(p), custom_call_target="f", {ALIAS}{{{{}}: (1, {{}})}}',
            "Operand number 1 in aliasing config is out of bounds.",
        ),
        (
            f'c = f32[4] custom-call(p), custom_call_target="f", {ALIAS}{{{{}}: (0, {{}})}}',
            "Different aliasing shapes: f32[8]{0} vs f32[4]{0}",
        ),
        (
            'n = f32[8] negate(p), origin={({"v"})}',
            "Mismatched tuple structure in original_value: leaf indices in shape and "
            "original_value do not match; in shape only: ",
        ),
        # asynchronous operations
        (START, "The async-start instruction requires one consumer, found 0"),
        (
            "s = f32[8] all-reduce-start(p), to_apply=sum\nn = f32[8] negate(s)",
            "The consumer of a all-reduce-start instruction needs to be one of (all-reduce-done), "
            "found negate",
        ),
        (
            START.replace("((f32[8])", "((bf16[8])") + "d = f32[8] async-done(s)",
            "The async-start expects the async shape at index {0} to be a tuple with shapes that "
            "match the prefix of the async computation parameter shape (",
        ),
        (
            START.replace(", f32[8])", ", bf16[8])") + "d = f32[8] async-done(s)",
            "The async-start expects the async shape at index {1} to be a tuple with shapes that "
            "match the prefix of the async computation result shape (",
        ),
        (
            START.replace("neg", "wide") + "d = f32[8] async-done(s)",
            "Asynchronous computation wide expected to contain only the root and parameter "
            "instructions",
        ),
        (
            START + "d = f32[4] async-done(s)",
            "The async-done expects its shape to match the async computation result shape (f32[4] "
            "vs f32[8])",
        ),
        # buffers
        (
            BUFFER + "a = b(f32[8]) copy(c)\nz = f32[8] negate(p)",
            "Seen buffers while buffers aren't allowed in this context: ",
        ),
        (
            'a = b(f32[8]) custom-call(p), custom_call_target="CreateBuffer"\nz = f32[8] negate(p)',
            "custom-call to CreateBuffer can't have an operand",
        ),
        (
            'a = f32[8] custom-call(), custom_call_target="CreateBuffer"',
            "custom-call to CreateBuffer must have one buffer result",
        ),
        (
            'a = b(f32[8]) custom-call(p), custom_call_target="Pin"\nz = f32[8] negate(p)',
            "custom-call to Pin must have one output-to-operand aliasing, found 0",
        ),
        (
            'r = u64[] custom-call(p), custom_call_target="GetRngSeed"',
            "GetRngSeed custom call must have 0 operands, but has 1",
        ),
        # calls and transfers
        (
            "w = f32[8] while(p), body=side, condition=shown",
            "Callable instruction expects parent computation thread name same as called "
            "computation's thread name (main vs side)",
        ),
        (
            f"s = (f32[8], u32[], token[]) send(p, k), {HOST}\n"
            "d = token[] send-done(s), channel_id=1",
            "Expected instructions to have the same is-host-transfer property as %s",
        ),
        (
            f"s = (f32[8], u32[], token[]) send(p, k), {HOST}\nd = token[] send-done(s), {HOST}\n"
            f"t = (f32[8], u32[], token[]) recv(k), {HOST}\n"
            f"e.1 = (f32[8], token[]) recv-done(t), {HOST}",
            "Host-transfer send/recv instructions that use the same channel must be identical up "
            "to having different operands; %",
        ),
        # collectives
        (
            "a = f32[8] all-reduce(p), to_apply=sum, channel_id=1, use_global_device_ids=true",
            "Replica groups must be specified in flattened-id mode",
        ),
        (
            "a = f32[8] all-reduce(p), to_apply=sum, replica_groups={{0},{}}",
            "Instruction cannot have an empty replica group",
        ),
        (
            "a = f32[16] all-gather(p), dimensions={0}, replica_groups={{0,1},{2}}",
            "Replica groups expected to be of uniform size, found sizes 1 to 2",
        ),
        (
            "a = f32[8] all-reduce(p), to_apply=sum, replica_groups={{0,1},{1,2}}",
            "Replica 1 is repeated in instruction's replica-groups",
        ),
        (
            "s = f32[16] all-gather-start(p), dimensions={0}\nd = f32[16] all-gather-done(s)",
            "the shape of an all-gather-start is a tuple of operands and results, not f32[16]",
        ),
        (
            "t = (f32[8]) tuple(p)\na = f32[16] all-gather(t), dimensions={0}",
            "operand 0 is (f32[8]), an array with a dimension 0 is needed",
        ),
        (
            "a = f32[16] all-gather(p, p), dimensions={0}",
            "2 operands need a tuple of as many results, not f32[16]",
        ),
        (
            "x = f32[8] all-reduce(p), to_apply=sum\n"
            "y = f32[8] all-reduce(p), to_apply=sum, constrain_layout=true",
            "HloModule has a mix of layout constrained and unconstrained AllReduce instructions, "
            "this one is constrained",
        ),
        # element types and sizes
        (
            "a = f32[8] add(p, h)",
            "Seen floating point types of different precisions, but mixed precision is "
            "disallowed: ",
        ),
        (
            'u = f32[?] custom-call(), custom_call_target="f"',
            "Unbounded dynamism is disabled for instruction: its shape is f32[?]",
        ),
        (
            "z = f32[] constant(0)\nr = s32[4] rng(z, z), distribution=rng_uniform",
            "Expected compatible element types for the result and the two operands of Rng "
            "instruction: s32 of f32 and f32",
        ),
        (
            SCALES % "" + SCALED,
            "At least one of the scales should be not a scalar in scaled-dot",
        ),
        (
            SCALES % "4" + SCALED,
            "Scale operand m has a different number of dimensions than operand l: ",
        ),
        (
            SCALES % "4,3" + SCALED,
            "Dimension 1 of operand l should be a multiple of dimension 1 of scale operand m: ",
        ),
        # shardings and structure
        (
            "n = f32[8] negate(p), sharding={maximal device=-1}",
            "device -1 is negative in tile assignment",
        ),
        (
            "n = f32[8] negate(p), sharding={devices=[2,2]0,1,2,3}",
            "Number of tile assignment dimensions (excluding subgroups) is different than the "
            "input rank. sharding={devices=[2,2]0,1,2,3}",
        ),
        (
            "x = f32[] parameter(7)",
            "parameter number 7: the computation has 5 parameters, numbered from 0 without gaps",
        ),
    ],
)
def test_the_words_of_a_rule(body: str, words: str) -> None:
    assert any(words in problem for problem in problems(body)), problems(body)


LAYOUT = VerifierOptions(layout_sensitive=True)
SENDS = VerifierOptions(verify_no_collective_deadlocks=True)
COLUMNS = "x = f32[4,2]{0,1} constant({...})\n"


@pytest.mark.parametrize(
    ("options", "body", "header", "words"),
    [
        (
            VerifierOptions(),
            "n = f32[8] negate(p)",
            "input_output_alias={ {}: (0, {}) }, buffer_donor={ (0, {}) }",
            "Input 0 at index {} is registered as a buffer donor. However, it is also in the input "
            "output alias config.",
        ),
        (
            VerifierOptions(),
            "n = f32[8] negate(p)",
            "input_output_alias={ {0}: (0, {}) }",
            "the entry computation has no such array",
        ),
        (
            VerifierOptions(),
            "n = f32[8] negate(p)",
            "entry_computation_layout={()->f32[8]}",
            "entry_computation_layout has 0 parameters, the entry computation 4",
        ),
        (
            VerifierOptions(),
            "n = f32[8] negate(p)",
            "entry_computation_layout={(f32[8], bf16[8], token[], pred[])->f32[4]}",
            "Shape of the root instruction of entry computation (f32[8]{0}) should be compatible "
            "to one specified in module's entry computation layout (f32[4]{0})",
        ),
        (
            VerifierOptions(verify_call_nested_computation_thread_name=True),
            "c = f32[8] call(p), to_apply=side",
            "",
            "c to_apply computation execution thread does not match (side vs main)",
        ),
        (
            SENDS,
            f"s = (f32[8], u32[], token[]) send(p, k), channel_id=1, {PAIRS % '{{0,1}}'}\n"
            "d = token[] send-done(s), channel_id=1\n"
            "a = f32[16] all-gather(p), dimensions={0}",
            "is_scheduled=true",
            "Introducing this all-gather will cause a deadlock: send %s is scheduled before, and "
            "what matches it is not",
        ),
        (
            SENDS,
            f"s = (f32[8], u32[], token[]) send(p, k), channel_id=1, {PAIRS % '{{0,1,2}}'}\n"
            "d = token[] send-done(s), channel_id=1",
            "is_scheduled=true",
            "_xla_send_recv_source_target_pairs holds something that is not a pair: {{0,1,2}}",
        ),
        (
            LAYOUT,
            "t = (f32[8]) tuple(p)\nn = (f32[8]) bitcast(t)",
            "",
            "Bitcast cannot have tuples as operand or output: (f32[8]{0}) to (f32[8]{0})",
        ),
        (
            LAYOUT,
            "n = f32[8]{0:S(5)} bitcast(p)",
            "",
            "Bitcast cannot have different memory spaces of output (5) and operand (0) (",
        ),
        (
            LAYOUT,
            "s = (f32[8]{0}, f32[8]{0:T(128)}, u32[]) copy-start(p)\nd = f32[8]{0} copy-done(s)",
            "",
            "Source and destination buffers in CopyDone arguments need to be the same shape found ",
        ),
        (
            VerifierOptions(
                layout_sensitive=True, instruction_can_change_layout="layout-assignment"
            ),
            COLUMNS + "n = f32[4,2]{1,0} negate(x)",
            "",
            "Instruction shouldn't change layouts: operand 0 is f32[4,2]{0,1}, the result ",
        ),
        (
            VerifierOptions(verify_no_host_memory_space=True),
            "c = f32[8]{0:S(5)} copy(p)",
            "",
            "Instruction shouldn't have the layout of host memory space",
        ),
        (
            VerifierOptions(verify_broadcast_dimensions_order=True),
            COLUMNS + "r = f32[2,4] broadcast(x), dimensions={1,0}",
            "",
            "Broadcast dimensions should be ordered, found {1,0}",
        ),
        (
            VerifierOptions(layout_sensitive=True, verify_reshape_is_bitcast=True),
            COLUMNS + "r = f32[8]{0} reshape(x)",
            "",
            "Reshape should be a physical bitcast: f32[4,2]{0,1} to f32[8]{0} moves data",
        ),
    ],
)
def test_the_words_of_a_rule_with_a_header_or_option(
    options: VerifierOptions, body: str, header: str, words: str
) -> None:
    found = problems(body, header, options)
    assert any(words in problem for problem in found), found
