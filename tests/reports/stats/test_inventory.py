"""Inventories of small modules, counted by hand, and totals that other reports have, too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from tests.checks.expecting import STEP, UNPARTITIONED

from hloopt import parse_module
from hloopt.analysis.async_operations import SYNC_COLLECTIVES
from hloopt.analysis.cost import CostAnalysis
from hloopt.files import load
from hloopt.ir.module import Module
from hloopt.reports.schedule.findings import ScheduleFindings
from hloopt.reports.schedule.run import ScheduleSettings
from hloopt.reports.stats.inventory import Row, take_inventory
from hloopt.reports.stats.record import changes
from hloopt.reports.stats.terminal import render_inventory

HEAD = """HloModule m, num_partitions=8
sum { x = f32[] parameter(0)  y = f32[] parameter(1)  ROOT z = f32[] add(x, y) }
"""
IOTA = "replica_groups=[2,4]<=[8], channel_id=1, use_global_device_ids=true"
REDUCE = f"all-reduce(a), {IOTA}, to_apply=sum"


def entry(*lines: str, computations: str = "") -> str:
    body = "\n".join(lines)
    return f"{HEAD}{computations}\nENTRY e {{\n  a = f32[16] parameter(0)\n{body}\n}}\n"


def loop(trips: str) -> str:
    return f"""body {{ s = (s32[], f32[16]) parameter(0)  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)  j = s32[] add(i, one)  a = f32[16] get-tuple-element(s), index=1
  r = f32[16] {REDUCE}  ROOT t = (s32[], f32[16]) tuple(j, r) }}
more {{ c = (s32[], f32[16]) parameter(0)  k = s32[] get-tuple-element(c), index=0
  n = s32[] {trips}  ROOT l = pred[] compare(k, n), direction=LT }}
