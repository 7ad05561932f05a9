"""Conversions beside collectives."""

from __future__ import annotations

import pytest
from tests.checks.expecting import UNPARTITIONED
from tests.checks.lint.linting import check, found_names, violations

from hloopt.analysis.inventory.collectives import collectives_of
from hloopt.checks.results import Severity, Verdict
from hloopt.text import parse_module

GROUPS = "replica_groups={{0,1,2,3}}"
SUM = "sum {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT s = f32[] add(a, b)\n}\n"
ALL = {"size": 0}


def program(*lines: str, more: str = SUM) -> str:
    body = "\n".join(f"  {line}" for line in lines)
    return f"HloModule m, replica_count=4\n\n{more}\nENTRY e {{\n{body}\n}}\n"


def converted(narrow: str, wide: str, collective: str = "all-gather") -> str:
    attributes = f"{GROUPS}, dimensions={{0}}"
    size = 256 if collective == "all-gather" else 64
    if collective.startswith("collective"):
        attributes = "source_target_pairs={{0,1},{1,0}}"
        attributes = GROUPS if collective == "collective-broadcast" else attributes
    return program(
        f"p = {narrow}[64] parameter(0)",
        f"w = {wide}[64] convert(p)",
        f"ROOT g = {wide}[{size}] {collective}(w), {attributes}",
    )


def test_a_ragged_all_to_all_keeps_wide_what_it_does_not_write() -> None:
    text = program(
        "p = bf16[64] parameter(0)",
        "into = f32[64] parameter(1)",
        "n = s32[4] parameter(2)",
        "w = f32[64] convert(p)",
        f"ROOT g = f32[64] ragged-all-to-all(w, into, n, n, n, n), {GROUPS}",
    )
    assert found_names("HLL112", text, size=0) == []


@pytest.mark.parametrize(
    ("narrow", "wide", "is_found"),
    [
        ("bf16", "f32", True),
        ("f8e4m3fn", "bf16", True),
        ("s8", "s32", True),
        ("u8", "u32", True),
        ("f32", "bf16", False),
        ("bf16", "f16", False),
        ("s8", "f32", False),
        ("u8", "s32", False),
        ("pred", "s32", False),
        ("f8e8m0fnu", "f32", False),
    ],
)
def test_the_wider_type_holds_every_value(narrow: str, wide: str, is_found: bool) -> None:
    assert found_names("HLL112", converted(narrow, wide), **ALL) == ["g"] * is_found


@pytest.mark.parametrize(
    "collective", ["all-gather", "all-to-all", "collective-permute", "collective-broadcast"]
)
def test_the_claim_is_the_difference_of_two_inventories(collective: str) -> None:
    before, after = converted("bf16", "f32", collective), converted("bf16", "bf16", collective)
    (found,) = violations("HLL112", before, **ALL)
    saved = wire(before) - wire(after)
    assert saved > 0
    assert found.impact.moved == saved
    assert found_names("HLL112", after, **ALL) == []


def wire(text: str) -> int:
    return sum(each.wire for each in collectives_of(parse_module(text)))


def test_what_reduces_is_not_moved() -> None:
    text = program(
        "p = bf16[64] parameter(0)",
        "w = f32[64] convert(p)",
        f"ROOT r = f32[64] all-reduce(w), {GROUPS}, to_apply=sum",
    )
    assert found_names("HLL112", text, **ALL) == []


@pytest.mark.parametrize(
    ("lines", "more"),
    [
        pytest.param(
            ("w = f32[64] convert(p)", "c = f32[8,8] reshape(w)",
             "t = f32[8,8] transpose(c), dimensions={1,0}",
             f"ROOT g = f32[32,8] all-gather(t), {GROUPS}, dimensions={{0}}"), "", id="in between",
        ),
        pytest.param(
            ("f = f32[64] fusion(p), kind=kLoop, calls=wide",
             f"ROOT g = f32[256] all-gather(f), {GROUPS}, dimensions={{0}}"),
            "wide {\n  a = bf16[64] parameter(0)\n  ROOT c = f32[64] convert(a)\n}\n", id="fused",
        ),
        pytest.param(
            ("w = f32[64] convert(p)", "s = ((f32[64]), f32[256]) async-start(w), calls=wrapped",
             "ROOT d = f32[256] async-done(s)"),
            "wrapped {\n  a = f32[64] parameter(0)\n"
            f"  ROOT g = f32[256] all-gather(a), {GROUPS}, dimensions={{0}}\n}}\n", id="wrapped",
        ),
        pytest.param(
            ("w = f32[64] convert(p)", f"s = (f32[64], f32[256]) all-gather-start(w), {GROUPS}, "
             "dimensions={0}", "ROOT d = f32[256] all-gather-done(s)"), "", id="pair",
        ),
    ],
)  # fmt: skip
def test_conversions_are_seen_through_what_only_hands_on(lines: tuple[str, ...], more: str) -> None:
    text = program("p = bf16[64] parameter(0)", *lines, more=more)
    assert len(found_names("HLL112", text, **ALL)) == 1


