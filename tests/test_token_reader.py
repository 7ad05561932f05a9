"""A reader moves over tokens and blanks, and marks the place of a mistake."""

from __future__ import annotations

import pytest

from hloopt.diagnostics import PipelineError, Source
from hloopt.patterns import pattern
from hloopt.token_reader import TokenReader

WORD = pattern(r"\w+")


class Reader(TokenReader):
    error_class = PipelineError

    def brackets(self) -> int:
        """Read `[[…]]`; return the number of pairs."""
        with self.deeper("too deep", self.position, self.position + 1, "HLO608"):
            inner = self.brackets() if self.accept("[") else -1
            self.accept("]")
            return inner + 1


def reader(text: str) -> Reader:
    return Reader(Source("text", text))


@pytest.mark.parametrize(
    ("text", "is_there", "position"),
    [("a  b", True, 3), ("  a", True, 3), (" \t\n\r\f\va b", True, 8), ("  b", False, 2)],
)
@pytest.mark.parametrize("token", ["a", pattern("a")])
def test_blanks_before_a_token_are_read_in_any_case_those_behind_with_it(
    text: str, is_there: bool, position: int, token: str
) -> None:
    found = reader(text)
    assert found.accept(token) is is_there
    assert found.position == position


def test_a_blank_is_one_of_ascii() -> None:
    found = reader("\u00a0a")
    assert not found.accept("a")
    assert found.position == 0


def test_a_pattern_is_read_right_here_without_the_blanks_behind_it() -> None:
    found = reader("one two")
    match = found.read(WORD)
    assert match is not None
    assert (match[0], found.position) == ("one", 3)
    assert found.read(WORD) is None
    assert found.position == 3
    assert not found.is_at_end
    found.skip()
    assert found.read(WORD)
    assert found.is_at_end


def test_a_mistake_at_the_end_marks_a_character() -> None:
    found = reader("ab")
    assert found.error("it ends", 2, 2).span == (found.source, 2, 3)


def test_levels_beside_each_other_are_not_nested() -> None:
    found = reader(("[" * 49 + "]" * 49) * 3)
    assert [found.brackets() for _ in range(3)] == [49] * 3
    assert found.is_at_end


def test_too_many_levels_are_refused_at_the_first_one_too_many() -> None:
    with pytest.raises(PipelineError, match="too deep") as caught:
        reader("[" * 60).brackets()
    assert caught.value.code == "HLO608"
    assert caught.value.span is not None
    assert caught.value.span[1:] == (50, 51)
