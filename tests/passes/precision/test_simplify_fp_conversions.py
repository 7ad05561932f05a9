"""Converts between floating-point types that only lead to another convert."""

from __future__ import annotations

import pytest
from tests.passes.checked_run import reasons_to_stay, run_checked, shown

from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module
from record_conversions import PASS, RECORD, hlo, notation


def test_what_xla_made_of_recorded_programs() -> None:
    """Whole graphs, by the names of their instructions."""
    records = [block.split("\n") for block in RECORD.read_text("utf-8").strip().split("\n\n")]
    assert len(records) > 100
    assert sum(_sorted(before) != after for before, after in records) > 100
    different = []
    for before, after in records:
        module = parse_module(hlo(before))
        create_pass(PASS).run(module, PassContext())
        if notation(module) != after:
            different.append((before, after, notation(module)))
    assert different == []


def _sorted(line: str) -> str:
    """A program in the order in which the record has answers."""
    return notation(parse_module(hlo(line)))


def simplified(body: str, *, changes: bool = True, before: str = "") -> list[str]:
    text = f"HloModule m\n{before}\nENTRY e {{ {body} }}"
    return shown(run_checked(PASS, text, changes=changes).entry)


def test_a_chain_back_to_its_first_type_goes() -> None:
    assert simplified(
        "p = f32[4] parameter(0) a = f64[4] convert(p) b = f32[4] convert(a) "
        "c = f16[4] convert(b) d = f32[4] convert(c) ROOT r = f32[4] negate(d)"
    ) == ["p = f32[4] parameter(0)", "ROOT r = f32[4] negate(p)"]


def test_a_chain_from_an_integer_is_one_convert() -> None:
    assert simplified(
        "p = s32[4] parameter(0) a = f32[4] convert(p) ROOT b = bf16[4] convert(a)"
    ) == ["p = s32[4] parameter(0)", "ROOT b = bf16[4] convert(p)"]


@pytest.mark.parametrize(
    "body",
    [
        "p = f32[4] parameter(0) ROOT a = bf16[4] convert(p)",
        "p = f32[4] parameter(0) a = s32[4] convert(p) ROOT b = f32[4] convert(a)",
        "p = c64[4] parameter(0) a = c128[4] convert(p) ROOT b = c64[4] convert(a)",
        "p = f32[4] parameter(0) a = bf16[4] convert(p) b = bf16[4] negate(a) "
        "ROOT c = f32[4] convert(b)",
    ],
)
def test_what_is_no_chain_stays(body: str) -> None:
    simplified(body, changes=False)


def test_a_user_of_an_inner_convert_keeps_it() -> None:
    assert simplified(
        "p = f64[4] parameter(0) a = f32[4] convert(p) b = bf16[4] convert(a) "
        "c = f64[4] convert(b) ROOT t = (f32[4], bf16[4], f64[4]) tuple(a, b, c)"
    ) == [
        "p = f64[4] parameter(0)",
        "a = f32[4] convert(p)",
        "b = bf16[4] convert(p)",
        "ROOT t = (f32[4], bf16[4], f64[4]) tuple(a, b, p)",
    ]


def test_another_layout_needs_a_convert() -> None:
    assert simplified(
        "p = f32[2,3]{1,0} parameter(0) a = bf16[2,3]{0,1} convert(p) "
        "ROOT b = f32[2,3]{0,1} convert(a)"
    ) == ["p = f32[2,3] parameter(0)", "ROOT b = f32[2,3] convert(p)"]


def test_control_dependencies_keep_a_convert_as_it_is() -> None:
    text = (
        "HloModule m\nENTRY e { p = f32[4] parameter(0) n = f32[4] negate(p) "
        "a = bf16[4] convert(p) b = f32[4] convert(a), control-predecessors={n} "
        "c = (f32[4], f32[4]) tuple(b, n) ROOT r = f32[4] get-tuple-element(c), index=0 }"
    )
    assert reasons_to_stay(PASS, text) == ["it keeps taking %a: it has control dependencies"]


def test_a_chain_goes_on_behind_a_convert_that_stays() -> None:
    assert simplified(
        "p = f32[4] parameter(0) n = f32[4] negate(p) a = bf16[4] convert(p) "
        "b = f16[4] convert(a), control-predecessors={n} c = f64[4] convert(b) "
        "ROOT t = (f16[4], f64[4], f32[4]) tuple(b, c, n)"
    )[-2:] == ["c = f64[4] convert(p)", "ROOT t = (f16[4], f64[4], f32[4]) tuple(b, c, n)"]


def test_fusions_and_bodies_are_looked_at() -> None:
    fused = (
        "f { p = f32[4] parameter(0) a = bf16[4] convert(p) b = f32[4] convert(a) "
        "ROOT n = f32[4] negate(b) }"
    )
    module = run_checked(
        PASS,
        f"HloModule m\n{fused}\nENTRY e {{ p = f32[4] parameter(0) "
        "ROOT f = f32[4] fusion(p), kind=kLoop, calls=f }",
    )
    assert len(module.computations["f"]) == 2


def test_annotations_of_what_goes_are_kept() -> None:
    module = run_checked(
        PASS,
        "HloModule m\nENTRY e { p = f32[4] parameter(0) q = f32[4] negate(p) "
        'a = bf16[4] convert(q) b = f32[4] convert(a), metadata={op_name="back"} '
        "ROOT r = f32[4] negate(b) }",
    )
    assert 'op_name="back"' in str(module.entry["q"])
