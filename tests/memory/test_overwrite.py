"""The results that may be written over operands that are needed no more."""

from __future__ import annotations

import pytest
from tests.memory.modules import assign, module_text, value_of

from hloopt.analysis.dataflow import Position, Use
from hloopt.memory.backends import CPU, GPU, Backend
from hloopt.memory.elementwise import Elementwise
from hloopt.memory.gpu.fusions import gpu_fusion_may_overwrite
from hloopt.memory.overwrite import Overwriting
from hloopt.text import parse_module

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
    *lines: str, earlier: str = "x", later: str = "r", before: str = ADD, backend: Backend = CPU
) -> bool:
    """Whether the result of a line may lie where an operand does."""
    assignment = assign(*PARAMETERS, *lines, before=before, backend=backend)
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


def test_a_computation_that_is_called_twice_updates_what_it_is_given() -> None:
    called = """g { z = f32[8] parameter(0)
  w = f32[2] constant({1, 2})
  j = s32[] constant(3)
  ROOT d = f32[8] dynamic-update-slice(z, w, j) }
"""
    calls = ("c = f32[8] call(x), to_apply=g", "e = f32[8] call(y), to_apply=g")
    assert may(*calls, earlier="x", later="d", before=called)
    assert may(*calls, earlier="y", later="d", before=called)


def test_a_sort_of_several_overwrites_each_its_own() -> None:
    compare = """less { k = f32[] parameter(0)
  l = f32[] parameter(1)
  o = f32[] parameter(2)
  q = f32[] parameter(3)
  ROOT z = pred[] compare(k, l), direction=LT }
"""
    line = "r = (f32[8], f32[8]) sort(x, y), dimensions={0}, to_apply=less"
    results = {
        (e, r): may(line, earlier=e, later=f"r.{r}", before=compare) for e in "xy" for r in "01"
    }
    assert [pair for pair, is_over in results.items() if is_over] == [("x", "0"), ("y", "1")]
    twice = "r = (f32[8], f32[8]) sort(x, x), dimensions={0}, to_apply=less"
    assert not may(twice, later="r.0", before=compare)


def test_a_sort_overwrites_what_nothing_else_reads() -> None:
    less = """less { k = f32[] parameter(0)
  l = f32[] parameter(1)
  ROOT z = pred[] compare(k, l), direction=LT }
"""
    sort = "r = f32[8] sort(x), dimensions={0}, to_apply=less"
    assert may(sort, before=less)
    assert not may("o = f32[8] negate(x)", sort, before=less)


@pytest.mark.parametrize(
    ("operands", "expected"), [("m, v", True), ("v, m", False), ("v, v", False)]
)
def test_a_triangular_solve_overwrites_its_right_side(operands: str, expected: bool) -> None:
    assert may(f"r = f32[4,4] triangular-solve({operands})", earlier="v") is expected


def test_each_result_of_an_annotated_call_lies_where_its_operand_does() -> None:
    line = (
        'r = (f32[8], f32[8]) custom-call(x, y), custom_call_target="f", '
        "output_to_operand_aliasing={{0}: (1, {}), {1}: (0, {})}"
    )
    results = {(e, r): may(line, earlier=e, later=f"r.{r}") for e in "xy" for r in "01"}
    assert [pair for pair, is_over in results.items() if is_over] == [("x", "1"), ("y", "0")]


def test_an_operand_that_is_read_twice_is_overwritten_by_what_is_elementwise_on_it() -> None:
    assert may("r = f32[8] add(x, x)")
    # XLA asks about the first slot only
    assert may("r = f32[8] map(x, x), dimensions={0}, to_apply=add")
    assert not may("r = f32[8] map(x, x), dimensions={}, to_apply=add")


ELEMENTWISE = [
    ("select(b, p, q)", "012"),
    ("clamp(p, q, q)", "012"),
    ("compare(p, q), direction=LT", "01"),
    ("atan2(p, q)", "01"),
    ("copy(p)", "0"),
    ("convert(p)", "0"),
    ("map(p, q), dimensions={0,1}, to_apply=add", "01"),
    ("map(p, q), dimensions={0, 1}, to_apply=add", "01"),
    ("map(p, q), dimensions={1,0}, to_apply=add", ""),
    ("map(p, q), dimensions={0}, to_apply=add", ""),
    ("dynamic-update-slice(p, q, i, i)", "0"),
    ("reverse(p), dimensions={0}", ""),
    ("transpose(p), dimensions={0,1}", ""),
    ("concatenate(p), dimensions={0}", ""),
    ("fusion(p, q), kind=kLoop, calls=first", "0"),
    ("fusion(q, p), kind=kLoop, calls=outer", "1"),
]


