"""What conditional-code-motion makes of conditionals: outwards, inwards, and converts alone."""

from __future__ import annotations

import pytest
from tests.passes.checked_run import reasons_to_stay, run_checked, shown
from tests.passes.control_flow.moved_conditionals import (
    PASS,
    V,
    assert_same,
    moved,
    program,
    remarks,
)

from hloopt.ir import Computation, Instruction, Module, Opcode
from hloopt.pass_framework.applications import Applications
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module, print_module
from hloopt.verifier import verify_module

PAIR = f"({V}, {V})"
BACK = "reverse(u), dimensions={0}"


def the_conditional(module: Module) -> Instruction:
    (found,) = module.instructions(Opcode.CONDITIONAL)
    return found


def branches(module: Module) -> tuple[Computation, ...]:
    return the_conditional(module).called


def results(module: Module) -> list[list[str]]:
    """The names of what each branch gives."""
    return [[operand.name for operand in branch.root.operands] for branch in branches(module)]


def two(body: str, *, ends: tuple[str, str] = ("sine", "cosine")) -> tuple[str, str]:
    """Two branches of one text, which has `{p}` for the argument and `{o}` for an opcode."""
    first, second = (
        body.replace("{p}", p).replace("{o}", o) for p, o in zip("ab", ends, strict=True)
    )
    return first, second


# -- outwards ---------------------------------------------------------------------------------


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


# -- users inwards ----------------------------------------------------------------------------

DIFFERENT = two(f"s = {V} {{o}}({{p}}) r = {V} reverse(s), dimensions={{0}}")
BOTH = two(
    f"s = {V} {{o}}({{p}}) n = {V} reverse({{p}}), dimensions={{0}} ROOT all = {PAIR} tuple(s, n)"
)


def test_a_result_that_something_else_reads_stays() -> None:
    def counts(after: str) -> list[int]:
        return [len(each) for each in results(moved(program(*DIFFERENT, "", after)))]

    assert counts("ROOT u = f32[4] negate(h)") == [1, 1]
    again = "i = f32[4] get-tuple-element(c), index=0"
    assert counts(f"{again} u = f32[4] negate(h) ROOT e = (f32[4], f32[4]) tuple(u, i)") == [2, 2]
    assert counts("u = f32[4] negate(h) ROOT e = (f32[4], f32[4], f32[4]) tuple(u, h, h)") == [2, 2]


def test_a_read_result_that_is_the_root_stays() -> None:
    text = program(*DIFFERENT, "", "u = f32[4] negate(h) w = f32[4] floor(u)")
    text = text.replace("  h = ", "  ROOT h = ")
    module = run_checked(PASS, text, changes=True, search_config="0,99,1,1")
    assert_same(text, module)


def test_indices_behind_a_result_that_goes_drop_by_one() -> None:
    text = program(
        *BOTH,
        "",
        f"i = {V} get-tuple-element(h), index=0 j = {V} get-tuple-element(h), index=1 "
        f"k = {V} negate(i) l = {V} reverse(j), dimensions={{0}} ROOT e = {PAIR} tuple(k, l)",
        gives=PAIR,
    )
    module = moved(text)
    first, second = module.entry.root.operands
    assert first.tuple_index == 1
    assert second.operands[0].tuple_index == 0


def test_an_operation_that_others_use_is_given_as_well() -> None:
    text = program(
        *DIFFERENT,
        "",
        f"k = {V} negate(h) l = {V} floor(k) m = {V} reverse(k), dimensions={{0}} "
        f"ROOT e = {PAIR} tuple(m, l)",
    )
    module = moved(text)
    assert Opcode.NEGATE not in {i.opcode for i in module.entry.instructions}
    assert [len(each) for each in results(module)] == [2, 2]


