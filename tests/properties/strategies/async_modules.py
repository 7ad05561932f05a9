"""A Hypothesis strategy for scheduled programs on two devices with operations under way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

_Draw = Callable[[st.SearchStrategy[Any]], Any]
_SHAPE = "f32[4]"
_GROUPS = "replica_groups=[1,2]<=[2], use_global_device_ids=true"
_HEADER = """HloModule m, is_scheduled=true, num_partitions=2

sum {
  sum.a = f32[] parameter(0)
  sum.b = f32[] parameter(1)
  ROOT sum.c = f32[] add(sum.a, sum.b)
}

condition {
  c.state = (s32[], f32[4]) parameter(0)
  c.count = s32[] get-tuple-element(c.state), index=0
  c.end = s32[] constant(2)
  ROOT c.goes-on = pred[] compare(c.count, c.end), direction=LT
}

body {
  b.state = (s32[], f32[4]) parameter(0)
  b.count = s32[] get-tuple-element(b.state), index=0
  b.value = f32[4] get-tuple-element(b.state), index=1
  b.one = s32[] constant(1)
  b.start = (f32[4], f32[4]) collective-permute-start(b.value), channel_id=99,
    source_target_pairs={{0,1},{1,0}}
  b.sine = f32[4] sine(b.value)
  b.done = f32[4] collective-permute-done(b.start)
  b.sum = f32[4] add(b.sine, b.done)
  b.next = s32[] add(b.count, b.one)
  ROOT b.result = (s32[], f32[4]) tuple(b.next, b.sum)
}
"""


class _Program:
    """The entry while it is drawn; `values` are what there is of shape f32[4]."""

    def __init__(self, draw: _Draw, *, grouped: bool) -> None:
        self.draw = draw
        self.grouped = grouped
        self.lines = [f"  p{n} = {_SHAPE} parameter({n})" for n in range(2)]
        self.values = ["p0", "p1"]
        self.open: list[tuple[str, str]] = []
        """Operations that are under way: the opcode of the done, and the start."""
        self.names = 0

    def value(self) -> str:
        chosen: str = self.draw(st.sampled_from(self.values))
        return chosen

    def add(self, rest: str, shape: str = _SHAPE) -> str:
        self.names += 1
        name = f"v{self.names}"
        if self.grouped and self.draw(st.integers(0, 3)) == 0:
            group = self.draw(st.integers(0, 2))
            rest += f', frontend_attributes={{_scheduling_group_id="{group}"}}'
        elif self.values[2:] and self.draw(st.integers(0, 5)) == 0:
            rest += f", control-predecessors={{{self.draw(st.sampled_from(self.values[2:]))}}}"
        self.lines.append(f"  {name} = {shape} {rest}")
        return name

    def step(self) -> None:
        kind = self.draw(st.integers(0, 9))
        if kind < 4:
            self.values.append(self.add(f"add({self.value()}, {self.value()})"))
        elif kind < 5:
            self.values.append(self.add(f"negate({self.value()})"))
        elif kind < 8:
            self.begin()
        elif self.open:
            self.end()
        else:
            self.loop()

    def begin(self) -> None:
        channel = f"channel_id={self.names + 1}"
        opcode, shape, attributes = self.draw(
            st.sampled_from(
                (
                    ("all-gather", "(f32[4], f32[8])", f"{_GROUPS}, {channel}, dimensions={{0}}"),
                    ("all-reduce", _SHAPE, f"{_GROUPS}, {channel}, to_apply=sum"),
                    (
                        "collective-permute",
                        "(f32[4], f32[4])",
                        f"{channel}, source_target_pairs={{{{0,1}},{{1,0}}}}",
                    ),
                    ("copy", "(f32[4], f32[4], u32[])", ""),
                )
            )
        )
        operand = self.value()
        if opcode == "all-reduce":  # it works in place: nothing else may read what it changes
            operand = self.add(f"negate({operand})")
        operand = f"{opcode}-start({operand})"
        start = self.add(f"{operand}, {attributes}" if attributes else operand, shape)
        self.open.append((opcode, start))

    def end(self) -> None:
        opcode, start = self.open.pop(self.draw(st.integers(0, len(self.open) - 1)))
        if opcode == "all-gather":
            done = self.add(f"all-gather-done({start})", "f32[8]")
            self.values.append(self.add(f"slice({done}), slice={{[2:6]}}"))
        else:
            self.values.append(self.add(f"{opcode}-done({start})"))

    def loop(self) -> None:
        zero = self.add("constant(0)", "s32[]")
        state = "(s32[], f32[4])"
        before = self.add(f"tuple({zero}, {self.value()})", state)
        after = self.add(f"while({before}), condition=condition, body=body", state)
        self.values.append(self.add(f"get-tuple-element({after}), index=1"))

    def text(self) -> str:
        while self.open:
            self.end()
        results = self.values[-4:]
        shape = ", ".join([_SHAPE] * len(results))
        root = f"  ROOT r = ({shape}) tuple({', '.join(results)})"
        return "\n".join([_HEADER, "ENTRY main {", *self.lines, root, "}", ""])


@st.composite
def async_modules(draw: _Draw, *, grouped: bool = False) -> str:
    """Texts of modules whose schedules leave something to improve; with scheduling groups, which
    may contradict each other, if `grouped`."""
    program = _Program(draw, grouped=grouped)
    program.begin()
    for _ in range(draw(st.integers(3, 20))):
        program.step()
    return program.text()
