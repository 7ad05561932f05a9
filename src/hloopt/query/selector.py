"""Selectors: from a text to the instructions it selects."""

from __future__ import annotations

from collections.abc import Iterator

from hloopt.diagnostics import Source
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.query.facts import ModuleFacts
from hloopt.query.grammar import parse_terms
from hloopt.query.terms import All, Term, Test


class Selector:
    """A selector that has been read; for any number of modules."""

    __slots__ = ("_known", "_term", "text")

    def __init__(self, text: str, term: Term) -> None:
        self.text = text
        self._term = term
        self._known: tuple[Module, int, Test] | None = None

    def select(self, module: Module) -> Iterator[Instruction]:
        """The instructions of a module that are selected, computation by computation.

        O(instructions), and what facts they ask for take once. List them before changing the
        module.
        """
        facts = ModuleFacts(module)
        term = self._term
        found = module.instructions()
        for test in term.tests(facts) if isinstance(term, All) else (term.bind(facts),):
            found = filter(test, found)
        return found

    def matches(self, instruction: Instruction) -> bool:
        """Whether an instruction is selected.

        Facts of its module are found out again when the module has changed since the last call.
        """
        module = instruction.parent.module
        known = self._known
        if known is None or known[0] is not module or known[1] != module.version:
            known = self._known = module, module.version, self._term.bind(ModuleFacts(module))
        return known[2](instruction)

    def __repr__(self) -> str:
        return f"<selector {self.text}>"


def parse_selector(text: str, origin: str = "selector") -> Selector:
    """The selector that a text is; `origin` is what messages call the text.

    Raises SelectorError with the place of the mistake.
    """
    return Selector(text, parse_terms(Source(origin, text)))
