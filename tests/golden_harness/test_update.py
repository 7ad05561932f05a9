"""CHECK lines made from actual output."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random

import pytest
from tests.conftest import Sample

from hloopt.golden import MARKER, GoldenError, run_test, update_test
from hloopt.golden.collection import find_tests
from hloopt.golden.filecheck import directive_pattern
from hloopt.golden.programs import PROGRAMS, Program, run_program
from hloopt.golden.update import check_lines

Programs = Mapping[str, Program]
WriteTest = Callable[[str], Path]

MODULE = """\
HloModule m, replica_count=2

%add.1 (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %s = f32[] add(%x, %y)
}

ENTRY %main (p: f32[4]) -> f32[4] {
  %p = f32[4]{0} parameter(0)
  ROOT %r = f32[4]{0} all-reduce(%p), replica_groups={{0,1}}, to_apply=%add.1
}
"""


def test_lines_become_labels_and_successors() -> None:
    assert list(check_lines("CHECK", MODULE.splitlines())) == [
        "// CHECK: HloModule m, replica_count=2",
        "// CHECK-LABEL: %add.1 (x: f32[], y: f32[]) -> f32[] {",
        "// CHECK-NEXT:   %x = f32[] parameter(0)",
        "// CHECK-NEXT:   %y = f32[] parameter(1)",
        "// CHECK-NEXT:   ROOT %s = f32[] add(%x, %y)",
        "// CHECK-NEXT: }",
        "// CHECK-LABEL: ENTRY %main (p: f32[4]) -> f32[4] {",
        "// CHECK-NEXT:   %p = f32[4]{0} parameter(0)",
        "// CHECK-NEXT{LITERAL}:   ROOT %r = f32[4]{0} all-reduce(%p), replica_groups={{0,1}},"
        " to_apply=%add.1",
        "// CHECK-NEXT: }",
    ]


def test_made_lines_hold_and_a_second_update_changes_nothing(
    write_test: WriteTest, tmp_path: Path, programs: Programs
) -> None:
    test = write_test(f"// RUN: show %s | filecheck %s\n{MARKER}\n// CHECK-NEXT: stale\n{MODULE}")
    assert run_test(test, tmp_path, programs) is not None
    assert update_test(test, tmp_path, programs)
    text = test.read_text(encoding="utf-8")
    assert text.startswith(f"// RUN: show %s | filecheck %s\n{MARKER}\n// CHECK: HloModule m")
    assert text.endswith(f"}}\n{MODULE}")
    assert "stale" not in text
    assert run_test(test, tmp_path, programs) is None
    assert not update_test(test, tmp_path, programs)


def test_made_lines_notice_a_change_of_any_line(tmp_path: Path, programs: Programs) -> None:
    printed = tmp_path / "printed.hlo"
    test = tmp_path / "test.hlo"
    test.write_text(f"// RUN: show %S/printed.hlo | filecheck %s\n{MARKER}\n", encoding="utf-8")
    printed.write_text(MODULE, encoding="utf-8")
    update_test(test, tmp_path, programs)
    lines = MODULE.splitlines()
    for position in (i for i, line in enumerate(lines) if line):
        less = [*lines[:position], *lines[position + 1 :]]
        printed.write_text("".join(f"{line}\n" for line in less), encoding="utf-8")
        assert run_test(test, tmp_path, programs) is not None, lines[position]


def test_without_the_marker_nothing_is_rewritten(
    write_test: WriteTest, tmp_path: Path, programs: Programs
) -> None:
    text = "// RUN: show %s | filecheck %s\n// CHECK: old\nHloModule m\n"
    test = write_test(text)
    assert not update_test(test, tmp_path, programs)
    assert test.read_text(encoding="utf-8") == text


def test_each_prefix_has_its_block(
    write_test: WriteTest, tmp_path: Path, programs: Programs
) -> None:
    test = write_test(
        "// RUN: say 0 one x | filecheck %s --check-prefix=A\n"
        "// RUN: say 0 two x | filecheck %s --check-prefix=B\n"
        f"{MARKER}\n"
    )
    assert update_test(test, tmp_path, programs)
    assert test.read_text(encoding="utf-8").splitlines()[3:] == [
        "// A: one",
        "// A-NEXT: one again",
        "// B: two",
        "// B-NEXT: two again",
    ]
    assert run_test(test, tmp_path, programs) is None


def test_paths_of_the_test_are_not_part_of_the_expectation(
    write_test: WriteTest, tmp_path: Path, programs: Programs
) -> None:
    test = write_test(f"// RUN: say 0 '{{{{1}}}} [[x]] in %s:3' x | filecheck %s\n{MARKER}\n")
    update_test(test, tmp_path, programs)
    assert r"// CHECK: {{[{][{]}}1}} {{\[\[}}x]] in {{.*}}:3" in test.read_text(encoding="utf-8")
    assert run_test(test, tmp_path, programs) is None


@pytest.mark.parametrize(
    ("run", "message"),
    [
        ("say 2 x wrong | filecheck %s", "say ended with exit code 2"),
        ("filecheck %s", "filecheck reads nothing"),
        ("filecheck %s --input-file %s.no", "No such file"),
        ("show %s | filecheck %s --check-prefixes=A,B", "prefixes A, B"),
        ("show %s | filecheck %s && say 0 x y | filecheck %s", "different output"),
    ],
)
def test_what_cannot_be_made_is_an_error_and_changes_nothing(
    write_test: WriteTest, tmp_path: Path, programs: Programs, run: str, message: str
) -> None:
    text = f"// RUN: {run}\n{MARKER}\n// CHECK: old\nHloModule m\n"
    test = write_test(text)
    with pytest.raises(GoldenError, match=message):
        update_test(test, tmp_path, programs)
    assert test.read_text(encoding="utf-8") == text


@pytest.mark.slow
def test_generated_checks_pass_and_notice_every_change(
    root: Path, tmp_path: Path, sample: Sample
) -> None:
    """Our golden tests without CHECK lines get some that pass, and fail for changed output."""
    tests = sample.of(_without_checks(root / "tests" / "golden", tmp_path / "golden"), 100)
    written = [test for test in tests if _is_written(test, tmp_path)]
    assert len(written) > 0.8 * len(tests)
    for test in written:
        assert run_test(test, tmp_path) is None
        assert not update_test(test, tmp_path)
    random = Random(21)
    for test in random.sample(written, 20):
        changed = _Changing(random)
        programs: Programs = {**PROGRAMS, "hloopt": changed, "hlo-opt": changed}
        failure = run_test(test, tmp_path, programs)
        assert failure is not None, f"{test}: {changed.change}"


def _is_written(test: Path, scratch: Path) -> bool:
    """Write CHECK lines, unless two outputs would need prefixes of their own."""
    try:
        return update_test(test, scratch, without_marker=True)
    except GoldenError:
        return False


def _without_checks(source: Path, target: Path) -> list[Path]:
    """The tests of a folder that pipe output into filecheck, copied without their directives."""
    shutil.copytree(source, target)
    tests = []
    for test in find_tests([str(target)]):
        text = test.read_text(encoding="utf-8")
        words = set(re.findall(r"--check-prefix(?:es)?[= ]([\w,-]+)", text))
        prefixes = [prefix for word in words for prefix in word.split(",")] or ["CHECK"]
        directive = directive_pattern([*prefixes, "CHECK"])
        kept = [line for line in text.splitlines() if not directive.match(line)]
        test.write_text("".join(f"{line}\n" for line in kept if line != MARKER), encoding="utf-8")
        # Reports, which -o brings, have times.
        if re.search(r"\| filecheck", text) and not re.search("RUN:.* (-o|--timing) ", text):
            tests.append(test)
    return tests


class _Changing:
    """A program whose output differs from that of the real one in one line."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.change = ""

    def __call__(self, arguments: Sequence[str]) -> object:
        code, stdout, stderr = run_program(PROGRAMS["hloopt"], arguments, sys.stdin.buffer.read())
        texts = [stdout.decode(), stderr.decode()]
        changed = 0 if texts[0].strip() else 1
        texts[changed] = self._changed(texts[changed].splitlines())
        sys.stdout.write(texts[0])
        sys.stderr.write(texts[1])
        return code

    def _changed(self, lines: list[str]) -> str:
        # Paths are left open in CHECK lines.
        places = [n for n, line in enumerate(lines) if line.strip() and "/golden/" not in line]
        place = self.random.choice(places or range(len(lines)))
        line = lines[place]
        at = self.random.randrange(len(line) - len(line.lstrip()), len(line.rstrip()))
        other = f"{line[:at]}~{line[at + 1 :]}"
        lines[place : place + 1] = self.random.choice([[], [other]]) if places else []
        self.change = f"{line!r} at {at}"
        return "".join(f"{line}\n" for line in lines)


