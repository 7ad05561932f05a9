"""Commands take `.pb` files as they take text."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hloopt.cli import main
from hloopt.files import load, read_source, save
from hloopt.proto import encode, encode_file, encode_text
from hloopt.text import parse_module, print_module

TEXT = """HloModule m

f {
  a = f32[4]{0} parameter(0)
  ROOT n = f32[4]{0} negate(a)
}

ENTRY e {
  p = f32[4]{0} parameter(0)
  unused = f32[4]{0} abs(p)
  ROOT c = f32[4]{0} call(p), to_apply=f
}
"""
INVALID = TEXT.replace("ROOT n = f32[4]{0}", "ROOT n = f32[5]{0}")


@pytest.fixture
def step(tmp_path: Path) -> Path:
    path = tmp_path / "step.hlo.pb"
    path.write_bytes(encode_file(parse_module(TEXT)))
    return path


@pytest.mark.parametrize("suffix", [".pb", ".pb.gz", ".pb.zst", ".pbtxt", ".hlo.pbtxt.xz"])
def test_what_is_saved_is_loaded_again(tmp_path: Path, suffix: str) -> None:
    path = str(tmp_path / f"m{suffix}")
    save(parse_module(TEXT), path)
    assert encode(load(path)) == encode(parse_module(TEXT))


def test_opt_reads_a_proto_and_writes_by_the_suffix(
    step: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["opt", str(step), "--passes", "call-inliner,dce", "--no-report"]
    assert main(arguments) == 0
    text = capsys.readouterr().out
    assert "call(" not in text
    assert "abs(" not in text
    for name in ("out.hlo", "out.pb", "out.hlo.pb.gz", "out.pbtxt"):
        assert main([*arguments, "-o", str(tmp_path / name)]) == 0
        assert print_module(load(str(tmp_path / name))) == text
    assert main(["diff", str(tmp_path / "out.hlo"), str(tmp_path / "out.pb")]) == 0
    assert main(["diff", str(step), str(tmp_path / "out.pb")]) == 1


def test_opt_says_whether_a_proto_would_change(
    step: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["opt", str(step), "--passes", "cse", "--check"]) == 0
    assert main(["opt", str(step), "--passes", "dce", "--check"]) == 1
    assert main(["opt", str(step), "--passes", "dce", "--diff"]) == 1
    assert "-  %unused = f32[4]{0} abs(%p)" in capsys.readouterr().out


def test_remarks_on_a_proto_name_no_line(step: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--passes", "call-inliner", "--remarks", "applied", "-o", "-"]
    assert main(["opt", str(step), *arguments]) == 0
    assert f"{step}: applied: call-inliner: %c: inlined %f" in capsys.readouterr().err


def test_opt_says_what_a_proto_has_no_place_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "m.hlo"
    path.write_text(TEXT.replace("HloModule m", "HloModule m, replica_count=4, num_partitions=2"))
    out = tmp_path / "m.pb"
    assert main(["opt", str(path), "--passes", "dce", "-o", str(out), "--no-report"]) == 0
    expected = f"{out}: a proto has no place for replica_count=4, num_partitions=2"
    assert expected in capsys.readouterr().err


def test_a_problem_names_file_computation_and_instruction(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.pb"
    path.write_bytes(encode_file(parse_module(INVALID)))
    assert main(["verify", str(path)]) == 1
    assert f"error[HLO300]: {path}: %n in computation %f: " in capsys.readouterr().err
    assert main(["opt", str(path), "--passes", "dce"]) == 2
    assert f"error[HLO300]: {path}: %n in computation %f: " in capsys.readouterr().err


def test_a_proto_cannot_be_split(
    step: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", str(step), "--split-input-file"]) == 2
    assert main(["opt", str(step), "--split-input-file", "--passes", "dce"]) == 2
    assert capsys.readouterr().err.count("is an HLO proto, where text is needed") == 2
    path = tmp_path / "two.hlo"
    path.write_text(f"{TEXT}// -----\n{TEXT}")
    out = str(tmp_path / "two.pb")
    assert main(["opt", str(path), "--split-input-file", "--passes", "dce", "-o", out]) == 2
    assert "has 2 modules" in capsys.readouterr().err


def test_standard_input_may_be_a_proto(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module = parse_module(TEXT)
    in_text = f"# a proto\n{encode_text(module)}".encode()
    for data in (encode(module), encode_file(module), TEXT.encode(), in_text):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        assert main(["opt", "-", "--passes", "dce"]) == 0
        assert "%unused" not in capsys.readouterr().out


def test_text_that_begins_with_an_empty_line_is_text(tmp_path: Path) -> None:
    path = tmp_path / "m.hlo"
    path.write_text("\n\t\r\n" + TEXT)
    assert read_source(str(path)).text.lstrip() == TEXT
    assert load(str(path)).name == "m"


@pytest.mark.parametrize(
    "begin",
    [
        *("\n\n// \x1b[31m red\n", "\n  /* \x00 */\n", "\n" + " " * 31, "\n\x01", "\nabc\x12\x04e"),
        "\n// \u202e\x1b\n",
    ],
)
def test_text_with_control_characters_is_taken_for_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], begin: str
) -> None:
    path = tmp_path / "m.hlo"
    text = TEXT.replace("ENTRY", "\x1bENTRY", 1)
    path.write_text(begin + text)
    assert main(["verify", str(path)]) == 2
    stderr = capsys.readouterr().err
    assert re.search(rf"--> {re.escape(str(path))}:\d+:\d+\n", stderr)
    assert "\x1b" not in stderr


def test_a_folder_of_protos_is_worked_on(step: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = ["--passes", "dce", "-o", str(out), "-j", "2", "--no-report"]
    (step.parent / "other.hlo").write_text(TEXT)
    save(parse_module(TEXT), str(step.parent / "third.hlo.pbtxt"))
    (step.parent / "config.pbtxt").write_text('platform_name: "CUDA"\n')
    assert main(["opt", str(step.parent), *arguments]) == 0
    names = ["other.hlo", "step.hlo.pb", "third.hlo.pbtxt"]
    assert sorted(path.name for path in out.iterdir()) == names
    for name in names:
        assert "unused" not in print_module(load(str(out / name)))


MODULE_IN_TEXT = """name: "m"
entry_computation_name: "e"
a_field_of_tomorrow { x: 1 }
computations {
  name: "e"
  id: 1
  root_id: 7
  instructions {
    name: "p"
    opcode: "parameter"
    id: 7
    shape { element_type: F32 dimensions: 4 layout { minor_to_major: 0 } }
  }
}
entry_computation_id: 1
"""


def test_a_module_proto_in_text_needs_no_envelope(tmp_path: Path) -> None:
    path = tmp_path / "m.txt"
    for text in (MODULE_IN_TEXT, MODULE_IN_TEXT.removeprefix('name: "m"\n')):
        path.write_text(text)
        assert "ROOT %p = f32[4]{0} parameter(0)" in print_module(load(str(path)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (MODULE_IN_TEXT.replace("id: 1", "id: one", 1), "Couldn't parse integer: one"),
        (MODULE_IN_TEXT.removesuffix("}\nentry_computation_id: 1\n"), 'Expected "}"'),
        ('hlo_module { name: "m" }', "no computation in it"),
        ("hlo_module { host_program_shape {" + "result {" * 5000, "nested too deeply"),
        (MODULE_IN_TEXT.replace('"p"', '"\\377"'), "Couldn't parse string"),
    ],
)
def test_a_mistake_in_a_proto_in_text_has_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, message: str
) -> None:
    path = tmp_path / "m.pbtxt"
    path.write_text(text)
    assert main(["verify", str(path)]) == 2
    stderr = capsys.readouterr().err
    assert stderr.startswith("error[HLO012]: ")
    assert message in stderr
    assert str(path) in stderr


@pytest.mark.parametrize("data", [b"", b"HloModule m", b"\x0a\x03abc", b"\xff" * 9])
def test_what_is_no_proto_is_one_clear_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], data: bytes
) -> None:
    path = tmp_path / "bad.pb"
    path.write_bytes(data)
    assert main(["verify", str(path)]) == 2
    assert capsys.readouterr().err.startswith(f"error[HLO012]: {path}: ")


PROGRAM = """
import sys
{before}
from hloopt.cli import main
code = main(sys.argv[1:])
print("google.protobuf" in sys.modules, file=sys.stderr)
sys.exit(code)
"""


def run(before: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    program = PROGRAM.format(before=before)
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_without_protobuf_a_proto_is_refused_with_what_to_install(step: Path) -> None:
    in_text = step.with_name("step.pbtxt")
    in_text.write_text(MODULE_IN_TEXT)
    for path in (step, in_text):
        result = run("sys.modules['google'] = None", "verify", str(path))
        assert result.returncode == 2
        assert "error[HLO011]: reading and writing .pb files needs protobuf" in result.stderr
        assert "pip install 'hloopt[proto]'" in result.stderr
        assert "Traceback" not in result.stderr


def test_text_needs_no_protobuf(tmp_path: Path) -> None:
    path = tmp_path / "m.hlo"
    path.write_text(TEXT)
    result = run("", "opt", str(path), "--passes", "dce")
    assert (result.returncode, result.stderr) == (0, "False\n")


def test_fmt_writes_a_proto_as_text(
    step: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "step.hlo"
    assert main(["fmt", str(step), "-o", str(out)]) == 0
    assert main(["fmt", "--check", str(out)]) == 0
    assert main(["verify", str(out)]) == 0
    before = step.read_bytes()
    capsys.readouterr()
    for options in ([], ["--check"], ["--diff", "-o", str(out)]):
        assert main(["fmt", str(step), *options]) == 2
        assert "is an HLO proto, where text is needed" in capsys.readouterr().err
    assert step.read_bytes() == before


def test_fmt_names_the_field_at_fault_in_a_proto(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "thread.pb"
    text = TEXT.replace("\n}", '\n}, execution_thread="x y"', 1)
    path.write_bytes(encode_file(parse_module(text)).replace(b"x y", b'x"y'))
    assert main(["fmt", str(path), "-o", "-"]) == 2
    assert "execution thread 'x\"y' cannot stand in text" in capsys.readouterr().err