def test_a_branch_that_hands_its_argument_on_takes_part() -> None:
    text = f"""HloModule m
    t {{
      a = {PAIR} parameter(0)
      s = {V} get-tuple-element(a), index=0
      n = {V} sine(s)
      ROOT all = {PAIR} tuple(n, s)
    }}
    f {{
      ROOT b = {PAIR} parameter(0)
    }}
    ENTRY e {{
      l = {PAIR} parameter(0)
      q = pred[] parameter(1)
      h = {PAIR} conditional(q, l, l), true_computation=t, false_computation=f
      i = {V} get-tuple-element(h), index=0
      ROOT u = {V} negate(i)
    }}
    """
    module = moved(text)
    assert [branch.root.operands[-1].opcode for branch in branches(module)] == [Opcode.NEGATE] * 2


def test_a_copy_that_meets_another_in_a_branch_is_worth_moving() -> None:
    wide, tall = "f32[4,4]{1,0}", "f32[4,4]{0,1}"

    def text(layout: str) -> str:
        return program(
            f"m = {layout} broadcast(a), dimensions={{0}} r = {tall} copy(m)",
            f"m = {tall} broadcast(b), dimensions={{0}} r = {tall} negate(m)",
            "",
            f"n = {wide} copy(h) ROOT e = ({wide}, {V}) tuple(n, x)",
            gives=tall,
        )

    assert Opcode.COPY not in {i.opcode for i in moved(text(wide)).entry.instructions}


@pytest.mark.parametrize(
    ("operation", "moves"),
    [("negate(h)", True), ("convert(h)", False)],
)
def test_a_convert_is_not_pulled_to_a_dot(operation: str, moves: bool) -> None:
    shape = "bf16[4,4]" if "convert" in operation else "f32[4,4]"
    text = program(
        *two(
            "m = f32[4,4] broadcast({p}), dimensions={0} w = f32[4,4] {o}(m) "
            "r = f32[4,4] dot(w, m), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
        ),
        "",
        f"ROOT u = {shape} {operation}",
        gives="f32[4,4]",
    )
    if moves:
        assert Opcode.NEGATE not in {i.opcode for i in moved(text).entry.instructions}
    else:
        assert remarks(text)["h"] == "moving it has no benefit"


# -- operands inwards -------------------------------------------------------------------------


def argument(module: Module, number: int = 1) -> Instruction:
    return the_conditional(module).operands[number]


def test_an_array_becomes_a_tuple_of_what_it_is_computed_from() -> None:
    text = program(
        f"ROOT r = {V} sine(a)", f"ROOT r = {V} cosine(b)",
        f"n = {V} add(x, y) k = {V} multiply(n, x)", arguments="k, y",
    )  # fmt: skip
    module = moved(text)
    # %x came with %k, so the slot of %n is for %y.
    assert [operand.name for operand in argument(module).operands] == ["y", "x"]
    assert shown(branches(module)[0]) == [
        "a = (f32[4], f32[4]) parameter(0)",
        "get-tuple-element = f32[4] get-tuple-element(a), index=1",
        "get-tuple-element.1 = f32[4] get-tuple-element(a), index=0",
        "n.1 = f32[4] add(get-tuple-element, get-tuple-element.1)",
        "k.1 = f32[4] multiply(n.1, get-tuple-element)",
        "ROOT r = f32[4] sine(k.1)",
    ]


def test_operands_take_the_slots_and_more_come_at_the_end() -> None:
    text = program(
        f"s = {V} get-tuple-element(a), index=0 d = {V} get-tuple-element(a), index=1 "
        f"ROOT r = {V} subtract(s, d)",
        f"ROOT r = {V} get-tuple-element(b), index=1",
        f"w = {V} reverse(y), dimensions={{0}} n = {V} clamp(x, y, w) l = {PAIR} tuple(n, x) "
        f"m = {PAIR} tuple(x, x)",
        takes=PAIR,
        arguments="l, m",
    )
    module = moved(text)
    # %x is there already: the slot of %n goes to the next operand.
    assert [operand.name for operand in argument(module).operands] == ["y", "x", "w"]


