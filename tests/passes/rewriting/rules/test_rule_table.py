"""The rules that a table finds for an instruction by what it reads."""

from __future__ import annotations

import pytest

from hloopt.ir import Instruction
from hloopt.pass_framework.base import PassContext
from hloopt.passes.rewriting.rules import Match, either, op, rule, splat, value
from hloopt.passes.rewriting.rules.constants import splat_value
from hloopt.passes.rewriting.rules.engine import RuleEngine, Settings
from hloopt.passes.rewriting.rules.rule import Candidates, RuleTable
from hloopt.text import parse_module


def candidates(table: RuleTable, instruction: Instruction) -> Candidates:
    return dict(table.fitting([instruction])).get(instruction, ())


def names(table: RuleTable, instruction: Instruction) -> list[str]:
    return [each.name for each, _ in candidates(table, instruction)]


@rule(op("multiply", "x", splat(2), any_order=True))
def double(m: Match) -> Instruction:
    """2·x → x + x."""
    return m.build.add(m.x, m.x)


@rule(op("multiply", "a", splat(1), any_order=True))
def drop_one(m: Match) -> Instruction:
    """a·1 → a."""
    return m.a


@rule(op("multiply", op("negate", op("add", "x", "y")), op("broadcast", op("iota"))))
def drop_two_levels(m: Match) -> Instruction:
    """-(x + y)·broadcast(iota) → x, which is not so."""
    return m.x


@rule(op("add", "x", splat().named("c")))
def keep_constant(m: Match) -> Instruction:
    """x + c → c, which is not so."""
    return m.c


@rule(op("multiply", op("convert", value("p").of_type("pred")), "a"))
def select_instead(m: Match) -> Instruction:
    """convert(pred)·a → a, which is not so."""
    return m.a


@rule(op("multiply", value("x").scalar(), "y"))
def drop_scalar(m: Match) -> Instruction:
    """x·y → x for scalars, which is not so."""
    return m.x


def test_a_condition_on_the_signature_is_asked_once_for_all_that_agree_in_it() -> None:
    asked: list[str] = []

    def is_vector(root: Instruction) -> bool:
        asked.append(root.name)
        return root.shape.rank == 1

    @rule(op("negate", "x"), signature=is_vector)
    def drop(m: Match) -> Instruction:
        """-x → x, which is not so."""
        return m.x

    text = """HloModule m
    ENTRY e {
      a = f32[4] parameter(0)
      b = f32[] parameter(1)
      c = f32[4] negate(a)
      d = f32[4] negate(a)
      f = f32[] negate(b)
      g = f32[] negate(b)
      ROOT r = (f32[4], f32[4], f32[], f32[]) tuple(c, d, f, g)
    }"""
    module = parse_module(text)
    table = RuleTable([drop])
    assert RuleEngine(module, table, PassContext(), Settings()).run_all()
    assert [i.name for i in module.entry.root.operands] == ["a", "a", "f", "g"]
    assert asked == ["c", "f"]


def test_candidates_have_the_orders_of_operands_that_may_fit() -> None:
    module = parse_module("""HloModule m
    ENTRY e {
      a = f32[4] parameter(0)
      two = f32[] constant(2)
      spread = f32[4] broadcast(two), dimensions={}
      sum = f32[4] add(a, a)
      ROOT scaled = f32[4] multiply(spread, sum)
    }""")
    table = RuleTable([double])
    ((rule_found, pattern),) = candidates(table, module["scaled"])
    assert rule_found is double
    assert len(pattern.in_orders()) == 1
    assert not candidates(table, module["sum"])


