"""SARIF 2.1.0, which code scanning of GitHub and editors read.

A check that came to no verdict is a notification of the run, and the run is not successful.
https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any
from urllib.parse import quote

from hloopt import __version__
from hloopt.checks.formats.lines import NO_VERDICT, Entry, entries_of
from hloopt.checks.results import NO_IMPACT, CheckedModule, Location, Severity

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "note"}


def write_sarif(checked: Sequence[CheckedModule]) -> str:
    """The log, with one run."""
    found = list(entries_of(checked))
    titles = {check.name: check.title for module in checked for check in module.checks}
    numbers = {name: number for number, name in enumerate(titles)}
    notifications = [_notification(each) for each in found if each.kind == NO_VERDICT]
    run = {
        "tool": {
            "driver": {
                "name": "hloopt",
                "version": __version__,
                "rules": [
                    {"id": name, "shortDescription": {"text": title or name}}
                    for name, title in titles.items()
                ],
            }
        },
        "invocations": [
            {
                "executionSuccessful": not notifications,
                "toolExecutionNotifications": notifications,
            }
        ],
        "columnKind": "unicodeCodePoints",
        "results": [
            _result(each, numbers[each.check.name]) for each in found if each.kind != NO_VERDICT
        ],
    }
    return json.dumps({"version": "2.1.0", "$schema": SCHEMA, "runs": [run]}, indent=2) + "\n"


def _result(entry: Entry, rule: int) -> dict[str, Any]:
    text = f"{entry.message}. {entry.help}" if entry.help else entry.message
    impact = {} if entry.impact == NO_IMPACT else {"impact": asdict(entry.impact)}
    return {
        "ruleId": entry.check.name,
        "ruleIndex": rule,
        "level": _LEVELS[entry.severity],
        "message": {"text": text},
        "locations": [_location(entry.location)],
        "relatedLocations": [
            {"id": number, **_location(place)} for number, place in enumerate(entry.related)
        ],
        "properties": impact,
    }


def _notification(entry: Entry) -> dict[str, Any]:
    return {
        "level": "error",
        "message": {"text": f"{NO_VERDICT}: {entry.message}. {entry.help}"},
        "locations": [_location(entry.location)],
    }


def _location(place: Location) -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": {"uri": quote(place.file, safe="/")}}
    if place.line is not None:
        region = {
            "startLine": place.line,
            "startColumn": place.column,
            "endLine": place.end_line,
            "endColumn": place.end_column,
        }
        physical["region"] = {name: value for name, value in region.items() if value is not None}
    found: dict[str, Any] = {"physicalLocation": physical}
    if place.instruction:
        name = f"{place.computation}/{place.instruction}"
        found["logicalLocations"] = [{"name": place.instruction, "fullyQualifiedName": name}]
    return found
