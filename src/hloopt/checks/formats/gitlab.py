"""A code quality report of GitLab.

https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from hashlib import sha256

from hloopt.checks.formats.lines import NO_VERDICT, Entry, entries_of
from hloopt.checks.results import CheckedModule, Severity

_SEVERITIES = {Severity.ERROR: "major", Severity.WARNING: "minor", Severity.NOTE: "info"}


def write_gitlab(checked: Sequence[CheckedModule]) -> str:
    """A list with an issue for each entry."""
    seen: Counter[str] = Counter()
    issues = []
    for entry in entries_of(checked):
        place = entry.location
        key = "\0".join((place.file, entry.check.name, place.op_name, entry.kind))
        seen[key] += 1
        issues.append(
            {
                "description": _description(entry),
                "check_name": entry.check.name,
                "fingerprint": _hash(f"{key}\0{seen[key]}"),
                "severity": _SEVERITIES[entry.severity],
                "location": _location(entry),
            }
        )
    return json.dumps(issues, indent=2) + "\n"


def _description(entry: Entry) -> str:
    return f"{NO_VERDICT}: {entry.message}" if entry.kind == NO_VERDICT else entry.message


def _location(entry: Entry) -> dict[str, object]:
    place = entry.location
    return {"path": place.file, "lines": {"begin": place.line or 1}}


def _hash(key: str) -> str:
    """A hash that stays when lines move and instructions are renamed."""
    return sha256(key.encode(errors="surrogatepass")).hexdigest()[:32]
