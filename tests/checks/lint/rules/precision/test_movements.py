"""The rule about kernels that only change a layout."""

from __future__ import annotations

import pytest
from tests.checks.lint.linting import check, violations

from hloopt.checks.results import Verdict


def module(*lines: str, header: str = "", computations: str = "") -> str:
    text = "\n  ".join(lines)
    return f"HloModule m, is_scheduled=true{header}\n{computations}\nENTRY e {{\n  {text}\n}}\n"


def reasons(text: str, **options: object) -> list[str]:
    found = violations("HLL303", text, **({"size": 1} | options))
    return [each.message.partition("memory: ")[2].partition(" (")[0] for each in found]


T = "t = f32[64,32]{1,0} transpose(x), dimensions={1,0}"
ARGUMENT = ("x = f32[32,64]{1,0} parameter(0)", T, "ROOT n = f32[64,32]{1,0} negate(t)")
RESULT = ("p = f32[32,64]{1,0} parameter(0)", "x = f32[32,64]{1,0} negate(p)", "ROOT " + T)


def test_an_argument_that_is_only_moved_and_the_bytes_of_that() -> None:
    (found,) = violations("HLL303", module(*ARGUMENT), size=16384)
    assert found.message == (
        "%t only changes the order of dimensions in memory: argument %x could have this layout "
        "(16.0 KiB moved)"
    )
    assert [each.instruction for each in found.related] == ["x"]
    assert not reasons(module(*ARGUMENT), size=16385)


def test_a_transpose_that_leaves_elements_where_they_are() -> None:
    assert not reasons(module(*ARGUMENT).replace("f32[64,32]{1,0} trans", "f32[64,32]{0,1} trans"))


def test_an_argument_that_is_read_as_it_lies_too() -> None:
    lines = [*ARGUMENT[:2], "y = f32[32,64]{1,0} negate(x)"]
    root = "ROOT r = (f32[64,32]{1,0}, f32[32,64]{1,0}) tuple(n, y)"
    assert not reasons(module(*lines, "n = f32[64,32]{1,0} negate(t)", root))


def test_copies_that_change_the_layout_and_such_that_do_not() -> None:
    moving = [*ARGUMENT[:1], "t = f32[32,64]{0,1} copy(x)", "ROOT n = f32[32,64]{0,1} negate(t)"]
    assert reasons(module(*moving)) == ["argument %x could have this layout"]
    assert not reasons(module(*[line.replace("{0,1}", "{1,0}") for line in moving]))


def test_dimensions_of_one_element_do_not_move() -> None:
    lines = [line.replace("64,32", "64,1").replace("32,64", "1,64") for line in ARGUMENT]
    assert not reasons(module(*lines))


def test_copies_between_memory_spaces_are_transfers() -> None:
    lines = [
        "x = f32[32,64]{1,0:S(5)} parameter(0)",
        "t = f32[32,64]{0,1} copy(x)",
        "ROOT n = f32[32,64]{0,1} negate(t)",
    ]
    assert not reasons(module(*lines))


def test_a_result_that_is_only_moved() -> None:
    assert reasons(module(*RESULT)) == ["the result could have the layout before"]
    in_tuple = [*RESULT[:2], T, "ROOT r = (f32[64,32]{1,0}) tuple(t)"]
    assert reasons(module(*in_tuple)) == ["the result could have the layout before"]
    read = [*RESULT[:2], T, "n = f32[64,32]{1,0} negate(t)"]
    assert not reasons(module(*read, "ROOT r = (f32[64,32]{1,0}, f32[64,32]{1,0}) tuple(t, n)"))


def test_arguments_and_results_of_shared_memory_have_one_layout() -> None:
    assert not reasons(module(*ARGUMENT, header=", input_output_alias={ {}: (0, {}) }"))
    given = ("q = f32[64,32]{1,0} parameter(1)", *RESULT)
    assert not reasons(module(*given, header=", input_output_alias={ {}: (1, {}) }"))
    in_tuple = [*given[:3], T, "ROOT r = (f32[64,32]{1,0}) tuple(t)"]
    assert not reasons(module(*in_tuple, header=", input_output_alias={ {0}: (1, {}) }"))


FUSED = """
f {{
  a = f32[32,64]{{1,0}} parameter(0)
  {body}
}}
"""


