"""Conditions under which while-loop-all-reduce-code-motion moves nothing, with their remarks."""

from __future__ import annotations

import pytest
from tests.passes.checked_run import reasons_to_stay
from tests.passes.collectives.test_while_loop_all_reduce_code_motion import NAME, loop

REDUCTIONS = """
most { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] maximum(a, b) }
less { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] subtract(a, b) }
whole { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = s32[] add(a, b) }
pair { a = c64[] parameter(0) b = c64[] parameter(1) ROOT c = c64[] add(a, b) }
"""
SUMMED = "r = f32[4] all-reduce(x), GROUPS, to_apply=sum\n"
ADDED = SUMMED + "n = f32[4] add(s, r)\n"
ZEROS = "z = f32[] constant(0) o = f32[4] broadcast(z), dimensions={}\n"


def stays(
    body: str, shape: str = "f32[4]", *replaced: tuple[str, str], loops: int = 1
) -> list[str]:
    """The reasons why the collectives of a loop stay there."""
    needed = "".join(
        f"{line}\n" for line in REDUCTIONS.splitlines() if f"to_apply={line.split(' ')[0]}" in body
    )
    text = loop(body, shape=shape, loops=loops).replace("sum {", f"{needed}sum {{", 1)
    for old, new in replaced:
        assert old in text
        text = text.replace(old, new, 1)
    scatters = "reduce-scatter" in text
    return reasons_to_stay(NAME, text, enable_reduce_scatter=scatters)


@pytest.mark.parametrize(
    ("body", "shape", "reason"),
    [
        # The collective
        (
            "rs = (f32[4], f32[4]) all-reduce(x, x), GROUPS, to_apply=sum "
            "r = f32[4] get-tuple-element(rs), index=0 n = f32[4] add(s, r)",
            "f32[4]",
            "it reduces several values at once",
        ),
        (
            "m = s32[] constant(3) v = f32[<=4] set-dimension-size(x, m), dimensions={0} "
            "r = f32[<=4] all-reduce(v), GROUPS, to_apply=sum n = f32[4] negate(s)",
            "f32[4]",
            "its size is dynamic",
        ),
        (
            ADDED.replace("GROUPS", "GROUPS, constrain_layout=true"),
            "f32[4]",
            "its layout is constrained",
        ),
        (
            "r = f32[4] all-reduce(x), GROUPS, to_apply=most n = f32[4] add(s, r)",
            "f32[4]",
            "it is not a sum",
        ),
        (
            SUMMED.replace("to_apply=sum", "to_apply=sum, control-predecessors={s}")
            + "n = f32[4] add(s, r)",
            "f32[4]",
            "it has control dependencies",
        ),
        (
            "v = c64[4] complex(x, x) r = c64[4] all-reduce(v), GROUPS, to_apply=pair "
            "n = c64[4] add(s, r)",
            "c64[4]",
            "values of type c64 are not accumulated",
        ),
        # The way to the sum
        (SUMMED + "n = f32[4] negate(s)", "f32[4]", "nothing accumulates its results"),
        (
            SUMMED + "f = pred[4] compare(x, x), direction=EQ v = f32[4] select(f, r, x) "
            "n = f32[4] add(s, v)",
            "f32[4]",
            "%v chooses between it and something else than zero",
        ),
        (
            "r = f32[2] reduce-scatter(x), GROUPS, dimensions={0}, to_apply=sum "
            "h = f32[2] slice(x), slice={[0:2]} f = pred[2] compare(h, h), direction=EQ "
            "z = f32[] constant(0) o = f32[2] broadcast(z), dimensions={} "
            "v = f32[2] select(f, r, o) n = f32[2] add(s, v)",
            "f32[2]",
            "%f may choose differently for each element",
        ),
        (
            SUMMED + "v = f32[4] multiply(r, x) n = f32[4] add(s, v)",
            "f32[4]",
            "%v multiplies it by what is not a scalar all-reduce",
        ),
        # The sum
        (SUMMED + "n = f32[4] add(r, r)", "f32[4]", "%n adds it to itself"),
        (
            SUMMED + "n = f32[4] add(x, r)",
            "f32[4]",
            "what %n adds it to comes from another element of the state",
        ),
        (
            "r = f32[2] reduce-scatter(x), GROUPS, dimensions={0}, to_apply=sum "
            "flat = f32[2] reshape(s) v = f32[2] add(flat, r) n = f32[2,1] reshape(v)",
            "f32[2,1]",
            "what %v adds a reduce-scatter to is not the state as it is",
        ),
        (
            SUMMED + "v = f32[4] negate(s) n = f32[4] add(v, r)",
            "f32[4]",
            "%n adds it to %v, which is not a state",
        ),
        (
            SUMMED + "w = f32[4] add(s, r) k = s32[4] convert(w) n = f32[4] convert(k)",
            "f32[4]",
            "%k converts the sum to s32",
        ),
        (
            SUMMED + "w = f32[4] add(s, r) n = f32[4] negate(w)",
            "f32[4]",
            "%n uses the sum %w",
        ),
        (SUMMED + "w = f32[4] add(s, r) n = f32[4] negate(x)", "f32[4]", "%w is not used"),
        (
            SUMMED + "v = f32[4] dynamic-slice(s, i), dynamic_slice_sizes={4} n = f32[4] add(v, r)",
            "f32[4]",
            "the sum is not put back where it was taken from the state",
        ),
        (
            SUMMED + "id = u32[] partition-id() k = s32[] convert(id) zero = s32[] constant(0) "
            "row = f32[1,4] reshape(r) "
            "old = f32[1,4] dynamic-slice(s, k, zero), dynamic_slice_sizes={1,4} "
            "v = f32[1,4] add(row, old) n = f32[3,4] dynamic-update-slice(s, v, k, zero)",
            "f32[3,4]",
            "%k, an index of %old, may differ",
        ),
        (ADDED + "look = f32[4] negate(s)", "f32[4]", "%look reads element 2 of the state, too"),
    ],
)
def test_sums_that_stay(body: str, shape: str, reason: str) -> None:
    assert stays(body, shape) == [reason]


