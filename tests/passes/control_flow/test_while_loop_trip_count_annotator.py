"""Corners of while-loop-trip-count-annotator: other annotations, schedules, second runs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hloopt.ir import Instruction, Module, Opcode
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module, print_module
from hloopt.verifier import ANY_TARGET, verify_module

LOOP = """HloModule m{header}
body {{
  p = ({type}[]) parameter(0)
  i = {type}[] get-tuple-element(p), index=0
  step = {type}[] constant({step})
  next = {type}[] add(i, step)
  ROOT t = ({type}[]) tuple(next)
}}
condition {{
  q = ({type}[]) parameter(0)
  j = {type}[] get-tuple-element(q), index=0
  n = {type}[] constant({limit})
  ROOT c = pred[] compare(j, n), direction={direction}
}}
ENTRY e {{
  init = {type}[] constant({init})
  state = ({type}[]) tuple(init)
  w = ({type}[]) while(state), condition=condition, body=body{config}
  end = {type}[] get-tuple-element(w), index=0
  ROOT r = {type}[] negate(end)
}}
"""


def annotated(**parts: object) -> tuple[Module, bool, PassContext]:
    values: dict[str, object] = {
        **{"header": "", "type": "s32", "init": 0, "step": 1, "limit": 5, "direction": "LT"},
        **{"config": "", **parts},
    }
    return run(parse_module(LOOP.format(**values)))


def run(module: Module) -> tuple[Module, bool, PassContext]:
    context = PassContext("while-loop-trip-count-annotator")
    changed = create_pass(context.pass_name).run(module, context)
    assert verify_module(module, ANY_TARGET) == []
    return parse_module(print_module(module)), changed, context


def the_loop(module: Module) -> Instruction:
    [loop] = module.instructions(Opcode.WHILE)
    return loop


def config_of(module: Module) -> Any:
    return json.loads(the_loop(module).attributes["backend_config"])


def test_other_parts_of_the_backend_config_stay() -> None:
    module, changed, _ = annotated(config=', backend_config={"other":[1,{"a":"b"}]}')
    assert changed
    assert config_of(module)["other"] == [1, {"a": "b"}]
    assert config_of(module)["known_trip_count"] == {"n": "5"}


def test_a_backend_config_that_is_no_object_stays_as_it_is() -> None:
    module, _, context = annotated(config=', backend_config="words"')
    assert the_loop(module).attributes["backend_config"] == '"words"'
    assert context.remarks[0].reason == "its backend_config is no JSON object"


def test_a_second_run_changes_nothing() -> None:
    module, changed, _ = annotated()
    assert changed
    assert not run(module)[1]


def test_a_schedule_stays_complete_and_in_order() -> None:
    module, _, _ = annotated(header=", is_scheduled=true")
    assert [i.opcode.value for i in module.entry.instructions] == [
        *("constant", "tuple", "while", "constant", "negate")
    ]


@pytest.mark.parametrize(
    ("parts", "last"),
    [
        ({}, "5"),
        ({"init": 9}, "9"),
        ({"type": "u8", "init": 250, "step": 5, "limit": 254}, "255"),
        ({"type": "s64", "step": 2**40, "limit": 2**62}, str(2**62)),
    ],
)
def test_the_last_value_of_a_counter_is_a_constant(parts: dict[str, object], last: str) -> None:
    module, _, _ = annotated(**parts)
    assert module.entry.root.operands[0].payload == last


def test_the_element_that_counts_is_named() -> None:
    module, _, context = annotated()
    assert config_of(module)["known_induction_variable"] == {"tuple_index": "0"}
    assert context.statistics["trip counts found"] == 1


@pytest.mark.parametrize(
    ("going_on", "following", "element"),
    [
        ("f", "f", 1),  # stays as it is
        ("f", "not_f", 1),
        ("not_f", "not_f", 1),
        ("f", "no", None),
        ("f", "is_less", None),
        ("is_less", "f", 0),
        ("both", "f", None),
    ],
)
def test_an_induction_variable_is_made_from_itself_alone(
    going_on: str, following: str, element: int | None
) -> None:
    """As the compiler answered (jaxlib 0.10.2)."""
    values = """  p = (s32[], pred[]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  f = pred[] get-tuple-element(p), index=1
  not_f = pred[] not(f)
  no = pred[] constant(false)
  ten = s32[] constant(10)
  is_less = pred[] compare(i, ten), direction=LT
"""
    module = parse_module(f"""HloModule m
condition {{
{values}  both = pred[] and(f, is_less)
  ROOT r = pred[] copy({going_on})
}}
body {{
{values}  j = s32[] multiply(i, ten)
  ROOT t = (s32[], pred[]) tuple(j, {following})
}}
ENTRY e {{
  s = (s32[], pred[]) parameter(0)
  ROOT w = (s32[], pred[]) while(s), condition=condition, body=body
}}
""")
    create_pass("while-loop-trip-count-annotator").run(module, PassContext())
    config = module.entry.root.attributes.get("backend_config", "{}")
    stated = json.loads(config).get("known_induction_variable", {"tuple_index": None})
    assert stated == {"tuple_index": None if element is None else str(element)}


def test_a_loop_whose_trips_are_not_known_says_why() -> None:
    parts = {"header": "", "type": "s32", "init": 0, "step": 1, "limit": 5, "direction": "LT"}
    text = LOOP.format(**parts, config="").replace("constant(0)", "parameter(0)")
    module, _, context = run(parse_module(text))
    assert [remark.reason for remark in context.remarks] == [
        "its trip count is not known: the initial value of its counter, element 0, is not constant"
    ]
    assert "trip counts found" not in context.statistics
    assert "known_trip_count" not in config_of(module)


@pytest.mark.parametrize(
    "parts",
    [
        {"init": 5, "step": -1, "limit": 0, "direction": "GT"},
        {"direction": "NE"},
        {"type": "s8", "init": 0, "step": 100, "limit": 127},
    ],
)
def test_other_counters_are_read_after_the_loop(parts: dict[str, object]) -> None:
    module, _, _ = annotated(**parts)
    assert module.entry.root.operands[0].opcode is Opcode.GET_TUPLE_ELEMENT
    assert "known_init_step" not in config_of(module)
