"""Reproducers: one file with a module and the options that make a pass fail on it."""

from __future__ import annotations

import os
from dataclasses import dataclass

from hloopt.diagnostics import HloError, Source
from hloopt.files import file_name, write_whole
from hloopt.pass_framework.pipeline import PassStep
from hloopt.pass_framework.pipeline_text import format_passes

_ARGUMENTS = "// hloopt-arguments: "


@dataclass(frozen=True, slots=True)
class Reproducers:
    """Writes reproducers into a folder; None: the system's folder for temporary files."""

    folder: str | None
    options: tuple[str, ...] = ()
    """Of `hloopt opt`, besides the pass."""

    def __call__(self, step: PassStep, module_text: str, reason: str) -> str:
        """Write one; returns how to repeat the failure, or why that cannot be."""
        try:
            path = self._write(step, module_text, reason)
        except HloError as error:
            return f"no reproducer: {error.message}"
        import shlex

        name = shlex.quote(path)
        return f"to repeat: hloopt opt --repro {name}; to reduce: hloopt reduce --repro {name}"

    def _write(self, step: PassStep, module_text: str, reason: str) -> str:
        import json
        import tempfile

        arguments = ["--passes", format_passes([step]), *self.options]
        first_line = reason.splitlines()[0] if reason else ""
        text = (
            f"// hloopt reproducer: pass '{step.made.name}' failed: {first_line}\n"
            "// Run it again with `hloopt opt --repro` and this file.\n"
            f"{_ARGUMENTS}{json.dumps(arguments)}\n{module_text}"
        )
        folder = self.folder or tempfile.gettempdir()
        name = file_name(f"hloopt-{step.made.name}", f"-{os.urandom(4).hex()}.hlo")
        path = os.path.join(folder, name)
        write_whole(path, text)
        return path


def reproducer_arguments(source: Source) -> list[str]:
    """The command-line arguments in a reproducer. Raises HloError for another file."""
    import json

    for line in source.text.splitlines()[:10]:
        if line.startswith(_ARGUMENTS):
            try:
                arguments = json.loads(line[len(_ARGUMENTS) :])
            except json.JSONDecodeError:
                break
            if isinstance(arguments, list) and all(isinstance(a, str) for a in arguments):
                return arguments
    raise HloError(
        f"{source.name} is not a reproducer",
        help=f"a reproducer has a line '{_ARGUMENTS}[…]'",
        code="HLO007",
    )
