"""Operands and results of simplified conditionals, element by element."""

from __future__ import annotations

import pytest
from tests.passes.checked_run import shown
from tests.properties.consistency import assert_consistent

from hloopt.ir import Module, Opcode
from hloopt.pass_framework.applications import Applications
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module
from hloopt.verifier import verify_module

PASS = "simplify-conditional"
TAKES = """HloModule m
add {{ x = f32[] parameter(0) y = f32[] parameter(1) ROOT s = f32[] add(x, y) }}
t {{ t.taken = (f32[2], f32[3], f32[4]) parameter(0)
  t.last = f32[4] get-tuple-element(t.taken), index=2
  t.first = f32[2] get-tuple-element(t.taken), index=0
  t.again = f32[2] get-tuple-element(t.taken), index=0
  t.rest = f32[2] slice(t.last), slice={{[0:2]}}
  t.sum = f32[2] add(t.first, t.rest)
  t.twice = f32[2] add(t.sum, t.again)
  ROOT t.r = f32[2] reverse(t.twice), dimensions={{0}} }}
f {{ f.taken = f32[2] parameter(0) ROOT f.r = f32[2] reverse(f.taken), dimensions={{0}} }}
ENTRY e {{
  q = pred[] parameter(0)
  a = f32[2] parameter(1)
  b = f32[] parameter(2)
  whole = (f32[2], f32[3], f32[4]) parameter(3)
  zero = f32[] constant(0)
  wide = f32[3] broadcast(b), dimensions={{}}
  less = f32[] reduce(wide, zero), dimensions={{0}}, to_apply=add
  dead = f32[3] broadcast(less), dimensions={{}}
  four = f32[4] broadcast(b), dimensions={{}}
  made = (f32[2], f32[3], f32[4]) tuple(a, dead, four)
  {entry}
}}
"""
ONCE = "ROOT c = f32[2] conditional(q, made, a), true_computation=t, false_computation=f"
TWICE = """c = f32[2] conditional(q, made, whole), true_computation=t, false_computation=t{}
  d = f32[2] conditional(q, a, whole), true_computation=f, false_computation=t
  ROOT r = (f32[2], f32[2]) tuple(c, d)"""


def simplified(
    text: str, *, most: int | None = None, moved: tuple[str, ...] = (), changes: bool = True
) -> tuple[Module, PassContext]:
    """A valid module after the pass; the instructions `moved` stood last in the list before."""
    module = parse_module(text)
    assert verify_module(module) == []
    found = {i.name: i for i in module.instructions()}
    for name in moved:
        found[name].parent.move_to_end(found[name])
    context = PassContext(PASS, applications=Applications(most))
    assert create_pass(PASS).run(module, context) is changes
    assert verify_module(module) == []
    assert_consistent(module)
    return module, context


def applied(context: PassContext) -> list[tuple[str, str]]:
    return [(r.instruction, r.reason) for r in context.remarks if r.kind == "applied"]


def missed(context: PassContext) -> list[tuple[str, str]]:
    return [(r.instruction, r.reason) for r in context.remarks if r.kind == "missed"]


UNREAD = "1 of 3 inputs is not read in %t"


def test_inputs_that_a_branch_does_not_read_go_with_what_made_them() -> None:
    module, context = simplified(TAKES.format(entry=ONCE))
    assert applied(context) == [("c", UNREAD)]
    assert list(module.computations) == ["t", "f", "e"]
    assert shown(module.computations["t"])[:4] == [
        "t.taken = (f32[2], f32[4]) parameter(0)",
        "t.last = f32[4] get-tuple-element(t.taken), index=1",
        "t.first = f32[2] get-tuple-element(t.taken), index=0",
        "t.again = f32[2] get-tuple-element(t.taken), index=0",
    ]
    assert shown(module.entry) == [
        "q = pred[] parameter(0)",
        "a = f32[2] parameter(1)",
        "b = f32[] parameter(2)",
        "whole = (f32[2], f32[3], f32[4]) parameter(3)",
        "four = f32[4] broadcast(b), dimensions={}",
        "tuple = (f32[2], f32[4]) tuple(a, four)",
        "ROOT c = f32[2] conditional(q, tuple, a), true_computation=t, false_computation=f",
    ]


def test_all_conditionals_pass_a_branch_less() -> None:
    module, context = simplified(TAKES.format(entry=TWICE.format("")))
    assert applied(context) == [("c", UNREAD), ("c", UNREAD), ("d", UNREAD)]
    assert context.applications.last is not None
    assert context.applications.last.instruction == "c"
    arguments = [
        [o.shape.text for o in i.operands[1:]] for i in module.instructions(Opcode.CONDITIONAL)
    ]
    less = "(f32[2]{0}, f32[4]{0})"
    assert arguments == [[less, less], ["f32[2]{0}", less]]


def test_a_branch_of_a_conditional_with_a_sharding_goes_on_taking_all() -> None:
    text = TAKES.format(entry=TWICE.format(", sharding={replicated}"))
    simplified(text, changes=False)


