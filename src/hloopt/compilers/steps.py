"""Steps of pipelines that XLA's own compiler does: a compile up to a stage, or passes alone.

passes:
  - xla-stage: spmd
  - xla: {passes: [algsimp, dce], target: h100_sxm}
"""

from __future__ import annotations

import os
import tempfile
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

from hloopt.diagnostics import (
    HloError,
    PassFailure,
    PassRefused,
    PipelineError,
    Source,
    counted,
)
from hloopt.ir.module import Module
from hloopt.pass_framework.base import (
    ModulePass,
    PassContext,
    PassOptions,
    Seconds,
    option,
    register,
)
from hloopt.pass_framework.options import OptionError
from hloopt.preserves import Preserves

if TYPE_CHECKING:
    from hloopt.compilers.compiling import Compiler, Settings
    from hloopt.compilers.programs import Program

_WRONG_OPTION = "HLO603"
_PARTITIONER = "spmd-partitioning"
_SHARDY = "shardy-xla"
_DONORS = "buffer_donor"


class _Question(NamedTuple):
    """A program, the compiler that is asked, and how."""

    program: Program
    compiler: Compiler
    settings: Settings
    folder: Path
    """For what the compiler leaves behind; empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompilerOptions(PassOptions):
    """The options of both steps, which are those of `hloopt xla`."""

    target: str | None = option(
        None, "cpu, a GPU (`hloopt targets`), or a file of one; none: that of the pipeline"
    )
    devices: int | None = option(None, "devices to compile for; none: what the program says")
    flags: tuple[str, ...] = option((), "flags of XLA, xla_NAME=VALUE; XLA_FLAGS is not read")
    plugin: str | None = option(
        None, "the compiler for GPUs: cuda13, cuda12, rocm7, or a path; none: HLOOPT_XLA_PLUGIN"
    )
    timeout: Seconds = option(Seconds(600), "the time limit of a compile")


class _CompilerStep(ModulePass):
    """A compiler of XLA changes the module, all at once."""

    takes_target: ClassVar[bool] = True
    starts_processes: ClassVar[bool] = True
    Options: ClassVar[type[CompilerOptions]] = CompilerOptions
    options: CompilerOptions

    def __init__(self, options: PassOptions | None = None) -> None:
        super().__init__(options)
        for name in ("devices", "timeout"):
            value = getattr(self.options, name)
            if value is not None and value <= 0:
                raise OptionError(f"option '{name}' is more than 0", name)

    def run(self, module: Module, context: PassContext) -> bool:
        """Ask the compiler, and let the module become its answer: one application."""
        from hloopt.text import parse_module, print_module

        if context.is_at_limit:  # a compile takes long
            return False
        with (
            _told_as_by_a_step(),
            tempfile.TemporaryDirectory(prefix="hloopt-xla-") as folder,
        ):
            question = self._question(module, Path(folder))
            text = self._answer(question, module, context)
        by, target = _conditions(question.compiler), question.compiler.target
        lost = _lost_on_the_way(question.compiler, module)
        context.note(f"{self.name}: {by}: it is not your compile{lost}")
        if text is None:
            return False
        made = parse_module(Source(module.source.name if module.source else "<module>", text))
        if print_module(made) == print_module(module):
            return False
        if not context.apply(module.entry.root, f"{self._what} for {target} takes its place"):
            return False
        module.become(made)
        return True

    def _question(self, module: Module, folder: Path) -> _Question:
        """Raises HloError for a compiler or a flag that is not there, and for another module."""
        from hloopt.compilers.compiling import Compiler, Settings
        from hloopt.compilers.flags import Flags
        from hloopt.compilers.programs import Program

        options = self.options
        if options.target is None:
            raise PipelineError(
                f"{self.name} has no target to compile for",
                help="`target`, in the step or for the whole pipeline, is cpu or a GPU "
                "(`hloopt targets`)",
                code=_WRONG_OPTION,
            )
        flags = Flags.of(options.flags)
        flags.set("xla_dump_large_constants", "true")  # the module is read from a dump
        plugin = options.plugin or os.environ.get("HLOOPT_XLA_PLUGIN")
        compiler = Compiler.named(options.target, plugin)
        program = Program.of(module, options.devices)
        if program.elided:
            what = counted(program.elided, "constant has", "constants have")
            raise PassRefused(
                f"{what} no values in the text: XLA would take zeros for them",
                help="dump it whole: --xla_dump_large_constants",
            )
        settings = Settings(flags=flags.texts(), seconds=options.timeout)
        return _Question(program, compiler, settings, folder)

    @property
    @abstractmethod
    def _what(self) -> str:
        """The thing that takes the place of the module."""

    @abstractmethod
    def _answer(self, question: _Question, module: Module, context: PassContext) -> str | None:
        """The text of the module afterwards; None where the compiler leaves it as it is.

        Raises HloError, CompilerFailure, and PassRefused where the step is not for the module.
        """


_PRESERVED: dict[str, Preserves] = {
    "hlo-before": "rounding",
    "spmd": "finite",  # XLA:GPU simplifies before: exp(x) * exp(y) becomes exp(x + y)
    "hlo": "precision",
}


@register("xla-stage", preserves="precision")
class XlaStage(_CompilerStep):
    """Compile with XLA, without a device, and go on with a stage of that compile.

    `spmd` is what XLA's partitioner makes of a program for several devices. It is refused for a
    program that XLA does not partition: one for one partition, and one that is partitioned or may
    be. `hlo` is what all passes of XLA make of a program, scheduled, `hlo-before` what they begin
    with. Validation holds `hlo` to `precision`; `spmd` to `finite`, since XLA simplifies before it
    partitions; `hlo-before` to `rounding`. Where XLA fails behind the stage, a note says so.

    It is the stage of a compile without autotuning and with the flags of the step, not of yours.
    `hloopt xla compile` shows the same. One application; needs the extra `xla` or `xla-gpu`.
    """

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options(CompilerOptions):
        stage: Literal["hlo-before", "spmd", "hlo"] | None = option(
            None, "the stage; has to be given"
        )

    shorthand: ClassVar[str | None] = "stage"
    options: Options

    def __init__(self, options: PassOptions | None = None) -> None:
        super().__init__(options)
        if self.options.stage is None:
            raise PipelineError(
                f"{self.name} needs a stage",
                help="`- xla-stage: spmd` in YAML, xla-stage{stage=spmd} as text; there are "
                "hlo-before, spmd and hlo",
                code=_WRONG_OPTION,
            )
        self.preserves = _PRESERVED[self.options.stage]

    @property
    def _what(self) -> str:
        return f"the stage {self.options.stage}"

    def _answer(self, question: _Question, module: Module, context: PassContext) -> str | None:
        from hloopt.compilers.compiling import compile_program
        from hloopt.compilers.failures import (
            CompilerFailure,
            CompilerKilled,
            CompilerTooSlow,
        )
        from hloopt.compilers.stages import STAGES, files_of

        assert self.options.stage is not None  # see __init__
        if self.options.stage == "spmd":
            _check_partitionable(module, question.program)
        stage = STAGES[self.options.stage]
        program, compiler, settings, folder = question
        settings = replace(settings, until_buffers=True, passes=stage.passes)
        try:
            compile_program(program, compiler, folder, settings)
        except (CompilerTooSlow, CompilerKilled):  # at any moment: a dump may be half written
            raise
        except CompilerFailure as failure:
            if not stage.files(folder / "dumps"):
                raise
            context.note(f"{self.name}: behind the stage {failure.message}")
        found = files_of(self.options.stage, folder / "dumps")
        return found[0].read_text(encoding="utf-8")


@register("xla", preserves="precision")
class XlaPasses(_CompilerStep):
    """Run passes of XLA alone, with the options that they have in XLA's pipeline.

    All others are switched off by name. They run in XLA's order, whatever that of `passes` is, and
    each at all of its places; a pipeline that is a pass runs whole. Names are those of `hloopt xla
    passes FILE --all`. A program whose shardings are of Shardy is partitioned by `shardy-xla` and
    `spmd-partitioning`, which is refused alone: it does not read them. A pass that XLA also has
    behind layout assignment, as algsimp, may leave what XLA does not compile again, such as
    bitcasts.

    It takes two compiles without autotuning, with the flags of the step, not yours. `hloopt xla
    isolate` shows the runs of one pass. One application; needs the extra `xla` or `xla-gpu`.
    """

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options(CompilerOptions):
        passes: tuple[str, ...] = option((), "passes, as XLA names them; one at least")

    shorthand: ClassVar[str | None] = "passes"
    options: Options

    def __init__(self, options: PassOptions | None = None) -> None:
        super().__init__(options)
        if not self.options.passes:
            raise PipelineError(
                f"{self.name} needs passes of XLA",
                help="`- xla: [algsimp, dce]` in YAML, xla{passes=[algsimp,dce]} as text",
                code=_WRONG_OPTION,
            )

    @property
    def _what(self) -> str:
        return f"the result of XLA's {', '.join(self.options.passes)}"

    def _answer(self, question: _Question, module: Module, context: PassContext) -> str | None:
        from hloopt.compilers.isolation import isolate_together

        program, compiler, settings, folder = question
        names = list(dict.fromkeys(self.options.passes))
        if _PARTITIONER in names:
            _check_partitionable(module, program)
            if program.uses_shardy and _SHARDY not in names:
                raise PassRefused(
                    f"{_PARTITIONER} alone does not read the shardings of Shardy that it has",
                    help=f"passes: [{_SHARDY}, {_PARTITIONER}], or `xla-stage: spmd`",
                )
        runs = isolate_together(program, names, compiler, folder, settings)
        # Behind the last one that changed something, XLA does what is in no pipeline: it schedules.
        return next((run.after for run in reversed(runs) if run.is_changed), None)


def _check_partitionable(module: Module, program: Program) -> None:
    """Raise PassRefused for a program that XLA does not partition, or that may be partitioned."""
    from hloopt.analysis.stage import Stage

    stage = Stage.of(module)
    holds, evidence = stage.partitioned
    if program.partitions == 1 or stage.devices == 1:
        raise PassRefused(
            "XLA does not partition it: it is for one partition",
            help="shardings, or num_partitions in the header, say how many there are",
        )
    if holds:
        raise PassRefused(f"XLA does not partition it: it is partitioned, {evidence}")
    if holds is None:
        raise PassRefused(
            f"it may be partitioned: {evidence}",
            help="lower it with Shardy, or with the shardings of its results (out_shardings)",
        )


def _conditions(compiler: Compiler) -> str:
    from hloopt.compilers.plugins import version_of
    from hloopt.compilers.report import conditions

    return conditions(version_of(compiler.plugin), compiler.target)


def _lost_on_the_way(compiler: Compiler, module: Module) -> str:
    """The parts of a module that jaxlib drops, which takes HLO as StableHLO."""
    if compiler.plugin is not None:
        return ""
    lost = ["layouts"]
    if module.is_scheduled:
        lost.append("the schedule")
    if _DONORS in module.attributes:
        lost.append(_DONORS)
    named = " and ".join(filter(None, (", ".join(lost[:-1]), lost[-1])))
    return f"; jaxlib takes HLO as StableHLO, which drops {named}"


@contextmanager
def _told_as_by_a_step() -> Iterator[None]:
    """Errors of a compiler as those of a pass: what is wrong about it is so about an option."""
    from hloopt.compilers.failures import CompilerTooSlow

    try:
        yield
    except CompilerTooSlow as error:
        raise CompilerTooSlow(error.message, help="`timeout` of the step gives it longer").noted(
            error.note
        ) from error
    except (PassFailure, PipelineError):
        raise
    except HloError as error:
        raise PipelineError(error.message, help=error.help, code=error.code).noted(
            error.note
        ) from error
