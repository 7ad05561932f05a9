"""Files under `--xla_dump_to`, with XLA's names."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from hloopt.commands.hlo_opt.flags import Flags, debug_options_text
from hloopt.diagnostics import HloError
from hloopt.files import write_whole
from hloopt.pass_framework.runner import Observer
from hloopt.text import PrintOptions, print_module
from hloopt.text.print_options import print_options

if TYPE_CHECKING:
    from hloopt.ir.module import Module
    from hloopt.pass_framework.runner import PassRun

PIPELINE = "transforms_pipeline"
_START = "pipeline-start"


class XlaDump(Observer):
    """Writes a module before and after, and around each pass whose name fits a pattern.

    `module_0000.NAME.before_optimization.txt`, `.after_optimization.txt`, `.debug_options`, and
    `.0000.transforms_pipeline.after_pipeline-start.before_dce.txt` where a pass changed something.
    """

    def __init__(self, folder: str, number: int, name: str, flags: Flags) -> None:
        self._stem = os.path.join(folder, f"module_{number:04}.{name}")
        self._flags = flags
        self._style = printed(flags.get("xla_dump_large_constants") == "true")
        self._changed_by: str | None = _START
        """The pass whose change is to be written when it is known what follows."""
        self._count = 0
        pattern = flags.get("xla_dump_hlo_pass_re")
        try:
            self._pattern = None if pattern is None else re.compile(pattern)
        except re.error as error:
            raise HloError(f"--xla_dump_hlo_pass_re={pattern}: {error}") from None

    def begin(self, module: Module) -> None:
        """Write the module as it was read, and the flags."""
        folder = os.path.dirname(self._stem)
        try:
            os.makedirs(folder, exist_ok=True)
        except OSError as error:
            raise HloError(f"cannot write {folder}: {error.strerror}", code="HLO004") from None
        self._write("before_optimization", module)
        write_whole(f"{self._stem}.debug_options", debug_options_text(self._flags))

    def end(self, module: Module) -> None:
        """Write the module as it is at the end."""
        if self._changed_by != _START:
            self._dump("pipeline-end", module)
        self._write("after_optimization", module)

    def before(self, run: PassRun, module: Module) -> None:
        self._dump(run.name, module)

    def after(self, run: PassRun, module: Module) -> None:
        if run.changed:
            self._changed_by = run.name

    def _dump(self, later: str, module: Module) -> None:
        """Write the module before a pass, if one before changed it and the name of one fits."""
        earlier, self._changed_by = self._changed_by, None
        if earlier is None or self._pattern is None:
            return
        if not self._pattern.search(earlier) and not self._pattern.search(later):
            return
        self._write(f"{self._count:04}.{PIPELINE}.after_{earlier}.before_{later}", module)
        self._count += 1

    def _write(self, what: str, module: Module) -> None:
        write_whole(f"{self._stem}.{what}.txt", print_module(module, self._style))


def printed(large_constants: bool) -> PrintOptions:
    """The print options of XLA's `ToString`, with or without large constants."""
    changes = f"print_large_constants={str(large_constants).lower()}"
    return print_options("default", (changes,))
