"""Writing files, packed by their suffixes: whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import signal
import stat
import sys
import threading
from collections.abc import Iterator

from hloopt.diagnostics import HloError
from hloopt.files.names import temporary_name
from hloopt.files.packing import pack
from hloopt.files.reading import STANDARD_STREAM, has_proto_suffix, has_proto_text_suffix
from hloopt.files.storage import is_remote, write_remote
from hloopt.ir.module import Module
from hloopt.patterns import pattern


def is_stdout(path: str) -> bool:
    """Whether what is written to `path` goes to the standard output of this process."""
    return path == STANDARD_STREAM or os.path.normpath(path) in _STDOUT


_STDOUT = ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")


def write_whole(path: str, text: str) -> None:
    """Write `text` to `path` (`-`: standard output) as `write_bytes` does. Raises HloError."""
    if path == STANDARD_STREAM:
        _write_to_stdout(text)
    else:
        write_bytes(path, _encode(text))


def write_bytes(path: str, data: bytes) -> None:
    """Write `data` to the file `path`, packed by its suffix.

    A file appears whole or not at all: it is written as `.NAME.….tmp` beside it and renamed. What
    is not a regular file (a pipe, /dev/null) is written in place, and so is what this process has
    open (/dev/stdout, `>(command)`), behind what is in it. Folders on the way to it are made.
    A remote path (`s3://…`) is fsspec's. Raises HloError.
    """
    data = pack(data, path)
    try:
        if is_remote(path):
            write_remote(path, data)
        elif _OPEN_ALREADY.fullmatch(os.path.normpath(path)):
            _write_behind(path, data)
        elif _is_special(path):
            with open(path, "wb") as file:
                file.write(data)
        else:
            target = os.path.realpath(path)
            make_folder(os.path.dirname(target))
            _replace(target, data)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise HloError(f"cannot write {path}: {error.strerror or error}", code="HLO004") from None


def check_writable(path: str) -> None:
    """Raise HloError where no file can be written at `path`: told before long work, not after it.

    The folder is made. A full disk, a remote store and what is not a regular file are not looked
    at.
    """
    if path == STANDARD_STREAM or is_remote(path) or _is_special(path):
        return
    if _OPEN_ALREADY.fullmatch(os.path.normpath(path)):
        return
    target = os.path.realpath(path)
    folder = os.path.dirname(target)
    make_folder(folder)
    reason = None
    if os.path.isdir(target):
        reason = errno.EISDIR
    elif not os.access(folder, os.W_OK):
        reason = errno.EACCES
    if reason is not None:
        raise HloError(f"cannot write {path}: {os.strerror(reason)}", code="HLO004")


_OPEN_ALREADY = pattern(r"/dev/(?:stdout|stderr|fd/\d+)|/proc/self/fd/\d+")


def _is_special(path: str) -> bool:
    """Whether there is something at `path`, neither a regular file nor a folder."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def _write_behind(path: str, data: bytes) -> None:
    """Write to what this process has open: opened anew, it would be written from its start."""
    name = os.path.basename(os.path.normpath(path))
    number = {"stdout": 1, "stderr": 2}.get(name) or int(name)
    sys.stdout.flush()
    with open(os.dup(number), "wb") as file:
        file.write(data)


def _write_to_stdout(text: str) -> None:
    """UTF-8, as files are, whatever the locale says."""
    if not isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.write(text)
        return
    sys.stdout.flush()
    rest = memoryview(_encode(text))
    while rest:  # an unbuffered stream may take only a part
        rest = rest[sys.stdout.buffer.write(rest) :]


def _encode(text: str) -> bytes:
    """As UTF-8; only names of files can hold what that cannot say, and they show it escaped."""
    return text.encode("utf-8", "backslashreplace")


def _replace(target: str, data: bytes) -> None:
    folder, name = os.path.split(target)
    temporary = os.path.join(folder, temporary_name(name))
    with _signals_held():
        file = open(temporary, "xb")  # noqa: SIM115  # what fails here leaves nothing to remove
        try:
            with file:
                file.write(data)
            if os.path.exists(target):
                os.chmod(temporary, os.stat(target).st_mode)
            os.replace(temporary, target)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)
            raise


@contextlib.contextmanager
def _signals_held() -> Iterator[None]:
    """Ctrl-C and SIGTERM wait until the block ends: even a second one must not cut short tidying.

    The block must be short. Only the main thread can hold signals, and only it is interrupted.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived: dict[int, None] = {}
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in handlers:
        signal.signal(number, lambda received, _: arrived.setdefault(received))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for received in arrived:
            signal.raise_signal(received)


def make_folder(path: str) -> None:
    """Make a folder and those above it, unless they exist; remote stores need none. Raises
    HloError."""
    if is_remote(path):
        return
    try:
        os.makedirs(path, exist_ok=True)
    except FileExistsError:
        raise HloError(f"{path} is a file, not a folder", code="HLO005") from None
    except OSError as error:
        raise HloError(
            f"cannot make folder {path}: {error.strerror or error}", code="HLO004"
        ) from None


def save(module: Module, path: str) -> None:
    """Write a module to a file: a proto where its name ends in `.pb` or `.pbtxt`, else text.

    In text, what nobody changed stays as it was. A proto has no place for a few attributes of the
    header (`hloopt.proto.header.left_out`). Raises HloError.
    """
    if has_proto_suffix(path):
        from hloopt.proto import encode_file

        write_bytes(path, encode_file(module))
        return
    if has_proto_text_suffix(path):
        from hloopt.proto import encode_text

        write_whole(path, encode_text(module))
        return
    from hloopt.text import print_module

    write_whole(path, print_module(module))
