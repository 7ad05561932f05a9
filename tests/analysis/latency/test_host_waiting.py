"""Waiting for copies and transfers to and from the host."""

from __future__ import annotations

from hloopt.analysis.latency import FixedModel, Origin, Time
from hloopt.analysis.latency.statistics import host_waiting, schedule_statistics
from hloopt.ir import Instruction
from hloopt.ir.opcode import STARTS
from hloopt.text import parse_module

TEXT = """
HloModule m, is_scheduled=true
ENTRY e {
  p = f32[8] parameter(0)
  h = f32[8]{0:S(5)} parameter(1)
  to.s = (f32[8]{0:S(5)}, f32[8], u32[]) copy-start(p)
  to.d = f32[8]{0:S(5)} copy-done(to.s)
  from.s = (f32[8], f32[8]{0:S(5)}, u32[]) copy-start(h)
  from.d = f32[8] copy-done(from.s)
  near.s = (f32[8], f32[8], u32[]) copy-start(p)
  near.d = f32[8] copy-done(near.s)
  g.s = (f32[8], f32[16]) all-gather-start(p), dimensions={0}
  g.d = f32[16] all-gather-done(g.s)
  t = token[] after-all()
  r.s = (f32[8], u32[], token[]) recv(t), is_host_transfer=true
  r.d = (f32[8], token[]) recv-done(r.s), is_host_transfer=true
  ROOT all = tuple(to.d, from.d, near.d, g.d, r.d)
}
"""


class Slow(FixedModel):
    """A model in which every operation waits."""

    def edge_time(self, source: Instruction, target: Instruction) -> Time:
        return Time(5000.0, Origin.CONSTANT)


def test_only_what_is_with_the_host_counts() -> None:
    module = parse_module(TEXT)

    def is_start(instruction: Instruction) -> bool:
        return instruction.opcode in STARTS

    def is_done(instruction: Instruction) -> bool:
        return instruction.name.endswith(".d")

    order = list(module.entry.instructions)
    statistics = schedule_statistics(order, Slow(), is_start, is_done)
    waits = {done.name: wait for done, wait in statistics.exposed.items()}
    assert min(waits.values()) > 0
    assert host_waiting(statistics) == sum(waits[name] for name in ("to.d", "from.d", "r.d"))
