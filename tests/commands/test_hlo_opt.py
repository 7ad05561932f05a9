"""`hlo-opt`: XLA's flags, its output, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.compilers.fake_xla import FakeXla, install

from hloopt.cli import hlo_opt
from hloopt.proto import encode
from hloopt.text import parse_module

COMBINE = "--xla_gpu_all_reduce_combine_threshold_bytes=100"
Capture = pytest.CaptureFixture[str]
MODULE = """HloModule m

ENTRY e {
  // a comment
  p = f32[4] parameter(0)
  dead = f32[4] negate(p)
  c = s32[12] constant({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})
  ROOT r = (f32[4], s32[12]) tuple(p, c)
}
"""
DEFAULT_STYLE = """HloModule m, entry_computation_layout={(f32[4]{0})->(f32[4]{0}, s32[12]{0})}

ENTRY %e (p: f32[4]) -> (f32[4], s32[12]) {
  %p = f32[4]{0} parameter(0)
  %c = s32[12]{0} constant({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})
  ROOT %r = (f32[4]{0}, s32[12]{0}) tuple(%p, %c)
}

"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    (tmp_path / "m.hlo").write_text(MODULE)
    (tmp_path / "two.hlo").write_text(f"{MODULE}// -----\n{MODULE}")
    return tmp_path


def test_passes_run_and_the_style_is_that_of_xla(capsys: Capture) -> None:
    assert hlo_opt(["m.hlo", "--passes=dce"]) == 0
    assert capsys.readouterr().out == DEFAULT_STYLE


def test_split_files_stay_split(capsys: Capture) -> None:
    assert hlo_opt(["--split-input-file", "--passes", "dce", "two.hlo"]) == 0
    assert capsys.readouterr().out == f"{DEFAULT_STYLE}// -----\n{DEFAULT_STYLE}"


def test_output_goes_to_a_file(folder: Path, capsys: Capture) -> None:
    assert hlo_opt(["m.hlo", "--passes=dce", "-o", "out.hlo"]) == 0
    assert (folder / "out.hlo").read_text() == DEFAULT_STYLE
    assert capsys.readouterr().out == ""


def test_a_path_beside_the_file_is_a_path(capsys: Capture) -> None:
    assert hlo_opt(["m.hlo/../m.hlo"]) == 0
    assert "HloModule m" in capsys.readouterr().out


def test_lists(capsys: Capture) -> None:
    assert hlo_opt(["--list-passes"]) == 0
    names = capsys.readouterr().out.strip().split(",")
    assert {"dce", "cse", "latency-hiding-scheduler"} <= set(names)
    assert hlo_opt(["--list-stages"]) == 0
    assert capsys.readouterr().out == "hlo\n"


def test_underscores_are_hyphens(capsys: Capture) -> None:
    assert hlo_opt(["m.hlo", "--passes=cse_barrier_expander,tuple_simplifier"]) == 0


def test_other_names_of_passes_are_known(capsys: Capture) -> None:
    assert hlo_opt(["m.hlo", "--passes=sort-simplifier,dce"]) == 0
    assert capsys.readouterr().out == DEFAULT_STYLE


def test_a_module_that_does_not_verify_is_read_as_by_xla(folder: Path, capsys: Capture) -> None:
    (folder / "bad.hlo").write_text(
        "HloModule m\nENTRY e {\n  p = f32[4] parameter(0)\n  ROOT r = f32[5] negate(p)\n}\n"
    )
    assert hlo_opt(["bad.hlo", "--passes=dce"]) == 0
    assert "f32[5]{0} negate" in capsys.readouterr().out


def test_protos_as_text_come_back(folder: Path, capsys: Capture) -> None:
    assert hlo_opt(["m.hlo", "--passes=dce", "--emit-proto"]) == 0
    text = capsys.readouterr().out
    assert text.startswith('hlo_module {\n  name: "m"\n')
    assert "statistics_viz {" in text
    (folder / "m.pbtxt").write_text(text)
    assert hlo_opt(["m.pbtxt", "--format=pbtxt"]) == 0
    assert capsys.readouterr().out == DEFAULT_STYLE


