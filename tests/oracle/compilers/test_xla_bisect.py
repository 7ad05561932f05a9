"""`hloopt xla bisect`, `--from-dump`, `isolate --repro` and `--xla-flags-differ` with real XLA."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hloopt.cli import main
from hloopt.compilers import compiling
from hloopt.compilers.child import Ending, run_child
from hloopt.files import load, read_source

pytestmark = [pytest.mark.oracle]

Capture = pytest.CaptureFixture[str]
STEP = """HloModule step

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %s = f32[] add(%a, %b)
}

ENTRY %e (x: f32[16,8], w: f32[8,8]) -> (f32[16,8], f32[8]) {
  %x = f32[16,8]{1,0} parameter(0)
  %w = f32[8,8]{1,0} parameter(1)
  %c = f32[8]{0} constant({1, 2, 3, 4, 5, 6, 7, 12.5})
  %cs = f32[16,8]{1,0} broadcast(%c), dimensions={1}
  %xc = f32[16,8]{1,0} add(%x, %cs)
  %one = f32[] constant(1)
  %ones = f32[16,8]{1,0} broadcast(%one), dimensions={}
  %same = f32[16,8]{1,0} multiply(%xc, %ones)
  %n = f32[16,8]{1,0} negate(%same)
  %t = f32[16,8]{1,0} tanh(%n)
  %zero = f32[] constant(0)
  %r = f32[8]{0} reduce(%t, %zero), dimensions={0}, to_apply=%add
  ROOT %out = (f32[16,8]{1,0}, f32[8]{0}) tuple(%t, %r)
}
"""
NAN = """HloModule step

ENTRY %e (x: f32[8], y: f32[8]) -> (f32[8], f32[8]) {
  %x = f32[8]{0} parameter(0)
  %y = f32[8]{0} parameter(1)
  %a = f32[8]{0} abs(%x)
  %n = f32[8]{0} negate(%a)
  %one = f32[] constant(1)
  %ones = f32[8]{0} broadcast(%one), dimensions={}
  %m = f32[8]{0} subtract(%n, %ones)
  %l = f32[8]{0} sqrt(%m)
  %isnan = pred[8]{0} compare(%l, %l), direction=NE
  %s = f32[8]{0} select(%isnan, %ones, %n)
  %z = f32[8]{0} add(%x, %y)
  ROOT %out = (f32[8]{0}, f32[8]{0}) tuple(%s, %z)
}
"""
JAX = """import jax, jax.numpy as jnp
def step(x, w):
    return jnp.tanh(x @ w).sum(0)
jax.jit(step)(jnp.ones((8, 8)), jnp.ones((8, 8)))
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("step.hlo").write_text(STEP, encoding="utf-8")
    Path("nan.hlo").write_text(NAN, encoding="utf-8")
    return tmp_path


@pytest.fixture
def cpu() -> list[str]:
    pytest.importorskip("jaxlib", reason="needs the extra xla")
    return ["--target", "cpu"]


def plant(monkeypatch: pytest.MonkeyPatch, pass_name: str) -> None:
    """Let what XLA dumps from the first change of a pass on have cosine in place of tanh."""

    def run_and_change(module: str, job: Path, answer: Path, *rest: Any) -> Ending:
        ending = run_child(module, job, answer, *rest)
        is_wrong = False
        for path in sorted((answer.parent / "dumps").glob("*.txt")):
            is_wrong |= f".after_{pass_name}." in path.name
            is_wrong |= path.name.endswith("after_optimizations.txt")
            if is_wrong and (".after_" in path.name or "_after_" in path.name):
                text = path.read_text(encoding="utf-8")
                path.write_text(re.sub(r"\btanh\(", "cosine(", text), encoding="utf-8")
        return ending

    monkeypatch.setattr(compiling, "run_child", run_and_change)


# -- bisect ---------------------------------------------------------------------------------------


@pytest.mark.usefixtures("folder")
def test_xla_cpu_computes_what_the_program_says(cpu: list[str], capsys: Capture) -> None:
    assert main(["xla", "bisect", "step.hlo", *cpu]) == 0
    found = re.search(r"equal: (\d+) of (\d+) stages", capsys.readouterr().out)
    assert found is not None
    assert found[1] == found[2]
    assert int(found[1]) > 2


