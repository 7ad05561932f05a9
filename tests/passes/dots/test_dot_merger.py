"""Dots that share an operand become one: the same values, and no dot that needs itself."""

from __future__ import annotations

import random

import pytest
from tests.passes.checked_run import reasons_to_stay, run_equal

from hloopt.equivalence import Reference, RunSettings
from hloopt.ir import Opcode
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module
from hloopt.verifier import verify_module


def _brace(numbers: list[int]) -> str:
    return "{" + ",".join(map(str, numbers)) + "}"


def _text(numbers: list[int]) -> str:
    return ",".join(map(str, numbers))


class _Random:
    """Dots of one operand, behind transposes and reshapes, with others of random sizes."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        roles = [self.chance.choice("bcf") for _ in range(self.chance.randrange(1, 5))]
        self.shared = [(role, self.chance.choice((1, 2, 2, 4, 6))) for role in roles]
        self.lines = [f"x = f32[{_text([s for _, s in self.shared])}] parameter(0)"]
        self.results: list[tuple[str, list[int]]] = []

    def add_dot(self, number: int) -> None:
        chance, n = self.chance, number
        order = chance.sample(range(len(self.shared)), len(self.shared))
        dims = [self.shared[d] for d in order]
        self.lines.append(
            f"t{n} = f32[{_text([s for _, s in dims])}] transpose(x), dimensions={_brace(order)}"
        )
        if chance.random() < 0.5:  # split what is even, and put a 1 somewhere
            dims = [part for role, s in dims for part in self._split(role, s)]
        self.lines.append(f"v{n} = f32[{_text([s for _, s in dims])}] reshape(t{n})")
        frees = [("f", chance.choice((1, 2, 3))) for _ in range(chance.randrange(3))]
        pairs = [(d, role, size) for d, (role, size) in enumerate(dims) if role != "f"]
        others = [*[(d, role, size) for d, role, size in pairs], *[(-1, *f) for f in frees]]
        chance.shuffle(others)
        self.lines.append(f"o{n} = f32[{_text([s for *_, s in others])}] parameter({n + 1})")
        of_other = {d: place for place, (d, *_) in enumerate(others)}
        chance.shuffle(pairs)
        attributes = []
        is_left = chance.random() < 0.5
        sides = ("lhs", "rhs") if is_left else ("rhs", "lhs")
        for role, word in (("b", "batch"), ("c", "contracting")):
            own = [d for d, kind, _ in pairs if kind == role]
            attributes.append(f"{sides[0]}_{word}_dims={_brace(own)}")
            attributes.append(f"{sides[1]}_{word}_dims={_brace([of_other[d] for d in own])}")
        batch = [size for _, role, size in pairs if role == "b"]
        shared_free = [size for role, size in dims if role == "f"]
        other_free = [size for _, role, size in others if role == "f"]
        rest = [*shared_free, *other_free] if is_left else [*other_free, *shared_free]
        operands = f"v{n}, o{n}" if is_left else f"o{n}, v{n}"
        self.lines.append(
            f"d{n} = f32[{_text([*batch, *rest])}] dot({operands}), {', '.join(attributes)}"
        )
        self._use(n, [*batch, *rest])

    def _split(self, role: str, size: int) -> list[tuple[str, int]]:
        parts = [(role, 2), (role, size // 2)] if size % 2 == 0 else [(role, size)]
        return [*parts, ("f", 1)] if self.chance.random() < 0.2 else parts

    def _use(self, n: int, sizes: list[int]) -> None:
        self.results.append((f"d{n}", sizes))
        if self.chance.random() < 0.5:
            order = self.chance.sample(range(len(sizes)), len(sizes))
            moved = [sizes[d] for d in order]
            self.lines.append(
                f"r{n} = f32[{_text(moved)}] transpose(d{n}), dimensions={_brace(order)}"
            )
            flat = [1]
            for size in moved:
                flat[-1] *= size
                if self.chance.random() < 0.5:
                    flat.append(1)
            self.lines.append(f"q{n} = f32[{_text(flat)}] reshape(r{n})")
            self.results[-1:] = [(f"q{n}", flat)]
            if self.chance.random() < 0.5:
                self.results.append((f"d{n}", sizes))

    def module(self) -> str:
        names = ", ".join(name for name, _ in self.results)
        shapes = ", ".join(f"f32[{_text(sizes)}]" for _, sizes in self.results)
        body = "\n".join([*self.lines, f"ROOT r = ({shapes}) tuple({names})"])
        return f"HloModule m\nENTRY e {{\n{body}\n}}"


def test_random_dots_of_one_operand() -> None:
    changed = 0
    for seed in range(120):
        maker = _Random(seed)
        for number in range(maker.chance.randrange(2, 5)):
            maker.add_dot(number)
        text = maker.module()
        module = parse_module(text)
        assert verify_module(module) == [], text
        before = len([*module.instructions(Opcode.DOT)])
        if not create_pass("dot-merger").run(module, PassContext()):
            continue
        changed += 1
        assert verify_module(module) == [], text
        assert len([*module.instructions(Opcode.DOT)]) < before
        if seed % 3 == 0:
            wrong = Reference(parse_module(text), RunSettings()).compare(module, "rounding")
            assert wrong is None, text
    assert changed > 80


def _two(second: str = "", *, kind: str = "f32", middle: str = "") -> str:
    """Two dots of one left operand; `second` is about the other one."""
    return f"""HloModule m
