"""`hloopt xla isolate --repro`: a file that says how XLA's pass is run on it again."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.compilers.fake_xla import H100, FakeXla

from hloopt.cli import main
from hloopt.files import load, read_source

Capture = pytest.CaptureFixture[str]
LINE = ["xla", "isolate", "m.hlo", *H100, "--pass", "dce"]


def test_the_module_before_with_the_command(xla: FakeXla, capsys: Capture) -> None:
    flag = ["--flag", "xla_a=b"]
    assert main([*LINE, *flag, "--repro", "repro.hlo"]) == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    again = "hloopt xla isolate repro.hlo --pass dce --place 1 --target h100_sxm --flag xla_a=b"
    assert f"to repeat it: {again}" in captured.err
    lines = read_source("repro.hlo").text.splitlines()
    assert lines[0].startswith("// RUN: hloopt xla isolate %s --pass dce --place 1 --target")
    assert lines[1].startswith(f"// In a shell: {again}")
    assert lines[2] == "// Compiler: fake_plugin.so"
    assert lines[3] == (
        "// XLA_FLAGS: --xla_a=b --xla_disable_hlo_passes=cse,spmd-partitioner "
        "--xla_gpu_autotune_level=0"
    )
    assert load("repro.hlo")["dead"].opcode.value == "abs"
    asked = len(xla.flags)
    assert main(["test", "repro.hlo"]) == 0
    assert "--xla_a=b" in xla.flags[asked]


def test_a_folder_gets_a_file_named_after_the_pass(xla: FakeXla) -> None:
    assert main([*LINE, "--repro", "some/", "-o", "after.hlo"]) == 0
    assert Path("some/dce.hlo").is_file()
    assert "dead" not in read_source("after.hlo").text


def test_a_description_of_a_gpu_is_found_from_everywhere(xla: FakeXla) -> None:
    Path("gpu.txtpb").write_text("gpu_device_info { core_count: 1 }\n", encoding="utf-8")
    line = ["xla", "isolate", "m.hlo", "--target", "gpu.txtpb", "--pass", "dce"]
    assert main([*line, "--devices", "1", "--repro", "repro.hlo"]) == 0
    first = read_source("repro.hlo").text.partition("\n")[0]
    assert f"--target {Path('gpu.txtpb').resolve()} --devices 1" in first


def test_json_lists_runs_only(xla: FakeXla, capsys: Capture) -> None:
    assert main([*LINE, "--repro", "repro.hlo", "--format", "json"]) == 2
    assert "leave out -o, --place and --repro" in capsys.readouterr().err
    assert xla.flags == []
