"""The plot of a program: folding, scopes, and what of it is shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hloopt.reports.scopes import Scope, scope_of
from hloopt.reports.skeleton.folding import Repeat, best_repeats
from hloopt.reports.skeleton.outline import arranged, condensed, shown
from hloopt.reports.skeleton.plot import Amounts, Kind, Step, folded


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
    assert best_repeats(text)[:1] == ([] if repeat is None else [repeat])


def test_repeats_that_save_as_much_are_found_at_once() -> None:
    assert best_repeats("aabbxcc") == [Repeat(0, 1, 2), Repeat(2, 1, 2), Repeat(5, 1, 2)]
    assert best_repeats("aabbbcc") == [Repeat(2, 1, 3)]
    assert best_repeats("ababxyxyz") == [Repeat(0, 2, 2), Repeat(4, 2, 2)]
    assert best_repeats("abababa" + "xx") == [Repeat(0, 2, 3)]


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
    assert best_repeats([(each.kind, each.text, each.below) for each in found]) == []


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
