"""Parameters that go: in their computation, at its callers, in the header of the module."""

from __future__ import annotations

import pytest
from tests.passes.checked_run import shown
from tests.properties.consistency import assert_consistent

from hloopt.ir import Module
from hloopt.pass_framework.applications import Applications
from hloopt.pass_framework.base import PassContext
from hloopt.passes.rewriting.dead_parameters import (
    keep_parameters,
    live_parameters,
    remove_dead_entry_parameters,
    remove_dead_parameters,
)
from hloopt.text import parse_module
from hloopt.verifier import verify_module

CALLED = """HloModule m
work {
  w = f32[] parameter(0)
  x = f32[2] parameter(1)
  y = f32[3] parameter(2)
  z = f32[4] parameter(3)
  ROOT n = f32[3] negate(y)
}
ENTRY e {
  a = f32[] parameter(0)
  b = f32[2] parameter(1)
  c = f32[3] parameter(2)
  d = f32[4] parameter(3)
  a2 = f32[] sine(a)
  b2 = f32[2] sine(b)
  c2 = f32[3] sine(c)
  d2 = f32[4] sine(d)
  one = f32[3] call(a2, b2, c2, d2), to_apply=work
  two = f32[3] call(a2, b, c2, d2), to_apply=work
  k = f32[] negate(a2)
  ROOT r = (f32[3], f32[3], f32[]) tuple(one, two, k)
}
"""


def cleaned(text: str, *, most: int | None = None) -> tuple[Module, list[str], PassContext]:
    """A module whose computation `work` loses what is dead; the operands without users."""
    module = parse_module(text)
    assert verify_module(module) == []
    context = PassContext("dce", applications=Applications(most))
    orphans = remove_dead_parameters(module.computations["work"], context)
    assert verify_module(module) == []
    assert_consistent(module)
    return module, [orphan.name for orphan in orphans], context


def test_all_callers_lose_the_operands_of_dead_parameters() -> None:
    module, orphans, context = cleaned(CALLED)
    assert shown(module.computations["work"]) == [
        "y = f32[3] parameter(0)",
        "ROOT n = f32[3] negate(y)",
    ]
    assert shown(module.entry)[8:10] == [
        "one = f32[3] call(c2), to_apply=work",
        "two = f32[3] call(c2), to_apply=work",
    ]
    assert orphans == ["b2", "d2"]
    assert context.applications.made == 1
    assert context.remarks == []


def test_parameters_around_a_dead_one_close_the_gap() -> None:
    module, orphans, _ = cleaned(CALLED.replace("negate(y)", "add(y, g)").replace(
        "  ROOT n", "  s = f32[] add(w, w)\n  g = f32[3] broadcast(s), dimensions={}\n"
        "  h = f32[4] negate(z)\n  ROOT n"
    ))  # fmt: skip
    assert shown(module.computations["work"])[:3] == [
        "w = f32[] parameter(0)",
        "y = f32[3] parameter(1)",
        "z = f32[4] parameter(2)",
    ]
    assert "one = f32[3] call(a2, c2, d2), to_apply=work" in shown(module.entry)
    assert orphans == ["b2"]


@pytest.mark.parametrize(
    "text",
    [
        CALLED.replace("ROOT n", "d = (f32[], f32[2], f32[4]) tuple(w, x, z)\n  ROOT n"),
        CALLED.replace(
            "ROOT n = f32[3] negate(y)",
            "u = f32[3] negate(y), control-predecessors={w, x}\n"
            "  ROOT v = f32[4] negate(z), control-predecessors={u}",
        ).replace("f32[3] call", "f32[4] call").replace("(f32[3], f32[3],", "(f32[4], f32[4],"),
    ],
)  # fmt: skip
def test_what_something_needs_or_waits_for_stays(text: str) -> None:
    module = parse_module(text)
    work = module.computations["work"]
    assert live_parameters(work) == work.parameters
    _, orphans, context = cleaned(text)
    assert orphans == []
    assert context.applications.made == 0


def test_a_parameter_that_is_the_root_is_live() -> None:
    module = parse_module(
        "HloModule m\nENTRY e { a = f32[] parameter(0) ROOT b = f32[] parameter(1) }"
    )
    assert [p.name for p in live_parameters(module.entry)] == ["b"]


def test_nothing_changes_once_the_limit_is_reached() -> None:
    module, orphans, _ = cleaned(CALLED, most=0)
    assert module.is_pristine
    assert orphans == []


def test_an_asynchronous_chain_takes_the_shapes_of_the_operands_that_stay() -> None:
    full = "((f32[2], f32[3]), f32[3], u32[])"
    module, orphans, _ = cleaned(
        f"""HloModule m
work {{ x = f32[2] parameter(0) y = f32[3] parameter(1) ROOT n = f32[3] negate(y) }}
ENTRY e {{
  a = f32[2] parameter(0)
  b = f32[3] parameter(1)
  start = {full} async-start(a, b), calls=work
  update = {full} async-update(start)
  ROOT done = f32[3] async-done(update)
}}
"""
    )
    assert shown(module.entry)[2:] == [
        "start = ((f32[3]), f32[3], u32[]) negate-start(b)",
        "update = ((f32[3]), f32[3], u32[]) negate-update(start)",
        "ROOT done = f32[3] negate-done(update)",
    ]
    assert orphans == ["a"]


