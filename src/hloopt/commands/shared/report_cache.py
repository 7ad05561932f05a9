"""Results of reports on many files, kept for later runs: `--no-cache`, and what a result rests on.

A result is found by the command, its options and environment, the files that were read before the
work began, and hloopt itself. It counts where the files that were read for it are what they were.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Generic, TypeVar

import click

from hloopt.commands.shared.common import Function
from hloopt.plain_data import from_plain, to_plain
from hloopt.read_log import ReadLog, noting_reads

_Result = TypeVar("_Result")

_LOG = "hloopt.read_log"
_INPUTS = "files"
"""The argument that names the inputs: results are of one of them each."""
_NOT_IN_KEY = frozenset((_INPUTS, "jobs"))
_ENVIRONMENT = ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "TERM", "COLORTERM", "TTY_COMPATIBLE")
"""Variables that pages depend on, beside hloopt's own."""


def cache_option(command: Function) -> Function:
    """`--no-cache`, of which `uses_cache` and `remembering` know."""
    return click.option(
        "--no-cache",
        is_flag=True,
        envvar="HLOOPT_NO_CACHE",
        show_envvar=True,
        expose_value=False,
        callback=_begin,
        help="look at every file anew, and remember nothing",
    )(command)


def _begin(ctx: click.Context, option: click.Parameter, is_given: bool) -> None:
    if not is_given and not ctx.resilient_parsing:
        ctx.meta[_LOG] = ctx.with_resource(noting_reads())


def _log_of_command() -> ReadLog | None:
    context = click.get_current_context(silent=True)
    found: ReadLog | None = None if context is None else context.meta.get(_LOG)
    return found


def uses_cache() -> bool:
    """Whether the command may keep results, and use those that were kept."""
    return _log_of_command() is not None


def remembering(
    kind: type[_Result],
    work: Callable[[str], _Result],
    is_kept: Callable[[_Result], bool],
    key_of: Callable[[str], str] = str,
) -> Callable[[str], _Result]:
    """`work`, of whose results those that `is_kept` names are kept for later runs.

    Results are of the type `kind`, `key_of` names the files that a task is about. It is `work`
    itself where the command line says --no-cache.
    """
    log = _log_of_command()
    if log is None:
        return work
    log.close()
    return _Remembering(_key(log), kind, work, is_kept, key_of) if log.is_steady else work


def stop_noting() -> None:
    """Note no more files: the result is not to be kept, and digests of large ones cost time."""
    if (log := _log_of_command()) is not None:
        log.close()


def _key(log: ReadLog) -> str:
    context = click.get_current_context()
    parts = [
        context.command_path.split()[1:],
        sorted((n, repr(v)) for n, v in context.params.items() if n not in _NOT_IN_KEY),
        sorted(log.digests.items()),
        _working_folder(),
        [(name, os.environ.get(name)) for name in _ENVIRONMENT],
        sorted(item for item in os.environ.items() if item[0].startswith("HLOOPT_")),
        [*shutil.get_terminal_size(), sys.stdout.isatty(), sys.stdout.encoding],
        _plugins(),
    ]
    return sha256(json.dumps(parts).encode()).hexdigest()


def _working_folder() -> str:
    try:
        return os.getcwd()
    except OSError:  # it was removed
        return ""


def _plugins() -> list[tuple[str, str, str]]:
    from importlib.metadata import entry_points

    found = [entry for group in _PLUGINS for entry in entry_points(group=group)]
    return sorted((e.name, e.value, e.dist.version if e.dist else "") for e in found)


_PLUGINS = ("hloopt.passes", "hloopt.custom_calls")


@dataclass(frozen=True)
class _Remembering(Generic[_Result]):
    """Work on a file, or what was kept of it. Other processes are sent this."""

    key: str
    kind: type[_Result]
    work: Callable[[str], _Result]
    is_kept: Callable[[_Result], bool]
    key_of: Callable[[str], str] = str

    def __call__(self, path: str) -> _Result:
        from hloopt.files.cache import Cache

        cache = Cache()
        key = f"report/{self.key}/{self.key_of(path)}"
        found = cache.get(key)
        if found is not None and _still_holds(found):
            try:
                result: _Result = from_plain(self.kind, found["result"])
                return result
            except (AttributeError, KeyError, TypeError, ValueError, RecursionError):  # damaged
                pass
        with noting_reads() as log:
            result = self.work(path)
        is_steady = log.digests and log.is_steady and all(map(_is_file, log.digests))
        if is_steady and self.is_kept(result):
            cache.put(key, {"read": log.digests, "result": to_plain(result)})
        return result


def _still_holds(entry: Any) -> bool:
    """Whether the files that were read for a result are what they were."""
    from hloopt.diagnostics import HloError
    from hloopt.files.storage import digest_of

    if not isinstance(entry, dict) or not isinstance(entry.get("read"), dict):
        return False
    try:
        return all(
            _is_file(path) and digest_of(path)[0] == digest
            for path, digest in entry["read"].items()
        )
    except (OSError, ValueError, HloError):
        return False


def _is_file(path: str) -> bool:
    """Whether it can be read again: a pipe cannot."""
    from hloopt.files.storage import is_remote

    return is_remote(path) or os.path.isfile(path)
