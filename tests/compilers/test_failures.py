"""Failures of `hloopt xla`: one message each, with the cause first and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.compilers.fake_xla import H100, LOG, FakeXla

from hloopt.cli import main

Capture = pytest.CaptureFixture[str]
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


def test_a_failure_says_how_to_see_it_again_and_make_it_small(
    xla: FakeXla, capsys: Capture
) -> None:
    xla.answer, xla.ending = None, (-6, False)
    xla.log += FATAL
    more = ["--flag", "xla_a=b", "--plugin", "fake_plugin.so"]
    xla.is_reported = False
    for command in ("compile", "passes"):
        assert main(["xla", command, "m.hlo", *H100, *more]) == 3
        found = capsys.readouterr().err
        words = "--flag xla_a=b --plugin fake_plugin.so`"
        assert f"`hloopt xla compile m.hlo --target h100_sxm {words} repeats it" in found
        assert f"`hloopt reduce m.hlo --xla-crashes h100_sxm {words} makes" in found
    assert main(["xla", "compile", "m.hlo", *H100, "--devices", "4"]) == 3
    err = capsys.readouterr().err
    assert "--target h100_sxm --devices 4` repeats it" in err
    assert "reduce" not in err  # which takes the devices that the program says


def test_what_is_too_slow_or_was_killed(xla: FakeXla, capsys: Capture) -> None:
    xla.answer = None
    xla.ending = (-9, True)
    assert main(["xla", "compile", "m.hlo", *H100, "--timeout", "70"]) == 3
    err = capsys.readouterr().err
    assert "--timeout SECONDS gives it longer; `hloopt reduce m.hlo --xla-crashes h100_sxm" in err
    assert "--hangs 70s` makes the smallest program that takes as long" in err
    xla.ending = (-9, False)
    assert main(["xla", "compile", "m.hlo", *H100]) == 3
    err = capsys.readouterr().err
    assert "XLA died of SIGKILL" in err
    assert "killed from outside: by the system, if memory ran out" in err
    assert "reduce" not in err


@pytest.mark.parametrize(
    ("last", "code", "message"),
    [
        ("cse", 3, "XLA refuses the program: no"),
        ("dce", 2, "'cse' cannot run alone on this program, XLA fails before it"),
    ],
)
def test_a_pass_that_fails_alone(
    last: str, code: int, message: str, xla: FakeXla, capsys: Capture
) -> None:
    """The pass itself fails, or XLA does before it because of what is switched off."""
    xla.refusals[2] = "INTERNAL: no", f"{LOG.partition(f'HLO pass {last}')[0]}HLO pass {last}\n"
    assert main(["xla", "isolate", "m.hlo", *H100, "--pass", "cse"]) == code
    err = capsys.readouterr().err
    assert message in err
    assert err.count("error[") == 1


STABLEHLO = "func.func @main() {\n  return %x : tensor<f32>\n}\n"
WRONG = "INVALID_ARGUMENT: {}:2:10: error: use of undeclared\n-: Failed to parse using StableHLO v1"


def test_stablehlo_that_cannot_be_read(xla: FakeXla, capsys: Capture) -> None:
    Path("m.mlir").write_text(STABLEHLO, encoding="utf-8")
    Path("m.mlirbc").write_bytes(b"ML\xefRx")
    for path, file, place in (
        ("m.mlir", "-", "--> m.mlir:2:10"),
        ("m.mlir", "step.py", "--> m.mlir\n"),
        ("m.mlirbc", "-", "--> m.mlirbc\n"),
    ):
        xla.refusals[len(xla.flags) + 1] = WRONG.format(file), ""
        assert main(["xla", "compile", path, *H100]) == 2
        err = capsys.readouterr().err
        assert "error[HLO022]: XLA cannot read the StableHLO: use of undeclared\n" in err
        assert place in err


@pytest.mark.usefixtures("xla")
@pytest.mark.parametrize("count", ["3", "16"])
def test_devices_that_the_program_is_not_for(count: str, capsys: Capture) -> None:
    Path("m.hlo").write_text(
        "HloModule m, num_partitions=8\nENTRY e {\n  p = f32[8] parameter(0)\n"
        "  ROOT g = f32[64] all-gather(p), dimensions={0}, channel_id=1, "
        "use_global_device_ids=true, replica_groups={{0,1,2,3,4,5,6,7}}\n}\n"
    )
    assert main(["xla", "compile", "m.hlo", *H100, "--devices", count]) == 2
    err = capsys.readouterr().err
    assert f"replica groups should contain {count} flattened IDs, but found 8" in err
    assert "it is a program for 8 devices" in err
    assert main(["xla", "compile", "m.hlo", *H100, "--devices", "8"]) == 0


LIBRARY = b"\0xla_gpu_autotune_level\0xla_dump_to\0"


@pytest.mark.parametrize(
    ("given", "log", "message"),
    [
        (
            ["xla_a=b"],
            "Unknown flag in XLA_FLAGS: --xla_gpu_autotun_level=4",
            "'xla_gpu_autotune_l",
        ),
        (
            ["xla_a=b"],
            "Unknown flag in XLA_FLAGS: --xla_x=4",
            "flags come and go with its versions",
        ),
        (["xla_a=b"], "Flag parsing failed.", "cannot read the value of xla_a=b\n"),
        (["xla_a", "xla_c=d"], "Flag parsing failed.", "the value of one of xla_a, xla_c=d\n"),
        (["xla_a"], "xla: Unknown command line argument 'c'.  Try", "LLVM has no option 'c'"),
    ],
)
def test_wrong_flags(
    given: list[str], log: str, message: str, xla: FakeXla, capsys: Capture
) -> None:
    Path("fake_plugin.so").write_bytes(LIBRARY)
    xla.answer, xla.ending, xla.log = None, (1, False), log
    flags_given = [word for each in given for word in ("--flag", each)]
    assert main(["xla", "compile", "m.hlo", *H100, *flags_given]) == 2
    err = capsys.readouterr().err
    assert err.startswith("error[HLO020]: ")
    assert message in err


def test_the_rest_of_a_refusal_is_a_note(xla: FakeXla, capsys: Capture) -> None:
    xla.answer = {"refused": "INVALID_ARGUMENT: the cause\nwith\n   more"}
    assert main(["xla", "compile", "m.hlo", *H100]) == 3
    assert capsys.readouterr().err.splitlines()[:2] == [
        "error[HLO704]: XLA refuses the program: the cause",
        "   = note: with more; the last pass that began is cse",
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
        ("m.hlo --target cpu --plugin fake_plugin.so", "--target cpu takes that of jaxlib"),
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
