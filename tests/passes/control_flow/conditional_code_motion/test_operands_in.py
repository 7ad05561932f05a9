"""Operands of a conditional that move into its branches."""

from __future__ import annotations

from tests.passes.checked_run import shown
from tests.passes.control_flow.conditional_code_motion.programs import (
    ARRAY,
    PAIR,
    PASS,
    V,
    argument,
    branches,
    moved,
    program,
    remarks,
)

from hloopt.ir import Opcode
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module


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


def test_a_long_chain_moves() -> None:
    chain = "\n".join(f"n.{i} = {V} negate({f'n.{i - 1}' if i else 'x'})" for i in range(1500))
    text = program(*ARRAY, chain, arguments="n.1499, y")
    module = moved(text)
    assert len(module.entry) < 10
    assert len(branches(module)[0]) > 1500


def test_what_was_said_of_the_old_argument_goes() -> None:
    text = program(*ARRAY, f"n = {V} add(x, y)", arguments="n, y").replace(
        f"a = {V} parameter(0)",
        f"a = {V} parameter(0), parameter_replication={{true}}, sharding={{replicated}}",
    )
    parameter = branches(moved(text))[0].parameters[0]
    assert parameter.shape.is_tuple
    assert not parameter.attributes


def test_an_element_that_orders_others_goes_on_to() -> None:
    text = program(
        f"s = {V} get-tuple-element(a), index=0 d = {V} get-tuple-element(a), index=1 "
        f"z = {V} get-tuple-element(a), index=0, control-predecessors={{d}} "
        f"w = {V} negate(d), control-predecessors={{z}} ROOT r = {V} subtract(w, s)",
        f"ROOT r = {V} get-tuple-element(b), index=1",
        f"n = {V} clamp(x, y, x) i = {V} floor(y) l = {PAIR} tuple(n, x) m = {PAIR} tuple(i, y)",
        takes=PAIR,
        arguments="l, m",
    )
    module = moved(text)
    (element,) = (i for i in branches(module)[0].instructions if i.name == "z")
    assert [p.name for p in element.control_predecessors] == ["d"]
    assert [s.name for s in element.control_successors] == ["w"]
