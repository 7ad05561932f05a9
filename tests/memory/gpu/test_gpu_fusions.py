"""Fusions that XLA:GPU lets write their result over an operand: its rule, case by case."""

from __future__ import annotations

import pytest
from tests.memory.modules import module_text

from hloopt.analysis.dataflow import Position
from hloopt.memory.gpu.fusions import gpu_fusion_may_overwrite
from hloopt.text import parse_module

CALLED = """add { k = f32[] parameter(0)
  l = f32[] parameter(1)
  ROOT z = f32[] add(k, l) }
less { k.1 = f32[] parameter(0)
  l.1 = f32[] parameter(1)
  k.2 = f32[] parameter(2)
  l.2 = f32[] parameter(3)
  ROOT z.1 = pred[] compare(k.1, l.1), direction=LT }
less_one { k.3 = f32[] parameter(0)
  l.3 = f32[] parameter(1)
  ROOT z.3 = pred[] compare(k.3, l.3), direction=LT }
add_integers { k.4 = s32[] parameter(0)
  l.4 = s32[] parameter(1)
  ROOT z.4 = s32[] add(k.4, l.4) }
"""


def opinions(
    *body: str, shape: str = "f32[8]", kind: str = "kLoop", slot: int = 0
) -> list[bool | None]:
    """The opinion on `p` and `q`, two operands f32[8], and a result at a slot of the fusion."""
    *others, root = body
    inside = "\n  ".join(
        [
            "p = f32[8] parameter(0)",
            "q = f32[8] parameter(1)",
            "i = s32[] constant(0)",
            "j = s32[] constant(1)",
            "c = f32[] constant(0)",
            *others,
            f"ROOT {root}",
        ]
    )
    module = parse_module(
        module_text(
            "a = f32[8] parameter(0)",
            "b = f32[8] parameter(1)",
            f"r = {shape} fusion(a, b), kind={kind}, calls=f",
            before=f"{CALLED}f {{ {inside} }}\n",
        )
    )
    root_instruction = module.entry.root
    position = Position(root_instruction, slot)
    return [gpu_fusion_may_overwrite(root_instruction, number, position) for number in (0, 1)]


NEITHER, FIRST, SECOND, BOTH = [False, False], [True, False], [False, True], [True, True]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (["s = f32[8] add(p, q)"], BOTH),
        (["n = f32[8] negate(p)", "s = f32[8] add(n, q)"], BOTH),
        (["n = f32[8] reverse(p), dimensions={0}", "s = f32[8] add(n, q)"], SECOND),
        (["n = f32[8] reverse(q), dimensions={0}", "s = f32[8] add(p, n)"], FIRST),
        # one way keeps the place of each element, the other does not
        (["n = f32[8] reverse(p), dimensions={0}", "s = f32[8] add(p, n)"], NEITHER),
        (["n = f32[8] copy(p)", "s = f32[8] add(n, q)"], SECOND),
        (["b = f32[2,4] bitcast(p)", "d = f32[8] bitcast(b)", "s = f32[8] add(d, q)"], BOTH),
        (["n = f32[8] negate(p)", "m = f32[8] sine(p)", "s = f32[8] add(n, m)"], FIRST),
        (["n = f32[8] map(p, q), dimensions={0}, to_apply=add", "s = f32[8] negate(n)"], BOTH),
        (["n = f32[8] map(p, q), dimensions={}, to_apply=add", "s = f32[8] negate(n)"], NEITHER),
        # what nothing leads to is not overwritten, nor what leads elsewhere
        (["n = f32[8] negate(q)", "s = f32[8] sine(p)"], FIRST),
    ],
)
def test_every_way_from_an_operand_keeps_places(body: list[str], expected: list[bool]) -> None:
    assert opinions(*body) == expected


@pytest.mark.parametrize(
    ("shape", "expected"),
    [("s32[8]", True), ("u32[8]", True), ("f16[8]", False), ("f64[8]", False), ("pred[8]", False)],
)
def test_elements_are_as_wide_as_the_operands(shape: str, expected: bool) -> None:
    assert opinions(f"s = {shape} convert(p)", shape=shape)[0] is expected


@pytest.mark.parametrize(
    ("body", "shape", "expected"),
    [
        ("s = f32[4] slice(p), slice={[0:4]}", "f32[4]", False),
        ("s = f32[2,4] bitcast(p)", "f32[2,4]", True),
        ("s = f32[16] concatenate(p, p), dimensions={0}", "f32[16]", False),
    ],
)
def test_there_are_as_many_elements(body: str, shape: str, expected: bool) -> None:
    assert opinions(body, shape=shape)[0] is expected


