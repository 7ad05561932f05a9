"""Live ranges of buffers by a schedule, against XLA's definitions followed one by one."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from tests.scheduling.mixed_programs import mixed_program
from tests.scheduling.programs import names, scheduled

from hloopt.analysis.cost.sizes import leaf_bytes
from hloopt.analysis.dataflow import NOTHING, Dataflow
from hloopt.ir import Computation, Instruction, Module
from hloopt.memory.buffers import Buffers
from hloopt.scheduling.memory.peak import Peak
from hloopt.scheduling.memory.pressure import BufferLife, Pressure
from hloopt.scheduling.memory.profile import usage_over_time
from hloopt.text import parse_module


@dataclass
class PlainLife:
    """The beginnings and ends of the buffers of a module."""

    flow: Dataflow
    buffers: Buffers
    first: dict[int, Instruction] = field(default_factory=dict)
    chain: dict[int, tuple[Instruction, ...]] = field(default_factory=dict)
    last: dict[int, Instruction] = field(default_factory=dict)
    below: dict[Computation, set[int]] = field(default_factory=dict)
    peaks: dict[Computation, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.number = {v: n for n, b in enumerate(self.buffers.all) for v in b.values}
        self._entered: set[Computation] = set()
        self._walk(self.flow.module.entry, ())
        self._measure(self.flow.module.entry, set())

    def held(self, instruction: Instruction, *, top: bool = False) -> list[int]:
        """The buffers of an instruction's shape, or of the top of it, that count."""
        held = self.flow.held[instruction]
        return [
            self.number[value]
            for value in self.flow.members(held[:1] if top else held)
            if value != NOTHING and not self.buffers.all[self.number[value]].color
        ]

    def callees(self, instruction: Instruction) -> list[Computation]:
        return [c for c in instruction.called if not c.is_fusion and c in self.flow.scope.orders]

    def _walk(self, computation: Computation, path: tuple[Instruction, ...]) -> None:
        self._entered.add(computation)
        for instruction in computation.instructions:
            for callee in self.callees(instruction):
                if callee not in self._entered:
                    self._walk(callee, (*path, instruction))
            for buffer in self.held(instruction):
                if buffer not in self.first:
                    self.first[buffer], self.chain[buffer] = instruction, path
            for operand in instruction.operands:
                self.last.update(dict.fromkeys(self.held(operand), instruction))

    def size(self, buffer: int) -> int:
        return leaf_bytes(self.flow.shape(self.buffers.all[buffer].values[0]))

    def is_argument(self, buffer: int) -> bool:
        first = self.first[buffer]
        return first.opcode == "parameter" and first.parent.is_entry

    def allocated(self, instruction: Instruction) -> list[int]:
        top = instruction.opcode in ("get-tuple-element", "bitcast")
        held = [buffer for o in instruction.operands for buffer in self.held(o, top=top)]
        return [buffer for buffer in held if not self.is_argument(buffer)]

    def released(self, instruction: Instruction) -> set[int]:
        if instruction.opcode == "parameter":
            return set()
        return {b for b in self.held(instruction) if self._begins(b, instruction)}

    def _begins(self, buffer: int, instruction: Instruction) -> bool:
        defines = any(
            self.flow.definer[value] is instruction for value in self.buffers.all[buffer].values
        )
        is_in_chain = instruction in self.chain[buffer]
        return (defines or is_in_chain) and (self.first[buffer] is instruction or is_in_chain)

    def _measure(self, computation: Computation, live: set[int]) -> None:
        self.below[computation] = set(live)
        live, before = set(live), self._bytes(live)
        peak = 0
        for instruction in reversed(list(computation.instructions)):
            for callee in self.callees(instruction):
                if callee not in self.below:
                    self._measure(callee, live)
            peak = max(peak, self._bytes(live) - before + self.inside(instruction))
            live |= {*self.allocated(instruction)}
            peak = max(peak, self._bytes(live) - before)
            live -= self.released(instruction)
        self.peaks[computation] = peak

    def inside(self, instruction: Instruction) -> int:
        return max((self.peaks[callee] for callee in self.callees(instruction)), default=0)

    def _bytes(self, buffers: set[int]) -> int:
        return sum(map(self.size, buffers))


def lives(text: str) -> tuple[PlainLife, BufferLife, Module]:
    module = parse_module(text)
    flow = Dataflow.of(module)
    buffers = Buffers.of(flow)
    return PlainLife(flow, buffers), BufferLife.of(flow, buffers, leaf_bytes), module


