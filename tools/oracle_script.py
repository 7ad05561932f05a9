"""The scripts beside the shared data that ask real XLA."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from hloopt.diagnostics import HloError


def oracle_script(folder: Path, name: str) -> Any:
    """The script NAME.py of a folder, as a module. Raises ImportError."""
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    return import_module(name)


def check_gpu_compiler(shared: Path, python: str) -> None:
    """Raise HloError where an interpreter has no compiler of XLA:GPU (oracle/XLA_GPU.md). 1 s."""
    driver = oracle_script(shared / "oracle", "xla_gpu")
    try:
        driver.compile("ENTRY e { ROOT p = f32[] parameter(0) }", target="h100_sxm", python=python)
    except driver.PackagesMissing as error:
        raise HloError(f"{python} has no XLA:GPU: {error}") from None