def test_a_slot_that_nothing_takes_holds_an_empty_tuple() -> None:
    text = program(
        f"s = {V} get-tuple-element(a), index=0 d = {V} get-tuple-element(a), index=1 "
        f"ROOT r = {V} subtract(s, d)",
        f"ROOT r = {V} get-tuple-element(b), index=1",
        f"n = {V} negate(x) l = {PAIR} tuple(n, n) m = {PAIR} tuple(x, y)",
        takes=PAIR,
        arguments="l, m",
    )
    module = moved(text)
    first, second = argument(module).operands
    assert first.name == "x"
    assert second.shape.is_tuple
    assert not second.operands


def test_a_tuple_that_a_branch_uses_as_a_whole_is_put_together_there() -> None:
    outer = f"({PAIR}, {V})"
    text = f"""HloModule m
    t {{
      a = {outer} parameter(0)
      i = {PAIR} get-tuple-element(a), index=0
      j = {V} get-tuple-element(i), index=1
      w = {V} sine(j)
      ROOT r = {outer} tuple(i, w)
    }}
    f {{
      ROOT b = {outer} parameter(0)
    }}
    ENTRY e {{
      x = {V} parameter(0)
      y = {V} parameter(1)
      q = pred[] parameter(2)
      n = {V} negate(x)
      k = {PAIR} tuple(n, y)
      l = {outer} tuple(k, x)
      o = {V} floor(y)
      p = {PAIR} tuple(o, x)
      v = {outer} tuple(p, y)
      h = {outer} conditional(q, l, v), true_computation=t, false_computation=f
      i.2 = {PAIR} get-tuple-element(h), index=0
      e.0 = {V} get-tuple-element(i.2), index=0
      e.1 = {V} get-tuple-element(i.2), index=1
      e.2 = {V} get-tuple-element(h), index=1
      ROOT e = ({V}, {V}, {V}) tuple(e.0, e.1, e.2)
    }}
    """
    module = moved(text)
    assert not {Opcode.NEGATE, Opcode.FLOOR} & {i.opcode for i in module.entry.instructions}


def test_what_both_branches_use_stays_outside() -> None:
    ends = f"ROOT r = {V} sine(a)", f"ROOT r = {V} cosine(b)"
    text = program(*ends, f"n = {V} negate(x)", arguments="n, n")
    assert remarks(text)["n"] == "moving it has no benefit"
    assert not create_pass(PASS).run(parse_module(text), PassContext(PASS))
    one = text.replace(f"ROOT r = {V} cosine(b)", f"ROOT r = {V} constant({{1,2,3,4}})")
    module = moved(one)
    assert [Opcode.NEGATE in {i.opcode for i in b.instructions} for b in branches(module)] == [
        True,
        False,
    ]


def test_a_branch_that_gives_its_argument_uses_it() -> None:
    text = program(
        f"ROOT r = {V} sine(a)",
        f"c = {V} constant({{1,2,3,4}}) ROOT r = {V} cosine(c)",
        f"n = {V} negate(x)",
        arguments="n, n",
    )
    moved(text)
    text = text.replace(f"b = {V} parameter", f"ROOT b = {V} parameter")
    text = text.replace(f"ROOT r = {V} cosine(c)", "")
    assert remarks(text)["n"] == "moving it has no benefit"


def test_what_is_too_far_away_counts_for_nothing() -> None:
    def text(count: int) -> str:
        chain = [f"n.{i} = {V} negate({f'n.{i - 1}' if i else 'x'})" for i in range(count)]
        ends = f"ROOT r = {V} sine(a)", f"ROOT r = {V} constant({{1,2,3,4}})"
        return program(*ends, "\n".join(chain), arguments=f"n.{count - 1}, y")

    module = run_checked(PASS, text(1500))
    assert len(module.entry) < 20


# -- converts alone ---------------------------------------------------------------------------


def converts(on_true: str, on_false: str, shape: str = "(bf16[4]{0})") -> str:
    return program(on_true, on_false, "", "", gives=shape).replace("  h = ", "  ROOT h = ")


