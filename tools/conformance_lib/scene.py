"""The state that an expectation is checked on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from conformance_lib.errors import RecordError
from conformance_lib.source_names import SourceNames
from hloopt.diagnostics import HloError
from hloopt.ir import Computation, Instruction, Module


@dataclass(slots=True)
class Scene:
    """A module at one point of a record's run, and what the pass that ran last reported."""

    module: Module
    names: SourceNames
    run_again: Callable[[], bool | None]
    """Run the record's own pass once more; whether it reports a change."""
    changed: bool | None = None
    """The result that the pass reported; None where nothing reports."""
    reference: Callable[[Mapping[str, Any] | None], Module] | None = None
    """The record's module as it was, or after the record's pass with other options."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """The options of the record."""
    mixes_precision: bool = False
    """Whether a valid module may mix precisions."""
    main_pass: Callable[[], Any] = lambda: None
    """The record's own pass; None where it has not run yet."""
    notes: list[str] = field(default_factory=list)
    """The warnings that the record's own pass gave."""
    rematerialized: list[tuple[Instruction, Instruction]] = field(default_factory=list)
    """New instructions of rematerialization, each after the one that it stands for."""
    error: HloError | None = None
    """The reason why the pass failed; None where it did not."""

    def find(self, name: str, computation: str | None = None) -> Instruction:
        """The instruction of the source text called `name`, or a new one of that name.

        Where a pass replaced the instruction, the one that took over its name is meant. Raises
        RecordError where there is none.
        """
        definition = self.names.find(name, computation)
        if definition is not None and is_in_module(definition.instruction, self.module):
            return definition.instruction
        found = self.current(definition.name if definition else name, computation)
        if found is None:
            gone = "not in the module any more" if definition else "not in the module"
            raise RecordError(f"%{name} is {gone}")
        return found

    def has(self, name: str, computation: str | None = None) -> bool:
        """Whether the module has an instruction of this name of the source text, or a new one."""
        definition = self.names.find(name, computation)
        return self.current(definition.name if definition else name, computation) is not None

    def current(self, name: str, computation: str | None = None) -> Instruction | None:
        """The instruction that has the name `name` now. O(instructions)."""
        for instruction in self.module.instructions():
            if instruction.name == name and computation in (None, instruction.parent.name):
                return instruction
        return None


def is_in_module(instruction: Instruction, module: Module) -> bool:
    """Whether `instruction` still is one of `module`."""
    parent: Computation = instruction.parent
    return module.computations.get(parent.name) is parent and instruction in parent
