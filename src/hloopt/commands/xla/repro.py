"""Modules with the command lines that repeat what XLA does to them, in comments at the top."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from typing import Any

from hloopt.commands.xla.options import is_written

_OF_DUMPS = "--xla_dump_"


def compiler_words(options: dict[str, Any]) -> list[str]:
    """The options of `compiler_options` as words, paths as they are from everywhere."""
    target = options["target"]
    words = ["--target", os.path.abspath(target) if os.path.isfile(target) else target]
    if options["devices"] is not None:
        words += ["--devices", str(options["devices"])]
    for flag in options["flags"]:
        words += ["--flag", flag]
    return [*words, "--plugin", options["plugin"]] if is_written("plugin") else words


def with_command(
    module: str, path: str, commands: Sequence[Sequence[str]], version: str, flags: str
) -> str:
    """The text of a module for a file, with a RUN line for `hloopt test`, the same for a shell, the
    compiler, and the flags that it got.

    In `commands`, one after another, `%s` stands for the file and `%t` for a temporary one.
    """
    kept = [word for word in shlex.split(flags) if not word.startswith(_OF_DUMPS)]
    return "".join(
        (
            f"// RUN: {' && '.join(map(_for_test, commands))}\n",
            f"// In a shell: {shell_line(path, commands)}\n",
            f"// Compiler: {version}\n",
            f"// XLA_FLAGS: {shlex.join(kept)}\n",
            module,
        )
    )


def shell_line(path: str, commands: Sequence[Sequence[str]]) -> str:
    """Commands as a line for a shell."""
    temporary = f"{path.removesuffix('.hlo')}.alone.hlo"
    places = {"%s": path, "%t": temporary}
    return " && ".join(
        shlex.join([places.get(word, word) for word in command]) for command in commands
    )


def _for_test(command: Sequence[str]) -> str:
    return " ".join(
        word if word in ("%s", "%t") else shlex.quote(word.replace("%", "%%")) for word in command
    )
