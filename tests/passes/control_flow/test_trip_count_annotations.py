"""The annotations that while-loop-trip-count-annotator writes, to the letter."""

from __future__ import annotations

import pytest
from tests.passes.checked_run import shown
from tests.properties.consistency import assert_consistent

from hloopt.ir import Module, Opcode
from hloopt.pass_framework.applications import Applications
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module
from hloopt.verifier import ANY_TARGET, verify_module

PASS = "while-loop-trip-count-annotator"
COUNTED = """HloModule m
body {{
  p = (s32[], s32[]) parameter(0)
  other = s32[] get-tuple-element(p), index=0
  i = s32[] get-tuple-element(p), index=1
  by = s32[] constant({step})
  next = s32[] {operation}(i, by)
  moved = s32[] add(other, i)
  ROOT t = (s32[], s32[]) tuple(moved, next)
}}
condition {{
  q = (s32[], s32[]) parameter(0)
  j = s32[] get-tuple-element(q), index=1
  limit = s32[] constant({limit})
  ROOT goes_on = pred[] compare(j, limit), direction={direction}
}}
ENTRY e {{
  other = s32[] parameter(0)
  n = s32[] parameter(1)
  first = s32[] {init}
  state = (s32[], s32[]) tuple(other, first)
  w = (s32[], s32[]) while(state), condition=condition, body=body{config}
  {rest}
}}
"""
READS = """sum = s32[] get-tuple-element(w), index=0
  end = s32[] get-tuple-element(w), index=1
  whole = (s32[], s32[]) copy(w)
  again = s32[] get-tuple-element(w), index=1
  ROOT r = (s32[], s32[], (s32[], s32[]), s32[]) tuple(sum, end, whole, again)"""


def counted(**parts: object) -> str:
    defaults = {
        **{"step": 1, "limit": 5, "direction": "LT", "init": "constant(0)", "config": ""},
        **{"operation": "add", "rest": READS},
    }
    return COUNTED.format(**{**defaults, **parts})


def annotated(text: str, most: int | None = None) -> tuple[Module, PassContext]:
    module = parse_module(text)
    assert verify_module(module, ANY_TARGET) == []
    context = PassContext(PASS, applications=Applications(most))
    before = module.version
    changed = create_pass(PASS).run(module, context)
    assert changed is (module.version != before)
    assert verify_module(module, ANY_TARGET) == []
    assert_consistent(module)
    return module, context


def configs(module: Module) -> list[str | None]:
    return [loop.attributes.get("backend_config") for loop in module.instructions(Opcode.WHILE)]


def said(context: PassContext) -> list[tuple[str, str, str]]:
    return [(remark.kind, remark.instruction, remark.reason) for remark in context.remarks]


COUNTER = '"known_induction_variable":{"tuple_index":"1"},"dynamic_variables":[]'
ONE_UP = '"known_init_step":{"init":"0","step":"1"}'


@pytest.mark.parametrize(
    ("parts", "config"),
    [
        ({}, f'{{"known_trip_count":{{"n":"5"}},{ONE_UP},{COUNTER}}}'),
        ({"direction": "LE"}, f'{{"known_trip_count":{{"n":"6"}},{ONE_UP},{COUNTER}}}'),
        ({"limit": 0}, f'{{"known_trip_count":{{"n":"0"}},{ONE_UP},{COUNTER}}}'),
        (
            {"init": "constant(-7)", "step": 4},
            f'{{"known_trip_count":{{"n":"3"}},"known_init_step":{{"init":"-7","step":"4"}},{COUNTER}}}',
        ),
        ({"direction": "NE"}, f'{{"known_trip_count":{{"n":"5"}},{COUNTER}}}'),
        (
            {"direction": "GT", "init": "constant(5)", "step": -1, "limit": 0},
            f'{{"known_trip_count":{{"n":"5"}},{COUNTER}}}',
        ),
        # Found by running the counter.
        (
            {"operation": "multiply", "init": "constant(1)", "step": 2, "limit": 9},
            f'{{"known_trip_count":{{"n":"4"}},{COUNTER}}}',
        ),
        # Not known: what is stated stays.
        ({"init": "negate(n)"}, f"{{{COUNTER}}}"),
        (
            {
                "init": "negate(n)",
                "config": ', backend_config={"a":1,"known_trip_count":{"n":"7"},'
                '"known_init_step":{"init":"0","step":"1"},"b":[]}',
            },
            f'{{"a":1,"b":[],"known_trip_count":{{"n":"7"}},{COUNTER}}}',
        ),
        # What is stated and wrong is replaced.
        (
            {"config": ', backend_config={"known_trip_count":{"n":"7"}}'},
            f'{{"known_trip_count":{{"n":"5"}},{ONE_UP},{COUNTER}}}',
        ),
    ],
)
def test_a_loop_gets_what_is_known_of_its_counter(parts: dict[str, object], config: str) -> None:
    module, _ = annotated(counted(**parts))
    assert configs(module) == [config]