@pytest.mark.parametrize(
    ("left", "right", "found"),
    [
        ("negate(sum)", "broadcast(one), dimensions={}", ["drop-one"]),
        ("broadcast(one), dimensions={}", "negate(sum)", ["drop-one"]),
        ("negate(sum)", "broadcast(row), dimensions={1}", ["drop-one"]),
        ("negate(sum)", "broadcast(scalar), dimensions={}", []),
        ("negate(sum)", "broadcast(two), dimensions={}", []),
        ("negate(sum)", "broadcast(count), dimensions={1}", ["drop-two-levels"]),
        ("negate(a)", "broadcast(count), dimensions={1}", []),
        ("add(a, a)", "broadcast(count), dimensions={1}", []),
    ],
)
def test_candidates_fit_what_is_below_the_operands(left: str, right: str, found: list[str]) -> None:
    module = parse_module(f"""HloModule m
    ENTRY e {{
      a = f32[2,4] parameter(0)
      scalar = f32[] parameter(1)
      one = f32[] constant(1)
      two = f32[] constant(2)
      row = f32[4] broadcast(one), dimensions={{}}
      count = f32[4] iota(), iota_dimension=0
      sum = f32[2,4] add(a, a)
      left = f32[2,4] {left}
      right = f32[2,4] {right}
      ROOT r = f32[2,4] multiply(left, right)
    }}""")
    assert names(RuleTable([drop_one, drop_two_levels]), module["r"]) == found


def test_candidates_are_told_apart_by_values_and_by_shapes_below() -> None:
    """One table for all: what it knows of one instruction must not be taken for another's."""
    ones, twos = ", ".join(["1"] * 40), ", ".join(["2"] * 40)
    module = parse_module(f"""HloModule m
    ENTRY e {{
      a = f32[40] parameter(0)
      p = pred[40] parameter(1)
      n = s32[40] parameter(2)
      s = f32[] parameter(3)
      one = f32[40] constant({{{ones}}})
      two = f32[40] constant({{{twos}}})
      from_pred = f32[40] convert(p)
      from_number = f32[40] convert(n)
      by_two = f32[40] multiply(a, two)
      by_one = f32[40] multiply(a, one)
      numbers = f32[40] multiply(from_number, a)
      chosen = f32[40] multiply(from_pred, a)
      scalars = f32[] multiply(s, s)
      t = (f32[40], f32[40], f32[40], f32[40]) tuple(by_two, by_one, numbers, chosen)
      ROOT r = ((f32[40], f32[40], f32[40], f32[40]), f32[]) tuple(t, scalars)
    }}""")
    table = RuleTable([drop_one, select_instead, drop_scalar])
    found = {
        i.name: [r.name for r, _ in rules] for i, rules in table.fitting(module.entry.instructions)
    }
    assert found == {
        "by_one": ["drop-one"],
        "chosen": ["select-instead"],
        "scalars": ["drop-scalar"],
    }


@pytest.mark.parametrize("payload", ["nan", "5", "{" + ", ".join(["nan"] * 40) + "}"])
def test_a_splat_of_any_value_may_be_nan(payload: str) -> None:
    shape = "f32[40]" if payload.startswith("{") else "f32[]"
    module = parse_module(f"""HloModule m
    ENTRY e {{
      a = {shape} parameter(0)
      c = {shape} constant({payload})
      ROOT r = {shape} add(a, c)
    }}""")
    table = RuleTable([keep_constant])
    assert names(table, module["r"]) == ["keep-constant"]
    module["c"].set_payload("5")
    assert names(table, module["r"]) == (["keep-constant"] if shape == "f32[]" else [])


def test_what_is_known_of_an_operand_is_asked_once_for_all_that_agree_in_it() -> None:
    asked: list[str] = []

    def grows(reshape: Instruction) -> bool:
        asked.append(reshape.name)
        return reshape.operands[0].shape.rank < reshape.shape.rank

    @rule(op("negate", op("reshape", "x").where_known(grows)))
    def drop(m: Match) -> Instruction:
        """-reshape(x) → x, which is not so."""
        return m.x

    module = parse_module("""HloModule m
    ENTRY e {
      a = f32[4] parameter(0)
      b = f32[2,2,1] parameter(1)
      c = f32[2,2] reshape(a)
      d = f32[2,2] reshape(b)
      f = f32[2,2] reshape(a)
      nc = f32[2,2] negate(c)
      nd = f32[2,2] negate(d)
      nf = f32[2,2] negate(f)
      ROOT r = (f32[2,2], f32[2,2], f32[2,2]) tuple(nc, nd, nf)
    }""")
    table = RuleTable([drop])
    assert [i.name for i, _ in table.fitting(module.entry.instructions)] == ["nc", "nf"]
    assert asked == ["c", "d"]


