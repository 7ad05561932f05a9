"""Memory space assignment keeps its laws on recorded modules and on random programs."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from hloopt.files.reading import read_module
from hloopt.text import print_module
from memory_space_lib.benchmarks import shares
from memory_space_lib.examine import assign
from memory_space_lib.programs import prepare
from memory_space_lib.random_runs import faults_of
from memory_space_lib.shrunk import shrunk_runs

TESTDATA = Path(__file__).resolve().parents[3] / "testdata"
RATES = {
    "flops_per_second": 1e11,
    "transcendentals_per_second": 1e10,
    "default_mem_bandwidth_bytes_per_second": 1e9,
    "alternate_mem_read_bandwidth_bytes_per_second": 1e10,
    "alternate_mem_write_bandwidth_bytes_per_second": 1e10,
}
BY_COST = {
    "prefetch_interval_picker": {"kind": "cost-analysis"},
    "cost_model": RATES,
    "sort": {"kind": "memory-boundedness"},
}
SETTINGS: dict[str, dict[str, Any]] = {
    "16 bytes": {
        "max_size_in_bytes": 16,
        "prefetch_interval_picker": {"min_overlap": 1, "max_overlap": 10},
    },
    "1 KiB": {
        "max_size_in_bytes": 1 << 10,
        "prefetch_interval_picker": {"min_overlap": 1, "max_overlap": 10},
    },
    "16 KiB, few copies": {
        "max_size_in_bytes": 1 << 14,
        "prefetch_interval_picker": {"min_overlap": 2, "max_overlap": 30},
        "max_outstanding_prefetches": 2,
        "max_outstanding_evictions": 1,
    },
    "64 KiB, repacked": {
        "max_size_in_bytes": 1 << 16,
        **BY_COST,
        "max_repacks": 3,
        "repacker": "best-fit",
    },
    "1 MiB, operations converted": {
        "max_size_in_bytes": 1 << 20,
        **BY_COST,
        "enable_sync_copy_replacement": True,
        "enable_sync_slice_replacement": True,
        "async_slices_implemented": True,
    },
}
SLOW = "unrolled"


@cache
def prepared(name: str) -> str:
    module = read_module(str(TESTDATA / name))
    prepare(module)
    return print_module(module)


NAMES = sorted(path.name for path in TESTDATA.glob("*.hlo*"))


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] * (SLOW in name)) for name in NAMES],
)
def test_recorded_modules(name: str, setting: str) -> None:
    result = assign(prepared(name), {"alignment_in_bytes": 8, **SETTINGS[setting]})
    assert list(map(str, result.faults)) == []


def test_settings_leave_all_to_nothing_outside() -> None:
    name = "transformer_scan_8dev.after_spmd_partitioning.hlo"
    inside = []
    for options in SETTINGS.values():
        result = assign(prepared(name), {"alignment_in_bytes": 8, **options})
        inside.append(shares(result)[0])
    assert inside[0] < 0.01
    assert inside == sorted(inside)
    assert inside[-1] > 0.9


MENDED = (
    *((0, number) for number in (127, 135, 254)),
    *((1, number) for number in (12, 20, 43, 52, 58, 71, 80, 85)),
    *((2, number) for number in (61, 213)),
    *((3, number) for number in (3, 72, 93, 95, 134, 194, 213, 270, 271)),
)
"""Seeds and numbers of programs that once broke a law, by the pass or by the checker."""


@pytest.mark.parametrize(
    ("seed", "number"),
    [
        *((0, number) for number in range(40)),
        *MENDED,
        *(pytest.param(0, number, marks=pytest.mark.slow) for number in range(40, 100)),
    ],
)
def test_random_programs(seed: int, number: int) -> None:
    assert list(map(str, faults_of(seed, number, Counter()))) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["dlrm_keras_jax_f32_train_step", "hlo_llama3_8b_cp_bf16_1x4"])
def test_benchmarks_compute_the_same(name: str, shared: Path) -> None:
    path = shared / "corpus" / "benchmarks" / f"{name}.hlo"
    runs = list(shrunk_runs(path, "tpu_v5e"))
    assert [run.verdict for run in runs] == ["equal", "equal"]
    assert runs[1].inside <= 0.7
