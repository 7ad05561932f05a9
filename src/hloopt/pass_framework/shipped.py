"""The pipelines that are shipped with the package, by name."""

from __future__ import annotations

import os
from functools import cache


@cache
def shipped_folder() -> str:
    """The folder of shipped pipelines: in the package, or at the top of a source checkout."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    inside = os.path.join(package, "pipelines")
    if os.path.isdir(inside):
        return inside
    return os.path.join(os.path.dirname(os.path.dirname(package)), "pipelines")


def pipeline_names() -> list[str]:
    """The names of the shipped pipelines, sorted."""
    names = os.listdir(shipped_folder())
    return sorted(name.removesuffix(".yaml") for name in names if name.endswith(".yaml"))
