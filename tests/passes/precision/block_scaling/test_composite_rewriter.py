"""Corners of replacing composite calls by scaled-dots."""

from __future__ import annotations

import pytest
from tests.passes.checked_run import reasons_to_stay, run_checked, shown

from hloopt.diagnostics import PassRefused
from hloopt.ir import Opcode
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module

PASS = "composite-rewriter"
PLAIN = "f8e4m3fn[3,4,64] f8e4m3fn[3,64,5] f8e8m0fnu[3,4,2] f8e8m0fnu[3,2,5]"
NUMBERS = "dimension_numbers = [[[2], [1]], [[0], [0]]]"
ONE = "constant({{{1}}})"


def composite(
    shapes: str = PLAIN,
    attributes: str | None = NUMBERS,
    *,
    result: str = "bf16[3,4,5]",
    scales: tuple[str, str] = ("", ""),
    more: str = "",
    is_composite: bool = True,
) -> str:
    """A module with one composite call; scales may be given instead of being parameters."""
    kinds = shapes.split()
    inner = "\n".join(f"a{n} = {kind} parameter({n})" for n, kind in enumerate(kinds))
    zero = f"z = {result.partition('[')[0]}[] constant(0)"
    given = ["", "", *scales]
    left_out = [n for n, text in enumerate(given) if text]
    lines = []
    for n, (kind, text) in enumerate(zip(kinds, given, strict=True)):
        number = n - len([other for other in left_out if other < n])
        lines.append(f"p{n} = {kind} {text or f'parameter({number})'}")
    stated = "" if attributes is None else f'composite.attributes="{{{attributes}}}",'
    front = f'frontend_attributes={{{stated}composite.name="xla.scaled_dot"{more}}}'
    mark = "is_composite=true, " if is_composite else ""
    body = "\n".join(lines)
    return f"""HloModule m
f {{ {inner}
  {zero}
  ROOT r = {result} broadcast(z), dimensions={{}} }}
ENTRY e {{ {body}
  ROOT product = {result} call(p0, p1, p2, p3), to_apply=f, {mark}{front} }}"""


def rewritten(text: str) -> str:
    module = run_checked(PASS, text)
    assert "f" in module.computations
    assert module.entry.root.opcode is Opcode.SCALED_DOT
    return shown(module.entry)[-1]


BATCHED = (
    "lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}"
)


def test_the_scaled_dot_has_operands_shape_and_dimension_numbers() -> None:
    assert rewritten(composite()) == (
        f"ROOT scaled-dot = bf16[3,4,5] scaled-dot(p0, p1, p2, p3), {BATCHED}"
    )


def test_two_dimensions_have_no_batch() -> None:
    shapes = "f8e5m2[4,64] f4e2m1fn[5,64] f8e8m0fnu[4,2] f8e8m0fnu[5,1]"
    numbers = "dimension_numbers = [[[1 : i64], [1 : i64]], [[], []]], preferred = f32"
    found = rewritten(composite(shapes, numbers, result="f32[4,5]"))
    assert found.endswith("lhs_contracting_dims={1}, rhs_contracting_dims={1}")


@pytest.mark.parametrize(
    "one", ["constant({{{1}}})", "constant({{{1.0}}})", "constant({{{1.001}}})"]
)
def test_a_side_of_bf16_has_a_constant_one(one: str) -> None:
    shapes = "bf16[3,4,64] f8e4m3fn[3,64,5] bf16[1,1,1] f8e8m0fnu[3,2,5]"
    rewritten(composite(shapes, scales=(one, "")))
    both = "bf16[3,4,64] bf16[3,64,5] bf16[1,1,1] bf16[1,1,1]"
    rewritten(composite(both, scales=(one, one)))