@pytest.mark.usefixtures("folder")
def test_xla_gpu_computes_what_the_program_says(plugin: list[str], capsys: Capture) -> None:
    assert main(["xla", "bisect", "step.hlo", "--target", "h100_sxm", *plugin]) == 0
    found = re.search(r"equal: (\d+) of (\d+) stages", capsys.readouterr().out)
    assert found is not None
    assert found[1] == found[2]
    assert int(found[1]) > 3


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("pass_name", ["algsimp", "priority-fusion"])
def test_a_planted_fault_is_found_and_isolated(
    pass_name: str, plugin: list[str], monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    plant(monkeypatch, pass_name)
    line = ["xla", "bisect", "step.hlo", "--target", "h100_sxm", *plugin]
    assert main([*line, "-o", "bug", "--format", "json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["pass"] == pass_name
    assert found["alone"]["verdict"] == "different"
    assert "tanh" in read_source("bug/before.hlo").text
    assert "cosine" in read_source("bug/after.hlo").text
    assert main(["test", "bug/before.hlo"]) == 1
    monkeypatch.setattr(compiling, "run_child", run_child)
    assert main(["test", "bug/before.hlo"]) == 0  # the real one is right


# -- isolate --repro ------------------------------------------------------------------------------


@pytest.mark.usefixtures("folder")
def test_a_repro_gives_the_same_result(plugin: list[str], capsys: Capture) -> None:
    line = ["xla", "isolate", "step.hlo", "--target", "h100_sxm", *plugin, "--pass", "algsimp"]
    assert main([*line, "-o", "first.hlo", "--repro", "repro.hlo"]) == 0
    (again,) = re.findall(r"to repeat it: hloopt (.*)", capsys.readouterr().err)
    assert main([*again.split(), "-o", "second.hlo"]) == 0
    assert "12.5" in read_source("repro.hlo").text
    assert load("second.hlo").instruction_count() < load("repro.hlo").instruction_count()
    assert main(["diff", "first.hlo", "second.hlo"]) == 0


# -- dumps ----------------------------------------------------------------------------------------


def test_a_dump_of_jax_is_compiled_as_jax_did(
    folder: Path, cpu: list[str], capsys: Capture
) -> None:
    pytest.importorskip("jax", reason="needs jax, which makes the dump")
    flags = "--xla_dump_to=dump --xla_dump_hlo_as_text --xla_cpu_enable_fast_math=true"
    subprocess.run(
        [sys.executable, "-c", JAX],
        check=True,
        env={"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu", "HOME": str(folder)},
    )
    line = ["xla", "compile", "--from-dump", "dump", "--module", "jit_step"]
    assert main([*line, "--stage", "hlo", "-o", "again.hlo"]) == 0
    err = capsys.readouterr().err
    assert "from the dump: target: cpu" in err
    assert "xla_cpu_enable_fast_math=true" in err
    (path,) = Path("dump").glob("*jit_step.cpu_after_optimizations.txt")
    assert main(["diff", str(path), "again.hlo", "--ignore", "metadata,header"]) == 0


@pytest.mark.usefixtures("folder")
def test_a_dump_of_a_gpu_compile_gives_the_same_again(plugin: list[str], capsys: Capture) -> None:
    flag = ["--flag", "xla_gpu_enable_latency_hiding_scheduler=true"]
    line = ["step.hlo", "--target", "b200", *plugin, *flag]
    assert main(["xla", "passes", *line, "--keep", "dump"]) == 0
    (options,) = Path("dump").glob("*.debug_options")
    with options.open("a", encoding="utf-8") as file:
        file.write("xla_of_another_version: 1\nxla_gpu_detect_nan: DETECTION_MODE_FAIL\n")
    capsys.readouterr()
    again = ["xla", "compile", "--from-dump", "dump", *plugin, "--stage", "hlo", "-o", "again.hlo"]
    assert main(again) == 0
    err = capsys.readouterr().err
    assert "xla_gpu_enable_latency_hiding_scheduler=true" in err
    assert "xla_of_another_version=1 (this XLA does not know it)" in err
    assert "xla_gpu_detect_nan=DETECTION_MODE_FAIL (this XLA cannot read the value)" in err
    assert "autotuning results: none in the dump" in err
    (path,) = Path("dump").glob("*gpu_after_optimizations.txt")
    assert main(["diff", str(path), "again.hlo"]) == 0


@pytest.mark.usefixtures("folder")
def test_autotuning_results_are_read(plugin: list[str], capsys: Capture) -> None:
    line = ["step.hlo", "--target", "h100_sxm", *plugin]
    assert main(["xla", "passes", *line, "--keep", "dump"]) == 0
    (results,) = Path("dump").glob("*.autotune_results.pbtxt")
    again = ["xla", "compile", "--from-dump", "dump", *plugin, "--stage", "hlo"]
    results.write_text('version: 3\nresults { device: "d" hlo: "h" }\n', encoding="utf-8")
    assert main(again) == 0
    assert f"autotuning results: {results.name}" in capsys.readouterr().err
    results.write_text('version: 77\nresults { device: "d" hlo: "h" }\n', encoding="utf-8")
    assert main(again) == 3
    assert "Version mismatch in autotune results" in capsys.readouterr().err


# -- flags ----------------------------------------------------------------------------------------

FAST = "xla_cpu_enable_fast_math=true xla_cpu_fast_math_honor_nans=false"


@pytest.mark.usefixtures("folder", "cpu")
def test_fast_math_takes_nan_for_a_number(capsys: Capture) -> None:
    line = ["reduce", "nan.hlo", "--xla-flags-differ", "", FAST]
    assert main([*line, "-o", "small.hlo"]) == 0
    small = load("small.hlo")
    assert small.instruction_count() < 8
    assert {"compare"} <= {each.opcode.value for each in small.instructions()}
    assert main([line[0], "small.hlo", *line[2:], "--check"]) == 0
    assert main([line[0], "small.hlo", "--xla-flags-differ", "", "xla_cpu_max_isa=AVX2"]) == 2
    assert "does not show it" in capsys.readouterr().err


@pytest.mark.usefixtures("folder", "cpu")
@pytest.mark.parametrize("flag", ["xla_nonsense=1", "xla_cpu_max_isa_none"])
def test_flags_that_xla_does_not_know(flag: str, capsys: Capture) -> None:
    assert main(["reduce", "nan.hlo", "--xla-flags-differ", "", flag]) == 2
    assert "Unknown flag in XLA_FLAGS" in capsys.readouterr().err
