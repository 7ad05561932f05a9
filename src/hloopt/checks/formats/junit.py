"""JUnit's XML: a suite for each module, a case for each check.

A check that came to no verdict is an error, not a failure.
https://github.com/testmoapp/junitxml
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from hloopt.checks.formats.lines import origin_text, place_text
from hloopt.checks.results import Check, CheckedModule, Verdict
from hloopt.diagnostics import printable

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_junit(checked: Sequence[CheckedModule]) -> str:
    """The document."""
    root = Element("testsuites", {"name": "hloopt", **_counts(checked)})
    for module in checked:
        suite = SubElement(root, "testsuite", {"name": _text(module.file), **_counts([module])})
        for check in module.checks:
            _add_case(suite, module, check)
    indent(root)
    body = tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{body}\n'


def _counts(checked: Sequence[CheckedModule]) -> dict[str, str]:
    def count(verdict: Verdict) -> str:
        return str(sum(len(module.with_verdict(verdict)) for module in checked))

    return {
        "tests": str(sum(len(module.checks) for module in checked)),
        "failures": count(Verdict.FAILED),
        "errors": count(Verdict.NONE),
    }


def _add_case(suite: Element, module: CheckedModule, check: Check) -> None:
    case = SubElement(
        suite, "testcase", name=_text(check.name), classname=_text(module.module or module.file)
    )
    if check.verdict is Verdict.NONE:
        SubElement(case, "error", type="no verdict", message=_text(check.reason)).text = _text(
            check.remedy
        )
    elif check.verdict is Verdict.FAILED:
        message = "; ".join(each.message for each in check.violations[:3])
        SubElement(case, "failure", type=check.violations[0].severity.value, message=_text(message))
        case[-1].text = "\n".join(map(_text, _lines(check)))


def _lines(check: Check) -> list[str]:
    lines = []
    for each in check.violations:
        lines.append(f"{place_text(each.location)}: {each.message}")
        lines += [
            f"  {place_text(place)} {origin_text(place)}"
            for place in (each.location, *each.related)
            if place.instruction
        ]
        lines += [f"  {each.help}"] if each.help else []
    return lines


def _text(text: str) -> str:
    """A line, without what XML cannot hold."""
    return _NOT_IN_XML.sub("\ufffd", printable(text))
