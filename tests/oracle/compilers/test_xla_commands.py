"""`hloopt xla` with the real compilers: stages, chains, passes alone, descriptions."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from hloopt.analysis.fingerprint import fingerprint
from hloopt.cli import main
from hloopt.files import load
from hloopt.text import parse_module

pytestmark = [pytest.mark.oracle]

Capture = pytest.CaptureFixture[str]
STEP = "transformer_scan_8dev.after_spmd_partitioning.hlo"


@pytest.fixture
def step(root: Path) -> str:
    return str(root / "testdata" / STEP)


@pytest.fixture
def cpu() -> list[str]:
    pytest.importorskip("jaxlib", reason="needs the extra xla")
    return ["--target", "cpu"]


def xla(*arguments: str) -> int:
    return main(["xla", *arguments])


def same(first: str, second: str) -> bool:
    """Whether two texts are the same program, whatever names and metadata say."""
    return fingerprint(parse_module(first)) == fingerprint(parse_module(second))


# -- XLA:CPU --------------------------------------------------------------------------------------


def test_stages_of_a_compile(cpu: list[str], step: str, tmp_path: Path, capsys: Capture) -> None:
    for stage in ("hlo-before", "hlo"):
        place = str(tmp_path / f"{stage}.hlo")
        assert xla("compile", step, *cpu, "--stage", stage, "-o", place) == 0
        load(place)  # it verifies
    assert load(str(tmp_path / "hlo.hlo")).is_scheduled
    assert xla("compile", step, *cpu, "--stage", "buffer-assignment") == 0
    assert capsys.readouterr().out.startswith("BufferAssignment:")
    assert xla("compile", step, *cpu, "--stage", "llvm", "-o", f"{tmp_path}/kernels/") == 0
    assert len(list((tmp_path / "kernels").iterdir())) > 10


def test_a_chain_of_passes(cpu: list[str], step: str, tmp_path: Path, capsys: Capture) -> None:
    place = str(tmp_path / "kept")
    assert xla("passes", step, *cpu, "--format", "json", "--keep", place) == 0
    found = json.loads(capsys.readouterr().out)
    steps = found["steps"]
    assert len(steps) > 40
    assert sum(step["effect"] == "program" for step in steps) == found["changed"] > 20
    assert all(step["facts"] for step in steps)
    assert any(step["seconds"] for step in steps)
    assert xla("passes", step, *cpu, "--diff", "all_to_all_decomposer") == 1
    assert "all-to-all" in capsys.readouterr().out


def recorded(shared: Path, name: str) -> list[Path]:
    """Stems of pairs of texts before and after a pass alone, as XLA:CPU was asked."""
    folder = shared / "oracle" / "pass_pairs"
    lines = (folder / "index.jsonl").read_text(encoding="utf-8").splitlines()
    found = [each for each in map(json.loads, lines) if each["pass"] == name and each["alone"]]
    assert found
    return [folder / each["file"] for each in found[:2]]


def check_alone(name: str, stem: Path, tmp_path: Path, options: list[str]) -> None:
    out = tmp_path / "out.hlo"
    arguments = [f"{stem}.before.hlo", *options, "--pass", name, "-o", str(out)]
    assert xla("isolate", *arguments) == 0
    expected = Path(f"{stem}.after.hlo").read_text(encoding="utf-8")
    assert same(out.read_text(encoding="utf-8"), expected), stem


def test_a_pass_of_xla_cpu_alone_is_the_recorded_one(
    cpu: list[str], shared: Path, tmp_path: Path
) -> None:
    for stem in recorded(shared, "constant_folding"):
        check_alone("constant_folding", stem, tmp_path, cpu)


# -- XLA:GPU --------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["h100_sxm", "b200", "a100_sxm_80"])
def test_our_description_of_a_gpu_compiles_as_that_of_xla(
    target: str, plugin: list[str], step: str, shared: Path, capsys: Capture
) -> None:
    theirs = str(shared / "oracle" / "targets" / f"{target}.txtpb")
    for stage in ("hlo", "buffer-assignment"):
        texts = []
        for name in (target, theirs):
            assert xla("compile", step, "--target", name, *plugin, "--stage", stage) == 0
            texts.append(capsys.readouterr().out)
        assert texts[0] == texts[1]


@pytest.mark.parametrize("name", ["tuple-simplifier", "simplify-conditional", "reshape-mover"])
def test_a_pass_of_xla_gpu_alone_is_the_recorded_one(
    name: str, plugin: list[str], shared: Path, tmp_path: Path
) -> None:
    for stem in recorded(shared, name):
        check_alone(name, stem, tmp_path, ["--target", "h100_sxm", *plugin])


@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        ("copy-insertion", "equal up to names"),
        ("all-reduce-reassociate", "equal up to names"),
        ("reshape-mover", "equivalent"),
        ("dce", "equal text"),
    ],
)
def test_our_pass_makes_of_a_training_step_what_xla_makes(
    name: str, verdict: str, plugin: list[str], step: str, capsys: Capture
) -> None:
    names = ["--passes", name, "--xla-pass", name, "--format", "json"]
    assert xla("compare", step, "--target", "h100_sxm", *plugin, *names) == 0
    assert json.loads(capsys.readouterr().out)["verdict"] == verdict


@pytest.mark.parametrize("name", ["fsdp_mlp_scan_1x8", "moe_all_to_all_1x8"])
def test_a_compile_is_the_recorded_one(
    name: str, plugin: list[str], shared: Path, tmp_path: Path, capsys: Capture
) -> None:
    folder = shared / "oracle" / "gpu" / name
    place = str(tmp_path / "out.hlo")
    program = str(folder / "input.hlo.gz")
    options = ["--target", "h100_sxm", *plugin, "--stage", "hlo", "-o", place]
    latency_hiding = ["--flag", "xla_gpu_enable_latency_hiding_scheduler=true"]
    assert xla("compile", program, *options, *latency_hiding) == 0
    recorded = gzip.decompress((folder / "default" / "after_optimizations.hlo.gz").read_bytes())
    assert same(Path(place).read_text(encoding="utf-8"), recorded.decode())
    capsys.readouterr()


@pytest.mark.parametrize(
    "name", ["fsdp_mlp_scan_1x8", "moe_all_to_all_1x8", "fsdp_tp_two_axes_1x8"]
)
def test_the_peak_of_a_searched_schedule_is_that_of_xla(
    name: str, plugin: list[str], shared: Path, tmp_path: Path, capsys: Capture
) -> None:
    """XLA keeps the schedule, assigns buffers for it, and generates code."""
    before = str(shared / "oracle" / "gpu" / name / "default" / "before_lhs.hlo.gz")
    searched = str(tmp_path / "searched.hlo")
    passes = "latency-hiding-scheduler{target=h100_sxm,search={budget=3s}}"
    assert main(["opt", before, "--passes", passes, "-o", searched, "--no-report"]) == 0
    capsys.readouterr()
    assert xla("compile", searched, "--target", "h100_sxm", *plugin, "--format", "json") == 0
    theirs = json.loads(capsys.readouterr().out)["memory"]["peak"]
    assert main(["memory", searched, "--backend", "gpu", "--format", "json"]) == 0
    (report,) = json.loads(capsys.readouterr().out)
    ours = report["statistics"]["peak_memory_in_bytes"]
    assert ours == pytest.approx(theirs, rel=0.01)
    compiled = tmp_path / "compiled.hlo"
    options = ["--target", "h100_sxm", *plugin, "--stage", "hlo", "-o", str(compiled)]
    assert xla("compile", searched, *options) == 0
    orders = [
        [each.name for each in load(place).entry.instructions if "-start" in each.name]
        for place in (searched, str(compiled))
    ]
    assert orders[0] == orders[1]