@pytest.mark.parametrize(("text", "expected"), ELEMENTWISE, ids=[text for text, _ in ELEMENTWISE])
def test_the_operands_that_are_read_element_by_element(text: str, expected: str) -> None:
    fused = """first { p.1 = f32[4,4] parameter(0)
  q.1 = f32[4,4] parameter(1)
  r.1 = f32[4,4] reverse(q.1), dimensions={1}
  ROOT s.1 = f32[4,4] add(p.1, r.1) }
outer { p.2 = f32[4,4] parameter(0)
  q.2 = f32[4,4] parameter(1)
  n.2 = f32[4,4] negate(q.2)
  ROOT s.2 = f32[4,4] fusion(n.2, p.2), kind=kLoop, calls=first }
"""
    lines = ("b = pred[4,4] parameter(0)", "p = f32[4,4] parameter(1)", "q = f32[4,4] parameter(2)")
    shape = "pred[4,4]" if text.startswith("compare") else "f32[4,4]"
    module = parse_module(
        module_text(*lines, "i = s32[] parameter(3)", f"r = {shape} {text}", before=ADD + fused)
    )
    root = module.entry.root
    rules = Elementwise()
    found = [str(n) for n in range(len(root.operands)) if rules.on_operand(root, n)]
    assert "".join(found) == expected


@pytest.mark.parametrize(
    ("shape", "expected"), [("s32[8]", True), ("f32[8]", True), ("s16[8,2]", False)]
)
def test_a_bitcast_convert_keeps_elements_of_the_same_width(shape: str, expected: bool) -> None:
    module = parse_module(module_text("p = f32[8] parameter(0)", f"r = {shape} bitcast-convert(p)"))
    assert Elementwise().on_operand(module.entry.root, 0) is expected


def test_a_tuple_at_the_end_of_a_fusion_keeps_places_where_asked() -> None:
    fused = """f { p = f32[8] parameter(0)
  q = f32[8] parameter(1)
  k = f32[8] parameter(2)
  n = f32[8] negate(p)
  o = f32[8] reverse(q), dimensions={0}
  ROOT t = (f32[8], f32[8], f32[8]) tuple(n, o, p) }
"""
    line = "r = (f32[8], f32[8], f32[8]) fusion(a, a, a), kind=kLoop, calls=f"
    module = parse_module(module_text("a = f32[8] parameter(0)", line, before=fused))
    body, rules = module.computations["f"], Elementwise()
    assert rules.parameters(body, through_tuples=True) == {0, 2}
    assert rules.parameters(body, through_tuples=False) == {2}


MATRIX = "  z = f32[] constant(0)\n  m = f32[8,8] broadcast(z), dimensions={}\n"


def fusion(body: str, shape: str = "f32[8]", kind: str = "kLoop") -> tuple[str, str]:
    text = f"f {{ p = f32[8] parameter(0)\n  q = f32[8] parameter(1)\n{MATRIX}{body} }}\n"
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
        (
            "  d = f32[8] convolution(q, q), dim_labels=b_b->b\n  ROOT s = f32[8] add(p, d)",
            "kOutput",
            True,
        ),
        (
            "  d = f32[8] convolution(q, p), dim_labels=b_b->b\n  ROOT s = f32[8] add(p, d)",
            "kOutput",
            False,
        ),
        (
            "  d = f32[8] dot(m, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
            "  ROOT s = f32[8] add(p, d)",
            "kOutput",
            True,
        ),
        ("  d = f32[8] sine(q)\n  ROOT s = f32[8] add(p, d)", "kOutput", True),
        ("  d = f32[8] sine(p)\n  ROOT s = f32[8] add(p, d)", "kOutput", True),
        (
            "  d = f32[8] convolution(q, q), dim_labels=b_b->b\n  ROOT s = f32[8] multiply(d, p)",
            "kOutput",
            True,
        ),
        ("  n = f32[8] negate(p)\n  ROOT s = f32[8] add(n, q)", "kInput", True),
        ("  n = f32[8] reverse(p), dimensions={0}\n  ROOT s = f32[8] add(n, q)", "kInput", False),
        ("  n = f32[8] reverse(p), dimensions={0}\n  ROOT s = f32[8] add(n, q)", "kCustom", False),
    ],
)
def test_fusions_on_a_cpu(body: str, kind: str, expected: bool) -> None:
    line, before = fusion(body, kind=kind)
    assert may(line, before=before) is expected


