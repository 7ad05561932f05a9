"""Pairs of a module and an edited copy, with the known partners of instructions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from diff_lib.naming import NAMINGS
from hloopt.ir.clone import clone_module
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.ordering import stable_order
from hloopt.text import parse_module, print_module

Edit = Callable[[Module, Random], bool]
"""Changes a module in place; False where it found nothing to change."""
Partners = Mapping[Instruction, Instruction]


@dataclass(slots=True)
class KnownPair:
    """Two modules as read from text; `partners` maps instructions before to those after.

    `others` are maps that are equally right: the texts do not tell which of equal layers is gone.
    """

    name: str
    before: Module
    after: Module
    partners: Partners
    others: Sequence[Partners] = ()

    def reversed(self) -> KnownPair:
        """The pair with before and after exchanged: removed instructions become inserted ones."""
        return KnownPair(
            self.name,
            self.after,
            self.before,
            _inverse(self.partners),
            [_inverse(each) for each in self.others],
        )


def _inverse(partners: Partners) -> Partners:
    return {new: old for old, new in partners.items()}


def make_pair(
    name: str, module: Module, edit: Edit, naming: str, random: Random
) -> KnownPair | None:
    """`module` and a copy to which `edit` was done, renamed by `naming`; None without a change.

    An instruction of the copy that the edit leaves in the module is the same one, whatever else
    became of it; so no matching is needed to know partners. Both modules are printed and read
    again, the map goes along by names, which are unique.
    """
    copy, computations = clone_module(module)
    copies: dict[Instruction, Instruction] = {}
    for computation, its_copy in computations.items():
        copies.update(zip(stable_order(computation), its_copy.instructions, strict=True))
    if not edit(copy, random):
        return None
    NAMINGS[naming](copy, random)
    kept = set(copy.instructions())
    names = {old.name: new.name for old, new in copies.items() if new in kept}
    before, after = parse_module(print_module(module)), parse_module(print_module(copy))
    old_by_name = {instruction.name: instruction for instruction in before.instructions()}
    new_by_name = {instruction.name: instruction for instruction in after.instructions()}
    partners = {old_by_name[old]: new_by_name[new] for old, new in names.items()}
    return KnownPair(f"{name}, names {naming}", before, after, partners)
