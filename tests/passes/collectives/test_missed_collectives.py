"""Conditions that keep the passes on collectives from changing them, with what they say of it."""

from __future__ import annotations

import pytest
from tests.passes.checked_run import reasons_to_stay

HEADER = """HloModule m, replica_count=%d, num_partitions=%d
sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
product { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] multiply(a, b) }
"""


def entry(body: str, *, replicas: int = 4, partitions: int = 1) -> str:
    parameters = "x = f32[4] parameter(0) y = f32[4] parameter(1) z = f32[8] parameter(2)"
    return HEADER % (replicas, partitions) + f"ENTRY e {{\n{parameters}\n{body}\n}}\n"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (
            "w = f32[<=4] set-dimension-size(x, n), dimensions={0} "
            "b = f32[<=4,3] broadcast(w), dimensions={0} "
            "ROOT g = f32[<=16,3] all-gather(b), dimensions={0}",
            "it or what is broadcast has a dynamic dimension",
        ),
        (
            "ROOT g = (f32[16], f32[16]) all-gather(x, y), dimensions={0}",
            "it has 2 operands",
        ),
        (
            "b = f32[4,3] broadcast(x), dimensions={0} "
            "ROOT g = f32[16,3] all-gather(b), dimensions={0}, control-predecessors={y}",
            "it or its broadcast has control dependencies",
        ),
        (
            "b = f32[4,3] broadcast(x), dimensions={0}, control-predecessors={y} "
            "ROOT g = f32[16,3] all-gather(b), dimensions={0}",
            "it or its broadcast has control dependencies",
        ),
    ],
)
def test_gathers_of_broadcasts(body: str, reason: str) -> None:
    text = entry(f"n = s32[] constant(3) {body}")
    assert reasons_to_stay("all-gather-bcast-reorder", text) == [reason]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (
            "ROOT r = (f32[4], f32[4]) all-reduce(x, y), to_apply=sum, constrain_layout=true",
            "its layout is constrained",
        ),
        (
            "n = s32[] constant(3) w = f32[<=4] set-dimension-size(x, n), dimensions={0} "
            "ROOT r = (f32[4], f32[<=4]) all-reduce(x, w), to_apply=sum",
            "%w has a dynamic size, or another layout than its result",
        ),
        (
            "w = f32[2,2]{1,0} reshape(x) "
            "ROOT r = (f32[2,2]{0,1}, f32[4]) all-reduce(w, y), to_apply=sum",
            "%w has a dynamic size, or another layout than its result",
        ),
    ],
)
def test_reduced_values_that_are_not_concatenated(body: str, reason: str) -> None:
    assert reasons_to_stay("all-reduce-contiguous", entry(body)) == [reason]


def test_an_asynchronous_computation_holds_its_all_reduce_alone() -> None:
    text = (
        HEADER % (4, 1)
        + """reduce {
          a = f32[4] parameter(0)
          b = f32[8] parameter(1)
          ROOT r = (f32[4], f32[8]) all-reduce(a, b), to_apply=sum
        }
        ENTRY e {
          x = f32[4] parameter(0)
          y = f32[8] parameter(1)
          s = ((f32[4], f32[8]), (f32[4], f32[8])) async-start(x, y), calls=reduce
          ROOT d = (f32[4], f32[8]) async-done(s)
        }"""
    )
    assert reasons_to_stay("all-reduce-contiguous", text) == [
        "%reduce, which runs asynchronously, holds nothing else"
    ]


ROWS, COLUMNS = "replica_groups={{0,1},{2,3}}", "replica_groups={{0,2},{1,3}}"


