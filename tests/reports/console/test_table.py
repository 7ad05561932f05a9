"""Tables, cut texts and the console of reports."""

from __future__ import annotations

import io
import re
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from hloopt.diagnostics import printable
from hloopt.reports.console.console import PageConsole
from hloopt.reports.console.table import ReportTable
from hloopt.reports.console.units import Cut, columns, head, middle, more_text, origin, tail


def shown(renderable: object, width: int = 80, *, soft_wrap: bool = False) -> list[str]:
    stream = io.StringIO()
    console = PageConsole(file=stream, width=width, highlight=False)
    console.print(renderable, soft_wrap=soft_wrap)
    return stream.getvalue().splitlines()


# -- cut texts ----------------------------------------------------------------------------------

TEXTS = st.text("ab%/…模型e\u0301\u200d\u202e\x1b\n🙂\ufe0f", max_size=30)


@pytest.mark.parametrize("cut", [head, middle, tail, origin])
@given(text=TEXTS, width=st.integers(3, 40))
def test_a_cut_text_fits_and_says_that_it_is_cut(cut: Cut, text: str, width: int) -> None:
    result = cut(text, width)
    assert columns(result) <= width
    assert result == printable(text) or "…" in result
    assert all(c.isprintable() for c in result)


def test_each_cut_keeps_the_end_that_says_most() -> None:
    assert head("abcdefgh", 5) == "abcd…"
    assert middle("abcdefgh", 5) == "ab…gh"
    assert tail("abcdefgh", 5) == "…efgh"
    assert origin("%abcdefg", 5) == "%a…fg"
    assert origin("jit/a/bc", 5) == "…a/bc"
    assert [cut("abcde", 5) for cut in (head, middle, tail)] == ["abcde"] * 3


def test_width_is_counted_in_columns() -> None:
    assert columns("模型") == 4
    assert columns("e\u0301") == 1
    assert head("模型模型", 5) == "模型…"
    assert head("模型模型", 6) == "模型…"
    assert tail("模型模型", 6) == "…模型"


def test_a_mark_stays_with_its_letter() -> None:
    text = "e\u0301" * 6
    assert head(text, 4) == "e\u0301" * 3 + "…"
    assert tail(text, 4) == "…" + "e\u0301" * 3


def test_what_no_eye_sees_is_escaped() -> None:
    assert printable("a\x1b[2J\r\n\tb\u202e") == r"a\x1b[2J\r\n\tb\u202e"
    assert printable("模 型\u3000é") == "模 型\u3000é"


# -- tables -------------------------------------------------------------------------------------


def sizes() -> ReportTable:
    table = ReportTable("2 buffers", gap=2)
    table.add_column("size", justify="right")
    table.add_column("share", justify="right")
    table.add_column("kind")
    table.add_column("from", cut=tail)
    table.add_row("1.5 KiB", "60.0%", "parameter", "state['params']")
    table.add_row("1.0 KiB", "40.0%", Text("output", "red"), "jit(f)/" + "layer/" * 20)
    return table


def test_a_table_takes_no_more_room_than_it_needs() -> None:
    table = ReportTable(gap=2)
    table.add_column("size", justify="right")
    table.add_column("from")
    table.add_row("1 B", "x")
    table.add_row("12 KiB", "")
    assert shown(table) == ["  size  from", "────────────", "   1 B  x", "12 KiB"]


def test_what_is_too_long_is_cut_and_the_rest_stays() -> None:
    assert shown(sizes(), width=50) == [
        "2 buffers",
        "   size  share  kind       from",
        "──────────────────────────────────────────────────",
        "1.5 KiB  60.0%  parameter  state['params']",
        "1.0 KiB  40.0%  output     …yer/layer/layer/layer/",
    ]


def test_figures_are_left_out_before_they_are_cut_and_the_table_says_so() -> None:
    lines = shown(sizes(), width=34)
    assert lines[1].split() == ["size", "…", "kind", "from"]
    assert lines[3].split() == ["1.5", "KiB", "parameter", "…['params']"]


def test_a_column_that_stays_outlives_others() -> None:
    table = ReportTable(gap=2)
    for name in ("index", "size", "values"):
        table.add_column(name, justify="right", stays=name == "size")
    table.add_column("holds")
    table.add_row("1", "1.5 KiB", "10", "a name that is long")
    assert shown(table, width=29)[0].split() == ["index", "size", "…", "holds"]


def test_a_preview_goes_without_a_word() -> None:
    table = ReportTable(gap=2)
    table.add_column("mean", justify="right")
    table.add_column("values", stays=False)
    table.add_row("1.25", "1 2 3 4 5 6 7 8 9")
    assert shown(table, width=18)[2] == "1.25  1 2 3 4 5 6…"
    assert shown(table, width=10) == ["mean", "────", "1.25"]


def test_prose_is_broken_between_words_and_leaves_room_for_names() -> None:
    table = ReportTable(heads=False, gap=2)
    table.add_column(style="bold")
    table.add_column(wraps=True)
    table.add_row("a-pass-with-a-name", "what it does, said at a length that takes two lines")
    assert shown(table, width=50) == [
        "a-pass-with-a-name  what it does, said at a length",
        "                    that takes two lines",
    ]


