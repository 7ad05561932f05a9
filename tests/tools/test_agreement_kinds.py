"""The reason why a module differs from XLA:CPU is recognized from what it does, not from its
name."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from agreement_lib.answers import Answers
from agreement_lib.origins import never_ends, origins
from agreement_lib.recognition import (
    ENDLESS,
    INVALID,
    MADE_UP,
    MANUAL,
    MORE_DEVICES,
    ROUNDING,
    Difference,
    Rerun,
    reason_of_difference,
    reason_of_failure,
)
from agreement_lib.verdict import Verdict
from hloopt.interpreter.machine import devices_of, run_module
from hloopt.interpreter.values import Value, arrays_of
from hloopt.ir import Opcode
from hloopt.text import parse_module

SUM = "sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }\n"
MAX = "max { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] maximum(a, b) }\n"
ORDER = """order { a = f32[] parameter(0)  b = f32[] parameter(1)
  c = s32[] parameter(2)  d = s32[] parameter(3)  ROOT l = pred[] compare(a, b), direction=LT }
"""
HEAD = "HloModule m\n"


def kind(text: str, *inputs: Value, theirs: float = 7.0, output: int = 0) -> str:
    """The kind of a difference where XLA's array holds nothing but `theirs`."""
    module = parse_module(HEAD + text)
    devices = devices_of(1, 1)
    rerun = Rerun(module, [list(inputs)], devices, 10_000, 1 << 24)
    ours = tuple(arrays_of(run_module(module, [list(inputs)], devices=devices, stand_ins=True)[0]))
    array = ours[output]
    return reason_of_difference(rerun, Difference(0, output, array, np.full_like(array, theirs)))


def floats(*values: float) -> Value:
    return np.array(values, np.float32)


@pytest.mark.parametrize(
    ("keys", "attribute", "expected"),
    [
        (floats(1, 1, 2), "", "an unstable sort of equal keys"),
        (floats(3, 1, 2), "", ""),
        (floats(1, 1, 2), ", is_stable=true", ""),
    ],
)
def test_a_sort_explains_a_difference_where_it_is_unstable_and_keys_are_equal(
    keys: Value, attribute: str, expected: str
) -> None:
    text = (
        f"{ORDER}ENTRY e {{ k = f32[3] parameter(0)  i = s32[3] iota(), iota_dimension=0\n"
        f"  ROOT s = (f32[3], s32[3]) sort(k, i), dimensions={{0}}{attribute}, to_apply=order }}"
    )
    assert kind(text, keys, output=1) == expected


@pytest.mark.parametrize(("start", "is_known"), [(0, False), (2, True)])
@pytest.mark.parametrize(
    "operation", ["reduce(p, z), dimensions={0}", "reduce-window(p, z), window={size=4}"]
)
def test_an_initial_value_explains_where_it_is_not_neutral(
    operation: str, start: int, is_known: bool
) -> None:
    shape = "f32[]" if "dimensions" in operation else "f32[1]"
    text = (
        f"{SUM}ENTRY e {{ p = f32[4] parameter(0)  z = f32[] constant({start})\n"
        f"  ROOT r = {shape} {operation}, to_apply=sum }}"
    )
    found = kind(text, floats(1, 2, 3, 4), theirs=1000.0)
    assert ("initial value" in found) == is_known


