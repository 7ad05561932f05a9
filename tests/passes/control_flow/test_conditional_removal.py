"""Conditionals that go, in which order, and what takes their place."""

from __future__ import annotations

import pytest
from tests.passes.checked_run import shown
from tests.passes.control_flow.test_conditional_elements import applied, missed, simplified

from hloopt.equivalence import Reference, RunSettings
from hloopt.ir import Opcode
from hloopt.text import parse_module

BRANCHES = """HloModule m
sine { a = f32[4] parameter(0) ROOT s = f32[4] sine(a) }
negated { a = f32[4] parameter(0) ROOT n = f32[4] negate(a) }
reversed { a = f32[4] parameter(0) ROOT b = f32[4] reverse(a), dimensions={0} }
"""
CALLS = "true_computation={}, false_computation={}"
BOTH = CALLS.format("sine", "negated")
STAYS = CALLS.format("sine", "reversed")
EXPENSIVE = "%b in %reversed may be too expensive to run always"


def entry(*lines: str) -> str:
    return "\n  ".join((f"{BRANCHES}ENTRY e {{", "q = pred[] parameter(0)",
                        "p = f32[4] parameter(1)", *lines)) + "\n}\n"  # fmt: skip


def computed(text: str) -> list[str]:
    """The entry after the pass, which computes what it did before."""
    module, _ = simplified(text)
    assert Reference(parse_module(text), RunSettings()).compare(module) is None
    return shown(module.entry)


def test_a_predicate_selects_the_first_branch_where_it_holds() -> None:
    assert computed(entry(f"ROOT c = f32[4] conditional(q, p, p), {BOTH}"))[2:] == [
        "broadcast = pred[4] broadcast(q), dimensions={}",
        "s.1 = f32[4] sine(p)",
        "n.1 = f32[4] negate(p)",
        "ROOT select = f32[4] select(broadcast, s.1, n.1)",
    ]


def test_each_branch_takes_its_own_argument() -> None:
    lines = computed(entry("r = f32[4] abs(p)", f"ROOT c = f32[4] conditional(q, p, r), {BOTH}"))
    assert "s.1 = f32[4] sine(p)" in lines
    assert "n.1 = f32[4] negate(r)" in lines


def test_conditionals_between_others_that_stay_go() -> None:
    text = entry(
        f"one = f32[4] conditional(q, p, p), {BOTH}, sharding={{replicated}}",
        f"two = f32[4] conditional(q, p, p), {STAYS}",
        f"three = f32[4] conditional(q, p, p), {BOTH}",
        f"four = f32[4] conditional(q, p, p), {BOTH}, sharding={{replicated}}",
        f"five = f32[4] conditional(q, p, p), {BOTH}",
        "ROOT r = (f32[4], f32[4], f32[4], f32[4], f32[4]) tuple(one, two, three, four, five)",
    )
    module, context = simplified(text)
    assert [i.name for i in module.instructions(Opcode.CONDITIONAL)] == ["one", "two", "four"]
    what = "replaced by what its branches compute"
    assert applied(context) == [("three", what), ("five", what)]
    sharded = "it has a sharding, so it is still to be partitioned"
    assert missed(context) == [("one", sharded), ("two", EXPENSIVE), ("four", sharded)]
    assert context.statistics["conditionals removed"] == 2


