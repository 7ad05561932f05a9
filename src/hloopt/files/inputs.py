"""The files that paths on a command line stand for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from hloopt.diagnostics import HloError
from hloopt.files.packing import SUFFIXES, unpacked_name
from hloopt.files.reading import STANDARD_STREAM, begins_as_module, read_module
from hloopt.files.storage import exists, files_below, is_folder, join

if TYPE_CHECKING:
    from hloopt.text.foreign import NotHlo

HLO_SUFFIXES = (".hlo", ".hlo.pb", ".hlo.pbtxt")
"""The ends of names of files that hold HLO, before those that say how they are packed."""


def find_inputs(paths: Sequence[str]) -> list[str]:
    """The files that `paths` name: files as they are, folders by what is below them, sorted.

    Of a folder: `*.hlo`, `*.hlo.pb`, `*.hlo.pbtxt`, and `*.txt` that begin as HLO modules do, each
    possibly packed. Raises HloError for a path that does not exist or a folder without HLO.
    """
    found: list[str] = []
    for path in paths:
        if path == STANDARD_STREAM or not _is_folder(path):
            found.append(path)
            continue
        below = sorted(_below(path))
        if not below:
            names = ", ".join(f"*{suffix}" for suffix in HLO_SUFFIXES)
            wanted = f"{names} and *.txt, also {', '.join(SUFFIXES)}"
            other = _known_file(path)
            raise HloError(
                f"no HLO files in {path}",
                help=wanted if other is None else f"{other.message}; {other.help}",
                code="HLO006",
            )
        found += below
    return list(dict.fromkeys(found))


def _is_folder(path: str) -> bool:
    """Raises HloError where there is nothing."""
    try:
        if is_folder(path):
            return True
        is_there = exists(path)
    except OSError as error:
        raise HloError(f"cannot read {path}: {error.strerror or error}", code="HLO001") from None
    if not is_there:
        raise HloError(f"cannot read {path}: No such file or directory", code="HLO001")
    return False


def _known_file(folder: str) -> NotHlo | None:
    """The kind of the first file in a folder that is known not to be HLO."""
    from hloopt.text.foreign import NotHlo

    for place, name, _ in islice(files_below(folder, _ignore), _LOOKED_AT):
        try:
            read_module(join(place, name))
        except NotHlo as error:
            return error
        except HloError:
            continue
    return None


def _ignore(path: str, reason: str) -> None:
    """Pass over what cannot be listed: it is none of the inputs."""


_LOOKED_AT = 20


def _below(folder: str) -> Iterator[str]:
    for place, name, _ in files_below(folder, _ignore):
        stem, path = unpacked_name(name), join(place, name)
        if stem.endswith(HLO_SUFFIXES):
            yield path
        elif stem.endswith(".txt"):
            try:
                if begins_as_module(path):
                    yield path
            except HloError:
                continue