@pytest.mark.parametrize(
    "lines",
    [
        ("w = f32[64] convert(p)", "n = f32[64] negate(w)",
         f"ROOT g = f32[256] all-gather(n), {GROUPS}, dimensions={{0}}"),
        ("w = f32[64] convert(p)",
         "ROOT g = f32[64] all-gather(w), replica_groups={{0},{1},{2},{3}}, dimensions={0}"),
    ],
)  # fmt: skip
def test_computed_or_degenerate_data_is_left_out(lines: tuple[str, ...]) -> None:
    text = program("p = bf16[64] parameter(0)", *lines)
    assert found_names("HLL112", text, **ALL) == []


def test_only_the_operands_that_were_converted_count() -> None:
    text = program(
        "p = bf16[64] parameter(0)", "q = f32[64] parameter(1)", "w = f32[64] convert(p)",
        f"ROOT g = (f32[256], f32[256]) all-gather(w, q), {GROUPS}, dimensions={{0}}",
    )  # fmt: skip
    (found,) = violations("HLL112", text, **ALL)
    assert found.impact.moved == wire(text) // 4


def test_small_collectives_are_left_out() -> None:
    text = converted("bf16", "f32")
    assert found_names("HLL112", text, size=1024) == ["g"]
    assert found_names("HLL112", text, size=1025) == []
    assert found_names("HLL112", text) == []
    assert check("HLL112", UNPARTITIONED).verdict is Verdict.NONE


# -- behind a reduction ---------------------------------------------------------------------------


def reduced(*lines: str, more: str = "", groups: str = GROUPS) -> str:
    reduction = f"r = f32[64] all-reduce(p), {groups}, to_apply=sum"
    return program("p = f32[64] parameter(0)", reduction, *lines, more=SUM + more)


NARROW = "narrow {\n  a = f32[64] parameter(0)\n  ROOT c = bf16[64] convert(a)\n}\n"


@pytest.mark.parametrize(
    ("lines", "more", "is_found"),
    [
        (("ROOT n = bf16[64] convert(r)",), "", True),
        (("ROOT n = bf16[64] fusion(r), kind=kLoop, calls=narrow",), NARROW, True),
        (("ROOT n = bf16[64] fusion(r), kind=kLoop, calls=narrow",),
         NARROW.replace("ROOT c = bf16[64] convert(a)",
                        "n = f32[64] negate(a)\n  ROOT c = bf16[64] convert(n)"), False),
        (("ROOT n = f64[64] convert(r)",), "", False),
        (("ROOT n = s8[64] convert(r)",), "", False),
        (("n = bf16[64] convert(r)", "ROOT m = f32[64] negate(r)"), "", False),
        (("n = bf16[64] convert(r)", "ROOT t = (bf16[64], f32[64]) tuple(n, r)"), "", False),
        (("ROOT m = f32[64] negate(p)",), "", False),
    ],
)  # fmt: skip
def test_all_readers_convert_to_a_narrower_float(
    lines: tuple[str, ...], more: str, is_found: bool
) -> None:
    text = reduced(*lines, more=more)
    assert found_names("HLL113", text, **ALL) == ["r"] * is_found


def test_the_note_claims_what_the_narrow_type_sends_less() -> None:
    text = reduced("ROOT n = bf16[64] convert(r)")
    (found,) = violations("HLL113", text, **ALL)
    assert found.severity is Severity.NOTE
    assert found.impact.moved == wire(text) // 2
    assert check("HLL113", text, size=0).verdict is Verdict.PASSED
    assert found_names("HLL113", text) == []
    alone = reduced("ROOT n = bf16[64] convert(r)", groups="replica_groups={{0},{1},{2},{3}}")
    assert found_names("HLL113", alone, **ALL) == []
    as_root = reduced("n = bf16[64] convert(r)").replace("  r = ", "  ROOT r = ")
    assert found_names("HLL113", as_root, **ALL) == []