"""


LOOPING = (
    "z = s32[] constant(0)  t = (s32[], f32[16]) tuple(z, a)",
    "ROOT w = (s32[], f32[16]) while(t), condition=more, body=body",
)
CALLED = f"f {{ a = f32[16] parameter(0)  ROOT r = f32[16] {REDUCE} }}\n"
SYNC = ("all-reduce", "sync", "f32", 4, 2, "")


def figures(rows: list[Row]) -> list[tuple[Any, ...]]:
    return [(row.key, row.count, row.runs, row.is_known, dict(row.amounts)) for row in rows]


def collectives(text: str) -> list[tuple[Any, ...]]:
    return figures(take_inventory(parse_module(text)).collectives)


def moved(count: int, payload: int = 64, wire: int = 96) -> dict[str, int]:
    return {"payload": payload * count, "wire": wire * count}


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        pytest.param(
            entry(f"ROOT r = f32[16] {REDUCE}"), [(SYNC, 1, 1, True, moved(1))], id="sync"
        ),
        pytest.param(
            entry(f"s = f32[16] all-reduce-start(a), {IOTA}, to_apply=sum",
                  "ROOT d = f32[16] all-reduce-done(s)"),
            [(("all-reduce", "start/done", "f32", 4, 2, ""), 1, 1, True, moved(1))],
            id="start and done",
        ),
        pytest.param(
            entry("s = ((f32[16]), f32[16]) async-start(a), calls=f",
                  "u = ((f32[16]), f32[16]) async-update(s)", "ROOT d = f32[16] async-done(u)",
                  computations=CALLED),
            [(("all-reduce", "async", "f32", 4, 2, ""), 1, 1, True, moved(1))],
            id="wrapped",
        ),
        pytest.param(
            entry("ROOT r = f32[16] fusion(a), kind=kLoop, calls=f", computations=CALLED),
            [(("all-reduce", "fusion", "f32", 4, 2, ""), 1, 1, True, moved(1))],
            id="fused",
        ),
        pytest.param(
            entry("b = f32[16] call(a), to_apply=f", "c = f32[16] call(b), to_apply=f",
                  "ROOT r = f32[16] negate(c)", computations=CALLED),
            [(SYNC, 1, 2, True, moved(2))],
            id="called twice",
        ),
        pytest.param(
            entry(*LOOPING, computations=loop("constant(7)")),
            [(SYNC, 1, 7, True, moved(7))],
            id="in a loop",
        ),
        pytest.param(
            entry(*LOOPING, computations=loop('custom-call(), custom_call_target="n"')),
            [(SYNC, 1, 1, False, moved(1))],
            id="in a loop of unknown trips",
        ),
        pytest.param(
            entry("p = pred[] constant(true)",
                  "ROOT c = f32[16] conditional(p, a, a), true_computation=f, false_computation=g",
                  computations=CALLED + CALLED.replace("f {", "g {").replace("[2,4]", "[4,2]")),
            [
                (("all-reduce", "sync", "f32", 2, 4, ""), 1, 0, True, moved(0)),
                (SYNC, 1, 1, True, moved(1)),
            ],
            id="in both branches of a conditional, of which one runs",
        ),
        pytest.param(
            entry(f"ROOT r = (f32[16], f32[16]) all-reduce(a, a), {IOTA}, to_apply=sum"),
            [(SYNC, 1, 1, True, moved(1, 128, 192))],
            id="combined",
        ),
        pytest.param(
            entry("b = f32[16] all-reduce(a), replica_groups=mesh['x'=2,'y'=4] {'y'}, "
                  "channel_id=1, use_global_device_ids=true, to_apply=sum",
                  "ROOT r = f32[16] all-reduce(b), replica_groups=mesh['x'=2,'y'=4] "
                  "{'x','y':(1)2}, channel_id=2, use_global_device_ids=true, to_apply=sum"),
            [
                (("all-reduce", "sync", "f32", 4, 2, "x,y:(1)2"), 1, 1, True, moved(1)),
                (("all-reduce", "sync", "f32", 4, 2, "y"), 1, 1, True, moved(1)),
            ],
            id="along axes of a mesh",
        ),
        pytest.param(
            entry(f"b = bf16[16] convert(a)  g = bf16[64] all-gather(b), {IOTA}, dimensions={{0}}",
                  f"ROOT h = f32[64] all-gather(a), {IOTA}, dimensions={{0}}"),
            [
                (("all-gather", "sync", "bf16", 4, 2, ""), 1, 1, True, moved(1, 128, 96)),
                (("all-gather", "sync", "f32", 4, 2, ""), 1, 1, True, moved(1, 256, 192)),
            ],
            id="of two element types",
        ),
        pytest.param(
            entry('ROOT all-reduce.1 = f32[16] negate(a), metadata={op_name="all-reduce(a)"}'),
            [],
            id="a name and metadata alone",
        ),
        pytest.param(entry("ROOT n = f32[16] negate(a)", computations=CALLED), [], id="unreached"),
        pytest.param(
            STEP,
            [
                (("all-gather", "async", "bf16", 4, 1, ""), 1, 1, True, moved(1, 128, 96)),
                (("all-reduce", "sync", "f32", 2, 2, ""), 1, 5, True, moved(5, 32, 32)),
                (("all-reduce", "sync", "f32", 4, 1, ""), 1, 1, True, moved(1, 32, 48)),
            ],
            id="a step",
        ),
    ],
)  # fmt: skip
def test_collectives_are_counted_once(text: str, rows: list[tuple[Any, ...]]) -> None:
    assert collectives(text) == rows


def test_products_custom_calls_and_arrays() -> None:
    found = take_inventory(parse_module(STEP))
    assert figures(found.products) == [
        (("dot", "f32", "f32", "f32", ""), 1, 1, True, {"flops": 1024})
    ]
    assert figures(found.custom_calls) == [(("my$f8",), 1, 1, True, {})]
    assert [(row.name, row.bytes) for row in found.parameters] == [
        ("params['embed']", 32),
        ("%b", 32),
        ("%w", 256),
    ]
    assert found.parameters[0].sharding == "{devices=[4]<=[4]}"
    assert [row.bytes for row in found.results] == [32, 128, 256]
    assert [loop.trips for loop in found.loops] == [5]
    assert found.notices == ()
    assert "not partitioned" in take_inventory(parse_module(UNPARTITIONED)).notices[0]


def test_products_are_told_apart_by_types_and_precision() -> None:
    text = """ENTRY e { a = f32[4,4] parameter(0)  b = bf16[4,4] convert(a)
      x = f32[4,4] dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      y = f32[4,4] dot(b, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      z = f32[4,4] dot(a, x), lhs_contracting_dims={1}, rhs_contracting_dims={0},
        operand_precision={highest,highest}
      ROOT t = (f32[4,4], f32[4,4]) tuple(y, z) }"""
    keys = {row.key for row in take_inventory(parse_module(text)).products}
    assert keys == {
        ("dot", "f32", "f32", "f32", ""),
        ("dot", "bf16", "bf16", "f32", ""),
        ("dot", "f32", "f32", "f32", "{highest,highest}"),
    }


def real_modules(root: Path) -> list[Path]:
    return sorted(
        path for path in (root / "testdata").glob("*.hlo*") if "unrolled" not in path.name
    )


def test_flops_add_up_to_those_of_cost(root: Path) -> None:
    for path in real_modules(root):
        module = load(str(path))
        found = take_inventory(module)
        total = sum(row.amounts["flops"] for row in found.flops)
        assert total == CostAnalysis(module).module().flops, path
        assert sum(row.count for row in found.opcodes) <= sum(1 for _ in module.instructions())


def payloads(module: Module) -> tuple[int, int]:
    """Payloads of all collectives by the schedule, and by the inventory."""
    findings = ScheduleFindings.of(module, ScheduleSettings(loops="trips"))
    sizes = sum(
        hiding.operation.size * run.runs
        for run, hiding in findings.hidings
        if hiding.operation.kind in SYNC_COLLECTIVES
    )
    return sizes, sum(row.amounts["payload"] for row in take_inventory(module).collectives)


def test_payloads_add_up_to_those_of_schedule(root: Path) -> None:
    scheduled = [m for m in map(load, map(str, real_modules(root))) if m.is_scheduled]
    found = [payloads(module) for module in scheduled]
    assert all(left == right for left, right in found)
    assert sum(left > 0 for left, _ in found) >= 2


@pytest.mark.slow
def test_payloads_of_the_benchmarks_add_up(shared: Path) -> None:
    paths = sorted((shared / "corpus" / "benchmarks").glob("*.hlo"))
    found = [payloads(load(str(path))) for path in paths]
    assert all(left == right for left, right in found)
    assert sum(left > 0 for left, _ in found) >= 5


@pytest.mark.slow
def test_flops_of_the_benchmarks_add_up(shared: Path) -> None:
    for path in sorted((shared / "corpus" / "benchmarks").glob("*.hlo")):
        module = load(str(path))
        total = sum(row.amounts["flops"] for row in take_inventory(module).flops)
        assert total == CostAnalysis(module).module().flops, path


def test_changes_are_figures_that_differ() -> None:
    before = take_inventory(parse_module(STEP))
    assert list(changes(before, take_inventory(parse_module(STEP)))) == []
    more = STEP.replace("constant(5)", "constant(6)").replace("my$f8", "other")
    found = {(c.table, c.key[0], c.figure): (c.before, c.after) for c in
             changes(before, take_inventory(parse_module(more)))}  # fmt: skip
    assert found["collectives", "all-reduce", "runs"] == (5, 6)
    assert found["collectives", "all-reduce", "wire"] == (160, 192)
    assert found["custom_calls", "my$f8", "count"] == (1, 0)
    assert found["custom_calls", "other", "count"] == (0, 1)
    assert ("collectives", "all-reduce", "count") not in found


def test_the_page_marks_runs_that_are_not_known() -> None:
    text = entry(*LOOPING, computations=loop('custom-call(), custom_call_target="n"'))
    for module, is_known in ((text, False), (STEP, True)):
        console = Console(width=100, record=True, markup=False, highlight=False)
        render_inventory(take_inventory(parse_module(module)), console, top=5)
        page = console.export_text()
        assert ("≥" in page) is not is_known
        assert ("unknown trip counts" in page) is not is_known
