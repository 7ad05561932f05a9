"""Branches of conditionals: who runs them, what is in them, copies of them."""

from __future__ import annotations

import pytest
from tests.properties.consistency import assert_consistent

from hloopt.ir import Instruction, Module
from hloopt.passes.control_flow.branch_contents import BranchContents, only_forwards
from hloopt.passes.control_flow.branches import (
    apart_from_others,
    branches_of,
    call_both_branches,
    call_branch,
    callers_of_branch,
    own_branches,
    runs_asynchronously,
)
from hloopt.passes.rewriting.slice_places import has_notes
from hloopt.text import parse_module

CALLERS = """HloModule m
alone { a = f32[] parameter(0) ROOT r = f32[] sine(a) }
shared { a = f32[] parameter(0) ROOT r = f32[] cosine(a) }
called { a = f32[] parameter(0) ROOT r = f32[] negate(a) }
started { i = s32[] parameter(0) a = f32[] parameter(1)
  ROOT later = f32[] conditional(i, a, a), branch_computations={shared, called} }
ENTRY e {
  i = s32[] parameter(0)
  p = f32[] parameter(1)
  q = f32[] parameter(2)
  one = f32[] conditional(i, p, q, p), branch_computations={shared, alone, shared}
  two = f32[] conditional(i, q, p), branch_computations={alone, shared}
  start = ((s32[], f32[]), f32[], u32[]) async-start(i, p), calls=started
  done = f32[] async-done(start)
  call = f32[] call(p), to_apply=shared
  other = f32[] call(p), to_apply=called
  ROOT r = (f32[], f32[], f32[], f32[], f32[]) tuple(one, two, done, call, other)
}
"""


def found_in(module: Module) -> dict[str, Instruction]:
    return {i.name: i for i in module.instructions()}


def test_branches_are_what_conditionals_run_that_run_at_once() -> None:
    module = parse_module(CALLERS)
    found = found_in(module)
    assert [branch.name for branch in branches_of(module)] == ["alone", "shared"]
    assert [n for n in ("one", "two", "later") if runs_asynchronously(found[n])] == ["later"]


def test_each_place_of_a_branch_is_a_caller() -> None:
    module = parse_module(CALLERS)
    places = {
        name: [(caller.name, number) for caller, number in callers_of_branch(branch)]
        for name, branch in module.computations.items()
    }
    assert places["shared"] == [("one", 0), ("one", 2), ("two", 1)]
    assert places["alone"] == [("one", 1), ("two", 0)]
    assert places["called"] == places["started"] == places["e"] == []


def test_all_conditionals_share_the_copy_of_a_branch_that_something_else_calls() -> None:
    module = parse_module(CALLERS)
    found = found_in(module)
    shared, alone = module.computations["shared"], module.computations["alone"]
    assert apart_from_others(alone) is alone
    copy = apart_from_others(shared)
    assert_consistent(module)
    assert found["one"].called == (copy, alone, copy)
    assert found["two"].called == (alone, copy)
    assert found["call"].called == (shared,)
    assert found["later"].called == (shared, module.computations["called"])
    assert copy.root.opcode is shared.root.opcode


def test_a_conditional_with_branches_of_its_own_leaves_the_others_theirs() -> None:
    module = parse_module(CALLERS)
    found = found_in(module)
    shared, alone = module.computations["shared"], module.computations["alone"]
    copies = own_branches(found["one"])
    assert_consistent(module)
    assert list(copies) == [shared, alone]
    assert found["one"].called == (copies[shared], copies[alone], copies[shared])
    assert found["two"].called == (alone, shared)
    version = module.version
    assert own_branches(found["one"]) == {}
    assert module.version == version


def test_a_call_of_a_branch_takes_its_argument_and_the_annotations_of_the_conditional() -> None:
    notes = ', sharding={replicated}, metadata={op_name="choice"}, frontend_attributes={a="b"}'
    module = parse_module(
        CALLERS.replace("branch_computations={shared, alone, shared}",
                        f"branch_computations={{shared, alone, shared}}{notes}")
    )  # fmt: skip
    found = found_in(module)
    calls = [call_branch(found["one"], number) for number in range(3)]
    assert_consistent(module)
    assert [(c.called[0].name, [o.name for o in c.operands]) for c in calls] == [
        *(("shared", ["p"]), ("alone", ["q"]), ("shared", ["p"]))
    ]
    assert dict(calls[0].attributes) == {
        **{"metadata": '{op_name="choice"}', "frontend_attributes": '{a="b"}'},
        "sharding": "{replicated}",
    }
    assert found["one"].users
    assert not calls[0].users


