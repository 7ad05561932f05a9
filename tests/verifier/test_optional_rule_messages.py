"""Messages of rules that depend on the header, on an option, or on what passes leave behind."""

from __future__ import annotations

import pytest
from tests.verifier.entry_problems import PAIRS, problems

from hloopt.diagnostics import HloError
from hloopt.ir import Instruction, Module
from hloopt.text import parse_module
from hloopt.verifier import VerifierOptions, verify_module
from hloopt.verifier.verify import VerifiedState, verify_changes


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
            "n = f32[8] negate(p)",
            "input_output_alias={ {}: (9, {}) }",
            False,
            "input_output_alias of output {}: there is no parameter 9, the entry computation has 4",
        ),
        (
            "n = f32[8] negate(p)",
            "entry_computation_layout={(f32[4], bf16[8], token[], pred[])->f32[8]}",
            False,
            "Shape of the entry computation parameter 0 is f32[8]{0} should be compatible to the "
            "one specified in module's entry computation layout f32[4]{0}",
        ),
        (
            "c = f32[4] bitcast(p)",
            "",
            True,
            "Bitcast cannot have different shape sizes of output (16) and operand (32) (f32[4]{0}) "
            "(f32[8]{0})",
        ),
        (
            "n = f32[8] negate(p), sharding={maximal device=2}",
            "num_partitions=2",
            False,
            "Invalid sharding for instruction: device 2 >= num_devices (2) in tile assignment",
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
            "z = s32[] constant(0)\n"
            "d = f32[4]{0:S(5)} dynamic-slice(p, z), dynamic_slice_sizes={4}",
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


def test_a_name_that_is_not_that_of_the_schedule() -> None:
    body = 'n = f32[8] negate(p), metadata={scheduling_name="other"}'
    assert problems(body, options=VerifierOptions(verify_instruction_name_unchanged=True)) == [
        "Expected instruction name to remain the same. Was 'other' in scheduling, is 'n'"
    ]


# -- what no text says, but a pass could leave behind ---------------------------------------------

CALLS = """neg { v = f32[8] parameter(0)  ROOT n = f32[8] negate(v) }
abs { v = f32[8] parameter(0)  ROOT n = f32[8] abs(v) }
run { v = f32[8] parameter(0)  ROOT n = f32[8] sine(v) }
ENTRY e {
  p = f32[8] parameter(0)
  s = ((f32[8]), f32[8]) async-start(p), calls=run
  d = f32[8] async-done(s)
  a = f32[8] call(d), to_apply=abs
  ROOT f = f32[8] fusion(a), kind=kLoop, calls=neg
}"""


def instruction(module: Module, name: str) -> Instruction:
    return next(i for i in module.entry.instructions if i.name == name)


def messages(module: Module) -> list[str]:
    return [error.message for error in verify_module(module)]


def test_an_async_start_without_a_tuple() -> None:
    module = parse_module(CALLS)
    start = instruction(module, "s")
    start.set_shape(start.operands[0].shape)
    assert messages(module) == [
        "%s: The async-start expects a tuple of operands and results, found f32[8]"
    ]


def test_callers_of_no_computation_or_of_several() -> None:
    module = parse_module(CALLS)
    instruction(module, "s").set_called(())
    fusion = instruction(module, "f")
    fusion.set_called((*fusion.called, *instruction(module, "a").called))
    found = messages(module)
    assert "%d: async-done calls no computation" in found
    assert "%f: a fusion calls one computation" in found


def test_a_module_without_an_entry() -> None:
    assert messages(Module("m")) == ["module m has no entry computation"]


@pytest.mark.parametrize(
    ("count", "more"), [(2, " (and 1 more problem)"), (3, " (and 2 more problems)")]
)
def test_the_first_of_several_problems_counts_the_others(count: int, more: str) -> None:
    lines = "  ".join(f"i{n} = pred[4] iota(), iota_dimension=0" for n in range(count))
    module = parse_module(f"ENTRY e {{ {lines} ROOT p = f32[] parameter(0) }}")
    with pytest.raises(HloError) as raised:
        verify_changes(module, VerifiedState(), VerifierOptions())
    assert raised.value.message.endswith(f", got PRED{more}")


def test_an_entry_that_something_calls() -> None:
    module = parse_module(CALLS)
    call = instruction(module, "a")
    call.set_called((module.entry,))
    assert "%a calls the entry computation %e" in messages(module)