@pytest.mark.parametrize(
    ("parts", "remarks"),
    [
        ({}, [("applied", "w", "it makes 5 trips")]),
        ({"limit": 1}, [("applied", "w", "it makes 1 trip")]),
        ({"limit": 0}, [("applied", "w", "it makes 0 trips")]),
        (
            {"init": "negate(n)"},
            [
                (
                    "missed",
                    "w",
                    "its trip count is not known: "
                    "the initial value of its counter, element 1, is not constant",
                )
            ],
        ),
    ],
)
def test_the_trips_are_reported(
    parts: dict[str, object], remarks: list[tuple[str, str, str]]
) -> None:
    rest = "ROOT moved = s32[] get-tuple-element(w), index=0"
    _, context = annotated(counted(**parts, rest=rest))
    assert said(context) == remarks
    assert context.applications.made == 1
    assert context.applications.last is not None
    done = remarks[0][2] if remarks[0][0] == "applied" else "annotated"
    assert context.applications.last.what == done
    assert context.statistics == ({} if remarks[0][0] == "missed" else {"trip counts found": 1})


def test_a_loop_of_which_nothing_is_known_gets_no_annotation() -> None:
    text = """HloModule m
body { ROOT p = (s32[], s32[]) parameter(0) }
condition {
  q = (s32[], s32[]) parameter(0)
  a = s32[] get-tuple-element(q), index=0
  b = s32[] get-tuple-element(q), index=1
  ROOT less = pred[] compare(a, b), direction=LT
}
ENTRY e {
  s = (s32[], s32[]) parameter(0)
  ROOT w = (s32[], s32[]) while(s), condition=condition, body=body
}
"""
    module, context = annotated(text)
    assert module.is_pristine
    assert [kind for kind, _, _ in said(context)] == ["missed"]


def test_a_loop_whose_condition_is_false_makes_no_trip() -> None:
    text = """HloModule m
body { ROOT p = (s32[]) parameter(0) }
condition { q = (s32[]) parameter(0) ROOT no = pred[] constant(false) }
ENTRY e {
  s = (s32[]) parameter(0)
  w = (s32[]) while(s), condition=condition, body=body
  ROOT end = s32[] get-tuple-element(w), index=0
}
"""
    module, context = annotated(text)
    assert configs(module) == ['{"known_trip_count":{"n":"0"},"dynamic_variables":[]}']
    assert module.entry.root.opcode is Opcode.GET_TUPLE_ELEMENT
    assert said(context) == [("applied", "w", "it makes 0 trips")]


def test_a_loop_that_is_annotated_already_is_left_alone_in_silence() -> None:
    done, _ = annotated(counted())
    config = f", backend_config={configs(done)[0]}"
    text = counted(config=config, rest="ROOT moved = s32[] get-tuple-element(w), index=0")
    module, context = annotated(text)
    assert module.is_pristine
    assert said(context) == []
    assert context.statistics == {}


def test_all_that_reads_the_counter_after_the_loop_reads_a_constant() -> None:
    module, context = annotated(counted())
    assert shown(module.entry)[5:] == [
        "sum = s32[] get-tuple-element(w), index=0",
        "whole = (s32[], s32[]) copy(w)",
        "constant = s32[] constant(5)",
        "constant.1 = s32[] constant(5)",
        "ROOT r = (s32[], s32[], (s32[], s32[]), s32[]) tuple(sum, constant, whole, constant.1)",
    ]
    assert said(context)[1:] == [
        ("applied", "end", "replaced by 5, the counter's last value"),
        ("applied", "again", "replaced by 5, the counter's last value"),
    ]


