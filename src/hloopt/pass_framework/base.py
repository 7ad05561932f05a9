"""The interface of a pass: a name, documented options, and `run`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, TypeVar

from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.options import Bytes as Bytes
from hloopt.options import PassOptions as PassOptions
from hloopt.options import Seconds as Seconds
from hloopt.options import check_types
from hloopt.options import option as option
from hloopt.preserves import Preserves


def is_on_thread(computation: Computation, execution_threads: tuple[str, ...]) -> bool:
    """Whether the option `execution_threads` of a pass includes the computation; none: all."""
    return not execution_threads or computation.execution_thread in execution_threads


class Remark(NamedTuple):
    """A remark of a pass: a transformation it made, or did not make, and the reason."""

    kind: str  # "applied", "missed" or "analysis"
    pass_name: str
    instruction: str
    reason: str
    source: str = ""
    """The line of the program the instruction is from: `model.py:12`."""


@dataclass(slots=True, eq=False)
class PassContext:
    """The settings the driver gives to a pass, and the remarks the pass reports back."""

    pass_name: str = ""
    wants_remarks: bool = True
    remarks: list[Remark] = field(default_factory=list)
    statistics: dict[str, int] = field(default_factory=dict)
    on_progress: Callable[[str, float], None] | None = None
    """Told what takes long, and which part of it is done, from 0 to 1."""

    def applied(self, instruction: Instruction, reason: str) -> None:
        """Report a transformation; `reason` says what became of `instruction`."""
        self._remark("applied", instruction, reason)

    def missed(self, instruction: Instruction, reason: str) -> None:
        """Report that `instruction` was left alone, and why, for someone who knows HLO."""
        self._remark("missed", instruction, reason)

    def analysis(self, instruction: Instruction, reason: str) -> None:
        """Report what was found out about `instruction`, whatever became of it."""
        self._remark("analysis", instruction, reason)

    def count(self, what: str, number: int = 1) -> None:
        """Add to a statistic of this run."""
        self.statistics[what] = self.statistics.get(what, 0) + number

    def _remark(self, kind: str, instruction: Instruction, reason: str) -> None:
        if self.wants_remarks:
            from hloopt.analysis.source_lines import line_nearby

            source = line_nearby(instruction)
            self.remarks.append(Remark(kind, self.pass_name, instruction.name, reason, source))


class ModulePass:
    """Base of all passes. The class docstring is the pass's documentation."""

    name: ClassVar[str]

    preserves: ClassVar[Preserves] = "rounding"
    """The part of the results that it leaves as it was, as `register` says."""

    Options: ClassVar[type[PassOptions]] = PassOptions
    """The class of its options, one nested in the pass where it has any."""

    def __init__(self, options: PassOptions | None = None) -> None:
        """Raise TypeError for options of another pass, and values that are not of their types."""
        if options is None:
            options = self.Options()
        elif not isinstance(options, self.Options):
            raise TypeError(
                f"{type(self).__name__} takes {self.Options.__qualname__}, "
                f"not {type(options).__qualname__}"
            )
        check_types(options, type(self).__name__)
        self.options: Any = options

    def run(self, module: Module, context: PassContext) -> bool:
        """Transform `module` in place; return whether anything changed.

        May raise: the driver then restores the module. PassRefused says that the module and the
        options do not go together, PipelineError that an option is wrong whatever the module.
        """
        raise NotImplementedError


PassClass = TypeVar("PassClass", bound=type[ModulePass])


def register(name: str, *, preserves: Preserves = "rounding") -> Callable[[PassClass], PassClass]:
    """Give a pass its name, which the table in `registry` repeats, and say what it preserves."""

    def decorate(pass_class: PassClass) -> PassClass:
        pass_class.name = name
        pass_class.preserves = preserves
        return pass_class

    return decorate
