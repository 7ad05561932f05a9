"""Whole results of rules of algsimp: XLA's, which were asked of it."""

from __future__ import annotations

import pytest
from tests.passes.checked_run import run_checked
from tests.passes.simplification.algsimp.programs import program, simplified, written

from hloopt.equivalence import Reference, RunSettings
from hloopt.text import parse_module, print_module

_ON_CPU: dict[str, object] = {"executing_on_cpu": True}
_LAID_OUT: dict[str, object] = {"is_layout_sensitive": True}
_VECTORS = (
    "p = {t}[4] parameter(0) q = {t}[4] parameter(1) ROOT r = {t}[] dot(p, q), "
    "lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}"
)
_CONVOLUTION = (
    "p = f32[{image}] parameter(0) k = f32[{kernel}] parameter(1) "
    "ROOT r = f32[{result}] convolution(p, k), window={{{window}}}, dim_labels=b01f_01io->b01f"
)
_SWAPPED = "convolution(reverse(parameter), parameter)"
_KEPT = "convolution(parameter, parameter)"
_SCATTER = (
    "{name} = f32[9,3] scatter({operands}), update_window_dims={{{window}}}, "
    "inserted_window_dims={{0}}, scatter_dims_to_operand_dims={{0}}, index_vector_dim={vector}, "
    "to_apply=add{more} "
)
_TWO_SCATTERS = (
    "p = f32[9,3] parameter(0) q = f32[9,3] parameter(1) i = s32[2,1] parameter(2) "
    "u = f32[2,3] parameter(3) j = {index}[2,1] parameter(4) v = f32[2,3] parameter(5) "
)

