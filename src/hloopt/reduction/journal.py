"""The journal of a reduction on disk: outcomes so far, for `--resume`."""

from __future__ import annotations

import json
import os

from hloopt.diagnostics import HloError
from hloopt.files import write_whole
from hloopt.reduction.outcomes import Outcome, Verdict


class Journal:
    """Outcomes by the hash of the text, one line each, appended as they come.

    A line that was cut off when the process ended is left out. What it belongs to (input,
    predicate) stands in the first line.
    """

    def __init__(self, path: str, subject: str, *, resume: bool) -> None:
        """Read what is there if it is to be resumed, else begin anew. Raises HloError."""
        self.path = path
        self.outcomes: dict[str, Outcome] = {}
        lines = _read(path) if resume else []
        if resume and (not lines or lines[0] != subject):
            reason = "there is none" if not lines else "it is of another input or predicate"
            raise HloError(
                f"{path}: nothing to resume: {reason}",
                help="leave --resume out to begin anew",
            )
        for line in lines[1:]:
            key, verdict, *rest = _fields(line)
            if rest:
                signature, detail, steps = rest
                self.outcomes[key] = Outcome(Verdict(verdict), signature, detail, int(steps))
        kept = [subject, *lines[1:]] if resume else [subject]
        write_whole(path, "".join(f"{line}\n" for line in kept))

    def add(self, key: str, outcome: Outcome) -> None:
        """Append an outcome. Raises HloError where the file cannot be written."""
        verdict, signature, detail = outcome.verdict.value, outcome.signature, outcome.detail
        fields = [key, verdict, signature, detail, str(outcome.steps)]
        try:
            with open(self.path, "a", encoding="utf-8") as file:
                file.write(f"{json.dumps(fields)}\n")
        except OSError as error:
            raise HloError(f"{self.path}: cannot be written: {error.strerror}") from error

    def remove(self) -> None:
        """Remove the file: the reduction is at its end."""
        if os.path.exists(self.path):
            os.remove(self.path)


_FIELDS = 5
"""Of a line: hash of the text, verdict, signature, detail, steps."""


def _read(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().split("\n")[:-1]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise HloError(f"{path}: cannot be read: {error.strerror}") from error


def _fields(line: str) -> list[str]:
    """The fields of a line; an empty key for one that is not whole."""
    try:
        fields = json.loads(line)
    except ValueError:
        fields = None
    is_whole = (
        isinstance(fields, list)
        and len(fields) == _FIELDS
        and all(isinstance(field, str) for field in fields)
        and fields[1] in {verdict.value for verdict in Verdict}
    )
    return fields if is_whole else ["", ""]
