"""The interface of edits."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from typing import ClassVar, NamedTuple, Protocol

from hloopt.ir.module import Module
from hloopt.reduction.edits.session import EditSession


class Count(NamedTuple):
    """The words behind a count of parts: "instruction removed", "instructions removed"."""

    one: str
    many: str


class Edit(Protocol):
    """A way to make modules smaller.

    `parts` are found anew in each module that was accepted. A part is recognized by its value, so
    it is made of names, which stay until the end.
    """

    what: ClassVar[Count]
    """The parts that went, for the summary."""
    one_by_one: ClassVar[bool]
    """Whether parts are alternatives, of which only one can be applied to a module."""

    def parts(self, module: Module) -> Sequence[Hashable]:
        """The parts of a module, in an order in which neighbours belong together."""

    def apply(self, session: EditSession, parts: Collection[Hashable]) -> None:
        """Make the edit for some of the parts. Raises NotApplicable."""
