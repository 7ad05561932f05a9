"""Results as JSON: one list of modules, or a line for each check."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from hloopt.checks.results import Check, CheckedModule


def write_json(checked: Sequence[CheckedModule]) -> str:
    """A list with an object for each module."""
    data = [
        {
            "file": module.file,
            "module": module.module,
            "checks": [check_data(check) for check in module.checks],
        }
        for module in checked
    ]
    return json.dumps(data, indent=2) + "\n"


def write_json_lines(checked: Sequence[CheckedModule]) -> str:
    """An object for each check, in a line of its own."""
    return "".join(
        json.dumps({"file": module.file, "module": module.module, **check_data(check)}) + "\n"
        for module in checked
        for check in module.checks
    )


def check_data(check: Check) -> dict[str, Any]:
    """A check with its violations as plain data."""
    violations = [
        {**asdict(each), "severity": each.severity.value, "related": [*map(asdict, each.related)]}
        for each in check.violations
    ]
    return {
        "name": check.name,
        "title": check.title,
        "verdict": check.verdict.value,
        "reason": check.reason,
        "remedy": check.remedy,
        "notes": list(check.notes),
        "why": check.why,
        "violations": violations,
    }
