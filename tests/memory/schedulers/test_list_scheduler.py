"""The list scheduler beside a slow one that follows the words of its rules."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.memory.modules import module_text

from hloopt.ir import Module, Opcode
from hloopt.ir.ordering import post_order
from hloopt.memory.schedulers import Algorithm, schedule_module
from hloopt.text import parse_module

_ALWAYS = (10**9, 10**9)
_NOT_COUNTED = (Opcode.PARAMETER, Opcode.CONSTANT)


@dataclass
class SlowListScheduler:
    """Looks at everything that is ready, each time, of an entry whose operations have one result
    or a tuple of arrays that get-tuple-element takes apart."""

    module: Module
    order: list[str] = field(default_factory=list)
    queued: dict[str, tuple[tuple[int, int], int]] = field(default_factory=dict)
    """Priority and number of what is ready."""

    def __post_init__(self) -> None:
        entry = self.module.entry
        self.instructions = {i.name: i for i in entry.instructions}
        self.place = {i.name: n for n, i in enumerate(post_order(entry))}
        self.holds = {
            name: self._holds(name) for name in sorted(self.place, key=self.place.__getitem__)
        }
        self.count = 0
        while len(self.order) < len(self.instructions):
            for name in self.instructions:
                self._note_if_ready(name)
            name = max(self.queued, key=lambda n: self.queued[n])
            del self.queued[name]
            before = {b: self._readers_left(b) for b in self._reads(name)}
            self.order.append(name)
            for user in self._users(name):
                self._note_if_ready(user)
            last = {b for b, count in before.items() if count == 2}
            self._look_again(name, last)

    def _holds(self, name: str) -> list[str]:
        """The parts of results that an instruction holds, by the instruction that makes them."""
        instruction = self.instructions[name]
        if instruction.opcode is Opcode.GET_TUPLE_ELEMENT:
            return [f"{instruction.operands[0].name} {instruction.tuple_index}"]
        parts = [f"{name} {n}" for n in range(len(instruction.shape.elements))]
        return [f"{name} table", *parts] if parts else [f"{name} 0"]

    def _size(self, part: str) -> int:
        name, _, index = part.partition(" ")
        shape = self.instructions[name].shape
        if index == "table":
            return 8 * len(shape.elements)
        return (shape.elements[int(index)] if shape.elements else shape).element_count()  # s8

    def _reads(self, name: str) -> set[str]:
        return {part for o in self.instructions[name].operands for part in self.holds[o.name]}

    def _readers_left(self, part: str) -> int:
        left = [n for n in self.instructions if n not in self.order and part in self._reads(n)]
        return len(left) + (part in self.holds[self.module.entry.root.name])

    def _users(self, name: str) -> list[str]:
        users = {user.name for user in self.instructions[name].users}
        return sorted(users, key=self.place.__getitem__)

    def _priority(self, name: str) -> tuple[int, int]:
        instruction = self.instructions[name]
        if instruction.shape.is_array and instruction.shape.element_count() == 1:
            return _ALWAYS
        freed = sum(
            self._size(part)
            for part in self._reads(name)
            if self._readers_left(part) == 1
            and self.instructions[part.partition(" ")[0]].opcode not in _NOT_COUNTED
        )
        makes = [part for part in self.holds[name] if part.startswith(f"{name} ")]
        made = 0 if instruction.opcode in _NOT_COUNTED else sum(map(self._size, makes))
        return freed - made, len(set(instruction.users))

    def _note_if_ready(self, name: str) -> None:
        if name in self.order or name in self.queued:
            return
        if all(operand.name in self.order for operand in self.instructions[name].operands):
            self._queue(name)

    def _queue(self, name: str) -> None:
        self.count += 1
        self.queued[name] = (self._priority(name), self.count)

    def _look_again(self, scheduled: str, last: set[str]) -> None:
        again: dict[str, None] = {}
        for operand in dict.fromkeys(o.name for o in self.instructions[scheduled].operands):
            if last & set(self.holds[operand]):
                again.update(dict.fromkeys(self._users(operand)))
        for name in again:
            if name in self.queued and self._priority(name) != self.queued[name][0]:
                self._queue(name)


@st.composite
def graphs(draw: st.DrawFn) -> str:
    """Entries of custom calls on arrays of bytes, some with two results."""
    lines = ["x0 = s8[8] parameter(0)", "x1 = s8[1] parameter(1)", "x2 = s8[2] constant({1, 2})"]
    arrays = ["x0", "x1", "x2"]
    for number in range(3, draw(st.integers(4, 14))):
        reads = draw(st.lists(st.sampled_from(arrays), min_size=1, max_size=3))
        sizes = draw(st.lists(st.sampled_from((1, 2, 5, 9)), min_size=1, max_size=2))
        shapes = [f"s8[{size}]" for size in sizes]
        shape = shapes[0] if len(shapes) == 1 else f"({', '.join(shapes)})"
        name = f"x{number}"
        lines.append(f'{name} = {shape} custom-call({", ".join(reads)}), custom_call_target="f"')
        if len(shapes) == 1:
            arrays.append(name)
            continue
        for index, part in enumerate(shapes):
            lines.append(f"{name}.{index} = {part} get-tuple-element({name}), index={index}")
            arrays.append(f"{name}.{index}")
    ends = draw(st.lists(st.sampled_from(arrays), min_size=1, max_size=3))
    return module_text(
        *lines,
        f'r = s8[3] custom-call({", ".join(ends)}), custom_call_target="f"',
        header="replica_count=1",
    )


def found_in(text: str) -> list[str]:
    module = parse_module(text)
    orders = schedule_module(module, Algorithm.LIST).orders
    return [instruction.name for instruction in orders[module.entry]]


@settings(max_examples=60)
@given(graphs())
def test_the_order_is_that_of_the_slow_scheduler(text: str) -> None:
    assert found_in(text) == SlowListScheduler(parse_module(text)).order


@pytest.mark.parametrize(
    ("infeed", "outfeed", "expected"),
    [
        ("", "", "tk a in v b k s c out r"),
        (', infeed_config="x"', "", "tk a b k s c out in v r"),
        ("", ', outfeed_config="y"', "tk a in v b k out s c r"),
    ],
)
def test_outfeeds_with_a_config_come_first_and_such_infeeds_last(
    infeed: str, outfeed: str, expected: str
) -> None:
    text = f"""HloModule m
ENTRY e {{
  a = s8[100] parameter(0)
  tk = token[] after-all()
  in = (s8[2], token[]) infeed(tk){infeed}
  b = s8[200] concatenate(a, a), dimensions={{0}}
  s = s8[50] slice(b), slice={{[0:50]}}
  c = s8[2] slice(s), slice={{[0:2]}}
  k = s8[9] slice(b), slice={{[0:9]}}
  out = token[] outfeed(k, tk){outfeed}, outfeed_shape=s8[9]
  v = s8[2] get-tuple-element(in), index=0
  ROOT r = s8[2] add(v, c)
}}"""
    assert found_in(text) == expected.split()
