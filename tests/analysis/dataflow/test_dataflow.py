"""The values of a module, their numbers, and who holds them."""

from __future__ import annotations

import pytest

from hloopt.analysis.dataflow import Dataflow, slots_of
from hloopt.diagnostics import HloVerifyError
from hloopt.ir.shapes.shape_parser import parse_shape
from hloopt.text import parse_module

COND = """
cond { p = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(3)
  ROOT less = pred[] compare(i, n), direction=LT }
"""
CHANGING = (
    COND
    + """
body { q = (s32[], f32[4]) parameter(0)
  j = s32[] get-tuple-element(q), index=0
  x = f32[4] get-tuple-element(q), index=1
  next = s32[] negate(j)
  ROOT r = (s32[], f32[4]) tuple(next, x) }
"""
)
ENTRY_OF_LOOP = (
    "a = s32[] parameter(0)",
    "b = f32[4] parameter(1)",
    "t = (s32[], f32[4]) tuple(a, b)",
    "w = (s32[], f32[4]) while(t), condition=cond, body=body",
)


def flow_of(*lines: str, before: str = "") -> Dataflow:
    *body, root = lines
    text = "\n  ".join([*body, f"ROOT {root}"])
    return Dataflow.of(parse_module(f"HloModule m\n{before}\nENTRY e {{\n  {text}\n}}\n"))


def defined(flow: Dataflow) -> dict[int, str]:
    """By XLA's number where each value is defined, and whether it is a phi."""
    return {
        flow.numbers[value]: f"{flow.definer[value].name}"
        + "".join(f".{i}" for i in flow.index(value))
        + ("?" if value in flow.phis else "")
        for value in flow.values()
    }


def held(flow: Dataflow, name: str) -> list[str]:
    """What an instruction holds, slot by slot."""
    instruction = next(i for i in flow.held if i.name == name)
    return [flow.definer[v].name if v >= 0 else "-" for v in flow.held[instruction]]


def test_slots_number_the_parts_of_a_tuple_in_pre_order() -> None:
    slots = slots_of(parse_shape("(f32[2], (s8[3], f64[]), s32[4])"))
    assert [part.text for part in slots.parts[2:5]] == ["(s8[3]{0}, f64[])", "s8[3]{0}", "f64[]"]
    assert slots.element(1) == slice(2, 5)
    assert [slots.at(index) for index in ((), (0,), (1, 1), (2,), (3,), (1, 2))] == [
        *(0, 1, 4, 5, None, None)
    ]


def test_arrays_are_values_and_what_passes_them_on_defines_none() -> None:
    flow = flow_of(
        "a = f32[4] parameter(0)",
        "b = f32[2,2] bitcast(a)",
        "n = f32[2,2] negate(b)",
        "t = (f32[2,2], f32[4]) tuple(n, a)",
        "o = (f32[2,2], f32[4]) opt-barrier(t)",
        "g = f32[4] get-tuple-element(o), index=1",
    )
    assert defined(flow) == {0: "a", 1: "n", 2: "t"}
    assert held(flow, "o") == ["t", "n", "a"]
    assert held(flow, "g") == ["a"]


def test_a_copy_of_a_tuple_is_shallow() -> None:
    flow = flow_of("p = (f32[4], f32[2]) parameter(0)", "c = (f32[4], f32[2]) copy(p)")
    assert defined(flow) == {0: "p", 1: "p.0", 2: "p.1", 3: "c"}
    assert held(flow, "c") == ["c", "p", "p"]


def test_state_that_a_loop_changes_is_a_phi_and_what_it_passes_on_is_not() -> None:
    flow = flow_of(*ENTRY_OF_LOOP, before=CHANGING)
    assert held(flow, "w") == ["w", "w", "b"]
    assert held(flow, "q") == ["q", "q", "b"]
    phis = [text for text in defined(flow).values() if text.endswith("?")]
    assert phis == ["p?", "q?", "p.0?", "q.0?", "w?", "w.0?"]


def test_the_numbers_of_phis_that_vanish_are_not_used_again() -> None:
    flow = flow_of(*ENTRY_OF_LOOP, before=CHANGING)
    numbers = sorted(defined(flow))
    assert numbers[:7] == list(range(7))
    assert numbers[7:] == [7, 8, 9, 11, 13, 14]  # p, q; p.0, p.1, q.0, q.1; w, w.0, w.1


def test_state_that_only_moves_around_between_equal_values_is_that_value() -> None:
    swapping = (
        COND.replace("(s32[], f32[4])", "(s32[], f32[4], f32[4])")
        + """
body { q = (s32[], f32[4], f32[4]) parameter(0)
  j = s32[] get-tuple-element(q), index=0
  x = f32[4] get-tuple-element(q), index=1
  y = f32[4] get-tuple-element(q), index=2
  ROOT r = (s32[], f32[4], f32[4]) tuple(j, y, x) }
"""
    )
    state = "(s32[], f32[4], f32[4])"
    loop = f"w = {state} while(t), condition=cond, body=body"
    same = flow_of(
        *("a = s32[] parameter(0)", "b = f32[4] parameter(1)", f"t = {state} tuple(a, b, b)", loop),
        before=swapping,
    )
    assert held(same, "w") == ["w", "a", "b", "b"]
    two = ("a = s32[] parameter(0)", "b = f32[4] parameter(1)", "c = f32[4] parameter(2)")
    different = flow_of(*two, f"t = {state} tuple(a, b, c)", loop, before=swapping)
    assert held(different, "w") == ["w", "a", "w", "w"]