@pytest.mark.parametrize(
    ("body", "shape", "reasons"),
    [
        (
            "one.item = f32[1] slice(x), slice={[0:1]} item = f32[] reshape(one.item) "
            "r = f32[] all-reduce(item), GROUPS, to_apply=sum "
            "q = f32[] all-reduce(item), GROUPS, to_apply=sum "
            "wide = f32[] broadcast(q), dimensions={} v = f32[] multiply(r, wide) "
            "n = f32[] add(s, v)",
            "f32[]",
            [
                "%v multiplies two scalar all-reduces",
                "%v multiplies it by what is not a scalar all-reduce",
            ],
        ),
        (
            "one.item = f32[1] slice(x), slice={[0:1]} item = f32[] reshape(one.item) "
            + SUMMED
            + "q = f32[] all-reduce(item), GROUPS, to_apply=sum "
            "wide = f32[4] broadcast(q), dimensions={} v = f32[4] multiply(r, wide) "
            "n = f32[4] add(s, v)",
            "f32[4]",
            [
                "%q, which scales it, may differ between its devices",
                "%v multiplies it by what is not a scalar all-reduce",
            ],
        ),
    ],
)
def test_sums_scaled_by_a_scalar_all_reduce(body: str, shape: str, reasons: list[str]) -> None:
    body = body.replace("all-reduce(item), GROUPS", "all-reduce(item), replica_groups={{0}}")
    assert stays(body, shape) == reasons


NEXT = "tuple(next, x, n)"


