"""`hloopt numerics`: exit codes, the page, JSON, and bad input."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.page_examples import assert_printed, blocks, work_in

from hloopt.cli import main

Capture = pytest.CaptureFixture[str]
Write = Callable[..., list[str]]

BASE = """HloModule m

ENTRY e {
  p = f32[8]{0} parameter(0)
  q = f32[8]{0} parameter(1)
  a = f32[8]{0} add(p, q), metadata={op_name="jit(f)/layer_0/add"}
  d = f32[8]{0} divide(a, q), metadata={op_name="jit(f)/layer_1/div"}
  ROOT r = (f32[8]{0}, f32[8]{0}) tuple(d, a)
}
"""
SWAPPED = BASE.replace("divide(a, q)", "divide(q, a)")


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Write modules into files; their names."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")

    def write(*texts: str) -> list[str]:
        names = [f"{number}.hlo" for number in range(len(texts))]
        for name, text in zip(names, texts, strict=True):
            Path(name).write_text(text)
        return names

    return write


def test_the_first_instruction_and_its_scope(write: Write, capsys: Capture) -> None:
    assert main(["numerics", *write(BASE, SWAPPED)]) == 1
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.startswith("different: output{0}[0] was ")
    assert lines[0].startswith("first at %d (0.hlo:7): ")
    assert lines[0].endswith("of its largest value")
    assert lines[1:5] == [
        "  op_name: jit(f)/layer_1/div",
        "  operand 0 was add %a, it is parameter %q",
        "  operand 1 was parameter %q, it is add %a",
        "  on one device; seed 0",
    ]
    assert lines[5].split() == ["scope", "differ", "ulps", "type", "of", "largest", "first"]
    assert lines[7].startswith("jit(f)/layer_1  1 of 1")
    assert lines[8] == "2 instructions compared"


def test_equal_modules(write: Write, capsys: Capture) -> None:
    assert main(["numerics", *write(BASE, BASE)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "equal: 2 outputs, 1 device, 3 seeds, bit for bit",
        "all values that were compared are equal bit for bit (seed 0)",
        "2 instructions compared",
    ]


def test_the_depth_of_a_scope(write: Write, capsys: Capture) -> None:
    paths = write(BASE, SWAPPED)
    for options, label in (
        (["--depth", "1"], "jit(f) "),
        (["--by", "op_name"], "jit(f)/layer_1/div"),
        (["--by", "instruction"], "%d"),
    ):
        assert main(["numerics", *paths, *options]) == 1
        assert f"\n{label} " in capsys.readouterr().out


def test_what_has_no_counterpart_is_named(write: Write, capsys: Capture) -> None:
    assert main(["numerics", *write(BASE, BASE.replace("divide(a, q)", "log(a)"))]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[2:] == [
        "  only A has divide %d (0.hlo:7)",
        "  only B has log %d (1.hlo:7)",
        "1 instruction compared; not, or in part: 1 only A has, 1 only B has",
    ]


def test_nothing_in_common(write: Write, capsys: Capture) -> None:
    other = BASE.replace("add(p, q)", "subtract(p, q)").replace("divide(a, q)", "log(a)")
    assert main(["numerics", *write(BASE, other)]) == 1
    assert "\nno values to compare: " in capsys.readouterr().out


def test_json(write: Write, capsys: Capture) -> None:
    paths = write(BASE, SWAPPED)
    assert main(["numerics", *paths, "--format", "json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["before"], found["after"], found["verdict"]) == (*paths, "different")
    origin = found["origin"]
    assert (origin["before"], origin["op_name"], origin["run"]) == ("d", "jit(f)/layer_1/div", 0)
    assert origin["operands"][0] == {"number": 0, "before": "add %a", "after": "parameter %q"}
    assert [group["name"] for group in found["groups"]] == ["jit(f)/layer_1", "jit(f)/layer_0"]
    assert found["groups"][1]["first"] is None
    assert main(["numerics", paths[0], paths[0], "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["origin"] is None


def test_inputs_that_are_given(write: Write, capsys: Capture, tmp_path: Path) -> None:
    paths = write(BASE, SWAPPED)
    ones = np.ones(8, np.float32)
    np.savez(tmp_path / "in.npz", p=ones - 1, q=ones)
    assert main(["numerics", *paths, "--input", "in.npz"]) == 0
    assert "1 seed" in capsys.readouterr().out


def test_no_verdict(write: Write, capsys: Capture) -> None:
    nan = BASE.replace("add(p, q)", "subtract(p, p)").replace("divide(a, q)", "divide(a, a)")
    assert main(["numerics", *write(nan, nan)]) == 2
    assert capsys.readouterr().out.startswith("not decided: output{0} is nowhere finite")


@pytest.mark.parametrize(
    ("other", "options", "message"),
    [
        (BASE[:200], [], "is never closed"),
        (
            BASE.replace("q = f32[8]", "q = f32[4]")
            .replace("(p, q)", "(p, p)")
            .replace("a, q", "a, a"),
            [],
            "the modules cannot run on the same inputs: parameter 1 was f32[8] (0.hlo:5)",
        ),
        (BASE, ["--engine", "xla"], "XLA tells results only"),
        (BASE, ["--max-steps", "1"], "stopped after 1 step"),
        (BASE, ["--max-memory", "10B"], "the limit is 10"),
    ],
)
def test_bad_input(
    other: str, options: list[str], message: str, write: Write, capsys: Capture
) -> None:
    assert main(["numerics", *write(BASE, other), *options]) == 2
    assert message in capsys.readouterr().err


WHOLE = """HloModule m, num_partitions=4

ENTRY e {
  p = f32[16]{0} parameter(0), sharding={devices=[4]<=[4]}
  ROOT r = f32[16]{0} multiply(p, p), sharding={devices=[4]<=[4]}
}
"""
PART = """HloModule m, num_partitions=4

ENTRY e {
  p = f32[4]{0} parameter(0), sharding={devices=[4]<=[4]}
  ROOT r = f32[4]{0} multiply(p, p)
}
"""


def test_a_partitioned_module_has_other_sizes(write: Write, capsys: Capture) -> None:
    assert main(["numerics", *write(WHOLE, PART)]) == 2
    assert "one module computes for all devices, the other one is partitioned" in (
        capsys.readouterr().err
    )


def test_a_closed_pipe(write: Write) -> None:
    command = [sys.executable, "-m", "hloopt", "numerics", *write(BASE, SWAPPED), "--seeds", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


def test_the_page_has_python_that_runs(write: Write, root: Path, capsys: Capture) -> None:
    for name, old in zip(("before.hlo", "after.hlo"), write(BASE, SWAPPED), strict=True):
        Path(old).rename(name)
    (code,) = blocks(root, "numerics.md", "python")
    exec(code, {})
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("jit(f)/layer_1/div ")
    assert [line.partition(" ")[0] for line in lines[1:]] == ["a", "d"]


def test_the_page_shows_what_is_printed(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    work_in(tmp_path, root, monkeypatch)
    (page,) = blocks(root, "numerics.md", "console")
    text = Path("testdata/mlp_psum_8dev.after_spmd_partitioning.hlo").read_text()
    old, new = "subtract(%dot_general.11, %param.3)", "subtract(%param.3, %dot_general.11)"
    assert f"sed 's/{old}/{new}/'" in page
    Path("build/other.hlo").write_text(text.replace(old, new))
    assert_printed(page, capsys)