def test_the_result_of_a_conditional_merges_its_branches() -> None:
    flow = flow_of(
        "p = pred[] parameter(0)",
        "a = f32[4] parameter(1)",
        "c = f32[4] conditional(p, a, a), true_computation=f, false_computation=g",
        before="""
f { x = f32[4] parameter(0)
  ROOT n = f32[4] negate(x) }
g { ROOT y = f32[4] parameter(0) }""",
    )
    assert defined(flow) == {0: "n", 1: "p", 2: "a", 3: "c?"}
    assert held(flow, "x") == held(flow, "y") == ["a"]


def test_a_call_holds_what_the_called_root_holds() -> None:
    flow = flow_of(
        "a = f32[4] parameter(0)",
        "c = f32[4] call(a), to_apply=f",
        before="f { x = f32[4] parameter(0)\n  ROOT n = f32[4] negate(x) }",
    )
    assert held(flow, "c") == ["n"]
    assert held(flow, "x") == ["a"]


def test_what_several_calls_give_a_parameter_is_any_of_it_and_no_value() -> None:
    flow = flow_of(
        "a = f32[4] parameter(0)",
        "c = f32[4] call(a), to_apply=f",
        "d = f32[4] call(c), to_apply=f",
        before="f { x = f32[4] parameter(0)\n  ROOT n = f32[4] negate(x) }",
    )
    assert defined(flow) == {0: "n", 1: "a"}
    parameter = next(i for i in flow.held if i.name == "x")
    assert [flow.definer[v].name for v in flow.members(flow.held[parameter])] == ["n", "a"]
    for value in flow.values():
        assert parameter in [position.instruction for position in flow.positions(value)]
        assert "n" in [use.user.name for use in flow.uses(value)]


def test_bodies_of_fusions_count_and_are_not_looked_into() -> None:
    flow = flow_of(
        "a = f32[4] parameter(0)",
        "c = f32[4] fusion(a), kind=kLoop, calls=f",
        before="f { x = f32[4] parameter(0)\n  ROOT n = f32[4] negate(x) }",
    )
    assert defined(flow) == {2: "a", 3: "c"}


FUSED_AND_CALLED = """
sum { p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT n = f32[] add(p, q) }
reducer { p1 = f32[] parameter(0)
  q1 = f32[] parameter(1)
  ROOT c = f32[] call(p1, q1), to_apply=sum }
"""


@pytest.mark.parametrize("is_reducer_used", [True, False])
def test_the_body_of_a_fusion_that_others_call_as_well_has_values(is_reducer_used: bool) -> None:
    reduce = "r = f32[] reduce(a, z), dimensions={0}, to_apply=reducer"
    flow = flow_of(
        "a = f32[4] parameter(0)",
        "z = f32[] constant(0)",
        reduce if is_reducer_used else "r = f32[] negate(z)",
        "f = f32[] fusion(r, z), kind=kLoop, calls=sum",
        before=FUSED_AND_CALLED,
    )
    assert held(flow, "c") == ["n"]
    assert held(flow, "p") == ["p1"]  # nothing of the fusion's operands
    assert held(flow, "f") == ["f"]


def test_what_runs_in_fusions_only_has_no_values() -> None:
    flow = flow_of(
        "a = f32[4] parameter(0)",
        "f = f32[4] fusion(a), kind=kLoop, calls=outer",
        before="inner { p = f32[4] parameter(0)\n ROOT n = f32[4] negate(p) }\n"
        "outer { p1 = f32[4] parameter(0)\n ROOT c = f32[4] call(p1), to_apply=inner }\n",
    )
    assert {i.name for i in flow.held} == {"a", "f"}


def test_a_condition_that_runs_in_fusions_only_has_no_values_though_its_body_has() -> None:
    loop = "w = f32[] while(u), condition=never, body=halve"
    flow = flow_of(
        "a = f32[4] parameter(0)",
        "z = f32[] constant(0)",
        "r = f32[] reduce(a, z), dimensions={0}, to_apply=reducer",
        "f = f32[] fusion(r), kind=kLoop, calls=looping",
        before="never { p = f32[] parameter(0)\n ROOT no = pred[] constant(false) }\n"
        "halve { h = f32[] parameter(0)\n ROOT n = f32[] negate(h) }\n"
        f"looping {{ u = f32[] parameter(0)\n ROOT {loop} }}\n"
        "reducer { p1 = f32[] parameter(0)\n q1 = f32[] parameter(1)\n"
        " ROOT c = f32[] call(p1), to_apply=halve }\n",
    )
    assert held(flow, "h") == ["p1"]
    assert "no" not in {i.name for i in flow.held}


