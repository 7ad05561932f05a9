"""HLO text is ASCII outside of strings and comments: what merely looks alike is refused."""

from __future__ import annotations

import pytest

from hloopt.diagnostics import HloError
from hloopt.text import parse_module
from hloopt.verifier import verify_module

TEXT = """HloModule m

ENTRY %e (p: f32[4]) -> f32[4] {
  %p = f32[4]{0} parameter(0)
  %c = f32[] constant(12)
  %b = f32[4]{0} broadcast(%c), dimensions={}
  ROOT %a = f32[4]{0} add(%p, %b), metadata={op_name="f" source_line=3}
}
"""


def accepts(text: str) -> bool:
    try:
        return verify_module(parse_module(text)) == []
    except HloError:
        return False


@pytest.mark.parametrize("prefix", ["", "// the general lane\n"])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("parameter(0)", "parameter(\N{ARABIC-INDIC DIGIT ZERO})"),
        ("parameter(0)", "parameter(\N{NO-BREAK SPACE}0)"),
        ("constant(12)", "constant(1\N{DEVANAGARI DIGIT TWO})"),
        ("constant(12)", "constant(\N{NO-BREAK SPACE}12)"),
        ("constant(12)", "constant(1_2)"),
        ("f32[4]{0} broadcast", "f32[\N{ARABIC-INDIC DIGIT FOUR}]{0} broadcast"),
        ("f32[4]{0} broadcast", "f32[4]{\N{ARABIC-INDIC DIGIT ZERO}} broadcast"),
        ("%b", "%\u00e9"),
        ("%b", "%b\u00df"),
        ("source_line=3", "source_line=\N{ARABIC-INDIC DIGIT THREE}"),
        ("%e (p", "%\u00e9 (p"),
        ("= f32[] c", "=\N{NO-BREAK SPACE}f32[] c"),
        ("= f32[] c", "=\ff32[] c"),
        ("= f32[] c", "=\vf32[] c"),
        ("dimensions={}", "dimensions={\N{LINE SEPARATOR}}"),
    ],
)
def test_what_looks_like_a_digit_a_letter_or_a_blank_is_none(
    prefix: str, old: str, new: str
) -> None:
    assert accepts(prefix + TEXT)
    assert not accepts(prefix + TEXT.replace(old, new))


def test_strings_and_comments_hold_any_character() -> None:
    text = TEXT.replace('"f"', '"\u00e9\N{LINE SEPARATOR}\N{GRINNING FACE}"')
    assert accepts(text)
    assert accepts(text.replace("  %p =", "  /* \N{NO-BREAK SPACE} \u00e9 */ %p ="))
