"""Localization of differences: two modules run on the same inputs, all values compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from hloopt.equivalence.comparison import Comparison, Mismatch
from hloopt.equivalence.measures import eps_of
from hloopt.equivalence.numerics.findings import (
    ArrayError,
    Numerics,
    Uncounted,
    ValueErrors,
)
from hloopt.equivalence.numerics.op_names import OpNames
from hloopt.equivalence.numerics.origins import OriginSearch
from hloopt.equivalence.numerics.partners import partners_of
from hloopt.equivalence.numerics.tracing import HANDED_ON, Key, compare_runs
from hloopt.equivalence.pairing import Pairing, pair_up_inputs
from hloopt.equivalence.path_types import PathTypes
from hloopt.equivalence.reference import Reference, pair
from hloopt.equivalence.runs import Runs, Trial
from hloopt.equivalence.settings import RunSettings
from hloopt.interpreter.errors import RunError
from hloopt.interpreter.values import dtype_of
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.preserves import Preserves

_MOST_KEPT = 1 << 30
_KEPT_OF_MEMORY = 4
"""The part of the memory for values of the first module that wait for the second one."""


def localize(
    left: Module, right: Module, settings: RunSettings, preserves: Preserves = "rounding"
) -> Numerics:
    """Compare the outputs of two modules as `Reference.examine` does, and all values of the
    instructions that belong together, on inputs where the outputs differ.

    Raises RunError where the modules do not take the same, or one of them cannot be run.
    O(time of the runs), again for each part of the values that does not fit into memory.
    """
    settings = settings._replace(engine=None)
    pairing = pair(left, right, settings)
    if isinstance(pairing, str):
        comparison = Comparison(Mismatch(pairing))
        pairing = pair_up_inputs(settings.place(left), settings.place(right))
    else:
        comparison = Reference(left, settings).examine(right, preserves)
    if pairing.is_cut or pairing.left.grid != pairing.right.grid:
        raise RunError(
            "one module computes for all devices, the other one is partitioned: their values are "
            "not of one size",
            help="give two texts of one stage; `hloopt equivalent` compares the outputs",
            code="HLO508",
        )
    return _Localization(pairing, settings, comparison, preserves).run()


class _Units:
    """The precision of the narrowest type on the paths through an instruction, in either program,
    as a part of a value."""

    def __init__(
        self, programs: tuple[Module, Module], partners: Mapping[Instruction, Instruction]
    ):
        self._types = list(map(PathTypes, programs))
        self._partners = partners

    def of(self, instruction: Instruction) -> float:
        both = zip(self._types, (instruction, self._partners[instruction]), strict=True)
        found = (types.narrowest(each) for types, each in both)
        return max((eps_of(dtype_of(t)) for t in found if t is not None), default=0.0)


def _no_unit(instruction: Instruction) -> float:
    del instruction
    return 0.0


class _Localization:
    """Collects the errors of all pairs of instructions."""

    def __init__(
        self,
        pairing: Pairing,
        settings: RunSettings,
        comparison: Comparison,
        preserves: Preserves,
    ) -> None:
        self._left = Runs(pairing.left, pairing.left_plans, settings)
        self._right = Runs(pairing.right, pairing.right_plans, settings)
        self._comparison = comparison
        programs = pairing.left.program, pairing.right.program
        self._partners = partners_of(*programs)
        unit = _Units(programs, self._partners).of if preserves == "precision" else _no_unit
        self._search = OriginSearch(programs[0], self._partners, unit)
        self._errors: dict[Instruction, ValueErrors] = {}
        self._other_shapes: set[Instruction] = set()
        self._op_names = OpNames()
        self._count = 0
        memory = settings.memory
        self._room = _MOST_KEPT if memory is None else min(_MOST_KEPT, memory // _KEPT_OF_MEMORY)

    def run(self) -> Numerics:
        trial = self._trial()
        ran = compare_runs(
            self._partners,
            lambda observer: self._left.watch(trial, observer, self._room),
            lambda observer: self._right.watch(trial, observer, self._room),
            self._room,
            self._add,
        )
        values = self._in_order(ran[0])
        return Numerics(
            self._comparison,
            trial.describe().strip(" ()"),
            [errors for errors in values if errors.before not in self._search.fixed],
            self._search.first(self._errors),
            self._uncounted(*ran),
        )

    def _trial(self) -> Trial:
        """The inputs on which the outputs differ; those of the first seed where they do not."""
        mismatch = self._comparison.mismatch
        if mismatch is None or (mismatch.seed is None and mismatch.special is None):
            return Trial(0)
        return Trial(mismatch.seed or 0, special=mismatch.special)

    def _add(self, key: Key, error: ArrayError | None) -> None:
        device, before, visit = key
        if error is None:
            self._other_shapes.add(before)
            return
        self._search.add(key, error)
        if before not in self._errors:
            after, op_name = self._partners[before], self._op_names.of(before)
            self._errors[before] = ValueErrors(before, after, op_name)
        self._count += 1
        self._errors[before].add(error, device, visit, self._count)

    def _in_order(self, ran: Counter[Instruction]) -> list[ValueErrors]:
        """The errors by instruction, in the order in which the first program ran them."""
        return [
            self._errors[instruction]
            for instruction in ran
            if instruction in self._errors and instruction.opcode not in HANDED_ON
        ]

    def _uncounted(self, before: Counter[Instruction], after: Counter[Instruction]) -> Uncounted:
        partners = self._partners
        known = set(partners.values())
        return Uncounted(
            [i for i in before if i not in partners and i.opcode not in HANDED_ON],
            [i for i in after if i not in known and i.opcode not in HANDED_ON],
            _count(self._other_shapes),
            _count(i for i in before if i in partners and before[i] != after[partners[i]]),
        )


def _count(instructions: Iterable[Instruction]) -> int:
    return sum(instruction.opcode not in HANDED_ON for instruction in instructions)
