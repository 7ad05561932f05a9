"""Users of a conditional that move into its branches."""

from __future__ import annotations

import pytest
from tests.passes.control_flow.conditional_code_motion.programs import (
    BOTH,
    DIFFERENT,
    PAIR,
    V,
    branches,
    moved,
    opcodes,
    program,
    remarks,
    results,
    two,
)

from hloopt.ir import Opcode


def test_a_result_that_something_else_reads_stays() -> None:
    def counts(after: str) -> list[int]:
        return [len(each) for each in results(moved(program(*DIFFERENT, "", after)))]

    assert counts("ROOT u = f32[4] negate(h)") == [1, 1]
    again = "i = f32[4] get-tuple-element(c), index=0"
    assert counts(f"{again} u = f32[4] negate(h) ROOT e = (f32[4], f32[4]) tuple(u, i)") == [2, 2]
    assert counts("u = f32[4] negate(h) ROOT e = (f32[4], f32[4], f32[4]) tuple(u, h, h)") == [2, 2]


def test_a_read_result_that_is_the_root_stays() -> None:
    text = program(*DIFFERENT, "", f"u = {V} negate(h) w = {V} floor(u)")
    module = moved(text.replace("  h = ", "  ROOT h = "))
    assert module.entry.root.name == "h"


def test_an_operation_that_is_the_root_is_given() -> None:
    text = program(*DIFFERENT, "", f"ROOT u = {V} negate(h) w = {V} floor(u)")
    root = moved(text).entry.root
    given = [branch.root.operands[root.tuple_index] for branch in root.operands[0].called]
    assert {value.opcode for value in given} == {Opcode.NEGATE}


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
            f"n = {wide} copy(h) ROOT e = {wide} reverse(n), dimensions={{0}}",
            gives=tall,
        )

    assert Opcode.COPY not in opcodes(text(wide))
    assert remarks(text(tall))["h"] == "moving it has no benefit"


def test_moving_a_user_has_a_cost() -> None:
    text = program(
        *BOTH,
        "",
        f"i = {V} get-tuple-element(h), index=0 j = {V} get-tuple-element(h), index=1 "
        f"k = {V} negate(i) w = {V} reverse(k), dimensions={{0}} l = {V} floor(j) "
        f"ROOT e = {V} subtract(w, l)",
        gives=PAIR,
    )
    found = opcodes(text)
    assert Opcode.NEGATE in found
    assert Opcode.FLOOR not in found


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


def test_an_old_root_that_orders_others_stays() -> None:
    text = program(*DIFFERENT, "", "ROOT u = f32[4] negate(h)").replace(
        "tuple(r)", "tuple(r), control-predecessors={s}"
    )
    for branch in branches(moved(text)):
        assert [i.opcode for i in branch.instructions].count(Opcode.TUPLE) == 2