def test_a_folder_called_like_a_letter_is_no_part_of_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    test = Path("t", "x.hlo")
    test.parent.mkdir()
    test.write_text("// RUN: echo t at t/x.hlo:3, not/t/x.hlo | filecheck %s\nHloModule m\n")
    assert update_test(test, tmp_path, without_marker=True)
    assert "// CHECK: t at {{.*}}:3, not/t/x.hlo\n" in test.read_text()


def test_lines_that_the_output_names_stay_where_they_are(tmp_path: Path) -> None:
    test = tmp_path / "x.hlo"
    test.write_text(
        "// RUN: not hloopt opt %s --passes dce 2>&1 | filecheck %s\n// CHECK: old\n\nHloModule {\n"
    )
    assert update_test(test, tmp_path, without_marker=True)
    assert run_test(test, tmp_path) is None
    lines = test.read_text().splitlines()
    assert lines[1:4] == ["", "HloModule {", MARKER]
    assert "{{.*}}:3:" in test.read_text()


def test_the_input_may_be_a_file(tmp_path: Path) -> None:
    test = tmp_path / "x.hlo"
    test.write_text("// RUN: echo one > %t && filecheck %s --input-file %t\nHloModule m\n")
    assert update_test(test, tmp_path, without_marker=True)
    assert "// CHECK: one\n" in test.read_text()
    assert run_test(test, tmp_path) is None