def test_parameters_are_kept_in_the_order_that_is_wanted() -> None:
    module = parse_module(
        "HloModule m\nwork { w = f32[] parameter(0) x = f32[] parameter(1) "
        "y = f32[] parameter(2) ROOT r = f32[] subtract(x, y) }\n"
        "ENTRY e { ROOT a = f32[] parameter(0) }"
    )
    work = module.computations["work"]
    _, x, y = work.parameters
    keep_parameters(work, [y, x])
    assert [p.name for p in work.parameters] == ["y", "x"]
    assert shown(work) == [
        "x = f32[] parameter(1)",
        "y = f32[] parameter(0)",
        "ROOT r = f32[] subtract(x, y)",
    ]


def test_a_parameter_that_keeps_its_number_keeps_its_text() -> None:
    module = parse_module(
        "HloModule m\nwork { w = f32[]  parameter(0) x = f32[]  parameter(1) "
        "y = f32[]  parameter(2) ROOT r = f32[] subtract(y, w) }\n"
        "ENTRY e { ROOT a = f32[] parameter(0) }"
    )
    work = module.computations["work"]
    keep_parameters(work, live_parameters(work))
    assert [p.text for p in work.parameters] == ["w = f32[]  parameter(0)", None]


ENTRY = """HloModule m{header}
ENTRY e {{
  a = f32[] parameter(0)
  b = f32[2] parameter(1)
  c = f32[3] parameter(2)
  d = f32[4] parameter(3)
  {body}
}}
"""
NEGATED = "ROOT n = f32[3] negate(c)"
LAYOUT = ", entry_computation_layout={(f32[], f32[2]{0}, f32[3]{0}, f32[4]{0})->f32[3]{0}}"


def entry_cleaned(header: str, body: str = NEGATED) -> Module:
    module = parse_module(ENTRY.format(header=header, body=body))
    assert verify_module(module) == []
    remove_dead_entry_parameters(module, PassContext())
    assert verify_module(module) == []
    assert_consistent(module)
    return module


@pytest.mark.parametrize(
    ("header", "after"),
    [
        ("", {}),
        (LAYOUT, {"entry_computation_layout": "{(f32[3]{0})->f32[3]{0}}"}),
        (
            ", input_output_alias={ {}: (2, {}, may-alias) }" + LAYOUT,
            {
                "input_output_alias": "{ {}: (0, {}, may-alias) }",
                "entry_computation_layout": "{(f32[3]{0})->f32[3]{0}}",
            },
        ),
        (
            ", buffer_donor={ (1, {}), (3, {}) }" + LAYOUT,
            {
                "buffer_donor": "{ (0, {}), (2, {}) }",
                "entry_computation_layout": "{(f32[2]{0}, f32[3]{0}, f32[4]{0})->f32[3]{0}}",
            },
        ),
    ],
)
def test_the_header_follows_the_parameters_of_the_entry(header: str, after: dict[str, str]) -> None:
    assert dict(entry_cleaned(header).attributes) == after


@pytest.mark.parametrize(
    ("body", "names"),
    [
        (NEGATED, ["c"]),
        ("ROOT n = f32[3] negate(c), control-predecessors={b}", ["b", "c"]),
        ("n = f32[2] negate(b) ROOT k = f32[] constant(1)", ["b"]),
    ],
)
def test_the_entry_keeps_what_it_needs_or_waits_for(body: str, names: list[str]) -> None:
    module = entry_cleaned("", body)
    assert [p.name for p in module.entry.parameters] == names
    assert [p.parameter_number for p in module.entry.parameters] == [*range(len(names))]


def test_the_entry_keeps_the_parameter_that_it_gives() -> None:
    module = parse_module(
        "HloModule m\nENTRY e { a = f32[] parameter(0) ROOT b = f32[2] parameter(1) }"
    )
    remove_dead_entry_parameters(module, PassContext())
    assert shown(module.entry) == ["ROOT b = f32[2] parameter(0)"]


@pytest.mark.parametrize(
    ("body", "most"),
    [("ROOT t = (f32[], f32[2], f32[3], f32[4]) tuple(a, b, c, d)", None), (NEGATED, 0)],
)
def test_an_entry_that_needs_all_or_may_not_change_stays(body: str, most: int | None) -> None:
    module = parse_module(ENTRY.format(header=LAYOUT, body=body))
    context = PassContext("dce", applications=Applications(most))
    remove_dead_entry_parameters(module, context)
    assert module.is_pristine
    assert context.applications.made == 0
