"""Failures of the real compilers, made on purpose: one message, the exit code, nothing left."""

from __future__ import annotations

import gzip
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hloopt.cli import main

pytestmark = [pytest.mark.oracle]

Capture = pytest.CaptureFixture[str]
SMALL = """HloModule m
ENTRY e {
  p = f32[64,64] parameter(0)
  q = f32[64,64] dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT c = f32[64,64] tanh(q)
}
"""
SHARDED = """HloModule m, num_partitions=4
ENTRY e {
  p = f32[8,8] parameter(0), sharding={devices=[2,4]<=[8]}
  ROOT c = f32[8,8] negate(p), sharding={devices=[2,4]<=[8]}
}
"""
UNKNOWN_CALL = """HloModule m
ENTRY e {
  p = f32[8] parameter(0)
  ROOT c = f32[8] custom-call(p), custom_call_target="nobody_knows"
}
"""
LARGE = """HloModule m
ENTRY e {
  p = f32[9000000,1000000] parameter(0)
  ROOT c = f32[9000000,1000000] negate(p)
}
"""
STABLEHLO = """module @m {
  func.func public @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
    %0 = stablehlo.ad %arg0, %arg0 : tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
"""
SLOW = """HloModule m
add { x = f32[] parameter(0)  y = f32[] parameter(1)  ROOT s = f32[] add(x, y) }
ENTRY e {
  i = f32[3000,3000] iota(), iota_dimension=0
  z = f32[] constant(0)
  ROOT w = f32[3000,3000] reduce-window(i, z), window={size=99x99 pad=49_49x49_49}, to_apply=add
}
"""
"""Constant folding computes 9 million windows of 9,801 elements each."""
STEP = "transformer_scan_8dev.after_spmd_partitioning.hlo"
AS_MANY = "replica groups should contain {} flattened IDs, but found 8"
BOTH_LISTS = ["xla_enable_hlo_passes_only=dce", "xla_disable_hlo_passes=cse"]
"""XLA checks that one of them is empty, and aborts."""