@pytest.mark.parametrize(
    ("inner", "outer", "reason"),
    [
        (
            f"{ROWS}, control-predecessors={{y}}",
            COLUMNS,
            "%inner has several operands or control dependencies",
        ),
        (
            ROWS,
            f"{COLUMNS}, control-predecessors={{y}}",
            "%outer has several operands or control dependencies",
        ),
        # Collectives with and without a constraint are not valid together.
        (
            f"{ROWS}, constrain_layout=true",
            f"{COLUMNS}, constrain_layout=true",
            "the layout of %inner is constrained",
        ),
        (
            ROWS,
            f"{COLUMNS}, channel_id=1",
            "its mode is cross_replica, that of %outer is cross_replica_and_partition",
        ),
        ("replica_groups={}", COLUMNS, "%inner lists no groups"),
        (ROWS, "replica_groups={}", "%outer lists no groups"),
        ("replica_groups=[1,70000]<=[70000]", COLUMNS, "%inner names more than 65,536 devices"),
    ],
)
def test_all_reduces_that_are_not_folded(inner: str, outer: str, reason: str) -> None:
    text = entry(
        f"inner = f32[4] all-reduce(x), to_apply=sum, {inner}\n"
        f"ROOT outer = f32[4] all-reduce(inner), to_apply=sum, {outer}",
        replicas=70000 if "70000" in inner else 4,
    )
    if "70000" in inner:
        text = text.replace(COLUMNS, "replica_groups=[1,70000]<=[70000]")
    assert reasons_to_stay("all-reduce-folder", text) == [reason]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (
            "c = f32[4] constant({1, 2, 3, 4}) ROOT r = f32[4] all-reduce(c), to_apply=product",
            "it is not a sum, minimum or maximum",
        ),
        (
            "a = f32[2,2]{1,0} constant({{1, 2}, {3, 4}}) "
            "ROOT r = f32[2,2]{0,1} all-reduce(a), to_apply=sum",
            "its result has another shape",
        ),
        (
            "ROOT r = f32[4] all-reduce(x), to_apply=sum, replica_groups={{0,1},{2},{3}}",
            "its replica groups have different sizes",
        ),
        (
            "ROOT r = f32[4] all-reduce(x), to_apply=sum, control-predecessors={y}",
            "it has control dependencies",
        ),
    ],
)
def test_all_reduces_of_equal_values_that_stay(body: str, reason: str) -> None:
    assert reasons_to_stay("all-reduce-simplifier", entry(body)) == [reason]


@pytest.mark.parametrize(
    ("left", "right", "rest", "reason"),
    [
        (
            "",
            ", control-predecessors={z}",
            "ROOT r = f32[4] add(left, right)",
            "%right has several operands or control dependencies",
        ),
        (
            ", constrain_layout=true",
            ", constrain_layout=true",
            "ROOT r = f32[4] add(left, right)",
            "the layout of %left is constrained",
        ),
        (
            ', frontend_attributes={_scheduling_group_id="1"}',
            ', frontend_attributes={_scheduling_group_id="2"}',
            "ROOT r = f32[4] add(left, right)",
            "it is to be scheduled with others than %left",
        ),
        (
            "",
            "",
            "i = s32[] constant(1) p = f32[2] dynamic-slice(left, i), dynamic_slice_sizes={2} "
            "q = f32[2] slice(right), slice={[0:2]} ROOT r = f32[2] add(p, q)",
            "only one of the two is sliced dynamically",
        ),
        (
            "",
            "",
            "ROOT r = f32[4] multiply(left, right)",
            "%left is not a product",
        ),
    ],
)
def test_all_reduces_that_are_not_combined_with_their_sum(
    left: str, right: str, rest: str, reason: str
) -> None:
    text = entry(
        f"left = f32[4] all-reduce(x), to_apply=sum{left}\n"
        f"right = f32[4] all-reduce(y), to_apply=sum{right}\n{rest}"
    )
    assert reasons_to_stay("all-reduce-reassociate", text) == [reason]


def test_slices_of_other_shapes_are_not_added_before() -> None:
    text = entry(
        "left = f32[8] all-reduce(z), to_apply=sum\n"
        "right = f32[4] all-reduce(x), to_apply=sum\n"
        "i = s32[] constant(1)\n"
        "p = f32[2] dynamic-slice(left, i), dynamic_slice_sizes={2}\n"
        "q = f32[2] dynamic-slice(right, i), dynamic_slice_sizes={2}\n"
        "ROOT r = f32[2] add(p, q)"
    )
    reasons = reasons_to_stay("all-reduce-reassociate", text)
    assert reasons == ["%left reduces values of another shape"]


