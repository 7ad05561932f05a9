"""The grammar of selectors: what joins conditions, where values end, what errors say."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.query.programs import module, selected

from hloopt.diagnostics import SelectorError, Source, Span, render_error
from hloopt.query import parse_selector
from hloopt.text import parse_module

SAME = [
    ("opcode=copy,users=3", "opcode=copy , users = 3"),
    ("opcode=copy, users=3", "copy, users=3"),
    ("copy or all-gather", "opcode=copy|all-gather"),
    ("copy|all-gather", "opcode=copy|all-gather"),
    ("all-*", "opcode=all-*"),
    ("%back", "name=back"),
    ("%back|%turned", "name=back|turned"),
    ("%fus*", "name=fus*"),
    ("not copy", "opcode!=copy"),
    ("not not copy", "copy"),
    ("not(copy or all-gather), in-entry", "opcode!=copy, opcode!=all-gather, in-entry"),
    ("not (copy, users=3), copy", "copy, users!=3"),
    # A comma binds stronger than `or`.
    ("copy, users=3 or all-gather", "(copy, users=3) or (all-gather)"),
    ("all-gather or copy, users=3", "all-gather or (copy, users=3)"),
    ("(all-gather or copy), users=3", "copy, users=3"),
    ("in_loop, is_root", "in-loop, is-root"),
    ('opcode="copy"', "opcode=copy"),
    ("opcode='copy'", "opcode=copy"),
    ('name="back"|turned', "name=back|turned"),
    (r"op_name~jit\(step\)", "op_name~^jit[(]step[)]/"),
    ("op_name~(a|g)a?t", 'op_name~"(a|g)a?t"'),
    ("op_name~[a,]t", "op_name~at"),
    ("op_name~a{1,2}t|xx", 'op_name~"a{1,2}t|xx"'),
    ("  copy\n, users=3 ", "copy, users=3"),
    ("bytes>1KiB", "bytes>1024"),
    ("bytes>0.1K", "bytes>100"),
    ("opcode=or|not|and", "opcode=and|not|or"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_two_texts_say_the_same(one: str, other: str) -> None:
    assert selected(one) == selected(other)


def test_quotes_keep_a_star_a_star() -> None:
    assert selected("name=b*") == ["b", "back"]
    assert selected('name="b*"') == []
    assert selected("op_name='jit(step)/a, b'") == ["turned"]
    assert selected('op_name="jit(step)/a, b"|*gather') == ["turned", "gathered"]
    assert selected('source="*.py"') == []
    with pytest.raises(SelectorError, match=r"'c\*' is not an opcode"):
        parse_selector('opcode="c*"')


def test_a_quote_within_quotes_is_written_twice() -> None:
    found = parse_module(
        'HloModule m ENTRY e { ROOT p = f32[] parameter(0), metadata={op_name="it\'s \\"x\\""} }'
    )
    for text in ("'it''s \"x\"'", '"it\'s ""x"""'):
        assert parse_selector(f"op_name={text}").matches(found.entry.root)


