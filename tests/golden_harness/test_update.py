"""CHECK lines made from actual output."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from hloopt.golden import MARKER, GoldenError, run_test, update_test
from hloopt.golden.programs import Program
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
        ("filecheck %s --input-file %s", "nothing is piped into filecheck"),
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
