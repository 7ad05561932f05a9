"""Operations that move out of the branches, and what takes their place."""

from __future__ import annotations

from tests.passes.checked_run import run_checked
from tests.passes.control_flow.conditional_code_motion.programs import (
    BACK,
    PAIR,
    PASS,
    V,
    assert_same,
    branches,
    moved,
    program,
    results,
    the_conditional,
    two,
)

from hloopt.ir import Opcode


def test_the_branches_give_what_stays_in_the_order_it_was_found() -> None:
    text = program(
        f"s = {V} sine(a) d = {V} floor(a) n = {V} negate(s) m = {V} add(d, n) "
        f"k = {V} floor(m) ROOT all = {PAIR} tuple(n, k)",
        f"s = {V} cosine(b) d = {V} exponential(b) n = {V} negate(s) m = {V} add(d, s) "
        f"k = {V} floor(m) ROOT all = {PAIR} tuple(n, k)",
        "",
        f"u = {V} get-tuple-element(h), index=1 w = {V} get-tuple-element(h), index=0 "
        f"i = {V} reverse(w), dimensions={{0}} j = {V} reverse(u), dimensions={{0}} "
        f"ROOT e = {V} subtract(i, j)",
        gives=PAIR,
    )
    module = moved(text)
    # %n has two users, so it is there twice; beside another instruction it counts as another.
    assert results(module) == [["n", "n", "d", "n"], ["n.1", "n.1", "d.1", "s.1"]]
    first, second = (operand.operands[0] for operand in module.entry.root.operands)
    assert first.tuple_index == 1
    assert second.operands[0].opcode is Opcode.ADD
    assert [each.tuple_index for each in second.operands[0].operands] == [2, 3]


def test_a_constant_that_both_branches_have_moves_with_its_user() -> None:
    text = program(*two(
        f"s = {V} {{o}}({{p}}) k = f32[] constant(2) w = {V} broadcast(k), dimensions={{}} "
        f"r = {V} multiply(s, w)"
    ))  # fmt: skip
    module = moved(text)
    assert len(branches(module)[0]) == 3
    assert {i.opcode for i in module.entry.instructions} >= {Opcode.CONSTANT, Opcode.BROADCAST}


def test_a_computation_that_is_two_branches_is_copied_once() -> None:
    text = program(*two(f"s = {V} {{o}}({{p}}) r = {V} negate(s)")).replace(
        "false_computation=f", "false_computation=t"
    )
    module = moved(text)
    assert [branch.name for branch in branches(module)] == ["t.clone", "t"]
    assert results(module) == [["a.1"], ["a"]]


def test_an_array_that_moves_out_is_the_result_of_the_computation() -> None:
    body = f"s = {V} {{o}}({{p}}) n = {V} negate(s) ROOT r = {V} negate(n)"
    text = program(*two(body), "", "").replace("  h = ", "  ROOT h = ")
    module = run_checked(PASS, text, search_config="0,9,1,1")
    assert_same(text, module)
    assert module.entry.root.opcode is Opcode.NEGATE


def test_a_tuple_that_moves_out_is_the_result_of_the_computation() -> None:
    text = program(
        *two(f"s = {V} {{o}}({{p}}) n = {V} negate(s) ROOT r = {PAIR} tuple(n, s)"),
        "",
        "",
        gives=PAIR,
    ).replace("  h = ", "  ROOT h = ")
    text = text.replace("computation=f", "computation=f, sharding={{replicated},{replicated}}")
    module = run_checked(PASS, text, search_config="0,9,1,1")
    assert_same(text, module)
    root = module.entry.root
    assert [operand.opcode for operand in root.operands] == [
        Opcode.NEGATE,
        Opcode.GET_TUPLE_ELEMENT,
    ]
    assert root.attributes["sharding"] == "{{replicated},{replicated}}"


def test_results_of_a_reduction_of_several_arrays_are_read_from_the_copy() -> None:
    pair, reduction = "(f32[], f32[])", (
        "two { p.a = f32[] parameter(0) p.b = f32[] parameter(1) p.c = f32[] parameter(2) "
        "p.d = f32[] parameter(3) p.m = f32[] add(p.a, p.c) p.n = f32[] maximum(p.b, p.d) "
        "ROOT p.r = (f32[], f32[]) tuple(p.m, p.n) }"
    )  # fmt: skip
    text = program(
        *two(
            f"s = {V} {{o}}({{p}}) k = f32[] constant(0) n = {V} negate(s) "
            f"ROOT r = {pair} reduce(n, n, k, k), dimensions={{0}}, to_apply=two"
        ),
        "",
        "u = f32[] get-tuple-element(h), index=0 w = f32[] get-tuple-element(h), index=1 "
        "ROOT e = (f32[], f32[]) tuple(w, u)",
        gives=pair,
        more=reduction,
    )
    module = run_checked(PASS, text, search_config="0,99,1,1")
    assert_same(text, module)
    assert {e.operands[0].opcode for e in module.entry.root.operands} == {Opcode.REDUCE}


def test_shardings_follow_what_the_branches_give() -> None:
    split, whole = "{devices=[2]0,1}", "{replicated}"
    text = program(
        *two(
            f"s = {V} {{o}}({{p}}), sharding={split} n = {V} negate(s), sharding={whole} "
            f"ROOT all = ({V}) tuple(n), sharding={{{whole}}}"
        ),
        "",
        f"u = {V} get-tuple-element(h), index=0, sharding={whole} ROOT e = {V} {BACK}",
        gives=f"({V})",
    ).replace("computation=f", f"computation=f, sharding={{{whole}}}")
    conditional = the_conditional(moved(text))
    assert conditional.attributes["sharding"] == f"{{{split}}}"
    without = moved(text.replace(f", sharding={split}", ""))
    assert "sharding" not in the_conditional(without).attributes


def test_a_copied_branch_has_fusions_of_its_own() -> None:
    text = program(
        *two(f"s = {V} fusion({{p}}), kind=kLoop, calls=back r = {V} negate(s)"),
        more=f"back {{ m = {V} parameter(0) ROOT e = {V} reverse(m), dimensions={{0}} }}",
    )
    text = text.replace("false_computation=f", "false_computation=t")
    start = text.index("\nf {")
    module = moved(text[:start] + text[text.index("\nENTRY") :])
    fused = [i.called[0] for i in module.instructions(Opcode.FUSION)]
    assert len(fused) == len(set(fused)) == 2
