"""A code quality report of GitLab.

https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from hashlib import sha256

from hloopt.checks.formats.lines import NO_VERDICT, Finding, findings
from hloopt.checks.results import CheckedModule, Severity

_SEVERITIES = {Severity.ERROR: "major", Severity.WARNING: "minor", Severity.NOTE: "info"}


def write_gitlab(checked: Sequence[CheckedModule]) -> str:
    """A list with an issue for each finding."""
    seen: Counter[str] = Counter()
    issues = []
    for finding in findings(checked):
        place = finding.location
        key = "\0".join((place.file, finding.check.name, place.op_name, finding.kind))
        seen[key] += 1
        issues.append(
            {
                "description": _description(finding),
                "check_name": finding.check.name,
                "fingerprint": _hash(f"{key}\0{seen[key]}"),
                "severity": _SEVERITIES[finding.severity],
                "location": _location(finding),
            }
        )
    return json.dumps(issues, indent=2) + "\n"


def _description(finding: Finding) -> str:
    return f"{NO_VERDICT}: {finding.message}" if finding.kind == NO_VERDICT else finding.message


def _location(finding: Finding) -> dict[str, object]:
    place = finding.location
    return {"path": place.file, "lines": {"begin": place.line or 1}}


def _hash(key: str) -> str:
    """A hash that stays when lines move and instructions are renamed."""
    return sha256(key.encode(errors="surrogatepass")).hexdigest()[:32]
