"""Fingerprints are equal for what computes the same by its text, and for nothing else."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from tests.analysis.content.test_bodies import SWAPPED, TEXT

from hloopt.analysis.fingerprint import LEFT_OUT, Fingerprints, differing_classes, fingerprint
from hloopt.files import load
from hloopt.ir.clone import clone_module
from hloopt.ir.module import Module
from hloopt.ir.ordering import stable_order
from hloopt.text import parse_module, print_module

UNORDERED = TEXT.replace(", is_scheduled=true", "")


def of(text: str, *more: str) -> str:
    return fingerprint(parse_module(text), ignored=LEFT_OUT | set(more))


def renamed(text: str) -> str:
    """The text with every name after `%` changed, and the module's."""
    numbers: dict[str, str] = {}

    def other(match: re.Match[str]) -> str:
        return numbers.setdefault(match[0], f"%n{len(numbers) * 7919 % 100_003}")

    return re.sub(r"%[\w.\-]+", other, text.replace("HloModule ", "HloModule other_", 1))


def reordered(module: Module, seed: int) -> str:
    """The text with the instructions of each computation in another order of dependences."""
    choose = random.Random(seed)  # any order will do
    lines = print_module(module).splitlines()
    for computation in module.computations.values():
        names = {f"%{i.name}" for i in computation.instructions}
        defined = [re.match(r"  (?:ROOT )?(%[\w.\-]+) = ", line) for line in lines]
        places = [n for n, found in enumerate(defined) if found and found[1] in names]
        by_name = {found[1]: lines[n] for n in places if (found := defined[n])}
        waiting = {f"%{i.name}": {f"%{o.name}" for o in (*i.operands, *i.control_predecessors)}
                   for i in stable_order(computation)}  # fmt: skip
        order: list[str] = []
        while waiting:
            ready = sorted(name for name, before in waiting.items() if before <= set(order))
            order.append(choose.choice(ready))
            del waiting[order[-1]]
        for place, name in zip(places, order, strict=True):
            lines[place] = by_name[name]
    return "\n".join(lines)


def without_metadata(text: str) -> str:
    return re.sub(r", metadata=\{(?:[^{}\"]|\"[^\"]*\")*\}", "", text)


@pytest.fixture(
    scope="module",
    params=["branches", "fori_loop", "mlp_psum_8dev", "nested_calls", "ring_matmul_8dev"],
)
def module(request: pytest.FixtureRequest, root: Path) -> Module:
    return load(str(root / "testdata" / f"{request.param}.before_optimizations.hlo"))


def test_names_metadata_and_the_order_of_no_schedule_are_left_out(module: Module) -> None:
    expected = fingerprint(module)
    text = print_module(module)
    assert without_metadata(text) != text
    assert of(renamed(text)) == expected
    assert of(without_metadata(text)) == expected
    assert of(text.replace(".py", "_of_this_host.py")) == expected
    assert fingerprint(clone_module(module)[0]) == expected
    orders = {reordered(module, seed) for seed in range(3)}
    assert orders != {text}
    assert {of(each) for each in orders} == {expected}


def test_what_is_left_out_counts_if_it_is_asked_for(module: Module) -> None:
    text = print_module(module)
    for name, other in (("names", renamed(text)), ("metadata", without_metadata(text))):
        both = LEFT_OUT - {name}
        kept = fingerprint(parse_module(text), ignored=both)
        assert kept != fingerprint(parse_module(other), ignored=both)
        assert kept != fingerprint(module)


