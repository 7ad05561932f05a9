"""Results of checks as text: for people, for programs, and for the services that show findings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from hloopt.checks.results import CheckedModule

Writer: TypeAlias = "Callable[[Sequence[CheckedModule]], str]"

WRITERS = {
    "concise": "concise",
    "json": "plain_data",
    "json-lines": "plain_data",
    "github": "github",
    "gitlab": "gitlab",
    "junit": "junit",
    "sarif": "sarif",
    "markdown": "markdown",
}
"""Each format but text, with the module here whose `write_…` makes it."""
FORMATS = ("text", *WRITERS)


def writer_of(name: str) -> Writer:
    """The function that writes results in a format; text goes to a console (see `terminal`)."""
    writer: Writer = getattr(
        import_module(f"{__name__}.{WRITERS[name]}"), f"write_{name.replace('-', '_')}"
    )
    return writer
