"""Parts of a run over many files: `--shard 1/3` writes one, `hloopt merge` puts all together.

A part has what was found of its files. To merge is to run the same command line again, with what
the parts have in place of work on files: so the result is that of one run, byte for byte.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from hloopt import __version__
from hloopt.commands.shared.common import ARGUMENTS, Function
from hloopt.diagnostics import HloError, counted
from hloopt.plain_data import from_plain

if TYPE_CHECKING:
    from hloopt.dumps.gather import Gathered

_Result = TypeVar("_Result")

_FORMAT = 1
_KEY = "hloopt_part"
_SHARD = "hloopt.shard"
_NOT_COMPARED = frozenset(("jobs",))
"""Options that change no result."""


class Shard(NamedTuple):
    """One part of `parts`, counted from 0."""

    part: int
    parts: int


def shard_option(command: Function) -> Function:
    """`--shard I/N`."""
    return click.option(
        "--shard",
        metavar="I/N",
        expose_value=False,
        callback=_keep_shard,
        help="look at every N-th file, from number I (0 …) on, and write a part for `hloopt merge`",
    )(command)


def _keep_shard(ctx: click.Context, option: click.Parameter, text: str | None) -> None:
    if text is None:
        return
    index, slash, count = text.partition("/")
    if not (slash and index.isdecimal() and count.isdecimal() and int(index) < int(count)):
        raise click.BadParameter(f"'{text}' is no I/N: 0/3, 1/3 and 2/3 are all parts of three")
    ctx.meta[_SHARD] = Shard(int(index), int(count))


# -- one part -------------------------------------------------------------------------------------


def shard() -> Shard | None:
    """The part that the command line asks for; none where parts are merged."""
    context = click.get_current_context(silent=True)
    if context is None or _merged.get() is not None:
        return None
    found: Shard | None = context.meta.get(_SHARD)
    return found


def write_part(own: Shard, paths: Sequence[str], results: Mapping[str, Any]) -> None:
    """Write the results of a part, plain data, and end the command: others have the rest."""
    from hloopt.files import STANDARD_STREAM, write_whole

    context = click.get_current_context()
    options = {n: repr(v) for n, v in sorted(context.params.items()) if n not in _NOT_COMPARED}
    part = {
        _KEY: _FORMAT,
        "version": __version__,
        "command": context.command_path.split()[1:],
        "arguments": context.meta[ARGUMENTS],
        "options": _digest([f"{name}={value}" for name, value in options.items()]),
        "files": _digest(paths),
        "shard": list(own),
        "results": dict(results),
    }
    write_whole(STANDARD_STREAM, json.dumps(part, separators=(",", ":")) + "\n")
    raise click.exceptions.Exit(0)


def _digest(texts: Sequence[str]) -> str:
    return sha256("\0".join(texts).encode(errors="surrogateescape")).hexdigest()


# -- all parts ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Merged:
    """The results of all parts of one run."""

    command: list[str]
    arguments: list[str]
    files: str
    results: list[dict[str, Any]]
    """Of each part."""

    def results_of(self, kind: type[_Result], paths: Sequence[str]) -> Iterator[_Result]:
        """The results of files, of a type. Raises HloError if there are other files now, or a part
        is damaged."""
        data = self.of(paths)
        try:
            return iter([from_plain(kind, data[path]) for path in paths])
        except (KeyError, TypeError, ValueError):
            raise _damaged() from None

    def add_to(self, found: Gathered, paths: Sequence[str]) -> None:
        """Add facts of dumps. Raises HloError as `results_of` does."""
        try:
            for data in self.of(paths).values():
                found.add(data)
        except (KeyError, TypeError, ValueError):
            raise _damaged() from None

    def of(self, paths: Sequence[str]) -> dict[str, Any]:
        """All results together, as plain data. Raises HloError if there are other files now."""
        if _digest(paths) != self.files:
            raise HloError(
                "there are other files than those that the parts are of",
                help="merge in the folder in which the parts were made, before files come or go",
                code="HLO017",
            )
        return {key: value for results in self.results for key, value in results.items()}


_merged: ContextVar[Merged | None] = ContextVar("merged", default=None)


def merged() -> Merged | None:
    """The parts that are merged; None in a run of its own."""
    return _merged.get()


@contextmanager
def merging(parts: Merged) -> Iterator[None]:
    """Let commands take their results from parts."""
    token = _merged.set(parts)
    try:
        yield
    finally:
        _merged.reset(token)


def read_parts(paths: Sequence[str]) -> Merged:
    """All parts of one run. Raises HloError for what is no part, missing, doubled or of another
    run."""
    found = [(path, _read_part(path)) for path in paths]
    first_path, first = found[0]
    seen: dict[int, str] = {}
    count = first["shard"][1]
    for path, part in found:
        for what in ("version", "command", "options", "files"):
            if part[what] != first[what]:
                raise _unfit(f"{path} is of another run than {first_path}: {what} differ")
        index, own_count = part["shard"]
        if own_count != count:
            sizes = f"{index}/{own_count}, {first_path} is one of {count}"
            raise _unfit(f"{path} is part {sizes}")
        if index in seen:
            raise _unfit(f"{seen[index]} and {path} are both part {index} of {count}")
        seen[index] = path
    missing = [str(index) for index in range(count) if index not in seen]
    if missing:
        raise _unfit(f"missing of {counted(count, 'part')}: {', '.join(missing)}")
    if first["version"] != __version__:
        raise _unfit(f"the parts are of hloopt {first['version']}, this is {__version__}")
    results = [part["results"] for _, part in sorted(found, key=lambda pair: pair[1]["shard"])]
    return Merged(first["command"], first["arguments"], first["files"], results)


def _read_part(path: str) -> dict[str, Any]:
    from hloopt.files import read_source

    try:
        part = json.loads(read_source(path).text)
    except ValueError:
        part = None
    keys = {"version", "command", "arguments", "options", "files", "shard", "results"}
    if not (
        isinstance(part, dict)
        and part.get(_KEY) == _FORMAT
        and keys <= part.keys()
        and isinstance(part["results"], dict)
        and _are(str, part["command"])
        and _are(str, part["arguments"])
        and _are(int, part["shard"])
        and len(part["shard"]) == 2
    ):
        raise HloError(
            f"{path} is no part of a run",
            help="a command with --shard I/N writes one; the process that wrote it may have ended",
            code="HLO017",
        )
    return part


def _are(kind: type, values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(value, kind) for value in values)


def _damaged() -> HloError:
    return HloError("a part is damaged", help="make it again", code="HLO017")


def _unfit(message: str) -> HloError:
    return HloError(message, help="give each part of one run once", code="HLO017")
