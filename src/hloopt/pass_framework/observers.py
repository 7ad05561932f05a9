"""Showing the module around passes: on a stream, or as files in a folder."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field

from hloopt.files import file_name, write_whole
from hloopt.ir.module import Module
from hloopt.pass_framework.runner import Observer, PassRun
from hloopt.text import print_module

ALL = "*"
"""Stands for every pass."""


@dataclass(slots=True)
class ModulePrinter(Observer):
    """Prints the module before or after chosen passes, or after those that changed it."""

    write: Callable[[str], object]
    before_passes: frozenset[str] = frozenset()
    after_passes: frozenset[str] = frozenset()
    changed_passes: frozenset[str] = frozenset()

    def before(self, run: PassRun, module: Module) -> None:
        if _selects(self.before_passes, run):
            self._print(f"before {run.name}", module)

    def after(self, run: PassRun, module: Module) -> None:
        if _selects(self.after_passes, run) or (run.changed and _selects(self.changed_passes, run)):
            self._print(f"after {run.name}", module)

    def _print(self, when: str, module: Module) -> None:
        self.write(f"// ----- {module.name}: {when} -----\n{print_module(module)}")


def _selects(names: frozenset[str], run: PassRun) -> bool:
    return ALL in names or run.name in names


@dataclass(slots=True)
class DumpWriter(Observer):
    """Writes the module after each pass that changed it: `FOLDER/FILE.NAME.003.cse.hlo`.

    FILE is the input's name without its endings; the line where the module begins there follows,
    if that is not the first. A name that is too long for a file is shortened.
    """

    folder: str
    _number: int = field(default=0)

    def before(self, run: PassRun, module: Module) -> None:
        if self._number == 0:
            self._write(module, "before")

    def after(self, run: PassRun, module: Module) -> None:
        if run.changed:
            self._write(module, run.name)

    def _write(self, module: Module, what: str) -> None:
        ending = f".{self._number:03}.{what}.hlo"
        name = file_name(f"{_origin(module)}{module.name}", ending)
        write_whole(os.path.join(self.folder, name), print_module(module))
        self._number += 1


def _origin(module: Module) -> str:
    source = module.source
    if source is None:
        return ""
    stem = os.path.basename(source.name).partition(".")[0].strip("<>")
    return f"{stem}-{source.first_line}." if source.first_line > 1 else f"{stem}."
