"""Results of earlier runs, in the user's cache: JSON, a file each.

An entry is found by a key and by hloopt itself: whoever asks puts all that a result depends on into
the key, or checks it. The oldest are removed where all take more room than there is to be. Any
number of processes may use one cache: files appear whole.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from hloopt import __version__
from hloopt.files.names import temporary_name

MOST_BYTES = 256 << 20
_VARIABLE = "HLOOPT_CACHE_DIR"
_TRIMS = 16
"""How often, on average, entries are counted while as many are added as there is room for.

By chance: many short runs, each of which adds little, are bounded, too.
"""
_FOLDER = "results-1"
"""Another one for another arrangement of the files."""


def cache_folder() -> Path:
    """`$HLOOPT_CACHE_DIR`, or `hloopt` in the user's folder of caches."""
    if own := os.environ.get(_VARIABLE):
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "hloopt"


class Cache:
    """Results by keys. A folder that cannot be read or written is an empty cache."""

    def __init__(self, folder: Path | None = None, most_bytes: int = MOST_BYTES) -> None:
        self.folder = (folder or cache_folder()) / _FOLDER
        self._most_bytes = most_bytes

    def get(self, key: str) -> Any:
        """The result under a key; None where there is none."""
        path = self._path(key)
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            os.utime(path)  # it is in use
        except (OSError, ValueError, RecursionError):  # damaged: by a full disk, say
            return None
        return found

    def put(self, key: str, result: Any) -> None:
        """Keep a result, if the folder allows. Now and then the room that all take is bounded."""
        path = self._path(key)
        new = path.with_name(temporary_name(path.name))
        text = json.dumps(result, separators=(",", ":"))
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                new.write_text(text, encoding="utf-8")
                new.replace(path)
            except BaseException:
                new.unlink(missing_ok=True)
                raise
        if random.random() < len(text) * _TRIMS / self._most_bytes:
            self._trim()

    def _trim(self) -> None:
        """Remove what was not used for longest, down to half of the room, once that is exceeded.

        O(entries · log).
        """
        entries = sorted(self._entries(), key=lambda entry: entry[0])
        total = sum(size for _, size, _ in entries)
        if total <= self._most_bytes:
            return
        for _, size, path in entries:
            with contextlib.suppress(OSError):
                os.unlink(path)
            total -= size
            if total <= self._most_bytes // 2:
                return

    def size(self) -> tuple[int, int]:
        """Entries and bytes."""
        sizes = [size for _, size, _ in self._entries()]
        return len(sizes), sum(sizes)

    def clear(self) -> None:
        """Remove all entries. Raises OSError."""
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(self.folder)

    def _entries(self) -> Iterator[tuple[float, int, str]]:
        """When each was last used, its bytes, its path."""
        for folder, _, names in os.walk(self.folder):
            for name in names:
                path = os.path.join(folder, name)
                with contextlib.suppress(OSError):  # another process removes entries, too
                    state = os.stat(path)
                    yield state.st_mtime, state.st_size, path

    def _path(self, key: str) -> Path:
        name = sha256(f"{_version()}\0{key}".encode(errors="surrogateescape")).hexdigest()
        return self.folder / name[:2] / f"{name}.json"


@cache
def _version() -> str:
    """hloopt's version, and the times of its files: a checkout changes without a new version."""
    digest = sha256(__version__.encode())
    for folder, folders, names in os.walk(Path(__file__).parents[1]):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(names):
            state = os.stat(os.path.join(folder, name))
            digest.update(f"{name} {state.st_size} {state.st_mtime_ns}\n".encode())
    return digest.hexdigest()
