"""The place where the ways from several nodes meet."""

from __future__ import annotations

import pytest

from hloopt.analysis.common_ancestors import nearest_common_ancestor_instructions
from hloopt.text import parse_module

TEXT = """ENTRY e {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = f32[] negate(a)
  d = f32[] add(a, b)
  f = f32[] subtract(a, b)
  g = f32[] add(c, d)
  late = f32[] sine(b), control-predecessors={c}
  lone = f32[] constant(1)
  ROOT r = (f32[], f32[], f32[]) tuple(f, g, late)
}
"""


@pytest.mark.parametrize(
    ("starts", "expected"),
    [
        ([], []),
        (["a"], ["a"]),
        (["a", "a"], ["a"]),
        (["a", "b"], ["d", "f"]),  # both are one step away
        (["a", "c"], ["c"]),  # a start that is an ancestor itself
        (["c", "d"], ["g"]),
        (["b", "c"], ["late"]),  # over a control edge
        (["a", "b", "g"], ["g"]),
        (["f", "g", "late"], ["r"]),
        (["a", "lone"], []),
    ],
)
def test_the_nearest_common_ancestors(starts: list[str], expected: list[str]) -> None:
    instructions = {i.name: i for i in parse_module(TEXT).entry.instructions}
    found = nearest_common_ancestor_instructions([instructions[name] for name in starts])
    assert [instruction.name for instruction in found] == expected


def test_long_ways_are_no_trouble() -> None:
    count = 100_000
    steps = "\n".join(f"  n{i} = f32[] negate({f'n{i - 1}' if i else 'p'})" for i in range(count))
    module = parse_module(
        f"ENTRY e {{\n  p = f32[] parameter(0)\n  q = f32[] parameter(1)\n{steps}\n"
        f"  ROOT r = f32[] add(n{count - 1}, q)\n}}\n"
    )
    found = nearest_common_ancestor_instructions(module.entry.parameters)
    assert found == [module.entry.root]
