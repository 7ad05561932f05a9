"""A record that asks a component of memory space assignment about a scheduled module."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, cast

from conformance_lib.errors import RecordError
from conformance_lib.records import text_of
from conformance_lib.source_names import SourceNames
from hloopt.analysis.flat_schedule import FlatSchedule
from hloopt.ir import Instruction
from hloopt.memory_space.costs.costs import MemorySpaceCosts
from hloopt.memory_space.options.cost_options import CostOptions
from hloopt.memory_space.use_site import UseSite
from hloopt.pass_framework.options import read_options
from hloopt.text import parse_module


class Setting:
    """The module of a record, and what its options make of it."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self.expectations: list[Mapping[str, Any]] = fields["expect"]
        self.options: Mapping[str, Any] = fields.get("options", {})
        self.module = parse_module(text_of(fields))
        self.names = SourceNames(self.module)

    @cached_property
    def schedule(self) -> FlatSchedule:
        return FlatSchedule.of(self.module)

    @cached_property
    def costs(self) -> MemorySpaceCosts:
        return MemorySpaceCosts(self.module, _cost_options(self.options.get("cost_model", {})))

    def find(self, name: str) -> Instruction:
        found = self.names.find(name)
        if found is None:
            raise RecordError(f"%{name} is not in the module")
        return found.instruction

    def use(self, data: Mapping[str, Any]) -> UseSite:
        instruction, operand = self.find(data["instruction"]), data["operand"]
        if operand >= len(instruction.operands):
            raise RecordError(f"%{instruction.name} has no operand {operand}")
        return UseSite(instruction, operand, tuple(data.get("index", ())))


Answer = Callable[[Any, Mapping[str, Any]], Iterator[str]]
"""The mismatches of the value of a key; the expectation as a whole is the second argument."""


def check(setting: Setting, answers: Mapping[str, Answer]) -> Iterator[str]:
    for expected in setting.expectations:
        asked = [key for key in expected if key in answers]
        if not asked:
            raise RecordError(f"nothing of {', '.join(expected)} can be asked of this component")
        for key in asked:
            yield from answers[key](expected[key], expected)


def _cost_options(words: Mapping[str, Any]) -> CostOptions:
    """The option `cost_model` as the pass reads it. Raises OptionError."""
    return CostOptions(**cast("dict[str, Any]", read_options(CostOptions, words, "cost_model")))
