"""Records of expectation tables, read and checked for unknown fields."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conformance_lib.errors import NotModelled, RecordError
from conformance_lib.forms import unknown_words

FIELDS = frozenset(
    (
        *("id", "pass", "hlo", "hlo_authored", "config", "options", "also_run", "expect"),
        *("note", "skip", "mutate", "parse_error", "parse_error_text", "parse_error_note"),
        *("hlo_from", "hlo_subst"),
    )
)
"""Fields that records of passes and analyses may have."""
PHASES = frozenset(("before", "after", "then"))
"""The steps of `also_run`."""


@dataclass(frozen=True, slots=True)
class Step:
    """One run of a pass. `phase` is "before", "main", "after" or "then"."""

    phase: str
    pass_name: str
    options: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Record:
    """One line of a table."""

    id: str
    fields: Mapping[str, Any]

    @property
    def skip(self) -> str | None:
        """The reason why there is nothing to run, or None."""
        reason: str | None = self.fields.get("skip")
        return reason

    @property
    def hlo(self) -> str:
        """The text, after its replacements. Raises NotModelled where it is in XLA's sources."""
        return text_of(self.fields)

    @property
    def config(self) -> Mapping[str, Any]:
        config: Mapping[str, Any] = self.fields.get("config", {})
        return config

    @property
    def expectations(self) -> list[Mapping[str, Any]]:
        """The statements that must hold. Raises RecordError where there is none."""
        expectations: list[Mapping[str, Any]] = self._required("expect")
        if not isinstance(expectations, list) or not expectations:
            raise RecordError("the record expects nothing: any outcome would pass")
        return expectations

    @property
    def pass_name(self) -> str:
        name: str = self._required("pass")
        return name

    def check_fields(self, more: Set[str] = frozenset()) -> None:
        """Raise RecordError for a field nobody would look at; `more` are known beside the usual."""
        if reason := unknown_words("record field", self.fields, FIELDS | more):
            raise RecordError(reason)
        if self.pass_name != "verifier" and "mutate" in self.fields:
            raise RecordError("only the verifier's records may edit modules")
        if reason := unknown_words("phase of also_run", self.fields.get("also_run", {}), PHASES):
            raise RecordError(reason)

    def steps(self) -> Iterator[Step]:
        """All runs of passes, in order; the record's own pass has the phase "main"."""
        also_run = self.fields.get("also_run", {})
        yield from _steps("before", also_run)
        yield Step("main", self.pass_name, self.fields.get("options", {}))
        yield from _steps("after", also_run)
        yield from _steps("then", also_run)

    def _required(self, field: str) -> Any:
        if field not in self.fields:
            raise RecordError(f"the record has no field '{field}'")
        return self.fields[field]


def text_of(fields: Mapping[str, Any]) -> str:
    """The module's text in a record's `hlo`, with the replacements of `hlo_subst`.

    Raises NotModelled for `hlo_from`, a text that is in XLA's sources only, and RecordError where
    there is no text or a replacement does nothing.
    """
    if "hlo" not in fields:
        if "hlo_from" in fields:
            raise NotModelled(f"the text is in XLA's sources: {fields['hlo_from']}")
        raise RecordError("the record has no field 'hlo'")
    text: str = fields["hlo"]
    for old, new in fields.get("hlo_subst", ()):
        if old not in text:
            raise RecordError(f"there is no '{old}' in the text to replace")
        text = text.replace(old, new)
    return text


def _steps(phase: str, also_run: Mapping[str, Any]) -> Iterator[Step]:
    for entry in also_run.get(phase, ()):
        if isinstance(entry, str):
            yield Step(phase, entry, {})
            continue
        for pass_name, options in entry.items():
            yield Step(phase, pass_name, options)


def read_table(path: Path) -> list[Record]:
    """The records of a table. Raises ValueError where a line is not a JSON object with an id."""
    records: list[Record] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip():
            continue
        fields = json.loads(line)
        if not isinstance(fields, dict) or "id" not in fields:
            raise ValueError(f"{path}:{number}: not a record with an id")
        records.append(Record(fields["id"], fields))
    return records
