"""The line of an instruction: its own, that of what it moves, or of what it is near to."""

from __future__ import annotations

import pytest
from tests.analysis.source_lines.lines import at, entry, line_of

from hloopt.analysis.source_lines import Basis


def test_the_metadata_of_an_instruction_comes_first() -> None:
    text = entry(f"a = f32[8] negate(p), {at(1)}", f"ROOT b = f32[8] copy(a), {at(2)}")
    assert line_of(text, "b") == ("m.py:2", Basis.METADATA)


def test_arguments_are_named() -> None:
    text = entry("q = (f32[8], f32[8]) parameter(1)", "ROOT b = f32[8] copy(p)")
    assert line_of(text, "p") == ("(argument) w", Basis.ARGUMENT)
    assert line_of(text, "q") == ("(argument) %q", Basis.ARGUMENT)
    assert line_of(text, "q", (1,)) == ("(argument) %q{1}", Basis.ARGUMENT)


def test_an_argument_with_a_line_is_from_there() -> None:
    text = f"ENTRY e {{ ROOT p = (f32[8]) parameter(0), {at(4)} }}"
    assert line_of(text, "p") == ("m.py:4", Basis.METADATA)
    assert line_of(text, "p", (0,)) == ("m.py:4", Basis.METADATA)


# -- what moves ------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "operation",
    [
        "f32[8] copy(a)",
        "f16[8] convert(a)",
        "s32[8] bitcast-convert(a)",
        "f32[2,4] reshape(a)",
        "f32[2,4] bitcast(a)",
        "f32[8] reverse(a), dimensions={0}",
        "f32[8] opt-barrier(a)",
        "(f32[8], f32[8], u32[]) copy-start(a)",
    ],
)
def test_what_is_moved_keeps_the_line_of_its_operand(operation: str) -> None:
    text = entry(
        f"a = f32[8] negate(p), {at(1)}",
        f"b = {operation}",
        f'ROOT c = f32[8] custom-call(b), custom_call_target="f", {at(2)}',
    )
    assert line_of(text, "b") == ("m.py:1", Basis.OPERAND)


@pytest.mark.parametrize(
    "operation",
    [
        "f32[8,3] broadcast(a), dimensions={0}",
        "f32[2] slice(a), slice={[0:2]}",
        "f32[16] all-gather(a), dimensions={0}, replica_groups={{0,1}}",
    ],
)
def test_what_is_broadcast_sliced_or_gathered_is_from_its_user(operation: str) -> None:
    text = entry(
        f"a = f32[8] negate(p), {at(1)}",
        f"b = {operation}",
        f'ROOT c = f32[8] custom-call(b), custom_call_target="f", {at(2)}',
    )
    assert line_of(text, "b") == ("m.py:2", Basis.USER)


def test_what_moves_an_argument_is_the_argument() -> None:
    text = entry(
        "b = f32[8] copy(p)", "c = f32[2,4] reshape(b)", f"ROOT d = f32[2,4] abs(c), {at(1)}"
    )
    assert line_of(text, "c") == ("(argument) w", Basis.ARGUMENT)


def test_what_moves_a_constant_is_from_its_user() -> None:
    # CSE merges constants: the one that is left is from anywhere.
    text = entry(
        f"a = f32[] constant(0), {at(1)}",
        "b = f32[8] broadcast(a), dimensions={}",
        "k = f32[] copy(a)",
        "c = f32[8] copy(b)",
        f"d = f32[8] add(p, c), {at(2)}",
        f'ROOT e = f32[8] custom-call(d, k), custom_call_target="f", {at(3)}',
    )
    assert line_of(text, "k") == ("m.py:3", Basis.USER)
    assert line_of(text, "b") == ("m.py:2", Basis.USER)
    assert line_of(text, "c") == ("m.py:2", Basis.OPERAND)


def test_elements_of_tuples_are_what_was_put_there() -> None:
    text = entry(
        f"a = f32[8] negate(p), {at(1)}",
        f"b = f32[8] abs(p), {at(2)}",
        "t = (f32[8], f32[8]) tuple(a, b)",
        "n = ((f32[8], f32[8]), f32[8]) tuple(t, a)",
        "s = ((f32[8], f32[8]), f32[8]) opt-barrier(n)",
        "g = (f32[8], f32[8]) get-tuple-element(s), index=0",
        "ROOT h = f32[8] get-tuple-element(g), index=1",
    )
    assert line_of(text, "h") == ("m.py:2", Basis.OPERAND)
    assert line_of(text, "n", (0, 0)) == ("m.py:1", Basis.OPERAND)
    assert line_of(text, "n", (1,)) == ("m.py:1", Basis.OPERAND)


def test_a_tuple_with_a_line_is_all_from_there() -> None:
    text = entry(
        f"a = f32[8] negate(p), {at(1)}",
        "t = (f32[8]) tuple(a)",
        f"c = (f32[8]) copy(t), {at(2)}",
        "ROOT g = f32[8] get-tuple-element(c), index=0",
    )
    assert line_of(text, "g") == ("m.py:2", Basis.OPERAND)


def test_a_table_of_pointers_is_from_its_user_or_from_nowhere() -> None:
    text = entry(
        f"a = f32[8] negate(p), {at(1)}",
        "t = (f32[8], f32[8]) tuple(a, p)",
        f'c = f32[8] custom-call(t), custom_call_target="f", {at(2)}',
        "ROOT r = (f32[8], f32[8]) tuple(c, a)",
    )
    assert line_of(text, "t") == ("m.py:2", Basis.USER)
    assert line_of(text, "r") == ("", Basis.NONE)


# -- what computes ---------------------------------------------------------------------------------
def test_what_computes_is_from_the_nearest_user() -> None:
    text = entry(
        f"a = f32[8] negate(p), {at(1)}",
        "b = f32[8] exponential(a)",
        "c = f32[8] sine(b)",
        f"d = f32[8] abs(c), {at(2)}",
        f"ROOT e = f32[8] add(c, d), {at(3)}",
    )
    assert line_of(text, "c") == ("m.py:2", Basis.USER)
    assert line_of(text, "b") == ("m.py:2", Basis.USER)


def test_without_a_user_it_is_from_an_operand_that_is_no_constant() -> None:
    text = entry(
        f"k = f32[8] constant({{0, 0, 0, 0, 0, 0, 0, 0}}), {at(1)}",
        f"a = f32[8] negate(p), {at(2)}",
        "m = f32[8] multiply(k, p)",
        "ROOT r = f32[8] add(m, a)",
    )
    assert line_of(text, "r") == ("m.py:2", Basis.OPERAND)


def test_what_computes_is_not_named_as_an_argument() -> None:
    assert line_of(entry("ROOT a = f32[8] negate(p)"), "a") == ("", Basis.NONE)


def test_a_frame_that_is_not_in_the_module_is_said_to_be_missing() -> None:
    text = entry('ROOT a = f32[8] negate(p), metadata={op_name="x" stack_frame_id=7}')
    assert line_of(text, "a") == ("", Basis.MISSING)