CONTENTS = """HloModule m
add { x = f32[] parameter(0) y = f32[] parameter(1) ROOT r = f32[] add(x, y) }
sums { p = f32[4] parameter(0) ROOT sum = f32[4] all-reduce(p), replica_groups={}, to_apply=add }
body { p = f32[4] parameter(0) ROOT in.body = f32[4] call(p), to_apply=sums }
goes.on { p = f32[4] parameter(0) ROOT yes = pred[] constant(true) }
reversed { p = f32[4] parameter(0) ROOT back = f32[4] reverse(p), dimensions={0} }
cheap.fused { p = f32[4] parameter(0) ROOT n = f32[4] negate(p) }
outer.fused { p = f32[4] parameter(0)
  ROOT f = f32[4] fusion(p), kind=kLoop, calls=reversed }
maps.too { x = f32[] parameter(0) ROOT n = f32[] negate(x) }
maps { x = f32[] parameter(0) ROOT called = f32[] call(x), to_apply=maps.too }
collective { p = f32[4] parameter(0) a = f32[4] negate(p) b = f32[4] call(a), to_apply=sums
  ROOT c = f32[4] call(b), to_apply=sums }
looping.too { p = f32[4] parameter(0) ROOT v = f32[4] while(p), condition=goes.on, body=body }
looping { p = f32[4] parameter(0) first = f32[4] call(p), to_apply=looping.too
  ROOT w = f32[4] while(first), condition=goes.on, body=body }
fusing { p = f32[4] parameter(0) a = f32[4] fusion(p), kind=kLoop, calls=cheap.fused
  late = f32[4] fusion(a), kind=kLoop, calls=outer.fused ROOT r = f32[4] negate(late) }
mapping { p = f32[4] parameter(0) ROOT r = f32[4] map(p), dimensions={0}, to_apply=maps }
forwarding { p = (f32[4], f32[4]) parameter(0) a = f32[4] get-tuple-element(p), index=0
  ROOT t = (f32[4]) tuple(a) }
constant { p = f32[4] parameter(0) ROOT k = f32[] constant(1) }
ENTRY e { ROOT p = f32[] parameter(0) }
"""


@pytest.mark.parametrize(
    ("branch", "collective", "loop", "expensive"),
    [
        ("add", None, None, None),
        ("sums", "sum", None, "sum"),
        ("collective", "b", None, "b"),
        ("body", "in.body", None, "in.body"),
        ("looping", "first", "first", "first"),
        ("looping.too", "v", "v", "v"),
        ("fusing", None, None, "late"),
        ("outer.fused", None, None, "f"),
        ("mapping", None, None, None),
        ("maps", None, None, "called"),
        ("forwarding", None, None, None),
        ("constant", None, None, None),
    ],
)
def test_the_first_instruction_that_has_or_runs_something_is_blamed(
    branch: str, collective: str | None, loop: str | None, expensive: str | None
) -> None:
    module = parse_module(CONTENTS)
    contents, computation = BranchContents(), module.computations[branch]
    for _ in range(2):
        found = [ask(computation) for ask in (contents.collective, contents.loop,
                                              contents.expensive)]  # fmt: skip
        assert [i and i.name for i in found] == [collective, loop, expensive]


def test_answers_for_callees_serve_their_callers() -> None:
    module = parse_module(CONTENTS)
    contents = BranchContents()
    for name in reversed(module.computations):
        contents.collective(module.computations[name])
    again = BranchContents()
    for name, computation in module.computations.items():
        assert contents.collective(computation) is again.collective(computation), name


def test_branches_of_tuples_and_their_elements_compute_nothing() -> None:
    module = parse_module(CONTENTS)
    forwards = {name for name, c in module.computations.items() if only_forwards(c)}
    assert forwards == {"forwarding", "e"}


NOTED = """HloModule m
noted { a = f32[8] parameter(0) i = s32[] constant(1)
  ROOT s = f32[1] dynamic-slice(a, i), dynamic_slice_sizes={1},
    backend_config={"dynamic_slice_config":{"byte_offset":4}} }
plain { a = f32[8] parameter(0) ROOT s = f32[1] slice(a), slice={[1:2]} }
ENTRY e { q = pred[] parameter(0) a = f32[8] parameter(1)
  ROOT c = f32[1] conditional(q, a, a), true_computation=noted, false_computation=plain }"""


def test_branches_that_both_run_lose_notes_on_slices() -> None:
    """What the conditional runs keeps them: others may run it, too."""
    module = parse_module(NOTED)
    noted, plain = module.entry.root.called
    first, second = call_both_branches(module.entry.root)
    assert has_notes(noted.instructions)
    assert not has_notes(first.called[0].instructions)
    assert second.called == (plain,)