def test_outputs_of_conditionals_between_others_that_stay_go() -> None:
    gives = "(f32[4], f32[4])"
    lines = [f"c{i} = {gives} conditional(q, p, p), {CALLS.format('gives', 'gives')}{{}}"
             for i in range(3)]  # fmt: skip
    reads = [f"g{i} = f32[4] get-tuple-element(c{i}), index=1" for i in range(3)]
    text = entry(
        lines[0].format(", sharding={{replicated}, {replicated}}"), lines[1].format(""),
        lines[2].format(""), *reads, "ROOT r = (f32[4], f32[4], f32[4]) tuple(g0, g1, g2)",
    )  # fmt: skip
    branch = f"""gives {{ a = f32[4] parameter(0) s = f32[4] sine(a)
  b = f32[4] reverse(a), dimensions={{0}} ROOT r = {gives} tuple(s, b) }}
ENTRY"""
    module, context = simplified(text.replace("ENTRY", branch))
    less = "1 of 2 outputs is not read"
    assert applied(context) == [("c1", less), ("c2", less)]
    assert [i.shape.text for i in module.instructions(Opcode.CONDITIONAL)] == [
        "(f32[4]{0}, f32[4]{0})",
        *["(f32[4]{0})"] * 2,
    ]


@pytest.mark.parametrize(("most", "left"), [(0, ["one", "two"]), (1, ["two"])])
def test_at_the_limit_the_rest_stays_without_a_remark(most: int, left: list[str]) -> None:
    text = entry(
        f"one = f32[4] conditional(q, p, p), {BOTH}",
        f"two = f32[4] conditional(q, p, p), {BOTH}",
        f"three = f32[4] conditional(q, p, p), {STAYS}",
        "ROOT r = (f32[4], f32[4], f32[4]) tuple(one, two, three)",
    )
    module, context = simplified(text, most=most, changes=most > 0)
    assert [i.name for i in module.instructions(Opcode.CONDITIONAL)] == [*left, "three"]
    assert missed(context) == []
    assert context.statistics.get("conditionals removed", 0) == most


@pytest.mark.parametrize(
    ("moved", "replaced"),
    [
        ((), ["inner", "outer", "last"]),
        # As a pass may have left it: the list of instructions has no order.
        (("inner", "last"), ["outer", "last"]),
    ],
)
def test_a_conditional_that_died_with_the_branch_that_read_it_is_passed_over(
    moved: tuple[str, ...], replaced: list[str]
) -> None:
    text = entry(
        f"inner = f32[4] conditional(q, p, p), {BOTH}",
        "other = f32[4] cosine(p)",
        "no = pred[] constant(false)",
        f"outer = f32[4] conditional(no, inner, other), {BOTH}",
        f"last = f32[4] conditional(q, p, p), {BOTH}",
        "ROOT r = (f32[4], f32[4]) tuple(outer, last)",
    )
    module, context = simplified(text, moved=moved)
    assert Opcode.CONDITIONAL not in {i.opcode for i in module.entry.instructions}
    assert [name for name, _ in applied(context)] == replaced
    assert missed(context) == []


def test_an_index_takes_the_branch_of_its_number() -> None:
    for index, opcode in ((0, "sine"), (1, "negate"), (2, "reverse"), (3, "reverse")):
        lines = computed(
            entry(
                f"i = s32[] constant({index})",
                "ROOT c = f32[4] conditional(i, p, p, p), "
                "branch_computations={sine, negated, reversed}",
            )
        )
        assert [line.partition("] ")[2].partition("(")[0] for line in lines[2:]] == [opcode]


@pytest.mark.parametrize(("value", "opcode"), [("true", Opcode.SINE), ("false", Opcode.NEGATE)])
def test_a_constant_predicate_takes_its_branch(value: str, opcode: Opcode) -> None:
    text = entry(f"yes = pred[] constant({value})",
                 f"ROOT c = f32[4] conditional(yes, p, p), {BOTH}")  # fmt: skip
    module, _ = simplified(text)
    assert module.entry.root.opcode is opcode
    assert list(module.computations) == ["reversed", "e"]