@pytest.mark.parametrize(
    ("body", "moves"),
    [
        ("s = f32[4] {o}({p}) n = bf16[4] convert(s) ROOT r = (bf16[4]) tuple(n)", True),
        ("s = f32[4] {o}({p}) n = f16[4] convert(s) m = bf16[4] convert(n) "
         "ROOT r = (bf16[4]) tuple(m)", False),
        ("s = f32[4] {o}({p}) n = bf16[4] convert(s) m = f32[4] convert(n) d = f32[4] floor(m) "
         "ROOT r = (bf16[4], f32[4]) tuple(n, d)", False),
        ("s = f32[4] {o}({p}) n = bf16[4] convert(s) ROOT r = (bf16[4], bf16[4]) tuple(n, n)",
         False),
        ("s = f32[4] {o}({p}) z = f32[4] abs(s) n = bf16[4] convert(s), control-predecessors={z} "
         "ROOT r = (bf16[4]) tuple(n)", False),
    ],
)  # fmt: skip
def test_common_converts_move_out(body: str, moves: bool) -> None:
    shape = body[body.rindex("r = ") + 4 : body.rindex(" tuple")]
    text = converts(*two(body), shape)
    if moves:
        module = moved(text)
        assert module.entry.root.operands[0].opcode is Opcode.CONVERT
        text = text.replace("true_computation=t, false_computation=f", "true_computation=t, "
                            "false_computation=t")  # fmt: skip
        assert not create_pass(PASS).run(parse_module(text), PassContext(PASS))
    else:
        assert not create_pass(PASS).run(parse_module(text), PassContext(PASS))


def test_converts_from_different_types_stay() -> None:
    text = converts(
        "s = f32[4] sine(a) n = bf16[4] convert(s) ROOT r = (bf16[4]) tuple(n)",
        "s = f64[4] constant({1,2,3,4}) n = bf16[4] convert(s) ROOT r = (bf16[4]) tuple(n)",
    )
    assert not create_pass(PASS).run(parse_module(text), PassContext(PASS))


# -- the pass ---------------------------------------------------------------------------------


def many(count: int) -> str:
    """A program with conditionals one after another, all of which change."""
    lines = [f"v.0 = {V} sine(x)"]
    for i in range(count):
        lines += [
            f"c.{i} = ({V}) conditional(q, v.{i}, v.{i}), true_computation=t, false_computation=f",
            f"h.{i} = {V} get-tuple-element(c.{i}), index=0",
            f"v.{i + 1} = {V} reverse(h.{i}), dimensions={{0}}",
        ]
    text = program(*two(f"s = {V} {{o}}({{p}}) r = {V} negate(s)"), "\n  ".join(lines))
    return text.replace("conditional(q, x, y)", f"conditional(q, v.{count}, y)")


def test_one_application_is_one_conditional() -> None:
    text = many(3)
    printed = []
    for limit in range(6):
        module, context = parse_module(text), PassContext(PASS)
        context.applications = Applications(limit=limit)
        assert create_pass(PASS).run(module, context) == (limit > 0)
        assert verify_module(module) == []
        assert_same(text, module)
        printed.append(print_module(module))
    assert len(set(printed)) == 5
    assert printed[4] == printed[5]


