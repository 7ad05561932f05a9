"""`hloopt xla` with a compiler that compiles nothing: what is asked of it, shown, and refused."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.compilers.fake_xla import H100, LOG, MODULE, FakeXla

from hloopt.cli import main
from hloopt.files import load, read_source
from hloopt.text import print_module

Capture = pytest.CaptureFixture[str]


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


def test_a_program_that_does_not_fit(xla: FakeXla, capsys: Capture) -> None:
    xla.needed = 90 << 30
    says = "it does not fit: XLA's buffers need 90.0 GiB on each device, and h100_sxm has 79.1 GiB"
    assert main(["xla", "compile", "m.hlo", *H100]) == 0
    assert says in " ".join(capsys.readouterr().out.split())
    for command in (["compile", "--stage", "hlo"], ["passes"]):
        assert main(["xla", command[0], "m.hlo", *H100, *command[1:]]) == 0
        assert says in capsys.readouterr().err
    assert main(["xla", "compile", "m.hlo", *H100, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["needed"] == 90 << 30 > found["capacity"] > 0
    assert found["notes"][0].startswith(says)
    xla.needed = found["capacity"]
    assert main(["xla", "compile", "m.hlo", *H100]) == 0
    assert "fit" not in capsys.readouterr().out


def test_a_schedule_that_has_to_be_kept(xla: FakeXla, capsys: Capture) -> None:
    assert main(["xla", "compile", "m.hlo", *H100, "--keep-schedule"]) == 2
    assert "m.hlo has no schedule to keep" in capsys.readouterr().err
    scheduled = MODULE.replace("HloModule m", "HloModule m, is_scheduled=true")
    Path("m.hlo").write_text(scheduled, encoding="utf-8")
    assert main(["xla", "compile", "m.hlo", *H100, "--keep-schedule"]) == 0
    assert main(["xla", "compile", "m.hlo", "--target", "cpu", "--keep-schedule"]) == 2
    assert "jaxlib drops schedules" in capsys.readouterr().err


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
    assert main(["xla", "passes", "m.hlo", *H100, "--show", "dce"]) == 0
    assert "%dead" not in capsys.readouterr().out
    assert main(["xla", "passes", "m.hlo", *H100, "--show", "0"]) == 0
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


def test_a_pipeline_without_dumps_of_its_own(xla: FakeXla, capsys: Capture) -> None:
    assert main(["xla", "isolate", "m.hlo", *H100, "--pass", "tidy"]) == 2
    err = capsys.readouterr().err
    assert "'tidy' is a pipeline of XLA that is no pass of another" in err
    assert "name one of its passes: cse, dce" in err
    assert len(xla.flags) == 1  # no second compile


def test_a_pipeline_by_its_name_in_files(xla: FakeXla, capsys: Capture) -> None:
    xla.log = LOG.replace(": tidy\n", ": tidy up\n")
    assert main(["xla", "isolate", "m.hlo", *H100, "--pass", "tidy_up"]) == 2
    assert "'tidy up' is a pipeline of XLA that is no pass of another" in capsys.readouterr().err


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


def annotated(text: str) -> str:
    return re.sub(r"(%r = .*negate.*)", r'\1, frontend_attributes={a="b"}', text)


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
        (annotated, "equal up to annotations", 0),
        (rewritten, "equivalent", 0),
        (wrong, "different", 1),
    ],
)
def test_a_pass_of_ours_against_one_of_xla(
    cse: Callable[[str], str], verdict: str, exit_code: int, xla: FakeXla, capsys: Capture
) -> None:
    xla.cse = cse
    line = ["xla", "compare", "m.hlo", *H100, "-p", "cse", "--xla-pass", "cse"]
    assert main(line) == exit_code
    out = capsys.readouterr().out
    assert out.startswith(f"cse and XLA's cse (run 1 of 1, in tidy): {verdict}\n")
    assert ("neither changed the module" in out) == (cse is str)
    assert ("instructions" in out) == (cse not in (str, renamed))
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