@pytest.mark.parametrize(
    ("body", "replaced", "reason"),
    [
        (ADDED, [(NEXT, "tuple(next, n, n)")], "%n is 2 elements of the next state"),
        (
            ADDED,
            [("ROOT less", "seen = f32[4] get-tuple-element(q), index=2\nROOT less")],
            "the condition of %w0 reads element 2",
        ),
        (
            ADDED,
            [
                (
                    "ROOT t = (s32[], f32[4], f32[4]) tuple(next, x, n)",
                    "t = (s32[], f32[4], f32[4]) tuple(next, x, n) "
                    "ROOT u = (s32[], f32[4], f32[4]) copy(t)",
                )
            ],
            "the root of %body is not a tuple",
        ),
        (
            ADDED + "every = (s32[], f32[4], f32[4]) copy(p)",
            [],
            "%every uses the whole state of the loop",
        ),
        (
            ADDED,
            [
                ("{{0,1}}, channel_id=1", "[1,70000]<=[70000], channel_id=1"),
                ("num_partitions=2", "num_partitions=70000"),
            ],
            "it names 70,000 devices",
        ),
    ],
)
def test_loops_that_keep_their_sums(
    body: str, replaced: list[tuple[str, str]], reason: str
) -> None:
    assert stays(body, "f32[4]", *replaced) == [reason]


def test_a_condition_that_another_loop_has_too() -> None:
    body = """r = f32[2] reduce-scatter(x), GROUPS, dimensions={0}, to_apply=sum
    n = f32[2] add(s, r)"""
    state = "(s32[], f32[4], f32[2])"
    other = f"""idle {{
      u = {state} parameter(0)
      at = s32[] get-tuple-element(u), index=0
      keep = f32[4] get-tuple-element(u), index=1
      kept = f32[2] get-tuple-element(u), index=2
      by = s32[] constant(1)
      then = s32[] add(at, by)
      ROOT out = {state} tuple(then, keep, kept)
    }}
    condition {{"""
    run = "while(start), condition=condition, body=body"
    found = stays(
        body,
        "f32[2]",
        ("condition {", other),
        (run, run.replace("start", "first")),
        ("w0 = ", f"first = {state} while(start), condition=condition, body=idle\nw0 = "),
    )
    assert found == ["%condition is the condition of another loop, too"]


SCATTERED = (
    "id = u32[] partition-id() c = u32[] constant(0) f = pred[] compare(id, c), direction=EQ "
    "m = pred[4] broadcast(f), dimensions={} " + ZEROS + "own = f32[4] select(m, s, o) "
    "at = s32[4,1] constant({{0},{1},{2},{2}}) v = f32[4] scatter(own, at, x), "
    "update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, "
    "index_vector_dim=1, to_apply=sum n = f32[4] all-reduce(v), GROUPS, to_apply=sum\n"
)


@pytest.mark.parametrize(
    ("changes", "replaced", "reason"),
    [
        ([], [], "%s0, which %w0 starts from, may differ"),
        ([("index_vector_dim=1, to_apply=sum", "index_vector_dim=1, to_apply=most")], [],
         "%most is not a sum"),
        ([], [(NEXT, "tuple(next, n, s)")],
         "%v does not scatter into the state that it becomes"),
        ([("GROUPS, to_apply=sum\n", "GROUPS, to_apply=sum look = f32[4] negate(s)")], [],
         "not only %v reads element 2 of the state"),
        ([("n = f32[4] all-reduce(v), GROUPS, to_apply=sum",
           "k = s32[4] convert(v) l = s32[4] all-reduce(k), GROUPS, to_apply=whole "
           "n = f32[4] convert(l)")], [],
         "%k converts it to s32"),
        ([("n = f32[4] all-reduce(v), GROUPS",
           "n = f32[4] all-reduce(v), replica_groups={{0,1}}")], [],
         "it names device 2, and there are 2"),
        ([("c = u32[] constant(0)", "c = u32[] constant(5)")], [],
         "0 devices of a group scatter into %s"),
        ([("n = f32[4] all-reduce(v), GROUPS, to_apply=sum",
           "l = f32[4] all-reduce(v), GROUPS, to_apply=sum n = f32[4] negate(l)")], [],
         "%n uses it (negate)"),
        ([("f = pred[] compare(id, c), direction=EQ m = pred[4] broadcast(f), dimensions={}",
           "m = pred[4] compare(x, x), direction=EQ")], [],
         "%m depends on more than the number of the device"),
    ],
)  # fmt: skip
def test_scatters_that_stay(
    changes: list[tuple[str, str]], replaced: list[tuple[str, str]], reason: str
) -> None:
    body = SCATTERED
    for old, new in changes:
        assert old in body
        body = body.replace(old, new)
    assert stays(body, "f32[4]", *replaced) == [reason]