def test_a_branch_that_is_free_may_give_tokens_but_no_array() -> None:
    text = """HloModule m
hands.on { ROOT h = token[] parameter(0) }
both { ROOT t = (f32[4], token[]) parameter(0) }
ENTRY e {
  q = pred[] parameter(0)
  k = token[] after-all()
  n = token[] after-all()
  t = (f32[4], token[]) parameter(1)
  one = token[] conditional(q, k, n), true_computation=hands.on, false_computation=hands.on
  two = (f32[4], token[]) conditional(q, t, t), true_computation=both, false_computation=both
  ROOT r = (token[], (f32[4], token[])) tuple(one, two)
}
"""
    module, context = simplified(text)
    assert [i.name for i in module.instructions(Opcode.CONDITIONAL)] == ["two"]
    assert missed(context) == [("two", "%both computes nothing, which is cheaper than a select")]
    assert [o.name for o in module.entry.root.operands[0].operands] == ["k", "n"]


def test_conditionals_in_branches_go_before_those_around_them() -> None:
    text = entry(f"ROOT c = f32[4] conditional(q, p, p), {CALLS.format('outer', 'negated')}")
    outer = f"""outer {{ a = f32[4] parameter(0) yes = pred[] constant(true)
  ROOT i = f32[4] conditional(yes, a, a), {STAYS} }}
ENTRY"""
    module, context = simplified(text.replace("ENTRY", outer))
    assert [name for name, _ in applied(context)] == ["i", "c"]
    assert list(module.computations) == ["e"]


def test_what_the_entry_does_not_run_is_left_alone() -> None:
    apart = f"""apart {{ q = pred[] parameter(0) a = f32[4] parameter(1)
  ROOT i = f32[4] conditional(q, a, a), {BOTH} }}
ENTRY"""
    text = entry(f"ROOT c = f32[4] conditional(q, p, p), {BOTH}").replace("ENTRY", apart)
    module, context = simplified(text)
    assert [name for name, _ in applied(context)] == ["c"]
    assert list(module.computations) == ["sine", "negated", "reversed", "apart", "e"]
    assert module.computations["apart"].root.opcode is Opcode.CONDITIONAL


def test_conditionals_that_went_take_no_part_in_what_branches_read() -> None:
    text = """HloModule m
t { a = (f32[4], f32[4]) parameter(0) x = f32[4] get-tuple-element(a), index=0
  ROOT r = f32[4] reverse(x), dimensions={0} }
gone { a = (f32[4], f32[4]) parameter(0) q2 = pred[] constant(true)
  ROOT d = f32[4] conditional(q2, a, a), true_computation=t, false_computation=t,
    sharding={replicated} }
ENTRY e {
  q = pred[] parameter(0)
  no = pred[] constant(false)
  p = (f32[4], f32[4]) parameter(1)
  b = f32[4] conditional(no, p, p), true_computation=gone, false_computation=t
  c = f32[4] conditional(q, p, p), true_computation=t, false_computation=t
  ROOT r2 = (f32[4], f32[4]) tuple(b, c)
}
"""
    module, context = simplified(text)
    assert list(module.computations) == ["t", "e"]
    assert applied(context)[1:] == [("c", "1 of 2 inputs is not read in %t")] * 2


FRAMES = """
FileNames
1 "a.py"

FunctionNames
1 "g"
2 "f"

FileLocations
1 {file_name_id=1 function_name_id=1 line=3 end_line=3 column=1 end_column=9}
2 {file_name_id=1 function_name_id=2 line=8 end_line=8 column=1 end_column=9}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=1}
"""


def test_instructions_of_branches_get_the_stack_frames_of_the_conditional() -> None:
    text = entry(
        f"ROOT c = f32[4] conditional(q, p, p), {BOTH}, "
        'metadata={op_name="jit(g)/" stack_frame_id=1}'
    ).replace("sine(a)", 'sine(a), metadata={op_name="f/sin" stack_frame_id=2}')
    module, _ = simplified(text.replace("HloModule m\n", f"HloModule m\n{FRAMES}\n"))
    metadata = {i.opcode: i.attributes.get("metadata") for i in module.entry.instructions}
    assert metadata[Opcode.SINE] == '{op_name="jit(g)/f/sin" stack_frame_id=3}'
    assert module.stack_frames is not None
    assert "3 {" in module.stack_frames