def test_kernels_that_transpose_have_rules_of_their_own() -> None:
    body = ("b = f32[2,4] bitcast(p)", "t = f32[4,2] transpose(b), dimensions={1,0}")
    root = "s = f32[8] bitcast(t)"
    assert opinions(*body, root, kind="kInput") == [None, None]
    assert opinions(*body, root, kind="kLoop") == NEITHER
    assert opinions("s = f32[8] add(p, q)", kind="kInput") == BOTH


def test_an_operand_that_is_a_tuple_is_not_written_over() -> None:
    body = """f { p = (f32[8], f32[8]) parameter(0)
  q = f32[8] get-tuple-element(p), index=0
  ROOT s = f32[8] negate(q) }
"""
    lines = ("a = (f32[8], f32[8]) parameter(0)", "r = f32[8] fusion(a), kind=kLoop, calls=f")
    root = parse_module(module_text(*lines, before=body)).entry.root
    assert gpu_fusion_may_overwrite(root, 0, Position(root, 0)) is False


# -- several results ------------------------------------------------------------------------------

PAIR = (
    "s = f32[8] negate(p)",
    "t = f32[8] sine(q)",
    "u = (f32[8], f32[8]) tuple(s, t)",
)


@pytest.mark.parametrize(("slot", "expected"), [(1, FIRST), (2, SECOND)])
def test_each_result_is_written_over_what_leads_to_it(slot: int, expected: list[bool]) -> None:
    assert opinions(*PAIR, shape="(f32[8], f32[8])", slot=slot) == expected


def test_the_table_of_a_tuple_is_written_over_nothing() -> None:
    assert opinions(*PAIR, shape="(f32[8], f32[8])", slot=0) == NEITHER


def test_results_in_tuples_of_tuples_are_written_over_nothing() -> None:
    body = (*PAIR, "v = ((f32[8], f32[8]), f32[8]) tuple(u, s)")
    shape = "((f32[8], f32[8]), f32[8])"
    assert opinions(*body, shape=shape, slot=2) == NEITHER
    # behind them are results again, here `s`
    assert opinions(*body, shape=shape, slot=4) == FIRST


REDUCED = (
    "n = f32[8] negate(p)",
    "o = f32[] reduce(n, c), dimensions={0}, to_apply=add",
    "s = f32[8] add(p, q)",
)


@pytest.mark.parametrize(("kind", "expected"), [("kInput", BOTH), ("kLoop", SECOND)])
def test_the_reduction_of_a_kernel_may_read_the_operand(kind: str, expected: list[bool]) -> None:
    body = (*REDUCED, "u = (f32[8], f32[]) tuple(s, o)")
    assert opinions(*body, shape="(f32[8], f32[])", kind=kind, slot=1) == expected


def test_a_second_reduction_may_not() -> None:
    second = "m = f32[] reduce(q, c), dimensions={0}, to_apply=add"
    body = (*REDUCED, second, "u = (f32[8], f32[], f32[]) tuple(s, o, m)")
    shape = "(f32[8], f32[], f32[])"
    assert opinions(*body, shape=shape, kind="kInput", slot=1) == FIRST


# -- updates, scatters and sorts at the end -------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (["s = f32[8] dynamic-update-slice(p, q, i)"], BOTH),
        (["n = f32[8] negate(p)", "s = f32[8] dynamic-update-slice(n, q, i)"], BOTH),
        # the operand is not also where to begin
        (
            [
                "n = s32[8] bitcast-convert(p)",
                "m = s32[] reduce(n, i), dimensions={0}, to_apply=add_integers",
                "s = f32[8] dynamic-update-slice(q, q, m)",
            ],
            SECOND,
        ),
        (
            [
                "u = f32[8] dynamic-update-slice(p, q, i)",
                "v = f32[2,4] bitcast(u)",
                "s = f32[8] bitcast(v)",
            ],
            BOTH,
        ),
        # an update in the middle is elementwise on what it updates only
        (["u = f32[8] dynamic-update-slice(p, q, i)", "s = f32[8] negate(u)"], FIRST),
        (["u = f32[8] dynamic-update-slice(p, p, i)", "s = f32[8] negate(u)"], NEITHER),
        # XLA:GPU has no rule for a sort that is all of the result
        (["s = f32[8] sort(p), dimensions={0}, to_apply=less_one"], NEITHER),
        (["n = f32[8] sort(p), dimensions={0}, to_apply=less_one", "s = f32[8] sine(n)"], NEITHER),
    ],
)
def test_updates_and_sorts(body: list[str], expected: list[bool]) -> None:
    assert opinions(*body) == expected


IN_PLACE = [
    "d = f32[8] dynamic-update-slice(n, m, i)",
    "d = f32[8] scatter(n, x, m), update_window_dims={}, inserted_window_dims={0}, "
    "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add",
    "d = f32[8] sort(n), dimensions={0}, to_apply=less_one",
]