@pytest.mark.parametrize(
    ("body", "is_found"),
    [
        ("ROOT m = f32[64,32]{1,0} transpose(a), dimensions={1,0}", True),
        (
            "b = f32[4,8,64]{2,1,0} bitcast(a)\n"
            "  m = f32[64,4,8]{2,1,0} transpose(b), dimensions={2,0,1}\n"
            "  ROOT c = f32[64,32]{1,0} bitcast(m)",
            True,
        ),
        (
            "n = f32[32,64]{1,0} negate(a)\n"
            "  ROOT m = f32[64,32]{1,0} transpose(n), dimensions={1,0}",
            False,
        ),
        ("n = f32[32,64]{1,0} negate(a)\n  ROOT m = f32[64,32]{1,0} bitcast(n)", False),
    ],
)
def test_fusions_of_nothing_but_a_movement(body: str, is_found: bool) -> None:
    lines = [
        ARGUMENT[0],
        "t = f32[64,32]{1,0} fusion(x), kind=kInput, calls=f",
        ARGUMENT[2],
    ]
    text = module(*lines, computations=FUSED.format(body=body))
    assert bool(reasons(text)) == is_found


# -- products -------------------------------------------------------------------------------------


def operand(
    shape: str, dimensions: str, moved: str, dot: str, other: str = "bf16[64,64]{1,0}"
) -> str:
    """A module in which a dot reads a transposed value."""
    return module(
        f"p = bf16{shape} parameter(0)",
        f"b = {other} parameter(1)",
        f"x = bf16{shape} negate(p)",
        f"t = bf16{moved} transpose(x), dimensions={dimensions}",
        f"ROOT d = {dot}",
    )


BATCH = "lhs_batch_dims={0}, rhs_batch_dims={0}, "


@pytest.mark.parametrize(
    ("text", "is_found"),
    [
        (
            operand(
                *("[64,64]{1,0}", "{1,0}", "[64,64]{1,0}"),
                "bf16[64,64]{1,0} dot(t, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
            ),
            True,
        ),
        (
            operand(
                *("[64,64]{1,0}", "{1,0}", "[64,64]{1,0}"),
                "bf16[64,64]{1,0} dot(b, t), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
            ),
            True,
        ),
        (  # the batch moves from the middle to the front
            operand(
                *("[16,4,8]{2,1,0}", "{1,0,2}", "[4,16,8]{2,1,0}"),
                f"bf16[4,16,2]{{2,1,0}} dot(t, b), {BATCH}"
                "lhs_contracting_dims={2}, rhs_contracting_dims={1}",
                "bf16[4,8,2]{2,1,0}",
            ),
            True,
        ),
        (  # the batch would vary fastest
            operand(
                *("[16,8,4]{2,1,0}", "{2,0,1}", "[4,16,8]{2,1,0}"),
                f"bf16[4,16,2]{{2,1,0}} dot(t, b), {BATCH}"
                "lhs_contracting_dims={2}, rhs_contracting_dims={1}",
                "bf16[4,8,2]{2,1,0}",
            ),
            False,
        ),
        (  # what is contracted would lie in two places
            operand(
                *("[4,16,8]{2,1,0}", "{1,0,2}", "[16,4,8]{2,1,0}"),
                "bf16[16,2]{1,0} dot(t, b), lhs_contracting_dims={1,2}, rhs_contracting_dims={0,1}",
                "bf16[4,8,2]{2,1,0}",
            ),
            False,
        ),
        (  # the order of what is contracted would be another than that of the other operand
            operand(
                *("[4,8,16]{2,1,0}", "{2,1,0}", "[16,8,4]{2,1,0}"),
                "bf16[16,2]{1,0} dot(t, b), lhs_contracting_dims={1,2}, rhs_contracting_dims={0,1}",
                "bf16[8,4,2]{2,1,0}",
            ),
            False,
        ),
    ],
)
def test_what_a_product_reads(text: str, is_found: bool) -> None:
    assert reasons(text) == (["%d could read its operand as it lies"] if is_found else [])


PLAIN = operand(
    *("[64,64]{1,0}", "{1,0}", "[64,64]{1,0}"),
    "bf16[64,64]{1,0} dot(t, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
)


def test_all_that_read_it_have_to_be_products() -> None:
    other = PLAIN.replace("ROOT d", "d").replace(
        "\n}\n", "\n  n = bf16[64,64]{1,0} negate(t)\n  ROOT s = bf16[64,64]{1,0} add(n, d)\n}\n"
    )
    assert not reasons(other)
    assert reasons(other.replace("negate(t)", "negate(b)")) == [
        "%d could read its operand as it lies"
    ]


def test_a_piece_of_a_dimension_that_does_not_divide_is_left_alone() -> None:
    text = module(
        "p = bf16[6,4]{1,0} parameter(0)",
        "b = bf16[8,2]{1,0} parameter(1)",
        "x = bf16[6,4]{1,0} negate(p)",
        "t = bf16[4,6]{1,0} transpose(x), dimensions={1,0}",
        "c = bf16[3,8]{1,0} bitcast(t)",
        "ROOT d = bf16[3,2]{1,0} dot(c, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
    )
    assert not reasons(text)


