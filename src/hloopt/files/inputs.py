"""The files that paths on a command line stand for."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from hloopt.diagnostics import HloError
from hloopt.files.packing import SUFFIXES, unpacked_name
from hloopt.files.reading import STANDARD_STREAM, read_module, read_source

if TYPE_CHECKING:
    from hloopt.text.foreign import NotHlo


def find_inputs(paths: Sequence[str]) -> list[str]:
    """The files that `paths` name: files as they are, folders by what is below them, sorted.

    Of a folder: `*.hlo`, `*.hlo.pb`, and `*.txt` that begin as HLO modules do, each possibly
    packed. Raises HloError for a path that does not exist or a folder without HLO.
    """
    found: list[str] = []
    for path in paths:
        if path == STANDARD_STREAM or not os.path.isdir(path):
            if path != STANDARD_STREAM and not os.path.exists(path):
                raise HloError(f"cannot read {path}: No such file or directory", code="HLO001")
            found.append(path)
            continue
        below = sorted(_below(path))
        if not below:
            wanted = f"*.hlo, *.hlo.pb and *.txt, also {', '.join(SUFFIXES)}"
            other = _known_file(path)
            raise HloError(
                f"no HLO files in {path}",
                help=wanted if other is None else f"{other.message}; {other.help}",
                code="HLO006",
            )
        found += below
    return list(dict.fromkeys(found))


def _known_file(folder: str) -> NotHlo | None:
    """The kind of the first file in a folder that is known not to be HLO."""
    from hloopt.text.foreign import NotHlo

    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name)[:_LOOKED_AT]:
        if entry.is_file():
            try:
                read_module(entry.path)
            except NotHlo as error:
                return error
            except HloError:
                continue
    return None


_LOOKED_AT = 20


def _below(folder: str) -> Iterator[str]:
    from pathlib import Path

    for path in Path(folder).rglob("*"):
        stem = unpacked_name(path.name)
        if stem.endswith((".hlo", ".hlo.pb")) and path.is_file():
            yield str(path)
        elif stem.endswith(".txt") and path.is_file():
            try:
                if read_source(str(path)).text.lstrip().startswith("HloModule"):
                    yield str(path)
            except HloError:
                continue
