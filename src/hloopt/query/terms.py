"""Terms of selectors: comparisons, and what `,`, `or` and `not` make of them."""

from __future__ import annotations

import typing
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Protocol

from hloopt.ir.instruction import Instruction
from hloopt.query.facts import ModuleFacts
from hloopt.query.keys import Key
from hloopt.query.kinds import Accepts

Test = Callable[[typing.Any], bool]
"""The test of an instruction, or of another subject that a vocabulary is for."""


class Term(Protocol):
    """A part of a selector."""

    @property
    def cost(self) -> int:
        """Larger for what takes longer."""

    def bind(self, facts: ModuleFacts) -> Test:
        """The test of the instructions of one module."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One of a key's values is accepted; without `accepts`, there is one, or the flag holds."""

    key: Key
    accepts: Accepts | None = None

    @property
    def cost(self) -> int:
        return self.key.cost

    def bind(self, facts: ModuleFacts) -> Test:
        read, accepts = self.key.read(facts), self.accepts

        def decide(subject: object) -> bool:
            found = read(subject)
            if accepts is None or isinstance(found, bool):
                return bool(found)
            return any(map(accepts, found))

        get = self.key.subject
        if get is None:
            return decide
        known: dict[Hashable, bool] = {}

        def look_up(instruction: Instruction) -> bool:
            subject = get(instruction)
            result = known.get(subject)
            if result is None:
                result = known[subject] = decide(subject)
            return result

        return look_up


@dataclass(frozen=True, slots=True)
class Not:
    """The term does not hold."""

    term: Term

    @property
    def cost(self) -> int:
        return self.term.cost

    def bind(self, facts: ModuleFacts) -> Test:
        test = self.term.bind(facts)
        return lambda instruction: not test(instruction)


@dataclass(frozen=True, slots=True)
class All:
    """Each of the terms holds; cheap ones are asked first."""

    terms: Sequence[Term]

    @property
    def cost(self) -> int:
        return max(term.cost for term in self.terms)

    def tests(self, facts: ModuleFacts) -> list[Test]:
        return [term.bind(facts) for term in sorted(self.terms, key=lambda term: term.cost)]

    def bind(self, facts: ModuleFacts) -> Test:
        tests = self.tests(facts)
        return lambda instruction: all(test(instruction) for test in tests)


@dataclass(frozen=True, slots=True)
class Any:
    """One of the terms holds; cheap ones are asked first."""

    terms: Sequence[Term]

    @property
    def cost(self) -> int:
        return max(term.cost for term in self.terms)

    def bind(self, facts: ModuleFacts) -> Test:
        cheap_first = sorted(self.terms, key=lambda term: term.cost)
        tests = [term.bind(facts) for term in cheap_first]
        return lambda instruction: any(test(instruction) for test in tests)
