"""Edits leave a consistent module, whatever parts are chosen, or say that they cannot be made."""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.properties.consistency import assert_consistent
from tests.properties.strategies.modules import module_texts

from differential_lib.generate import program_text
from hloopt.diagnostics import HloError
from hloopt.reduction.edits.edit import Edit
from hloopt.reduction.edits.focus import Focus
from hloopt.reduction.edits.removal import RemoveInstructions
from hloopt.reduction.edits.replacement import (
    DropOutputs,
    KeepOneResult,
    ReplaceByEarlier,
    ReplaceByOperand,
)
from hloopt.reduction.edits.session import EditSession
from hloopt.reduction.edits.slots import (
    DropBranchElements,
    DropElements,
    DropParameters,
    UnwrapElements,
)
from hloopt.reduction.edits.substitutes import NotApplicable
from hloopt.reduction.reducer import EDITS, LAST_EDITS
from hloopt.text import parse_module, print_module
from hloopt.verifier import verify_module

ALL = (*EDITS, *LAST_EDITS)


def edited(edit: Edit, text: str, choose: Callable[[list[Hashable]], list[Hashable]]) -> str | None:
    """The text after an edit of chosen parts; None where it cannot be made, or is invalid."""
    module = parse_module(text)
    chosen = choose(list(edit.parts(module)))
    if not chosen:
        return None
    session = EditSession(module)
    try:
        edit.apply(session, {*chosen[:1]} if edit.one_by_one else {*chosen})
        session.finish()
    except (NotApplicable, HloError):
        return None
    assert_consistent(session.module)
    return None if verify_module(session.module) else print_module(session.module)


def some(seed: int) -> Callable[[list[Hashable]], list[Hashable]]:
    dice = random.Random(seed)
    return lambda parts: dice.sample(parts, dice.randint(1, len(parts))) if parts else []


@given(module_texts(), st.integers(0, 1000))
@settings(max_examples=60)
def test_any_parts_of_any_module(text: str, seed: int) -> None:
    for edit in ALL:
        assert_readable(edited(edit, text, some(seed)))
    names = [i.name for i in parse_module(text).instructions()]
    assert_readable(edited(Focus(names[:2]), text, some(seed)))


@pytest.mark.parametrize("number", range(40))
def test_any_parts_of_programs_with_loops_and_devices(number: int) -> None:
    text = program_text(22, number)
    for edit in ALL:
        assert_readable(edited(edit, text, some(number)))


def assert_readable(text: str | None) -> None:
    if text is not None:
        module = parse_module(text)
        assert_consistent(module)
        assert verify_module(module) == []


# -- single edits ---------------------------------------------------------------------------------

LOOP = """HloModule m, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, must-alias) }

%body (s: (s32[], f32[4], f32[4])) -> (s32[], f32[4], f32[4]) {
  %s = (s32[], f32[4], f32[4]) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %a = f32[4] get-tuple-element(%s), index=1
  %b = f32[4] get-tuple-element(%s), index=2
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one)
  %twice = f32[4] add(%a, %a)
  ROOT %state = (s32[], f32[4], f32[4]) tuple(%next, %twice, %b)
}

%condition (s.1: (s32[], f32[4], f32[4])) -> pred[] {
  %s.1 = (s32[], f32[4], f32[4]) parameter(0)
  %i.1 = s32[] get-tuple-element(%s.1), index=0
  %n = s32[] constant(5)
  ROOT %less = pred[] compare(%i.1, %n), direction=LT
}

ENTRY %main (x: f32[4], y: f32[4]) -> (f32[4], f32[4]) {
  %x = f32[4] parameter(0)
  %y = f32[4] parameter(1)
  %zero = s32[] constant(0)
  %init = (s32[], f32[4], f32[4]) tuple(%zero, %x, %y)
  %loop = (s32[], f32[4], f32[4]) while(%init), condition=%condition, body=%body
  %p = f32[4] get-tuple-element(%loop), index=1
  %q = f32[4] get-tuple-element(%loop), index=2
  ROOT %out = (f32[4], f32[4]) tuple(%p, %q)
}
"""