@pytest.mark.parametrize("parts", [{"direction": "NE"}, {"operation": "multiply", "step": 2}])
def test_a_counter_that_does_not_just_go_up_is_read_after_the_loop(
    parts: dict[str, object],
) -> None:
    module, _ = annotated(counted(**parts, init="constant(1)"))
    assert [operand.name for operand in module.entry.root.operands] == [
        *("sum", "end", "whole", "again")
    ]


@pytest.mark.parametrize(("most", "constants"), [(0, 0), (1, 0), (2, 1), (3, 2)])
def test_each_annotation_and_each_constant_is_an_application(most: int, constants: int) -> None:
    module, context = annotated(counted(), most)
    assert (configs(module) == [None]) is (most == 0)
    assert context.statistics == ({"trip counts found": 1} if most else {})
    opcodes = [operand.opcode for operand in module.entry.root.operands]
    assert opcodes.count(Opcode.CONSTANT) == constants


TWO = counted(
    rest="""end = s32[] get-tuple-element(w), index=1
  from_end = (s32[], s32[]) tuple(other, end)
  v = (s32[], s32[]) while(from_end), condition=later, body=later.body
  ROOT last = s32[] get-tuple-element(v), index=1"""
).replace(
    "ENTRY",
    """later.body {
  p2 = (s32[], s32[]) parameter(0)
  other2 = s32[] get-tuple-element(p2), index=0
  i2 = s32[] get-tuple-element(p2), index=1
  by2 = s32[] constant(10)
  next2 = s32[] add(i2, by2)
  ROOT t2 = (s32[], s32[]) tuple(other2, next2)
}
later {
  q2 = (s32[], s32[]) parameter(0)
  j2 = s32[] get-tuple-element(q2), index=1
  limit2 = s32[] constant(30)
  ROOT goes_on2 = pred[] compare(j2, limit2), direction=LT
}
ENTRY""",
)


@pytest.mark.parametrize("comes_last", [False, True])
def test_a_loop_that_starts_where_another_ended_is_known_too(comes_last: bool) -> None:
    module = parse_module(TWO)
    found = {i.name: i for i in module.instructions()}
    if comes_last:  # as a pass may have left it: the list of instructions has no order
        module.entry.move_to_end(found["w"])
    create_pass(PASS).run(module, PassContext())
    assert '"init":"5","step":"10"' in found["v"].attributes["backend_config"]
    assert module.entry.root.payload == "35"


def test_loops_in_what_the_entry_calls_are_annotated() -> None:
    called = counted().replace("ENTRY e", "called")
    text = f"""{called}
ENTRY e {{
  a = s32[] parameter(0)
  k = s32[] constant(3)
  ROOT r = (s32[], s32[], (s32[], s32[]), s32[]) call(a, k), to_apply=called
}}
"""
    assert configs(annotated(text)[0]) == [f'{{"known_trip_count":{{"n":"5"}},{ONE_UP},{COUNTER}}}']


def test_a_schedule_is_repaired_only_where_something_changed() -> None:
    scheduled = TWO.replace("HloModule m", "HloModule m, is_scheduled=true")
    module, _ = annotated(scheduled)
    assert [i.opcode.value for i in module.entry.instructions] == [
        *(
            "parameter",
            "parameter",
            "constant",
            "tuple",
            "while",
            "constant",
            "tuple",
            "while",
            "constant",
        )
    ]
    done = parse_module(scheduled)
    create_pass(PASS).run(done, PassContext())
    order = list(done.entry.instructions)
    version = done.version
    assert not create_pass(PASS).run(done, PassContext())
    assert (done.version, list(done.entry.instructions)) == (version, order)


