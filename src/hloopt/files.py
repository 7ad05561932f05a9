"""Files of HLO, text or `.pb`: plain, .gz or .zst, single or in folders; written whole or not."""

from __future__ import annotations

import codecs
import contextlib
import io
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence

from hloopt.diagnostics import HloError, Source
from hloopt.ir.module import Module

STANDARD_STREAM = "-"


def read_source(path: str) -> Source:
    """The text of a file (`-`: standard input), unpacked by its suffix. Raises HloError."""
    data, name = _read(path)
    if _is_proto(data, name):
        raise HloError(
            f"{name} is an HLO proto, where text is needed",
            help="a proto holds one module, and no command line",
            code="HLO012",
        )
    return Source(name, _decode(data, name))


def read_module(path: str) -> Module:
    """The module in a file of text or a proto (`-`: standard input), not verified.

    A proto is known by its suffix `.pb`, or by its first bytes. Raises HloError.
    """
    data, name = _read(path)
    if _is_proto(data, name):
        from hloopt.proto import decode

        return decode(data, name)
    from hloopt.text import parse_module

    return parse_module(Source(name, _decode(data, name)))


def _read(path: str) -> tuple[bytes, str]:
    """The unpacked bytes of a file, and what to call it."""
    if path == STANDARD_STREAM:
        if sys.stdin is None:
            raise HloError("cannot read <stdin>: it is closed", code="HLO001")
        return sys.stdin.buffer.read(), "<stdin>"
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise HloError(f"cannot read {path}: {error.strerror or error}", code="HLO001") from None
    return _unpack(data, path), path


def has_proto_suffix(path: str) -> bool:
    """Whether a file of this name holds an HLO proto, possibly packed."""
    return path.endswith((".pb", ".pb.gz", ".pb.zst"))


_CONTROL_CHARACTERS = bytes(set(range(32)) - set(b"\t\n\v\f\r"))
_LOOKED_AT = 256


def _is_proto(data: bytes, name: str) -> bool:
    """By the suffix, or by a first field of bytes with control characters near it."""
    if has_proto_suffix(name):
        return True
    start = data[:_LOOKED_AT]
    return start[:1] == b"\n" and len(start.translate(None, _CONTROL_CHARACTERS)) < len(start)


def _unpack(data: bytes, path: str) -> bytes:
    if path.endswith(".gz"):
        import gzip
        import zlib

        try:
            return gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise HloError(f"cannot unpack {path}: {error}", code="HLO003") from None
    if path.endswith(".zst"):
        import zstandard

        try:
            return _unpack_zstandard(data)
        except zstandard.ZstdError as error:
            raise HloError(f"cannot unpack {path}: {error}", code="HLO003") from None
    return data


def _unpack_zstandard(data: bytes) -> bytes:
    """All frames, each to its end: the library takes a file that is cut short for a whole one."""
    import zstandard

    parts: list[bytes] = []
    while data:
        frame = zstandard.ZstdDecompressor().decompressobj()
        parts.append(frame.decompress(data))
        if not frame.eof:
            raise zstandard.ZstdError("the file is cut short")
        data = frame.unused_data
    return b"".join(parts)


def _decode(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        is_utf16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        raise HloError(
            f"{name}:{line}: byte {data[error.start]:#04x} at offset {error.start} is not UTF-8",
            help="this looks like UTF-16: convert it, `iconv -f UTF-16 -t UTF-8`"
            if is_utf16
            else "is this a text file? HLO text is UTF-8",
            code="HLO002",
        ) from None


def write_whole(path: str, text: str) -> None:
    """Write `text` to `path` (`-`: standard output) as `write_bytes` does. Raises HloError."""
    if path == STANDARD_STREAM:
        _write_to_stdout(text)
    else:
        write_bytes(path, _encode(text))


def write_bytes(path: str, data: bytes) -> None:
    """Write `data` to the file `path`, packed by its suffix.

    A file appears whole or not at all: it is written as `.NAME.….tmp` beside it and renamed. What
    is no regular file (a pipe, /dev/null) is written in place. Folders on the way to it are made.
    Raises HloError.
    """
    target = os.path.realpath(path)
    data = _pack(data, path)
    make_folder(os.path.dirname(target))
    try:
        if os.path.exists(target) and not os.path.isfile(target) and not os.path.isdir(target):
            with open(target, "wb") as file:
                file.write(data)
        else:
            _replace(target, data)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise HloError(f"cannot write {path}: {error.strerror or error}", code="HLO004") from None


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
    temporary = os.path.join(folder, f".{name}.{os.getpid()}-{os.urandom(4).hex()}.tmp")
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
    """Make a folder and those above it, unless they exist. Raises HloError."""
    try:
        os.makedirs(path, exist_ok=True)
    except FileExistsError:
        raise HloError(f"{path} is a file, not a folder", code="HLO005") from None
    except OSError as error:
        raise HloError(
            f"cannot make folder {path}: {error.strerror or error}", code="HLO004"
        ) from None


def _pack(data: bytes, path: str) -> bytes:
    if path.endswith(".gz"):
        import gzip

        return gzip.compress(data, mtime=0)
    if path.endswith(".zst"):
        import zstandard

        return zstandard.ZstdCompressor(level=9).compress(data)
    return data


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
            raise HloError(
                f"no HLO files in {path}",
                help="*.hlo, *.hlo.pb and *.txt, also .gz and .zst",
                code="HLO006",
            )
        found += below
    return list(dict.fromkeys(found))


def _below(folder: str) -> Iterator[str]:
    from pathlib import Path

    for path in Path(folder).rglob("*"):
        name = path.name
        stem = next(name.removesuffix(p) for p in (".gz", ".zst", "") if name.endswith(p))
        if stem.endswith((".hlo", ".hlo.pb")) and path.is_file():
            yield str(path)
        elif stem.endswith(".txt") and path.is_file():
            try:
                if read_source(str(path)).text.lstrip().startswith("HloModule"):
                    yield str(path)
            except HloError:
                continue


def load(path: str, *, verify: bool = True) -> Module:
    """The module in a file. Raises HloError for what cannot be read, is no HLO or is invalid."""
    from hloopt.verifier import ANY_TARGET, verify_module

    module = read_module(path)
    if verify and (errors := verify_module(module, ANY_TARGET)):
        raise errors[0]
    return module


def save(module: Module, path: str) -> None:
    """Write a module to a file: a proto where its name ends in `.pb`, else text.

    In text, what nobody changed stays as it was. A proto has no place for a few attributes of the
    header (`hloopt.proto.header.left_out`). Raises HloError.
    """
    if has_proto_suffix(path):
        from hloopt.proto import encode_file

        write_bytes(path, encode_file(module))
        return
    from hloopt.text import print_module

    write_whole(path, print_module(module))
