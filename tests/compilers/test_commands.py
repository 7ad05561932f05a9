"""`hloopt xla` with a compiler that compiles nothing: what is asked of it, shown, and refused."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.compilers.fake_xla import LOG, FakeXla, install

from hloopt.cli import main
from hloopt.files import load, read_source
from hloopt.text import print_module

Capture = pytest.CaptureFixture[str]
MODULE = """HloModule m

ENTRY %e (p: f32[8]) -> f32[8] {
  %p = f32[8]{0} parameter(0)
  %dead = f32[8]{0} abs(%p)
  ROOT %r = f32[8]{0} negate(%p)
}
"""
H100 = ["--target", "h100_sxm"]


@pytest.fixture
def xla(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeXla:
    monkeypatch.chdir(tmp_path)
    Path("m.hlo").write_text(MODULE, encoding="utf-8")
    fake = install(monkeypatch, tmp_path)
    fake.dead = "dead"
    return fake


def flags(text: str) -> dict[str, str]:
    return dict(flag.removeprefix("--").split("=", 1) for flag in text.split())


# -- compile --------------------------------------------------------------------------------------


def test_a_compile_is_two_tables(xla: FakeXla, capsys: Capture) -> None:
    assert main(["xla", "compile", "m.hlo", *H100]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^temp +1\.0 MiB$", out, re.M)
    assert re.search(r"^dce +tidy +1 +3\.0 ms$", out, re.M)
    assert out.index("dce ") < out.index("cse ")  # the slowest first
    assert "* 2 passes, 3.0 ms of 1.50 s, with logging and dumps" in out
    assert "without a device or autotuning" in out


def test_flags_and_environment_of_a_compile(xla: FakeXla, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLA_FLAGS", "--xla_of_the_user=1")
    options = ["--flag", "xla_a=b", "--flag", "--xla_c", "--flag", "xla_gpu_autotune_level=4"]
    assert main(["xla", "compile", "m.hlo", *H100, *options]) == 0
    found = flags(xla.flags[0])
    assert (found["xla_a"], found["xla_c"], found["xla_gpu_autotune_level"]) == ("b", "true", "4")
    assert "xla_of_the_user" not in found
    assert found["xla_disable_hlo_passes"] == "spmd-partitioner"
    assert "xla_dump_hlo_pass_re" not in found
    assert not Path(found["xla_dump_to"]).exists()  # nothing is left


def test_the_partitioner_runs_where_it_has_to(xla: FakeXla) -> None:
    sharded = MODULE.replace("HloModule m", "HloModule m, num_partitions=2").replace(
        "negate(%p)", "negate(%p), sharding={devices=[2]0,1}"
    )
    Path("m.hlo").write_text(sharded, encoding="utf-8")
    assert main(["xla", "compile", "m.hlo", *H100]) == 0
    assert "xla_disable_hlo_passes" not in flags(xla.flags[0])
    only = ["--flag", "xla_enable_hlo_passes_only=dce"]
    Path("m.hlo").write_text(MODULE, encoding="utf-8")
    assert main(["xla", "compile", "m.hlo", *H100, *only]) == 0
    assert "xla_disable_hlo_passes" not in flags(xla.flags[1])  # XLA takes one of the two


def test_a_stage_goes_to_stdout_or_a_file(xla: FakeXla, capsys: Capture) -> None:
    assert main(["xla", "compile", "m.hlo", *H100, "--stage", "hlo"]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("HloModule m")
    assert "dead" not in captured.out
    assert "kernels and times may differ" in captured.err
    assert main(["xla", "compile", "m.hlo", *H100, "--stage", "hlo-before", "-o", "b.hlo"]) == 0
    assert "dead" in read_source("b.hlo").text


def test_code_of_kernels_goes_to_one_file_or_to_one_each(xla: FakeXla, capsys: Capture) -> None:
    assert main(["xla", "compile", "m.hlo", *H100, "--stage", "ptx"]) == 0
    out = capsys.readouterr().out
    assert out.count(".version") == out.count("// module_0000.m.") == 2
    assert main(["xla", "compile", "m.hlo", *H100, "--stage", "ptx", "-o", "kernels/"]) == 0
    assert [path.name for path in sorted(Path("kernels").iterdir())] == [
        "module_0000.m.0.ptx",
        "module_0000.m.1.ptx",
    ]


def test_a_stage_that_is_not_there(xla: FakeXla, capsys: Capture) -> None:
    assert main(["xla", "compile", "m.hlo", *H100, "--stage", "llvm"]) == 2
    err = capsys.readouterr().err
    assert "this compile has no stage llvm" in err
    assert "it has hlo-before, hlo, memory, ptx" in err


def test_json_of_a_compile(xla: FakeXla, capsys: Capture) -> None:
    assert main(["xla", "compile", "m.hlo", *H100, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["memory"]["temp"] == 1 << 20
    assert found["passes"][0] == {
        **{"module": "m", "pipeline": "tidy", "pass": "dce"},
        **{"runs": 1, "seconds": 0.003},
    }


# -- passes and isolate ---------------------------------------------------------------------------


def test_the_chain_of_passes(xla: FakeXla, capsys: Capture) -> None:
    xla.answer = None  # it is ended once buffers are assigned
    assert main(["xla", "passes", "m.hlo", *H100, "--keep", "kept"]) == 0
    out = capsys.readouterr().out
    assert "m, module 0: 5 dumps, 1 changed the program" in out
    assert re.search(r"^0001 +dce +tidy +2 \(-1\) +0 +3\.0 ms", out, re.M)
    assert flags(xla.flags[0])["xla_dump_hlo_pass_re"] == ".*"
    assert main(["dumps", "kept", "--module", "m", "--passes"]) == 0
    assert main(["xla", "passes", "m.hlo", *H100, "--diff", "dce"]) == 1
    assert "%dead" in capsys.readouterr().out
    assert main(["xla", "passes", "m.hlo", *H100, "--track", "%dead"]) == 0
    assert "removed" in capsys.readouterr().out


def test_one_pass_alone(xla: FakeXla, capsys: Capture) -> None:
    assert main(["xla", "isolate", "m.hlo", *H100, "--pass", "dce", "-o", "out.hlo"]) == 0
    assert "dce, run 1 of 1, in tidy: changed the module" in capsys.readouterr().err
    assert "dead" not in read_source("out.hlo").text
    first, second = map(flags, xla.flags)
    assert first["xla_disable_hlo_passes"] == "spmd-partitioner"
    assert second["xla_disable_hlo_passes"] == "cse,spmd-partitioner"
    assert second["xla_dump_hlo_pass_re"] == "^dce$"
    assert main(["xla", "isolate", "m.hlo", *H100, "--pass", "cse", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"pipeline": "tidy", "changed": False}]


def test_a_pass_that_does_not_run(xla: FakeXla, capsys: Capture) -> None:
    assert main(["xla", "isolate", "m.hlo", *H100, "--pass", "dec"]) == 2
    err = capsys.readouterr().err
    assert "error[HLO021]" in err
    assert "did you mean 'dce'?" in err
    assert main(["xla", "isolate", "m.hlo", *H100, "--pass", "dce", "--place", "2"]) == 2
    assert "--place 2: dce has 1 run here" in capsys.readouterr().err


def test_passes_that_the_user_switched_off_stay_off(xla: FakeXla) -> None:
    off = ["--flag", "xla_disable_hlo_passes=algsimp"]
    assert main(["xla", "isolate", "m.hlo", *H100, "--pass", "dce", *off, "-o", "out.hlo"]) == 0
    assert flags(xla.flags[1])["xla_disable_hlo_passes"] == "algsimp,cse,spmd-partitioner"


@pytest.mark.parametrize(
    ("ending", "log", "code"),
    [((-9, True), LOG, 3), ((-6, False), "F1127 1:1:1.0 1 x.cc:9] Check failed: x\n", 3)],
)
def test_a_compile_that_fails_before_the_pass_is_the_failure(
    ending: tuple[int, bool], log: str, code: int, xla: FakeXla, capsys: Capture
) -> None:
    xla.answer, xla.ending, xla.log = None, ending, log
    xla.is_reported = False
    assert main(["xla", "isolate", "m.hlo", *H100, "--pass", "dce"]) == code
    assert "error[HLO704]" in capsys.readouterr().err


def test_a_pipeline_without_dumps_of_its_own(xla: FakeXla, capsys: Capture) -> None:
    assert main(["xla", "isolate", "m.hlo", *H100, "--pass", "tidy"]) == 2
    assert "XLA writes no dumps around 'tidy'" in capsys.readouterr().err


def test_dumps_are_kept_in_an_empty_folder_only(xla: FakeXla, capsys: Capture) -> None:
    Path("kept").mkdir()
    Path("kept/x").touch()
    assert main(["xla", "passes", "m.hlo", *H100, "--keep", "kept"]) == 2
    assert "the folder is not empty" in capsys.readouterr().err
    assert xla.flags == []


def test_names_say_whether_a_proto_is_written(xla: FakeXla) -> None:
    for name in ("out.hlo", "out.pb", "out.pbtxt"):
        assert main(["xla", "compile", "m.hlo", *H100, "--stage", "hlo", "-o", name]) == 0
        assert "dead" not in print_module(load(name))
        assert main(["xla", "isolate", "m.hlo", *H100, "--pass", "dce", "-o", f"i{name}"]) == 0
        assert "dead" not in print_module(load(f"i{name}"))


def test_folders_may_have_spaces(xla: FakeXla, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("a b").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", os.path.abspath("a b"))
    assert main(["xla", "compile", "m.hlo", *H100]) == 0
    (place,) = re.findall(r'--xla_dump_to="([^"]*)"', xla.flags[0])
    assert "/a b/hloopt-xla-" in place


# -- compare --------------------------------------------------------------------------------------


def renamed(text: str) -> str:
    return text.replace("%r", "%s")


def rewritten(text: str) -> str:
    return text.replace("negate(%p)", "multiply(%p, %m)").replace(
        "  ROOT", "  %c = f32[] constant(-1)\n  %m = f32[8]{0} broadcast(%c), dimensions={}\n  ROOT"
    )


def wrong(text: str) -> str:
    return text.replace("negate(%p)", "abs(%p)")


@pytest.mark.parametrize(
    ("cse", "verdict", "exit_code"),
    [
        (str, "equal text", 0),
        (renamed, "equal up to names", 0),
        (rewritten, "equivalent", 0),
        (wrong, "different", 1),
    ],
)
def test_a_pass_of_ours_against_one_of_xla(
    cse: Callable[[str], str], verdict: str, exit_code: int, xla: FakeXla, capsys: Capture
) -> None:
    xla.cse = cse
    line = ["xla", "compare", "m.hlo", *H100, "--passes", "cse", "--xla-pass", "cse"]
    assert main(line) == exit_code
    out = capsys.readouterr().out
    assert out.startswith(f"cse and XLA's cse (run 1 of 1, in tidy): {verdict}\n")
    assert ("neither changed the module" in out) == (cse is str)
    assert ("instructions" in out) == (verdict in ("equivalent", "different"))
    assert main([*line, "--format", "json"]) == exit_code
    found = json.loads(capsys.readouterr().out)
    assert (found["verdict"], found["changed"]) == (verdict, {"xla": cse is not str, "ours": False})


def test_a_result_that_cannot_run_is_no_verdict(xla: FakeXla, capsys: Capture) -> None:
    endless = MODULE.replace("negate(%p)", "while(%p), condition=%c, body=%b").replace(
        "ENTRY",
        "%c (x: f32[8]) -> pred[] {\n  %x = f32[8]{0} parameter(0)\n"
        "  ROOT %t = pred[] constant(true)\n}\n\n"
        "%b (y: f32[8]) -> f32[8] {\n  %y = f32[8]{0} parameter(0)\n"
        "  ROOT %z = f32[8]{0} negate(%y)\n}\n\nENTRY",
    )
    Path("m.hlo").write_text(endless, encoding="utf-8")
    xla.cse = lambda text: text.replace("negate(%y)", "abs(%y)")
    line = ["xla", "compare", "m.hlo", *H100, "--passes", "dce", "--xla-pass", "cse"]
    assert main([*line, "--timeout", "0.5"]) == 2
    assert "cannot tell" in capsys.readouterr().out
    assert main([*line[:-3], "nothing", "--xla-pass", "cse"]) == 2


# -- failures -------------------------------------------------------------------------------------

FATAL = "F1127 19:42:22.685068 1 thunk.cc:9] Check failed: a == b (1 vs. 2)\n*** stack ***\n"
UNKNOWN = "E1127 1:1:1.0 1 parse.cc:1] Unknown flag in XLA_FLAGS: --xla_nonsense=1\n" + FATAL
NO_TEXT = "E1 1 1 t.cc:3] Error parsing text-format s.GpuTargetConfigProto: 1:9: Expected\n"
VALUE = "Couldn't interpret value abc for flag xla_gpu_autotune_level.\n" + FATAL


@pytest.mark.parametrize(
    ("answer", "ending", "log", "code", "message"),
    [
        ({"refused": "INTERNAL: no\n  more"}, (0, False), "", 3, "refuses the program: no"),
        ({"unfit": "too old"}, (0, False), "", 2, "error[HLO019]: too old"),
        (None, (-6, False), FATAL, 3, "ended its process: Check failed: a == b (1 vs. 2)"),
        (None, (-11, False), "", 3, "XLA died of SIGSEGV"),
        (None, (-9, True), "", 3, "XLA did not end within 600 s"),
        (None, (1, False), "Traceback\nOops: x\n", 3, "ended with exit code 1: Oops: x"),
        ({"refused": "Failed"}, (0, False), NO_TEXT, 2, "GPU cannot be read: 1:9: Expected"),
        (None, (-6, False), UNKNOWN, 2, "error[HLO020]: this XLA does not know xla_nonsense=1"),
        (None, (-6, False), VALUE, 2, "error[HLO020]: 'abc' is no value of xla_gpu_autotune_level"),
    ],
)
def test_failures_are_one_message(
    xla: FakeXla,
    capsys: Capture,
    answer: dict[str, object] | None,
    ending: tuple[int, bool],
    log: str,
    code: int,
    message: str,
) -> None:
    xla.answer, xla.ending = answer, ending
    xla.log = xla.log + log
    assert main(["xla", "compile", "m.hlo", *H100]) == code
    err = capsys.readouterr().err
    assert message in err
    assert err.count("error[") == 1
    if ending[0]:
        assert ("the last pass that began is cse" in err) == (code == 3)


def test_the_rest_of_a_refusal_is_a_note(xla: FakeXla, capsys: Capture) -> None:
    xla.answer = {"refused": "INVALID_ARGUMENT: the cause\nwith\n   more"}
    assert main(["xla", "compile", "m.hlo", *H100]) == 3
    assert capsys.readouterr().err.splitlines()[:2] == [
        "error[HLO704]: XLA refuses the program: the cause",
        "   = note: with more",
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("m.hlo --target tpu_v5p", "the target has no section cuda"),
        ("m.hlo --target nothing", "no target 'nothing'"),
        ("m.hlo --target h100_sxm --plugin cuda14", "no plug-in 'cuda14' is known"),
        ("m.hlo --target h100_sxm --plugin none.so", "no plug-in none.so: there is no such file"),
        ("m.hlo --target h100_sxm --plugin rocm7", "pip install jax-rocm7-pjrt"),
        ("m.hlo --target h100_sxm --flag dump=1", "'dump=1' is no flag of XLA"),
        ("m.hlo --target h100_sxm --stage asm", "'asm' is not one of"),
        ("m.hlo --target h100_sxm -o out.hlo", "-o is for a stage"),
        ("m.hlo --target h100_sxm --timeout 0", "0 is not in the range"),
        ("m.hlo --target h100_sxm --devices 0", "0 is not in the range"),
        ("m.hlo --target none.txtpb", "cannot read none.txtpb"),
        ("m.hlo --target m.txtpb", "m.txtpb is no GpuTargetConfigProto"),
        ("m.hlo --target h100_sxm --flag xla_dump_to=x", "xla_dump_to is not free here"),
        ("m.hlo --target h100_sxm --stage hlo --format json", "--format json is for the tables"),
        ("none.hlo --target h100_sxm", "cannot read none.hlo"),
        ("none.mlir --target h100_sxm", "cannot read none.mlir"),
        ("m.hlo", "Missing option '--target'"),
    ],
)
@pytest.mark.usefixtures("xla")
def test_mistakes(line: str, message: str, capsys: Capture) -> None:
    Path("m.txtpb").touch()
    assert main(["xla", "compile", *line.split()]) == 2
    assert message in capsys.readouterr().err


def test_without_a_plugin_the_message_says_what_to_install(
    xla: FakeXla, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.delenv("HLOOPT_XLA_PLUGIN")
    monkeypatch.setattr("hloopt.compilers.plugins.find_spec", lambda name: None)
    assert main(["xla", "compile", "m.hlo", *H100]) == 2
    assert "pip install 'hloopt[xla-gpu]'" in capsys.readouterr().err
    assert main(["xla", "compile", "m.hlo", "--target", "cpu"]) == 2
    assert "pip install 'hloopt[xla]'" in capsys.readouterr().err