def test_nothing_is_passed_less_at_the_limit() -> None:
    module, context = simplified(TAKES.format(entry=ONCE), most=0, changes=False)
    assert module.is_pristine
    assert applied(context) == []


@pytest.mark.parametrize(
    "use",
    [
        "t.copy = (f32[2], f32[3], f32[4]) copy(t.taken) "
        "t.first = f32[2] get-tuple-element(t.copy), index=0",
        "t.first = f32[2] get-tuple-element(t.taken), index=0 "
        "t.copy = (f32[2], f32[3], f32[4]) copy(t.taken)",
        "t.first = f32[2] get-tuple-element(t.taken), index=0 "
        "t.second = f32[3] get-tuple-element(t.taken), index=1 "
        "t.third = f32[4] get-tuple-element(t.taken), index=2",
    ],
)
def test_a_branch_that_reads_all_of_its_argument_goes_on_taking_it(use: str) -> None:
    start, _, rest = TAKES.partition("  t.last")
    _, _, rest = rest.partition("  ROOT t.r = f32[2] reverse(t.twice)")
    text = f"{start}  {use} ROOT t.r = f32[2] reverse(t.first){rest}"
    simplified(text.format(entry=ONCE), changes=False)


EFFECT = 'custom-call(x), custom_call_target="f", custom_call_has_side_effect=true'


def test_a_conditional_whose_copied_branch_has_a_side_effect_is_not_dead() -> None:
    text = f"""HloModule m
effect {{ a = (f32[2], f32[2]) parameter(0) x = f32[2] get-tuple-element(a), index=1
  ROOT o = f32[2] {EFFECT} }}
t {{ a = (f32[2], f32[2]) parameter(0) x = f32[2] get-tuple-element(a), index=0
  ROOT r = f32[2] reverse(x), dimensions={{0}} }}
ENTRY e {{
  q = pred[] parameter(0)
  p = (f32[2], f32[2]) parameter(1)
  x = f32[2] get-tuple-element(p), index=0
  called = f32[2] call(p), to_apply=effect
  unread = f32[2] conditional(q, p, p), true_computation=effect, false_computation=effect
  u = (f32[2], f32[2]) tuple(x, unread)
  c = f32[2] conditional(q, u, u), true_computation=t, false_computation=t
  ROOT r = (f32[2], f32[2]) tuple(called, c)
}}
"""
    module, context = simplified(text)
    unread = next(i for i in module.entry.instructions if i.name == "unread")
    assert {called.name for called in unread.called} == {"effect.clone"}
    assert unread.operands[1].shape.text == "(f32[2]{0})"
    assert not unread.users
    assert [reason for _, reason in applied(context)] == [
        *["1 of 2 inputs is not read in %effect"] * 2,
        *["1 of 2 inputs is not read in %t"] * 2,
    ]


def test_a_conditional_that_gives_less_and_whose_copied_branch_has_a_side_effect_is_not_dead() -> (
    None
):
    text = f"""HloModule m
effect {{ x = f32[2] parameter(0) o = f32[2] {EFFECT}
  ROOT r = (f32[2], f32[2]) tuple(x, o) }}
t {{ a = (f32[2], f32[2]) parameter(0) x = f32[2] get-tuple-element(a), index=0
  ROOT r = f32[2] reverse(x), dimensions={{0}} }}
ENTRY e {{
  q = pred[] parameter(0)
  x = f32[2] parameter(1)
  called = (f32[2], f32[2]) call(x), to_apply=effect
  p = (f32[2], f32[2]) tuple(x, x)
  unused = f32[2] conditional(q, p, p), true_computation=t, false_computation=t
  some = (f32[2], f32[2]) conditional(q, x, x), true_computation=effect, false_computation=effect
  unread = f32[2] get-tuple-element(some), index=0
  u = (f32[2], f32[2]) tuple(x, unread)
  c = f32[2] conditional(q, u, u), true_computation=t, false_computation=t
  ROOT r = ((f32[2], f32[2]), f32[2]) tuple(called, c)
}}
"""
    module, context = simplified(text)
    some = next(i for i in module.entry.instructions if i.name == "some")
    assert some.shape.text == "(f32[2]{0})"
    assert module.computations["effect"].root.shape.text == "(f32[2]{0}, f32[2]{0})"
    assert [o.opcode for o in some.called[0].root.operands] == [Opcode.PARAMETER]
    assert applied(context)[0] == ("some", "1 of 2 outputs is not read")
    assert ("some", "a branch has a side effect") in missed(context)


GIVES = """HloModule m
t {{ a = f32[2] parameter(0) t.x = f32[2] reverse(a), dimensions={{0}}
  t.y = f32[2] sine(a) {t} }}
f {{ b = f32[2] parameter(0) f.x = f32[2] reverse(b), dimensions={{0}}
  f.y = f32[2] sine(b) {f} }}
ENTRY e {{
  q = pred[] parameter(0)
  p = f32[2] parameter(1)
  c = {shape} conditional(q, p, p), true_computation=t, false_computation=f
  {entry}
}}
"""
FOUR = "(f32[2], f32[2], f32[2], f32[2])"
READ_ALL = "".join(f"g{i} = f32[2] get-tuple-element(c), index={i}\n  " for i in range(4))
READ_ALL += f"ROOT r = {FOUR} tuple(g0, g1, g2, g3)"