@pytest.mark.parametrize("seed", range(8))
def test_buffers_begin_and_end_where_xla_says(seed: int) -> None:
    plain, life, module = lives(mixed_program(seed, gpu=seed % 2 == 0))
    for computation in life.states:
        for instruction in computation.instructions:
            assert life.allocated(instruction) == plain.allocated(instruction)
            assert {*life.released(instruction)} == plain.released(instruction)
            assert life.peak_inside(instruction) == plain.inside(instruction)
    found = {computation: set(state.live_below) for computation, state in life.states.items()}
    assert found == plain.below
    assert {c: state.peak for c, state in life.states.items()} == plain.peaks
    assert life.peak == max(plain.peaks.values())
    assert {n: life.first_definition(n) for n in plain.first} == plain.first
    assert {n: life.last_user(n) for n in plain.last} == plain.last
    assert [life.size[n] for n in plain.first] == [plain.size(n) for n in plain.first]
    assert all(life.last_user(n) is None for n in plain.first if n not in plain.last)
    assert module.entry in life.states


@pytest.mark.parametrize("seed", range(8))
def test_top_down_buffers_begin_with_results_and_end_with_the_last_use(seed: int) -> None:
    plain, life, module = lives(mixed_program(seed, gpu=seed % 2 == 0))
    for computation in life.states:
        for instruction in computation.instructions:
            top = instruction.opcode in ("get-tuple-element", "bitcast")
            held = plain.held(instruction, top=top)
            begun = [buffer for buffer in held if not plain.is_argument(buffer)]
            assert life.allocated_top_down(instruction) == begun
            users = {instruction}
            if instruction.opcode == "async-start":
                operation = instruction.called[0].root
                users |= {operation, *(callee.root for callee in operation.called)}
            ended = {b for o in instruction.operands for b in plain.held(o)}
            assert {*life.released_top_down(instruction)} == {
                buffer for buffer in ended if plain.last[buffer] in users
            }
    assert module.entry in life.states


@pytest.mark.parametrize("seed", range(6))
def test_the_peak_is_made_of_the_buffers_alive_there(seed: int) -> None:
    """The first call of a computation says what it needs; here that is true of all."""
    plain, life, module = lives(mixed_program(seed))
    peak = Peak.of(life)
    assert peak.size == life.states[module.entry].peak == sum(b.size for b in peak.buffers)
    assert [b.size for b in peak.buffers] == sorted((b.size for b in peak.buffers), reverse=True)
    order = {instruction: n for n, instruction in enumerate(peak.at.parent.instructions)}
    for buffer in peak.buffers:
        if buffer.instruction in order:
            assert order[buffer.instruction] <= order[peak.at]
        if buffer.until in order:
            assert order[peak.at] <= order[buffer.until]
    assert peak.at.parent in plain.peaks


@pytest.mark.parametrize("seed", range(4))
def test_usage_over_time_has_what_callers_keep_alive_and_reaches_the_peak(seed: int) -> None:
    plain, life, _ = lives(mixed_program(seed))
    for computation, below in plain.below.items():
        kept = sum(map(plain.size, below))
        usage = usage_over_time(life, computation)
        assert len(usage) == len(list(computation.instructions))
        assert max(usage) == kept + plain.peaks[computation]


def test_only_the_default_memory_space_counts() -> None:
    text = """
  p = f32[8] parameter(0)
  a = f32[8] negate(p)
  s = (f32[8]{0:S(5)}, f32[8], u32[]) copy-start(a)
  d = f32[8]{0:S(5)} copy-done(s)
  t = (f32[8], f32[8]{0:S(5)}, u32[]) copy-start(d)
  ROOT r = f32[8] copy-done(t)"""
    _, life, module = lives(scheduled(text))
    by_name = {i.name: i for i in module.entry.instructions}
    sizes = {
        name: sum(life.size[buffer] for buffer in life.released(instruction))
        for name, instruction in by_name.items()
    }
    table = 32 + 32 + 4  # a tuple counts as its leaves
    assert sizes == {"p": 0, "a": 32, "s": table + 4, "d": 0, "t": table + 32 + 4, "r": 0}
    assert names(module)[0] == "p"


def test_where_memory_is_only_freed_nothing_is_needed_beside() -> None:
    module = parse_module("ENTRY e { p = f32[4] parameter(0) ROOT n = f32[4] negate(p) }")
    flow = Dataflow.of(module)
    life = BufferLife.of(flow, Buffers.of(flow), leaf_bytes)
    pressure = Pressure(life, range(len(life.size)))
    assert pressure.peak == 0
    pressure.move((), range(len(life.size)), 0)
    assert pressure.change == -pressure.initial < 0
    assert pressure.peak == 0
