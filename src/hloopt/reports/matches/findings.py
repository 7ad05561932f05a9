"""The instructions of a module that a selector selects, and how often each opcode is among them."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from hloopt.ir.find import called_in_text
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.query import Selector


@dataclass(frozen=True, slots=True)
class Matches:
    """The selected instructions of a module, computation by computation."""

    module: str
    instructions: list[Instruction]
    opcodes: dict[str, int]
    """The selected instructions of each opcode, most first."""
    is_ambiguous: bool
    """Whether the selector is one `%name`, and several computations of the text have it."""

    @property
    def computations(self) -> int:
        """The number of computations that have a selected instruction."""
        return len({instruction.parent for instruction in self.instructions})


def find_matches(module: Module, selector: Selector) -> Matches:
    """Select instructions. O(instructions), and the facts that the selector asks for."""
    name = re.fullmatch(r"\s*%([\w.\-]+)\s*", selector.text)
    found = list(selector.select(module) if name is None else called_in_text(module, name[1]))
    counts = Counter(str(instruction.opcode) for instruction in found)
    is_ambiguous = name is not None and len(found) > 1
    return Matches(module.name, found, dict(counts.most_common()), is_ambiguous)