@pytest.mark.parametrize(("kind", "expected"), [("kLoop", True), ("kCustom", False)])
def test_results_of_loop_fusions_overwrite_what_leads_to_them(kind: str, expected: bool) -> None:
    body = "  s = f32[8] negate(p)\n  t = f32[8] sine(q)\n  ROOT o = (f32[8], f32[8]) tuple(s, t)"
    line, before = fusion(body, "(f32[8], f32[8])", kind)
    assert may(line, later="r.0", before=before) is expected


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
    assert not may("r = f32[4,4] negate(v)")
    assignment = assign("c = f32[4] constant({1, 2, 3, 4})", "r = f32[4] negate(c)")
    rules = Overwriting(assignment.flow, assignment.buffers.in_place)
    value = value_of(assignment, "c")
    assert not rules.may(value, assignment.ranges.last_position[value], value_of(assignment, "r"))


# -- copies that may be left out ------------------------------------------------------------------


def may_share(
    *lines: str,
    operand: int = 0,
    slot: int = 0,
    result: int = 0,
    before: str = ADD,
    backend: Backend = CPU,
) -> bool:
    """Whether slots of an operand and of the result of the last line may lie in one place."""
    assignment = assign(*PARAMETERS, *lines, before=before, backend=backend)
    root = assignment.flow.module.entry.root
    rules = Overwriting(assignment.flow, assignment.buffers.in_place, backend.may_overwrite)
    return rules.may_share(Use(root, operand, slot), Position(root, result))


@pytest.mark.parametrize(
    ("line", "operands"),
    [
        ("r = f32[8] negate(x)", "0"),
        ("r = f32[8] copy(x)", "0"),  # copies of one are one
        ("r = f32[8] add(x, y)", "01"),
        ("r = f32[8] reverse(x), dimensions={0}", ""),
        ("r = s32[8] convert(x)", ""),
        ("r = f32[8] dynamic-update-slice(x, y, i)", "0"),
        ("r = f32[8] dynamic-update-slice(x, x, i)", "0"),
        ("r = f32[8] add(c, x)", "1"),  # nothing is written over a constant
        ("r = f32[8] dynamic-update-slice(c, x, i)", ""),
        ("r = f32[8] fusion(x, y), kind=kLoop, calls=f", "1"),
        ("r = f32[8] call(y), to_apply=g", "0"),
        ("r = f32[8] call(y), to_apply=h", ""),
        ("r = f32[8] call(z), to_apply=g", ""),  # what else reads `z` is not the call's root
    ],
)
def test_what_a_result_may_share_with(line: str, operands: str) -> None:
    before = """f { p = f32[8] parameter(0)
  q = f32[8] parameter(1)
  n = f32[8] reverse(p), dimensions={0}
  ROOT s = f32[8] add(n, q) }
g { p.1 = f32[8] parameter(0)
  ROOT s.1 = f32[8] negate(p.1) }
h { p.2 = f32[8] parameter(0)
  ROOT s.2 = f32[8] reverse(p.2), dimensions={0} }
"""
    lines = (
        "c = f32[8] constant({1, 2, 3, 4, 5, 6, 7, 8})",
        "z = f32[8] cosine(x)",
        "k = f32[8] negate(z)",
        line,
    )
    count = line.partition("(")[2].partition(")")[0].count(",") + 1
    found = [str(n) for n in range(count) if may_share(*lines, operand=n, before=before)]
    assert "".join(found) == operands


def test_parts_of_tuples_share_by_their_annotation() -> None:
    lines = (
        "t = (f32[8], f32[8]) tuple(x, y)",
        'r = (f32[8], f32[8]) custom-call(t), custom_call_target="f", '
        "output_to_operand_aliasing={{0}: (0, {1})}",
    )
    shared = {(s, r) for s in (1, 2) for r in (1, 2) if may_share(*lines, slot=s, result=r)}
    assert shared == {(2, 1)}
