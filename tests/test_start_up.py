"""What a process imports: nothing large that its command does not need."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SMALL = """HloModule small, is_scheduled=true
ENTRY e {
  p = f32[4] parameter(0)
  dead = f32[4] negate(p)
  ROOT r = f32[4] add(p, p)
}
"""
PRINTED = """HloModule printed

ENTRY e {
  p = f32[4]{0} parameter(0)
  ROOT r = f32[4]{0} add(p, p)
}
"""
MODELS_OF_TIME = (
    *("hloopt.cost_models", "hloopt.analysis.latency", "hloopt.simulation", "hloopt.targets"),
    *("hloopt.passes.scheduling.latency_hiding_scheduler", "hloopt.scheduling"),
)
OF_OTHER_MODULES = (
    *("hloopt.text.instruction_parser", "hloopt.text.foreign", "hloopt.ir.async_sugar"),
    *("hloopt.ir.attributes.values.strings", "hloopt.verifier.option_docs"),
    "hloopt.text.comments",
)
"""For texts that XLA does not print, files that are not HLO, attributes that few modules have,
and what a formatter keeps."""
HEAVY = ("numpy", "ml_dtypes", "yaml", "google")
OF_DEVICES = """HloModule of_devices, num_partitions=4
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
ENTRY e {
  p = f32[8] parameter(0)
  sum = f32[8] all-reduce(p), channel_id=1, replica_groups={{0,1,2,3}},
    use_global_device_ids=true, to_apply=add
  table = u32[4] constant({0, 1, 2, 3})
  id = u32[] partition-id()
  row = u32[1] dynamic-slice(table, id), dynamic_slice_sizes={1}
  number = s32[1] convert(row)
  two = s32[1] constant({2})
  product = s32[1] multiply(number, two)
  start = s32[] reshape(product)
  ROOT part = f32[2] dynamic-slice(sum, start), dynamic_slice_sizes={2}
}
"""
PROGRAM = """
import json, sys
from hloopt.cli import main
assert main(sys.argv[1:]) == 0
print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""


VERSION_ALONE = """
import json, sys
before = set(sys.modules)
from hloopt.__main__ import main
assert main() == 0
print(json.dumps(sorted(set(sys.modules) - before)), file=sys.stderr)
"""


def imported(*arguments: str, program: str = PROGRAM) -> set[str]:
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(json.loads(done.stderr.splitlines()[-1]))


def within(modules: set[str], packages: tuple[str, ...]) -> list[str]:
    return sorted(m for m in modules for p in packages if m == p or m.startswith(f"{p}."))


@pytest.fixture
def small(tmp_path: Path) -> str:
    path = tmp_path / "small.hlo"
    path.write_text(SMALL)
    return str(path)


def test_a_plain_opt_imports_no_model_of_time_and_no_report(small: str) -> None:
    found = imported("opt", small, "--passes", "dce")
    assert "hloopt.passes.simplification.dce" in found
    found -= {"hloopt.reports", "hloopt.reports.outcome"}  # of a run, reported on or not
    others = "hloopt.reports", "hloopt.memory", "hloopt.compilers", "hashlib", "rich"
    assert within(found, (*MODELS_OF_TIME, *HEAVY, *others)) == []


def test_a_plain_opt_imports_nothing_that_reads_what_its_module_has_not(tmp_path: Path) -> None:
    printed = tmp_path / "printed.hlo"
    printed.write_text(PRINTED)
    found = imported("opt", str(printed), "--passes", "dce")
    assert within(found, OF_OTHER_MODULES) == []


def test_a_report_without_asynchronous_operations_imports_no_model_of_time(
    small: str, tmp_path: Path
) -> None:
    found = imported("opt", small, "--passes", "dce", "-o", str(tmp_path / "out.hlo"))
    assert "hloopt.reports.schedule.comparison" in found
    assert within(found, (*MODELS_OF_TIME, *HEAVY)) == []


def test_the_version_imports_nothing_of_modules() -> None:
    found = imported("--version")
    assert within(found, (*MODELS_OF_TIME, *HEAVY, "hloopt.ir", "hloopt.text", "rich")) == []


def test_the_version_alone_imports_nothing() -> None:
    found = imported("--version", program=VERSION_ALONE)
    assert found == {"__future__", "hloopt", "hloopt.__main__"}


def test_what_each_device_keeps_is_computed_without_numpy(small: str, tmp_path: Path) -> None:
    Path(small).write_text(OF_DEVICES)
    out = tmp_path / "out.hlo"
    found = imported("opt", small, "--passes", "reduce-scatter-creator", "-o", str(out))
    assert " reduce-scatter(" in out.read_text()
    assert within(found, HEAVY) == []


def test_a_run_imports_nothing_of_passes(small: str) -> None:
    found = imported("run", small)
    assert "hloopt.interpreter" in found
    assert within(found, ("hloopt.pass_framework", "hloopt.passes")) == []