TRANSFERS = """HloModule m
body {{
  p = (s32[], s32[], s32[], f32[20,8], s32[]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  behind = s32[] get-tuple-element(p), index=1
  any = s32[] get-tuple-element(p), index=2
  x = f32[20,8] get-tuple-element(p), index=3
  up = s32[] get-tuple-element(p), index=4
  one = s32[] constant(1)
  two = s32[] constant(2)
  next = s32[] add(i, one)
  shifted = s32[] add(i, two)
  up.next = s32[] add(up, two)
  twice = s32[] multiply(any, any)
  zero = s32[] constant(0)
  row = f32[1,8] slice(x), slice={{[0:1], [0:8]}}
  {body}
  ROOT t = (s32[], s32[], s32[], f32[20,8], s32[]) tuple(next, i, twice, made, up.next)
}}
condition {{
  q = (s32[], s32[], s32[], f32[20,8], s32[]) parameter(0)
  j = s32[] get-tuple-element(q), index=0
  ten = s32[] constant(10)
  ROOT less = pred[] compare(j, ten), direction=LT
}}
ENTRY e {{
  one = s32[] constant(1)
  zero = s32[] constant(0)
  n = s32[] parameter(0)
  x = f32[20,8] parameter(1)
  state = (s32[], s32[], s32[], f32[20,8], s32[]) tuple(one, zero, n, x, {up})
  ROOT w = (s32[], s32[], s32[], f32[20,8], s32[]) while(state), condition=condition, body=body
}}
"""
MADE = "made = f32[20,8] dynamic-update-slice(x, {}, {})"
TO_HOST = 'h = f32[1,8] custom-call(row), custom_call_target="MoveToHost" '
TO_DEVICE = 'd = f32[1,8] custom-call(s), custom_call_target="MoveToDevice" '
SLICE = "s = f32[1,8] dynamic-slice(x, {}), dynamic_slice_sizes={{1,8}} "


def variable(index: int, init: int | None = None, step: int = 1) -> str:
    values = "" if init is None else f',"init":"{init}","step":"{step}"'
    return f'{{"tuple_index":"{index}"{values}}}'


@pytest.mark.parametrize(
    ("body", "variables"),
    [
        (TO_HOST + MADE.format("h", "i, zero"), [variable(0, 1)]),
        (TO_HOST + MADE.format("h", "zero, i"), [variable(0, 1)]),
        (TO_HOST + MADE.format("h", "behind, shifted"), [variable(0, 1), variable(1, 0)]),
        (TO_HOST + MADE.format("h", "up, any"), [variable(2), variable(4, 0, 2)]),
        (TO_HOST + MADE.format("h", "twice, twice"), []),
        (TO_HOST.replace("ToHost", "ToDevice") + MADE.format("h", "i, i"), []),
        (MADE.format("row", "i, i"), []),
        (TO_HOST + MADE.format("row", "i, i"), []),
        (SLICE.format("up, i") + TO_DEVICE + MADE.format("d", "zero, zero"),
         [variable(0, 1), variable(4, 0, 2)]),
        (SLICE.format("behind, zero") + TO_DEVICE.replace("ToDevice", "ToHost")
         + MADE.format("d", "zero, any"), [variable(2)]),
        (SLICE.format("i, i") + MADE.format("s", "zero, zero"), []),
        ("s = f32[1,8] dynamic-update-slice(row, row, up, i) " + TO_DEVICE
         + MADE.format("d", "zero, zero"), []),
        (TO_DEVICE.replace("(s)", "(row)") + MADE.format("d", "up, up"), []),
        (SLICE.format("any, zero") + TO_DEVICE + TO_HOST + MADE.format("h", "up, i"),
         [variable(0, 1), variable(2), variable(4, 0, 2)]),
    ],
)  # fmt: skip
def test_elements_that_index_slices_between_host_and_device_are_named(
    body: str, variables: list[str]
) -> None:
    module, _ = annotated(TRANSFERS.format(body=body, up="zero"))
    (config,) = configs(module)
    assert config is not None
    assert config.partition('"dynamic_variables":')[2] == f"[{','.join(variables)}]}}"


def test_an_element_that_starts_anywhere_is_only_named() -> None:
    body = TO_HOST + MADE.format("h", "up, zero")
    module, _ = annotated(TRANSFERS.format(body=body, up="n"))
    (config,) = configs(module)
    assert config is not None
    assert config.endswith(f'"dynamic_variables":[{variable(4)}]}}')
