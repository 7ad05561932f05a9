"""The surroundings of a run of golden tests."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec

_SYSTEMS = {"darwin": "system-darwin", "win32": "system-windows"}


@dataclass(frozen=True, slots=True)
class TestSettings:
    """The features of this machine, the values of `%{NAME}`, and whether RUN lines need a shell.

    Picklable.
    """

    __test__ = False  # not a test class of pytest

    given: frozenset[str] = frozenset()
    """Features that the user names."""
    parameters: Mapping[str, str] = field(default_factory=dict)
    uses_shell: bool = False
    """Whether bash runs the RUN lines, and not this process."""

    @property
    def features(self) -> frozenset[str]:
        """The features that tests may ask for."""
        return self.given | _own_features() | ({"shell"} if self.uses_shell else set())


@cache
def _own_features() -> frozenset[str]:
    """The operating system, and the extras that are installed, by the names of their modules."""
    extras = {"jax": "jax", "proto": "google.protobuf", "xla": "jaxlib", "zstd": "zstandard"}
    return frozenset(
        (
            _SYSTEMS.get(sys.platform, "system-linux"),
            *(feature for feature, module in extras.items() if _is_installed(module)),
        )
    )


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # its package is missing
        return False
