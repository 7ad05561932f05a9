"""The room that XLA:GPU makes between starts and dones, in exact orders."""

from __future__ import annotations

import pytest
from tests.memory.modules import module_text

from hloopt.memory.gpu.arrangement import arrange_for_gpu
from hloopt.text import parse_module

CALLED = """sum { k = f32[] parameter(0)
  l = f32[] parameter(1)
  ROOT z = f32[] add(k, l) }
w { x.1 = f32[8] parameter(0)
  ROOT y.1 = f32[8] negate(x.1) }
v { x.2 = f32[8] parameter(0)
  ROOT y.2 = f32[8] all-to-all(x.2), dimensions={0} }
"""
SYNC = ', backend_config={"collective_backend_config":{"is_sync":true}}'
EARLY, LATE = ", schedule=SCHEDULE_EARLIEST", ", schedule=SCHEDULE_LATEST"


def arranged(*lines: str, order: str = "") -> str:
    """The order that becomes of `order`, which is that of the lines unless told; without spaces."""
    module = parse_module(module_text(*lines, before=CALLED))
    by_name = {instruction.name: instruction for instruction in module.entry.instructions}
    names = order or "".join(by_name)
    return "".join(i.name for i in arrange_for_gpu([by_name[name] for name in names]))


STARTS = {
    "all-reduce": (
        "s = f32[8] all-reduce-start({0}), to_apply=sum{1}",
        "d = f32[8] all-reduce-done(s)",
    ),
    "all-gather": (
        "s = (f32[8], f32[8]) all-gather-start({0}), dimensions={{0}}{1}",
        "d = f32[8] all-gather-done(s)",
    ),
    "collective-permute": (
        "s = (f32[8], f32[8]) collective-permute-start({0}), source_target_pairs={{{{0,1}}}}{1}",
        "d = f32[8] collective-permute-done(s)",
    ),
    "async all-to-all": (
        "s = ((f32[8]), f32[8]) async-start({0}), calls=v{1}",
        "d = f32[8] async-done(s)",
    ),
    "async computation": (
        "s = ((f32[8]), f32[8]) async-start({0}), calls=w{1}",
        "d = f32[8] async-done(s)",
    ),
}


def around(kind: str, attributes: str = "") -> tuple[str, ...]:
    start, done = STARTS[kind]
    return (
        "a = f32[8] parameter(0)",
        "b = f32[8] negate(a)",
        "c = f32[8] sine(a)",
        start.format("b", attributes),
        done,
        "e = f32[8] cosine(c)",
        "f = f32[8] tanh(e)",
        "r = f32[8] add(d, f)",
    )


@pytest.mark.parametrize("kind", STARTS)
def test_a_start_follows_its_operand_and_a_done_stands_before_its_user(kind: str) -> None:
    assert arranged(*around(kind)) == "abscefdr"


@pytest.mark.parametrize("kind", [kind for kind in STARTS if kind != "async computation"])
def test_a_synchronous_start_stands_right_before_its_done(kind: str) -> None:
    """The done of an async-start moves even so, and its start stays."""
    expected = "abscefdr" if kind.startswith("async") else "abcsdefr"
    assert arranged(*around(kind, SYNC), order="abscdefr") == expected


def test_of_what_runs_asynchronously_only_collectives_are_made_synchronous() -> None:
    assert arranged(*around("async computation", SYNC), order="abscdefr") == "abscefdr"


def test_copies_stay_where_they_are() -> None:
    lines = (
        "a = f32[8] parameter(0)",
        "c = f32[8] sine(a)",
        "s = (f32[8], f32[8], u32[]) copy-start(a)",
        "d = f32[8] copy-done(s)",
        "e = f32[8] cosine(c)",
        "r = f32[8] add(d, e)",
    )
    assert arranged(*lines) == "acsder"


def call(name: str, attribute: str, *operands: str) -> str:
    operand = ", ".join(operands)
    return f'{name} = f32[8] custom-call({operand}), custom_call_target="f"{attribute}'


@pytest.mark.parametrize(
    ("attribute", "expected"), [("", "abcsdr"), (EARLY, "abscdr"), (LATE, "abcdsr")]
)
def test_custom_calls_go_where_they_ask_to(attribute: str, expected: str) -> None:
    lines = (
        "a = f32[8] parameter(0)",
        "b = f32[8] negate(a)",
        "c = f32[8] sine(a)",
        call("s", attribute, "b"),
        "d = f32[8] cosine(c)",
        "r = f32[8] add(d, s)",
    )
    assert arranged(*lines) == expected


def test_what_is_early_waits_for_all_it_needs() -> None:
    lines = (
        "a = f32[8] parameter(0)",
        "b = f32[8] negate(a)",
        "c = f32[8] sine(a)",
        "d = f32[8] cosine(c)",
        call("s", EARLY, "b", "c"),
        "e = f32[8] tanh(d)",
        call("t", f"{EARLY}, control-predecessors={{b, d}}", "a"),
        "r = f32[8] add(t, s)",
    )
    assert arranged(*lines) == "abcsdter"


def test_what_is_late_waits_for_all_that_need_it() -> None:
    lines = (
        "a = f32[8] parameter(0)",
        call("s", LATE, "a"),
        call("t", LATE, "a"),
        "b = f32[8] negate(a)",
        "c = f32[8] sine(s)",
        "d = f32[8] cosine(b), control-predecessors={t}",
        "e = f32[8] add(s, t)",
        "r = f32[8] add(c, e)",
    )
    assert arranged(*lines) == "absctder"


def test_one_early_instruction_follows_another() -> None:
    lines = (
        "a = f32[8] parameter(0)",
        "b = f32[8] negate(a)",
        call("s", EARLY, "a"),
        call("t", EARLY, "s"),
        call("u", EARLY, "a"),
        "r = f32[8] add(b, t)",
    )
    assert arranged(*lines) == "asubtr"


def test_nothing_changes_without_such_instructions() -> None:
    lines = ("a = f32[8] parameter(0)", "b = f32[8] negate(a)", "c = f32[8] sine(a)")
    assert arranged(*lines, "r = f32[8] add(c, b)", order="acbr") == "acbr"
