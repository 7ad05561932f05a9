"""Results in the forms that services read, with nothing of the input that these would obey."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from jsonschema import Draft4Validator
from rich.console import Console

from hloopt.checks.formats import FORMATS, WRITERS, writer_of
from hloopt.checks.formats.terminal import render_checks
from hloopt.checks.results import (
    Check,
    CheckedModule,
    Impact,
    Location,
    Severity,
    Verdict,
    Violation,
)

NASTY = "a\x1b[31m\r\n::error::x%, |<b>`:\u202e"
PLACE = Location("d/s.hlo", 3, 5, 3, 9, "ar", "main", "jit(f)/psum", "model.py:7")
NASTY_PLACE = Location(NASTY, 1, 1, 1, 2, NASTY, NASTY, NASTY, NASTY)
CHECKED = [
    CheckedModule(
        "d/s.hlo",
        "jit_f",
        (
            Check("loops.count == 0", "loops: number of them", Verdict.PASSED, notes=("0",)),
            Check(
                *("dots.count == 0", "dots: number of them", Verdict.FAILED),
                (
                    Violation(
                        *("dots.count == 0", Severity.ERROR, "it is 2", PLACE),
                        help="use bf16",
                        related=(Location("d/s.hlo", instruction="d2"),),
                        impact=Impact(0.5, 3),
                    ),
                ),
                why="bf16 only",
            ),
            Check(
                *("memory.peak <= 1B", "memory: peak", Verdict.NONE),
                reason="it is not scheduled",
                remedy="Give the last dump.",
            ),
            Check(
                *("HLL001", "", Verdict.FAILED),
                (Violation("HLL001", Severity.WARNING, "late", Location("d/s.hlo")),),
            ),
        ),
    ),
    CheckedModule(
        NASTY,
        NASTY,
        (
            Check(
                *(NASTY, NASTY, Verdict.FAILED),
                (Violation(NASTY, Severity.NOTE, NASTY, NASTY_PLACE, NASTY),),
            ),
            Check(NASTY, NASTY, Verdict.NONE, reason=NASTY, remedy=NASTY, notes=(NASTY,)),
        ),
    ),
]
EMPTY: list[CheckedModule] = []


def written(name: str, checked: list[CheckedModule] = CHECKED) -> str:
    return writer_of(name)(checked)


def data(name: str) -> Any:
    return json.loads(written(name))


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("checked", [EMPTY, [CheckedModule("a", "m", ())]])
def test_nothing_checked_is_written_too(name: str, checked: list[CheckedModule]) -> None:
    assert isinstance(written(name, checked), str)
    assert FORMATS[0] == "text"


@pytest.mark.parametrize("name", [name for name in WRITERS if name not in ("json", "json-lines")])
def test_no_line_begins_with_what_the_input_says(name: str) -> None:
    text = written(name)
    assert "\x1b" not in text
    assert not re.search("^::error::x", text, re.M)


def test_concise() -> None:
    lines = written("concise").splitlines()
    assert lines[:3] == [
        "d/s.hlo:3:5: error: dots.count == 0: it is 2 (bf16 only)",
        "d/s.hlo: no verdict: memory.peak <= 1B: it is not scheduled",
        "d/s.hlo: warning: HLL001: late",
    ]
    assert lines[-1] == "6 checks: 1 passed, 3 failed, 2 without a verdict"
    assert len(lines) == 6


def test_json() -> None:
    modules = data("json")
    assert [module["file"] for module in modules] == ["d/s.hlo", NASTY]
    dots = modules[0]["checks"][1]
    assert (dots["verdict"], dots["why"]) == ("failed", "bf16 only")
    (violation,) = dots["violations"]
    assert violation["severity"] == "error"
    assert violation["location"]["line"] == 3
    assert violation["related"][0]["instruction"] == "d2"
    lines = [json.loads(line) for line in written("json-lines").splitlines()]
    assert len(lines) == 6
    assert lines[1] == {"file": "d/s.hlo", "module": "jit_f", **dots}


def test_github() -> None:
    lines = written("github").splitlines()
    assert lines[0] == (
        "::error file=d/s.hlo,line=3,endLine=3,col=5,endColumn=9,title=hloopt::"
        "dots.count == 0: it is 2 (bf16 only)%0A%25ar jit(f)/psum model.py:7%0Ause bf16"
    )
    assert lines[1].startswith("::error file=d/s.hlo,title=hloopt%3A no verdict::memory.peak")
    assert lines[2].startswith("::warning file=d/s.hlo,title=hloopt::HLL001")
    assert len(lines) == 6
    fields = lines[3].split(" ", 1)[1].split("::", 1)[0]
    assert len(fields.split(",")) == 6


def test_gitlab() -> None:
    issues = data("gitlab")
    assert [issue["severity"] for issue in issues] == ["major", "major", "minor", "info", "major"]
    assert issues[0]["location"] == {"path": "d/s.hlo", "lines": {"begin": 3}}
    assert issues[1]["location"]["lines"] == {"begin": 1}
    assert issues[1]["description"].startswith("no verdict: memory.peak")
    assert len({issue["fingerprint"] for issue in issues}) == 5


def test_fingerprints_of_gitlab_stay_when_lines_move() -> None:
    def fingerprint(place: Location) -> str:
        violation = Violation("x", Severity.ERROR, "m", place)
        check = Check("x", "", Verdict.FAILED, (violation, violation))
        issues = json.loads(written("gitlab", [CheckedModule("a", "m", (check,))]))
        assert issues[0]["fingerprint"] != issues[1]["fingerprint"]
        return str(issues[0]["fingerprint"])

    moved = Location("a", 9, 1, 9, 2, "other.3", op_name="f/g")
    assert fingerprint(Location("a", 1, 1, 1, 2, "ar", op_name="f/g")) == fingerprint(moved)
    assert fingerprint(Location("a", 1, 1, 1, 2, "ar", op_name="f/h")) != fingerprint(moved)


def test_junit() -> None:
    root = ElementTree.fromstring(written("junit"))  # we wrote it
    assert root.attrib == {"name": "hloopt", "tests": "6", "failures": "3", "errors": "2"}
    suite, other = root
    assert suite.attrib == {"name": "d/s.hlo", "tests": "4", "failures": "2", "errors": "1"}
    assert [[inner.tag for inner in case] for case in suite] == [
        [],
        ["failure"],
        ["error"],
        ["failure"],
    ]
    failure = suite[1][0]
    assert failure.attrib == {"type": "error", "message": "it is 2"}
    assert "d/s.hlo:3:5 %ar jit(f)/psum model.py:7" in (failure.text or "")
    assert suite[2][0].attrib["message"] == "it is not scheduled"
    assert len(other) == 2


def test_sarif() -> None:
    (run,) = data("sarif")["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [rules[result["ruleIndex"]]["id"] for result in run["results"]] == [
        result["ruleId"] for result in run["results"]
    ]
    assert [result["level"] for result in run["results"]] == ["error", "warning", "note"]
    first = run["results"][0]
    (place,) = first["locations"]
    assert place["physicalLocation"] == {
        "artifactLocation": {"uri": "d/s.hlo"},
        "region": {"startLine": 3, "startColumn": 5, "endLine": 3, "endColumn": 9},
    }
    assert place["logicalLocations"][0]["fullyQualifiedName"] == "main/ar"
    assert first["relatedLocations"][0]["id"] == 0
    (invocation,) = run["invocations"]
    assert not invocation["executionSuccessful"]
    assert len(invocation["toolExecutionNotifications"]) == 2
    passed = [CheckedModule("a", "m", (Check("x", "y", Verdict.PASSED),))]
    (run,) = json.loads(written("sarif", passed))["runs"]
    assert run["invocations"][0]["executionSuccessful"]


@pytest.mark.parametrize("checked", [CHECKED, EMPTY, CHECKED[:1]])
def test_sarif_is_valid_by_the_official_schema(checked: list[CheckedModule]) -> None:
    text = (Path(__file__).parent / "schemas" / "sarif-2.1.0.json").read_text(encoding="utf-8")
    validator = Draft4Validator(json.loads(text))
    log = json.loads(written("sarif", checked))
    assert [error.message for error in validator.iter_errors(log)] == []
    log["runs"][0]["results"] = {}
    assert not validator.is_valid(log)


def test_markdown() -> None:
    lines = written("markdown").splitlines()
    assert lines[0] == "**hloopt**: 6 checks: 1 passed, 3 failed, 2 without a verdict"
    assert "| loops.count == 0 | passed | 0 |" in lines
    row = next(line for line in lines if line.startswith("| dots"))
    assert (
        row == r"| dots.count == 0 | **failed** | it is 2<br>%ar jit\(f\)/psum model.py:7<br>%d2 |"
    )
    assert all(len(re.findall(r"(?<!\\)\|", line)) == 4 for line in lines if line.startswith("|"))


def test_text() -> None:
    console = Console(width=80, record=True, markup=False, highlight=False)
    render_checks(CHECKED[:1], console, top=1)
    lines = console.export_text().splitlines()
    assert lines == [
        "passed loops.count == 0  (0)",
        "FAILED dots.count == 0",
        "  bf16 only",
        "  it is 2",
        "    %ar  3:5  jit(f)/psum model.py:7",
        "    … and 1 more",
        "  use bf16",
        "no verdict memory.peak <= 1B",
        "  it is not scheduled. Give the last dump.",
        "FAILED HLL001",
        "  late",
        "4 checks: 1 passed, 2 failed, 1 without a verdict",
    ]
