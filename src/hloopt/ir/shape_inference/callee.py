"""The signature of a called computation, which shape inference asks for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from hloopt.ir.shapes.shape import Shape


class HasShape(Protocol):
    """Something with a shape: a parameter or the root of a called computation."""

    @property
    def shape(self) -> Shape: ...


class Callee(Protocol):
    """A called computation, as far as its signature goes."""

    @property
    def root(self) -> HasShape: ...

    @property
    def parameters(self) -> Sequence[HasShape]: ...
