"""The interface of a pass: a name, documented options, and `run`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, TypeVar

from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.options import Bytes as Bytes
from hloopt.options import PassOptions as PassOptions
from hloopt.options import Seconds as Seconds
from hloopt.options import check_types
from hloopt.options import option as option
from hloopt.pass_framework.applications import Application, Applications
from hloopt.preserves import Preserves

if TYPE_CHECKING:
    from hloopt.equivalence.path_types import ReadType


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
    """The settings the driver gives to a pass, and what the pass asks and reports back."""

    pass_name: str = ""
    wants_remarks: bool = True
    remarks: list[Remark] = field(default_factory=list)
    statistics: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    on_progress: Callable[[str, float], None] | None = None
    """Told what takes long, and which part of it is done, from 0 to 1."""
    applications: Applications = field(default_factory=Applications)
    """Shared by all passes of a run; without one, there is no limit."""

    def apply(self, instruction: Instruction, what: str, *, remark: bool = True) -> bool:
        """Ask to make one transformation, before it changes anything; False: leave it alone.

        One application is complete in itself: the module is valid before and after. It is counted,
        and `what`, which says what becomes of `instruction`, is reported as an applied remark.
        `remark=False` leaves the remark to `applied`, for a text that names what the transformation
        makes, or for several of one application; or out, where it would tell nothing. After the
        first False all answers are False. O(1).
        """
        if not self.applications.add(Application(self.pass_name, instruction.name, what)):
            return False
        if remark:
            self._remark("applied", instruction, what)
        return True

    @property
    def is_at_limit(self) -> bool:
        """Whether `apply` would say no.

        For passes that find out by trying whether they change anything: they leave off here, and
        ask `apply`, which says yes then, once they know.
        """
        return self.applications.is_at_limit

    def as_part(self) -> PassContext:
        """A context for the parts of one application: same remarks and statistics, no limit."""
        return replace(self, applications=Applications())

    def applied(self, instruction: Instruction, reason: str) -> None:
        """Report what became of `instruction` in an application made without a remark."""
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

    def note(self, text: str) -> None:
        """Report what whoever reads the result has to know, whether remarks are wanted or not."""
        self.notes.append(text)

    def _remark(self, kind: str, instruction: Instruction, reason: str) -> None:
        if self.wants_remarks:
            from hloopt.analysis.source_lines import line_nearby

            source = line_nearby(instruction)
            self.remarks.append(Remark(kind, self.pass_name, instruction.name, reason, source))


class XlaPass(NamedTuple):
    """The pass of XLA that a pass follows, for its page in docs/passes/."""

    class_name: str
    """The C++ class, without the namespace `xla`."""
    source: str
    """The header that declares it, in the repository openxla/xla."""
    compared: Literal["outputs", "tests", "nothing"] = "outputs"
    """The comparison that was made: with outputs of jaxlib 0.10.2, with the recorded cases of XLA's
    unit tests, or none."""


class ModulePass:
    """Base of all passes. The class docstring is the pass's documentation."""

    name: str
    """Its name; for a pass with options that have a name of their own, that name."""

    preserves: Preserves = "rounding"
    """The part of the results that it leaves as it was, as `register` says; for a pass whose
    options decide that, what they leave."""

    read_type: ReadType | None = None
    """For a pass that its options tell what the backend rounds: the type an operand is read in."""

    xla: ClassVar[XlaPass | None] = None
    """The pass of XLA that it follows; None for a pass that XLA does not have."""

    Options: ClassVar[type[PassOptions]] = PassOptions
    """The class of its options, one nested in the pass where it has any."""

    shorthand: ClassVar[str | None] = None
    """The option that a value in place of options sets in YAML: `- xla-stage: spmd`."""

    takes_target: ClassVar[bool] = False
    """Whether it has the target of its pipeline where its own option `target` is not given."""

    starts_processes: ClassVar[bool] = False
    """Whether it starts processes, which have to end with the one that it runs in."""

    option_groups: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Headings for its page, each with the options under it; all options, or no headings."""

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


def register(
    name: str, *, preserves: Preserves = "rounding", xla: XlaPass | None = None
) -> Callable[[PassClass], PassClass]:
    """Give a pass its name, which the table in `registry` repeats, and declare its facts."""

    def decorate(pass_class: PassClass) -> PassClass:
        pass_class.name = name
        pass_class.preserves = preserves
        pass_class.xla = xla
        return pass_class

    return decorate
