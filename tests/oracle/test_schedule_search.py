"""Searched schedules beside those that XLA:GPU made of its own programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from hloopt.passes.latency_hiding_scheduler.search.options import SearchOptions
from schedule_lib.search import search_recorded

pytestmark = [pytest.mark.slow]

# The least that so few steps save, of what XLA's schedule waits for collectives.
SAVED = {
    "fsdp_tp_two_axes_1x8": 0.2,
    "hlo_llama31_405b_bf16_16x8": 0.5,
    "hlo_llama3_8b_cp_bf16_1x4": 0.4,
    "mixed_collectives_ragged_1x8": 0.1,
    "tp_transformer_unrolled_1x8": 0.1,
    "host_offload_scan_1x8": 0.0,
    "ring_all_gather_matmul_1x8": 0.0,
}


@pytest.mark.parametrize("module", SAVED)
@pytest.mark.parametrize("objective", ["exposed", "makespan"])
def test_a_short_search_is_no_worse_than_xla(shared: Path, module: str, objective: str) -> None:
    sweep = shared / "oracle" / "gpu" / module / "sweep"
    options = {"iterations": 6000, "objective": objective}
    result = search_recorded(sweep, SearchOptions(**options))  # type: ignore[arg-type]  # parametrized
    assert result.is_no_worse
    assert 1 - result.ratio >= (SAVED[module] if objective == "exposed" else 0) - 1e-5
