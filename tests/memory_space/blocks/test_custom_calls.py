"""Prefetches that custom calls do: their places, and where they are put."""

from __future__ import annotations

from typing import Any

import pytest
from tests.memory_space.blocks.blocks import LOOP, assign, entry, names

from hloopt.diagnostics import HloError

PAIR = (
    "s = (f32[6], s32[]) custom-call(p), custom_call_target='load'",
    "e0 = f32[6] get-tuple-element(s), index=0",
    "e1 = s32[] get-tuple-element(s), index=1",
    "d = f32[6] custom-call(p, e0, e1), custom_call_target='loaded', "
    "output_to_operand_aliasing={{}: (1, {})}",
)
LATER = ("a = f32[6] negate(q)", "b = f32[6] negate(a)")
READ = ("c = f32[6] add(b, d)", "ROOT r = f32[6] abs(c)")
CALLS: dict[str, Any] = {"custom_call_prefetches": (("p", "s", "d"),)}


def _text(*lines: str, **more: str) -> str:
    return entry(*(line.replace("'", '"') for line in lines), **more)


def _between(order: list[str], first: str, second: str) -> list[str]:
    return order[order.index(first) + 1 : order.index(second)]


def test_the_start_comes_early_and_the_done_before_the_first_use() -> None:
    module, report = assign(_text(*LATER, *PAIR, *READ), **CALLS)
    assert _between(names(module), "s", "d") == ["q", "i", "a", "b", "e0", "e1"]
    chunks = {(c.instruction.name, c.index): c for c in report.chunks}
    assert chunks["s", (0,)].offset == chunks["d", ()].offset
    assert module["d"].shape.layout.memory_space == 1
    assert module["s"].operands[0].shape.layout.memory_space == 0


def test_the_place_is_taken_from_the_start_to_the_last_use() -> None:
    text = _text(*PAIR, *LATER, *READ)
    _, report = assign(text, max_size_in_bytes=24, **CALLS)
    assert {c.instruction.name for c in report.chunks} == {"s", "d"}


def test_it_waits_for_room_and_for_others_in_flight() -> None:
    lines = (*PAIR, *LATER, "e = f32[6] negate(q)", *READ)
    module, _ = assign(_text(*lines), "a", max_outstanding_block_prefetches=1, **CALLS)
    assert names(module).index("s") > names(module).index("a")
    module, _ = assign(_text(*lines), "q", reserved_bytes_for_block_prefetches=24, **CALLS)
    assert names(module).index("s") == names(module).index("e") + 1


def test_what_it_reads_is_in_default_memory_all_the_time() -> None:
    lines = ("z = f32[6] negate(p)", *(line.replace("(p", "(z") for line in PAIR), *LATER, *READ)
    _, report = assign(_text(*lines), custom_call_prefetches=(("z", "s", "d"),))
    assert "z" not in {c.instruction.name for c in report.chunks}


def test_it_is_done_before_what_it_reads_is_written() -> None:
    lines = (
        "z = f32[6] negate(p)",
        *(line.replace("(p", "(z") for line in PAIR),
        "h = f32[1] constant({1})",
        "u = f32[6] dynamic-update-slice(z, h, i)",
        "b = f32[6] negate(u)",
        *READ,
    )
    module, _ = assign(_text(*lines), custom_call_prefetches=(("z", "s", "d"),))
    order = names(module)
    assert order.index("d") < order.index("u")


def test_control_dependencies_hold() -> None:
    late = PAIR[0] + ", control-predecessors={a}"
    order = names(assign(_text(LATER[0], late, *PAIR[1:], LATER[1], *READ), **CALLS)[0])
    assert order.index("a") < order.index("s")
    early = LATER[1] + ", control-predecessors={d}"
    order = names(assign(_text(*PAIR, LATER[0], early, *READ), **CALLS)[0])
    assert order.index("d") < order.index("b")


def test_without_room_it_stays_where_it_is_in_default_memory() -> None:
    text = _text(*LATER, *PAIR, *READ)
    module, report = assign(text, reserved_bytes_for_block_prefetches=23, **CALLS)
    assert names(module).index("s") > names(module).index("b")
    assert "d" not in {c.instruction.name for c in report.chunks}


def test_the_text_demands_a_place_that_is_not_there() -> None:
    text = _text(*LATER, *(line.replace("f32[6]", "f32[6]{0:S(1)}") for line in PAIR), *READ)
    assign(text, **CALLS)
    with pytest.raises(HloError, match="requires allocation in the alternate memory"):
        assign(text, reserved_bytes_for_block_prefetches=23, **CALLS)


