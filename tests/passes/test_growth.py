"""Passes do not look through a whole module or computation for each thing that they do."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hloopt.ir import Computation, Instruction, Module, Opcode
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
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


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("constant-folding", folded_sums),
        ("optimize-input-output-buffer-alias", aliased_buffers),
    ],
)
def test_looks_do_not_grow_with_the_module(
    monkeypatch: pytest.MonkeyPatch, name: str, text: Callable[[int], str]
) -> None:
    looks = 0
    all_instructions, parameters = Module.instructions, vars(Computation)["parameters"].fget

    def counted_instructions(module: Module, opcode: Opcode | None = None) -> object:
        nonlocal looks
        looks += 1
        return all_instructions(module, opcode)

    def counted_parameters(computation: Computation) -> list[Instruction]:
        nonlocal looks
        looks += 1
        found: list[Instruction] = parameters(computation)
        return found

    monkeypatch.setattr(Module, "instructions", counted_instructions)
    monkeypatch.setattr(Computation, "parameters", property(counted_parameters))
    numbers = []
    for count in (5, 50):
        module = parse_module(text(count))
        looks = 0
        assert create_pass(name).run(module, PassContext())
        numbers.append(looks)
    assert numbers[0] == numbers[1]
