"""Converts that move to where values are narrow."""

from __future__ import annotations

import pytest
from tests.passes.checked_run import reasons_to_stay, run_equal, shown


def program(body: str) -> str:
    return f"HloModule m\nENTRY e {{ {body} }}"


@pytest.mark.parametrize(
    ("body", "root"),
    [
        (
            "p = bf16[6] parameter(0) c = f32[6] convert(p) ROOT r = f32[2,3] reshape(c)",
            "ROOT convert = f32[2,3] convert(r.1)",
        ),
        (
            "p = bf16[2] parameter(0) c = f32[2] convert(p) k = f32[1] constant({0.5}) "
            "ROOT r = f32[3] concatenate(k, c), dimensions={0}",
            "ROOT convert = f32[3] convert(r.1)",
        ),
        (
            "p = s8[0,2] parameter(0) c = s32[0,2] convert(p) "
            "ROOT r = s32[2,0] transpose(c), dimensions={1,0}",
            "ROOT convert = s32[2,0] convert(r.1)",
        ),
        (
            "p = pred[4] parameter(0) c = s32[4] convert(p) "
            "ROOT r = s32[2] slice(c), slice={[0:2]}",
            "ROOT convert = s32[2] convert(r.1)",
        ),
        (
            "p = f32[4] parameter(0) s = f32[2] slice(p), slice={[0:4:2]} "
            "r = f32[2,1] reshape(s) ROOT c = f16[2,1] convert(r)",
            "ROOT r.1 = f16[2,1] reshape(s.1)",
        ),
    ],
)
def test_what_moves(body: str, root: str) -> None:
    lines = shown(run_equal("convert-mover", program(body)).entry)
    assert lines[-1].replace("convert.1", "convert") == root


@pytest.mark.parametrize(
    ("body", "reasons"),
    [
        # One width, or one that is no wider.
        ("p = f16[4] parameter(0) c = bf16[4] convert(p) ROOT r = bf16[2,2] reshape(c)", []),
        ("p = f32[4] parameter(0) r = f32[2,2] reshape(p) ROOT c = s32[2,2] convert(r)", []),
        # Nothing but constants, or a value that no convert gives.
        ("k = f32[1] constant({0.5}) ROOT r = f32[] reshape(k)", []),
        (
            "p = bf16[2] parameter(0) c = f32[2] convert(p) f = f32[2] parameter(1) "
            "ROOT r = f32[4] concatenate(c, f), dimensions={0}",
            [],
        ),
        (
            "p = f16[2] parameter(0) c = f32[2] convert(p) k = f32[1] constant({0.1}) "
            "ROOT r = f32[3] concatenate(c, k), dimensions={0}",
            ["convert-afterwards: %k would not be the same in f16"],
        ),
        (
            "p = bf16[2] parameter(0) c = f32[2] convert(p) n = f32[2] negate(c) "
            "r = f32[1,2] reshape(c) ROOT t = (f32[2], f32[1,2]) tuple(n, r)",
            ["convert-afterwards: %c has other users"],
        ),
    ],
)
def test_what_stays(body: str, reasons: list[str]) -> None:
    assert reasons_to_stay("convert-mover", program(body)) == reasons


def test_an_elided_constant_is_not_known() -> None:
    body = (
        "p = f16[2] parameter(0) c = f32[2] convert(p) k = f32[100] constant({...}) "
        "ROOT r = f32[102] concatenate(c, k), dimensions={0}"
    )
    assert reasons_to_stay("convert-mover", program(body)) == [
        "convert-afterwards: %k would not be the same in f16"
    ]


def test_a_new_instruction_does_not_take_over_control_dependencies() -> None:
    body = (
        "p = bf16[2] parameter(0) c = f32[2] convert(p) n = bf16[2] negate(p) "
        "r = f32[1,2] reshape(c), control-predecessors={n} "
        "ROOT t = (bf16[2], f32[1,2]) tuple(n, r)"
    )
    assert reasons_to_stay("convert-mover", program(body)) == [
        "convert-afterwards: it has control dependencies, which a new instruction does not get"
    ]
