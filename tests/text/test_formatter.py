"""Formatting real files: nothing is lost, and once is enough."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hloopt.diagnostics import HloError, Source
from hloopt.split import split_source
from hloopt.text import parse_module, print_module
from hloopt.text.formatter import format_source
from hloopt.text.print_options import PrintOptions, print_options

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted([*(ROOT / "testdata").glob("*.hlo"), *(ROOT / "tests" / "golden").rglob("*.hlo")])
WHOLE = PrintOptions(print_large_constants=True)
STYLE = PrintOptions.formatted()


def modules(text: str) -> list[str]:
    """Each module of a file as XLA would print it."""
    chunks = split_source(Source("x", text)).chunks
    return [print_module(parse_module(chunk), WHOLE) for chunk in chunks]


def comments(text: str) -> list[str]:
    """Comments that begin with slashes, sorted: some move with what they stand at."""
    return sorted(re.findall(r"(?m)(?:^|\s)(//.*?)\s*$", text))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_formatting_keeps_the_module_and_its_comments(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    try:
        before = modules(text)
    except HloError:
        assert "golden/errors" in path.as_posix()
        return
    formatted = format_source(Source("x", text), STYLE)
    assert modules(formatted) == before
    assert comments(formatted) == comments(text)
    assert format_source(Source("x", formatted), STYLE) == formatted


@pytest.mark.parametrize("comment", ["// a", "/* a */", "/* a\n b */", '// "', "/* } */"])
@pytest.mark.parametrize("gap", range(14))
def test_a_comment_between_any_two_tokens_stays(gap: int, comment: str) -> None:
    module = "HloModule m\n#ENTRY#e#{#p =#f32[2]#parameter(#0#)#ROOT#n =#negate(#p#)\n}"
    tokens = module.split("#")
    text = "#".join(tokens[: gap + 1]) + f"@{comment}\n" + "#".join(tokens[gap + 1 :])
    formatted = format_source(Source("x", re.sub("[#@]", " ", text)), STYLE)
    assert comment in formatted
    assert modules(formatted) == modules(re.sub("[#@]", " ", "#".join(tokens)))
    assert format_source(Source("x", formatted), STYLE) == formatted


def test_a_comment_in_a_string_is_none() -> None:
    text = 'HloModule m\nENTRY e { ROOT p = f32[] parameter(0), metadata={op_name="// a /* b"} }'
    assert '{op_name="// a /* b"}\n}\n' in format_source(Source("x", text), STYLE)


def test_empty_lines_between_comments_stay() -> None:
    text = "// a\n\n// b\n// c\nHloModule m\n\nENTRY e { ROOT p = f32[] parameter(0) }\n"
    assert format_source(Source("x", text), STYLE).startswith("// a\n\n// b\n// c\nHloModule m,")


# -- source lines ---------------------------------------------------------------------------------

LINES = STYLE._replace(inline_source=True)
WITH_LINES = r"""HloModule m

FileNames
1 "/x/site-packages/jax/api.py"
2 "model.py"

FunctionNames
1 "f"

FileLocations
1 {file_name_id=1 function_name_id=1 line=7 end_line=7 column=1 end_column=2}
2 {file_name_id=2 function_name_id=1 line=12 end_line=12 column=1 end_column=2}

StackFrames
1 {file_location_id=2 parent_frame_id=1}
2 {file_location_id=1 parent_frame_id=2}

ENTRY %e (p: f32[2]) -> f32[2] {
  %p = f32[2]{0} parameter(0)  // the input
  %a = f32[2]{0} negate(%p), metadata={stack_frame_id=2}  // own words
  %b = f32[2]{0} negate(%a), metadata={source_file="a*/b\n.py" source_line=3}
  ROOT %c = f32[2]{0} negate(%b), metadata={op_name="no line"}
}
"""


def test_source_lines_stand_behind_instructions() -> None:
    formatted = format_source(Source("x", WITH_LINES), LINES)
    assert formatted.splitlines()[-6:] == [
        "ENTRY %e (p: f32[2]) -> f32[2] {",
        "  %p = f32[2]{0} parameter(0)  // the input",
        "  %a = f32[2]{0} negate(%p), metadata={stack_frame_id=2}"
        "  /*source=model.py:12*/  // own words",
        r'  %b = f32[2]{0} negate(%a), metadata={source_file="a*/b\n.py" source_line=3}'
        r"  /*source=a*\/b\n.py:3*/",
        '  ROOT %c = f32[2]{0} negate(%b), metadata={op_name="no line"}',
        "}",
    ]
    assert modules(formatted) == modules(WITH_LINES)


def test_source_lines_are_renewed_and_go_without_the_option() -> None:
    formatted = format_source(Source("x", WITH_LINES), LINES)
    stale = formatted.replace("/*source=model.py:12*/", "/*source=old.py:1*/")
    assert format_source(Source("x", formatted), LINES) == formatted
    assert format_source(Source("x", stale), LINES) == formatted
    plain = format_source(Source("x", WITH_LINES), STYLE)
    assert format_source(Source("x", formatted), STYLE) == plain


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_source_lines_stand_behind_text_that_is_kept(line_end: str) -> None:
    text = WITH_LINES.replace("\n", line_end)
    options = PrintOptions.keep()._replace(inline_source=True)
    kept = print_module(parse_module(text), options)
    a, b = "metadata={stack_frame_id=2}", r'source_file="a*/b\n.py" source_line=3}'
    with_comments = text.replace(a, f"{a}  /*source=model.py:12*/")
    assert kept == with_comments.replace(b, rf"{b}  /*source=a*\/b\n.py:3*/")
    stale = kept.replace("model.py:12*/", "old.py:1*/")
    assert print_module(parse_module(stale), options) == kept


def test_source_lines_stand_behind_text_that_is_kept_of_a_module_that_changed() -> None:
    text = WITH_LINES + "\n%f {\n  p = f32[] parameter(0)\n  ROOT n = f32[] negate(p) // x\n}\n"
    module = parse_module(text)
    module.computations["f"].root.set_attribute("metadata", '{source_file="f.py" source_line=4}')
    kept = print_module(module, PrintOptions.keep()._replace(inline_source=True))
    assert "{stack_frame_id=2}  /*source=model.py:12*/  // own words" in kept
    assert 'metadata={source_file="f.py" source_line=4}  /*source=f.py:4*/\n' in kept


@pytest.mark.parametrize("comment", ["/*source=mine*/", "/*source=a.py:1, I think*/"])
def test_own_comments_that_look_like_source_lines_stay(comment: str) -> None:
    text = WITH_LINES.replace("// own words", comment)
    assert comment in format_source(Source("x", text), STYLE)


def test_an_instruction_of_a_file_without_a_line_has_no_source_line() -> None:
    text = WITH_LINES.replace('op_name="no line"', 'source_file="a.py"')
    assert "a.py*/" not in format_source(Source("x", text), LINES)


def test_source_lines_stand_without_the_metadata_they_are_from() -> None:
    options = print_options("short-parsable", ["inline-source"])
    assert "negate(p)  /*source=model.py:12*/" in format_source(Source("x", WITH_LINES), options)