@pytest.fixture
def folder(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current folder, with a program of each kind; behind the test nothing else is left."""
    programs = {
        "small.hlo": SMALL,
        "sharded.hlo": SHARDED,
        "call.hlo": UNKNOWN_CALL,
        "large.hlo": LARGE,
        "slow.hlo": SLOW,
        "garbled.hlo": "HloModule m\nENTRY e {{{ no HLO\n",
        "empty.hlo": "",
        "empty.mlir": "",
        "wrong.mlir": STABLEHLO,
        "notes.so": "no library\n",
    }
    for name, text in programs.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "step.hlo").write_bytes((root / "testdata" / STEP).read_bytes())
    (tmp_path / "garbled.pb").write_bytes(b"\x0a\x03abc\xff\xff\xff\xff\xff" * 9)
    (tmp_path / "garbled.hlo.gz").write_bytes(gzip.compress(SMALL.encode())[:-9])
    (tmp_path / "garbled.mlirbc").write_bytes(b"ML\xefR\x0dStableHLO\x00\x01\x02\x03 garbled")
    monkeypatch.chdir(tmp_path)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    monkeypatch.setenv("TMPDIR", str(temporary))
    yield tmp_path
    assert list(temporary.iterdir()) == []
    assert compilers_in(temporary) == []


@pytest.fixture(params=["cpu", "gpu"])
def target(request: pytest.FixtureRequest) -> list[str]:
    """Options that name a compiler: XLA:CPU, XLA:GPU."""
    if request.param == "cpu":
        pytest.importorskip("jaxlib", reason="needs the extra xla")
        return ["--target", "cpu"]
    return ["--target", "h100_sxm", *request.getfixturevalue("plugin")]


@pytest.fixture
def gpu(plugin: list[str]) -> list[str]:
    return ["--target", "h100_sxm", *plugin]


def compilers_in(temporary: Path) -> list[int]:
    """Process ids of compilers whose job is in a folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:  # it ended meanwhile
            continue
        if any(word.startswith(os.fsencode(temporary)) for word in words):
            found.append(int(path.parent.name))
    return found


def failure(capsys: Capture, code: int, *arguments: str) -> str:
    """The one message of a command line that ends with an exit code."""
    assert main(["xla", *arguments]) == code
    err = capsys.readouterr().err
    assert err.count("error[") == 1
    assert err.startswith("error[")
    for trace in ("Traceback", "*** Check failure stack trace", "@     0x"):
        assert trace not in err
    return err


# -- the input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("sharded.hlo", "tile_assignment should have 4 devices but has 8"),
        ("garbled.hlo", "garbled.hlo:2:"),
        ("garbled.pb", "garbled.pb: this is no HLO proto"),
        ("garbled.hlo.gz", "garbled.hlo.gz"),
        ("empty.hlo", "the text is empty"),
        ("empty.mlir", "empty.mlir is empty"),
        ("wrong.mlir", "wrong.mlir:3:10"),
        ("garbled.mlirbc", "error[HLO022]: XLA cannot read the StableHLO: "),
        ("none.hlo", "cannot read none.hlo"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_an_input_that_is_wrong(
    name: str, message: str, target: list[str], capsys: Capture
) -> None:
    for command in (["compile"], ["passes"], ["isolate", "--pass", "dce"]):
        assert message in failure(capsys, 2, command[0], name, *command[1:], *target)


@pytest.mark.parametrize("count", [3, 16])
@pytest.mark.usefixtures("folder")
def test_a_wrong_number_of_devices(count: int, target: list[str], capsys: Capture) -> None:
    err = failure(capsys, 2, "compile", "step.hlo", *target, "--devices", str(count))
    assert AS_MANY.format(count) in err
    assert "it is a program for 8 devices" in err


# -- flags and passes -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("xla_gpu_autotun_level=1", "did you mean 'xla_gpu_autotune_level'?"),
        ("xla_nonsense_of_mine", "does not know xla_nonsense_of_mine=true"),
        ("xla_gpu_autotune_level=abc", "'abc' is no value of xla_gpu_autotune_level"),
        ("xla_gpu_enable_command_buffer=NO", "the value of xla_gpu_enable_command_buffer=NO"),
        ("xla_backend_extra_options=no-option=1", "LLVM has no option 'no-option=1'"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_a_wrong_flag(flag: str, message: str, target: list[str], capsys: Capture) -> None:
    err = failure(capsys, 2, "compile", "small.hlo", *target, "--flag", flag)
    assert err.startswith("error[HLO020]: ")
    assert message in err


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nonsense", "docs/xla_isolation.md those that run alone"),
        ("algsmp", "did you mean 'algsimp'?"),
        ("topk-decompose", "did you mean 'topk-decomposer'?"),
    ],
)
@pytest.mark.parametrize(
    "command", [["isolate", "--pass"], ["compare", "--passes=dce", "--xla-pass"]]
)
@pytest.mark.usefixtures("folder")
def test_a_pass_that_the_compiler_does_not_run(
    command: list[str], name: str, message: str, target: list[str], capsys: Capture
) -> None:
    err = failure(capsys, 2, command[0], "small.hlo", *target, *command[1:], name)
    assert f"error[HLO021]: XLA does not run a pass '{name}'" in err
    assert message in err


@pytest.mark.usefixtures("folder")
def test_a_pipeline_in_place_of_a_pass(target: list[str], capsys: Capture) -> None:
    name = "HLO passes through layout assignment" if "cpu" in target else "fusion"
    part = "simplification" if "cpu" in target else "priority-fusion"
    err = failure(capsys, 2, "isolate", "small.hlo", *target, "--pass", name)
    assert "is a pipeline of XLA that is no pass of another" in err
    assert re.search(rf"name one of its passes: .*\b{part}\b", err)


# -- the compiler refuses, dies, takes too long ---------------------------------------------------


@pytest.mark.usefixtures("folder")
def test_an_unknown_custom_call(target: list[str], capsys: Capture) -> None:
    err = failure(capsys, 3, "compile", "call.hlo", *target)
    cause, note, help = err.splitlines()
    assert cause.startswith("error[HLO704]: XLA refuses the program: No registered implementation")
    assert "nobody_knows" in cause
    assert note.startswith("   = note: the last pass that began is ")
    name = target[1]
    assert f"`hloopt xla compile call.hlo --target {name}" in help
    assert f"`hloopt reduce call.hlo --xla-crashes {name}" in help


@pytest.mark.parametrize("command", [["compile"], ["passes"], ["isolate", "--pass", "dce"]])
@pytest.mark.usefixtures("folder")
def test_a_failed_check_of_the_compiler(
    command: list[str], target: list[str], capsys: Capture
) -> None:
    flags = [word for flag in BOTH_LISTS for word in ("--flag", flag)]
    err = failure(capsys, 3, command[0], "small.hlo", *command[1:], *target, *flags)
    assert "XLA ended its process: Check failed: disable" in err
    assert "no pass had begun" in err
    assert "--flag xla_disable_hlo_passes=cse" in err.splitlines()[-1]


@pytest.mark.usefixtures("folder")
def test_a_compile_without_end(target: list[str], capsys: Capture) -> None:
    begin = time.monotonic()
    err = failure(capsys, 3, "compile", "slow.hlo", *target, "--timeout", "4")
    assert time.monotonic() - begin < 30
    assert "XLA did not end within 4 s; the last pass that began is constant_folding" in err
    assert "--timeout SECONDS gives it longer" in err
    assert "`hloopt reduce slow.hlo --xla-crashes" in err
    assert "--hangs 4s" in err


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_a_compiler_that_is_killed(
    number: signal.Signals, folder: Path, target: list[str], capsys: Capture
) -> None:
    killer = threading.Thread(target=kill, args=(folder / "temporary", number))
    killer.start()
    err = failure(capsys, 3, "compile", "slow.hlo", *target)
    killer.join()
    assert f"XLA died of {number.name}; the last pass that began is constant_folding" in err
    assert ("killed from outside" in err) == (number is signal.SIGKILL)
    assert "repeats it" in err


def kill(temporary: Path, number: signal.Signals) -> None:
    """Kill the compiler once it folds constants."""
    log = await_one(lambda: next(temporary.glob("*/log.txt"), None))
    await_one(lambda: "HLO pass constant_folding" in log.read_text(errors="replace"))
    for child in compilers_in(temporary):
        os.kill(child, number)


def await_one(look: Callable[[], object]) -> Path:
    for _ in range(600):
        if found := look():
            return found if isinstance(found, Path) else Path()
        time.sleep(0.05)
    raise AssertionError("it does not come")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_command_that_is_interrupted(
    number: signal.Signals, folder: Path, target: list[str]
) -> None:
    """Ctrl-C, or whatever ends hloopt: neither the compiler nor a folder is left."""
    temporary = folder / "temporary"
    command = [sys.executable, "-m", "hloopt", "xla", "compile", "slow.hlo", *target]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as run:
        await_one(lambda: next(temporary.glob("*/log.txt"), None))
        await_one(lambda: compilers_in(temporary))
        run.send_signal(number)
        _, err = run.communicate(timeout=60)
    if number is signal.SIGKILL:  # the compiler finds out
        assert run.returncode == -number
        await_one(lambda: not list(temporary.iterdir()) and not compilers_in(temporary))
    else:
        assert run.returncode == 128 + number
        assert err.split() == (["interrupted"] if number is signal.SIGINT else [])


# -- the compiler itself --------------------------------------------------------------------------


@pytest.mark.usefixtures("folder")
def test_a_plugin_that_is_none(capsys: Capture) -> None:
    import ctypes.util

    library = ctypes.util.find_library("m")
    assert library is not None
    place = next(path for path in Path("/").glob(f"*lib*/**/{library}"))
    for name, message in (
        (str(place), "has no function GetPjrtApi"),
        ("notes.so", "cannot load"),
        ("nowhere.so", "no plug-in nowhere.so: there is no such file"),
        ("cuda14", "no plug-in 'cuda14' is known"),
    ):
        given = ["--target", "h100_sxm", "--plugin", name]
        err = failure(capsys, 2, "compile", "small.hlo", *given)
        assert err.startswith("error[HLO019]: ")
        assert message in err
    assert main(["xla", "compile", "small.hlo", "--target", "cpu", "--plugin", "notes.so"]) == 2
    assert "--target cpu takes that of jaxlib" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "extra"), [("cpu", "hloopt[xla]"), ("h100_sxm", "hloopt[xla-gpu]")]
)
def test_a_compiler_that_is_not_installed(name: str, extra: str, folder: Path) -> None:
    """A Python that has hloopt and what it needs, and no wheels of XLA."""
    program = (
        "import importlib.machinery as machinery, sys\n"
        "find = machinery.PathFinder.find_spec\n"
        "def find_spec(name, path=None, target=None):\n"
        "    is_xla = name.partition('.')[0] in ('jaxlib', 'jax_plugins')\n"
        "    return None if is_xla else find(name, path, target)\n"
        "machinery.PathFinder.find_spec = find_spec\n"
        "from hloopt.cli import main\n"
        f"sys.exit(main(['xla', 'compile', 'small.hlo', '--target', '{name}']))\n"
    )
    kept = {key: value for key, value in os.environ.items() if key != "HLOOPT_XLA_PLUGIN"}
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, env=kept
    )
    assert run.returncode == 2, run.stderr
    assert run.stderr.startswith("error[HLO019]: the compiler of XLA:")
    assert f"pip install '{extra}'" in run.stderr


