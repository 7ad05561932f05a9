"""A module while it is read: the cursor, and the computations that there are so far."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hloopt.diagnostics import Source, did_you_mean
from hloopt.ir.computation import Computation
from hloopt.ir.module import Module
from hloopt.text.cursor import Cursor

if TYPE_CHECKING:
    from hloopt.text.comments import Element, Place


class Reading:
    """The cursor, module and lookups that all who read parts of a module share.

    To note `places`, all is read in the general lane.
    """

    def __init__(self, source: Source, places: list[Place] | None = None) -> None:
        self.cursor = Cursor(source)
        self.places = places
        self.module = Module("", source)
        self.depth = 0
        """The number of computations around the cursor, written inside each other."""

    def note_place(self, start: int, end: int, element: Element) -> None:
        """Note where an element of the module stands, if somebody wants to know."""
        if self.places is not None:
            from hloopt.text.comments import Place

            self.places.append(Place(start, end, element))

    def find_computation(self, name: str, start: int) -> Computation:
        """The computation called `name`, defined before the cursor."""
        found = self.module.computations.get(name)
        if found is None:
            defined_later = re.compile(
                rf"^\s*(?:ENTRY\s+)?%?{re.escape(name)}\s*(?:\([^\n]*\)\s*->[^\n]*)?\{{", re.M
            ).search(self.cursor.text)
            raise self.cursor.error(
                f"computation '%{name}' is not defined before this call",
                start,
                help="a computation stands before its callers, so calls cannot form a cycle"
                if defined_later
                else did_you_mean(name, self.module.computations, prefix="%"),
                code="HLO104",
            )
        return found

    def async_wrapper(self, thread: str) -> Computation:
        """A new computation for the operation of an `X-start`."""
        computation = Computation(self.module, "async_wrapped")
        computation.is_sugar = True
        computation.execution_thread = thread
        self.add_nameless(computation)
        return computation

    def add_nameless(self, computation: Computation) -> None:
        """Add a computation that nothing in the text can refer to, until names are unique."""
        computations = self.module.computations
        computations[f"{{{len(computations)}}}"] = computation
