"""Reports as terminal pages."""

from __future__ import annotations

import io
from typing import Any

from hloopt.reports.console.console import PageConsole


def page(render: Any, found: Any, **options: Any) -> str:
    """The text that `render` prints on 80 columns."""
    stream = io.StringIO()
    render(found, PageConsole(file=stream, width=80, color_system=None), **options)
    return stream.getvalue()