def test_conditionals_in_branches_come_first() -> None:
    inner = two(f"s = {V} {{o}}({{p}}) n = {V} negate(s) ROOT all = ({V}) tuple(n)")
    text = f"""HloModule m
    t {{ a = {V} parameter(0) {inner[0]} }}
    f {{ b = {V} parameter(0) {inner[1]} }}
    outer {{
      d = (pred[], {V}) parameter(0)
      k = pred[] get-tuple-element(d), index=0
      w = {V} get-tuple-element(d), index=1
      c = ({V}) conditional(k, w, w), true_computation=t, false_computation=f
      h = {V} get-tuple-element(c), index=0
      ROOT r = ({V}) tuple(h)
    }}
    other {{
      d = (pred[], {V}) parameter(0)
      w = {V} get-tuple-element(d), index=1
      e = {V} exponential(w)
      n = {V} negate(e)
      ROOT r = ({V}) tuple(n)
    }}
    ENTRY e {{
      x = {V} parameter(0)
      q = pred[] parameter(1)
      p = pred[] parameter(2)
      l = (pred[], {V}) tuple(p, x)
      c = ({V}) conditional(q, l, l), true_computation=outer, false_computation=other
      h = {V} get-tuple-element(c), index=0
      ROOT u = {V} reverse(h), dimensions={{0}}
    }}
    """
    module = moved(text)
    assert Opcode.NEGATE in {i.opcode for i in module.entry.instructions}


def test_search_configurations_are_used_one_after_another() -> None:
    text = program(*two(f"s = {V} {{o}}({{p}}) n = {V} floor(s) r = {V} negate(n)"))

    def kept(value: int | str) -> set[str]:
        found = remarks(text, search_config=value)
        return {name for name, reason in found.items() if "search configuration" in reason}

    assert kept("0,0,1,1") == {"all"}
    assert kept("0,1,1,1") == {"r"}
    assert kept("0,1,1,1;0,0,1,1") == kept("0,1,2,1") == {"r", "h"}
    assert kept("0,0,2,3") == {"all"}
    assert kept("0,2,1,1") == {"n"}
    assert kept("1,0,1,1") == set()
    assert kept(1 << 16 | 1) == kept("0,1,1,0")
    assert kept(2 << 16 | 1 << 32) == kept("0,0,2,1")


def test_a_negative_configuration_tunes_weights() -> None:
    text = program(*two(f"s = {V} {{o}}({{p}}) r = {V} negate(s)"))
    # The weight of %s before %r, and that of %r behind it: without one, moving %r is as good.
    assert "all" not in remarks(text, search_config=-(1 << 16))
    assert remarks(text, search_config=-(1 << 16 | 1))["all"] == "moving it has no benefit"


def test_a_schedule_stays_a_schedule() -> None:
    text = program(*two(f"s = {V} {{o}}({{p}}) r = {V} negate(s)"), header=", is_scheduled=true")
    module = moved(text)
    assert module.is_scheduled
    assert [i.opcode for i in module.entry.instructions][-1] is Opcode.REVERSE


# -- what counts ------------------------------------------------------------------------------


def test_an_instruction_with_several_users_stays_beside_each_other_one() -> None:
    text = program(
        f"s = {V} sine(a) n = {V} negate(s) k = {V} floor(n) ROOT all = {PAIR} tuple(n, k)",
        f"s = {V} cosine(b) n = {V} negate(s) d = {V} exponential(b) m = {V} negate(d) "
        f"k = {V} floor(m) ROOT all = {PAIR} tuple(n, k)",
        "",
        f"u = {V} get-tuple-element(h), index=1 ROOT e = {V} {BACK}",
        gives=PAIR,
    )
    assert results(moved(text)) == [["n", "n", "n"], ["n.1", "n.1", "m"]]


def test_groups_that_are_not_worth_it_do_not_count_as_dependents() -> None:
    text = program(
        *two(f"s = {V} {{o}}({{p}}) ROOT all = {PAIR} tuple({{p}}, s)"),
        "",
        f"i = {V} get-tuple-element(h), index=0 k = {V} floor(i) "
        f"j = {V} get-tuple-element(h), index=1 l = {V} negate(j) ROOT u = {V} add(k, l)",
        gives=PAIR,
    )
    opcodes = {i.opcode for i in moved(text).entry.instructions}
    assert Opcode.NEGATE not in opcodes
    assert {Opcode.ADD, Opcode.FLOOR} <= opcodes


