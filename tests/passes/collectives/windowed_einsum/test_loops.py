"""Loops of windowed einsums: which are unrolled, what they collect, and what stays."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.passes.checked_run import reasons_to_stay, run_equal, shown
from tests.passes.collectives.windowed_einsum.programs import (
    adding,
    gathering,
    scattering,
    together,
)

from hloopt.ir import Instruction, Module, Opcode
from hloopt.ir.attributes.backend_config import backend_config
from hloopt.pass_framework.applications import Applications
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.passes.collectives.windowed_einsum.loops import dots_of
from hloopt.text import parse_module, print_module

_NAME = "windowed-einsum-handler"
_EFFECT = (
    "o = token[] after-all()\n  of = token[] outfeed(i, o), outfeed_shape=u32[]\n"
    "  i2 = u32[] add(i1, one)"
)


def body_of(module: Module) -> list[Instruction]:
    (loop,) = module.instructions(Opcode.WHILE)
    return list(loop.called[0].instructions)


# -- one trip -------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 4, 8])
@pytest.mark.parametrize("program", [gathering, adding, scattering])
def test_all_trips_become_one(program: Callable[..., str], n: int) -> None:
    module = run_equal(_NAME, program(n))
    assert sum(i.opcode is Opcode.DOT for i in body_of(module)) == n
    (loop,) = module.instructions(Opcode.WHILE)
    assert [c.name.partition(".")[0] for c in loop.called] == [
        f"unrolled_windowed_dot_general_{kind}_{'rs' if program is scattering else 'ag'}"
        for kind in ("body", "cond")
    ]
    assert not create_pass(_NAME).run(module, PassContext())


def test_what_reads_the_counter_gets_that_of_its_trip() -> None:
    """XLA takes the number of the trip instead: its second trip is wrong."""
    run_equal(_NAME, gathering(sum0="sum0 = u32[] add(i, id)"))


def test_a_counter_may_go_down() -> None:
    text = gathering(
        i2="two = u32[] constant(2)\n  i2 = u32[] subtract(i, two)",
        c="z = u32[] constant(0)\n  ROOT c = pred[] compare(i, z), direction=GT",
    )
    body, entry = text.split("ENTRY")
    entry = entry.replace("u32[] constant(0)", "u32[] constant(4)")
    module = run_equal(_NAME, f"{body}ENTRY{entry}")
    assert "direction=GE" in "".join(shown(next(module.instructions(Opcode.WHILE)).called[1]))


def test_each_dot_has_a_queue_and_the_first_permute_starts_early() -> None:
    for text, element in ((gathering(), 0), (scattering(), 2)):
        body = body_of(run_equal(_NAME, text))
        dots = [backend_config(i) for i in body if i.opcode is Opcode.DOT]
        queues = [int(config["operation_queue_id"]) for config in dots]
        assert queues == [*range(queues[0], queues[0] + 4)]
        early = [i for i in body if backend_config(i).get("force_earliest_schedule")]
        assert [i.opcode for i in early] == ["collective-permute"]
        (read,) = early[0].operands
        assert read.tuple_index == element
        assert read.operands[0].opcode is Opcode.PARAMETER


def test_loops_share_queues() -> None:
    module = run_equal(_NAME, together(gathering(), adding(), scattering()))
    queues = [
        [int(backend_config(dot)["operation_queue_id"]) for dot in dots_of(body.instructions)]
        for body in (loop.called[0] for loop in module.instructions(Opcode.WHILE))
    ]
    first = queues[0][0]
    assert queues == [[first, first + 1, first + 2, first + 3]] * 3


def test_two_loops_may_share_a_body() -> None:
    state = "(f32[2,2,3], f32[3,5], f32[2,8,5], f32[2,8,5], u32[])"
    text = gathering(
        r=f"t2 = {state} tuple(lhs, rhs, out, b, i)\n  w2 = {state} while(t2), "
        "condition=windowed_dot_general_cond_ag, body=windowed_dot_general_body_ag\n"
        "  out2 = f32[2,8,5] get-tuple-element(w2), index=2\n"
        "  ROOT r = (f32[2,8,5], f32[2,8,5]) tuple(out, out2)"
    )
    module = run_equal(_NAME, text)
    assert len({loop.called for loop in module.instructions(Opcode.WHILE)}) == 2


def test_a_schedule_stays_one() -> None:
    module = parse_module(gathering(chained=True))
    create_pass("hlo-trivial-scheduler").run(module, PassContext())
    text = print_module(module)
    assert "is_scheduled=true" in text
    run_equal(_NAME, text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            gathering(i2="i2 = u32[] add(i1, id)"),
            "its trip count is not proved: ",
        ),
        (
            gathering(i2="i2 = u32[] multiply(i1, n)"),
            "no element of its state counts its trips",
        ),
        (
            gathering(c="z = u32[] constant(0)\n  ROOT c = pred[] compare(i, z), direction=LT"),
            "it makes no trip",
        ),
        (
            gathering(i2=_EFFECT),
            "%of in it has a side effect, which trips keep in order",
        ),
    ],
)
def test_loops_that_stay(text: str, reason: str) -> None:
    (found,) = reasons_to_stay(_NAME, text)
    assert found.startswith(reason)


def test_a_loop_with_too_few_elements_stays() -> None:
    text = """HloModule m

windowed_dot_general_body_ag {
  p = (f32[2,2], u32[]) parameter(0)
  x = f32[2,2] get-tuple-element(p), index=0
  i = u32[] get-tuple-element(p), index=1
  a = f32[2,2] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  b = f32[2,2] dot(a, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  one = u32[] constant(1)
  next = u32[] add(i, one)
  ROOT t = (f32[2,2], u32[]) tuple(b, next)
}

windowed_dot_general_cond_ag {
  p = (f32[2,2], u32[]) parameter(0)
  i = u32[] get-tuple-element(p), index=1
  n = u32[] constant(2)
  ROOT c = pred[] compare(i, n), direction=LT
}

ENTRY e {
  x = f32[2,2] parameter(0)
  i = u32[] constant(0)
  t = (f32[2,2], u32[]) tuple(x, i)
  ROOT w = (f32[2,2], u32[]) while(t), condition=windowed_dot_general_cond_ag,
    body=windowed_dot_general_body_ag
}
"""
    assert reasons_to_stay(_NAME, text) == ["its state has no result beside two operands"]


def test_large_bodies_stay() -> None:
    assert reasons_to_stay(_NAME, gathering(), max_instructions=10) == [
        "its body would have 58 instructions, and max_instructions is 10"
    ]


def test_other_names_and_single_dots_are_no_windowed_einsums() -> None:
    assert reasons_to_stay(_NAME, gathering().replace("windowed_dot_general_body", "body")) == []
    single = gathering(dot_1="dot.1 = f32[2,2,5] negate(dot.0)")
    assert reasons_to_stay(_NAME, single) == []


def test_nothing_changes_at_the_limit() -> None:
    module = parse_module(gathering(narrow="multiply", chained=True))
    before = print_module(module)
    assert not create_pass(_NAME).run(module, PassContext(applications=Applications(0)))
    assert print_module(module) == before