MISTAKES = r"""
copy,,
     ^ expected a condition
opcod=copy
^^^^^ unknown key 'opcod' | did you mean 'opcode'?
qqq=copy
^^^ unknown key 'qqq' | keys: opcode, name, computation
replica_groups={}
^^^^^^^^^^^^^^ unknown key 'replica_groups' | did you mean 'attr.replica_groups'?
copy, sharding
      ^^^^^^^^ 'sharding' is neither an opcode nor a key | did you mean 'attr.sharding'?
copy, opcode=al-gather
             ^^^^^^^^^ 'al-gather' is not an opcode | did you mean 'all-gather'?
opcode=copy|negat
            ^^^^^ 'negat' is not an opcode | did you mean 'negate'?
opcode=zz*
       ^^^ no opcode matches 'zz*'
type=f33
     ^^^ 'f33' is not an element type | did you mean 'f32'?
in-lop
^^^^^^ 'in-lop' is neither an opcode nor a key | did you mean 'in-loop'?
copy|negat
     ^^^^^ 'negat' is neither an opcode nor a key | did you mean 'negate'?
fusion.12
^^^^^^^^^ 'fusion.12' is neither an opcode nor a key | '%fusion.12' selects by name
bytes>1Mx
      ^^^ expected a size such as 1MiB, not '1Mx'
users>=x
       ^ expected an integer, not 'x'
users>1KiB
      ^^^^ expected an integer, not '1KiB'
bytes~3
     ^ 'bytes' does not take '~' | it takes =, !=, <, <=, >, >=
name >= x
     ^^ 'name' does not take '>=' | it takes =, !=, ~, !~
opcode==copy
      ^^ 'opcode' does not take '==' | write '='
opcode:copy
      ^ 'opcode' does not take ':' | write '='
name=~x
    ^^ 'name' does not take '=~' | write '~'
rank<>x
    ^^ 'rank' does not take '<>' | write '!='
in-loop=true
       ^ 'in-loop' takes no value | write 'in-loop' or 'not in-loop'
users>1|2
       ^ '>' takes one value
users=1|
        ^ expected a value
name=, copy
     ^ expected a value
name="abc
     ^ this quote is never closed
name="a"b
        ^ expected ',' behind the closing quote | within quotes, write the quote twice
op_name=jit(a
           ^ '(' is never closed | put the value in quotes
op_name~a[
         ^ '[' is never closed
op_name~"a("
          ^^ not a regular expression: missing ), unterminated subpattern
op_name~a+*
          ^ not a regular expression: multiple repeat
shape=f23[4]
      ^^^^^^ unknown element type 'f23' | did you mean 'f32'?
name=a b
       ^ expected ',' or 'or' before the next condition | a value with blanks needs quotes
copy and in-loop
     ^^^ expected ',' or 'or' before the next condition | ',' means and
(copy, (in-loop)
^ this parenthesis is never closed
copy)
    ^ this parenthesis was never opened
attr.dimension=3
^^^^^^^^^^^^^^ no opcode has an attribute 'dimension' | did you mean 'dimensions'?
attr.to_apply
^^^^^^^^^^^^^ 'to_apply' names computations or instructions | 'calls=NAME'
frontend.=x
^^^^^^^^^ expected a name behind 'frontend.'
attribute.slice=x
^^^^^^^^^^^^^^^ unknown key 'attribute.slice' | did you mean 'attr.slice'?
=copy
^ expected a condition | for example opcode=copy
"""


def mistakes() -> list[tuple[str, ...]]:
    """Each text with its caret, its message and what its hint has."""
    lines = MISTAKES.strip("\n").split("\n")
    said = [re.fullmatch(r"( *\^+) (.*?)(?: \| (.*))?", line) for line in lines[1::2]]
    return [
        (text, *match.groups("")) for text, match in zip(lines[::2], said, strict=True) if match
    ]


@pytest.mark.parametrize(("text", "caret", "message", "help"), mistakes())
def test_a_mistake_is_shown_with_caret_and_hint(
    text: str, caret: str, message: str, help: str
) -> None:
    with pytest.raises(SelectorError) as caught:
        parse_selector(text)
    lines = render_error(caught.value).splitlines()
    assert lines[0] == f"error[HLO609]: {message}"
    assert lines[1] == f" --> selector:1:{caret.index('^') + 1}"
    assert lines[4] == f"  | {caret}"
    assert help in "".join(lines[5:])


WORDS = (
    *("opcode", "=", "~", "!=", "<", "copy", ",", " ", "(", ")", "or", "not", "%back", "*", "|"),
    *(
        "bytes",
        "1MiB",
        "shape",
        "f32[4,8]",
        "{0}",
        '"',
        "'",
        "\\",
        "[",
        "attr.",
        "frontend.",
        "in-",
    ),
    *("loop", "name", "a.b", "\n", "é", "\0", "-1", "99999999999999999999", ":", "and"),
)


@settings(max_examples=600)
@given(st.lists(st.sampled_from(WORDS), max_size=9).map("".join))
def test_any_text_is_a_selector_or_shows_its_mistake(text: str) -> None:
    span = mistake(text)
    if span is None:
        list(parse_selector(text).select(module()))
    else:
        assert 0 <= span.start <= len(text)


def mistake(text: str) -> Span | None:
    """The place of the mistake in a text; None where that is a selector."""
    try:
        parse_selector(text)
    except SelectorError as error:
        render_error(error)
        return error.span or Span(Source("nowhere", ""), -1, 0)
    return None


def test_nothing_is_not_a_selector() -> None:
    for text in ("", "  "):
        with pytest.raises(SelectorError, match="expected a condition"):
            parse_selector(text)


def test_the_origin_is_named() -> None:
    with pytest.raises(SelectorError) as caught:
        parse_selector("copy,\n nme=x", "--where")
    assert " --> --where:2:2\n" in render_error(caught.value)


@pytest.mark.parametrize("text", ["(" * 51 + "copy" + ")" * 51, "not " * 60 + "copy"])
def test_endless_nesting_is_refused(text: str) -> None:
    with pytest.raises(SelectorError, match="nested too deeply"):
        parse_selector(text)


def test_some_nesting_is_not() -> None:
    assert selected("(" * 40 + "copy" + ")" * 40) == ["turned", "back"]
