"""Several modules in one file, separated by `// -----` lines."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hloopt.diagnostics import Source
from hloopt.patterns import pattern

_MARKER = pattern(r"^[ \t]*// -----[^\n]*(?:\n|\Z)", re.M)


@dataclass(frozen=True, slots=True)
class SplitFile:
    """The chunks of a file, and the marker lines between them as they stand there."""

    chunks: list[Source]
    markers: list[str]

    def join(self, results: list[str]) -> str:
        """The chunks' results with the markers between them."""
        parts = [results[0]]
        for marker, result in zip(self.markers, results[1:], strict=True):
            if parts[-1] and not parts[-1].endswith("\n"):
                parts.append("\n")
            parts += (marker, result)
        return "".join(parts)


def split_source(source: Source) -> SplitFile:
    """Cut a file at its `// -----` lines. Each chunk knows its first line in the file."""
    chunks: list[Source] = []
    markers: list[str] = []
    start = 0
    for match in _MARKER.finditer(source.text):
        chunks.append(_chunk(source, start, match.start()))
        markers.append(match[0])
        start = match.end()
    chunks.append(_chunk(source, start, len(source.text)))
    return SplitFile(chunks, markers)


def _chunk(source: Source, start: int, end: int) -> Source:
    return Source(source.name, source.text[start:end], source.location(start)[0])