RESULTS: list[tuple[str, str, dict[str, object]]] = [
    # The initial value stands in front of the sum.
    ("add(broadcast(parameter), broadcast(multiply(parameter, broadcast(8))))",
     "p = f32[4] parameter(0) z = f32[] parameter(1) b = f32[4,8] broadcast(p), dimensions={0} "
     "ROOT r = f32[4] reduce(b, z), dimensions={1}, to_apply=add", {}),
    # Products are in the type of the dot, sums in f32.
    ("convert(reduce(convert(multiply(parameter, parameter)), 0))", _VECTORS.format(t="bf16"),
     _ON_CPU),
    ("reduce(multiply(parameter, parameter), 0)", _VECTORS.format(t="s8"), _ON_CPU),
    ("reduce(multiply(parameter, parameter), 0)", _VECTORS.format(t="f64"), _ON_CPU),
    ("reduce(multiply(parameter, parameter), false)", _VECTORS.format(t="pred"), _ON_CPU),
    ("multiply(broadcast(parameter), broadcast(parameter))",
     "p = pred[4] parameter(0) q = pred[5] parameter(1) ROOT r = pred[4,5] dot(p, q)", {}),
    # Chunks move to the front only.
    ("reshape(concatenate(slice(parameter), slice(parameter)))",
     "p = f32[4,5,6] parameter(0) a = f32[4,5,2,3] reshape(p) "
     "b = f32[4,2,5,3] transpose(a), dimensions={0,2,1,3} ROOT r = f32[8,5,3] reshape(b)", {}),
    ("reshape(transpose(reshape(parameter)))",
     "p = f32[6,2] parameter(0) a = f32[3,2,2] reshape(p) "
     "b = f32[2,3,2] transpose(a), dimensions={1,0,2} ROOT r = f32[6,2] reshape(b)", {}),
    # Kernels larger than images, images of one element aside.
    (_SWAPPED, _CONVOLUTION.format(image="1,3,3,1", kernel="5,5,1,1", result="1,5,5,1",
                                   window="size=5x5 pad=3_3x3_3"), {}),
    (_SWAPPED, _CONVOLUTION.format(image="2,4,3,3", kernel="4,5,3,4", result="2,4,3,4",
                                   window="size=4x5 stride=3x1 pad=0_0x2_2 lhs_dilate=4x1"), {}),
    (_KEPT, _CONVOLUTION.format(image="2,1,3,3", kernel="8,2,3,4", result="2,8,2,4",
                                window="size=8x2 pad=7_7x0_0"), {}),
    (_SWAPPED, _CONVOLUTION.format(image="2,1,3,3", kernel="8,2,3,4", result="2,6,2,4",
                                   window="size=8x2 pad=6_6x0_0"), {}),
    # Depthwise convolutions: the order in a kernel of one element is none.
    ("multiply(parameter, broadcast(reshape(transpose(parameter))))",
     "p = f32[2,3,3,2] parameter(0) k = f32[1,1,1,2] parameter(1) ROOT r = f32[2,3,3,2] "
     "convolution(p, k), window={size=1x1 rhs_reversal=1x1}, dim_labels=b01f_01io->b01f, "
     "feature_group_count=2", {}),
    (_KEPT, "p = f32[2,3,1,2] parameter(0) k = f32[3,1,1,2] parameter(1) ROOT r = f32[2,1,1,2] "
     "convolution(p, k), window={size=3x1 rhs_reversal=1x0}, dim_labels=b01f_01io->b01f, "
     "feature_group_count=2", {"enable_conv_operand_swap": False}),
    ("reshape(reduce(multiply(parameter, broadcast(reshape(transpose(parameter)))), convert(0)))",
     "p = f32[2,3,1,2] parameter(0) k = f32[3,1,1,2] parameter(1) ROOT r = f32[2,1,1,2] "
     "convolution(p, k), window={size=3x1}, dim_labels=b01f_01io->b01f, "
     "feature_group_count=2", {"enable_conv_operand_swap": False}),
    # A select for each element.
    ("select(compare(parameter, broadcast(1)), broadcast(reshape(slice(parameter))), "
     "select(compare(parameter, broadcast(0)), broadcast(reshape(slice(parameter))), "
     "broadcast(reshape(slice(parameter)))))",
     "p = f32[2] parameter(0) i = s32[5] parameter(1) ROOT r = f32[5] gather(p, i), "
     "offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, "
     "slice_sizes={1}", {}),
    # Scatters that add, also of one update.
    ("scatter(add(parameter, parameter), parameter, parameter)",
     "p = f32[9,3] parameter(0) q = f32[9,3] parameter(1) i = s32[1] parameter(2) "
     "u = f32[3] parameter(3) " + _SCATTER.format(name="s", operands="p, i, u", window="0",
                                                  vector=0, more="")
     + "ROOT r = f32[9,3] add(q, s)", {}),
    ("scatter(add(parameter, parameter), concatenate(parameter, parameter), "
     "concatenate(parameter, parameter))",
     _TWO_SCATTERS.format(index="s32")
     + _SCATTER.format(name="s", operands="p, i, u", window="1", vector=1, more="")
     + _SCATTER.format(name="t", operands="q, j, v", window="1", vector=1, more="")
     + "ROOT r = f32[9,3] add(s, t)", {}),
    # Bitcasts that reorder what a broadcast made.
    ("broadcast(parameter)", "p = f32[5] parameter(0) b = f32[4,6,5]{2,1,0} broadcast(p), "
     "dimensions={2} ROOT r = f32[5,4,6]{0,2,1} bitcast(b)", _LAID_OUT),
    ("bitcast(broadcast(parameter))", "p = f32[5] parameter(0) b = f32[4,6,5]{2,1,0} "
     "broadcast(p), dimensions={2} ROOT r = f32[5,24]{0,1} bitcast(b)", _LAID_OUT),
    ("bitcast(broadcast(parameter))", "p = f32[5] parameter(0) b = f32[4,6,5]{2,1,0} "
     "broadcast(p), dimensions={2} ROOT r = s32[5,4,6]{0,2,1} bitcast(b)", _LAID_OUT),
    ("bitcast(broadcast(parameter))", "p = f32[5] parameter(0) b = f32[4,6,5]{2,1,0} "
     "broadcast(p), dimensions={2} ROOT r = f32[4,5,6]{2,1,0} bitcast(b)", _LAID_OUT),
    ("bitcast(broadcast(parameter))", "p = f32[4,5] parameter(0) b = f32[5,6,4]{2,1,0} "
     "broadcast(p), dimensions={2,0} ROOT r = f32[5,4,6]{1,2,0} bitcast(b)", _LAID_OUT),
    # A padding value that is the initial one once it is converted.
    ("reduce-window(convert(parameter), 0.1001)",
     "p = f32[8] parameter(0) v = f32[] constant(0.1) z = bf16[] constant(0.1001) "
     "d = f32[10] pad(p, v), padding=1_1 c = bf16[10] convert(d) "
     "ROOT r = bf16[8] reduce-window(c, z), window={size=3}, to_apply=max_bf16", {}),
]  # fmt: skip


