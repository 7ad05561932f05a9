"""The tool understands every word of the documents beside the tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance_lib.vocabulary.documents import NOT_WORDS, unknown_words
from conformance_lib.vocabulary.words import known_words


def test_every_word_of_the_documents_is_known(shared: Path) -> None:
    documents = sorted((shared / "conformance").glob("*.md"))
    assert documents
    spared = {word for listed in NOT_WORDS.values() for word in listed.split()}
    left = {path.name: unknown_words(path.name, path.read_text("utf-8")) for path in documents}
    assert {name: found - spared for name, found in left.items() if found - spared} == {}
    assert spared <= set().union(*left.values()), "a word that is no longer an exception"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("README.md", "* `no_such_fact: {SEL: n}` - a fact"),
        ("SOME_PASS.md", "# Some pass\n## 10. Vocabulary of the table\n* `no_such_fact: n`"),
        ("SOME_PASS.md", "# Some pass\n| option | default |\n|---|---|\n| `no_such_fact` | 1 |"),
        ("SOME_PASS.md", "# Some pass\n* Option `no_such_fact`: `true` or `false`"),
        ("README.md", "* `root_opcode`, `no_such_fact: {root_opcode, opcode}`"),
    ],
)
def test_a_word_that_nobody_knows_is_found(name: str, text: str) -> None:
    assert unknown_words(name, text) == {"no_such_fact"}


def test_words_elsewhere_are_not_those_of_records() -> None:
    text = "# Some pass\n## 1. The whole pass\n`no_such_fact` is `%no_such.name`"
    assert unknown_words("SOME_PASS.md", text) == set()
    assert unknown_words("README.md", "`SEL` of `P1`, `%no_such_fact`, `a.no_such_fact`") == set()


def test_each_word_has_a_home() -> None:
    known = known_words()
    assert known["root_opcode"] == "conformance_lib.expect.structure"
    assert known["max_in_flight"] == "conformance_lib.scheduling.expect_positions"
    assert known["has_enough_together"] == "conformance_lib.memory_space.units"
    assert known["loop_prefetches"] == "conformance_lib.memory_space.loop_unit"
    assert known["simplified"] == "conformance_lib.expect.operands"
    assert known["sink_only_scalar_constants"] == "while-loop-constant-sinking"
