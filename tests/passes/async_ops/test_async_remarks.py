"""Remarks of the passes that make operations asynchronous or synchronous."""

from __future__ import annotations

from typing import Any

import pytest
from tests.passes.checked_run import reasons_to_stay

from hloopt.diagnostics import PassRefused
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module

SYNC = "convert-async-collectives-to-sync"


def module(body: str, callees: str = "", *, header: str = ", is_scheduled=true") -> str:
    return f"""HloModule m{header}
    sum {{ l = f32[] parameter(0) m = f32[] parameter(1) ROOT plus = f32[] add(l, m) }}
    {callees}
    ENTRY e {{ p = f32[4] parameter(0) q = f32[4] parameter(1) {body} }}"""


def applied(name: str, text: str, **options: Any) -> list[str]:
    context = PassContext(name)
    assert create_pass(name, options).run(parse_module(text), context)
    return [f"%{r.instruction}: {r.reason}" for r in context.remarks if r.kind == "applied"]


@pytest.mark.parametrize(
    ("body", "options", "reason"),
    [
        ("ROOT a = f32[4] all-reduce(p), to_apply=sum", {"convert_all_reduce": False},
         "convert_all_reduce is off"),
        ("ROOT a = f32[4] all-reduce(p), to_apply=sum",
         {"convert_all_reduce": True, "all_reduce_min_threshold_in_bytes": 20},
         "its 16 bytes are less than 20"),
        ("b = pred[1] parameter(2) ROOT a = pred[1] all-gather(b), dimensions={0}",
         {"convert_all_gather": True, "all_gather_min_threshold_in_bytes": 20},
         "its 1 byte is less than 20"),
    ],
)  # fmt: skip
def test_collectives_that_stay_in_one_piece(
    body: str, options: dict[str, Any], reason: str
) -> None:
    text = module(body)
    assert reasons_to_stay("async-collective-creator", text, **options) == [reason]


@pytest.mark.parametrize("name", [SYNC, f"gpu-{SYNC}"])
def test_a_collective_that_hides_behind_nothing_is_synchronous(name: str) -> None:
    text = module("s = f32[4] all-reduce-start(p), to_apply=sum ROOT d = f32[4] all-reduce-done(s)")
    assert applied(name, text) == ["%s: nothing hides its latency"]


def test_a_collective_that_takes_its_operands_in_another_order_stays_asynchronous() -> None:
    text = module(
        "s = ((f32[4], f32[4]), (f32[4], f32[4])) async-start(p, q), calls=run "
        "ROOT d = (f32[4], f32[4]) async-done(s)",
        "run { x = f32[4] parameter(0) y = f32[4] parameter(1) "
        "ROOT a = (f32[4], f32[4]) all-reduce(y, x), to_apply=sum }",
    )
    assert reasons_to_stay(SYNC, text) == [
        "the collective it wraps does not take its operands one by one, in order"
    ]


def test_a_permute_in_place_stays_asynchronous() -> None:
    text = module(
        "z = s32[] constant(0) o = (s32[]) tuple(z) "
        "s = (f32[4], f32[4], s32[], s32[]) collective-permute-start(p, q, o, o), "
        "source_target_pairs={{0,1}}, slice_sizes={{4}} "
        "ROOT d = f32[4] collective-permute-done(s)"
    )
    assert reasons_to_stay(SYNC, text) == [
        "it has tuples as operands, as a collective-permute in place"
    ]


def test_a_copy_from_the_host_is_split() -> None:
    text = """HloModule m
    ENTRY e { p = f32[4]{0:S(5)} parameter(0) ROOT c = f32[4]{0} copy(p) }"""
    found = applied("host-memory-transfer-asyncifier", text)
    assert found == ["%c: split, begins with %copy-start"]


def test_a_text_that_names_no_group() -> None:
    text = module('ROOT a = f32[4] negate(p), frontend_attributes={_scheduling_group_id="first"}')
    with pytest.raises(PassRefused) as refused:
        create_pass("legalize-scheduling-annotations").run(parse_module(text), PassContext())
    assert refused.value.message == "'%a': _scheduling_group_id=\"first\" is not a scheduling group"


@pytest.mark.parametrize(
    ("disabled", "remark"), [((), "%s: asynchronous"), (("all-reduce",), "%s: synchronous")]
)
def test_how_a_collective_is_to_run(disabled: tuple[str, ...], remark: str) -> None:
    text = module(
        "s = ((f32[4]), f32[4]) async-start(p), calls=run ROOT d = f32[4] async-done(s)",
        "run { x = f32[4] parameter(0) ROOT a = f32[4] all-reduce(x), to_apply=sum }",
    )
    found = applied("async-collective-annotator", text, disable_async_collectives=disabled)
    assert found == [remark]