@pytest.mark.parametrize(
    ("body", "options", "reasons"),
    [
        (
            "a1 = f32[4] all-reduce(x), to_apply=sum, constrain_layout=true\n"
            "ROOT a2 = f32[4] all-reduce(y), to_apply=sum, constrain_layout=true",
            {},
            ["an all-reduce of the module constrains its layout"] * 2,
        ),
        (
            "a1 = f32[4] all-reduce(x), to_apply=sum\n"
            "a2 = f32[4] all-reduce(y), to_apply=sum\nROOT t = tuple(a1, a2)",
            {"combine_threshold_count": 1},
            [
                "%a2, the next, would be one too many for combine_threshold_count, 1",
                "it would be one too many for combine_threshold_count, 1",
            ],
        ),
        (
            "a1 = f32[4] all-reduce(x), to_apply=sum\n"
            "a2 = f32[8] all-reduce(z), to_apply=sum\nROOT t = tuple(a1, a2)",
            {"combine_threshold_in_bytes": 40},
            [
                "%a2, the next, would make 48 bytes of the combined one, and "
                "combine_threshold_in_bytes is 40",
                "it would make 48 bytes of the combined one, and combine_threshold_in_bytes is 40",
            ],
        ),
        (
            "a1 = f32[4] all-reduce(x), to_apply=sum\n"
            "ROOT a2 = f32[4] all-reduce(a1), to_apply=sum",
            {},
            [
                "%a2, the next, depends on %a1 or others combined with that",
                "it depends on %a1 or others combined with that",
            ],
        ),
        (
            "a1 = (f32[4], f32[4]) all-reduce(x, y), to_apply=sum\n"
            "a2 = f32[4] all-reduce(y), to_apply=sum, control-predecessors={z}\n"
            "a3 = f32[4] all-reduce(y), to_apply=sum, "
            'frontend_attributes={_scheduling_group_id="1"}\nROOT t = tuple(a1, a2, a3)',
            {},
            [
                "it has 2 operands already",
                "it has control dependencies",
                "it has _scheduling_group_id, so its place among others is fixed",
            ],
        ),
    ],
)
def test_collectives_that_are_not_combined(
    body: str, options: dict[str, object], reasons: list[str]
) -> None:
    assert reasons_to_stay("all-reduce-combiner", entry(body), **options) == reasons


LOOP = """
body {
  p = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  v = f32[4] get-tuple-element(p), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  %s
  ROOT t = (s32[], f32[4]) tuple(next, r)
}
condition {
  q = (s32[], f32[4]) parameter(0)
  j = s32[] get-tuple-element(q), index=0
  three = s32[] constant(3)
  ROOT less = pred[] compare(j, three), direction=LT
}
ENTRY e {
  zero = s32[] constant(0)
  x = f32[4] parameter(0)
  start = (s32[], f32[4]) tuple(zero, x)
  ROOT w = (s32[], f32[4]) while(start), condition=condition, body=body
}
"""


def test_collectives_in_loops_are_not_combined_with_that_off() -> None:
    body = """a1 = f32[4] all-reduce(v), to_apply=sum
    a2 = f32[4] all-reduce(v), to_apply=sum
    r = f32[4] add(a1, a2)"""
    text = HEADER % (4, 1) + LOOP % body
    reasons = reasons_to_stay("all-reduce-combiner", text, combine_while_loops=False)
    assert reasons == ["it is in a loop's body, combine_while_loops is off"] * 2


@pytest.mark.parametrize(
    ("replicas", "channel", "reason"),
    [
        (2, ", control-predecessors={one}", "it has control dependencies"),
        (70000, "", "which of 70,000 devices meet in others is not looked at"),
        (2, ", channel_id=1", "its pairs are cross_partition and would be cross_replica in a send"),
    ],
)
def test_permutes_that_are_not_split(replicas: int, channel: str, reason: str) -> None:
    body = f"r = f32[4] collective-permute(v), source_target_pairs={{{{0,1}}}}{channel}"
    text = HEADER % (replicas, 1) + LOOP % body
    assert reasons_to_stay("collective-permute-decomposer", text) == [reason]


def test_permutes_of_several_values_are_not_split() -> None:
    body = """rs = (f32[4], f32[4]) collective-permute(v, v), source_target_pairs={{0,1}}
    r = f32[4] get-tuple-element(rs), index=0"""
    text = HEADER % (2, 1) + LOOP % body
    assert reasons_to_stay("collective-permute-decomposer", text) == ["it has 2 operands"]


def test_an_all_reduce_that_others_use_is_not_folded() -> None:
    text = entry(
        f"inner = f32[4] all-reduce(x), to_apply=sum, {ROWS}\n"
        f"outer = f32[4] all-reduce(inner), to_apply=sum, {COLUMNS}\nROOT t = tuple(inner, outer)"
    )
    assert reasons_to_stay("all-reduce-folder", text) == ["not only %outer uses it"]


def test_a_gather_with_control_dependencies_stands_for_no_other() -> None:
    text = entry("ROOT g = f32[16] all-gather(x), dimensions={0}, control-predecessors={y}")
    assert reasons_to_stay("all-gather-cse", text) == ["it has control dependencies"]
