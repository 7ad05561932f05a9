"""Each rule that refuses a module says what is wrong in the words of XLA's verifier."""

from __future__ import annotations

import re

import pytest

from hloopt.ir import Opcode
from hloopt.text import parse_module
from hloopt.verifier import VerifierOptions, verify_module

CALLEES = """
neg { v = f32[8] parameter(0)  ROOT n = f32[8] negate(v) }
fused { v = f32[8] parameter(0)  ROOT n = f32[8] negate(v) }
both { v = f32[8] parameter(0)  w = f32[8] parameter(1)  ROOT n = f32[8] add(v, w) }
sum { x = f32[] parameter(0)  y = f32[] parameter(1)  ROOT a = f32[] add(x, y) }
step { x = f32[] parameter(0)  y = f32[] parameter(1)  a = f32[] add(x, y)
  ROOT t = (f32[], f32[]) tuple(a, a) }
"""
ALIAS = "output_to_operand_aliasing="
BUFFER = 'c = b(f32[8]) custom-call(), custom_call_target="CreateBuffer"\n'
PAIRS = "frontend_attributes={_xla_send_recv_source_target_pairs=%s}"
IN_PLACE = "source_target_pairs={{0,1}}, slice_sizes={{4}}"
OFFSETS = "z = s32[] constant(0)\no = (s32[]) tuple(z)\n"


def problems(body: str, header: str = "", options: VerifierOptions | None = None) -> list[str]:
    """What the verifier says of an entry computation with these lines, without the places."""
    named = re.findall(r"(?:to_apply|calls|body|condition|computation|computations)=\{?(\w+)", body)
    needed = [c for c in re.split(r"\n(?=\w)", CALLEES) if c.split(" ")[0].strip() in named]
    text = f"""HloModule m{f", {header}" if header else ""}
{"".join(f"{callee.strip()}{chr(10)}" for callee in needed)}
ENTRY e {{
  p = f32[8] parameter(0)
  h = bf16[8] parameter(1)
  k = token[] parameter(2)
  b = pred[] parameter(3)
  {body}
}}
"""
    found = [error.message for error in verify_module(parse_module(text), options)]
    return [re.sub(r"^%[\w.-]+: ", "", message) for message in found]


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
        # collectives
        (
            "a = (f32[8], bf16[8]) all-to-all(p, h), replica_groups={{0,1}}",
            "HLO all-to-all has operands with different shapes: the 0th operand shape f32[8]{0}, "
            "but the 1th operand has shape bf16[8]{0}",
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
        ("x = f32[] parameter(12345678901)", "'12345678901' is no parameter number"),
    ],
)
def test_what_a_rule_says(body: str, message: str) -> None:
    assert message in problems(body)


@pytest.mark.parametrize(
    ("body", "header", "layout_sensitive", "message"),
    [
        (
            "m = f32[8] negate(p)\nROOT t = (f32[8], f32[8]) tuple(m, m)",
            "input_output_alias={ {0}: (0, {}), {1}: (0, {}) }",
            False,
            "input_output_alias of output {1}: Input 0 at index {} is already aliased with another "
            "output",
        ),
        (
            "n = f32[8] negate(p)",
            "buffer_donor={ (2, {}) }",
            False,
            "buffer_donor: parameter 2 has no array at index {}",
        ),
        (
            "n = f32[8] negate(p)",
            "input_output_alias={ {}: (1, {}, must-alias) }",
            False,
            "input_output_alias of output {}: Shape and memory space of the result f32[8]{0} must "
            "be the same as the shape and memory space of aliased Input 1 at index {} "
            "(bf16[8]{0})",
        ),
        (
            "n = f32[8] negate(p)",
            "input_output_alias={ {}: (1, {}) }",
            True,
            "input_output_alias of output {}: Expected aliased Input 1 at index {} and output to "
            "have the same size: bf16[8]{0} and f32[8]{0}",
        ),
        (
            "n = f32[8] negate(p), sharding={devices=[4]<=[4]}",
            "num_partitions=2",
            False,
            "Invalid sharding for instruction: tile_assignment should have 2 devices but has 4",
        ),
        (
            "n = f32[8] negate(p), sharding={devices=[1]0}",
            "num_partitions=2",
            False,
            "Invalid sharding for instruction: tile_assignment should have 2 devices but has 1",
        ),
        (
            "z = s32[] constant(0)\nd = f32[4]{0:S(5)} dynamic-slice(p, z), dynamic_slice_sizes={4}",
            "",
            True,
            "DynamicSlice instruction shouldn't change layout memory space from device to host: "
            "f32[8]{0} to f32[4]{0:S(5)}",
        ),
        (
            "z = f32[] constant(0)\n"
            "s = (f32[8], f32[]) scan(p, z), dimensions={0}, num_carries=1, to_apply=step",
            "",
            True,
            "Non-associative scan reached layout-sensitive HloVerifier; the pass ScanExpander "
            "turns it into a loop",
        ),
    ],
)
def test_what_a_rule_says_with_a_header_or_option(
    body: str, header: str, layout_sensitive: bool, message: str
) -> None:
    options = VerifierOptions(layout_sensitive=layout_sensitive)
    assert message in problems(body, header, options)


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (
            f"t = (f32[8], u32[], token[]) send(p, k), channel_id=1, {PAIRS % '{{0,1}}'}\n"
            "e.1 = token[] send-done(t), channel_id=1",
            "Expected recv to match send %s, which is scheduled before",
        ),
        (
            "t = (f32[8], u32[], token[]) recv(k), channel_id=1, "
            f"{PAIRS % '{{0,1},{0,2}}'}\ne.1 = (f32[8], token[]) recv-done(t), channel_id=1",
            "Expected send and recv instructions to have unique source and target pairs (the "
            "other one is %s)",
        ),
    ],
)
def test_schedules_that_wait_for_ever(second: str, message: str) -> None:
    pairs = "{{0,1},{0,2}}" if "unique" in message else "{{0,1}}"
    body = (
        f"s = (f32[8], u32[], token[]) send(p, k), channel_id=1, {PAIRS % pairs}\n"
        f"d = token[] send-done(s), channel_id=1\n{second}"
    )
    options = VerifierOptions(verify_no_collective_deadlocks=True)
    assert message in problems(body, "is_scheduled=true", options)


def test_an_async_start_without_a_tuple() -> None:
    """Text and protos cannot say it; a pass could leave it behind."""
    module = parse_module(
        "neg { v = f32[8] parameter(0)  ROOT n = f32[8] negate(v) }\n"
        "ENTRY e { p = f32[8] parameter(0)  s = ((f32[8]), f32[8]) async-start(p), calls=neg  "
        "ROOT d = f32[8] async-done(s) }"
    )
    (start,) = module.instructions(Opcode.ASYNC_START)
    start.set_shape(start.operands[0].shape)
    (error,) = verify_module(module)
    assert error.message == (
        "%s: The async-start expects a tuple of operands and results, found f32[8]"
    )
