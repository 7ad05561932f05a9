"""Files and folders, on a disk or wherever fsspec reaches: `gs://`, `s3://`, `https://`, `memory://`.

Credentials and retries are fsspec's business, and that of the packages it asks for. What goes wrong
there is an OSError here, as of a disk.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any

from hloopt.diagnostics import HloError
from hloopt.patterns import pattern

_URL = pattern(r"[a-z][a-z0-9+.-]+:(?:[a-z0-9+.-]+:)*//")


def is_remote(path: str) -> bool:
    """Whether a path is for fsspec: it begins with a protocol."""
    return _URL.match(path) is not None


def join(folder: str, name: str) -> str:
    """The path of a file in a folder."""
    return f"{folder.rstrip('/')}/{name}" if is_remote(folder) else os.path.join(folder, name)


def is_folder(path: str) -> bool:
    """Whether there is a folder. Raises HloError without fsspec, OSError if nobody can tell."""
    if not is_remote(path):
        return os.path.isdir(path)
    with _as_os_error():
        system, place = _system_of(path)
        return bool(system.isdir(place))


def exists(path: str) -> bool:
    """Whether there is a file or folder. Raises as `is_folder`."""
    if not is_remote(path):
        return os.path.exists(path)
    with _as_os_error():
        system, place = _system_of(path)
        return bool(system.exists(place))


@contextmanager
def open_binary(path: str) -> Iterator[IO[bytes]]:
    """A file to be read. Raises OSError, and HloError without fsspec."""
    if not is_remote(path):
        with open(path, "rb") as file:
            yield file
        return
    with _as_os_error():
        system, place = _system_of(path)
        with system.open(place, "rb") as file:
            yield file


def digest_of(path: str) -> tuple[str, int]:
    """A digest of a file's bytes, and their number, read in pieces. Raises as `open_binary`."""
    from hashlib import sha256  # loads OpenSSL

    digest = sha256()
    size = 0
    with open_binary(path) as file:
        while piece := file.read(_PIECE):
            size += len(piece)
            digest.update(piece)
    return digest.hexdigest(), size


_PIECE = 1 << 20


def size_of(path: str) -> int:
    """The bytes of a file. Raises as `open_binary`."""
    if not is_remote(path):
        return os.stat(path).st_size
    with _as_os_error():
        system, place = _system_of(path)
        system.invalidate_cache()
        return int(system.info(place)["size"] or 0)


def write_remote(path: str, data: bytes) -> None:
    """Write a file: remote stores show it whole or not at all. Raises as `open_binary`."""
    with _as_os_error():
        system, place = _system_of(path)
        system.pipe_file(place, data)


def files_below(
    folder: str, on_error: Callable[[str, str], None]
) -> Iterator[tuple[str, str, int]]:
    """Files below a folder, in order: the folder each is in, its name and bytes.

    What cannot be listed is given to `on_error`, with the reason.
    """
    if is_remote(folder):
        yield from _remote_files_below(folder, on_error)
        return

    def note(error: OSError) -> None:
        on_error(error.filename, error.strerror or str(error))

    seen: set[tuple[int, int]] = set()
    _is_new(folder, seen)
    for place, folders, names in os.walk(folder, onerror=note, followlinks=True):
        folders[:] = sorted(name for name in folders if _is_new(os.path.join(place, name), seen))
        for name in sorted(names):
            path = os.path.join(place, name)
            try:
                state = os.stat(path)
            except OSError as error:
                note(error)
                continue
            if stat.S_ISREG(state.st_mode):
                yield place, name, state.st_size
            else:  # a pipe, say: reading might never end
                on_error(path, "it is no regular file")


def _is_new(folder: str, seen: set[tuple[int, int]]) -> bool:
    """Whether a folder was not seen before: links may lead back."""
    try:
        state = os.stat(folder)
    except OSError:
        return True  # which listing it will tell
    identity = state.st_dev, state.st_ino
    if identity in seen:
        return False
    seen.add(identity)
    return True


def _remote_files_below(
    folder: str, on_error: Callable[[str, str], None]
) -> Iterator[tuple[str, str, int]]:
    try:
        with _as_os_error():
            system, place = _system_of(folder)
            found: dict[str, Any] = system.find(place, detail=True)
            unsaid = [path for path, info in found.items() if info.get("size") is None]
            sizes = dict(zip(unsaid, system.sizes(unsaid) if unsaid else (), strict=True))
    except OSError as error:
        on_error(folder, str(error))
        return
    for path, info in sorted(found.items()):
        below = path.removeprefix(place).strip("/")  # under the name that the folder was given
        parent, _, name = below.rpartition("/")
        yield join(folder, parent).rstrip("/"), name, int(info.get("size") or sizes.get(path) or 0)


def _system_of(path: str) -> tuple[Any, str]:
    """The file system of a path, and the path in it. Raises HloError without fsspec."""
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise HloError(
            f"{path} is not on this machine, and fsspec is not installed",
            help="pip install 'hloopt[remote]'; for s3:// also s3fs, for gs:// gcsfs",
            code="HLO018",
        ) from None
    try:
        system, place = url_to_fs(path)  # fsspec keeps systems, for each process
        return system, place
    except (ImportError, ValueError) as error:
        raise HloError(
            f"cannot reach {path}: {error}", help="install what it asks for", code="HLO018"
        ) from None


@contextmanager
def _as_os_error() -> Iterator[None]:
    """Exceptions of fsspec and its packages, which are of any kind, as OSError."""
    try:
        yield
    except (HloError, OSError, KeyboardInterrupt):
        raise
    except Exception as error:  # botocore's, aiohttp's, google's: there is no common class
        raise OSError(f"{type(error).__name__}: {error}") from None
