"""Results of golden tests as JUnit's XML.

https://github.com/testmoapp/junitxml
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from hloopt.golden.session import Result

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

_FAILURES = ("failed", "xpassed")
_SKIPPED = ("unsupported", "xfailed")


def write_junit(results: Sequence[Result]) -> str:
    """The document: one suite, a case for each test."""
    counts = {
        "tests": str(len(results)),
        "failures": str(sum(result.outcome in _FAILURES for result in results)),
        "errors": str(sum(result.outcome == "error" for result in results)),
        "skipped": str(sum(result.outcome in _SKIPPED for result in results)),
        "time": f"{sum(result.seconds for result in results):.3f}",
    }
    root = Element("testsuites", {"name": "hloopt test", **counts})
    suite = SubElement(root, "testsuite", {"name": "hloopt test", **counts})
    for result in results:
        case = SubElement(suite, "testcase", name=_text(result.path), classname="golden")
        case.set("time", f"{result.seconds:.3f}")
        if result.is_bad:
            kind = "failure" if result.outcome in _FAILURES else "error"
            message = _text(result.account.partition("\n")[0])
            SubElement(case, kind, message=message).text = _text(result.account)
        elif result.outcome in _SKIPPED:
            SubElement(case, "skipped", message=result.outcome)
    indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(root, encoding="unicode")}\n'


def _text(text: str) -> str:
    """A text without what XML cannot hold."""
    return _NOT_IN_XML.sub("\ufffd", text)
