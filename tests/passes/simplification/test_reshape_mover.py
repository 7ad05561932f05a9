"""Corners of moving reshapes: layouts, element types, blocked neighbours, effects."""

from __future__ import annotations

from functools import partial

import pytest
from tests.passes.checked_run import run_checked

from hloopt.equivalence import Reference, RunSettings
from hloopt.ir import Instruction, Module, Opcode
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module
from hloopt.verifier import verify_module

move = partial(run_checked, "reshape-mover")


def described(instruction: Instruction) -> str:
    """An instruction with its operands, without names: `reshape f32[2]{0} (add f32[2,1]…)`."""
    operands = ", ".join(map(described, instruction.operands))
    return f"{instruction.opcode} {instruction.shape.text} ({operands})"


def root(module: Module) -> str:
    return described(module.entry.root)


def test_an_operand_in_another_layout_is_rearranged_back() -> None:
    module = move("""ENTRY e {
  p = f32[2,3]{0,1} parameter(0)
  q = f32[2,3]{1,0} parameter(1)
  t = f32[3,2]{1,0} transpose(p), dimensions={1,0}
  u = f32[3,2]{1,0} transpose(q), dimensions={1,0}
  ROOT c = f32[3,2]{1,0} add(t, u)
}""")
    assert root(module) == (
        "transpose f32[3,2]{1,0} (add f32[2,3]{0,1} (parameter f32[2,3]{0,1} (), "
        "transpose f32[2,3]{0,1} (transpose f32[3,2]{1,0} (parameter f32[2,3]{1,0} ()))))"
    )


def test_the_inverse_of_a_transpose_of_three_dimensions() -> None:
    module = move("""ENTRY e {
  p = f32[2,3,5] parameter(0)
  s = f32[] parameter(1)
  t = f32[5,2,3] transpose(p), dimensions={2,0,1}
  b = f32[5,2,3] broadcast(s), dimensions={}
  ROOT c = f32[5,2,3] add(t, b)
}""")
    orders = [i.attributes["dimensions"] for i in module.instructions(Opcode.TRANSPOSE)]
    assert sorted(orders) == ["{1,2,0}", "{2,0,1}"]


def test_packed_elements_are_packed_where_they_are_only() -> None:
    module = move("""ENTRY e {
  p = s4[6]{0:E(4)} parameter(0)
  r = s4[2,3]{1,0:E(4)} reshape(p)
  ROOT c = f32[2,3]{1,0} convert(r)
}""")
    assert root(module) == (
        "reshape f32[2,3]{1,0} (convert f32[6]{0} (parameter s4[6]{0:E(4)} ()))"
    )


def test_one_user_that_cannot_move_keeps_its_neighbours() -> None:
    move(
        """ENTRY e {
  p = f32[6] parameter(0)
  q = f32[6] parameter(1)
  o = f32[6] parameter(2)
  r = f32[2,3] reshape(p)
  s = f32[2,3] reshape(q)
  u = f32[2,3] reshape(o)
  a = f32[2,3] add(r, s)
  b = f32[2,3] add(s, u)
  c = f32[2,3] negate(u)
  d = f32[2,2] dot(r, r), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  ROOT t = (f32[2,3], f32[2,3], f32[2,3], f32[2,2]) tuple(a, b, c, d)
}""",
        changes=False,
    )


def test_random_numbers_for_one_user_are_cheap() -> None:
    text = """ENTRY e {
  p = f32[6] parameter(0)
  z = f32[] constant(0)
  r = f32[2,3] reshape(p)
  g = f32[2,3] rng(z, z), distribution=rng_uniform
  a = f32[2,3] add(r, g)
  ROOT t = (f32[2,3], f32[2,3]) tuple(a, LAST)
}"""
    move(text.replace("LAST", "a"))
    move(text.replace("LAST", "g"), changes=False)


def test_rearrangements_that_change_nothing_do_not_move() -> None:
    move(
        """ENTRY e {
  p = f32[6] parameter(0)
  q = f32[2,3] parameter(1)
  r = f32[6] reshape(p)
  t = f32[2,3] transpose(q), dimensions={0,1}
  a = f32[6] negate(r)
  b = f32[2,3] negate(t)
  ROOT c = (f32[6], f32[2,3]) tuple(a, b)
}""",
        changes=False,
    )


def test_fusions_and_dynamic_sizes_stay() -> None:
    move(
        """f { x = f32[2,3] parameter(0) ROOT n = f32[2,3] negate(x) }
ENTRY e {
  p = f32[6] parameter(0)
  d = f32[<=6] parameter(1)
  r = f32[2,3] reshape(p)
  a = f32[2,3] fusion(r), kind=kLoop, calls=f
  s = f32[<=6,1] reshape(d)
  b = f32[<=6,1] negate(s)
  ROOT c = (f32[2,3], f32[<=6,1]) tuple(a, b)
}""",
        changes=False,
    )


def moves(operand: str, dimensions: str, broadcast: str, source: str, **options: object) -> bool:
    """Whether `add(reshape(p), broadcast(q))` becomes a reshape of a sum of `source`."""
    text = f"""ENTRY e {{
  p = f32[{source}] parameter(0)
  q = f32[{operand}] parameter(1)
  r = f32[{broadcast}] reshape(p)
  b = f32[{broadcast}] broadcast(q), dimensions={{{dimensions}}}
  ROOT a = f32[{broadcast}] add(r, b)
}}"""
    module = parse_module(text)
    reference = Reference(module, RunSettings())
    changed = create_pass("reshape-mover", options).run(module, PassContext())
    assert verify_module(module) == []
    assert reference.compare(module) is None
    return changed


@pytest.mark.parametrize(
    ("operand", "dimensions", "broadcast", "source", "cheap"),
    [
        ("6", "0", "6,4", "2,3,4", True),
        ("1,6,1", "0,1,3", "1,6,4,1", "2,3,4", True),
        ("1", "1", "6,1", "2,3", True),
        ("2,4", "0,2", "2,3,4", "6,4", False),
        ("6,4", "0,1", "6,4,5", "2,3,4,5", False),
        ("6,5", "0,2", "6,4,5", "6,2,2,5", True),
        ("6,5", "0,2", "6,4,5", "6,20", False),
        ("5,6", "2,0", "6,4,5", "6,2,2,5", False),
        ("6,1", "1,0", "1,6,4", "2,3,4", False),
        ("0", "0", "0,4", "4,0", True),
    ],
)
def test_broadcasts_are_cheap_to_reshape_by_what_they_fill(
    operand: str, dimensions: str, broadcast: str, source: str, cheap: bool
) -> None:
    assert moves(operand, dimensions, broadcast, source, reshape_of_1d_broadcast_is_cheap=True) is (
        cheap
    )
    assert not moves(operand, dimensions, broadcast, source)


def test_a_transposed_broadcast_whose_own_dimensions_are_out_of_order_is_not_cheap() -> None:
    text = """ENTRY e {
  p = f32[3,2] parameter(0)
  q = f32[DIMS] parameter(1)
  r = f32[2,3] transpose(p), dimensions={1,0}
  b = f32[2,3] broadcast(q), dimensions={ORDER}
  ROOT a = f32[2,3] add(r, b)
}"""
    move(text.replace("DIMS", "3,2").replace("ORDER", "1,0"), changes=False)
    move(text.replace("DIMS", "2").replace("ORDER", "0"))
