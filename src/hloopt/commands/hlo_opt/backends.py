"""`hlo-opt --platform=cpu` and `gpu`: a stage of a compile, or passes, by XLA itself."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from hloopt.compilers.compiling import Compiler, Settings
    from hloopt.ir.module import Module

PLATFORMS = {"cpu": "cpu", "gpu": "gpu", "cuda": "gpu"}
STAGES = {
    "hlo": "hlo",
    "hlo-backend": "hlo",
    "buffer-assignment": "buffer-assignment",
    "llvm-before-optimizations": "llvm-before-optimizations",
    "llvm-after-optimizations": "llvm",
    "llvm": "llvm",
    "ptx": "ptx",
}
"""Stages that a backend adds, with their names in `hloopt xla compile`."""
_TARGET = "xla_gpu_target_config_filename"
_SECONDS = 600.0


class Backend:
    """XLA's compiler of a platform, as flags describe it."""

    def __init__(self, platform: str, flags: Mapping[str, str]) -> None:
        """Raises UsageError where flags name no GPU, HloError where there is no such compiler."""
        from hloopt.compilers.compiling import Compiler, Settings

        rest = dict(flags)
        target = "cpu" if platform == "cpu" else _target(rest.pop(_TARGET, None))
        self._compiler: Compiler = Compiler.named(target, os.environ.get("HLOOPT_XLA_PLUGIN"))
        texts = [f"{name}={value}" for name, value in rest.items()]
        self._settings: Settings = Settings(flags=texts, seconds=_SECONDS)

    def text(self, module: Module, options: Mapping[str, Any]) -> str:
        """The stage that is asked for, or the module behind passes. Raises HloError."""
        with tempfile.TemporaryDirectory(prefix="hloopt-xla-") as folder:
            if options["passes"]:
                return _printed(self._behind_passes(module, options["passes"], Path(folder)))
            return self._stage(module, options["stage"], Path(folder))

    def _stage(self, module: Module, stage: str, folder: Path) -> str:
        from dataclasses import replace

        from hloopt.compilers.compiling import compile_program
        from hloopt.compilers.programs import Program
        from hloopt.compilers.stages import STAGES as FILES
        from hloopt.compilers.stages import files_of
        from hloopt.text import parse_module

        name = STAGES[stage]
        settings = replace(self._settings, until_buffers=not FILES[name].needs_code)
        compiled = compile_program(Program.of(module), self._compiler, folder, settings)
        texts = [each.read_text(encoding="utf-8") for each in files_of(name, compiled.dumps)]
        return _printed(parse_module(texts[0])) if name == "hlo" else "\n".join(texts)

    def _behind_passes(self, module: Module, passes: str, folder: Path) -> Module:
        from hloopt.compilers.isolation import isolate
        from hloopt.compilers.programs import Program
        from hloopt.text import parse_module

        for number, name in enumerate(passes.split(",")):
            place = folder / str(number)
            runs = isolate(Program.of(module), name.strip(), self._compiler, place, self._settings)
            module = parse_module(runs[0].after)
        return module


def _printed(module: Module) -> str:
    from hloopt.commands.hlo_opt.dumps import printed
    from hloopt.text import print_module

    return print_module(module, printed(True))


def _target(path: str | None) -> str:
    """The description of a GPU; ours where XLA's is not there."""
    from hloopt.commands.shared.common import say
    from hloopt.targets import target_names

    if path is None:
        raise click.UsageError(
            f"--platform=gpu compiles for a described GPU: --{_TARGET}=FILE.txtpb, or the name of "
            "a target, such as h100_sxm"
        )
    stem = Path(path).stem
    if not os.path.exists(path) and stem in target_names():
        if path != stem:
            say(f"{path} is not there: hloopt's own description of {stem} is taken")
        return stem
    return path
