"""LLVM FileCheck lines, matched by the package `filecheck`."""

from __future__ import annotations

import io
import re
from contextlib import redirect_stderr, redirect_stdout


def unmatched(lines: str, text: str) -> str | None:
    """The reason why `text` does not satisfy the CHECK lines in `lines`, or None where it does."""
    from filecheck.finput import FInput
    from filecheck.matcher import Matcher
    from filecheck.options import Options
    from filecheck.parser import Parser, pattern_for_opts

    options = Options(match_filename="CHECK lines", input_file="print")
    report = io.StringIO()
    with redirect_stderr(report), redirect_stdout(io.StringIO()):  # it prints debug lines
        checks = Parser(options, io.StringIO(lines), *pattern_for_opts(options))
        code = Matcher(options, FInput("print", text), checks).run()
    return None if code == 0 else report.getvalue().strip()


_READ = re.compile(
    r"^ +%(?P<name>\S+) = .* get-tuple-element\((?:\S+ )?%(?P<tuple>[^\s()]+)\), "
    r"index=(?P<index>\d+).*\n",
    re.M,
)
_NAME = re.compile(r"%[\w.\-]+")


def mentions_elements(lines: str) -> bool:
    """Whether CHECK lines are for text where `%t#0` stands for a get-tuple-element."""
    return re.search(r"(?:%[\w.\-]+|\]\])#\d", lines) is not None


def with_elements(text: str) -> str:
    """A printed module as newer XLA prints it: `%t#0` for each get-tuple-element but roots."""
    elements = {f"%{m['name']}": f"%{m['tuple']}#{m['index']}" for m in _READ.finditer(text)}

    def element(name: str) -> str:
        suffix = ""
        while name in elements:
            name, _, index = elements[name].rpartition("#")
            suffix = f"#{index}{suffix}"
        return name + suffix

    return _NAME.sub(lambda match: element(match[0]), _READ.sub("", text))