def test_long_columns_share_the_room_and_short_ones_take_theirs() -> None:
    table = ReportTable(gap=2)
    for name in ("one", "two", "three"):
        table.add_column(name)
    table.add_row("a" * 40, "bbb", "c" * 40)
    (row,) = shown(table, width=40)[2:]
    first, second, third = row.split()
    assert (len(first), second, len(third)) == (16, "bbb", 17)


def test_a_cell_may_be_made_for_the_room_there_is() -> None:
    table = ReportTable(gap=2)
    table.add_column("n", justify="right")
    table.add_column("what")
    table.add_row("1", partial(more_text, 12))
    assert shown(table, width=60)[2] == "1  … and 12 more; --top shows them"
    assert shown(table, width=25)[2] == "1  … and 12 more"


def test_lines_of_a_cell_are_cut_each_by_itself() -> None:
    table = ReportTable(gap=2)
    table.add_column("n", justify="right")
    table.add_column("what", cut=middle)
    table.add_row("1", Text("short\n" + "x" * 30))
    assert shown(table, width=20)[2:] == ["1  short", "   xxxxxxxx…xxxxxxxx"]
    assert shown(table, width=80)[2:] == ["1  short", "   " + "x" * 30]


def test_a_line_end_in_a_name_begins_no_line() -> None:
    table = ReportTable(gap=2)
    table.add_column("name")
    table.add_row("a\nb\x1b[31m\u202e")
    assert shown(table)[2:] == [r"a\nb\x1b[31m\u202e"]


def test_a_line_goes_over_all_columns() -> None:
    table = ReportTable(gap=2)
    table.add_column("n", justify="right")
    table.add_column("what")
    table.add_row("1", "x")
    table.add_line(Text("    why it is so, in more words than there is room for"))
    table.add_row("2", "y")
    assert shown(table, width=40)[2:] == [
        "1  x",
        "    why it is so, in more words than",
        "    there is room for",
        "2  y",
    ]


@given(
    width=st.integers(12, 100),
    cells=st.lists(st.tuples(TEXTS, TEXTS, st.integers(0, 10**9)), min_size=1, max_size=5),
)
def test_no_line_is_wider_than_the_page_or_ends_with_a_blank(
    width: int, cells: list[tuple[str, str, int]]
) -> None:
    table = ReportTable()
    table.add_column("size", justify="right")
    table.add_column("name", cut=middle)
    table.add_column("prose", wraps=True)
    table.add_column("count", justify="right")
    for name, prose, number in cells:
        table.add_row(f"{number}", name, prose, f"{number:,}")
        table.add_line(Text(f"  {printable(prose)}"))
    stream = io.StringIO()
    Console(file=stream, width=width).print(table)  # any console will do
    for line in stream.getvalue().splitlines():
        assert cell_len(line) <= width
        assert line == line.rstrip()


def test_all_tables_are_of_this_kind(root: Path) -> None:
    made = re.compile(r"rich\.table|rich\.box|\bTable\.grid")
    files = (root / "src").rglob("*.py")
    assert [str(path) for path in files if made.search(path.read_text(encoding="utf-8"))] == []


# -- the console --------------------------------------------------------------------------------


def test_text_is_broken_between_words_and_a_longer_word_is_cut() -> None:
    text = Text.assemble("peak at ", ("%" + "x" * 40, "bold"), " (fusion) in %main")
    assert shown(text, width=20) == ["peak at", "%xxxxxxxxx…xxxxxxxxx", "(fusion) in %main"]


def test_continuation_lines_are_indented_as_the_first() -> None:
    assert shown(Text("    one two three four"), width=14) == [
        "    one two",
        "    three four",
    ]


def test_paths_stay_whole() -> None:
    path = "/a/b/" * 30
    assert shown(f"wrote {path}  ", soft_wrap=True) == [f"wrote {path}"]


def test_styles_stay_on_what_they_are_on() -> None:
    stream = io.StringIO()
    console = PageConsole(file=stream, width=12, force_terminal=True, color_system="standard")
    console.print(Text.assemble("at ", ("%" + "x" * 20, "red"), " end"))
    assert stream.getvalue() == "at\n\x1b[31m%xxxxx…xxxxx\x1b[0m\nend\n".replace(
        "%xxxxx…xxxxx\x1b[0m", "%xxxxx\x1b[0m…\x1b[31mxxxxx\x1b[0m"
    )


def test_control_characters_do_not_reach_the_terminal() -> None:
    assert shown(Text("a\x1b[2Jb\u202ec")) == [r"a\x1b[2Jb\u202ec"]
    assert shown(Text("a\x9b2J"), soft_wrap=True) == [r"a\x9b2J"]


def test_a_column_that_is_not_shown_takes_no_room() -> None:
    table = ReportTable(gap=2)
    table.add_column("size", justify="right")
    table.add_column("share", justify="right", shown=False)
    table.add_column("name")
    table.add_row("1 B", "10.0%", "a")
    assert shown(table) == ["size  name", "──────────", " 1 B  a"]
