"""Models of time: what instructions cost, and how long operations take from start to done."""

from __future__ import annotations

import pytest

from hloopt.analysis.latency import (
    CostTable,
    FixedModel,
    GpuFixedModel,
    LatencyModel,
    Origin,
    TableModel,
    Time,
)
from hloopt.analysis.latency.model import stated_latency
from hloopt.diagnostics import HloError
from hloopt.ir import Instruction
from hloopt.text import parse_module

TEXT = """
HloModule m, num_partitions=32
f { x = f32[8] parameter(0) ROOT y = f32[8] negate(x) }
add { x.1 = f32[] parameter(0) y.1 = f32[] parameter(1) ROOT z = f32[] add(x.1, y.1) }
ENTRY e {
  p = f32[8] parameter(0)
  loop = f32[8] fusion(p), kind=kLoop, calls=f
  out = f32[8] fusion(p), kind=kOutput, calls=f
  input = f32[8] fusion(p), kind=kInput, calls=f
  call = f32[8] custom-call(p), custom_call_target="a"
  timed = f32[8] custom-call(p), custom_call_target="a",
    frontend_attributes={latency_metadata="2500"}
  s = f32[8] all-reduce-start(p), to_apply=add
  d = f32[8] all-reduce-done(s)
  sync = f32[8] all-reduce-start(p), to_apply=add,
    backend_config={"collective_backend_config":{"is_sync":true}}
  sync-done = f32[8] all-reduce-done(sync)
  cp = (f32[8], f32[8]) collective-permute-start(p), source_target_pairs={{0,1}},
    frontend_attributes={_xla_gpu_collective_stream="p2p"}
  cp-done = f32[8] collective-permute-done(cp)
  t = token[] after-all()
  send = (f32[8], u32[], token[]) send(p, t), channel_id=1
  send-done = token[] send-done(send), channel_id=1
  copied = f32[8,4]{0,1} transpose(w), dimensions={1,0}
  ROOT r = f32[8] add(d, d)
}
""".replace("  copied", "  w = f32[4,8]{1,0} parameter(1)\n  copied")


@pytest.fixture
def named() -> dict[str, Instruction]:
    return {i.name: i for i in parse_module(TEXT).instructions()}


def test_fixed_sizes(named: dict[str, Instruction]) -> None:
    model = FixedModel()
    costs = {name: model.node_cost(named[name]) for name in ("p", "loop", "out", "input", "call")}
    assert costs == {"p": 1, "loop": 1000, "out": 5000, "input": 1, "call": 1}
    assert model.latency(named["s"], named["d"]) == 5000
    assert model.latency(named["send"], named["send-done"]) == 1
    assert model.latency(named["p"], named["loop"]) == 1


def test_fixed_sizes_of_gpus(named: dict[str, Instruction]) -> None:
    model = GpuFixedModel()
    costs = {name: model.node_cost(named[name]) for name in ("p", "call", "timed", "copied")}
    assert costs == {"p": 0, "call": 1000, "timed": 2.5, "copied": 0}
    assert model.latency(named["s"], named["d"]) == 5000
    assert model.latency(named["sync"], named["sync-done"]) == 5000  # as the compiler answered
    assert model.latency(named["send"], named["send-done"]) == 5000
    assert model.latency(named["cp"], named["cp-done"]) == 3 * 6 * 5000 + 14 * 5000


def test_tables_answer_by_name(named: dict[str, Instruction]) -> None:
    table = CostTable.parse('{"node": {"loop": 7}, "latency": {"s": 33}}', "t")
    model = TableModel(table, FixedModel())
    assert model.node_cost(named["loop"]) == 7
    assert model.node_cost(named["out"]) == 5000
    assert model.node_time(named["out"]).origin is Origin.GUESS
    assert model.latency(named["s"], named["d"]) == 33
    assert model.latency(named["cp"], named["cp-done"]) == 5000


@pytest.mark.parametrize("text", ["-1", "many", "1" + "0" * 400, "9" * 5000], ids=len)
def test_a_stated_latency_that_is_no_time_is_not_stated(text: str) -> None:
    body = (
        f'ENTRY e {{ p = f32[] parameter(0), frontend_attributes={{latency_metadata="{text}"}} }}'
    )
    (parameter,) = parse_module(f"HloModule m\n{body}").entry.parameters
    assert stated_latency(parameter, 1000.0) is None


@pytest.mark.parametrize(
    "text",
    [
        *("{", "[]", '{"nodes": {}}', '{"node": {"a": "1"}}', "[" * 100_000),
        *(f'{{"node": {{"a": {number}}}}}' for number in ("-1", "NaN", "1e400", "1e308", "true")),
    ],
    ids=lambda text: text[:30],
)
def test_malformed_tables_are_refused(text: str) -> None:
    with pytest.raises(HloError):
        CostTable.parse(text, "t")


class _Slower(TableModel):
    """A model that defines no cycles of its own, derived from one that does."""

    def node_time(self, instruction: Instruction) -> Time:
        return Time(7, Origin.STATED)

    def edge_time(self, source: Instruction, target: Instruction) -> Time:
        return Time(9, Origin.STATED)


class _Table(TableModel):
    """A model that defines neither times nor cycles."""


def test_cycles_are_those_of_the_times_of_the_same_class(named: dict[str, Instruction]) -> None:
    table, base = CostTable({"p": 3}, {"s": 4}), GpuFixedModel()

    def cycles(model: LatencyModel) -> tuple[float, float]:
        return model.node_cost(named["p"]), model.latency(named["s"], named["d"])

    assert cycles(_Slower(table, base)) == (7, 9)
    assert cycles(_Table(table, base)) == (3, 4)