def test_the_body_of_a_fusion_that_the_entry_runs_too_is_an_error() -> None:
    with pytest.raises(HloVerifyError, match="'%sum' is the body of a fusion and called as well"):
        flow_of(
            "a = f32[] parameter(0)",
            "f = f32[] fusion(a, a), kind=kLoop, calls=sum",
            "c1 = f32[] call(f, a), to_apply=sum",
            before=FUSED_AND_CALLED,
        )


def test_an_asynchronous_start_holds_its_operands_and_the_result_to_come() -> None:
    flow = flow_of(
        "a = f32[4] parameter(0)",
        'start = ((f32[4]), f32[8], u32[]) custom-call-start(a), custom_call_target="f"',
        "done = f32[8] custom-call-done(start)",
    )
    start = ["start", "start", "a"]
    wrapped = held(flow, "done")
    assert held(flow, "start") == [*start, *wrapped, "start"]


def test_a_start_of_a_collective_permute_with_several_operands_has_no_table_of_them() -> None:
    flow = flow_of(
        "a = f32[4] parameter(0)",
        "s = ((f32[4], f32[4]), (f32[4], f32[4])) collective-permute-start(a, a), "
        "source_target_pairs={{0,1}}",
        "d = (f32[4], f32[4]) collective-permute-done(s)",
    )
    assert held(flow, "s") == ["s", "-", "a", "a", "s", "s", "s"]
    assert defined(flow) == {0: "a", 1: "s", 2: "s.1", 3: "s.1.0", 4: "s.1.1", 5: "d"}


def test_positions_begin_with_the_definition_and_uses_follow_them() -> None:
    flow = flow_of(
        "a = f32[4] parameter(0)",
        "b = f32[4] negate(a)",
        "t = (f32[4], f32[4]) tuple(b, a)",
        "g = f32[4] get-tuple-element(t), index=0",
        "s = f32[4] add(g, g)",
    )
    value = flow.held[next(i for i in flow.held if i.name == "b")][0]
    assert [(p.instruction.name, p.slot) for p in flow.positions(value)] == [
        *(("b", 0), ("t", 1), ("g", 0))
    ]
    assert [(use.user.name, use.operand) for use in flow.uses(value)] == [("s", 0), ("s", 1)]


def test_a_root_uses_what_it_holds() -> None:
    flow = flow_of("a = f32[4] parameter(0)", "t = (f32[4]) tuple(a)")
    assert [use.user.name for use in flow.uses(0)] == ["t"]


def test_a_missing_element_is_an_error() -> None:
    module = parse_module(
        "HloModule m\nENTRY e {\n  p = (f32[4]) parameter(0)\n"
        "  ROOT g = f32[4] get-tuple-element(p), index=0\n}\n"
    )
    module.entry.root.set_attribute("index", "3")
    with pytest.raises(HloVerifyError, match="'%g' has no tuple element 3"):
        Dataflow.of(module)


def test_loops_nested_a_thousand_deep_need_no_recursion() -> None:
    condition = "test{0} {{ q{0} = f32[2] parameter(0)\n  ROOT k{0} = pred[] constant(true) }}"
    body = """b{0} {{ p{0} = f32[2] parameter(0)
  ROOT w{0} = f32[2] while(p{0}), condition=test{0}, body=b{1} }}"""
    texts = ["b0 { ROOT p0 = f32[2] parameter(0) }", condition.format(1000)]
    for i in range(1, 1000):
        texts += [condition.format(i), body.format(i, i - 1)]
    flow = flow_of(
        "a = f32[2] parameter(0)",
        "w = f32[2] while(a), condition=test1000, body=b999",
        before="\n".join(texts),
    )
    assert held(flow, "w") == ["a"]


def test_bodies_of_fusions_have_values_where_they_are_asked_for() -> None:
    module = parse_module(
        """HloModule m
        body { p = f32[4] parameter(0)
          n = f32[4] negate(p)
          t = (f32[4], f32[4]) tuple(n, p)
          g = f32[4] get-tuple-element(t), index=0
          ROOT r = (f32[4], f32[4]) tuple(g, p) }
        ENTRY e { a = f32[4] parameter(0)
          ROOT f = (f32[4], f32[4]) fusion(a), kind=kLoop, calls=body }"""
    )
    body = module.computations["body"]
    assert body["n"] not in Dataflow.of(module).held
    flow = Dataflow.of(module, in_fusions=True)
    n, p = flow.at(body["n"], ()), flow.at(body["p"], ())
    assert n is not None
    assert [flow.at(body["r"], (i,)) for i in (0, 1)] == [n, p]
    assert flow.positions(n) == [(body["n"], 0), (body["t"], 1), (body["g"], 0), (body["r"], 1)]
    assert [use.user.name for use in flow.uses(n)] == ["r"]
    # Nothing passes the border.
    entry = module.entry
    assert {flow.at(entry["a"], ()), flow.at(entry["f"], (0,))}.isdisjoint({n, p})
