"""`xla-stage` and `xla` in pipelines with the real compilers: a jitted step, partitioned by XLA."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hloopt.analysis.fingerprint import fingerprint
from hloopt.cli import main
from hloopt.files import load, read_source
from hloopt.ir.opcode import Opcode
from hloopt.text import parse_module

pytestmark = [pytest.mark.oracle]

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def step(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A training step, as JAX hands it to XLA."""
    pytest.importorskip("jax", reason="needs the extra xla")
    script = Path(__file__).with_name("train_step.py")
    environment = {
        **os.environ,
        "XLA_FLAGS": "--xla_force_host_platform_device_count=8",
        "JAX_PLATFORMS": "cpu",
    }
    done = subprocess.run(
        [sys.executable, str(script)], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    path = tmp_path_factory.mktemp("step") / "step.hlo"
    path.write_text(done.stdout, encoding="utf-8")
    return str(path)


@pytest.fixture(params=["cpu", "h100_sxm"])
def target(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A target whose compiler is there."""
    if request.param != "cpu":
        monkeypatch.setenv("HLOOPT_XLA_PLUGIN", request.getfixturevalue("plugin")[1])
    return str(request.param)


def opt(step: str, output: Path, *arguments: str) -> int:
    return main(["opt", step, "-o", str(output), "--no-report", *arguments])


def pipeline(folder: Path, target: str, *steps: str) -> list[str]:
    path = folder / "p.yaml"
    lines = [f"target: {target}", "passes:", *(f"  - {step}" for step in steps)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return ["-p", str(path)]


@pytest.mark.parametrize("shrink", [(), ("--shrink",)])
def test_a_jitted_step_goes_through_the_partitioner_and_the_scheduler(
    step: str, target: str, shrink: tuple[str, ...], tmp_path: Path, capsys: Capture
) -> None:
    out = tmp_path / "out.hlo"
    line = pipeline(tmp_path, target, "xla-stage: spmd", "pipeline: overlap")
    assert opt(step, out, *line, "--validate", "each", *shrink) == 0
    made = load(str(out))
    assert made.is_scheduled
    assert made.num_partitions == 8
    assert made.entry.parameters[0].shape.text == "f32[4,4,32]{2,1,0}"
    assert any(made.instructions(Opcode.ALL_GATHER_START))
    err = capsys.readouterr().err
    assert "with the flags given only: it is not your compile" in err
    assert ("jaxlib takes HLO as StableHLO, which drops layouts" in err) == (target == "cpu")
    assert ("smaller dimensions (--shrink): one module computes for" in err) == bool(shrink)


def test_the_same_twice_is_the_same_text(step: str, target: str, tmp_path: Path) -> None:
    line = ["--passes", f"xla-stage{{stage=spmd,target={target}}}"]
    texts = []
    for number in range(2):
        out = tmp_path / f"{number}.hlo"
        assert opt(step, out, *line) == 0
        texts.append(read_source(str(out)).text)
    assert texts[0] == texts[1]


@pytest.mark.parametrize("stage", ["hlo-before", "hlo"])
def test_other_stages_compute_the_same(stage: str, step: str, target: str, tmp_path: Path) -> None:
    out = tmp_path / "out.hlo"
    line = ["--passes", f"xla-stage{{stage={stage},target={target}}}", "--validate"]
    assert opt(step, out, *line) == 0
    assert load(str(out)).is_scheduled == (stage == "hlo")


def test_a_stage_is_that_of_xla_compile(
    step: str, target: str, tmp_path: Path, capsys: Capture
) -> None:
    out = tmp_path / "out.hlo"
    assert opt(step, out, "--passes", f"xla-stage{{stage=spmd,target={target}}}") == 0
    capsys.readouterr()
    assert main(["xla", "compile", step, "--target", target, "--stage", "spmd"]) == 0
    theirs = capsys.readouterr().out
    assert fingerprint(load(str(out))) == fingerprint(parse_module(theirs))


def test_passes_of_xla_partition_as_the_stage_does(step: str, target: str, tmp_path: Path) -> None:
    out = tmp_path / "out.hlo"
    passes = f"xla{{passes=[shardy-xla,spmd-partitioning],target={target}}}"
    assert opt(step, out, "--passes", passes, "--validate") == 0
    assert load(str(out)).num_partitions == 8
    assert opt(str(out), tmp_path / "again.hlo", "--passes", passes) == 3


def test_what_jaxlib_drops_is_told(target: str, tmp_path: Path, capsys: Capture) -> None:
    header = "is_scheduled=true, buffer_donor={ (0, {}) }"
    path, out = tmp_path / "m.hlo", tmp_path / "out.hlo"
    path.write_text(
        f"HloModule m, {header}\nENTRY e {{\n  p = f32[4,2]{{0,1}} parameter(0)\n"
        "  ROOT r = f32[4,2]{0,1} negate(p)\n}\n",
        encoding="utf-8",
    )
    passes = f"xla-stage{{stage=hlo-before,target={target}}}"
    assert opt(str(path), out, "--passes", passes) == 0
    made, err = load(str(out)), capsys.readouterr().err
    is_dropped = target == "cpu"
    dropped = "which drops layouts, the schedule and buffer_donor"
    assert (dropped in err) == is_dropped
    assert ("buffer_donor" not in made.attributes) == is_dropped
    assert made.is_scheduled != is_dropped


def test_constants_are_kept_whole(target: str, tmp_path: Path) -> None:
    values = ", ".join(str(number) for number in range(64))
    text = (
        "HloModule m\nENTRY e {\n  p = s32[64] parameter(0)\n"
        f"  c = s32[64] constant({{{values}}})\n  ROOT r = s32[64] add(p, c)\n}}\n"
    )
    path, out = tmp_path / "m.hlo", tmp_path / "out.hlo"
    path.write_text(text, encoding="utf-8")
    line = ["--passes", f"xla-stage{{stage=hlo-before,target={target}}}", "--validate"]
    assert opt(str(path), out, *line) == 0
    assert "62, 63" in read_source(str(out)).text


def test_passes_of_xla_between_passes_of_ours(
    step: str, plugin: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("HLOOPT_XLA_PLUGIN", plugin[1])
    out = tmp_path / "out.hlo"
    line = pipeline(
        tmp_path,
        "h100_sxm",
        "xla-stage: spmd",
        "xla: [reduce-scatter-creator, dce]",
        "xla: priority-fusion",
        "pipeline: overlap",
    )
    assert opt(step, out, *line, "--validate", "each") == 0
    made = load(str(out))
    assert any(made.instructions(Opcode.FUSION))
    assert made.is_scheduled


def test_bisect_names_the_step(step: str, capsys: Capture) -> None:
    pytest.importorskip("jaxlib", reason="needs the extra xla")
    passes = "dce,xla-stage{stage=spmd,target=cpu},cse"
    line = ["--passes", passes, "--report", "collectives.count > 0", "--format", "json"]
    assert main(["bisect", step, *line]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["pass"] == "xla-stage"


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        ('stage=spmd,flags=["xla_nonsense=1"]', 2, "error[HLO020]: this XLA does not know"),
        ("stage=spmd,timeout=5ms", 3, "error[HLO704]: pass 'xla-stage' failed: XLA did not end"),
    ],
)
def test_failures_of_the_real_compiler(
    options: str, code: int, message: str, step: str, target: str, tmp_path: Path, capsys: Capture
) -> None:
    passes = f"xla-stage{{target={target},{options}}}"
    line = ["--passes", passes, "--repro-dir", str(tmp_path / "repro")]
    assert opt(step, tmp_path / "out.hlo", *line) == code
    err = capsys.readouterr().err
    assert message in err
    assert err.count("error[") == 1
    assert "Traceback" not in err
