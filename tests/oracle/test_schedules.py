"""Schedules that XLA:GPU made of its own programs: ours are the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.conftest import Sample
from tests.oracle.comparison import differences, run
from tests.properties.schedule_checks import violations

from hloopt.diagnostics import PassRefused
from hloopt.files import read_module
from hloopt.pass_framework.base import PassContext
from hloopt.passes.scheduling.latency_hiding_scheduler.schedule_module import schedule_and_report
from hloopt.scheduling.engine.module_scheduling import ModuleScheduling
from hloopt.text import parse_module, print_module
from schedule_lib.comparison import compare_setting, prepare, settings_of
from schedule_lib.traces import compare_trace, traced_settings

pytestmark = [pytest.mark.slow]

KINDS = (
    *("all_reduce", "all_gather", "collective_broadcast", "collective_permute"),
    *("all_to_all", "reduce_scatter", "ragged_all_to_all"),
)


@pytest.mark.parametrize("fixed", [True, False], ids=["fixed sizes", "XLA's costs"])
def test_orders_and_statistics_are_those_of_xla(shared: Path, fixed: bool, sample: Sample) -> None:
    recorded = [
        (sweep, setting)
        for sweep in sorted((shared / "oracle" / "gpu").glob("*/sweep"))
        for setting in settings_of(sweep)
        if setting.startswith("sol_off") == fixed
    ]
    results = [compare_setting(*each) for each in sample.of(recorded, len(recorded) // 2)]
    assert sum(result.computations for result in results) > 0
    different = [f"{r.module} {r.setting}: {r.differences}" for r in results if r.differences]
    assert different == []


def test_explanations_are_the_steps_of_xla(shared: Path) -> None:
    traces = {
        f"{sweep.parent.name} {setting}": compare_trace(sweep, setting)
        for sweep in sorted((shared / "oracle" / "gpu").glob("*/sweep"))
        for setting in traced_settings(sweep)
    }
    assert sum(trace.comparisons for trace in traces.values()) > 0
    assert {name: t.first_difference for name, t in traces.items() if t.steps > t.same} == {}


def test_a_hard_memory_limit_is_kept_where_xla_goes_above_it(shared: Path) -> None:
    """Limits just below the peak, which can be kept if any can."""
    sweeps = sorted((shared / "oracle" / "gpu").glob("*/sweep"), key=_size)
    assert sum(_is_kept(sweep, 0.97) for sweep in sweeps if _size(sweep) < _LARGE) > 0


_LARGE = 30_000


def _size(sweep: Path) -> int:
    """Bytes of the packed module; larger ones than `_LARGE` take minutes."""
    return (sweep / "before_lhs.hlo.gz").stat().st_size


def _is_kept(sweep: Path, share: float) -> bool:
    """Whether the hard limit is kept; False where it need not, as the soft one is not exceeded."""
    plain = prepare(sweep, "base")
    schedule_and_report(plain, PassContext())
    plain.scheduler.life.restart()
    limit = int(plain.peak() * share)
    hard = prepare(sweep, "base")
    config = replace(hard.scheduler.config, memory_limit=limit)
    soft = ModuleScheduling(hard.module, replace(hard.scheduler, config=config))
    schedule_and_report(soft, PassContext())
    soft.scheduler.life.restart()
    if soft.peak() <= limit:
        return False
    hard = prepare(sweep, "base")
    hard.scheduler.config = replace(config, hard_memory_limit=True)
    context = PassContext()
    try:
        schedule_and_report(hard, context)
    except PassRefused:  # no order that it tried keeps the limit
        return False
    hard.scheduler.life.restart()
    assert hard.peak() <= limit
    assert any(
        r.reason.startswith(f"kept the hard memory limit of {limit:,} bytes")
        for r in context.remarks
    )
    assert violations(hard.module, hard.scheduler.tracker) == []
    return True


@pytest.mark.parametrize(
    ("recorded", "name", "options"),
    [
        ("async_creator", "async-collective-creator", {f"convert_{k}": True for k in KINDS}),
        ("async_to_sync", "gpu-convert-async-collectives-to-sync", {}),
    ],
)
def test_passes_around_the_scheduler_do_what_xla_does(
    recorded: str, name: str, options: dict[str, object], shared: Path
) -> None:
    files = sorted((shared / "oracle" / "gpu").glob(f"*/*/before_{recorded}_*.hlo.gz"))
    assert files
    different = []
    for file in files:
        ours = parse_module(print_module(run(name, options, file)))
        theirs = read_module(str(file).replace("before_", "after_"))
        if differences(ours, theirs):
            different.append(str(file))
    assert different == []