def test_the_shape_of_a_constant_tells_broadcasts_of_it_apart() -> None:
    @rule(op("negate", op("broadcast").where_known(lambda x: not x.operands[0].shape.dimensions)))
    def drop(m: Match) -> Instruction:
        """-broadcast(scalar) → its operand, which is not so."""
        return m.root.operands[0]

    module = parse_module("""HloModule m
    ENTRY e {
      one = f32[1] constant({1})
      scalar = f32[] constant(1)
      b = f32[4] broadcast(one), dimensions={0}
      c = f32[4] broadcast(scalar), dimensions={}
      nb = f32[4] negate(b)
      nc = f32[4] negate(c)
      ROOT r = (f32[4], f32[4]) tuple(nb, nc)
    }""")
    assert [i.name for i, _ in RuleTable([drop]).fitting(module.entry.instructions)] == ["nc"]


def test_alternatives_of_another_opcode_make_no_candidate() -> None:
    @rule(either(op("transpose", "x"), op("reshape", op("transpose", "x"))))
    def drop(m: Match) -> Instruction:
        """A chain of both → x, which is not so."""
        return m.x

    module = parse_module("""HloModule m
    ENTRY e {
      a = f32[2,3] parameter(0)
      t = f32[3,2] transpose(a), dimensions={1,0}
      r = f32[6] reshape(t)
      n = f32[6] negate(r)
      ROOT s = f32[3,2] reshape(n)
    }""")
    assert [i.name for i, _ in RuleTable([drop]).fitting(module.entry.instructions)] == ["t", "r"]


@pytest.mark.parametrize("count", [1, 40])
def test_0_and_minus_0_are_told_apart(count: int) -> None:
    @rule(op("negate", op("constant").where_known(lambda c: repr(splat_value(c)) == "-0.0")))
    def drop(m: Match) -> Instruction:
        """-(-0) → -0, which is not so."""
        return m.root.operands[0]

    module = parse_module(f"""HloModule m
    ENTRY e {{
      a = f32[{count}] constant({{{", ".join(["0"] * count)}}})
      b = f32[{count}] constant({{{", ".join(["-0"] * count)}}})
      na = f32[{count}] negate(a)
      nb = f32[{count}] negate(b)
      ROOT r = (f32[{count}], f32[{count}]) tuple(na, nb)
    }}""")
    assert [i.name for i, _ in RuleTable([drop]).fitting(module.entry.instructions)] == ["nb"]


def test_a_name_that_stands_for_two_operands_makes_no_candidate_of_unlike_ones() -> None:
    @rule(op("subtract", "x", "x"))
    def drop(m: Match) -> Instruction:
        """x - x → x, which is not so."""
        return m.x

    module = parse_module("""HloModule m
    ENTRY e {
      a = f32[4] parameter(0)
      b = f32[4] parameter(1)
      n = f32[4] negate(a)
      unlike = f32[4] subtract(a, n)
      alike = f32[4] subtract(a, b)
      equal = f32[4] subtract(n, n)
      ROOT r = (f32[4], f32[4], f32[4]) tuple(unlike, alike, equal)
    }""")
    table = RuleTable([drop])
    found = dict(table.fitting(module.entry.instructions))
    assert [i.name for i in found] == ["alike", "equal"]
    matched = [i.name for i, rules in found.items() if rules[0][1].match(i) is not None]
    assert matched == ["equal"]


def test_a_match_does_not_ask_again_for_what_the_table_knows() -> None:
    asked: list[str] = []

    def is_asked(instruction: Instruction) -> bool:
        asked.append(instruction.name)
        return True

    known = op("reshape", value("x").where_shape(lambda _: is_asked(module["a"])))
    below = op("abs", value("y").where_known(is_asked))

    @rule(op("add", known.where_known(is_asked), op("negate", below)))
    def drop(m: Match) -> Instruction:
        """reshape(x) - |y| → reshape(x), which is not so."""
        return m.root.operands[0]

    module = parse_module("""HloModule m
    ENTRY e {
      a = f32[4] parameter(0)
      b = f32[2,2] parameter(1)
      c = f32[2,2] reshape(a)
      d = f32[2,2] abs(b)
      n = f32[2,2] negate(d)
      ROOT r = f32[2,2] add(c, n)
    }""")
    ((_, pattern),) = candidates(RuleTable([drop]), module["r"])
    assert asked == ["c", "a"]
    found = pattern.match(module["r"])
    assert found == {"x": module["a"], "y": module["b"]}
    assert asked == ["c", "a", "b"]