@pytest.mark.usefixtures("folder")
def test_a_device_that_is_too_small(target: list[str], capsys: Capture) -> None:
    assert main(["xla", "compile", "large.hlo", *target]) == 0
    out = " ".join(capsys.readouterr().out.split())
    where = "this machine" if "cpu" in target else "h100_sxm"
    assert "it does not fit: XLA's buffers need 65.5 TiB on each device" in out
    assert f"and {where} has " in out
    assert main(["xla", "passes", "large.hlo", *target]) == 0
    assert "it does not fit" in capsys.readouterr().err


def test_a_description_of_a_device_that_is_too_small(
    gpu: list[str], shared: Path, folder: Path, capsys: Capture
) -> None:
    text = (shared / "oracle" / "targets" / "h100_sxm.txtpb").read_text(encoding="utf-8")
    small = re.sub(r"device_memory_size: \d+", "device_memory_size: 30000", text)
    (folder / "small.txtpb").write_text(small, encoding="utf-8")
    for name, fits in (("small.txtpb", False), ("h100_sxm", True)):
        assert main(["xla", "compile", "small.hlo", *gpu, "--target", name]) == 0
        out = " ".join(capsys.readouterr().out.split())
        assert ("it does not fit: XLA's buffers need 32.0 KiB on each device" in out) == (not fits)