GEMM = """
gemm {{
  l = bf16[64,64]{{1,0}} parameter(0)
  r = bf16[64,64]{{1,0}} parameter(1)
  {operand}
  d1 = bf16[64,64]{{1,0}} dot({lhs}, r), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  ROOT o = bf16[64,64]{{1,0}} {root}
}}
"""


def fused(operand: str = "", lhs: str = "l", root: str = "bitcast(d1)") -> str:
    return GEMM.format(operand=operand, lhs=lhs, root=root)


@pytest.mark.parametrize(
    ("gemm", "is_found"),
    [
        (fused(), True),
        (fused("c = bf16[64,64]{1,0} bitcast(l)", "c"), True),
        (fused("n = bf16[64,64]{1,0} negate(l)", "n"), False),
        (fused(root="add(d1, l)"), False),
    ],
)
def test_products_in_fusions_that_read_it(gemm: str, is_found: bool) -> None:
    fusion = "ROOT d = bf16[64,64]{1,0} fusion(t, b), kind=kCustom, calls=gemm"
    lines = [line for line in PLAIN.split("\n") if line.startswith("  ")]
    text = module(*[line.strip() for line in lines[:-1]], fusion, computations=gemm)
    assert bool(reasons(text)) == is_found


@pytest.mark.parametrize(
    ("gemm", "is_found"),
    [(fused(), True), (fused(root="convert(d1)"), True), (fused(root="negate(d1)"), False)],
)
def test_products_that_make_it(gemm: str, is_found: bool) -> None:
    text = module(
        "a = bf16[64,64]{1,0} parameter(0)",
        "b = bf16[64,64]{1,0} parameter(1)",
        "x = bf16[64,64]{1,0} fusion(a, b), kind=kCustom, calls=gemm",
        "t = bf16[64,64]{1,0} transpose(x), dimensions={1,0}",
        "ROOT n = bf16[64,64]{1,0} negate(t)",
        computations=gemm,
    )
    assert reasons(text) == (["%x could write its result in this order"] if is_found else [])
    twice = text.replace(
        "ROOT n = bf16[64,64]{1,0} negate(t)", "ROOT n = bf16[64,64]{1,0} add(t, x)"
    )
    assert not reasons(twice)


def test_results_whose_parts_would_be_scattered() -> None:
    """The columns of a product are batch and sequence; heads come between them."""
    text = module(
        "a = bf16[32,64]{1,0} parameter(0)",
        "b = bf16[64,128]{1,0} parameter(1)",
        "x = bf16[32,128]{1,0} dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "h = bf16[4,8,2,64]{3,2,1,0} bitcast(x)",
        "t = bf16[2,4,64,8]{3,2,1,0} transpose(h), dimensions={2,0,3,1}",
        "ROOT n = bf16[2,4,64,8]{3,2,1,0} negate(t)",
    )
    assert not reasons(text)


def test_a_movement_in_a_loop_counts_in_each_trip() -> None:
    computations = """
body {
  s = (s32[], f32[32,64]{1,0}, bf16[64,64]{1,0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  k = s32[] add(i, one)
  y = f32[32,64]{1,0} get-tuple-element(s), index=1
  w = bf16[64,64]{1,0} get-tuple-element(s), index=2
  z = f32[32,64]{1,0} negate(y)
  t = f32[64,32]{1,0} transpose(z), dimensions={1,0}
  v = f32[32,32]{1,0} dot(z, t), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  u = f32[32,64]{1,0} dot(v, z), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = (s32[], f32[32,64]{1,0}, bf16[64,64]{1,0}) tuple(k, u, w)
}
condition {
  q = (s32[], f32[32,64]{1,0}, bf16[64,64]{1,0}) parameter(0)
  j = s32[] get-tuple-element(q), index=0
  l = s32[] constant(8)
  ROOT c = pred[] compare(j, l), direction=LT
}
"""
    text = module(
        "a = f32[32,64]{1,0} parameter(0)",
        "b = bf16[64,64]{1,0} parameter(1)",
        "zero = s32[] constant(0)",
        "start = (s32[], f32[32,64]{1,0}, bf16[64,64]{1,0}) tuple(zero, a, b)",
        "ROOT loop = (s32[], f32[32,64]{1,0}, bf16[64,64]{1,0}) while(start), "
        "condition=condition, body=body",
        computations=computations,
    )
    (found,) = violations("HLL303", text, size=8 * 16384)
    assert found.message == (
        "%t only changes the order of dimensions in memory: %v could read its operand as it lies, "
        "8 runs (128.0 KiB moved)"
    )


def test_before_layouts_are_assigned_there_is_no_verdict() -> None:
    found = check("HLL303", module(*ARGUMENT).replace(", is_scheduled=true", ""))
    assert found.verdict is Verdict.NONE