def after(edit: Edit, text: str, *parts: object) -> str:
    result = edited(edit, text, lambda _: list(parts))
    assert result is not None
    return result


def test_an_element_of_a_loop_goes_with_its_alias() -> None:
    text = after(DropElements(), LOOP, ("loop", 2))
    assert "(s32[], f32[4]) while" in text.replace("{0}", "")
    assert "index=2" not in text
    # Its reader reads a new parameter, which no output aliases any more.
    assert "{ {0}: (0, {}, may-alias) }" in text or "{1}: " in text


def test_dropped_outputs_take_their_aliases_along() -> None:
    text = after(DropOutputs(), LOOP, (0, "p"))
    assert "input_output_alias={ {0}: (1, {}, must-alias) }" in text


def test_removal_puts_parameters_in_the_entry_and_zeros_elsewhere() -> None:
    text = after(RemoveInstructions(), LOOP, "twice")
    assert "constant(0)" in text.partition("%condition")[0]
    text = after(RemoveInstructions(), LOOP, "loop")
    assert "while" not in text
    assert "%body" not in text
    assert text.count(" parameter(") == 1  # it stands for the loop; x and y went


def test_what_is_left_of_a_removed_root_is_returned() -> None:
    text = after(RemoveInstructions(), LOOP, "out", "q")
    assert "ROOT %p" in text


def test_without_sweeping_what_fed_it_stays() -> None:
    text = after(RemoveInstructions(sweeps=False), LOOP, "q")
    assert "%loop" in text


def test_an_earlier_value_of_the_shape_takes_its_place() -> None:
    text = after(ReplaceByEarlier(), LOOP, "b", "q", "y")
    assert "%b =" not in text
    assert "%y =" not in text


CALLS = """HloModule m

%callee (a: f32[4], b: f32[4]) -> f32[4] {
  %a = f32[4] parameter(0)
  %b = f32[4] parameter(1)
  ROOT %sum = f32[4] add(%a, %b)
}

%left (l: (f32[4], f32[4])) -> (f32[4]) {
  %l = (f32[4], f32[4]) parameter(0)
  %l.0 = f32[4] get-tuple-element(%l), index=0
  ROOT %l.t = (f32[4]) tuple(%l.0)
}

%right (r: (f32[4], f32[4])) -> (f32[4]) {
  %r = (f32[4], f32[4]) parameter(0)
  %r.1 = f32[4] get-tuple-element(%r), index=1
  ROOT %r.t = (f32[4]) tuple(%r.1)
}

ENTRY %main (x: f32[4], y: f32[4], c: pred[]) -> f32[4] {
  %x = f32[4] parameter(0)
  %y = f32[4] parameter(1)
  %c = pred[] parameter(2)
  %called = f32[4] call(%x, %y), to_apply=%callee
  %fused = f32[4] fusion(%called, %y), kind=kLoop, calls=%callee
  %both = (f32[4], f32[4]) tuple(%fused, %y)
  %branch = (f32[4]) conditional(%c, %both, %both), true_computation=%left, false_computation=%right
  ROOT %out = f32[4] get-tuple-element(%branch), index=0
}
"""


def test_a_parameter_goes_from_all_callers() -> None:
    text = after(DropParameters(), CALLS, ("callee", 1))
    assert "call(%x)" in text
    assert "fusion(%called)" in text


def test_elements_of_branches_go() -> None:
    text = after(DropBranchElements(), CALLS, ("left", 1), ("right", 0))
    assert text.count("(f32[4]{0}) parameter(0)") == 2


def test_tuples_of_one_element_are_unwrapped() -> None:
    text = after(UnwrapElements(), CALLS, "branch")
    assert "f32[4]{0} conditional(" in text
    assert "ROOT %branch" in text


def test_of_an_operation_each_operand_may_stay() -> None:
    called = CALLS.replace("fusion(%called, %y), kind=kLoop, calls", "call(%called, %y), to_apply")
    parts = list(ReplaceByOperand().parts(parse_module(called)))
    assert {(0, "sum"), (1, "sum")} == {*parts} & {(n, "sum") for n in range(3)}
    assert "ROOT %a" in after(ReplaceByOperand(), called, (0, "sum"))
    assert "ROOT %b" in after(ReplaceByOperand(), called, (1, "sum"))
    assert "ROOT %a" in after(ReplaceByOperand(), called, (0, "sum"), (1, "sum"))


