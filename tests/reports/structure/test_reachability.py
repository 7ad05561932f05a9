"""The report on the order of two instructions: findings, terminal page, JSON."""

from __future__ import annotations

import json

import pytest
from tests.reports.structure.pages import page

from hloopt.reports.structure.reachability import OrderReport, report_order
from hloopt.reports.structure.reachability_terminal import render_order
from hloopt.reports.structure.record import order_to_json
from hloopt.text import parse_module

CHAIN = (
    "HloModule m\n\nENTRY e {\n  p = f32[] parameter(0)\n"
    + "".join(f"  n.{i} = f32[] negate({f'n.{i - 1}' if i else 'p'})\n" for i in range(999))
    + "  ROOT r = f32[] sine(n.998)\n}\n"
)
CALLS = """HloModule m
called { x = f32[] parameter(0) y = f32[] negate(x) ROOT z = f32[] sine(x) }
twice { t = f32[] parameter(0) ROOT u = f32[] negate(t) }
ENTRY e {
  p = f32[] parameter(0)
  a = f32[] negate(p)
  c = f32[] call(a), to_apply=called
  d = f32[] call(p), to_apply=twice, control-predecessors={c}
  ROOT f = f32[] call(d), to_apply=twice
}
"""


def order_of(first: str, second: str, text: str = CALLS) -> OrderReport:
    instructions = {i.name: i for i in parse_module(text).instructions()}
    return report_order(instructions[first], instructions[second])


def test_a_path_says_how_each_step_takes_the_one_before() -> None:
    report = order_of("a", "d")
    steps = [(step.instruction.name, step.takes_previous_as) for step in report.path]
    assert steps == [("a", None), ("c", "operand 0"), ("d", "control predecessor")]
    assert report.is_reachable
    backwards = order_of("d", "a")
    assert backwards.path[0].instruction.name == "a"
    assert (backwards.is_reachable, backwards.is_connected) == (False, True)


@pytest.mark.parametrize(
    ("first", "second", "compared", "verdict"),
    [
        ("y", "f", ("c", "f"), "%f is reachable from %y\n"),
        ("y", "z", ("y", "z"), "nor %y from %z: they may run in any order\n"),
        ("y", "c", ("c", "c"), "both run within %c in %e\n"),
        ("u", "p", None, "no computation has exactly one call site that leads to each of them\n"),
    ],
)
def test_instructions_are_compared_where_both_run(
    first: str, second: str, compared: tuple[str, str] | None, verdict: str
) -> None:
    report = order_of(first, second)
    found = None if report.compared is None else tuple(i.name for i in report.compared)
    assert found == compared
    assert verdict in page(render_order, report, top=40)


def test_data_has_the_whole_path() -> None:
    report = order_to_json(order_of("r", "p", CHAIN))
    assert json.loads(json.dumps(report)) == report
    path = report.pop("path")
    assert report == {
        "module": "m",
        "first": {"instruction": "r", "computation": "e"},
        "second": {"instruction": "p", "computation": "e"},
        "compared": ["r", "p"],
        "is_reachable": False,
        "is_connected": True,
    }
    assert len(path) == 1001
    assert path[0] == {"instruction": "p", "opcode": "parameter", "takes_previous_as": None}
    assert path[-1] == {"instruction": "r", "opcode": "sine", "takes_previous_as": "operand 0"}


@pytest.mark.parametrize(("top", "shown"), [(2, 2), (5, 5), (2000, 1001)])
def test_the_middle_of_a_long_path_is_left_out(top: int, shown: int) -> None:
    out = page(render_order, order_of("p", "r", CHAIN), top=top)
    assert out.count("%") - len("%%") == shown
    assert (f"… {1001 - shown:,} more" in out) == (shown < 1001)


def test_an_instruction_is_reachable_from_itself() -> None:
    assert page(render_order, order_of("p", "p"), top=40) == "%p is reachable from %p\n"
