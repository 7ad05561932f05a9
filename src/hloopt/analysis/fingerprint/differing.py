"""The classes of content that two modules with different fingerprints differ in."""

from __future__ import annotations

from hloopt.analysis.content import CLASSES
from hloopt.analysis.fingerprint.modules import LEFT_OUT, fingerprint
from hloopt.ir.literals.literal import ELIDED
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode


class Fingerprints:
    """Fingerprints of one module without more and more classes, each computed once.

    `elided` counts constants whose values the text lacks: they are equal to each other.
    """

    def __init__(self, module: Module, ignored: frozenset[str] = LEFT_OUT) -> None:
        self.name = module.name
        self.ignored = ignored
        self.elided = sum(ELIDED in each.payload for each in module.instructions(Opcode.CONSTANT))
        self._module = module
        self._known: dict[frozenset[str], str] = {}
        self.without()

    def without(self, more: frozenset[str] = frozenset()) -> str:
        """The fingerprint without the classes `more` either. Near-linear."""
        ignored = self.ignored | more
        if ignored not in self._known:
            self._known[ignored] = fingerprint(self._module, ignored=ignored)
        return self._known[ignored]


def differing_classes(a: Fingerprints, b: Fingerprints) -> tuple[str, ...] | None:
    """The classes of content without which two modules have one fingerprint; none can be spared.

    None where the modules differ in more than classes; empty where they are equal. Where several
    sets exist, the one whose classes stand last in `CLASSES`. Some 12 fingerprints each.
    """
    if a.without() == b.without():
        return ()
    kept = [name for name in CLASSES if name not in a.ignored]
    if a.without(frozenset(kept)) != b.without(frozenset(kept)):
        return None
    for name in list(kept):
        rest = frozenset(kept) - {name}
        if a.without(rest) == b.without(rest):
            kept.remove(name)
    return tuple(kept)
