"""Rules that depend on the header or on options, and the places of problems."""

from __future__ import annotations

import pytest
from tests.verifier.problems import CALLEES, ENTRY, problems

from hloopt.text import parse_module
from hloopt.verifier import ANY_TARGET, VerifierOptions, verify_module
from hloopt.verifier.option_docs import option_infos
from hloopt.verifier.rules import (
    COMPUTATION_RULES,
    INSTRUCTION_RULES,
    MODULE_RULES,
    SHAPED_RULES,
    load,
)

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
