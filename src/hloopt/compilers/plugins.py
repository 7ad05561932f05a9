"""Compilers that are installed: jaxlib, and plug-ins of the PJRT C API by name or by path."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from hloopt.diagnostics import HloError, did_you_mean


class _Wheel(NamedTuple):
    """The place of a plug-in that a wheel brings."""

    module: str
    library: str
    package: str
    """The name of the wheel."""


_WHEELS = {
    "cuda13": _Wheel("jax_plugins.xla_cuda13", "xla_cuda_plugin.so", "jax-cuda13-pjrt"),
    "cuda12": _Wheel("jax_plugins.xla_cuda12", "xla_cuda_plugin.so", "jax-cuda12-pjrt"),
    "rocm7": _Wheel("jax_plugins.xla_rocm7", "xla_rocm_plugin.so", "jax-rocm7-pjrt"),
}
_DEFAULTS = ("cuda13", "cuda12")
"""The plug-ins for CUDA, the best first."""
MISSING_COMPILER = "HLO019"


def find_plugin(name: str | None) -> str:
    """The library of a plug-in: of that name or path, else of the first for CUDA that is installed.

    Raises HloError that says what to install.
    """
    if name is None:
        for each in _DEFAULTS:
            if (path := _installed(_WHEELS[each])) is not None:
                return path
        raise HloError(
            "the compiler of XLA:GPU is not installed",
            help="pip install 'hloopt[xla-gpu]' (450 MB; no GPU and no CUDA needed), or "
            "--plugin PATH of one that is installed elsewhere",
            code=MISSING_COMPILER,
        )
    if os.sep in name or name.endswith(".so"):
        if not os.path.isfile(name):
            raise HloError(f"no plug-in {name}: there is no such file", code=MISSING_COMPILER)
        return os.path.abspath(name)
    wheel = _WHEELS.get(name)
    if wheel is None:
        hint = did_you_mean(name, _WHEELS) or f"{', '.join(_WHEELS)}, or the path of a library"
        raise HloError(f"no plug-in '{name}' is known", help=hint, code=MISSING_COMPILER)
    path = _installed(wheel)
    if path is None:
        raise HloError(
            f"the plug-in {name} is not installed",
            help=f"pip install {wheel.package}",
            code=MISSING_COMPILER,
        )
    return path


def _installed(wheel: _Wheel) -> str | None:
    """The library of a wheel; its Python, which asks for jax, is not imported."""
    try:
        spec = find_spec(wheel.module)
    except ModuleNotFoundError:  # there are no plug-ins at all
        return None
    for folder in () if spec is None else spec.submodule_search_locations or ():
        library = Path(folder) / wheel.library
        if library.is_file():
            return str(library)
    return None


def check_jaxlib() -> None:
    """Raise HloError where jaxlib is not installed."""
    if find_spec("jaxlib") is None:
        raise HloError(
            "the compiler of XLA:CPU is not installed",
            help="pip install 'hloopt[xla]'",
            code=MISSING_COMPILER,
        )


def library_of(plugin: str | None) -> str:
    """The path of the library that has the compiler: a plug-in, or the one in jaxlib."""
    if plugin is not None:
        return plugin
    spec = find_spec("jaxlib")
    folders = () if spec is None else spec.submodule_search_locations or ()
    return next((str(path) for each in folders for path in Path(each).glob("libjax_common.*")), "")


def version_of(plugin: str | None) -> str:
    """The wheel of a compiler with its version, as far as the folders around it tell."""
    if plugin is None:
        from importlib.metadata import version

        return f"jaxlib {version('jaxlib')}"
    for wheel in _WHEELS.values():
        stem = wheel.package.replace("-", "_")
        for folder in Path(plugin).parents:
            for found in folder.glob(f"{stem}-*.dist-info"):
                if f"{os.sep}{wheel.module.rpartition('.')[2]}{os.sep}" in plugin:
                    number = found.name.removesuffix(".dist-info").removeprefix(f"{stem}-")
                    return f"{wheel.package} {number}"
    return os.path.basename(plugin)
