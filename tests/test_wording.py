"""One is singular: counts before nouns go through `counted`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from hloopt.diagnostics import counted

OTHERS_WORDS = {"ir", "verifier", "proto"}
"""Where messages are those of XLA, which says `1 operands`."""

VERBS = {
    *("has", "is", "was", "does", "as", "this", "its", "us", "less", "across", "plus", "times"),
    *("needs", "stays", "calls", "takes", "runs", "reads", "depends", "holds", "makes", "ends"),
    *("begins", "fits", "uses", "feeds", "says", "stands", "goes", "expects", "requires", "moves"),
}
ALWAYS_SEVERAL = {
    "is called from {count} places",
    "{len(result.outcomes)} modules,",
    "{len(inputs)} inputs cannot",
    "{what}: {steps:,} steps",
    "elements, which are no {count} equal parts",
    "is the target of {len(incoming)} others",
    "of {len(rows)} to rows",
    "its {len(reduce.operands)} operands are one now",
    "more than {MOST_DEVICES:,} devices",
    "all {size} devices of a group",
    "{len(keepers)} devices of a group scatter",
    "there are {count} devices",
    "{latency:,.6g} cycles",
    "{seconds * 1000.0:,.4g} ms",
    "the {len(shown):,} points that take most time",
    "{len(cells)} cells in {len(self._columns)} columns",  # an assertion
    "{totals[Difference.RENAMED]:,} names only",
    "{self.total} elements differ",
    "{len(computation)} instructions, more than",
    "constants of {size} bytes, more than",
    "more than {Budget.MOST_VALUES:,} values",
    "more than {Budget.MOST_CHARACTERS:,} characters",
}
"""Counts that are never 1, or figures that are no counts."""


def counts_in_texts(path: Path) -> Iterator[str]:
    """F-strings in which a number stands before a noun in the plural."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.JoinedStr):
            for value, after in zip(node.values, node.values[1:], strict=False):
                if isinstance(value, ast.FormattedValue) and isinstance(after, ast.Constant):
                    text = str(after.value)
                    noun = re.match(r" (?:[a-z-]+ ){0,2}?([a-z-]+s|indices|entries)\b", text)
                    if noun and noun[1] not in VERBS and is_count(value):
                        yield ast.unparse(node)


def is_count(value: ast.FormattedValue) -> bool:
    source = ast.unparse(value.value)
    separated = value.format_spec is not None and "," in ast.unparse(value.format_spec)
    named = re.search(r"(?:count|number|size|rank|total|num|limit|steps|trips)$", source)
    return separated or bool(named) or source.startswith(("len(", "sum(", "prod("))


def test_no_text_says_one_things(root: Path) -> None:
    found = [
        f"{path.name}: {text}"
        for path in sorted((root / "src" / "hloopt").rglob("*.py"))
        if path.relative_to(root / "src" / "hloopt").parts[0] not in OTHERS_WORDS
        for text in counts_in_texts(path)
        if not any(known in text for known in ALWAYS_SEVERAL)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("number", "said"),
    [(0, "0 files"), (1, "1 file"), (2, "2 files"), (1200, "1,200 files")],
)
def test_a_count_with_its_noun(number: int, said: str) -> None:
    assert counted(number, "file") == said


def test_what_takes_more_than_an_s() -> None:
    assert counted(1, "value is", "values are") == "1 value is"
    assert counted(2, "value is", "values are") == "2 values are"


def test_docstrings_say_what_a_thing_is(root: Path) -> None:
    """A verb or a noun phrase comes first, never a clause with "What"."""
    folders = [root / "src" / "hloopt", root / "tools", root / "bench"]
    found = [
        f"{path.relative_to(root)}:{number}"
        for folder in folders
        for path in sorted(folder.rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if re.match(r'\s*(?:[rf]?""")What\b(?!\'s)', line)
    ]
    assert found == []


def test_what_is_overlooked_or_skipped_has_its_reason_beside_it(root: Path) -> None:
    told = re.compile(
        r"#\s*(?:ruff:\s*)?(?:type:\s*ignore|noqa)\b(?!.*\]? +# \w)"
        r"|pytest\.importorskip\((?!.*\breason=)|pytest\.(?:skip|xfail)\(\)"
    )
    files = [
        path
        for folder in ("src", "tools", "bench", "tests")
        for path in (root / folder).rglob("*.py")
    ]
    found = [
        f"{path.relative_to(root)}:{number}"
        for path in sorted(files)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if told.search(line)
    ]
    assert found == []
