"""A Hypothesis strategy for programs whose loops gather, reduce, scatter and permute arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from hypothesis import strategies as st

_Draw = Callable[[st.SearchStrategy[Any]], Any]
_T = TypeVar("_T")
_ROWS, _COLUMNS = 4, 4
_ARRAY = f"f32[{_ROWS},{_COLUMNS}]"
_REDUCTIONS = """plus {
  plus.x = f32[] parameter(0)
  plus.y = f32[] parameter(1)
  ROOT plus.s = f32[] add(plus.x, plus.y)
}

also_plus {
  also.x = f32[] parameter(0)
  also.y = f32[] parameter(1)
  ROOT also.s = f32[] add(also.y, also.x)
}

most {
  most.x = f32[] parameter(0)
  most.y = f32[] parameter(1)
  ROOT most.s = f32[] maximum(most.x, most.y)
}
"""


class _Body:
    """A computation while it is drawn; all `values` are arrays of one shape."""

    def __init__(self, draw: _Draw, partitions: int, opcodes: Sequence[str]) -> None:
        self.draw = draw
        self.partitions = partitions
        self.opcodes = opcodes
        self.lines: list[str] = []
        self.values: list[str] = []

    def choose(self, values: Sequence[_T]) -> _T:
        chosen: _T = self.draw(st.sampled_from(values))
        return chosen

    def value(self) -> str:
        return self.choose(self.values)

    def add(self, shape: str, rest: str) -> str:
        name = f"v{len(self.lines)}"
        self.lines.append(f"  {name} = {shape} {rest}")
        return name

    def fill(self, count: int) -> None:
        for _ in range(count):
            opcode = self.choose((*self.opcodes, *self.opcodes, "negate", "add"))
            self.values.append(self._operation(opcode))

    def _operation(self, opcode: str) -> str:
        match opcode:
            case "negate":
                return self.add(_ARRAY, f"negate({self.value()})")
            case "add":
                return self.add(_ARRAY, f"add({self.value()}, {self.value()})")
            case "all-reduce":
                return self.add(
                    _ARRAY, f"all-reduce({self.value()}), {self._groups()[1]}, {self._reduction()}"
                )
            case "collective-permute":
                pairs = self.choose(_PAIRS[self.partitions])
                return self.add(
                    _ARRAY,
                    f"collective-permute({self.value()}), channel_id={len(self.lines) + 1}, "
                    f"source_target_pairs={pairs}",
                )
            case "all-gather":
                return self._all_gather(self.value())
            case "all-gather of a broadcast":
                row = self.add("f32[4]", f"reduce({self.value()}, zero), dimensions={{1}}, "
                               "to_apply=plus")  # fmt: skip
                if self.choose((True, False)):
                    row = self.add("f32[]", f"reduce({row}, zero), dimensions={{0}}, to_apply=plus")
                    return self._all_gather(self.add(_ARRAY, f"broadcast({row}), dimensions={{}}"))
                dimension = self.choose((0, 1))
                return self._all_gather(
                    self.add(_ARRAY, f"broadcast({row}), dimensions={{{dimension}}}")
                )
            case _:
                return self._reduce_scatter()

    def _all_gather(self, operand: str) -> str:
        size, groups = self._groups()
        dimension = self.choose((0, 1))
        sizes = [_ROWS, _COLUMNS]
        sizes[dimension] *= size
        gathered = self.add(
            f"f32[{sizes[0]},{sizes[1]}]",
            f"all-gather({operand}), {groups}, dimensions={{{dimension}}}",
        )
        start = (size - 1) * _ROWS if dimension == 0 else 0
        ends = f"[{start}:{start + _ROWS}], [0:{_COLUMNS}]"
        return self.add(_ARRAY, f"slice({gathered}), slice={{{ends}}}")

    def _reduce_scatter(self) -> str:
        size, groups = self._groups()
        dimension = self.choose((0, 1))
        sizes = [_ROWS, _COLUMNS]
        sizes[dimension] //= size
        part = self.add(
            f"f32[{sizes[0]},{sizes[1]}]",
            f"reduce-scatter({self.value()}), {groups}, dimensions={{{dimension}}}, "
            f"{self._reduction()}",
        )
        column = self.add("f32[]", f"reduce({part}, zero), dimensions={{0,1}}, to_apply=plus")
        return self.add(_ARRAY, f"broadcast({column}), dimensions={{}}")

    def _reduction(self) -> str:
        return f"to_apply={self.choose(('plus', 'plus', 'also_plus', 'most'))}"

    def _groups(self) -> tuple[int, str]:
        """The size of the groups of a collective, and the attributes that give them."""
        size, groups = self.choose(_GROUPS[self.partitions])
        return size, (
            f"channel_id={len(self.lines) + 1}, replica_groups={groups}, "
            "use_global_device_ids=true"
        )  # fmt: skip


_GROUPS = {
    1: [(1, "{{0}}")],
    2: [(2, "{{0,1}}"), (2, "[1,2]<=[2]"), (1, "{{0},{1}}")],
    4: [
        *((4, "{{0,1,2,3}}"), (4, "{{0,1,2,3}}"), (4, "[1,4]<=[4]"), (2, "{{0,1},{2,3}}")),
        *((2, "[2,2]<=[4]"), (2, "{{0,2},{1,3}}"), (2, "{{2,3},{0,1}}")),
    ],
}
_PAIRS = {
    1: ["{{0,0}}", "{}"],
    2: ["{{0,1}}", "{{1,0}}", "{{0,1},{1,0}}", "{}"],
    4: [
        *("{{0,1},{1,2},{2,3}}", "{{3,0}}", "{{0,1},{1,2}}", "{{2,0}}", "{{0,3}}", "{{2,3}}"),
        *("{{1,0},{2,1},{3,2}}", "{{0,1},{2,3}}", "{{0,1},{1,0}}", "{{1,0},{2,3}}"),
    ],
}


def _used(lines: Sequence[str], name: str) -> bool:
    return any(f"({name})" in line or f"({name}," in line or f" {name})" in line for line in lines)


@st.composite
def collective_module_texts(draw: _Draw, *opcodes: str) -> str:
    """A module for 1, 2 or 4 partitions: a loop of three trips over two arrays, and its results.

    `opcodes` are the collectives it may have; "all-gather of a broadcast" is one, too.
    """
    partitions = draw(st.sampled_from((1, 2, 4, 4)))
    body = _Body(draw, partitions, opcodes)
    state = f"(s32[], {_ARRAY}, {_ARRAY})"
    body.add(state, "parameter(0)")
    body.add("s32[]", "get-tuple-element(v0), index=0")
    body.values = [body.add(_ARRAY, f"get-tuple-element(v0), index={i}") for i in (1, 2)]
    body.fill(draw(st.integers(1, 8)))
    ends = [value for value in body.values if not _used(body.lines, value)]
    while len(ends) > 2:
        ends.append(body.add(_ARRAY, f"add({ends.pop(0)}, {ends.pop(0)})"))
    results = (ends + body.values[:2])[:2]
    lines = "\n".join(body.lines)
    return f"""HloModule m, num_partitions={partitions}

{_REDUCTIONS}
body {{
  zero = f32[] constant(0)
{lines}
  one = s32[] constant(1)
  next = s32[] add(v1, one)
  ROOT result = {state} tuple(next, {results[0]}, {results[1]})
}}

condition {{
  c0 = {state} parameter(0)
  c1 = s32[] get-tuple-element(c0), index=0
  three = s32[] constant(3)
  ROOT more = pred[] compare(c1, three), direction=LT
}}

ENTRY main {{
  start = s32[] constant(0)
  p0 = {_ARRAY} parameter(0)
  p1 = {_ARRAY} parameter(1)
  initial = {state} tuple(start, p0, p1)
  ROOT loop = {state} while(initial), condition=condition, body=body
}}
"""
