"""Values that devices have in common within loops, branches and calls."""

from __future__ import annotations

from typing import Any

import pytest
from tests.analysis.replication.replicated import REPLICATED, entry, find, replicated

from hloopt.analysis.replication import ReplicationAnalysis
from hloopt.analysis.replication.rules import Rules, Values
from hloopt.analysis.replication.values import Value
from hloopt.ir import Instruction, Module
from hloopt.text import parse_module

COUNTER = """cond {{ cp = {state} parameter(0)
  ci = s32[] get-tuple-element(cp), index=0
  cn = s32[] constant(5)
  ROOT less = pred[] compare(ci, cn), direction=LT }}
body {{ bp = {state} parameter(0)
  i = s32[] get-tuple-element(bp), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
{lines}
  ROOT next = {state} tuple(j, {values}) }}
"""


def test_a_value_that_moves_one_place_in_each_iteration_reaches_the_last() -> None:
    size = 30
    state = f"(s32[], {', '.join(['f32[]'] * size)})"
    places = [f"  x{n} = f32[] get-tuple-element(bp), index={n + 1}" for n in range(size)]
    places.append("  id = u32[] replica-id() x = f32[] convert(id)")
    values = ", ".join(["x", *[f"x{n}" for n in range(size - 1)]])
    before = COUNTER.format(state=state, lines="\n".join(places), values=values)
    module = entry(
        "zero = s32[] constant(0) c = f32[] constant(1)",
        f"t = {state} tuple(zero, {', '.join(['c'] * size)})",
        f"ROOT w = {state} while(t), condition=cond, body=body",
        before=before,
        replicas=2,
    )
    analysis = ReplicationAnalysis(module)
    loop = find(module, "w")
    assert analysis.is_replicated(loop, (0,))
    assert not any(analysis.is_replicated(loop, (n + 1,)) for n in range(size))
    assert not analysis.is_replicated(find(module, f"x{size - 1}"))


@pytest.mark.parametrize("is_known", [False, True])
def test_nothing_is_known_of_a_body_that_may_run_less_often_elsewhere(is_known: bool) -> None:
    state = "(s32[], f32[])"
    before = COUNTER.format(state=state, lines="  x = f32[] constant(2)", values="x")
    module = entry(
        "id = u32[] replica-id() start = s32[] convert(id)",
        f"c = f32[] constant(1) t = {state} tuple(start, c)",
        f"ROOT w = {state} while(t), condition=cond, body=body",
        before=before,
        replicas=2,
    )
    known = [find(module, "w")] if is_known else []
    options: dict[str, Any] = {"loops_known_with_same_iterations": known}
    assert replicated(module, "x", **options) is is_known
    assert replicated(module, "w", (1,), **options) is is_known
    assert not replicated(module, "w", (0,), **options)


def test_a_condition_that_turns_out_to_differ_undoes_what_was_known_of_the_body() -> None:
    state = "(s32[], s32[], f32[])"
    lines = """  k = s32[] get-tuple-element(bp), index=1
  id = u32[] replica-id() d = s32[] convert(id) kd = s32[] add(k, d)
  x = f32[] get-tuple-element(bp), index=2"""
    before = COUNTER.format(state=state, lines=lines, values="kd, x")
    before = before.replace("tuple(j,", "tuple(k,")  # the counter differs in the third round
    module = entry(
        f"zero = s32[] constant(0) c = f32[] constant(1) t = {state} tuple(zero, zero, c)",
        f"w = {state} while(t), condition=cond, body=body",
        "ROOT y = f32[] get-tuple-element(w), index=2",
        before=before,
        replicas=2,
    )
    assert not replicated(module, "less")
    assert not replicated(module, "one")
    assert not replicated(module, "y")


def test_a_body_of_two_loops_has_what_holds_in_both() -> None:
    state = "(s32[], f32[])"
    lines = "  x = f32[] get-tuple-element(bp), index=1"
    before = COUNTER.format(state=state, lines=lines, values="x")
    module = entry(
        "zero = s32[] constant(0) c = f32[] constant(1) p = f32[] parameter(0)",
        f"t = {state} tuple(zero, c) u = {state} tuple(zero, p)",
        f"first = {state} while(t), condition=cond, body=body",
        f"second = {state} while(u), condition=cond, body=body",
        "ROOT r = (s32[], f32[]) copy(second)",
        before=before,
        replicas=2,
    )
    assert not replicated(module, "x")
    assert not replicated(module, "second", (1,))
    assert replicated(module, "second", (0,))


