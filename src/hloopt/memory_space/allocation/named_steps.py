"""Instructions that an option names."""

from __future__ import annotations

from dataclasses import dataclass, field

from hloopt.diagnostics import PassRefused, did_you_mean
from hloopt.ir import Instruction
from hloopt.memory_space.program import Program


@dataclass(slots=True)
class NamedSteps:
    """The instructions of a schedule by name, for one option. O(instructions) at the first name.

    The name is the instruction's own, or that in the text it was read from.
    """

    program: Program
    option: str
    _by_name: dict[str, Instruction] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Instruction:
        """The instruction of that name. Raises PassRefused where there is none."""
        if not self._by_name:
            steps, read_names = self.program.schedule.steps, self.program.module.read_names
            for step in steps:
                self._by_name.setdefault(read_names.get(step, step.name), step)
            self._by_name.update((step.name, step) for step in steps)
        found = self._by_name.get(name)
        if found is None:
            raise PassRefused(
                f"{self.option} names '%{name}', which is not in the schedule",
                help=did_you_mean(name, self._by_name) or "give a name of the module's text",
            )
        return found