def test_a_source_that_the_start_does_not_read() -> None:
    with pytest.raises(HloError, match="'%s' does not read '%q'"):
        assign(_text(*PAIR, *LATER, *READ), custom_call_prefetches=(("q", "s", "d"),))


BRANCHES = """
yes {
  y = f32[6] parameter(0)
  ROOT y1 = f32[6] negate(y)
}
no {
  n = f32[6] parameter(0)
  ROOT n1 = f32[6] abs(n)
}
"""


def test_branches_read_what_is_loaded() -> None:
    choice = "r = f32[6] conditional(k, d, d), true_computation=yes, false_computation=no"
    lines = ("k = pred[] constant(true)", *PAIR, *LATER, f"{choice}", "ROOT t = f32[6] add(r, b)")
    module, _ = assign(_text(*lines, computations=BRANCHES), **CALLS)
    assert module["y"].shape.layout.memory_space == module["n"].shape.layout.memory_space == 1


AROUND = (
    "w = (s32[], f32[6]) while(t), condition=condition, body=body",
    "ROOT g = s32[] get-tuple-element(w), index=0",
)


def test_what_a_loop_only_reads_keeps_its_place_until_the_loop_ends() -> None:
    lines = (*PAIR, *LATER, "t = (s32[], f32[6]) tuple(i, d)", *AROUND)
    loop = LOOP.replace("LINES", "x3 = f32[6] add(x1, x2)").replace("LAST", "x")
    _, report = assign(_text(*lines, computations=loop), max_size_in_bytes=24, **CALLS)
    found = {c.instruction.name for c in report.chunks}
    assert {"s", "d", "bs"} <= found
    assert found.isdisjoint({"x1", "x2", "x3"})


def test_what_the_next_iteration_reads_is_left_alone() -> None:
    pair = "\n".join(PAIR).replace("(p", "(x2").replace("'", '"')
    loop = LOOP.replace("LINES", pair).replace("LAST", "d")
    lines = ("t = (s32[], f32[6]) tuple(i, p)", *AROUND)
    text = _text(*lines, computations=loop)
    calls = (("x2", "s", "d"),)
    module, _ = assign(text, custom_call_prefetches=calls)
    order = [i.name for i in module.computations["body"].instructions]
    assert order.index("e0") == order.index("s") + 1
    _, report = assign(text, max_outstanding_prefetches=-1, custom_call_prefetches=calls)
    assert "d" in {c.instruction.name for c in report.chunks}


def test_a_color_is_met_by_the_place_itself() -> None:
    colored = ({"position": "d", "memory_space": 1},)
    text = _text(*PAIR, *LATER, *READ)
    _, report = assign(text, max_size_in_bytes=24, buffer_colorings=colored, **CALLS)
    assert {c.instruction.name for c in report.chunks} == {"s", "d"}


LEFT_ALONE: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "a result": ((*LATER, *PAIR, "ROOT t = (f32[6], f32[6]) tuple(b, d)"), {}),
    "without a use": ((*LATER, *PAIR, "ROOT r = f32[6] abs(b)"), {}),
    "a start with other readers": (
        (*LATER, *PAIR, "e2 = f32[6] negate(e0)", "c = f32[6] add(e2, d)", READ[1]),
        {},
    ),
    "a done with memory of its own": (
        (*LATER, *PAIR[:3], PAIR[3].split(", output")[0], *READ),
        {},
    ),
    "in a third memory": (
        (*LATER, *(line.replace("f32[6]", "f32[6]{0:S(2)}") for line in PAIR), *READ),
        {},
    ),
    "with a call in between": (
        (
            *LATER,
            *PAIR[:3],
            "m = s32[] custom-call(s), custom_call_target='middle'",
            PAIR[3].replace("e1)", "e1, m)"),
            *READ,
        ),
        {},
    ),
    "a source demanded in alternate memory": (
        (*LATER, *PAIR, *READ),
        {"buffer_colorings": ({"use": "s", "operand": 0, "memory_space": 1},)},
    ),
    "read where it must be in default memory": (
        (*LATER, *PAIR, *READ),
        {"uses_not_allowed": {"names": ["c"]}},
    ),
}


@pytest.mark.parametrize("reason", LEFT_ALONE)
def test_it_is_left_alone(reason: str) -> None:
    lines, options = LEFT_ALONE[reason]
    module, _ = assign(_text(*lines), **CALLS, **options)
    assert names(module).index("s") > names(module).index("b")