@pytest.mark.parametrize(("selector", "wanted"), [("q", True), ("p", False)])
def test_branches_count_where_all_devices_take_the_same(selector: str, wanted: bool) -> None:
    branch = "{name} {{ a{name} = f32[] parameter(0) ROOT {name}r = f32[] negate(a{name}) }}\n"
    module = entry(
        "p = pred[] parameter(0)",
        f"q = pred[] parameter(1), {REPLICATED}",
        "c = f32[] constant(1)",
        f"ROOT r = f32[] conditional({selector}, c, c), true_computation=t, false_computation=f",
        before="".join(branch.format(name=name) for name in "tf"),
        replicas=2,
    )
    assert replicated(module, "r") is wanted
    assert replicated(module, "tr") is wanted


# -- cost ----------------------------------------------------------------------------------------
def nested_loops(depth: int) -> Module:
    """Loops in loops, each of which moves values on by one place."""
    state = "(f32[], f32[], f32[], f32[])"
    texts = ["HloModule m, replica_count=2\n"]
    for level in range(depth):
        inner = f"while(p{level}), condition=c{level - 1}_, body=b{level - 1}_"
        texts.append(f"""c{level}_ {{ q{level} = {state} parameter(0)
  ROOT go{level} = pred[] constant(true) }}
b{level}_ {{ p{level} = {state} parameter(0)
  w{level} = {state} {inner if level else f"copy(p{level})"}
  x{level} = f32[] get-tuple-element(w{level}), index=0
  y{level} = f32[] get-tuple-element(w{level}), index=1
  z{level} = f32[] get-tuple-element(w{level}), index=2
  id{level} = u32[] replica-id() n{level} = f32[] convert(id{level})
  ROOT t{level} = {state} tuple(n{level}, x{level}, y{level}, z{level}) }}
""")
    last = depth - 1
    texts.append(f"""ENTRY e {{ k = f32[] constant(0) s = {state} tuple(k, k, k, k)
  ROOT loops = {state} while(s), condition=c{last}_, body=b{last}_ }}
""")
    return parse_module("".join(texts))


def evaluations(module: Module, monkeypatch: pytest.MonkeyPatch) -> int:
    """The number of times the rule of an instruction is applied."""
    count = 0

    def counting(self: Rules, instruction: Instruction, values: Values) -> Value:
        nonlocal count
        count += 1
        return value(self, instruction, values)

    value = Rules.value
    with monkeypatch.context() as patch:
        patch.setattr(Rules, "value", counting)
        ReplicationAnalysis(module)
    return count


def test_loops_nested_in_loops_take_linear_time(monkeypatch: pytest.MonkeyPatch) -> None:
    small, large = nested_loops(30), nested_loops(300)
    assert evaluations(large, monkeypatch) <= 10 * evaluations(small, monkeypatch)
    assert evaluations(large, monkeypatch) < 5 * large.instruction_count()
    assert not replicated(large, "loops", (3,))


def test_calls_may_be_nested_deeply() -> None:
    depth = 5000
    callees = "level0 { p0 = f32[] parameter(0) ROOT r0 = f32[] negate(p0) }\n" + "".join(
        f"level{n} {{ p{n} = f32[] parameter(0)"
        f" ROOT r{n} = f32[] call(p{n}), to_apply=level{n - 1} }}\n"
        for n in range(1, depth)
    )
    parameter = f"p = f32[] parameter(0), {REPLICATED}"
    call = f"ROOT r = f32[] call(p), to_apply=level{depth - 1}"
    assert replicated(entry(parameter, call, before=callees, replicas=2), "r")


def test_tuples_may_be_nested_deeply() -> None:
    shape = "(" * 3000 + "f32[]" + ")" * 3000
    module = entry(f"ROOT p = {shape} parameter(0), {REPLICATED}", replicas=2)
    assert replicated(module, "p", (0,) * 3000)