@pytest.mark.parametrize(
    ("shapes", "scales"),
    [
        (PLAIN.replace("f8e4m3fn[3,4", "f8e4m3fnuz[3,4"), ("", "")),
        (PLAIN.replace("f8e8m0fnu[3,4", "f8e4m3fn[3,4"), ("", "")),
        (PLAIN.replace("[3,4,2]", "[3,4,4]"), ("", "")),  # blocks of 16
        (PLAIN.replace("[3,4,2]", "[3,4,3]"), ("", "")),
        (PLAIN.replace("[3,4,2]", "[3,3,2]"), ("", "")),
        (PLAIN.replace("f8e8m0fnu[3,4,2]", "f8e8m0fnu[4,2]"), ("", "")),
        (PLAIN.replace("f8e8m0fnu[3,4,2]", "f8e8m0fnu[]"), ("", "")),
        (PLAIN.replace("64", "0").replace("4,2]", "4,0]"), ("", "")),
        ("bf16[3,4,64] f8e4m3fn[3,64,5] bf16[1,1,1] f8e8m0fnu[3,2,5]", ("", "")),
        ("bf16[3,4,64] f8e4m3fn[3,64,5] bf16[1,1,1] f8e8m0fnu[3,2,5]", ("constant({{{2}}})", "")),
        ("bf16[3,4,64] f8e4m3fn[3,64,5] bf16[] f8e8m0fnu[3,2,5]", ("constant(1)", "")),
        ("bf16[3,4,64] f8e4m3fn[3,64,5] bf16[1,1] f8e8m0fnu[3,2,5]", ("constant({{1}})", "")),
        ("bf16[3,4,64] f8e4m3fn[3,64,5] f32[1,1,1] f8e8m0fnu[3,2,5]", (ONE, "")),
        ("f16[3,4,64] f8e4m3fn[3,64,5] bf16[1,1,1] f8e8m0fnu[3,2,5]", (ONE, "")),
        ("f8e4m3fn[3,4,64] f8e4m3fn[3,64,5] bf16[1,1,1] f8e8m0fnu[3,2,5]", (ONE, "")),
        (
            "bf16[3,1,64] f8e4m3fn[3,64,5] bf16[3,1,1] f8e8m0fnu[3,2,5]",
            ("constant({{{1}},{{1}},{{1}}})", ""),
        ),
    ],
)
def test_other_sides_are_left_alone(shapes: str, scales: tuple[str, str]) -> None:
    result = "bf16[3,1,5]" if "[3,1,64]" in shapes else "bf16[3,4,5]"
    (reason,) = reasons_to_stay(PASS, composite(shapes, scales=scales, result=result))
    assert reason.endswith("is not a side of a scaled-dot")


@pytest.mark.parametrize(
    ("numbers", "reason"),
    [
        ("[[[], []], [[0], [0]]]", "it contracts {} and {}, not one of each side"),
        ("[[[1, 2], [1, 2]], [[0], [0]]]", "it contracts {1,2} and {1,2}, not one of each side"),
        ("[[[x], [1]], [[0], [0]]]", "it contracts {} and {1}, not one of each side"),
        ("[[[2], [1]], [[0, 1], [0, 2]]]", "it has more than one batch dimension"),
        ("[[[-1], [1]], [[0], [0]]]", "is not a side of a scaled-dot"),
        ("[[[3], [1]], [[0], [0]]]", "is not a side of a scaled-dot"),
        ("[[[2], [1]], [[], []]]", "a scaled-dot would be wrong: Expected instruction"),
        ("[[[2], [1]], [[0], []]]", "a scaled-dot would be wrong: Cannot infer shape"),
        ("[[[2], [1]], [[9], [0]]]", "a scaled-dot would be wrong: A dimension number is out of"),
        ("[[[2], [1]], [[2], [1]]]", "a scaled-dot would be wrong: A dimension number is not"),
    ],
)
def test_other_dimension_numbers_are_left_alone(numbers: str, reason: str) -> None:
    (found,) = reasons_to_stay(PASS, composite(attributes=f"dimension_numbers = {numbers}"))
    assert reason in found


def test_other_calls_are_not_looked_at() -> None:
    text = composite(attributes="none")
    assert reasons_to_stay(PASS, text.replace("xla.scaled_dot", "xla.other")) == []
    assert reasons_to_stay(PASS, composite(attributes="none", is_composite=False)) == []


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        (None, "composite.attributes is not set for xla.scaled_dot"),
        ("x = 1", "dimension_numbers are not set in composite attributes"),
        ("x = [1", "composite.attributes is not a dictionary: a bracket is not closed"),
        ("dimension_numbers = 5", "dimension_numbers must be array of size 2"),
        ("dimension_numbers = [[[2], [1]]]", "dimension_numbers must be array of size 2"),
        ("dimension_numbers = [[2, 1], [0, 0]]", "Invalid dimension_numbers structure"),
        ("dimension_numbers = [5, 5]", "Invalid dimension_numbers structure"),
        (
            "dimension_numbers = [[dense<2> : tensor<1xi64>, [1]], [[], []]]",
            "Invalid dimension_numbers structure",
        ),
        (
            "dimension_numbers = [[[2], [1], [1]], [[0], [0]]]",
            "invalid contracting or batch dimensions",
        ),
    ],
)
def test_dimension_numbers_that_cannot_be_read_are_refused(
    attributes: str | None, reason: str
) -> None:
    module = parse_module(composite(attributes=attributes))
    with pytest.raises(PassRefused) as refused:
        create_pass(PASS).run(module, PassContext(PASS))
    assert refused.value.message == f"%product: {reason}"


def test_notes_of_the_front_end_stay_but_for_those_of_the_composite() -> None:
    text = composite(more=',mine="x",composite.version="1"')
    root = run_checked(PASS, text).entry.root
    assert root.attributes["frontend_attributes"] == '{mine="x"}'


def test_a_schedule_stays_in_order() -> None:
    text = composite().replace("HloModule m", "HloModule m, is_scheduled=true")
    text = text.replace("ROOT product", "product")
    text = text[: text.rindex("}")] + "  ROOT n = bf16[3,4,5] negate(product) }"
    entry = run_checked(PASS, text).entry
    assert [i.opcode for i in entry.instructions][-2:] == [Opcode.SCALED_DOT, Opcode.NEGATE]
