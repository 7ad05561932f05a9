"""Columns of texts as pages hold them, and the groups that colours of a picture stand for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from string import digits
from typing import Any, NamedTuple

from hloopt.diagnostics import counted

_LEAST_SHARE = 0.001
"""Of all weight: what has less is no group of its own."""


@dataclass(slots=True)
class TextColumn:
    """Texts of things in a row, each different one stored once."""

    numbers: dict[str, int] = field(default_factory=dict)
    """The different texts by first use, each with its number."""
    at: list[int] = field(default_factory=list)
    """By thing the number of its text."""

    def add(self, text: str) -> None:
        self.at.append(self.numbers.setdefault(text, len(self.numbers)))

    @classmethod
    def of(cls, texts: Iterable[str]) -> TextColumn:
        column = cls()
        for text in texts:
            column.add(text)
        return column

    def packed(self) -> dict[str, Any]:
        """`at` is empty where all things have the one text there is."""
        return {
            "texts": _packed_texts(self.numbers),
            "at": self.at if len(self.numbers) > 1 else [],
        }

    def weights(self, weights: Iterable[float]) -> list[float]:
        """By text the sum over its things."""
        sums = [0.0] * len(self.numbers)
        for number, weight in zip(self.at, weights, strict=True):
            sums[number] += weight
        return sums


def packed_rows(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Rows with the same keys as columns, each key once and each text of a column once."""
    keys = rows[0] if rows else ()
    columns = {key: [row[key] for row in rows] for key in keys}
    return {
        key: TextColumn.of(values).packed() if isinstance(values[0], str) else values
        for key, values in columns.items()
    }


def _packed_texts(texts: Iterable[str]) -> list[int | str]:
    """Of each text how much of the one before it begins with, and the rest: paths are alike."""
    result: list[int | str] = []
    before = ""
    for text in texts:
        shared = next(
            (n for n, (a, b) in enumerate(zip(before, text, strict=False)) if a != b), None
        )
        shared = min(len(before), len(text)) if shared is None else shared
        result += shared, text[shared:]
        before = text
    return result


@dataclass(frozen=True, slots=True)
class Grouping:
    """One way to tell things apart: a colour for each of the heaviest groups, one for the rest."""

    name: str
    column: str
    """The name of the texts that decide."""
    labels: list[str]
    """Of the groups, the heaviest first; where there are more, the last is all others."""
    has_rest: bool
    sums: list[float]
    """Of the weights in each group."""
    group_of: list[int]
    """By text of the column the number of its group; some number where it has no weight."""

    @classmethod
    def of(
        cls,
        name: str,
        column: str,
        texts: Sequence[str],
        weights: Sequence[float],
        *,
        label: Callable[[str], str] = str,
        most: int,
    ) -> Grouping:
        """Groups of texts with one label, at most `most` and the rest. O(n log n).

        What has too little weight to be seen is in the rest; texts of no weight are of no group.
        """
        assert most < len(digits)
        labels = [label(text) or f"(no {column})" for text in texts]
        sums: dict[str, float] = {}
        for text, weight in zip(labels, weights, strict=True):
            if weight > 0:
                sums[text] = sums.get(text, 0.0) + weight
        ranked = sorted(sums, key=lambda text: -sums[text])
        least = _LEAST_SHARE * sum(sums.values())
        shown = [text for text in ranked[:most] if sums[text] >= least]
        rest = ranked[len(shown) :]
        rank = {text: number for number, text in enumerate(shown)}
        group_of = [rank.get(text, len(shown)) for text in labels]
        group_sums = [sums[text] for text in shown]
        if rest:
            shown.append(rest[0] if len(rest) == 1 else f"{len(rest):,} more")
            group_sums.append(sum(sums[text] for text in rest))
        return cls(name, column, shown, bool(rest), group_sums, group_of)

    def packed(self) -> dict[str, Any]:
        """`groups` has a digit per text."""
        return {
            "name": self.name,
            "column": self.column,
            "labels": self.labels,
            "hasRest": self.has_rest,
            "groups": "".join(map(str, self.group_of)),
        }


class Criterion(NamedTuple):
    """A way to tell things apart: by the labels of their texts in a column."""

    name: str
    column: str
    label: Callable[[str], str] = str


def text_groupings(
    columns: Mapping[str, TextColumn],
    weights: Sequence[float],
    criteria: Iterable[Criterion],
    *,
    most: int,
) -> Iterator[Grouping]:
    """A grouping per criterion, of things with `weights` and these columns of texts."""
    for name, column, label in criteria:
        found = columns[column]
        texts, sums = list(found.numbers), found.weights(weights)
        yield Grouping.of(name, column, texts, sums, label=label, most=most)


def scope_groupings(
    op_names: TextColumn, weights: Sequence[float], *, depth: int, most: int
) -> Iterator[Grouping]:
    """Groupings of things with `weights` by the first parts of their op_names: by `depth` of them,
    and by each number of parts that tells more op_names apart than the one before."""
    parts = [text.split("/") for text in op_names.numbers]
    sums = op_names.weights(weights)
    longest = max(map(len, parts), default=0)
    before = 1
    for count in range(1, min(longest, _MOST_PARTS) + 1):
        scopes = ["/".join(each[:count]) for each in parts]
        different = len(set(scopes))
        if different > before or count == depth:
            title = f"scope, {counted(count, 'part')}"
            yield Grouping.of(title, "op_name", scopes, sums, most=most)
        before = different


_MOST_PARTS = 10