@pytest.mark.parametrize(
    ("element", "size", "opcode", "is_known"),
    [
        ("bf16", 256, "add", True),
        ("f16", 300, "add", True),
        ("bf16", 255, "add", False),
        ("f32", 256, "add", False),
        ("bf16", 256, "maximum", False),
    ],
)
@pytest.mark.parametrize("is_window", [False, True])
def test_a_sum_explains_where_it_has_many_terms_of_16_bits(
    element: str, size: int, opcode: str, is_known: bool, is_window: bool
) -> None:
    padded = f"window={{size=1x{2 * size - 1} pad=0_0x{size - 1}_{size - 1}}}"
    operation = f"reduce-window(p, z), {padded}" if is_window else "reduce(p, z), dimensions={1}"
    shape = f"{element}[{f'1,{size}' if is_window else '1'}]"
    start = "0" if opcode == "add" else "-inf"
    text = (
        f"{SUM.replace('f32', element).replace('add', opcode)}"
        f"ENTRY e {{ p = {element}[1,{size}] parameter(0)  z = {element}[] constant({start})\n"
        f"  ROOT r = {shape} {operation}, to_apply=sum }}"
    )
    dtypes = {"bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32}
    found = kind(text, np.ones((1, size), dtypes[element]), theirs=1000.0)
    assert ("hundreds of small floats" in found) == is_known


@pytest.mark.parametrize(("theirs", "is_known"), [(5.0, True), (float("nan"), False)])
def test_a_maximum_explains_only_what_is_nan_here_alone(theirs: float, is_known: bool) -> None:
    text = "ENTRY e { p = f32[2] parameter(0)  ROOT m = f32[2] maximum(p, p) }"
    found = kind(text, floats(float("nan"), 1), theirs=theirs)
    assert ("NaN" in found) == is_known
    assert "NaN" not in kind(text, floats(2, 1), theirs=theirs)


def test_a_slice_of_a_slice_explains_where_an_offset_is_out_of_range() -> None:
    text = """ENTRY e { p = f32[9] parameter(0)  i = s32[] parameter(1)
  a = f32[4] dynamic-slice(p, i), dynamic_slice_sizes={4}
  ROOT b = f32[2] dynamic-slice(a, i), dynamic_slice_sizes={2} }"""
    values = floats(*range(9))
    assert "slice of a slice" in kind(text, values, np.int32(8), theirs=100.0)
    assert kind(text, values, np.int32(1), theirs=100.0) == ""


def test_a_clamp_explains_where_its_bounds_are_out_of_order() -> None:
    text = """ENTRY e { a = f32[2] parameter(0)  b = f32[2] parameter(1)  c = f32[2] parameter(2)
  ROOT r = f32[2] clamp(a, b, c) }"""
    assert "clamp" in kind(text, floats(3, 3), floats(2, 2), floats(1, 1))
    assert kind(text, floats(1, 1), floats(2, 2), floats(3, 3)) == ""


@pytest.mark.parametrize(("shape", "is_known"), [("s32[3]", True), ("s32[<=3]", False)])
def test_a_size_explains_where_its_dimension_is_called_static(shape: str, is_known: bool) -> None:
    text = f"""ENTRY e {{ p = s32[3] parameter(0)  n = s32[] constant(2)
  s = {shape} set-dimension-size(p, n), dimensions={{0}}
  ROOT g = s32[] get-dimension-size(s), dimensions={{0}} }}"""
    assert ("static" in kind(text, np.array([1, 2, 3], np.int32))) == is_known


@pytest.mark.parametrize(
    ("factors", "is_known"),
    [
        (floats(1e30, 1e30, 1e-30, 1e-30, 0), True),
        (floats(np.inf, 0, 2), True),
        (floats(1e30, 1e30, np.nan), False),
        (floats(1, 2, np.nan), False),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow")
def test_a_product_explains_where_factors_overflow_and_vanish(
    factors: Value, is_known: bool
) -> None:
    text = f"""mul {{ a = f32[] parameter(0)  b = f32[] parameter(1)
  ROOT c = f32[] multiply(a, b) }}
ENTRY e {{ p = f32[{len(factors)}] parameter(0)  one = f32[] constant(1)
  ROOT r = f32[] reduce(p, one), dimensions={{0}}, to_apply=mul }}"""
    assert ("product" in kind(text, factors, theirs=np.inf)) == is_known


def test_a_scatter_explains_where_two_operands_are_one() -> None:
    text = """f { a = f32[] parameter(0)  b = f32[] parameter(1)  c = f32[] parameter(2)
  d = f32[] parameter(3)  s = f32[] add(a, c)  m = f32[] multiply(b, d)
  ROOT t = (f32[], f32[]) tuple(s, m) }
ENTRY e { x = f32[4] constant({1, 1, 1, 1})  y = f32[4] constant({VALUE, 1, 1, 1})
  i = s32[1,1] constant({{0}})  u = f32[1,1] parameter(0)
  ROOT s = (f32[4], f32[4]) scatter(x, y, i, u, u), update_window_dims={1},
    inserted_window_dims={}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=f }"""
    update = np.array([[2]], np.float32)
    assert "scatter" in kind(text.replace("VALUE", "1"), update)
    assert kind(text.replace("VALUE", "3"), update) == ""


def test_rounding_explains_what_noise_in_the_last_place_explains() -> None:
    text = "ENTRY e { p = f32[1] parameter(0)  s = f32[1] sine(p)  ROOT d = f32[1] subtract(s, s) }"
    assert kind(text, floats(1), theirs=0.5) == ""
    text = """ENTRY e { p = bf16[1] parameter(0)  a = bf16[1] sine(p)  b = bf16[1] multiply(a, a)
  ROOT c = bf16[1] cosine(b) }"""
    module = parse_module(HEAD + text)
    (ours,) = run_module(module, [[np.ones(1, np.float32)]], devices=devices_of(1, 1))
    near = float(np.asarray(ours).astype(np.float32)[0]) * (1 + 2**-8)
    assert kind(text, np.ones(1, np.float32), theirs=near) == ROUNDING
    assert kind(text, np.ones(1, np.float32), theirs=near * 2) == ""


def test_a_size_beyond_its_bound_and_a_bf16_algorithm_are_known() -> None:
    text = """ENTRY e { p = f32[4] parameter(0)  n = s32[] parameter(1)
  d = f32[<=4] set-dimension-size(p, n), dimensions={0}
  ROOT s = s32[] get-dimension-size(d), dimensions={0} }"""
    assert "beyond its bound" in kind(text, floats(1, 2, 3, 4), np.int32(6), theirs=9)
    assert kind(text, floats(1, 2, 3, 4), np.int32(2), theirs=9) == ""
    text = """ENTRY e { p = f32[2,2] parameter(0)
  ROOT d = f32[2,2] dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}ALGORITHM }"""
    square = np.ones((2, 2), np.float32)
    assert "algorithm" in kind(text.replace("ALGORITHM", ", algorithm=dot_bf16_bf16_f32"), square)
    assert kind(text.replace("ALGORITHM", ""), square) == ""


def test_made_up_values_explain_what_depends_on_them() -> None:
    text = """ENTRY e { p = f32[2] parameter(0)
  c = f32[2] custom-call(p), custom_call_target="nobody knows"
  n = f32[2] negate(p)  ROOT t = (f32[2], f32[2]) tuple(c, n) }"""
    assert kind(text, floats(1, 2), output=0) == MADE_UP
    assert kind(text, floats(1, 2), output=1) == ""


def test_what_an_output_does_not_depend_on_explains_nothing() -> None:
    text = """ENTRY e { a = f32[2] parameter(0)  b = f32[2] parameter(1)
  r = f32[2] clamp(a, b, b)  n = f32[2] negate(b)  t = (f32[2], f32[2]) tuple(r, n)
  s = f32[2] clamp(b, a, a)  ROOT u = ((f32[2], f32[2]), f32[2]) tuple(t, s) }"""
    module = parse_module(HEAD + text)
    names = [{i.name for i in origins(module, output)} for output in range(3)]
    assert [("r" in n, "s" in n) for n in names[:1] + names[2:]] == [(True, False), (False, True)]
    assert kind(text, floats(3, 3), floats(1, 1), output=0).startswith("a clamp")


LOOP = """body { p = (s32[], f32[]) parameter(0)  i = s32[] get-tuple-element(p), index=0
  x = f32[] get-tuple-element(p), index=1  one = s32[] constant(1)  j = s32[] add(i, one)
  y = f32[] negate(x)  ROOT t = (s32[], f32[]) tuple(NEXT, y) }
cond { p = (s32[], f32[]) parameter(0)  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(3)  ROOT l = pred[] compare(i, n), direction=LT }
ENTRY e { z = s32[] constant(0)  x = f32[] parameter(0)  t = (s32[], f32[]) tuple(z, x)
  w = (s32[], f32[]) while(t), condition=cond, body=body
  ROOT r = f32[] get-tuple-element(w), index=1 }"""


def test_a_loop_whose_condition_reads_what_never_changes_is_endless() -> None:
    endless, ends = (parse_module(HEAD + LOOP.replace("NEXT", name)) for name in "ij")
    assert [never_ends(i) for i in endless.instructions(Opcode.WHILE)] == [True]
    assert [never_ends(i) for i in ends.instructions(Opcode.WHILE)] == [False]
    assert reason_of_failure(endless, is_limit=True) == ENDLESS
    assert reason_of_failure(endless, is_limit=False) == ""
    assert reason_of_failure(ends, is_limit=True) == ""


def test_a_loop_that_no_output_reads_may_be_removed() -> None:
    text = LOOP.replace("NEXT", "j").replace("get-tuple-element(w), index=1 }", "negate(x) }")
    assert reason_of_failure(parse_module(HEAD + text), is_limit=True) == ENDLESS


def test_modules_for_more_devices_and_invalid_ones_are_told_apart() -> None:
    scatter = """ENTRY e { p = f32[4,8] parameter(0)  ROOT r = f32[4,4] reduce-scatter(p),
  replica_groups={{0}}, channel_id=1, dimensions={1}, to_apply=sum }"""
    assert reason_of_failure(parse_module(HEAD + SUM + scatter), is_limit=False) == MORE_DEVICES
    enough = f"HloModule m, num_partitions=2\n{SUM}{scatter}"
    assert reason_of_failure(parse_module(enough), is_limit=False) == ""
    manual = """ENTRY e { p = f32[8] parameter(0)
  ROOT s = f32[2] custom-call(p), custom_call_target="SPMDFullToShardShape" }"""
    assert reason_of_failure(parse_module(HEAD + manual), is_limit=False) == MANUAL
    wrong = parse_module(HEAD + "ENTRY e { p = f32[2] parameter(0)  ROOT n = f32[3] negate(p) }")
    assert reason_of_failure(wrong, is_limit=False) == INVALID


def test_verdicts_are_kept_and_a_line_that_was_cut_off_is_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "state.jsonl"
    answers = Answers(path, "3 seeds")
    answers.add(Verdict("a", "agree"))
    answers.add(Verdict("b", "differ", "x", kind="y", devices=2))
    text = path.read_text()
    path.write_text(text[:-10])
    assert list(Answers(path, "3 seeds").verdicts) == ["a"]
    path.write_text(text)
    assert Answers(path, "3 seeds").verdicts["b"] == Verdict("b", "differ", "x", "y", 2)
    assert Answers(path, "2 seeds").verdicts == {}
