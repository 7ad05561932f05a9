"""Scheduled modules with asynchronous operations, and runs of them with the times we say."""

from __future__ import annotations

from hypothesis import strategies as st

from hloopt.analysis.latency import CostTable, FixedModel, TableModel
from hloopt.ir import Module
from hloopt.scheduling.config import SchedulerConfig
from hloopt.scheduling.resources.tracker import ResourceTracker
from hloopt.simulation import Loops, Simulation, Streams, simulate
from hloopt.text import parse_module


def scheduled(body: str, more: str = "") -> Module:
    """A module whose entry has these instructions, in this order."""
    return parse_module(f"HloModule m, is_scheduled=true\n{more}\nENTRY e {{\n{body}\n}}")


def table(node: dict[str, float], latency: dict[str, float]) -> TableModel:
    """A model that knows these times; anything else takes 0 or 1 cycles."""
    return TableModel(CostTable(node, latency), FixedModel())


def streams(all_reduces: int = 1) -> Streams:
    """Those that all targets share, with room for so many all-reduces."""
    config = SchedulerConfig(all_reduce_overlap_limit=all_reduces)
    return Streams(ResourceTracker(config.resolved()))


def run(
    module: Module,
    node: dict[str, float],
    latency: dict[str, float] | None = None,
    loops: Loops = "trips",
    all_reduces: int = 1,
) -> Simulation:
    """A run with instructions that take no time but for `node`."""
    free = {instruction.name: 0.0 for instruction in module.instructions()}
    return simulate(module, table(free | node, latency or {}), streams(all_reduces), loops=loops)


_START = (
    "(f32[8], f32[8]) collective-permute-start({}), source_target_pairs={{{{0,1}}}}",
    "(f32[8], f32[8], u32[]) copy-start({})",
    "f32[8] all-reduce-start({}), replica_groups={{}}, to_apply=add",
)
_DONE = ("collective-permute-done", "copy-done", "all-reduce-done")
ADD = "add { x = f32[] parameter(0) y = f32[] parameter(1) ROOT sum = f32[] add(x, y) }"


@st.composite
def programs(draw: st.DrawFn) -> tuple[Module, TableModel]:
    """Arithmetic, operations and synchronous collectives in any valid order, with whole times."""
    values = ["p"]
    lines = ["p = f32[8] parameter(0)"]
    open_starts: list[tuple[str, int]] = []
    node: dict[str, float] = {"p": 0.0}
    latency: dict[str, float] = {}
    for number in range(draw(st.integers(1, 24))):
        action = draw(st.sampled_from(("work", "start", "done", "synchronous")))
        if action == "start":
            kind = draw(st.integers(0, len(_START) - 1))
            name = f"start{number}"
            lines.append(f"{name} = {_START[kind].format(draw(st.sampled_from(values)))}")
            open_starts.append((name, kind))
            latency[name] = float(draw(st.integers(0, 40)))
        elif action == "done" and open_starts:
            start, kind = open_starts.pop(draw(st.integers(0, len(open_starts) - 1)))
            name = f"done{start[5:]}"
            lines.append(f"{name} = f32[8] {_DONE[kind]}({start})")
            values.append(name)
        elif action == "synchronous":
            name = f"all{number}"
            operand = draw(st.sampled_from(values))
            lines.append(f"{name} = f32[8] all-reduce({operand}), to_apply=add")
            values.append(name)
        else:
            name = f"w{number}"
            operands = draw(st.lists(st.sampled_from(values), min_size=2, max_size=2))
            lines.append(f"{name} = f32[8] add({', '.join(operands)})")
            values.append(name)
        node[name] = float(draw(st.integers(0, 20)))
    for start, kind in open_starts:
        name = f"done{start[5:]}"
        lines.append(f"{name} = f32[8] {_DONE[kind]}({start})")
        values.append(name)
        node[name] = 1.0
    lines.append(f"ROOT r = f32[8] add({values[-1]}, {draw(st.sampled_from(values))})")
    node["r"] = 0.0
    return scheduled("\n".join(lines), ADD), table(node, latency)