@pytest.mark.parametrize(("expected", "body", "options"), RESULTS)
def test_results(expected: str, body: str, options: dict[str, object]) -> None:
    after, context = simplified(body, run_to_fixed_point=False, **options)
    assert written(after.entry.root) == expected, context.statistics
    assert Reference(parse_module(program(body)), RunSettings()).compare(after, "finite") is None


@pytest.mark.parametrize(("index", "more"), [("s64", ""), ("s32", ", indices_are_sorted=true")])
def test_scatters_that_differ_are_chained(index: str, more: str) -> None:
    """The second one, which stands on the right, comes first."""
    body = (
        _TWO_SCATTERS.format(index=index)
        + _SCATTER.format(name="s", operands="p, i, u", window="1", vector=1, more="")
        + _SCATTER.format(name="t", operands="q, j, v", window="1", vector=1, more=more)
        + "ROOT r = f32[9,3] add(s, t)"
    )
    after, _ = simplified(body, run_to_fixed_point=False)
    root = after.entry.root
    assert [o.name for o in root.operands[1:]] == ["i", "u"]
    assert [o.name for o in root.operands[0].operands[1:]] == ["j", "v"]


def test_a_dimension_of_groups_stays_when_operands_are_swapped() -> None:
    body = _CONVOLUTION.format(
        image="2,4,3,3", kernel="4,5,3,4", result="2,4,3,4",
        window="size=4x5 stride=3x1 pad=0_0x2_2 lhs_dilate=4x1",
    )  # fmt: skip
    after, _ = simplified(body)
    window = "{size=4x3 stride=3x1 lhs_dilate=4x1 rhs_reversal=0x1}"
    assert after.entry.root.attributes["window"] == window


def test_a_bitcast_with_a_control_predecessor_stays_behind_a_broadcast() -> None:
    body = (
        "p = f32[5] parameter(0) n = f32[5] negate(p) b = f32[4,5]{1,0} broadcast(p), "
        "dimensions={1} c = f32[5,4]{0,1} bitcast(b), control-predecessors={n} "
        "ROOT t = (f32[5,4]{0,1}, f32[5]) tuple(c, n)"
    )
    after, _ = simplified(body, is_layout_sensitive=True)
    assert written(after.entry.root) == "tuple(bitcast(broadcast(parameter)), negate(parameter))"


def test_padding_is_compared_in_the_type_of_the_window() -> None:
    text = """HloModule m

add {
  x = f64[] parameter(0)
  y = f64[] parameter(1)
  ROOT s = f64[] add(x, y)
}

ENTRY e {
  p = f32[8] parameter(0)
  half = f32[] constant(0.5)
  pad = f32[16] pad(p, half), padding=4_4
  c = f64[16] convert(pad)
  z = s32[] constant(0)
  i = f64[] convert(z)
  ROOT r = f64[14] reduce-window(c, i), window={size=3}, to_apply=add
}
"""
    run_checked("algsimp", text, changes=False)
    zero = run_checked("algsimp", text.replace("constant(0.5)", "constant(0)"))
    assert "pad(" not in print_module(zero)