def test_dumps_have_xlas_names(folder: Path) -> None:
    flags = ["--xla_dump_to=d", "--xla_dump_hlo_pass_re=.*"]
    assert hlo_opt(["m.hlo", "--passes=dce,cse", *flags]) == 0
    assert sorted(path.name for path in (folder / "d").iterdir()) == [
        "module_0000.m.0000.transforms_pipeline.after_pipeline-start.before_dce.txt",
        "module_0000.m.0001.transforms_pipeline.after_dce.before_cse.txt",
        "module_0000.m.after_optimization.txt",
        "module_0000.m.before_optimization.txt",
        "module_0000.m.debug_options",
    ]
    assert "constant({...})" in (folder / "d/module_0000.m.after_optimization.txt").read_text()
    assert (folder / "d/module_0000.m.debug_options").read_text() == (
        'xla_dump_to: "d"\nxla_dump_hlo_pass_re: ".*"\n'
    )


def test_passes_that_run_again_are_dumped_again(folder: Path) -> None:
    flags = ["--xla_dump_to=d", "--xla_dump_hlo_pass_re=dce"]
    assert hlo_opt(["m.hlo", "--passes=fixpoint(dce,cse),dce", *flags]) == 0
    names = sorted(path.name for path in (folder / "d").iterdir())
    assert [name.partition("pipeline.")[2] for name in names if "pipeline." in name] == [
        "after_pipeline-start.before_dce.txt",
        "after_dce.before_cse.txt",
    ]


def test_several_flags_set_options_whatever_their_values(folder: Path, capsys: Capture) -> None:
    flags = ["--xla_gpu_memory_limit_slop_factor=90", "--xla_gpu_pgle_accuracy_checker=error"]
    (folder / "s.hlo").write_text(MODULE.replace("HloModule m", "HloModule m, is_scheduled=true"))
    assert hlo_opt(["s.hlo", "--passes=latency-hiding-scheduler", *flags]) == 0
    profile = "--xla_gpu_pgle_profile_file_or_directory_path=a b,c.pbtxt"
    assert hlo_opt(["s.hlo", "--passes=latency-hiding-scheduler", profile]) == 2
    assert "a b,c.pbtxt" in capsys.readouterr().err


def test_without_a_pattern_passes_are_not_dumped(folder: Path) -> None:
    assert hlo_opt(["two.hlo", "--split-input-file", "--passes=dce", "--xla_dump_to=d"]) == 0
    names = sorted(path.name for path in (folder / "d").iterdir())
    assert [name.partition(".")[0] for name in names] == ["module_0000"] * 3 + ["module_0001"] * 3


def test_the_flags_of_a_dump_are_read_and_overridden(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "options").write_text('xla_gpu_dot_merger_threshold_mb: 1\nxla_dump_to: "a"\n')
    options = folder / "b" / "module_0000.m.debug_options"
    given = ["m.hlo", "--debug_options_file=options", "--xla_dump_to=b"]
    assert hlo_opt(given) == 0
    assert options.read_text() == 'xla_gpu_dot_merger_threshold_mb: 1\nxla_dump_to: "b"\n'
    monkeypatch.setenv("XLA_FLAGS", "--xla_gpu_dot_merger_threshold_mb=2")
    assert hlo_opt(given) == 0
    assert options.read_text().startswith("xla_gpu_dot_merger_threshold_mb: 2\n")
    assert hlo_opt([*given, "--xla_gpu_dot_merger_threshold_mb=3"]) == 0
    assert options.read_text().startswith("xla_gpu_dot_merger_threshold_mb: 3\n")


