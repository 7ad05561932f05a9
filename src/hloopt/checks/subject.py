"""A module under check, with the reports that checks ask, each made once and only if asked for."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from hloopt.analysis.source_lines import SourceLines
from hloopt.analysis.stage import Stage
from hloopt.checks.results import Location
from hloopt.cost_models import CostModelChoice
from hloopt.diagnostics import Span
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.sources.source_stacks import op_name_of
from hloopt.patterns import pattern

_DEFINITION = pattern(r"^[ \t]*(?:ROOT[ \t]+)?(%?([\w.\-]+)[ \t]+=[ \t][^\n]*)", re.MULTILINE)
"""An instruction on a line of its own, as XLA prints it: its text and its name."""

if TYPE_CHECKING:
    from hloopt.analysis.cost import CostAnalysis
    from hloopt.reports.memory.model import MemoryFindings
    from hloopt.reports.replication.findings import ReplicationReport
    from hloopt.reports.schedule.findings import ScheduleFindings
    from hloopt.reports.structure.loops import LoopReport
    from hloopt.sharding.origins import Origins


@dataclass
class Subject:
    """A verified module, which must not change while it is checked."""

    file: str
    module: Module
    cost_model: CostModelChoice = field(default_factory=CostModelChoice)
    """The model of times; without a target there are none in seconds."""
    origins: Origins = field(default_factory=dict)
    """Origins of collectives by name; empty where that was not asked for."""

    @cached_property
    def stage(self) -> Stage:
        return Stage.of(self.module)

    @cached_property
    def costs(self) -> CostAnalysis:
        from hloopt.analysis.cost import CostAnalysis

        return CostAnalysis(self.module)

    @cached_property
    def loops(self) -> list[LoopReport]:
        from hloopt.reports.structure.loops import analyze_loops

        return analyze_loops(self.module)

    @cached_property
    def replication(self) -> list[ReplicationReport]:
        """A report for each axis that has several devices. O(instructions) for each."""
        from hloopt.analysis.replication import Axis, ReplicationAnalysis
        from hloopt.ir.devices.device_counts import device_counts
        from hloopt.reports.replication.findings import report_replication

        counts = device_counts(self.module)
        return [
            report_replication(
                self.module,
                ReplicationAnalysis(
                    self.module,
                    cross_partition_spmd=axis is Axis.PARTITIONS,
                    device_counts=counts,
                ),
            )
            for axis, count in zip(Axis, counts, strict=True)
            if count > 1
        ]

    @cached_property
    def memory(self) -> MemoryFindings:
        """Memory by the backend that the module tells, without a limit or advice."""
        from hloopt.reports.memory.model import MemoryFindings

        return MemoryFindings.of(self.module, None)

    @cached_property
    def schedule(self) -> ScheduleFindings:
        """A run by the cost model, loops by all their trips."""
        return self.schedule_under(self.cost_model)

    def schedule_under(self, cost_model: CostModelChoice) -> ScheduleFindings:
        """A run by another cost model; made once for each."""
        found = self._schedules.get(cost_model)
        if found is None:
            from hloopt.reports.schedule.findings import ScheduleFindings
            from hloopt.reports.schedule.run import ScheduleSettings

            settings = ScheduleSettings(cost_model=cost_model, loops="trips")
            found = self._schedules[cost_model] = ScheduleFindings.of(self.module, settings)
        return found

    @cached_property
    def _schedules(self) -> dict[CostModelChoice, ScheduleFindings]:
        return {}

    # -- places -----------------------------------------------------------------------------------

    def location_of(self, instruction: Instruction) -> Location:
        """The place of an instruction. O(its computation) once, and O(text) once."""
        frame, made = self._lines.of(instruction).frame, self.origins.get(instruction.name)
        here = Location(
            self.file,
            instruction=instruction.name,
            computation=instruction.parent.name,
            op_name=op_name_of(instruction),
            source="" if frame is None else frame.text,
            made_by="" if made is None else made.text(),
        )
        span = self._span_of(instruction)
        if span is None:
            return here
        line, column = self._place(span.start)
        end_line, end_column = self._place(span.end)
        return replace(here, line=line, column=column, end_line=end_line, end_column=end_column)

    def _span_of(self, instruction: Instruction) -> Span | None:
        """As `Module.span_of`, with one look at each computation however many are asked for."""
        computation, source = instruction.parent, self.module.source
        if source is None or computation.source_range is None:
            return self.module.span_of(instruction)
        spans = self._spans.get(computation)
        if spans is None:
            lines = _DEFINITION.finditer(source.text, *computation.source_range)
            spans = {match[2]: Span(source, match.start(1), match.end(1)) for match in lines}
            self._spans[computation] = spans
        name = self.module.read_names.get(instruction, instruction.name)
        return spans.get(name) or self.module.span_of(instruction)

    @cached_property
    def _spans(self) -> dict[Computation, dict[str, Span]]:
        return {}

    def _place(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset into the source, both from 1."""
        assert self.module.source is not None  # else there is no span
        number = bisect_right(self._line_starts, offset)
        first = self.module.source.first_line
        return number + first - 1, offset - self._line_starts[number - 1] + 1

    @cached_property
    def _line_starts(self) -> list[int]:
        assert self.module.source is not None
        text = self.module.source.text
        starts = [0]
        while end := text.find("\n", starts[-1]) + 1:
            starts.append(end)
        return starts

    @cached_property
    def _lines(self) -> SourceLines:
        return SourceLines(self.module)