def test_a_scatter_of_complex_numbers_stays() -> None:
    body = SCATTERED.replace("f32[4]", "c64[4]").replace("x),", "y),")
    body = body.replace("z = f32[]", "z = c64[]").replace("constant(0) o", "constant((0, 0)) o")
    body = body.replace("scatter(own, at", "scatter(s, at")
    body = "y = c64[4] complex(x, x) " + body.replace("to_apply=sum", "to_apply=pair")
    assert stays(body, "c64[4]") == ["values of type c64 are not accumulated"]


STORED = SUMMED + (
    "row = f32[1,4] reshape(r) zero = s32[] constant(0) "
    "n = f32[3,4] dynamic-update-slice(s, row, i, zero)\n"
)


@pytest.mark.parametrize(
    ("changes", "shape", "reason"),
    [
        ([("to_apply=sum", "to_apply=less")], "f32[3,4]",
         "its reduction is none of sum, product, minimum and maximum"),
        ([("row = f32[1,4] reshape(r)", "w = s32[4] convert(r) row = s32[1,4] reshape(w)"),
          ("n = f32[3,4]", "n = s32[3,4]")], "s32[3,4]",
         "%w converts its result to s32"),
        ([("n = f32[3,4] dynamic-update-slice(s,",
           "f = f32[] constant(0) new = f32[3,4] broadcast(f), dimensions={} "
           "n = f32[3,4] dynamic-update-slice(new,")], "f32[3,4]",
         "what it is stored in, %new, is not the state it becomes"),
        ([("zero)\n", "zero)\nlook = f32[3,4] negate(s)")], "f32[3,4]",
         "%look reads what it is stored in, too"),
        ([("i, zero)", "i, five)"), ("zero =", "five = s32[] constant(5) zero =")], "f32[3,4]",
         "index 1 of %n is out of bounds"),
        ([("i, zero)", "k, zero)"), ("zero =", "k = s32[] multiply(i, i) zero =")], "f32[3,4]",
         "index 0 of %n is not the loop counter"),
    ],
)  # fmt: skip
def test_stores_that_stay(changes: list[tuple[str, str]], shape: str, reason: str) -> None:
    body = STORED
    for old, new in changes:
        assert old in body
        body = body.replace(old, new)
    assert stays(body, shape) == [reason]


def test_results_that_take_more_than_the_limit_stay() -> None:
    limit = {"xla_while_loop_all_reduce_dus_code_motion_max_size_bytes": 10}
    found = reasons_to_stay(NAME, loop(STORED, shape="f32[3,4]"), **limit)
    assert found == ["its results are 48 bytes in all trips, more than 10"]


def test_loops_that_do_not_count_alike_keep_their_stores() -> None:
    start = "zero = s32[] constant(0)\n      start ="
    found = stays(STORED, "f32[3,4]", (start, start.replace("constant(0)", "constant(1)")))
    assert found == ["%w0 does not count its trips from 0 to a constant"]
    text = loop(STORED, shape="f32[3,4]", loops=2)
    condition = text[text.index("condition {") : text.index("ENTRY")]
    other = condition.replace("condition", "shorter").replace("constant(3)", "constant(2)")
    text = text.replace("ENTRY", f"{other}ENTRY")
    text = text.replace(
        "w1 = (s32[], f32[4], f32[3,4]) while(start), condition=condition",
        "w1 = (s32[], f32[4], f32[3,4]) while(start), condition=shorter",
    )
    assert reasons_to_stay(NAME, text) == [
        "the loops with its body make different numbers of trips"
    ]
