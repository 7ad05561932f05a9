"""Texts that mean nothing to Markdown."""

from __future__ import annotations

import re

from hloopt.diagnostics import printable

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#+!|~&])")


def markdown_text(text: str) -> str:
    """`text` as people see it in a page of Markdown."""
    return _SPECIAL.sub(r"\\\1", printable(text))
