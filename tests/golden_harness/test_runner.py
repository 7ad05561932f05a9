"""Golden tests: their verdict, and the account of a failure."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from hloopt.golden import GoldenError, run_test
from hloopt.golden.filecheck import check_prefixes, without_directives
from hloopt.golden.programs import Program, run_program

Programs = Mapping[str, Program]
WriteTest = Callable[[str], Path]


def test_output_that_matches_passes(
    write_test: WriteTest, tmp_path: Path, programs: Programs
) -> None:
    test = write_test("// RUN: show %s | filecheck %s\n// CHECK: HloModule\nHloModule m\n")
    assert run_test(test, tmp_path, programs) is None


@pytest.mark.parametrize(
    "run",
    [
        "show %s | filecheck %s",
        "filecheck %s < %s",
        "filecheck %s --input-file %s",
        "filecheck -input-file=%s %s",
    ],
)
def test_a_directive_does_not_match_itself(
    write_test: WriteTest, tmp_path: Path, programs: Programs, run: str
) -> None:
    test = write_test(f"// RUN: {run}\n// CHECK: m\n// CHECK: call(\nHloModule m\n")
    assert 'Couldn\'t match "call("' in str(run_test(test, tmp_path, programs))


def test_a_failure_shows_run_line_message_input_and_how_to_repeat_it(
    write_test: WriteTest, tmp_path: Path, programs: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    test = write_test(
        "\n// RUN: show %s > %t && show %t | filecheck %s\n// CHECK: add\nHloModule m"
    )
    failure = str(run_test(test, tmp_path, programs))
    assert failure.startswith("a test.hlo:2: RUN: show %s > %t && show %t | filecheck %s\n")
    assert "filecheck ended with exit code 1" in failure
    assert 'a test.hlo:3: error: Couldn\'t match "add"' in failure
    assert "--- filecheck read:\n\nHloModule m\n" in failure
    last = failure.splitlines()[-1]
    assert last.startswith("repeat: show 'a test.hlo' > ")
    assert last.endswith(" | grep -vE '^ *// *(RUN|CHECK)' | filecheck 'a test.hlo'")


def test_the_account_of_long_output_is_cut(
    write_test: WriteTest, tmp_path: Path, programs: Programs
) -> None:
    test = write_test("// RUN: show %s | filecheck %s\n// CHECK: add\n" + "x\n" * 100)
    assert "… 40 more lines" in str(run_test(test, tmp_path, programs))


def test_a_failing_command_in_front_of_a_pipe_fails_the_test(
    write_test: WriteTest, tmp_path: Path, programs: Programs
) -> None:
    test = write_test("// RUN: say 2 add wrong | filecheck %s\n// CHECK: add\n")
    failure = str(run_test(test, tmp_path, programs))
    assert "--- say ended with exit code 2\nwrong\n" in failure
    assert "filecheck ended" not in failure


@pytest.mark.parametrize(("code", "passes"), [(0, False), (1, True), (3, True)])
def test_not_wants_a_failure(
    write_test: WriteTest, tmp_path: Path, programs: Programs, code: int, passes: bool
) -> None:
    test = write_test(f"// RUN: not say {code} add wrong | filecheck %s\n// CHECK: add\n")
    failure = run_test(test, tmp_path, programs)
    assert (failure is None) == passes
    if failure:
        assert "exit code 0, and 'not' wants it to fail" in str(failure)


def test_merged_streams_keep_their_order(
    write_test: WriteTest, tmp_path: Path, programs: Programs
) -> None:
    test = write_test(
        "// RUN: say 0 out err 2>&1 | filecheck %s\n"
        "// CHECK: out\n// CHECK-NEXT: err\n// CHECK-NEXT: out again\n"
    )
    assert run_test(test, tmp_path, programs) is None


def test_redirections_write_and_read_files(
    write_test: WriteTest, tmp_path: Path, programs: Programs
) -> None:
    test = write_test(
        "// RUN: say 0 out err > %t 2> %t.err\n"
        "// RUN: filecheck %s --check-prefix=OUT < %t\n"
        "// RUN: filecheck %s --check-prefix ERR --input-file %t.err\n"
        "// OUT: out\n// OUT-NEXT: out again\n// ERR-NOT: out\n// ERR: err\n"
    )
    assert run_test(test, tmp_path, programs) is None


def test_output_that_went_to_a_file_is_not_piped(
    write_test: WriteTest, tmp_path: Path, programs: Programs
) -> None:
    test = write_test("// RUN: show %s > %t | filecheck %s\n// CHECK: m\nHloModule m\n")
    assert "is empty" in str(run_test(test, tmp_path, programs))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("// RUN: grep x %s\n", "unknown command 'grep'"),
        ("// RUN: show < %S/missing\n", "missing: No such file"),
        ("// RUN: show %s > %S/missing/file\n", "file: No such file"),
    ],
)
def test_a_test_that_cannot_run_is_an_error(
    write_test: WriteTest, tmp_path: Path, programs: Programs, text: str, message: str
) -> None:
    with pytest.raises(GoldenError, match=message):
        run_test(write_test(text), tmp_path, programs)


def test_a_file_that_is_no_text_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "x.hlo"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(GoldenError, match="not UTF-8"):
        run_test(path, tmp_path)


@pytest.mark.parametrize(
    "flags", ["--check-prefix", "--input-file missing %s", "%S/missing", "a b"]
)
def test_wrong_use_of_filecheck_is_a_failure(
    write_test: WriteTest, tmp_path: Path, programs: Programs, flags: str
) -> None:
    test = write_test(f"// RUN: show %s | filecheck {flags}\nHloModule m\n")
    assert "exit code 2\nfilecheck: " in str(run_test(test, tmp_path, programs))


def test_a_defect_of_a_command_is_not_an_expected_failure(
    write_test: WriteTest, tmp_path: Path
) -> None:
    def defective(arguments: Sequence[str]) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_test(write_test("// RUN: not run\n"), tmp_path, {"run": defective})


@pytest.mark.parametrize(("ending", "code"), [(None, 0), (True, 1), (3, 3), ("message", 1)])
def test_programs_end_like_console_scripts(ending: object, code: int) -> None:
    def leaves(arguments: Sequence[str]) -> object:
        raise SystemExit(ending)

    def returns(arguments: Sequence[str]) -> object:
        return ending

    for program in (leaves, returns):
        assert run_program(program, (), b"")[0] == code


def test_the_process_is_as_before_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    streams = sys.stdin, sys.stdout, sys.stderr

    def meddles(arguments: Sequence[str]) -> None:
        assert "NO_COLOR" not in os.environ
        os.environ["HLOOPT_TEST"] = "1"
        print(os.environ["COLUMNS"])

    assert run_program(meddles, (), b"") == (0, b"120\n", b"")
    assert (sys.stdin, sys.stdout, sys.stderr) == streams
    assert os.environ["NO_COLOR"] == "1"
    assert "HLOOPT_TEST" not in os.environ


def test_check_prefixes_are_those_filecheck_reads() -> None:
    assert check_prefixes(["x.hlo"]) == ["CHECK"]
    assert check_prefixes(["--check-prefix", "A", "x.hlo", "-check-prefix=B"]) == ["A", "B"]
    assert check_prefixes(["--check-prefixes=A,B", "x.hlo"]) == ["A", "B"]


def test_only_directives_are_removed() -> None:
    text = "// RUN: x\n  // CHECK-NEXT{LITERAL}: x\n// CHECK the rest\n// A: x\nx // CHECK: y\n"
    assert without_directives(text, ["x.hlo"]) == "// CHECK the rest\n// A: x\nx // CHECK: y\n"