ENTRY e {{
  x = {kind}[4,6] parameter(0)
  a = {kind}[6,3] parameter(1)
  b = {kind}[6,5] parameter(2)
  d = {kind}[4,3] dot(x, a), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  {middle}
  f = {kind}[4,5] dot(x, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}{second}
  ROOT r = ({kind}[4,3], {kind}[4,5]) tuple(d, f)
}}"""


def _dots(text: str, **options: object) -> int:
    return len([*run_equal("dot-merger", text, **options).instructions(Opcode.DOT)])


def _stay(text: str, **options: object) -> None:
    assert not create_pass("dot-merger", options).run(parse_module(text), PassContext())


def test_dots_that_differ_are_not_merged() -> None:
    assert _dots(_two()) == 1
    for second in (
        ", operand_precision={high,default}",
        ", algorithm=dot_tf32_tf32_f32",
        ', backend_config={"operation_queue_id":"1"}',
    ):
        _stay(_two(second))
    _stay(_two(), queue_id=lambda dot: int(dot.name == "f"))


def test_the_precision_stays_with_its_operand() -> None:
    text = """HloModule m
    ENTRY e {
      x = f32[4,6] parameter(0)
      a = f32[3,6] parameter(1)
      b = f32[5,6] parameter(2)
      d = f32[4,3] dot(x, a), lhs_contracting_dims={1}, rhs_contracting_dims={1},
        operand_precision={high,default}
      f = f32[5,4] dot(b, x), lhs_contracting_dims={1}, rhs_contracting_dims={1},
        operand_precision={default,high}
      ROOT r = (f32[4,3], f32[5,4]) tuple(d, f)
    }"""
    module = run_equal("dot-merger", text)
    (dot,) = module.instructions(Opcode.DOT)
    assert dot.operands[1].opcode is Opcode.PARAMETER
    assert dot.attributes["operand_precision"] == "{default,high}"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (_two(", control-predecessors={d}"), "it has control dependencies"),
        (_two().replace("[6,5]", "[6,0]").replace("[4,5]", "[4,0]"), "an array of it is empty"),
        (
            _two().replace("[6,5]", "[6,<=5]").replace("[4,5]", "[4,<=5]"),
            "it has dynamic dimensions",
        ),
        (
            _two().replace("b = f32[6,5] parameter(2)",
                           "n = s4[6,5] parameter(2)\n  b = f32[6,5] convert(n)"),
            "%b converts from s4",
        ),
    ],
)  # fmt: skip
def test_dots_that_are_never_merged(text: str, reason: str) -> None:
    assert reason in reasons_to_stay("dot-merger", text)


def test_truth_values_may_be_converted() -> None:
    text = _two().replace(
        "b = f32[6,5] parameter(2)", "n = pred[6,5] parameter(2)\n  b = f32[6,5] convert(n)"
    )
    assert _dots(text) == 1


_CHAIN = """HloModule m
ENTRY e {
  x = f32[4,4] parameter(0)
  a = f32[4,4] parameter(1)
  d = f32[4,4] dot(x, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  n = f32[4,4] tanh(d)
  ROOT f = f32[4,4] dot(x, n), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}"""


def test_a_dot_that_needs_the_other_one() -> None:
    reason = "the dots that it shares an operand with run before or after it, or are merged"
    assert reasons_to_stay("dot-merger", _CHAIN) == [reason] * 2


_CROSSED = """HloModule m
ENTRY e {
  x = f32[4,4] parameter(0)
  y = f32[4,4] parameter(1)
  a = f32[4,4] parameter(2)
  x1 = f32[4,4] dot(x, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  y1 = f32[4,4] dot(y, a), lhs_contracting_dims={0}, rhs_contracting_dims={1}
  n = f32[4,4] tanh(x1)
  m = f32[4,4] tanh(y1)
  y2 = f32[4,4] dot(y, n), lhs_contracting_dims={0}, rhs_contracting_dims={1}
  x2 = f32[4,4] dot(x, m), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = (f32[4,4], f32[4,4]) tuple(y2, x2)
}"""


def test_merges_that_only_together_would_make_a_cycle() -> None:
    """x1 and x2 could be merged, and y1 and y2: but not both."""
    assert _dots(_CROSSED) == 3


def test_one_dot_that_is_too_large_may_join() -> None:
    small, large = (4 * 6 + 6 * 3 + 4 * 3) * 4, (4 * 6 + 6 * 5 + 4 * 5) * 4
    assert _dots(_two(), max_size_to_merge=large) == 1
    assert _dots(_two(), max_size_to_merge=small) == 1
    reason = "it takes more than max_size_to_merge, and finds no smaller dot to join"
    assert reasons_to_stay("dot-merger", _two(), max_size_to_merge=small - 1) == [reason] * 2


def test_a_chain_that_gets_no_shorter_stays() -> None:
    text = _two(middle="t = f32[2,2,3] reshape(d)").replace(
        "(f32[4,3], f32[4,5]) tuple(d, f)", "(f32[2,2,3], f32[4,5]) tuple(t, f)"
    )
    module = run_equal("dot-merger", text)
    assert module.entry["t"].operands[0].opcode is Opcode.SLICE


def test_bitcasts_that_reorder_memory_end_chains() -> None:
    text = _two().replace("x = f32[4,6] parameter(0)", (
        "y = f32[6,4]{0,1} parameter(0)\n  x = f32[4,6]{1,0} bitcast(y)"
    ))  # fmt: skip
    module = run_equal("dot-merger", text)
    (dot,) = module.instructions(Opcode.DOT)
    assert dot.operands[0].opcode is Opcode.BITCAST


def test_an_effect_before_a_dot_stays() -> None:
    text = _two().replace("x = f32[4,6] parameter(0)", (
        "w = f32[4,6] parameter(0)\n"
        '  y = f32[4,6] custom-call(w), custom_call_target="f",'
        " custom_call_has_side_effect=true\n"
        "  x = f32[4,6] reshape(y)"
    ))  # fmt: skip
    module = parse_module(text)
    assert create_pass("dot-merger").run(module, PassContext())
    assert [*module.instructions(Opcode.CUSTOM_CALL)]
