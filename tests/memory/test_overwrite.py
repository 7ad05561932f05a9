"""The results that may be written over operands that are needed no more."""

from __future__ import annotations

import pytest
from tests.memory.modules import assign, value_of

from hloopt.analysis.dataflow import Position
from hloopt.memory.backends import CPU, GPU, Backend
from hloopt.memory.gpu.fusions import gpu_fusion_may_overwrite
from hloopt.memory.overwrite import Overwriting

PARAMETERS = (
    "a = f32[8] parameter(0)",
    "u = f32[2] parameter(1)",
    "i = s32[] parameter(2)",
    "m = f32[4,4] parameter(3)",
    "x = f32[8] sine(a)",
    "y = f32[8] cosine(a)",
    "v = f32[4,4] sine(m)",
)
ADD = "add { k = f32[] parameter(0)\n  l = f32[] parameter(1)\n  ROOT z = f32[] add(k, l) }\n"


def may(
    line: str, earlier: str = "x", *, later: str = "r", before: str = ADD, backend: Backend = CPU
) -> bool:
    """Whether the result of a line may lie where an operand does."""
    assignment = assign(*PARAMETERS, line, before=before, backend=backend)
    rules = Overwriting(assignment.flow, assignment.buffers.in_place, backend.may_overwrite)
    value = value_of(assignment, earlier)
    position = assignment.ranges.last_position[value]
    return rules.may(value, position, value_of(assignment, later))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("r = f32[8] negate(x)", True),
        ("r = f32[8] add(a, x)", True),
        ("r = f32[8] copy(x)", False),
        ("r = s32[8] bitcast-convert(x)", False),  # the shapes differ
        ("r = f32[8] reverse(x), dimensions={0}", False),
        ("r = f32[2,4] reshape(x)", False),
        ("r = f32[8] dynamic-update-slice(x, u, i)", True),
        ("r = f32[8] sort(x), dimensions={0}, to_apply=less", True),
        ("r = f32[8] map(x), dimensions={0}, to_apply=neg", True),
    ],
)
def test_by_opcode(line: str, expected: bool) -> None:
    less = """less { k = f32[] parameter(0)
  l = f32[] parameter(1)
  ROOT z = pred[] compare(k, l), direction=LT }
neg { n = f32[] parameter(0)
  ROOT o = f32[] negate(n) }
"""
    assert may(line, before=less) is expected


def test_an_update_of_itself_does_not_overwrite() -> None:
    assert not may("r = f32[8] dynamic-update-slice(a, x, i)")


def test_a_sort_of_several_overwrites_each_its_own() -> None:
    compare = """less { k = f32[] parameter(0)
  l = f32[] parameter(1)
  o = f32[] parameter(2)
  q = f32[] parameter(3)
  ROOT z = pred[] compare(k, l), direction=LT }
"""
    line = "r = (f32[8], f32[8]) sort(x, y), dimensions={0}, to_apply=less"
    assert may(line, "y", later="r.1", before=compare)
    assert not may(line, "y", later="r.0", before=compare)


def fusion(body: str, shape: str = "f32[8]", kind: str = "kLoop") -> tuple[str, str]:
    text = f"f {{ p = f32[8] parameter(0)\n  q = f32[8] parameter(1)\n{body} }}\n"
    return f"r = {shape} fusion(x, y), kind={kind}, calls=f", ADD + text


