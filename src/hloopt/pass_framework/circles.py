"""Recognition of a fixpoint whose passes undo each other for ever."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING

from hloopt.pass_framework.pipeline import DEFAULT_ITERATIONS

if TYPE_CHECKING:
    from hloopt.analysis.content.bodies import Bodies
    from hloopt.ir.module import Module


class Circles:
    """The forms that a module had after iterations of one fixpoint.

    Up to DEFAULT_ITERATIONS a form is the text, which costs little. From there on it is the content
    without names, O(instructions): passes that undo each other may name anew what they make.
    """

    def __init__(self) -> None:
        self._seen: dict[Hashable, int] = {}
        self._bodies: Bodies | None = None

    def earlier(self, iteration: int, module: Module, text: Callable[[], str]) -> int | None:
        """The iteration after which the module had this form before; None the first time."""
        form: Hashable = hash(text()) if iteration < DEFAULT_ITERATIONS else self._content(module)
        earlier = self._seen.setdefault(form, iteration)
        return None if earlier == iteration else earlier

    def _content(self, module: Module) -> Hashable:
        if self._bodies is None:
            from hloopt.analysis.content.bodies import Bodies
            from hloopt.analysis.content.content import Content

            self._bodies = Bodies(Content(frozenset(("names",))))
        return self._bodies.whole(module)