def test_a_flag_sets_the_option_of_a_pass(folder: Path, capsys: Capture) -> None:
    (folder / "ar.hlo").write_text(
        "HloModule m\nadd {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n"
        "  ROOT c = f32[] add(a, b)\n}\nENTRY e {\n  p = f32[64] parameter(0)\n"
        "  x = f32[64] all-reduce(p), to_apply=add, replica_groups={}\n"
        "  y = f32[64] all-reduce(p), to_apply=add, replica_groups={}\n"
        "  ROOT r = (f32[64], f32[64]) tuple(x, y)\n}\n"
    )
    passes = "--passes=all-reduce-combiner"
    assert hlo_opt(["ar.hlo", passes]) == 0
    assert capsys.readouterr().out.count(" all-reduce(") == 1
    assert hlo_opt(["ar.hlo", passes, COMBINE]) == 0
    assert capsys.readouterr().out.count(" all-reduce(") == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["m.hlo", "--passes=dcf"],
            "INVALID_ARGUMENT: Pass dcf not found.\n   = help: did you mean",
        ),
        (["m.hlo", "--platform=gpu"], "--xla_gpu_target_config_filename=FILE.txtpb"),
        (["m.hlo", "--platform=tpu"], "known are transforms, interpreter, cpu, gpu, cuda"),
        (["--platform=cpu", "--list-passes"], "hloopt xla passes"),
        (["m.hlo", "--stage=ptx"], "comes from a backend"),
        (["m.hlo", "--stage=hlp"], "did you mean 'hlo'"),
        (["m.hlo", "--xla_dump_too=x"], "did you mean '--xla_dump_to'"),
        (["m.hlo", "--debug_options_file=no"], "no: No such file"),
        (["m.hlo", "--xla_dump_to=d", "--xla_dump_hlo_pass_re=("], "--xla_dump_hlo_pass_re=("),
        (
            *(["m.hlo", "--passes=collective-pipeliner", "--xla_gpu_enable_pipelined_all_gather"],),
            "--xla_gpu_enable_pipelined_all_gather sets no option of collective-pipeliner here",
        ),
        (
            ["m.hlo", "--passes=fixpoint(all-reduce-combiner)", COMBINE],
            "flags set options of all-reduce-combiner only where --passes is names",
        ),
        (["no.hlo"], "no.hlo: No such file"),
        (["m.hlo", "--format=pbtxt"], "no HLO proto in text"),
        (["m.hlo", "--format=pb"], "m.hlo"),
        (["m.hlo", "--xla_dump_to=m.hlo/x"], "cannot write m.hlo/x"),
        (["m.hlo", "--no-such"], "No such option"),
    ],
)
def test_mistakes(arguments: list[str], message: str, capsys: Capture) -> None:
    assert hlo_opt(arguments) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert "Traceback" not in captured.err
    assert captured.out == ""


def test_flags_of_the_environment_may_be_wrong(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("XLA_FLAGS", "'")
    assert hlo_opt(["m.hlo"]) == 2
    assert "XLA_FLAGS cannot be read" in capsys.readouterr().err


def test_formats_are_those_that_are_said(folder: Path, capsys: Capture) -> None:
    assert hlo_opt(["m.hlo", "--format=hlo", "--passes=dce"]) == 0
    assert capsys.readouterr().out == DEFAULT_STYLE
    module = parse_module((folder / "m.hlo").read_text())
    (folder / "m.data").write_bytes(encode(module))
    assert hlo_opt(["m.data", "--format=pb", "--passes=dce"]) == 0
    assert capsys.readouterr().out == DEFAULT_STYLE


# -- backends -------------------------------------------------------------------------------------


H100 = ["--platform=gpu", "--xla_gpu_target_config_filename=specs/h100_sxm.txtpb"]


@pytest.fixture
def xla(folder: Path, monkeypatch: pytest.MonkeyPatch) -> FakeXla:
    return install(monkeypatch, folder)


def test_a_stage_of_a_backend_is_that_of_a_compile(xla: FakeXla, capsys: Capture) -> None:
    assert hlo_opt(["m.hlo", *H100, "--stage=ptx", "--xla_any=flag"]) == 0
    captured = capsys.readouterr()
    assert captured.out.count(".version") == 2
    assert "hloopt's own description of h100_sxm is taken" in captured.err
    assert "--xla_any=flag" in xla.flags[0]
    assert "config_filename" not in xla.flags[0]
    assert hlo_opt(["m.hlo", *H100]) == 0
    assert capsys.readouterr().out.startswith("HloModule m")
    assert hlo_opt([*H100, "--list-stages"]) == 0
    assert "llvm-before-optimizations" in capsys.readouterr().out


def test_passes_of_a_backend_run_one_by_one(xla: FakeXla, capsys: Capture) -> None:
    xla.cse = lambda text: text.replace("ROOT %", "ROOT %new_")
    assert hlo_opt(["m.hlo", *H100, "--passes=dce,cse"]) == 0
    assert "ROOT %new_" in capsys.readouterr().out
    assert len(xla.flags) == 4
    assert hlo_opt(["m.hlo", *H100, "--passes=nope"]) == 2
    assert "error[HLO021]" in capsys.readouterr().err


@pytest.mark.usefixtures("xla")
def test_each_module_of_a_split_file_is_compiled(folder: Path, capsys: Capture) -> None:
    text = (folder / "m.hlo").read_text()
    (folder / "two.hlo").write_text(f"{text}// -----\n{text}")
    assert hlo_opt(["two.hlo", *H100, "--split-input-file", "--stage=ptx"]) == 0
    assert capsys.readouterr().out.count(".version") == 4
