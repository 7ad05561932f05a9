"""algsimp looks at each instruction a few times, however many there are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest

from hloopt.ir.instruction import Instruction
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.passes.rewriting.rules.rule import Candidates, RuleTable
from hloopt.text import parse_module

_BLOCK = (
    "a{n} = f32[4,6]{{1,0}} add(r{m}, z) "
    "t{n} = f32[6,4]{{1,0}} transpose(a{n}), dimensions={{1,0}} "
    "h{n} = f32[4,6]{{1,0}} transpose(t{n}), dimensions={{1,0}} "
    "l{n} = f32[24]{{0}} reshape(h{n}) v{n} = f32[4,6]{{1,0}} reshape(l{n}) "
    "w{n} = f32[4,6]{{1,0}} negate(v{n}) x{n} = f32[4,6]{{1,0}} negate(w{n}) "
    "r{n} = f32[4,6]{{1,0}} tanh(x{n})\n"
)


def _chain(blocks: int) -> str:
    """Blocks of eight instructions, of which one is left."""
    body = "".join(_BLOCK.format(n=n, m=n - 1) for n in range(1, blocks + 1))
    return (
        "HloModule m\nENTRY e {\nr0 = f32[4,6]{1,0} parameter(0) c = f32[] constant(0) "
        f"z = f32[4,6]{{1,0}} broadcast(c), dimensions={{}}\n{body}"
        f"ROOT r = f32[4,6]{{1,0}} tanh(r{blocks})\n}}\n"
    )


def test_visits_of_an_instruction_do_not_become_more(monkeypatch: pytest.MonkeyPatch) -> None:
    visits = 0
    fitting = RuleTable.fitting

    def counted(instructions: Iterable[Instruction]) -> Iterator[Instruction]:
        nonlocal visits
        for instruction in instructions:
            visits += 1
            yield instruction

    def counting(
        table: RuleTable, instructions: Iterable[Instruction]
    ) -> Iterator[tuple[Instruction, Candidates]]:
        return fitting(table, counted(instructions))

    monkeypatch.setattr(RuleTable, "fitting", counting)
    each = []
    for blocks in (250, 1000):
        module, visits = parse_module(_chain(blocks)), 0
        assert create_pass("algsimp").run(module, PassContext())
        assert sum(1 for _ in module.instructions()) == blocks + 2
        each.append(visits / blocks)
    assert each[1] <= 1.2 * each[0]
    assert each[1] < 100
