"""Pipelines: passes in order, fixpoints and pipelines within pipelines, as data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

from hloopt.diagnostics import Span
from hloopt.pass_framework.base import ModulePass

OnError = Literal["fail", "skip"]
DEFAULT_ITERATIONS = 25
_NOTHING: Mapping[str, object] = MappingProxyType({})


class PassStep(NamedTuple):
    """One pass. `options` are as the user gave them; `made` is the pass itself.

    As in all steps, `when` holds conditions on the module, `on_error` says what an error means,
    and `span` is where the step is written.
    """

    made: ModulePass
    options: Mapping[str, object] = _NOTHING
    when: Mapping[str, object] = _NOTHING
    on_error: OnError = "fail"
    span: Span | None = None


class FixpointStep(NamedTuple):
    """Steps repeated until none of them changes anything."""

    steps: tuple[Step, ...]
    max_iterations: int = DEFAULT_ITERATIONS
    when: Mapping[str, object] = _NOTHING
    on_error: OnError = "fail"
    span: Span | None = None


class PipelineStep(NamedTuple):
    """Another pipeline."""

    pipeline: Pipeline
    when: Mapping[str, object] = _NOTHING
    on_error: OnError = "fail"
    span: Span | None = None


Step = PassStep | FixpointStep | PipelineStep


class Pipeline(NamedTuple):
    """Named steps."""

    name: str
    steps: tuple[Step, ...]
    description: str = ""
    target: str | None = None

    def passes(self) -> Iterator[PassStep]:
        """All pass steps, nested ones included, in order."""
        stack: list[Step] = list(reversed(self.steps))
        while stack:
            step = stack.pop()
            match step:
                case PassStep():
                    yield step
                case FixpointStep():
                    stack.extend(reversed(step.steps))
                case PipelineStep():
                    stack.extend(reversed(step.pipeline.steps))


def starts_processes(pipeline: Pipeline) -> bool:
    """Whether a pass of it starts processes: these have to end when its own process does."""
    return any(step.made.starts_processes for step in pipeline.passes())


FindPipeline = Callable[[str], Pipeline]
"""Gives the pipeline of a name."""
