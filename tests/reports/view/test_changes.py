"""The differences of two modules as a page lists them."""

from __future__ import annotations

from hloopt.reports.diff.comparison import diff_modules
from hloopt.reports.view.changes import change_lines, changes_by_name
from hloopt.text import parse_module

BEFORE = """HloModule m, is_scheduled=true
ENTRY e {
  p = f32[8] parameter(0)
  a = f32[8] sine(p)
  b = f32[8] cosine(p)
  c = f32[8] tanh(p)
  d = f32[8] add(a, b)
  ROOT r = f32[8] multiply(c, d)
}
"""
AFTER = """HloModule m, is_scheduled=true
ENTRY e {
  p = f32[8] parameter(0)
  c = f32[8] tanh(p)
  a = f32[8] sine(p)
  b = f32[8] exponential(p)
  n = f32[8] negate(a)
  d = f32[8] add(n, b), metadata={op_name="f"}
  ROOT r = f32[8] multiply(c, d)
}
"""


def test_all_kinds_of_changes_are_listed() -> None:
    diff = diff_modules(parse_module(BEFORE), parse_module(AFTER))
    lines = [(line.mark, line.name, line.text.split("   ")[-1]) for line in change_lines(diff)]
    assert lines[0] == (" ", "", "%e: changed")
    marks = {(mark, name) for mark, name, _ in lines[1:]}
    assert {("+", "n"), ("-", "d"), ("~", "d"), ("~", "a")} <= marks
    assert any(mark == "-" or "opcode" in text for mark, name, text in lines if name == "b")
    assert ("~", "a", "(moved)") in lines
    assert any(name == "d" and "op_name" in text for _, name, text in lines)


def test_what_is_removed_is_listed() -> None:
    diff = diff_modules(parse_module(AFTER), parse_module(BEFORE))
    assert ("-", "n") in {(line.mark, line.name) for line in change_lines(diff)}
    assert "n" not in changes_by_name(diff)


def test_changes_have_their_kind_by_name() -> None:
    found = changes_by_name(diff_modules(parse_module(BEFORE), parse_module(AFTER)))
    assert (found["n"], found["a"]) == ("added", "moved")
    assert found["d"] not in ("added", "moved")
    assert "c" not in found
