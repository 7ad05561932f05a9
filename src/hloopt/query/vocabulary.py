"""The keys that selectors of something may use: of instructions, or of rows about them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hloopt.diagnostics import did_you_mean
from hloopt.ir.instruction import Instruction
from hloopt.query.facts import ModuleFacts
from hloopt.query.keys import KEYS, Key, Values, find_key, suggestion


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The keys of one kind of subject.

    Its own keys come first; where `instruction` tells which instruction a subject is about, all
    keys of instructions are there, too, unless an own key has the name.
    """

    own: tuple[Key, ...]
    """Keys whose `read` takes a subject."""
    instruction: Callable[[Any], Instruction] | None
    example: str
    """Help for whoever leaves a condition out."""

    @property
    def names(self) -> list[str]:
        """The names of all keys but those of families."""
        own = [key.name for key in self.own]
        return own if self.instruction is None else list(dict.fromkeys((*own, *KEYS)))

    def find(self, name: str) -> Key | None:
        """The key of a name, in which `-` and `_` are the same; None where there is none.

        Raises SelectorError for a name in a family that cannot be.
        """
        plain = name.replace("-", "_")
        for key in self.own:
            if key.name.replace("-", "_") == plain:
                return key
        if self.instruction is None:
            return None
        found = find_key(name)
        return None if found is None else _of_subject(found, self.instruction)

    def suggestion(self, name: str, others: Iterable[str] = ()) -> str | None:
        """A hint at the key, or the one of some other names, that is nearest to an unknown one."""
        own = [key.name for key in self.own]
        if self.instruction is None:
            return did_you_mean(name, [*own, *others])
        return suggestion(name, [*own, *others])


def _of_subject(key: Key, instruction: Callable[[Any], Instruction]) -> Key:
    """A key of instructions as one of subjects that are about instructions."""
    if instruction is _itself:
        return key
    part = key.subject
    if part is not None:
        return replace(key, subject=lambda subject: part(instruction(subject)))

    def read(facts: ModuleFacts) -> Callable[[Any], Values]:
        values = key.read(facts)
        return lambda subject: values(instruction(subject))

    return replace(key, read=read)


def _itself(instruction: Instruction) -> Instruction:
    return instruction


def vocabulary(
    own: Sequence[Key], instruction: Callable[[Any], Instruction] | None, example: str
) -> Vocabulary:
    """A vocabulary of own keys and, with `instruction`, those of instructions."""
    return Vocabulary(tuple(own), instruction, f"for example {example}")


INSTRUCTIONS = vocabulary((), _itself, "opcode=copy, bytes>1MiB")
"""The keys of instructions themselves."""