def test_every_operand_and_every_opcode_counts(module: Module) -> None:
    expected = fingerprint(module)
    text = print_module(module)
    for line in text.splitlines():
        if " add(" in line:
            assert of(text.replace(line, line.replace(" add(", " multiply("))) != expected
        operands = re.search(r"subtract\((%[\w.]+), (%[\w.]+)\)", line)
        if operands and operands[1] != operands[2]:
            swapped = f"subtract({operands[2]}, {operands[1]})"
            assert of(text.replace(line, line.replace(operands[0], swapped))) != expected


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("abs(p)", "sqrt(p)"),
        ("add(x, x)", "multiply(x, x)"),
        ("add(c, a)", "add(a, c)"),
        ("HloModule m", "HloModule m, replica_count=2"),
        ("f32[4]", "f32[5]"),
        ("f32[4]", "bf16[4]"),
    ],
)
def test_content_counts(old: str, new: str) -> None:
    assert of(UNORDERED) != of(UNORDERED.replace(old, new))


def test_the_order_of_a_schedule_counts_unless_it_is_left_out() -> None:
    assert of(TEXT) != of(TEXT.replace(*SWAPPED))
    assert of(TEXT, "order") == of(TEXT.replace(*SWAPPED), "order")
    assert of(UNORDERED) == of(UNORDERED.replace(*SWAPPED))


def test_two_of_one_value_are_not_one_with_two_users() -> None:
    one = """ENTRY e { p = f32[] parameter(0)  n = f32[] negate(p)  a = f32[] abs(n)
      b = f32[] sqrt(n)  ROOT t = (f32[], f32[]) tuple(a, b) }"""
    two = one.replace("n = f32[] negate(p)", "n = f32[] negate(p)  m = f32[] negate(p)")
    two = two.replace("sqrt(n)", "sqrt(m)")
    assert of(one) != of(two)
    assert of(two) == of(two.replace("abs(n)", "abs(m)").replace("sqrt(m)", "sqrt(n)"))


def test_constants_and_bodies_of_custom_calls_count_without_their_locations() -> None:
    text = """ENTRY e { c = f32[2] constant({1, 2})  ROOT k = f32[2] custom-call(c),
      custom_call_target="kernel", backend_config="%0 = tt.load %p loc(\\"a.py\\":1:2)" }"""
    assert of(text) == of(text.replace("a.py", "/home/b.py").replace(":1:2", ":3:4"))
    assert of(text) != of(text.replace("tt.load", "tt.store"))
    assert of(text) != of(text.replace("{1, 2}", "{1, 3}"))
    assert of(text) == of(text.replace("{1, 2}", "{1.0, 2e0}"))
    assert of(text, "backend-config") == of(text.replace("tt.load", "x"), "backend-config")
    several = parse_module(text), parse_module(text.replace("a.py", "b.py"))
    with_locations = [fingerprint(each, ignored={"names"}) for each in several]
    assert with_locations[0] != with_locations[1]


def test_a_long_constant_counts_as_it_is_read() -> None:
    values = ", ".join(map(str, range(300)))
    text = f"ENTRY e {{ ROOT c = s32[300] constant({{{values}}}) }}"
    assert of(text) == of(text.replace(", ", ",  "))
    assert of(text) != of(text.replace("299", "298"))


def test_the_classes_that_two_modules_differ_in_are_found() -> None:
    def prints(text: str) -> Fingerprints:
        return Fingerprints(parse_module(text))

    first = prints(TEXT)
    assert differing_classes(first, prints(renamed(TEXT))) == ()
    assert differing_classes(first, prints(TEXT.replace(*SWAPPED))) == ("order",)
    assert differing_classes(first, prints(TEXT.replace("abs", "sqrt"))) is None
    with_replicas = prints(TEXT.replace("is_scheduled=true", "is_scheduled=true, replica_count=2"))
    assert differing_classes(first, with_replicas) == ("header",)


def test_deep_and_wide_modules_take_no_recursion() -> None:
    chain = "\n".join(f"a{n} = f32[] negate(a{n - 1})" for n in range(1, 20_000))
    assert of(f"ENTRY e {{ a0 = f32[] parameter(0)\n{chain}\nROOT r = f32[] copy(a19999) }}")
    wide = "\n".join(f"a{n} = f32[] negate(p)" for n in range(20_000))
    assert of(f"ENTRY e {{ p = f32[] parameter(0)\n{wide}\nROOT r = f32[] copy(p) }}")
