"""Rows that are done, a line each, so that a run that was ended goes on."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

from hloopt.plain_data import from_plain, to_plain
from overlap_lib.rows import Row


class Record:
    """A file of rows; those of other settings do not count."""

    def __init__(self, path: Path, settings: str) -> None:
        self._path = path
        self._key = settings
        self._rows: dict[tuple[str, str], Row] = {}
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        for line in lines:
            with contextlib.suppress(AttributeError, KeyError, TypeError, ValueError):
                data = json.loads(line)  # the last line may be cut short
                if data["key"] == self._key:
                    row: Row = from_plain(Row, data["row"])
                    self._rows[data["table"], row.name] = row

    def known(self, table: str, name: str) -> Row | None:
        return self._rows.get((table, name))

    def add(self, table: str, row: Row) -> None:
        """Append a row."""
        self._rows[table, row.name] = row
        self._path.parent.mkdir(parents=True, exist_ok=True)
        line = json.dumps({"key": self._key, "table": table, "row": to_plain(row)})
        with open(self._path, "a", encoding="utf-8") as file:
            file.write(f"{line}\n")
