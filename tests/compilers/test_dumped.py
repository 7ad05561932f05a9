"""`hloopt xla … --from-dump`: what a dump has is taken, what it has not is said."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from tests.compilers.fake_xla import MODULE, FakeXla

from hloopt.cli import main
from hloopt.compilers.debug_options import parse_debug_options
from hloopt.compilers.dumped import read_dump
from hloopt.files import read_source

Capture = pytest.CaptureFixture[str]
OPTIONS = """\
xla_gpu_enable_latency_hiding_scheduler: true
xla_gpu_autotune_level: 4
xla_gpu_enable_command_buffer: CUBLAS
xla_gpu_enable_command_buffer: FUSION
xla_gpu_cuda_data_dir: "/nowhere/cuda"
xla_backend_extra_options: {
  key: "xla_y"
  value: "2"
}
xla_backend_extra_options {
  key: "xla_z"
  value: ""
}
xla_dump_to: "/tmp/dump"
xla_dump_hlo_as_text: true
xla_old: 7
"""
RESULTS = 'version: 3\nresults {\n  device: "d"\n  hlo: "h"\n}\n'


def write_dump(
    name: str = "jit_step", number: int = 7, options: str | None = OPTIONS, results: str = RESULTS
) -> None:
    stem = f"dump/module_{number:04}.{name}"
    Path("dump").mkdir(exist_ok=True)
    files = {
        "before_optimizations.txt": MODULE.replace("HloModule m", f"HloModule {name}"),
        "sm_9.0_gpu_after_optimizations.txt": MODULE,
        "gpu_target_config.pbtxt": "gpu_device_info {\n  core_count: 132\n}\n",
        "autotune_results.pbtxt": results,
    }
    if options is not None:
        files["debug_options"] = options
    for ending, text in files.items():
        Path(f"{stem}.{ending}").write_text(text, encoding="utf-8")


def flags(line: str) -> dict[str, str]:
    pairs = (flag.removeprefix("--").partition("=") for flag in shlex.split(line))
    return {name: value for name, _, value in pairs}


def test_a_compile_as_in_a_dump(xla: FakeXla, capsys: Capture) -> None:
    write_dump()
    xla.unknown.add("xla_old")
    line = ["xla", "compile", "--from-dump", "dump", "--stage", "hlo-before", "-o", "out.hlo"]
    assert main([*line, "--flag", "xla_gpu_enable_latency_hiding_scheduler=false"]) == 0
    assert read_source("out.hlo").text.startswith("HloModule jit_step")
    found = flags(xla.flags[-1])
    assert found["xla_gpu_enable_latency_hiding_scheduler"] == "false"  # the command line's
    assert found["xla_gpu_enable_command_buffer"] == "CUBLAS,FUSION"
    assert found["xla_backend_extra_options"] == "xla_y=2,xla_z="
    results = Path("dump/module_0007.jit_step.autotune_results.pbtxt").resolve()
    assert found["xla_gpu_load_autotune_results_from"] == str(results)
    assert found["xla_gpu_autotune_level"] == "0"
    assert "xla_old" not in found
    assert "xla_gpu_cuda_data_dir" not in found
    assert found["xla_dump_to"] != "/tmp/dump"
    notes = [
        line.removeprefix("from the dump: ")
        for line in capsys.readouterr().err.splitlines()
        if line.startswith("from the dump: ")
    ]
    assert notes == [
        "module: module_0007.jit_step.before_optimizations.txt",
        "target: module_0007.jit_step.gpu_target_config.pbtxt",
        "flags: xla_gpu_enable_latency_hiding_scheduler=true, "
        "xla_gpu_enable_command_buffer=CUBLAS,FUSION, xla_backend_extra_options=xla_y=2,xla_z=",
        "flags that were left out: xla_gpu_autotune_level=4 (there is no device), "
        "xla_gpu_cuda_data_dir=/nowhere/cuda (there is no such file here), "
        "xla_old=7 (this XLA does not know it)",
        "autotuning results: module_0007.jit_step.autotune_results.pbtxt",
    ]


def test_values_that_this_xla_does_not_read_are_left_out(xla: FakeXla, capsys: Capture) -> None:
    write_dump(options="".join(f"xla_{name}: {name.upper()}\n" for name in "abcdefg"))
    xla.unread = {"xla_b", "xla_f"}
    xla.unknown.add("xla_g")
    assert main(["xla", "compile", "--from-dump", "dump"]) == 0
    found = flags(xla.flags[-1])
    assert [name for name in found if len(name) == 5] == ["xla_a", "xla_c", "xla_d", "xla_e"]
    err = capsys.readouterr().err
    assert "xla_b=B (this XLA cannot read the value)" in err
    assert "xla_f=F (this XLA cannot read the value)" in err
    assert "xla_g=G (this XLA does not know it)" in err


@pytest.mark.parametrize(
    "line",
    [
        ["passes"],
        ["isolate", "--pass", "dce"],
        ["compare", "--passes", "dce", "--xla-pass", "dce"],
        ["bisect"],
    ],
)
def test_other_commands_take_a_dump(line: list[str], xla: FakeXla, capsys: Capture) -> None:
    write_dump()
    assert main(["xla", *line, "--from-dump", "dump"]) == 0
    assert flags(xla.flags[-1])["xla_gpu_enable_command_buffer"] == "CUBLAS,FUSION"


def test_what_is_not_there_is_said(xla: FakeXla, capsys: Capture) -> None:
    write_dump(options=None, results="version: 3\n")
    assert main(["xla", "compile", "--from-dump", "dump", "--format", "json"]) == 0
    captured = capsys.readouterr()
    for note in (
        "flags: no debug_options in the dump; XLA's defaults",
        "autotuning results: none in the dump; kernels may differ",
    ):
        assert note in captured.err
        assert note in captured.out
    assert "xla_gpu_load_autotune_results_from" not in xla.flags[-1]
    assert len(xla.flags) == 1  # there are no flags to ask about
    Path("dump/module_0007.jit_step.gpu_target_config.pbtxt").unlink()
    assert main(["xla", "compile", "--from-dump", "dump"]) == 2
    assert "--from-dump dump does not tell the target" in capsys.readouterr().err
    assert main(["xla", "compile", "--from-dump", "dump", "--target", "h100_sxm"]) == 0


def test_file_and_target_take_the_place_of_those_of_the_dump(xla: FakeXla, capsys: Capture) -> None:
    write_dump()
    line = ["xla", "compile", "m.hlo", "--from-dump", "dump", "--target", "b200"]
    assert main([*line, "--stage", "hlo-before"]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("HloModule m,")
    assert "module_0007.jit_step.before" not in captured.err
    assert "target: " not in captured.err


def test_one_of_several_modules_is_named(xla: FakeXla, capsys: Capture) -> None:
    write_dump()
    write_dump("jit_large_one", 9)
    line = ["xla", "compile", "--from-dump", "dump"]
    assert main(line) == 2
    err = capsys.readouterr().err
    assert "dump has 2 modules" in err
    assert "--module 9.jit_large_one is the largest" in err
    assert main([*line, "--module", "jit_step"]) == 0
    assert main([*line, "--module", "jit_stp"]) == 2
    assert "did you mean 'jit_step'?" in capsys.readouterr().err


def test_a_dump_of_xla_cpu_is_for_cpu(tmp_path: Path) -> None:
    for ending in ("before_optimizations.txt", "cpu_after_optimizations.txt"):
        (tmp_path / f"module_0001.m.{ending}").write_text(MODULE, encoding="utf-8")
    found = read_dump(str(tmp_path), None)
    assert found.target == "cpu"
    assert not any("autotuning" in note for note in found.notes(has_module=True, has_target=True))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ([], "no input: name a FILE, or --from-dump DIR"),
        (["m.hlo"], "Missing option '--target'"),
        (["m.hlo", "--target", "h100_sxm", "--module", "m"], "--module is a module of --from-dump"),
        (["--from-dump", "none"], "cannot list none: No such file"),
        (["--from-dump", "empty"], "empty: no module was dumped there"),
        (["--from-dump", "half"], "half: the dump has no before_optimizations of m"),
    ],
)
@pytest.mark.usefixtures("xla")
def test_mistakes(line: list[str], message: str, capsys: Capture) -> None:
    Path("empty").mkdir()
    Path("half").mkdir()
    Path("half/module_0001.m.gpu_after_optimizations.txt").write_text(MODULE, encoding="utf-8")
    assert main(["xla", "compile", *line]) == 2
    assert message in capsys.readouterr().err


def test_debug_options_are_flags() -> None:
    assert parse_debug_options(
        'a: "x \\"y\\" \\\\z"\n  b: -1.5\nc: true\nc: false\nnonsense\n'
    ) == {
        "a": 'x "y" \\z',
        "b": "-1.5",
        "c": "true,false",
    }