def gives(
    t: str, f: str, entry: str = READ_ALL, shape: str = FOUR, *,
    most: int | None = None, changes: bool = True,
) -> tuple[Module, PassContext]:  # fmt: skip
    text = GIVES.format(
        t=f"ROOT t.r = {shape} tuple({t})", f=f"ROOT f.r = {shape} tuple({f})", entry=entry,
        shape=shape,
    )  # fmt: skip
    return simplified(text, most=most, changes=changes)


def indices(module: Module) -> list[int]:
    return [i.tuple_index for i in module.entry.instructions if i.name.startswith("g")]


def test_only_outputs_that_are_the_same_in_every_branch_are_merged() -> None:
    module, context = gives("t.x, t.y, t.x, t.x", "f.x, f.x, f.y, f.x")
    assert indices(module) == [0, 1, 2, 0]
    assert applied(context) == [
        ("g3", "reads output 0, which is the same"),
        ("c", "1 of 4 outputs is not read"),
    ]
    assert [shown(c)[-1] for c in module.computations.values()][:2] == [
        "ROOT tuple = (f32[2], f32[2], f32[2]) tuple(t.x, t.y, t.x)",
        "ROOT tuple.1 = (f32[2], f32[2], f32[2]) tuple(f.x, f.x, f.y)",
    ]


def test_several_outputs_become_the_first_of_their_kind() -> None:
    module, context = gives("t.x, t.y, t.x, t.y", "f.y, f.x, f.y, f.x")
    assert indices(module) == [0, 1, 0, 1]
    assert [name for name, _ in applied(context)] == ["g2", "g3", "c"]
    assert applied(context)[-1][1] == "2 of 4 outputs are not read"


def test_outputs_of_another_layout_are_not_the_same() -> None:
    shape = "(f32[2,2]{1,0}, f32[2,2]{0,1})"
    text = f"""HloModule m
t {{ a = f32[2,2] parameter(0) x = f32[2,2] reverse(a), dimensions={{0}}
  ROOT r = {shape} tuple(x, x) }}
ENTRY e {{
  q = pred[] parameter(0)
  p = f32[2,2] parameter(1)
  c = {shape} conditional(q, p, p), true_computation=t, false_computation=t
  g0 = f32[2,2]{{1,0}} get-tuple-element(c), index=0
  g1 = f32[2,2]{{0,1}} get-tuple-element(c), index=1
  ROOT r2 = {shape} tuple(g0, g1)
}}
"""
    module = parse_module(text)
    create_pass(PASS).run(module, PassContext())
    assert indices(module) == [0, 1]


@pytest.mark.parametrize("most", [0, 1])
def test_outputs_are_merged_up_to_the_limit(most: int) -> None:
    module, context = gives("t.x, t.x, t.x, t.x", "f.x, f.x, f.x, f.x", most=most, changes=most > 0)
    assert indices(module) == [0, 0 if most else 1, 2, 3]
    assert len(applied(context)) == most


def test_outputs_of_a_branch_that_hands_on_a_tuple_are_not_compared() -> None:
    text = GIVES.format(
        t=f"ROOT t.r = {FOUR} tuple(t.x, t.x, t.x, t.x)", entry=READ_ALL, shape=FOUR,
        f=f"f.z = {FOUR} tuple(f.x, f.x, f.x, f.x) "
        f'ROOT f.r = {FOUR} custom-call(f.z), custom_call_target="f"',
    )  # fmt: skip
    simplified(text, changes=False)


def test_outputs_that_are_read_as_a_whole_stay() -> None:
    whole = f"g0 = f32[2] get-tuple-element(c), index=0 ROOT r = {FOUR} copy(c)"
    gives("t.x, t.x, t.y, t.y", "f.x, f.x, f.y, f.y", whole, changes=False)


def test_a_conditional_that_nothing_needs_is_left_to_dce() -> None:
    gives("t.x, t.x, t.y, t.y", "f.x, f.x, f.y, f.y", "ROOT r = f32[2] sine(p)", changes=False)


def test_an_array_that_nothing_reads_is_one_output() -> None:
    text = GIVES.format(
        t=f"x = f32[2] sine(a) ROOT o = f32[2] {EFFECT}", f="ROOT f.r = f32[2] sine(f.y)",
        shape="f32[2]", entry="ROOT r = f32[2] sine(p)",
    )  # fmt: skip
    module, context = simplified(text)
    assert applied(context) == [("c", "1 of 1 output is not read")]
    (choice,) = module.instructions(Opcode.CONDITIONAL)
    assert choice.shape.text == "()"
    assert Opcode.SINE not in {i.opcode for i in module.computations["f"].instructions}