@pytest.mark.parametrize("update", IN_PLACE, ids=["update", "scatter", "sort"])
@pytest.mark.parametrize(
    ("other", "is_free"),
    [
        ("o = f32[8] negate(m)", True),
        ("o = f32[8] tanh(p)", False),  # another result of the operand
        ("o = f32[8] negate(n)", False),
        ("o = f32[8] negate(d)", False),
    ],
)
def test_what_an_update_is_written_over_leads_to_no_other_result(
    update: str, other: str, is_free: bool
) -> None:
    made = (
        "n = f32[8] negate(p)",
        "m = f32[8] broadcast(c), dimensions={}",
        "x = s32[8,1] iota(), iota_dimension=0",
    )
    shape = "(f32[8], f32[8])"
    body = (*made, update, other, "s = (f32[8], f32[8]) tuple(d, o)")
    assert opinions(*body, shape=shape, slot=1)[0] is is_free


@pytest.mark.parametrize("is_first", [True, False])
def test_nor_to_a_reduction(is_first: bool) -> None:
    update = ("d = f32[8] dynamic-update-slice(p, q, i)", "o = f32[] reduce(p, c), dimensions={0}")
    body = (update[0], f"{update[1]}, to_apply=add")
    names, shape = ("d, o", "(f32[8], f32[])") if is_first else ("o, d", "(f32[], f32[8])")
    root = f"s = {shape} tuple({names})"
    slot = 1 if is_first else 2
    assert opinions(*body, root, shape=shape, kind="kInput", slot=slot) == SECOND


def test_a_sort_of_one_operand_has_the_place_of_its_number() -> None:
    body = ("d = f32[8] sort(p), dimensions={0}, to_apply=less_one", "o = f32[8] negate(q)")
    shape = "(f32[8], f32[8])"
    for names, slot, expected in (("d, o", 1, FIRST), ("o, d", 2, NEITHER)):
        root = f"s = {shape} tuple({names})"
        assert opinions(*body, root, shape=shape, slot=slot) == expected


def test_where_to_begin_an_update_is_not_written_over() -> None:
    body = """f { p = s32[1] parameter(0)
  q = s32[1] parameter(1)
  i = s32[] bitcast(p)
  ROOT u = s32[1] dynamic-update-slice(q, q, i) }
"""
    module = parse_module(
        module_text(
            "a = s32[1] parameter(0)",
            "b = s32[1] parameter(1)",
            "r = s32[1] fusion(a, b), kind=kLoop, calls=f",
            before=body,
        )
    )
    root = module.entry.root
    found = [gpu_fusion_may_overwrite(root, number, Position(root, 0)) for number in (0, 1)]
    assert found == [False, True]


@pytest.mark.parametrize(
    ("operands", "slot", "expected"),
    [("p, q", 1, FIRST), ("p, q", 2, SECOND), ("q, p", 1, SECOND), ("p, p", 1, NEITHER)],
)
def test_each_result_of_a_sort_is_written_over_its_own_operand(
    operands: str, slot: int, expected: list[bool]
) -> None:
    shape = "(f32[8], f32[8])"
    body = f"s = {shape} sort({operands}), dimensions={{0}}, to_apply=less"
    assert opinions(body, shape=shape, slot=slot) == expected


@pytest.mark.parametrize(
    ("operands", "expected"),
    [("p, x, q", FIRST), ("q, x, p", SECOND), ("p, x, p", NEITHER)],
)
def test_a_scatter_is_written_over_what_it_updates(operands: str, expected: list[bool]) -> None:
    body = (
        "x = s32[8,1] iota(), iota_dimension=0",
        f"s = f32[8] scatter({operands}), update_window_dims={{}}, inserted_window_dims={{0}}, "
        "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add",
    )
    assert opinions(*body) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (("d = f32[2] dynamic-slice(p, i), dynamic_slice_sizes={2}",), True),
        (("d = f32[2] dynamic-slice(p, j), dynamic_slice_sizes={2}",), False),
        (("d = f32[2] slice(p), slice={[0:2]}",), False),
        (  # more of it
            (
                "e = f32[4] dynamic-slice(p, i), dynamic_slice_sizes={4}",
                "d = f32[2] slice(e), slice={[0:2]}",
            ),
            False,
        ),
        (  # not of what is updated
            (
                "o = f32[8] negate(p)",
                "d = f32[2] dynamic-slice(o, i), dynamic_slice_sizes={2}",
            ),
            False,
        ),
    ],
)
def test_the_slice_that_is_read_is_the_one_that_is_written(
    body: tuple[str, ...], expected: bool
) -> None:
    update = "u = f32[8] dynamic-update-slice(p, n, i)"
    assert opinions(*body, "n = f32[2] negate(d)", update)[0] is expected


def test_a_slice_is_read_only_where_one_is_written() -> None:
    body = ("d = f32[8] dynamic-slice(p, i), dynamic_slice_sizes={8}", "s = f32[8] add(d, q)")
    assert opinions(*body) == SECOND
