"""LLVM FileCheck lines, matched by the package `filecheck`."""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout


def unmatched(lines: str, text: str) -> str | None:
    """Why `text` does not satisfy the CHECK lines in `lines`, or None where it does."""
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
