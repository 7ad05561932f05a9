"""Passes do not look through a whole module or computation for each thing that they do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from tests.passes.collectives.windowed_einsum.programs import adding, together

from hloopt.ir import Computation, Instruction, Module, Opcode
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.passes.simplification.algsimp.algebraic_simplifier import AlgebraicSimplifier
from hloopt.text import parse_module


def folded_sums(count: int) -> str:
    sums = [f"c{n} = s32[] constant({n}) a{n} = s32[] add(c{n}, c{n})" for n in range(count)]
    return _module(sums, [f"a{n}" for n in range(count)])


def aliased_buffers(count: int) -> str:
    parts = [f"p{n} = s32[] parameter({n}) a{n} = s32[] negate(p{n})" for n in range(count)]
    return _module(parts, [f"a{n}" for n in range(count)])


def _module(lines: list[str], results: list[str]) -> str:
    shapes = ", ".join(["s32[]"] * len(results))
    root = f"ROOT t = ({shapes}) tuple({', '.join(results)})"
    return f"HloModule m ENTRY e {{ {' '.join(lines)} {root} }}"


Texts = Callable[[int], str]


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often something looks at all instructions, at parameters, or simplifies a module."""
    looks: Counter[str] = Counter()
    parameters = vars(Computation)["parameters"].fget
    all_instructions, simplify = Module.instructions, AlgebraicSimplifier.run

    def counted_instructions(module: Module, opcode: Opcode | None = None) -> object:
        looks["instructions"] += 1
        return all_instructions(module, opcode)

    def counted_parameters(computation: Computation) -> list[Instruction]:
        looks["parameters"] += 1
        found: list[Instruction] = parameters(computation)
        return found

    def counted_simplify(
        simplifier: AlgebraicSimplifier, module: Module, context: PassContext
    ) -> bool:
        looks["simplifications"] += 1
        return simplify(simplifier, module, context)

    monkeypatch.setattr(Module, "instructions", counted_instructions)
    monkeypatch.setattr(Computation, "parameters", property(counted_parameters))
    monkeypatch.setattr(AlgebraicSimplifier, "run", counted_simplify)
    return looks


def looks_of(looks: Counter[str], name: str, text: str) -> Counter[str]:
    """The looks of one run of a pass, which changes something."""
    module = parse_module(text)
    looks.clear()
    assert create_pass(name).run(module, PassContext())
    return looks.copy()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("constant-folding", folded_sums),
        ("optimize-input-output-buffer-alias", aliased_buffers),
    ],
)
def test_looks_do_not_grow_with_the_module(looks: Counter[str], name: str, text: Texts) -> None:
    assert looks_of(looks, name, text(5)) == looks_of(looks, name, text(50))


def test_looks_do_not_grow_with_the_loops(looks: Counter[str]) -> None:
    few, many = (
        looks_of(looks, "windowed-einsum-handler", together(*[adding()] * count))
        for count in (1, 6)
    )
    assert few["simplifications"] == many["simplifications"] == 1
    assert few["instructions"] == many["instructions"]
