"""Reports of unexpected exceptions: one line for the user, the details in a file."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from hloopt.diagnostics import Defect


def as_defect(error: BaseException, arguments: Sequence[str]) -> Defect:
    """Turn an unexpected exception into a Defect, and write a report file for the maintainers."""
    place = _place(error)
    message = f"a defect of hloopt: {type(error).__name__}: {error}".rstrip(": ")
    written = _write_report(error, arguments)
    report = f"report it with {written} and the input" if written else "report it with the input"
    return Defect(message + (f" ({place})" if place else ""), help=report)


def _place(error: BaseException) -> str:
    """File and line where the exception was raised, as `hloopt/cli.py:12`; empty if unknown."""
    trace = error.__traceback__
    if trace is None:
        return ""
    while trace.tb_next is not None:
        trace = trace.tb_next
    path = trace.tb_frame.f_code.co_filename
    _, found, inside = path.rpartition("/hloopt/")
    return f"{found.lstrip('/')}{inside}:{trace.tb_lineno}"


def _write_report(error: BaseException, arguments: Sequence[str]) -> str | None:
    """Write command line, versions and traceback to a file; returns its path, None on failure."""
    import os
    import shlex
    import tempfile
    import traceback

    from hloopt import __version__

    lines = [
        f"command: {shlex.join(['hloopt', *arguments])}",
        f"folder: {os.getcwd()}",
        f"hloopt {__version__}, Python {sys.version.split()[0]} on {sys.platform}",
        "",
        *traceback.format_exception(error),
    ]
    try:
        handle, path = tempfile.mkstemp(prefix="hloopt-defect-", suffix=".txt")
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write("\n".join(lines))
    except OSError:
        return None
    return path
