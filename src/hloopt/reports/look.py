"""The colours of what reports show.

An instruction has the colour of its work in all of them. Kinds of buffers have colours of their
own, and so has what bounds an instruction: neither shares a table or picture with the work. Green,
yellow and red text is for verdicts: it fits, it is not known, it does not. Colour is never all that
tells things apart: rows have words, pictures legends.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from hloopt.reports.work_kinds import WorkKind


class Look(NamedTuple):
    """The colour of a thing."""

    style: str
    """In a terminal, as rich writes it; empty for that of all text."""
    fill: str
    """In a page: a fill of the palette (`html.palette`)."""


WORK: Mapping[WorkKind, Look] = {
    WorkKind.COLLECTIVE: Look("magenta", "c5"),
    WorkKind.PRODUCT: Look("cyan", "c4"),
    WorkKind.COMPUTE: Look("", "c1"),
    WorkKind.CUSTOM_CALL: Look("bright_yellow", "c2"),
    WorkKind.COPY: Look("blue", "c8"),
    WorkKind.CONTROL_FLOW: Look("bold", "call"),
    WorkKind.VALUE: Look("dim", "other"),
}
"""Instructions by what they do."""

MEMORY: Mapping[str, Look] = {
    "parameter": Look("cyan", "c7"),
    "output": Look("blue", "c8"),
    "constant": Look("magenta", "flight"),
    "temporary": Look("", "c1"),
    "thread-local": Look("bright_blue", "other"),
}
"""Buffers by their kind. None is green: that is the colour of what fits."""

BOUND: Mapping[str, Look] = {"compute": Look("cyan", "c4"), "memory": Look("blue", "c2")}
"""Instructions by what bounds their least time."""

WAITING = "red"
"""The style of time that the main stream waits."""
