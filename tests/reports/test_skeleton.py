"""The plot of a program: folding, scopes, and what of it is shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hloopt.reports.scopes import Scope, scope_of
from hloopt.reports.skeleton.folding import Repeat, best_repeat
from hloopt.reports.skeleton.outline import arranged, condensed, shown
from hloopt.reports.skeleton.plot import Amounts, Kind, Step, folded, loops_of, operations_of
from hloopt.reports.skeleton.program import Skeleton, find_skeleton
from hloopt.text import parse_module


def step(text: str, place: str = "", flops: float = 1.0) -> Step:
    return Step(Kind.PRODUCT, text, place, text, Amounts(flops))


def words(steps: Sequence[Step]) -> str:
    """The steps as a text: `3(a b) c`."""
    return " ".join(
        f"{each.count}({words(each.below)})" if each.below else each.text for each in steps
    )


def unfolded(steps: Sequence[Step]) -> Iterator[str]:
    for each in steps:
        if each.kind is Kind.REPEAT:
            for _ in range(each.count):
                yield from unfolded(each.below)
        elif each.below:
            yield from unfolded(each.below)
        else:
            yield each.text


# -- folding --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "repeat"),
    [
        ("", None),
        ("a", None),
        ("abcd", None),
        ("abca", None),
        ("aa", Repeat(0, 1, 2)),
        ("xabababy", Repeat(1, 2, 3)),
        ("aaaabcbc", Repeat(0, 1, 4)),
        ("abababab", Repeat(0, 2, 4)),
        ("abcabcab", Repeat(0, 3, 2)),
        ("aabaab", Repeat(0, 3, 2)),
    ],
)
def test_the_repeat_that_saves_most(text: str, repeat: Repeat | None) -> None:
    assert best_repeat(text) == repeat


@pytest.mark.parametrize(
    ("text", "plot"),
    [
        ("abc", "a b c"),
        ("xabababy", "x 3(a b) y"),
        ("aabaabc", "2(2(a) b) c"),
        ("aaaaaa", "6(a)"),
        ("abbabbcc", "2(a 2(b)) 2(c)"),
    ],
)
def test_repetitions_are_folded(text: str, plot: str) -> None:
    assert words(folded([step(each) for each in text])) == plot


@given(st.text("abc", max_size=40))
def test_folding_keeps_the_order_and_the_work(text: str) -> None:
    steps = [step(each, flops=number) for number, each in enumerate(text)]
    found = folded(steps)
    assert "".join(unfolded(found)) == text
    assert sum(each.amounts.flops for each in found) == pytest.approx(sum(range(len(text))))
    assert best_repeat([(each.kind, each.text, each.below) for each in found]) is None


def test_numbers_that_differ_are_stars() -> None:
    places = ["jit(f)/layer_0/mlp_1/dot", "jit(f)/layer_1/mlp_1/dot"]
    (found,) = folded([step("a", place) for place in places])
    assert found.below[0].place == "jit(f)/layer_*/mlp_1/dot"


def test_of_other_places_what_they_begin_with_is_left() -> None:
    (found,) = folded([step("a", "jit(f)/mlp/up/dot"), step("a", "jit(f)/mlp/down/dot")])
    assert found.below[0].place == "jit(f)/mlp"


# -- scopes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("op_name", "scope"),
    [
        ("", Scope((), False)),
        ("dot", Scope((), False)),
        ("jit(step)/dot_general", Scope((), False)),
        ("jit(step)/jvp(layers)/while/body/mlp/dot_general", Scope(("layers", "mlp"), False)),
        ("jit(step)/transpose(jvp(layers))/while/body/dot", Scope(("layers",), True)),
        ("jit(step)/layers/bsm,m/hd->b(a/b)/dot", Scope(("layers", "bsm,m", "hd->b(a/b)"), False)),
        ("jit(f)/jit(g)/closed_call/checkpoint/x/add", Scope(("g", "x"), False)),
        ("jit(f)/cond/branch_12_fun/x/add", Scope(("x",), False)),
        ("jit(f)/)(/x/add", Scope((")(", "x"), False)),
    ],
)
def test_scopes_are_what_a_program_gave(op_name: str, scope: Scope) -> None:
    assert scope_of(op_name) == scope


def test_steps_of_one_scope_stand_together() -> None:
    steps = [
        step("a", "jit(f)/mlp/up/dot"),
        step("b", "jit(f)/mlp/down/dot"),
        step("c", "jit(f)/attention/dot"),
        step("d", "jit(f)/transpose(mlp)/down/dot"),
        step("e", "jit(f)/transpose(mlp)/down/dot"),
        step("f"),
    ]
    found = arranged(steps)
    assert [each.text for each in found] == ["mlp", "c", "mlp/down, backward", "f"]
    assert found[0].amounts.flops == 2


def test_scopes_that_differ_in_numbers_are_one_repeated() -> None:
    steps = [
        step(part, f"jit(f)/layer_{layer}/{part}/dot") for layer in range(3) for part in ("q", "kv")
    ]
    (found,) = arranged(steps)
    assert (found.kind, found.count) == (Kind.REPEAT, 3)
    assert [each.text for each in found.below] == ["layer_*"]
    assert [each.text for each in found.inside] == ["q", "kv"]
    assert id(found) in shown([found], found.amounts, 3)
    assert id(found) not in shown([found], found.amounts, 2)
    assert dict(found.operations()) == {"q": 1, "kv": 1}
    assert len(arranged([*steps, step("q", "jit(f)/layer_3/q/dot")])) == 2


def test_the_costliest_steps_are_opened_as_long_as_there_is_room() -> None:
    def group(name: str, flops: float) -> Step:
        inner = (step(f"{name}1", flops=flops), step(f"{name}2", flops=flops))
        return Step(Kind.SCOPE, name, "", name, Amounts(2 * flops), below=inner)

    steps = [group("a", 1), group("b", 3), group("c", 2)]
    total = Amounts(12)
    for lines, names in ((3, ""), (4, ""), (5, "b"), (7, "bc"), (9, "abc")):
        opened = shown(steps, total, lines)
        assert [each.text for each in steps if id(each) in opened] == list(names)
    assert len(shown(steps, total, 3, depth=2)) == 3
    assert not shown(steps, total, 90, depth=1)


def test_many_steps_are_one_between_the_costliest() -> None:
    steps = [step(f"s{number}", flops=flops) for number, flops in enumerate((1, 9, 1, 1, 9, 1, 1))]
    total = Amounts(23)
    assert condensed(steps, total, 7) == tuple(steps)
    found = condensed(steps, total, 5)
    assert [each.text for each in found] == ["s0", "s1", "…", "s4", "…"]
    assert [each.amounts.flops for each in found] == [1, 9, 2, 9, 2]


@given(st.lists(st.integers(0, 9), max_size=60), st.integers(1, 20))
def test_condensed_steps_are_no_more_than_asked_for(flops: list[int], lines: int) -> None:
    steps = [step(str(number), flops=amount) for number, amount in enumerate(flops)]
    found = condensed(steps, Amounts(sum(flops)), lines)
    assert len(found) <= lines
    assert list(unfolded(found)) == [each.text for each in steps]


# -- programs -------------------------------------------------------------------------------------

PROGRAM = """HloModule m, num_partitions=4
sum {{
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT z = f32[] add(x, y)
}}
body {{
  p = (s32[], f32[8,8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[8,8] get-tuple-element(p), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  d = f32[8,8] dot(x, x), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  r = f32[8,8] all-reduce(d), replica_groups={{{{0,1}},{{2,3}}}}, channel_id=1,
    use_global_device_ids=true, to_apply=sum
  ROOT t = (s32[], f32[8,8]) tuple(next, r)
}}
condition {{
  p = (s32[], f32[8,8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] {limit}
  ROOT less = pred[] compare(i, n), direction=LT
}}
yes {{
  p = f32[8,8] parameter(0)
  ROOT c = f32[8,8] custom-call(p), custom_call_target="kernel"
}}
no {{
  ROOT p = f32[8,8] parameter(0)
}}
ENTRY e {{
  a = f32[8,8] parameter(0)
  which = pred[] parameter(1)
  zero = s32[] constant(0)
  state = (s32[], f32[8,8]) tuple(zero, a)
  loop = (s32[], f32[8,8]) while(state), condition=condition, body=body
  y = f32[8,8] get-tuple-element(loop), index=1
  s = f32[8,8] custom-call(y), custom_call_target="Sharding", sharding={{replicated}}
  ROOT r = f32[8,8] conditional(which, s, s), true_computation=yes, false_computation=no
}}
"""


def skeleton(limit: str = "constant(5)") -> Skeleton:
    return find_skeleton(parse_module(PROGRAM.format(limit=limit)), None)


def test_loops_branches_and_operations_of_a_program() -> None:
    loop, conditional = skeleton().steps
    assert (loop.kind, loop.count, loop.is_counted) == (Kind.LOOP, 5, True)
    assert [each.text for each in loop.below] == [
        "dot f32 8x8 · 8x8",
        "all-reduce f32 256 B, 2 x 2 devices",
    ]
    assert loop.amounts.flops >= 5 * 2 * 8**3
    assert conditional.kind is Kind.CONDITIONAL
    assert [[each.text for each in branch.below] for branch in conditional.below] == [
        ["kernel"],
        [],
    ]
    assert dict(loop.operations()) == {"dot": 1, "all-reduce": 1}
    assert operations_of([loop, conditional]) == {"dot": 5, "all-reduce": 5, "kernel": 1}
    twice = Step(Kind.REPEAT, "", "", "r", Amounts(), 2, below=(loop, conditional))
    assert loops_of([twice, loop]) == {5: 3}


def test_a_loop_of_unknown_trips_is_said_to_be_one() -> None:
    found = skeleton('custom-call(), custom_call_target="n"')
    assert (found.steps[0].count, found.steps[0].is_counted) == (1, False)
    assert found.notes == ("loops whose trip count is not known take one trip: %loop",)


def test_batched_products_have_their_batches() -> None:
    text = """HloModule m
ENTRY e {
  a = bf16[3,8,16] parameter(0)
  b = f32[3,16,4] parameter(1)
  ROOT d = f32[3,8,4] dot(a, b), lhs_batch_dims={0}, rhs_batch_dims={0},
    lhs_contracting_dims={2}, rhs_contracting_dims={1}
}
"""
    (found,) = find_skeleton(parse_module(text), None).steps
    assert found.text == "dot bf16·f32 3 x (8x16 · 16x4)"


def test_a_fused_product_costs_what_its_fusion_does() -> None:
    text = """HloModule m
f {
  a = f32[8,8] parameter(0)
  d = f32[8,8] dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT n = f32[8,8] negate(d)
}
ENTRY e {
  a = f32[8,8] parameter(0)
  ROOT fused = f32[8,8] fusion(a), kind=kOutput, calls=f
}
"""
    found = find_skeleton(parse_module(text), None)
    (one,) = found.steps
    assert (one.name, one.amounts) == ("fused", found.total)


def test_deep_nests_are_cut() -> None:
    depth = 3000
    bodies = "".join(
        f"b{n} {{\n p{n} = f32[4] parameter(0)\n"
        f" ROOT w{n} = f32[4] while(p{n}), condition=condition, body=b{n - 1}\n}}\n"
        for n in range(1, depth)
    )
    found = find_skeleton(
        parse_module(f"""HloModule m
b0 {{
  p = f32[4] parameter(0)
  ROOT k = f32[4] custom-call(p), custom_call_target="kernel"
}}
condition {{
  p = f32[4] parameter(0)
  ROOT c = pred[] constant(false)
}}
{bodies}
ENTRY e {{
  a = f32[4] parameter(0)
  ROOT r = f32[4] while(a), condition=condition, body=b{depth - 1}
}}
"""),
        None,
    )
    step, levels = found.steps[0], 0
    while step.below:
        step, levels = step.below[0], levels + 1
    assert 0 < levels <= 64
    assert found.notes == (
        "what is inside of more than 64 loops and branches counts, but has no line of its own",
    )
