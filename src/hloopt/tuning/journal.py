"""Results of a tuning run, a line each, so that a run that was ended goes on."""

from __future__ import annotations

import contextlib
import json
from hashlib import sha256

from hloopt.diagnostics import HloError
from hloopt.plain_data import from_plain, to_plain
from hloopt.tuning.judgement import Choice, Judge, Judged


class Journal:
    """A file of JSON lines; those of other programs, targets or compilers do not count."""

    def __init__(self, path: str, judge: Judge, version: str) -> None:
        """Read what there is. Raises HloError for a file that cannot be read."""
        self._path = path
        parts = (judge.program.code().hex(), judge.compiler.description, version, *judge.flags)
        self._key = sha256("\0".join(parts).encode()).hexdigest()[:16]
        self.known: dict[Choice, Judged] = {}
        try:
            with open(path, encoding="utf-8") as file:
                lines = file.readlines()
        except FileNotFoundError:
            return
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "it is no text"
            raise HloError(f"cannot read {path}: {why}", code="HLO001") from None
        for line in lines:
            with contextlib.suppress(AttributeError, KeyError, TypeError, ValueError):
                data = json.loads(line)  # the last line may be cut short
                if data["key"] == self._key:
                    judged: Judged = from_plain(Judged, data["judged"])
                    self.known[judged.flags] = judged

    def add(self, judged: Judged) -> None:
        """Append a result. Raises HloError."""
        self.known[judged.flags] = judged
        line = json.dumps({"key": self._key, "judged": to_plain(judged)})
        try:
            with open(self._path, "a", encoding="utf-8") as file:
                file.write(f"{line}\n")
        except OSError as error:
            raise HloError(f"cannot write {self._path}: {error.strerror}", code="HLO004") from None