TWO_LOOPS = LOOP.replace(
    "  ROOT %out",
    """  %again = (s32[], f32[4], f32[4]) tuple(%zero, %y, %y)
  %other = (s32[], f32[4], f32[4]) while(%again), condition=%condition, body=%body.1
  %r = f32[4] get-tuple-element(%other), index=1
  ROOT %out""",
).replace(
    "%condition (",
    """%body.1 (s.2: (s32[], f32[4], f32[4])) -> (s32[], f32[4], f32[4]) {
  ROOT %s.2 = (s32[], f32[4], f32[4]) parameter(0)
}

%condition (""",
    1,
)


def test_loops_that_share_a_condition_lose_an_element_together() -> None:
    parts = list(DropElements().parts(parse_module(TWO_LOOPS)))
    assert parts == [("loop", 0), ("loop", 1), ("loop", 2)]
    text = after(DropElements(), TWO_LOOPS, ("loop", 2))
    assert text.count("(s32[], f32[4]{0}) while") == 2
    text = after(UnwrapElements(), after(DropElements(), TWO_LOOPS, *parts[:1], *parts[2:]), "loop")
    assert text.count("= f32[4]{0} while") == 2


@pytest.mark.parametrize(
    "use",
    [
        "%r = (s32[], f32[4], f32[4]) copy(%other)",
        "%r = (s32[], f32[4], f32[4]) call(%again), to_apply=%body.1",
    ],
    ids=["one is read whole", "a body that is called too"],
)
def test_loops_keep_their_elements_where_one_cannot_lose_it(use: str) -> None:
    text = TWO_LOOPS.replace("%r = f32[4] get-tuple-element(%other), index=1", use)
    assert list(DropElements().parts(parse_module(text))) == []


def test_calls_of_one_computation_lose_an_element_together() -> None:
    text = CALLS.replace(
        "conditional(%c, %both, %both), true_computation=%left", "call(%both), to_apply=%left"
    )
    text = text.replace(", false_computation=%right", "").replace("(f32[4])", "(f32[4], f32[4])")
    text = text.replace("tuple(%l.0)", "tuple(%l.0, %l.0)").replace(
        "tuple(%r.1)", "tuple(%r.1, %r.1)"
    )
    text = text.replace(
        "  ROOT %out", "  %more = (f32[4], f32[4]) call(%both), to_apply=%left\n  ROOT %out"
    )
    text = after(DropElements(), text, ("branch", 1))
    assert text.count("= (f32[4]{0}) call(%both)") == 2


def test_a_barrier_loses_elements_of_its_operand() -> None:
    text = CALLS.replace("  %branch", "  %bar = (f32[4], f32[4]) opt-barrier(%both)\n  %branch")
    text = text.replace("conditional(%c, %both, %both)", "conditional(%c, %two, %two)")
    text = text.replace(
        "  %branch",
        "  %m = f32[4] get-tuple-element(%bar), index=0\n"
        "  %n = f32[4] get-tuple-element(%bar), index=1\n"
        "  %two = (f32[4], f32[4]) tuple(%m, %n)\n  %branch",
    )
    text = after(DropElements(), text, ("bar", 1))
    assert "= (f32[4]{0}) opt-barrier(" in text


def test_the_entry_may_return_what_nothing_uses() -> None:
    text = CALLS.replace("  ROOT %out", "  %unused = f32[4] negate(%y)\n  ROOT %out")
    assert list(KeepOneResult().parts(parse_module(text))) == ["unused", "branch"]
    text = after(KeepOneResult(), text, "unused")
    assert "ROOT %unused" in text
    assert "conditional" not in text


def test_all_readers_of_the_corpus_are_untouched(root: Path) -> None:
    """An edit of no parts prints what was read."""
    text = (root / "testdata" / "mlp_psum_8dev.after_spmd_partitioning.hlo").read_text()
    session = EditSession(parse_module(text))
    session.finish()
    assert print_module(session.module) == text
