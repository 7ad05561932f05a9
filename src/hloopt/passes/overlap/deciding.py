"""The parts that all passes share which search for decisions."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from hloopt.collector import collector_paused
from hloopt.diagnostics import HloError, PassRefused, PipelineError
from hloopt.ir.module import Module
from hloopt.pass_framework.base import ModulePass, PassContext
from hloopt.passes.overlap.judging import Judge, Judged
from hloopt.passes.overlap.options import OverlapOptions
from hloopt.passes.overlap.outcomes import gains


class DecidingPass(ModulePass):
    """A pass that searches for decisions by the times of a target."""

    Options: ClassVar[type[OverlapOptions]]
    takes_target = True
    options: OverlapOptions

    def run(self, module: Module, context: PassContext) -> bool:
        if self.options.target is None:
            raise PipelineError(
                f"{self.name} needs a target, whose times it goes by",
                help="give target=h100_sxm, or another of `hloopt targets`",
            )
        if not self.is_for(module, context) or context.is_at_limit:
            return False
        with collector_paused():
            try:
                return self.search(module, context)
            except (PassRefused, PipelineError):
                raise
            except HloError as error:
                raise PipelineError(error.message, help=error.help, code=error.code) from error

    @abstractmethod
    def is_for(self, module: Module, context: PassContext) -> bool:
        """Whether there is anything to decide; a remark says why not. May raise PassRefused."""

    @abstractmethod
    def search(self, module: Module, context: PassContext) -> bool:
        """Make the decisions that are found; whether there are any."""

    def tell(
        self, module: Module, given: Judged, best: Judged, judge: Judge, context: PassContext
    ) -> None:
        """Count the decisions, and say what each bought."""
        for decision in best.decisions:
            context.count(f"decisions to {decision.family}")
        if context.wants_remarks:
            for what in gains(given, best, judge):
                context.analysis(module.entry.root, what)