def test_a_broadcast_in_a_tuple_is_not_made_anew() -> None:
    outer = f"(({V}))"
    text = program(
        f"s = ({V}) get-tuple-element(a), index=0 d = {V} get-tuple-element(s), index=0 "
        f"ROOT r = {V} sine(d)",
        f"ROOT r = {V} constant({{1,2,3,4}})",
        f"k = f32[] constant(1) w = {V} broadcast(k), dimensions={{}} i = ({V}) tuple(w) "
        f"l = {outer} tuple(i)",
        f"ROOT u = {V} add(h, w)",
        takes=outer,
        arguments="l, l",
    )
    reasons = reasons_to_stay(PASS, text)
    assert "not moved across %h: it has 2 users" in reasons


def test_tuples_alone_do_not_move() -> None:
    text = program(
        f"s = {V} get-tuple-element(a), index=0 ROOT r = {V} sine(s)",
        f"ROOT r = {V} constant({{1,2,3,4}})",
        f"n = {V} reverse(x), dimensions={{0}} l = ({V}) tuple(n)",
        takes=f"({V})",
        arguments="l, l",
    )
    assert remarks(text)["l"] == "moving it has no benefit"
    reasons_to_stay(PASS, text)


def test_the_root_alone_does_not_move() -> None:
    text = program(*two(f"s = {V} {{o}}({{p}}) ROOT r = {V} negate(s)"))
    assert remarks(text)["r"] == "moving it has no benefit"
    reasons_to_stay(PASS, text)


@pytest.mark.parametrize(
    ("after", "moves"),
    [
        (f"k = {V} negate(h) ROOT u = {V} reverse(k), dimensions={{0}}", False),
        (f"k = {V} negate(h) ROOT u = {V} add(k, y)", True),
        (f"k = {V} negate(h) m = {V} reverse(k), dimensions={{0}} ROOT u = {V} add(k, m)", True),
        (f"i = {V} add(h, h) k = {V} negate(i) ROOT u = ({V}) tuple(k)", False),
    ],
    ids=("the same", "others beside it", "several users", "twice"),
)
def test_what_is_read_behind_counts_against_moving_in(after: str, moves: bool) -> None:
    text = program(*DIFFERENT, "", after)
    if moves:
        assert Opcode.NEGATE not in {i.opcode for i in moved(text).entry.instructions}
    else:
        reasons_to_stay(PASS, text)


def test_reading_tuples_is_free() -> None:
    text = program(
        f"s = {V} get-tuple-element(a), index=0 r = {V} reverse(s), dimensions={{0}}",
        f"s = {V} get-tuple-element(b), index=0 r = {V} negate(s)",
        "l = (f32[4]) tuple(x)",
        f"k = (f32[4]) tuple(h) i = {V} get-tuple-element(k), index=0 "
        f"ROOT u = {V} reverse(i), dimensions={{0}}",
        takes=f"({V})",
        arguments="l, l",
    )
    moved(text)


def test_a_part_of_a_copy_does_not_move_without_the_other() -> None:
    pair = f"({V}, {V}, u32[])"
    text = program(
        *two(f"s = {V} {{o}}({{p}}) d = {pair} copy-start(s) r = {V} copy-done(d)"),
    )
    found = remarks(text, search_config="0,99,1,1")
    assert found["r"] == "it has a side effect, or another part"


@pytest.mark.parametrize(
    "body",
    [
        "s = f32[4] {o}({p}) n = bf16[4] convert(s) d = f32[4] floor({p}) "
        "ROOT r = (bf16[4], f32[4]) tuple(n, d)",
        "s = f32[4] {o}({p}) n = bf16[4] convert(s) ROOT r = (bf16[4], bf16[4]) tuple(n, n)",
    ],
)
def test_only_converts_of_all_branches_move_alone(body: str) -> None:
    shape = body[body.rindex("r = ") + 4 : body.rindex(" tuple")]
    text = converts(*two(body), shape)
    module = parse_module(text)
    changed = create_pass(PASS).run(module, PassContext(PASS))
    assert changed == ("tuple(n, d)" in body)
    assert_same(text, module)