@pytest.mark.parametrize(
    ("body", "kind", "expected"),
    [
        ("  n = f32[8] negate(p)\n  ROOT s = f32[8] add(n, q)", "kLoop", True),
        ("  n = f32[8] reverse(p), dimensions={0}\n  ROOT s = f32[8] add(n, q)", "kLoop", False),
        ("  n = f32[8] reverse(q), dimensions={0}\n  ROOT s = f32[8] add(n, p)", "kLoop", True),
        (
            "  d = f32[8] convolution(q, q), dim_labels=b_b->b\n  ROOT s = f32[8] add(d, p)",
            "kOutput",
            True,
        ),
        (
            "  d = f32[8] convolution(p, q), dim_labels=b_b->b\n  ROOT s = f32[8] add(d, p)",
            "kOutput",
            False,
        ),
        (
            "  d = f32[8] convolution(q, q), dim_labels=b_b->b\n  n = f32[8] negate(p)\n"
            "  ROOT s = f32[8] add(d, n)",
            "kOutput",
            False,
        ),
        (
            "  d = f32[8] convolution(q, q), dim_labels=b_b->b\n  n = f32[8] negate(p)\n"
            "  ROOT s = f32[8] add(d, n)",
            "kCustom",
            True,
        ),
    ],
)
def test_fusions_on_a_cpu(body: str, kind: str, expected: bool) -> None:
    line, before = fusion(body, kind=kind)
    assert may(line, before=before) is expected


@pytest.mark.parametrize(
    ("body", "shape", "later", "expected"),
    [
        ("  b = f32[2,4] bitcast(p)\n  ROOT s = f32[2,4] negate(b)", "f32[2,4]", "r", True),
        ("  ROOT s = f32[2,4] reshape(p)", "f32[2,4]", "r", False),
        ("  ROOT s = f16[8] convert(p)", "f16[8]", "r", False),  # half the bytes
        ("  ROOT s = s32[8] convert(p)", "s32[8]", "r", True),
        (
            "  s = f32[8] negate(p)\n  t = f32[8] sine(p)\n  ROOT o = (f32[8], f32[8]) tuple(s, t)",
            "(f32[8], f32[8])",
            "r.1",
            True,
        ),
        (
            "  s = f32[8] negate(p)\n  t = f32[8] reverse(p), dimensions={0}\n"
            "  ROOT o = (f32[8], f32[8]) tuple(s, t)",
            "(f32[8], f32[8])",
            "r.0",
            False,
        ),
    ],
)
def test_fusions_on_a_gpu(body: str, shape: str, later: str, expected: bool) -> None:
    line, before = fusion(body, shape)
    assert may(line, later=later, before=before, backend=GPU) is expected


@pytest.mark.parametrize(("kind", "expected"), [("kInput", True), ("kLoop", False)])
def test_a_reduction_beside_a_result_is_fine_in_a_kernel_that_reduces(
    kind: str, expected: bool
) -> None:
    body = """  s = f32[8] negate(p)
  c = f32[] constant(0)
  t = f32[] reduce(s, c), dimensions={0}, to_apply=add
  ROOT o = (f32[8], f32[]) tuple(s, t)"""
    line, before = fusion(body, "(f32[8], f32[])", kind)
    assert may(line, later="r.0", before=before, backend=GPU) is expected


@pytest.mark.parametrize(("read", "expected"), [("k", True), ("l", False)])
def test_a_gpu_updates_the_slice_it_reads(read: str, expected: bool) -> None:
    body = f"""  k = s32[] constant(3)
  l = s32[] constant(4)
  d = f32[2] dynamic-slice(p, {read}), dynamic_slice_sizes={{2}}
  n = f32[2] negate(d)
  ROOT u = f32[8] dynamic-update-slice(p, n, k)"""
    line, before = fusion(body)
    # The pair of the update itself would settle it: ask the backend alone.
    root = assign(*PARAMETERS, line, before=before).flow.module.entry.root
    assert gpu_fusion_may_overwrite(root, 0, Position(root, 0)) is expected


def test_constants_and_what_is_no_operand_are_not_overwritten() -> None:
    assert not may("r = f32[4,4] negate(v)", "x")
    assignment = assign("c = f32[4] constant({1, 2, 3, 4})", "r = f32[4] negate(c)")
    rules = Overwriting(assignment.flow, assignment.buffers.in_place)
    value = value_of(assignment, "c")
    assert not rules.may(value, assignment.ranges.last_position[value], value_of(assignment, "r"))
